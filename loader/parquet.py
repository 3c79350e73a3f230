"""The two Parquet files of a graph: sorted, free of repeats, and with the same bytes for the same rows.

Rows come as staging files in any order. DuckDB sorts them on one thread and spills to disk, so memory stays
flat.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import duckdb
import orjson

from gniah.records.errors import EnvironmentFault, InputError
from gniah.records.files import environment_fault, machine_trouble

PAPERS_FILE = "papers.parquet"
CITATIONS_FILE = "citations.parquet"
MEMORY_LIMIT = "512MB"

PAPER_COLUMNS: Mapping[str, str] = {
    "corpusid": "BIGINT",
    "title": "VARCHAR",
    "title_raw": "VARCHAR",
    "title_key": "VARCHAR",
    "authors": "VARCHAR[]",
    "authors_raw": "VARCHAR",
    "publicationdate": "DATE",
    "venue": "VARCHAR",
    "venue_raw": "VARCHAR",
    "journal_name": "VARCHAR",
    "publicationvenueid": "VARCHAR",
    "arxiv_id": "VARCHAR",
}
CITATION_COLUMNS: Mapping[str, str] = {
    "citing": "BIGINT",
    "cited": "BIGINT",
    "isinfluential": "BOOLEAN",
    "citationids": "BIGINT[]",
}
_STAGED_CITATION_COLUMNS = {"citing": "BIGINT", "cited": "BIGINT", "isinfluential": "BIGINT", "citationid": "BIGINT"}

_BATCH = 20_000
_DEFAULT_LINE = 1 << 24
# Whatever else a row holds is a function of its id and these.
_SOURCE_COLUMNS = (
    "title_raw, authors_raw, publicationdate, venue_raw NULLS FIRST, journal_name NULLS FIRST, "
    "publicationvenueid NULLS FIRST, arxiv_id NULLS FIRST"
)


class Engine:
    """A private DuckDB that works in one folder. Use it as a context manager."""

    def __init__(self, work: Path, *, memory_limit: str = MEMORY_LIMIT) -> None:
        self._work = work
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "threads": 1,
                "memory_limit": memory_limit,
                "temp_directory": str(work / "spill"),
                # What is needed is built in; an extension must never be fetched.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def write_papers(self, staged: Sequence[Path], longest_line: int, target: Path) -> None:
        """Write `papers.parquet` from staged rows (files with lines of PaperRow).

        Of rows with one corpusid the smallest is kept, by the values it has in the shards: which one that is
        depends on nothing but the rows.
        """
        with engine_trouble(target):
            self._run(
                "CREATE TABLE staged AS SELECT * FROM read_json($staged, format = 'newline_delimited', "  # noqa: S608
                f"columns = {_columns(PAPER_COLUMNS)}, maximum_object_size = $longest, hive_partitioning = false)",
                {"staged": [*map(_pattern, staged)], "longest": max(_DEFAULT_LINE, 2 * longest_line)},
            )
            self._run(
                "CREATE TABLE repeats AS SELECT row FROM (SELECT rowid AS row, row_number() OVER "  # noqa: S608
                f"(PARTITION BY corpusid ORDER BY {_SOURCE_COLUMNS}) AS place FROM staged WHERE corpusid IN "
                "(SELECT corpusid FROM staged GROUP BY corpusid HAVING count(*) > 1)) WHERE place > 1"
            )
            self._run(
                "COPY (SELECT * FROM staged WHERE rowid NOT IN (SELECT row FROM repeats) ORDER BY corpusid) "
                "TO $target (FORMAT parquet, COMPRESSION zstd)",
                {"target": str(target)},
            )
            self._run("DROP TABLE staged")
            self._run("DROP TABLE repeats")

    def write_citations(self, staged: Sequence[Path], target: Path) -> int:
        """Write `citations.parquet` from staged rows `citing,cited,0|1,citationid`; return the number of edges.

        Rows of one edge become one: `isinfluential` by OR, the distinct citation ids sorted.
        """
        merged = self._work / "edges.csv"
        edges = 0
        with engine_trouble(target):
            # list() cannot spill, so the groups are made here, from rows that are sorted by the engine.
            rows = self._rows(
                "SELECT * FROM read_csv($staged, auto_detect = false, header = false, delim = ',', "  # noqa: S608
                f"hive_partitioning = false, columns = {_columns(_STAGED_CITATION_COLUMNS)}) "
                "ORDER BY citing, cited, citationid NULLS FIRST",
                {"staged": [*map(_pattern, staged)]},
            )
            with machine_trouble(merged), merged.open("w", encoding="utf-8", newline="\n") as stream:
                for citing, cited, influential, ids in _merged(rows):
                    stream.write(f"{citing};{cited};{influential};[{','.join(map(str, ids))}]\n")
                    edges += 1
            self._run(
                "COPY (SELECT * FROM read_csv($merged, auto_detect = false, header = false, delim = ';', "  # noqa: S608
                f"hive_partitioning = false, parallel = false, columns = {_columns(CITATION_COLUMNS)})) "
                "TO $target (FORMAT parquet, COMPRESSION zstd)",
                {"merged": _pattern(merged), "target": str(target)},
            )
        merged.unlink()
        return edges

    def papers(self, path: Path) -> int:
        """Return how many papers there are."""
        return self._count(path, "true")

    def value_digest(self, path: Path) -> str:
        """Return the SHA-256 over the rows of a Parquet file in their order, each one as a JSON array on a line.

        It depends on the values alone: another library, compression or row group size gives the same digest.
        """
        result = hashlib.sha256()
        with engine_trouble(path):
            for row in self._rows(
                "SELECT * FROM read_parquet($path, hive_partitioning = false)", {"path": _pattern(path)}
            ):
                result.update(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        return result.hexdigest()

    def usable_papers(self, path: Path) -> int:
        """Return how many papers have usable metadata (GraphNIAH A.2.1): a title key, and a named author."""
        return self._count(path, "title_key <> '' AND len(authors) > 0")

    def papers_after(self, path: Path, day: datetime.date) -> dict[str, int]:
        """Return how many papers each day later than a day has."""
        with engine_trouble(path):
            rows = self._run(
                "SELECT publicationdate, count(*) FROM read_parquet($path, hive_partitioning = false) "
                "WHERE publicationdate > $day GROUP BY 1 ORDER BY 1",
                {"path": _pattern(path), "day": day},
            )
        return {date.isoformat(): int(count) for date, count in rows}

    def _count(self, path: Path, condition: str) -> int:
        with engine_trouble(path):
            statement = f"SELECT count(*) FROM read_parquet($path, hive_partitioning = false) WHERE {condition}"  # noqa: S608
            return int(self._run(statement, {"path": _pattern(path)})[0][0])

    def _run(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(statement, parameters or {}).fetchall())

    def _rows(self, statement: str, parameters: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
        cursor = self._connection.execute(statement, parameters)
        while batch := cursor.fetchmany(_BATCH):
            yield from batch


@contextlib.contextmanager
def engine_trouble(path: Path) -> Iterator[None]:
    """Turn what DuckDB refuses into errors a user can act on."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise EnvironmentFault(
            f"{path}: not enough memory or disk: {_first_line(error)}", remedy="free some space on this disk"
        ) from None
    except duckdb.IOException as error:
        if "No space left" in str(error):
            raise environment_fault(OSError(errno.ENOSPC, ""), path) from None
        raise EnvironmentFault(f"{path}: {_first_line(error)}", remedy="check the disk and the path") from None
    except duckdb.InvalidInputException as error:
        raise InputError(f"{path}: {_first_line(error)}", remedy="make the file again") from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if "interrupted" in str(error):  # what DuckDB makes of Ctrl-C
            raise KeyboardInterrupt from None
        raise


def _merged(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[int, int, int, list[int]]]:
    """Yield one (citing, cited, flag, citation ids) for each run of rows of one edge; rows are sorted."""
    edge: tuple[int, int] | None = None
    flag = 0
    ids: list[int] = []
    for citing, cited, influential, citation in rows:
        if edge != (citing, cited):
            if edge is not None:
                yield *edge, flag, ids
            edge, flag, ids = (citing, cited), influential, []
        elif influential:
            flag = 1
        if citation is not None and (not ids or ids[-1] != citation):
            ids.append(citation)
    if edge is not None:
        yield *edge, flag, ids


def _pattern(path: Path) -> str:
    """Return a path as DuckDB's readers take it: they expand wildcards, so those in a name are quoted."""
    return re.sub(r"[*?\[]", lambda found: f"[{found[0]}]", str(path))


def _columns(columns: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items()) + "}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
