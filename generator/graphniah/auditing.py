"""Audits of a pool in Cypher: what the examples claim, against the text's citations and the store's."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from gniah.cypher import named_queries
from gniah.cypher.pool_graph import PoolTables, pool_graph
from gniah.cypher.queries import AUDIT
from gniah.cypher.store import GraphStore
from gniah.generator.graphniah.experiments import task_name
from gniah.generator.graphniah.growth import Neighbourhoods
from gniah.records.command_line import Progress
from gniah.records.errors import InputError, StoreError
from gniah.records.graphniah.pool import PoolRecord, read_pool
from gniah.records.graphniah.settings import Settings

# Examples a graph: large enough that building it costs little, small enough that a hub's citations of all examples
# stay few.
BATCH = 100
_NO_TARGET = -1


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What the audits of a pool found: one mapping a violation, with the audit's name and the qid first."""

    examples: int
    violations: tuple[Mapping[str, Any], ...]

    def rows(self) -> list[tuple[str, int, str]]:
        """Return (audit, violations, what it finds) for every audit."""
        found = Counter(str(row["audit"]) for row in self.violations)
        return [(name, found[name], query.summary) for name, query in named_queries(AUDIT).items()]


def audit_pool(pool: Path, store: GraphStore) -> AuditReport:
    """Run every audit over a pool. Raises InputError when the pool was made from another graph than the store holds."""
    neighbourhoods = Neighbourhoods(store)
    violations: list[Mapping[str, Any]] = []
    examples = 0
    records = _fitting(read_pool(pool), store, pool)
    with Progress("examples audited") as progress:
        while batch := list(islice(records, BATCH)):
            violations.extend(audit_records(batch, neighbourhoods))
            examples += len(batch)
            progress.advance(len(batch))
    if not examples:
        raise InputError(f"{pool}: holds no example", remedy="build some with gniah-gen examples")
    return AuditReport(examples, tuple(violations))


def audit_records(records: Iterable[PoolRecord], neighbourhoods: Neighbourhoods) -> Iterator[dict[str, Any]]:
    """Yield a mapping for each violation in some records."""
    with pool_graph(tables_of(records, neighbourhoods)) as graph:
        for name, query in graph.audits().items():
            for row in graph.run(query).dicts():
                yield {"audit": name, **{key: _plain(value) for key, value in row.items()}}


def tables_of(records: Iterable[PoolRecord], neighbourhoods: Neighbourhoods) -> PoolTables:
    """Return the graph of some records: what they claim, and for each of their papers what the store says."""
    tables = PoolTables()
    papers: set[int] = set()
    seen: set[str] = set()
    for record in records:
        _check_form(record, seen)
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
        for number, component in enumerate(record.components):
            key = f"{record.qid}/{number}"
            tables.add("Component", key, record.qid, number, component.role)
            tables.add("HAS_COMPONENT", record.qid, key)
            for step, paper in enumerate(component.papers):
                tables.add("CONTAINS", key, paper, step)
            for one, other in component.edges:
                tables.add("IN_TEXT", one, other, record.qid)
                papers.update((one, other))
            papers.update(component.papers)
    _add_store_side(tables, papers, neighbourhoods)
    return tables


def _check_form(record: PoolRecord, seen: set[str]) -> None:
    """Raise InputError for what no query could judge: a qid that comes twice, a backbone beside its component."""
    if record.qid in seen:
        raise InputError(f"{record.qid}: stands in the pool more than once", remedy="build the pool again")
    seen.add(record.qid)
    for component in record.task_components:
        if component.papers[: len(component.backbone)] != component.backbone:
            raise InputError(
                f"{record.qid}: a component does not begin with its backbone", remedy="build the pool again"
            )


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


def _fitting(records: Iterator[PoolRecord], store: GraphStore, pool: Path) -> Iterator[PoolRecord]:
    digest = store.manifest.digest
    for record in records:
        if record.inputs.get("graph") != digest:
            raise InputError(
                f"{pool}: example {record.qid} was made from another graph than {store.address} holds",
                remedy="give --store the store it was made from",
            )
        yield record


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, datetime.date) else value
