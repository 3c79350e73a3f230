"""One example for a person: question, answer, and the lines of the prompt that prove it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise

from gniah.cypher.store import GraphStore
from gniah.generator.graphniah.experiments import is_counting, task_name
from gniah.generator.graphniah.growth import Component
from gniah.generator.graphniah.rendering import reference_line
from gniah.records.command_line import table
from gniah.records.errors import InputError
from gniah.records.graphniah.pool import ComponentRecord, PoolRecord
from gniah.records.graphniah.settings import distractor_in_tables
from gniah.records.papers import Paper


@dataclass(frozen=True, slots=True)
class Step:
    """One citation of a true path: from `one` to `other`, and where the prompt says so.

    `cites` says whether `one` cites `other` (else it is cited by it). `block` is the first line of the citing paper's
    block, `line` the line of it that names the cited paper.
    """

    one: Paper
    other: Paper
    cites: bool
    block: str
    line: str


def proof(record: PoolRecord, store: GraphStore) -> tuple[Step, ...]:
    """Return the true path from source to target, step by step; empty when there is none to show (NO, counting).

    Raises InputError when the prompt does not hold a line that the path needs.
    """
    source_component = next(component for component in record.components if component.role == "source")
    if record.target is None or record.target not in source_component.papers:
        return ()
    return tuple(_steps(record, source_component, store))


def shown(record: PoolRecord, store: GraphStore) -> str:
    """Return an example as text: its settings, its question and answer, the proof, and its counts.

    Raises InputError when the prompt does not hold a line that the proof needs.
    """
    parts = [
        table(("what", "value"), _facts(record)),
        f"Question\n\n{record.question}",
        f"Answer: {record.answer}",
        "\n\n".join(_proof(record, store)),
    ]
    return "\n\n".join(parts)


def _facts(record: PoolRecord) -> list[tuple[str, object]]:
    config, building = record.config, record.building
    needles = list(record.needles)
    facts: list[tuple[str, object]] = [
        ("qid", record.qid),
        ("task", task_name(record.question_type)),
        ("question depth", config["question_depth"]),
        ("papers in each component", config["component_node_count"]),
        ("distractors", distractor_in_tables(str(config["distractor_type"]))),
        ("context length", config["context_length"]),
        *((f"tokens by {label}", count) for label, count in sorted(record.token_counts.items())),
        ("needles", len(needles)),
        ("blocks in the context", len(record.context)),
        ("distractors drawn", len(record.distractors)),
        ("packing stopped", record.stopped),
        ("attempts", building["attempts"]),
    ]
    return facts


def _proof(record: PoolRecord, store: GraphStore) -> list[str]:
    source_component = next(component for component in record.components if component.role == "source")
    if is_counting(record.question_type):
        return [
            f"The source's component has {len(source_component.papers)} papers, so {len(source_component.papers) - 1} "
            "others can be reached."
        ]
    if record.target is not None and record.target in source_component.papers:
        steps = _steps(record, source_component, store)
        return ["The true path, and the lines that state it:", *map(_shown_step, count(1), steps)]
    home = next(component for component in record.task_components if record.target in component.papers)
    return [
        f"The source stands in a component of {len(source_component.papers)} papers and the target in another one of "
        f"{len(home.papers)}; no line connects them."
    ]


def _steps(record: PoolRecord, component: ComponentRecord, store: GraphStore) -> Iterator[Step]:
    path = Component(component.backbone).true_path
    papers = {paper.corpusid: paper for paper in store.papers(path)}
    blocks = {needle.corpusid: needle.text for needle in record.needles}
    citing_of = {frozenset(edge): edge[0] for edge in component.edges}
    for one, other in pairwise(path):
        citing = citing_of[frozenset((one, other))]
        cited = other if citing == one else one
        line = reference_line(papers[cited])
        if line not in blocks[citing].split("\n"):
            raise InputError(
                f"{record.qid}: the block of {citing} has no line for {cited}",
                remedy="give --store the store that the example was made from",
            )
        yield Step(papers[one], papers[other], citing == one, blocks[citing].split("\n")[0], line)


def _shown_step(number: int, step: Step) -> str:
    verb = "cites" if step.cites else "is cited by"
    return (
        f"{number}. {step.one.title}\n   {verb}\n   {step.other.title}\n"
        f"     | {step.block}\n     | …\n     | {step.line}"
    )
