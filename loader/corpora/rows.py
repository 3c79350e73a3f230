"""Texts that are rows of JSON lines or Parquet: essays, books, passages of Wikipedia."""

from __future__ import annotations

import contextlib
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from gniah.loader.corpora.sources import BROKEN, FETCH_AGAIN, Item, opened
from gniah.records.errors import InputError, UsageFault
from gniah.records.files import environment_fault
from gniah.records.texts import LARGEST, files_below

JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".json", ".json.gz")
PARQUET = (".parquet",)
_IDENTIFIERS = ("id", "_id", "docid")
_BATCH = 256


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold text and name; a name of None is looked for, and then rows are numbered."""

    text: str
    name: str | None = None


class RowSource:
    """The rows of JSON lines and Parquet files, in the order of the files given and of the rows in each.

    A row's name is what its column of names says, or, when there is none, its number over all files, from 1.
    """

    in_order = True

    def __init__(self, files: Sequence[Path], kind: str, columns: Columns) -> None:
        self._files = files
        self._kind = kind
        self._columns = columns

    def items(self) -> Iterator[Item]:
        """Yield the rows. Raises InputError, naming file and line, for one that is cut or of another form."""
        for _, name, text in self._rows():
            yield Item(name, text.encode("utf-8"))

    def places(self, name: str) -> list[str]:
        """Return file and row of every row of this name, by reading all of them again."""
        return [where for where, found, _ in self._rows() if found == name]

    def origin(self) -> tuple[str | None, str | None]:
        """Return what is known of passages of Wikipedia; other rows say nothing of where they are from."""
        return ("Wikipedia", "CC BY-SA") if self._kind == "wikipedia" else (None, None)

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        number = 0
        for path in self._files:
            read = _parquet_rows if path.name.endswith(PARQUET) else _json_rows
            for where, name, text in read(path, self._columns, LARGEST[self._kind]):
                number += 1
                yield where, str(number) if name is None else name, text


class Repeats:
    """Finds names that stand twice among millions, by 8 bytes of a hash of each."""

    def __init__(self) -> None:
        self._hashes = array("Q")

    def add(self, name: str) -> None:
        """Take the next name."""
        import hashlib

        self._hashes.append(int.from_bytes(hashlib.blake2b(name.encode("utf-8"), digest_size=8).digest(), "little"))

    def candidates(self) -> list[int]:
        """Return the numbers of names whose hash an earlier name has, in their order."""
        import numpy as np

        hashes = np.frombuffer(self._hashes, np.uint64)
        order = np.argsort(hashes, kind="stable")
        return sorted(order[1:][hashes[order[1:]] == hashes[order[:-1]]].tolist())


def row_files(folder: Path, kind: str) -> list[Path]:
    """Return the files of rows in a folder and below, in the order of their relative names.

    A `.json` file beside texts is mostly something else; one among passages is not.
    """
    endings = (*JSON_LINES, *PARQUET) if kind == "wikipedia" else (*JSON_LINES[:4], *PARQUET)
    return [path for _, path in sorted(files_below(folder)) if path.name.endswith(endings) and path.is_file()]


def _json_rows(path: Path, columns: Columns, most: int) -> Iterator[tuple[str, str | None, str]]:
    name_column = columns.name
    first = True
    for number, line in _lines(path, most):
        where = f"{path}:{number}"
        row = _parsed(line, where)
        if first and name_column is None:
            name_column = next((name for name in _IDENTIFIERS if name in row), None)
        first = False
        text = row.get(columns.text)
        if not isinstance(text, str):
            raise _not_a_text(where, columns.text, row)
        yield where, _name(row, name_column, where), text


def _lines(path: Path, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each line that is not blank. In JSON one byte of a text takes at most six."""
    longest = 6 * most + (1 << 16)
    number = 0
    try:
        with opened(path) as stream:
            while line := stream.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise InputError(
                        f"{path}:{number}: a line of more than {longest:,} bytes",
                        remedy="give one text a line",
                    )
                if not line.isspace():
                    yield number, line
    except BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise environment_fault(error, path) from error
        raise InputError(
            f"{path}:{number + 1}: the compressed file is cut or damaged ({error})", remedy=FETCH_AGAIN
        ) from None


def _parsed(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON: {error}", remedy="mend this line, or leave it out") from None
    if not isinstance(row, dict):
        raise InputError(
            f"{where}: expected a JSON object, found {type(row).__name__}", remedy="give one object a line"
        )
    return row


def _not_a_text(where: str, column: str, row: dict[str, Any]) -> InputError:
    if column in row:
        what = f"{column!r} is {type(row[column]).__name__}, not a string"
    else:
        what = f"there is no {column!r}; there is {', '.join(map(repr, sorted(row))) or 'nothing'}"
    return InputError(f"{where}: {what}", remedy="mend this line, or name the right column with --text-column")


def _name(row: dict[str, Any], column: str | None, where: str) -> str | None:
    if column is None:
        return None
    name = row.get(column)
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    if not isinstance(name, str) or not name:
        found = type(name).__name__ if name != "" else "empty"
        raise InputError(
            f"{where}: {column!r} is {found}, not a string or an integer",
            remedy="give every row a name of its own, or none of them",
        )
    return name


def _parquet_rows(path: Path, columns: Columns, most: int) -> Iterator[tuple[str, str | None, str]]:
    import duckdb

    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(duckdb.connect(":memory:", config={"threads": 1}))
        plain = _without_pattern(path, stack)
        try:
            engine.execute("SELECT * FROM read_parquet(?) LIMIT 0", [plain])
            found = {column[0]: str(column[1]) for column in engine.description or ()}
            name_column = _parquet_columns(path, columns, found)
            wanted = ", ".join('"' + name.replace('"', '""') + '"' for name in (columns.text, name_column) if name)
            engine.execute(f"SELECT {wanted} FROM read_parquet(?)", [plain])  # noqa: S608  (names of its own columns)
            number = 0
            while batch := engine.fetchmany(_BATCH):
                for values in batch:
                    number += 1
                    row = dict(zip((columns.text, name_column), values, strict=False))
                    where = f"{path}: row {number:,}"
                    text = row[columns.text]
                    if not isinstance(text, str):
                        raise _not_a_text(where, columns.text, {columns.text: text})
                    yield where, _name({str(key): value for key, value in row.items()}, name_column, where), text
        except duckdb.Error as error:
            why = str(error).replace(plain, path.name).splitlines()[0]
            raise InputError(f"{path}: not a whole Parquet file: {why}", remedy=FETCH_AGAIN) from None


def _parquet_columns(path: Path, columns: Columns, found: dict[str, str]) -> str | None:
    """Return the column of names. Raises UsageFault that names the columns there are when one is missing."""
    there = ", ".join(f"{name} ({kind})" for name, kind in found.items())
    for option, name in (("--text-column", columns.text), ("--id-column", columns.name)):
        if name is not None and name not in found:
            raise UsageFault(f"{path}: there is no column {name!r}; there is {there}", remedy=f"name it with {option}")
    return columns.name or next((name for name in _IDENTIFIERS if name in found), None)


def _without_pattern(path: Path, stack: contextlib.ExitStack) -> str:
    """Return a path to a file that the engine cannot take for a pattern of many."""
    if not set("*?[]{}") & set(str(path)):
        return str(path)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    link = folder / "rows.parquet"
    link.symlink_to(path.resolve())
    return str(link)
