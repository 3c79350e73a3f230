"""Rows into a database of the embedded engine: JSON lines, made Parquet by DuckDB, and copied. No quoting of ours."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gniah.cypher.embedded import Session, literal

# The engine's types, and DuckDB's.
_TYPES = {"STRING": "VARCHAR", "STRING[]": "VARCHAR[]", "INT64": "BIGINT", "DATE": "DATE", "BOOL": "BOOLEAN"}


def node_table(name: str, columns: Mapping[str, str]) -> str:
    """Return the statement that creates a table of nodes, its key the first column."""
    listed = ", ".join(f"`{column}` {kind}" for column, kind in columns.items())
    return f"CREATE NODE TABLE {name}({listed}, PRIMARY KEY(`{next(iter(columns))}`))"


def relation_table(name: str, ends: Iterable[tuple[str, str]], columns: Mapping[str, str]) -> str:
    """Return the statement that creates a table of relationships between any of some pairs of labels."""
    listed = [f"FROM {start} TO {end}" for start, end in ends]
    listed += [f"`{column}` {kind}" for column, kind in columns.items()]
    return f"CREATE REL TABLE {name}({', '.join(listed)})"


def write_lines(stream: IO[str], columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write rows as one object a line, and return how many there were."""
    count = 0
    for row in rows:
        plain = [str(value) if isinstance(value, datetime.date) else value for value in row]
        stream.write(json.dumps(dict(zip(columns, plain, strict=True)), ensure_ascii=False) + "\n")
        count += 1
    return count


def copy_lines(
    session: Session, table: str, columns: Mapping[str, str], lines: Path, ends: tuple[str, str] | None = None
) -> None:
    """Copy a file that `write_lines` wrote into a table.

    `columns` gives the engine's types, those of the two ends first for relationships, whose labels are `ends`.
    """
    import duckdb

    parquet = lines.with_suffix(".parquet")
    kinds = {column: _TYPES[kind] for column, kind in columns.items()}
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE rows AS SELECT * FROM read_json(?, columns = ?, format = 'newline_delimited', "
            "maximum_object_size = 67108864)",
            [str(lines), kinds],
        ).fetchall()
        connection.table("rows").write_parquet(str(parquet))
    between = "" if ends is None else f" (from='{ends[0]}', to='{ends[1]}')"
    session.run(f"COPY {table} FROM {literal(parquet, read=True)}{between}")
    parquet.unlink()
