"""A pool as a small graph of its own, for audits: the examples, their components, and what the store says of them.

(:Example)-[:HAS_COMPONENT]->(:Component)-[:CONTAINS {step}]->(:Paper)
(:Example)-[:HAS_OPTION {label}]->(:Paper)
(:Paper)-[:IN_TEXT {qid}]->(:Paper)       a citation that an example shows
(:Paper)-[:CITES]->(:Paper)               a citation that the store holds
"""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gniah.cypher.embedded import DIALECT, Session, literal
from gniah.cypher.queries import AUDIT, NamedQuery, named_queries
from gniah.cypher.store import Table

_MEMORY = 256 << 20

# Column names and types of each table, in the engine's words and in DuckDB's.
_NODES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Example": {
        "qid": ("STRING", "VARCHAR"),
        "task": ("STRING", "VARCHAR"),
        "answer": ("STRING", "VARCHAR"),
        "k": ("INT64", "BIGINT"),
        "size": ("INT64", "BIGINT"),
        "components": ("INT64", "BIGINT"),
        "cutoff_date": ("DATE", "DATE"),
        "source": ("INT64", "BIGINT"),
        "target": ("INT64", "BIGINT"),
    },
    "Component": {
        "key": ("STRING", "VARCHAR"),
        "qid": ("STRING", "VARCHAR"),
        "number": ("INT64", "BIGINT"),
        "role": ("STRING", "VARCHAR"),
    },
    "Paper": {
        "corpusid": ("INT64", "BIGINT"),
        "title": ("STRING", "VARCHAR"),
        "title_key": ("STRING", "VARCHAR"),
        "publicationdate": ("DATE", "DATE"),
    },
}
_RELATIONS: Mapping[str, tuple[str, str, Mapping[str, tuple[str, str]]]] = {
    "HAS_COMPONENT": ("Example", "Component", {}),
    "HAS_OPTION": ("Example", "Paper", {"label": ("STRING", "VARCHAR")}),
    "CONTAINS": ("Component", "Paper", {"step": ("INT64", "BIGINT")}),
    "IN_TEXT": ("Paper", "Paper", {"qid": ("STRING", "VARCHAR")}),
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

    def __init__(self, session: Session) -> None:
        self._session = session

    def audits(self) -> Mapping[str, NamedQuery]:
        """Return the audits by name; each answers with one row for each violation, its qid first."""
        return named_queries(AUDIT)

    def run(self, audit: NamedQuery) -> Table:
        """Run one audit."""
        return self._session.run(audit.text(DIALECT))


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
            yield PoolGraph(session)
        finally:
            session.close()


def _statements() -> Iterator[str]:
    for name, columns in _NODES.items():
        listed = ", ".join(f"{column} {types[0]}" for column, types in columns.items())
        yield f"CREATE NODE TABLE {name}({listed}, PRIMARY KEY({next(iter(columns))}))"
    for name, (start, end, properties) in _RELATIONS.items():
        listed = "".join(f", {column} {types[0]}" for column, types in properties.items())
        yield f"CREATE REL TABLE {name}(FROM {start} TO {end}{listed})"


def _copy_in(session: Session, tables: PoolTables, folder: Path) -> None:
    for name, columns in _NODES.items():
        _copy_table(session, name, {column: types[1] for column, types in columns.items()}, tables, folder)
    for name, (start, end, properties) in _RELATIONS.items():
        ends = {"start_key": _key_type(start), "end_key": _key_type(end)}
        columns_of = ends | {column: types[1] for column, types in properties.items()}
        _copy_table(session, name, columns_of, tables, folder)


def _key_type(node: str) -> str:
    columns = _NODES[node]
    return columns[next(iter(columns))][1]


def _copy_table(session: Session, name: str, columns: Mapping[str, str], tables: PoolTables, folder: Path) -> None:
    """Write rows as JSON lines, let DuckDB make Parquet of them, and COPY that: no quoting rules of ours."""
    import duckdb

    rows = tables.rows[name]
    if not rows:
        return
    lines, parquet = folder / f"{name}.jsonl", folder / f"{name}.parquet"
    with lines.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            plain = [str(value) if isinstance(value, datetime.date) else value for value in row]
            stream.write(json.dumps(dict(zip(columns, plain, strict=True)), ensure_ascii=False) + "\n")
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE rows AS SELECT * FROM read_json(?, columns = ?, format = 'newline_delimited', "
            "maximum_object_size = 67108864)",
            [str(lines), dict(columns)],
        ).fetchall()
        connection.table("rows").write_parquet(str(parquet))
    session.run(f"COPY {name} FROM {literal(parquet)}")
