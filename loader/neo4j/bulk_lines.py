"""A graph's rows as lines of CSV, as RFC 4180 has it.

Texts stand in quotes, a quote in them is doubled, nothing else is escaped, and no field holds a line break. An empty
text is `""`; what is unknown is nothing at all. Names of authors are joined by U+001F, which no shown text holds.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gniah.records.errors import InputError
from gniah.records.files import machine_trouble

# A line, and how many properties it gives.
Line = tuple[str, int]

_BATCH = 20_000
_AGAIN = "run gniah-load filter again"


def _ignore(_: int) -> None:
    """Take what nobody wants to hear."""


def _quoted(text: str) -> str:
    return f"""'"' || replace({text}, '"', '""') || '"'"""


# A row's line, how many properties it gives, and whether it is as gniah-load filter writes rows.
_PAPERS = rf"""
    SELECT concat_ws(',', corpusid, corpusid, {_quoted("title")}, {_quoted("title_key")},
            CASE WHEN len(authors) > 0 THEN {_quoted("array_to_string(authors, chr(31))")} ELSE '' END,
            publicationdate, coalesce({_quoted("venue")}, ''), coalesce({_quoted("arxiv_id")}, '')),
        4 + CAST(len(authors) > 0 AS INT) + CAST(venue IS NOT NULL AS INT) + CAST(arxiv_id IS NOT NULL AS INT),
        corpusid IS NOT NULL AND title IS NOT NULL AND title_key IS NOT NULL AND publicationdate IS NOT NULL
            AND authors IS NOT NULL AND list_count(authors) = len(authors) AND NOT list_contains(authors, '')
            AND NOT regexp_matches(concat(title, title_key, array_to_string(authors, ''), venue, arxiv_id),
                '[\x00-\x1f]')
    FROM read_parquet(?, hive_partitioning = false)
"""  # noqa: S608  (names of columns only)
_CITATIONS = """
    SELECT concat_ws(',', citing, cited, isinfluential), 1,
        citing IS NOT NULL AND cited IS NOT NULL AND isinfluential IS NOT NULL
    FROM read_parquet(?, hive_partitioning = false)
"""


def csv_text(text: str) -> str:
    """Return a text as a field."""
    return '"' + text.replace('"', '""') + '"'


def paper_lines(path: Path) -> Iterator[list[Line]]:
    """Yield batches of the papers in their order. Raises InputError for a file that is damaged or not of papers."""
    return _rows(path, _PAPERS)


def citation_lines(path: Path) -> Iterator[list[Line]]:
    """Yield batches of the citations in their order, as `paper_lines` does."""
    return _rows(path, _CITATIONS)


@dataclass(frozen=True, slots=True)
class Written:
    """What was written into a file: lines, the properties they give, the most characters in one, and the SHA-256."""

    name: str
    rows: int
    properties: int
    longest: int
    sha256: str


def write_lines(path: Path, batches: Iterable[Sequence[Line]], advance: Callable[[int], None] = _ignore) -> Written:
    """Write batches of lines; `advance` is told of each. Raises EnvironmentFault for a full disk."""
    rows = properties = longest = 0
    hashed = hashlib.sha256()
    with machine_trouble(path), path.open("wb") as stream:
        for batch in batches:
            text = "".join([f"{line}\n" for line, _ in batch]).encode("utf-8")
            stream.write(text)
            hashed.update(text)
            rows += len(batch)
            properties += sum(count for _, count in batch)
            longest = max([longest, *(len(line) for line, _ in batch)])
            advance(len(batch))
    return Written(path.name, rows, properties, longest, hashed.hexdigest())


def _rows(path: Path, select: str) -> Iterator[list[Line]]:
    """Yield batches of a Parquet file's rows as lines."""
    import duckdb

    from gniah.loader.parquet import MEMORY_LIMIT, engine_trouble

    if not path.is_file():
        raise InputError(f"{path}: no such file", remedy=_AGAIN)
    before = 0
    settings: dict[str, Any] = {"threads": 1, "memory_limit": MEMORY_LIMIT, "autoinstall_known_extensions": False}
    with engine_trouble(path), duckdb.connect(":memory:", config=settings) as database:
        try:
            answer = database.execute(select, [glob.escape(str(path))])
            while batch := answer.fetchmany(_BATCH):
                for number, (_, _, usual) in enumerate(batch, start=before + 1):
                    if not usual:
                        raise InputError(
                            f"{path}: row {number:,} holds what gniah-load filter never writes: nothing where a value "
                            "belongs, an empty name, or a control character",
                            remedy=_AGAIN,
                        )
                yield [(line, properties) for line, properties, _ in batch]
                before += len(batch)
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise
        except duckdb.Error as error:  # of any kind, when bytes of the file are not what they were
            raise InputError(f"{path}: {str(error).splitlines()[0]}", remedy=_AGAIN) from None
