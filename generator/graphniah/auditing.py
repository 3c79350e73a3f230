"""Audits of a pool in Cypher, on either store: what the examples claim, against the citations of text and store."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gniah.cypher import named_queries
from gniah.cypher.bolt import BoltStore
from gniah.cypher.bolt_publishing import ServerGraph
from gniah.cypher.pool_graph import PoolTables, pool_graph
from gniah.cypher.queries import AUDIT
from gniah.cypher.store import GraphStore, Table
from gniah.generator.graphniah.experiments import task_name
from gniah.generator.graphniah.growth import Neighbourhoods
from gniah.generator.graphniah.publishing import batches, check_form, fitting, published
from gniah.records.command_line import Progress
from gniah.records.errors import InputError, StoreError
from gniah.records.graphniah.pool import PoolRecord, read_pool
from gniah.records.graphniah.settings import Settings

_NO_TARGET = -1


@dataclass(frozen=True, slots=True)
class Violation:
    """What one audit found in one example; `details` are the other columns of the audit's row."""

    audit: str
    qid: str
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the violation as one flat object."""
        return {"audit": self.audit, "qid": self.qid, **self.details}


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What the audits of a pool found; sound when there is no violation."""

    examples: int
    violations: tuple[Violation, ...]

    @property
    def sound(self) -> bool:
        """Whether no audit found anything."""
        return not self.violations

    def rows(self) -> list[tuple[str, int, str]]:
        """Return (audit, violations, what it finds) for every audit."""
        found = Counter(violation.audit for violation in self.violations)
        return [(name, found[name], query.summary) for name, query in named_queries(AUDIT).items()]


def audit_pool(pool: Path, store: GraphStore) -> AuditReport:
    """Run every audit over a pool file.

    Raises InputError when it holds no example, or was made from another graph than the store holds.
    """
    report = audit(read_pool(pool), store, where=str(pool))
    if not report.examples:
        raise InputError(f"{pool}: holds no example", remedy="build some with gniah-gen examples")
    return report


def audit(records: Iterable[PoolRecord], store: GraphStore, *, where: str = "the pool") -> AuditReport:
    """Run every audit over records, with memory for a hundred of them at a time; `where` names them in errors.

    A server is asked itself, and left as it was; an embedded store gives what a graph for the audits is made from. What
    is found is the same. Raises InputError when an example was made from another graph than the store holds.
    """
    violations: list[Violation] = []
    examples = 0
    find = _finder(store)
    # A graph of this size costs little to build, and a hub in it does not make the joins over its citations large.
    with Progress("examples audited") as progress:
        for batch in batches(fitting(records, store, where)):
            violations.extend(find(batch))
            examples += len(batch)
            progress.advance(len(batch))
    return AuditReport(examples, tuple(violations))


def audit_records(records: Iterable[PoolRecord], neighbourhoods: Neighbourhoods) -> Iterator[Violation]:
    """Yield each violation in some records. Raises StoreError when the engine's joins are seen to lose rows."""
    with pool_graph(tables_of(records, neighbourhoods)) as graph:
        for name, query in graph.audits().items():
            yield from _violations(name, graph.run(query))


def audit_on_server(records: Sequence[PoolRecord], server: ServerGraph, graph: str) -> Iterator[Violation]:
    """Yield each violation in some records, found by a server that holds the graph of this digest.

    Raises InputError when it holds another one, StoreError when it may not be written to.
    """
    seen: set[str] = set()
    for record in records:
        check_form(record, seen)
    for name, found in server.audit([published(record) for record in records], graph):
        yield from _violations(name, found)


def _finder(store: GraphStore) -> Callable[[Sequence[PoolRecord]], Iterator[Violation]]:
    if isinstance(store, BoltStore):
        server, graph = ServerGraph(store.connection), store.manifest.digest
        return lambda batch: audit_on_server(batch, server, graph)
    neighbourhoods = Neighbourhoods(store)
    return lambda batch: audit_records(batch, neighbourhoods)


def _violations(audit: str, found: Table) -> Iterator[Violation]:
    for row in found.dicts():
        details = {key: _plain(value) for key, value in row.items()}
        yield Violation(audit, str(details.pop("qid")), details)


def tables_of(records: Iterable[PoolRecord], neighbourhoods: Neighbourhoods) -> PoolTables:
    """Return the graph of some records: what they claim, and for each of their papers what the store says."""
    tables = PoolTables()
    papers: set[int] = set()
    seen: set[str] = set()
    for record in records:
        check_form(record, seen)
        settings = Settings.from_config(record.config, record.qid)
        cutoff = datetime.date.fromisoformat(settings.cutoff_date)
        target = _NO_TARGET if record.target is None else record.target
        tables.add(
            "Example",
            record.qid,
            task_name(record.question_type),
            record.answer,
            settings.question_depth,
            settings.component_node_count,
            settings.components,
            cutoff,
            record.source,
            target,
        )
        for label, paper in sorted(record.option_papers.items()):
            tables.add("HAS_OPTION", record.qid, paper, label)
            papers.add(paper)
        _add_components(tables, record, settings, papers)
    _add_store_side(tables, papers, neighbourhoods)
    return tables


def _add_components(tables: PoolTables, record: PoolRecord, settings: Settings, papers: set[int]) -> None:
    """Add the components of a record, and the citations that its text shows."""
    places: list[dict[int, str]] = []
    for number, component in enumerate(record.components):
        key = f"{record.qid}/{number}"
        tables.add("Component", key, record.qid, number, component.role)
        tables.add("HAS_COMPONENT", record.qid, key)
        here: dict[int, str] = {}
        for step, paper in enumerate(component.papers):
            appearance = f"{key}/{step}"
            backbone = component.role != "distractor" and step < settings.backbone_length
            row = (appearance, record.qid, number, component.role, step, paper, backbone)
            _add_appearance(tables, row, papers)
            tables.add("CONTAINS", key, appearance)
            here.setdefault(paper, appearance)
        places.append(here)
    outside: dict[int, str] = {}
    for number, component in enumerate(record.components):
        # An end that stands in no place of its own component is looked for in the others, then put outside.
        order = [places[number], *places, outside]
        for edge in component.edges:
            ends = []
            for paper in edge:
                found = next((place[paper] for place in order if paper in place), None)
                if found is None:
                    found = outside[paper] = f"{record.qid}/outside/{paper}"
                    _add_appearance(tables, (found, record.qid, -1, "outside", -1, paper, False), papers)
                ends.append(found)
            tables.add("IN_TEXT", *ends)


def _add_appearance(tables: PoolTables, row: tuple[str, str, int, str, int, int, bool], papers: set[int]) -> None:
    tables.add("Appearance", *row)
    tables.add("OF", row[0], row[5])
    papers.add(row[5])


def _add_store_side(tables: PoolTables, papers: set[int], neighbourhoods: Neighbourhoods) -> None:
    for identifier in sorted(papers):
        try:
            paper = neighbourhoods.paper(identifier)
        except StoreError:
            # A paper that the store does not know has no date and no citations there, which two audits report.
            tables.add("Paper", identifier, "", f"unknown {identifier}", None)
            continue
        tables.add("Paper", identifier, paper.title, paper.title_key, paper.publicationdate)
        for cited in neighbourhoods.of(identifier)[0]:
            if cited in papers:
                tables.add("CITES", identifier, cited)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, datetime.date) else value
