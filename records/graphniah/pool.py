"""One line of `pool.jsonl`: everything that is known of a built example, with distractor texts by reference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from gniah.records.errors import InputError
from gniah.records.files import machine_trouble, read_json_lines
from gniah.records.graphniah import FAMILY
from gniah.records.manifests import check_schema

POOL_SCHEMA = "gniah/pool/1"

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ComponentRecord:
    """One component. `role` is "source" (it holds s), "other", or "distractor".

    `papers` are the backbone, then the grown papers in the order they were added; `edges` are (citing, cited), the
    backbone's first. For a distractor that was cut, both hold what is visible in the prompt.
    """

    role: str
    backbone: tuple[int, ...]
    papers: tuple[int, ...]
    edges: tuple[Edge, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the component as an object."""
        return {
            "role": self.role,
            "backbone": list(self.backbone),
            "papers": list(self.papers),
            "edges": [list(edge) for edge in self.edges],
        }


@dataclass(frozen=True, slots=True)
class Needle:
    """The rendered block of one paper of a task component."""

    component: int
    corpusid: int
    text: str


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A built example with all of its metadata.

    `source` and `target` are corpusids (`target` is None for counting; for multiple-choice it is the reachable
    one). `option_papers` maps an option's label to its paper. `context` lists the blocks in the order of the prompt as
    (distractor number or -1 for a needle, block number). `distractors` names each source with its blocks and how many
    were kept. `building` says how it came about: attempts, restarts by reason, refused candidates by reason.
    """

    qid: str
    config: Mapping[str, Any]
    inputs: Mapping[str, Any]
    question_type: str
    question: str
    answer: str
    source: int
    target: int | None
    option_papers: Mapping[str, int]
    components: tuple[ComponentRecord, ...]
    needles: tuple[Needle, ...]
    distractors: tuple[Mapping[str, Any], ...]
    context: tuple[tuple[int, int], ...]
    token_counts: Mapping[str, int]
    prompt_sha256: str
    stopped: str
    building: Mapping[str, Any]

    @property
    def task_components(self) -> tuple[ComponentRecord, ...]:
        """Return the components that the task needs, the source's first."""
        return tuple(component for component in self.components if component.role != "distractor")

    @property
    def unused(self) -> dict[str, int]:
        """Return by label how many tokens of the context length are left under each tokenizer."""
        return {label: self.config["context_length"] - count for label, count in self.token_counts.items()}

    @property
    def cut(self) -> tuple[int, int, int] | None:
        """Return the number of the distractor that stands cut, its blocks that are shown, and all of them; else None.

        It is the last one. One of which no block fitted is cut at 0.
        """
        for number, distractor in enumerate(self.distractors):
            if distractor["kept"] < distractor["blocks"]:
                return number, distractor["kept"], distractor["blocks"]
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the record as one object of the pool."""
        return {
            "schema": POOL_SCHEMA,
            "qid": self.qid,
            "config": dict(self.config),
            "inputs": dict(self.inputs),
            "question_type": self.question_type,
            "question": self.question,
            "answer": self.answer,
            "source": self.source,
            "target": self.target,
            "option_papers": dict(self.option_papers),
            "components": [component.to_json() for component in self.components],
            "needles": [
                {"component": needle.component, "corpusid": needle.corpusid, "text": needle.text}
                for needle in self.needles
            ],
            "distractors": [dict(distractor) for distractor in self.distractors],
            "context": [list(place) for place in self.context],
            "token_counts": dict(self.token_counts),
            "prompt_sha256": self.prompt_sha256,
            "stopped": self.stopped,
            "building": dict(self.building),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], where: str) -> PoolRecord:
        """Read a record; `where` names file and line in errors. Raises InputError."""
        check_schema(value.get("schema"), POOL_SCHEMA, where)
        try:
            result = cls(
                qid=value["qid"],
                config=value["config"],
                inputs=value["inputs"],
                question_type=value["question_type"],
                question=value["question"],
                answer=value["answer"],
                source=value["source"],
                target=value["target"],
                option_papers=value["option_papers"],
                components=tuple(_component(item) for item in value["components"]),
                needles=tuple(Needle(n["component"], n["corpusid"], n["text"]) for n in value["needles"]),
                distractors=tuple(value["distractors"]),
                context=tuple((first, second) for first, second in value["context"]),
                token_counts=value["token_counts"],
                prompt_sha256=value["prompt_sha256"],
                stopped=value["stopped"],
                building=value["building"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where}: not a whole pool record: {error!r}", remedy="build the pool again") from None
        for name, kind in _KINDS.items():
            found = getattr(result, name)
            if not isinstance(found, kind) or isinstance(found, bool):
                raise InputError(f"{where}: {name} has a wrong type: {found!r}", remedy="build the pool again")
        if FAMILY.task_of(result.question_type) is None:
            raise InputError(f"{where}: {result.question_type!r} is no question type of {FAMILY.name}")
        return result


_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "qid": str,
    "config": Mapping,
    "inputs": Mapping,
    "question_type": str,
    "question": str,
    "answer": str,
    "source": int,
    "target": (int, type(None)),
    "option_papers": Mapping,
    "token_counts": Mapping,
}


def _component(value: Mapping[str, Any]) -> ComponentRecord:
    edges: Sequence[Sequence[int]] = value["edges"]
    component = ComponentRecord(
        value["role"],
        tuple(value["backbone"]),
        tuple(value["papers"]),
        tuple((citing, cited) for citing, cited in edges),
    )
    for identifier in chain(component.backbone, component.papers, *component.edges):
        if type(identifier) is not int:
            raise TypeError(f"a component has the paper {identifier!r}")
    return component


def pool_path(path: Path) -> Path:
    """Return the pool file that a path names: the file itself, or `pool.jsonl` in a folder."""
    found = path / "pool.jsonl" if path.is_dir() else path
    if not found.is_file():
        raise InputError(
            f"{found}: no such file", remedy="give a pool.jsonl, or the folder that gniah-gen examples wrote"
        )
    return found


def read_pool(path: Path) -> Iterator[PoolRecord]:
    """Yield the records of a pool file. Raises InputError with file and line."""
    for number, value in read_json_lines(path):
        yield PoolRecord.from_json(value, f"{path}:{number}")


def find_record(path: Path, qid: str) -> PoolRecord:
    """Return the record of one example, through the index beside the pool. `qid` may be the beginning of one.

    Raises InputError when there is none, or more than one.
    """
    index = path.with_name(path.name.removesuffix(".jsonl") + ".index.jsonl")
    matches = [value for _, value in read_json_lines(index) if str(value.get("qid", "")).startswith(qid)]
    if len(matches) != 1:
        raise InputError(
            f"{path}: {len(matches) or 'no'} examples have a qid that begins with {qid!r}",
            remedy="give more of the qid" if matches else "check the qid, or make the pool again",
        )
    try:
        offset, length = int(matches[0]["offset"]), int(matches[0]["length"])
        with machine_trouble(path), path.open("rb") as stream:
            stream.seek(offset)
            value = json.loads(stream.read(length))
        fits = value["qid"] == matches[0]["qid"]
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(f"{index}: does not fit {path.name}", remedy="build the pool again")
    return PoolRecord.from_json(value, f"{path} at byte {offset}")
