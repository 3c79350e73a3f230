"""A pool as a small graph of its own, for audits in the embedded engine: what it claims, and what the store says.

    (:Example)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(:Appearance)-[:OF]->(:Paper)
    (:Example)-[:HAS_OPTION {label}]->(:Paper)
    (:Appearance)-[:IN_TEXT]->(:Appearance)   a citation that an example shows
    (:Paper)-[:CITES]->(:Paper)               a citation that the store holds

An appearance is one paper in one component of one example, with its step: the backbone first, then the order of
growth. So examples share papers and nothing else, no pattern closes a circle, and what a query touches grows with
the number of examples only. (With papers themselves in the components, the engine was seen to run out of memory, to
lose rows and to crash on joins over papers that stand in many examples.) A paper of a shown citation that belongs to
no component appears with component -1.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gniah.cypher.copying import copy_lines, node_table, relation_table, write_lines
from gniah.cypher.embedded import DIALECT, Session
from gniah.cypher.queries import AUDIT, NamedQuery, named_queries
from gniah.cypher.store import Table
from gniah.records.errors import StoreError

_MEMORY = 512 << 20

# Columns and types of each table, the key first.
_NODES: Mapping[str, Mapping[str, str]] = {
    "Example": {
        "qid": "STRING",
        "task": "STRING",
        "answer": "STRING",
        "k": "INT64",
        "size": "INT64",
        "components": "INT64",
        "cutoff_date": "DATE",
        "source": "INT64",
        "target": "INT64",
    },
    "Component": {"key": "STRING", "qid": "STRING", "number": "INT64", "role": "STRING"},
    "Appearance": {
        "key": "STRING",
        "qid": "STRING",
        "component": "INT64",
        "role": "STRING",
        "step": "INT64",
        "corpusid": "INT64",
        "backbone": "BOOL",
    },
    "Paper": {"corpusid": "INT64", "title": "STRING", "title_key": "STRING", "publicationdate": "DATE"},
}
_RELATIONS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "HAS_COMPONENT": ("Example", "Component", {}),
    "HAS_OPTION": ("Example", "Paper", {"label": "STRING"}),
    "CONTAINS": ("Component", "Appearance", {}),
    "OF": ("Appearance", "Paper", {}),
    "IN_TEXT": ("Appearance", "Appearance", {}),
    "CITES": ("Paper", "Paper", {}),
}


@dataclass(slots=True)
class PoolTables:
    """The rows of a pool's graph, by table. A row has its columns in the order of the schema above."""

    rows: dict[str, list[Sequence[Any]]] = field(default_factory=lambda: {name: [] for name in (*_NODES, *_RELATIONS)})

    def add(self, table: str, *row: Any) -> None:
        """Add one row."""
        self.rows[table].append(row)


class PoolGraph:
    """An open graph of a pool."""

    def __init__(self, session: Session, tables: PoolTables) -> None:
        self._session = session
        self._tables = tables

    def audits(self) -> Mapping[str, NamedQuery]:
        """Return the audits by name; each answers with one row for each violation, its qid first."""
        return named_queries(AUDIT)

    def run(self, audit: NamedQuery) -> Table:
        """Run one audit."""
        return self._session.run(audit.text(DIALECT))

    def check_joins(self) -> None:
        """Raise StoreError unless the joins that audits use give every row.

        An audit that finds nothing is worth what the engine's joins are worth, and this engine has been seen to lose
        rows of large joins without a word. How many there must be is known from the rows that were given.
        """
        contained = {row[1] for row in self._tables.rows["CONTAINS"]}
        shown = self._tables.rows["IN_TEXT"]
        expected = {
            _SHOWN: len(shown),
            _BETWEEN: sum(one in contained and other in contained for one, other in shown),
            _CONTAINED: len(self._tables.rows["CONTAINS"]),
        }
        for text, count in expected.items():
            found = self._session.run(text).rows[0][0]
            if found != count:
                raise StoreError(
                    f"the engine finds {found} of {count} rows of a join over the pool",
                    remedy="this is a defect of the engine or of gniah; please report it with the pool",
                )


_SHOWN = "MATCH (:Paper)<-[:OF]-(:Appearance)-[:IN_TEXT]->(:Appearance)-[:OF]->(:Paper) RETURN count(*)"
_BETWEEN = (
    "MATCH (:Component)-[:CONTAINS]->(:Appearance)-[:IN_TEXT]->(:Appearance)<-[:CONTAINS]-(:Component) RETURN count(*)"
)
_CONTAINED = (
    "MATCH (:Example)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS]->(:Appearance)-[:OF]->(:Paper) RETURN count(*)"
)


@contextmanager
def pool_graph(tables: PoolTables) -> Iterator[PoolGraph]:
    """Build the graph of some tables in a temporary place, and give it until the block ends."""
    with tempfile.TemporaryDirectory(prefix="gniah-pool-") as place:
        folder = Path(place)
        session = Session(folder / "pool.lbug", read_only=False, memory=_MEMORY)
        try:
            for statement in _statements():
                session.run(statement)
            _copy_in(session, tables, folder)
            _compare_counts(session, tables)
            graph = PoolGraph(session, tables)
            graph.check_joins()
            yield graph
        finally:
            session.close()


def _statements() -> Iterator[str]:
    for name, columns in _NODES.items():
        yield node_table(name, columns)
    for name, (start, end, properties) in _RELATIONS.items():
        yield relation_table(name, [(start, end)], properties)


def _copy_in(session: Session, tables: PoolTables, folder: Path) -> None:
    for name, columns in _NODES.items():
        _copy_table(session, name, columns, tables, folder)
    for name, (start, end, properties) in _RELATIONS.items():
        ends = {"start_key": _key_type(start), "end_key": _key_type(end)}
        _copy_table(session, name, ends | dict(properties), tables, folder)


def _compare_counts(session: Session, tables: PoolTables) -> None:
    """Raise StoreError unless every table holds as many rows as were given."""
    for name, rows in tables.rows.items():
        pattern = f"(:{name})" if name in _NODES else f"()-[:{name}]->()"
        found = session.run(f"MATCH {pattern} RETURN count(*)").rows[0][0]
        if found != len(rows):
            raise StoreError(f"the pool's graph holds {found} of {len(rows)} rows of {name}")


def _key_type(node: str) -> str:
    columns = _NODES[node]
    return columns[next(iter(columns))]


def _copy_table(session: Session, name: str, columns: Mapping[str, str], tables: PoolTables, folder: Path) -> None:
    if not tables.rows[name]:
        return
    lines = folder / f"{name}.jsonl"
    with lines.open("w", encoding="utf-8", newline="\n") as stream:
        write_lines(stream, columns, tables.rows[name])
    copy_lines(session, name, columns, lines)
