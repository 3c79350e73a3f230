"""Reading S2AG shards: gzip files of JSON lines, of which every byte counts.

A cut shard gives all its lines up to the cut before anything looks wrong, so what a shard says is settled
only at its clean end: `ShardReader.facts` exists from then on. One thing cannot be seen here: a file that was
cut exactly between two gzip members is a valid gzip file.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import orjson

from gniah.records.errors import InputError, UsageFault
from gniah.records.files import machine_trouble

_READ = 1 << 20
_INFLATE = 1 << 22
LONGEST_LINE = 1 << 28
FETCH_AGAIN = "fetch this shard again and check its size"

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, order=True)
class ShardFacts:
    """What a shard was: the SHA-256 of the file, its size in bytes, and how many rows it holds."""

    sha256: str
    bytes: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Return the facts as one object of a manifest."""
        return {"sha256": self.sha256, "bytes": self.bytes, "rows": self.rows}


class ShardReader:
    """Iterate over (line number, object) of one shard, once. The file is hashed on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._line = 0
        self._rows = 0
        self._bytes = 0
        self._hash = hashlib.sha256()
        self._finished = False

    @property
    def facts(self) -> ShardFacts:
        """The facts of the shard. Raises RuntimeError before it was read to its clean end."""
        if not self._finished:
            raise RuntimeError(f"{self.path} was not read to its end")
        return ShardFacts(self._hash.hexdigest(), self._bytes, self._rows)

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the rows; blank lines are skipped.

        Raises InputError, naming file and line, for a file that is empty, no gzip file, cut or damaged, and
        for a line that is not UTF-8, not JSON, or no object.
        """
        with machine_trouble(self.path):
            for number, line in enumerate(self._lines(), start=1):
                if not line or line.isspace():
                    continue
                self._rows += 1
                yield number, self._parse(line, number)
        self._finished = True

    def _lines(self) -> Iterator[bytes]:
        # bytes.split, not splitlines: U+2028, U+0085 and others are parts of titles.
        begun: list[bytes] = []
        length = 0
        for block in self._blocks():
            first, *rest = block.split(b"\n")
            begun.append(first)
            length += len(first)
            if length > LONGEST_LINE:
                self._refuse(f"a line of more than {LONGEST_LINE:,} bytes", "check that this is an S2AG shard")
            if rest:
                last = rest.pop()
                self._line += 1
                yield b"".join(begun)
                for line in rest:
                    self._line += 1
                    yield line
                begun, length = [last], len(last)
        if length:
            self._line += 1
            yield b"".join(begun)

    def _blocks(self) -> Iterator[bytes]:
        member = None
        with self.path.open("rb") as stream:
            while data := stream.read(_READ):
                self._hash.update(data)
                self._bytes += len(data)
                while data:
                    if member is None:
                        if self._line or self._bytes > len(data):
                            data = data.lstrip(b"\0")  # padding after a member is part of the format
                            if not data:
                                break
                        member = zlib.decompressobj(wbits=31)
                    yield self._inflate(member, data)
                    data = member.unused_data if member.eof else member.unconsumed_tail
                    if member.eof:
                        member = None
            while member is not None and (block := self._inflate(member, b"")):
                yield block  # the last of what was held back because a block was full
                if member.eof:
                    member = None
        if not self._bytes:
            self._refuse("the file is empty (0 bytes)", FETCH_AGAIN)
        if member is not None and not member.eof:
            self._refuse("the gzip file is cut: it ends before its end mark", FETCH_AGAIN)

    def _inflate(self, member: Any, data: bytes) -> bytes:
        try:
            block: bytes = member.decompress(data, _INFLATE)
        except zlib.error as error:
            if "header" in str(error) and not self._line and self._bytes <= _READ:
                self._refuse("not a gzip file", "give the shard as it was downloaded, or compress it with gzip")
            self._refuse(f"the gzip file is damaged ({error})", FETCH_AGAIN)
        return block

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise InputError(f"{self.path}:{self._line + 1}: {what}", remedy=remedy)

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            value = orjson.loads(line)
            if b"\\u0000" in line:
                value = _cleaned(value)
        except orjson.JSONDecodeError:
            value = _parse_slowly(line, f"{self.path}:{number}")
        if not isinstance(value, dict):
            raise InputError(
                f"{self.path}:{number}: expected a JSON object, found {type(value).__name__}",
                remedy="check that this is an S2AG shard",
            )
        return value


def _parse_slowly(line: bytes, where: str) -> object:
    """Parse what orjson refused: a lone surrogate written as an escape is legal JSON, and is dropped here."""
    try:
        return _cleaned(json.loads(line.decode("utf-8"), parse_constant=_no_constant))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8: {error}", remedy=FETCH_AGAIN) from None
    except ValueError as error:
        raise InputError(f"{where}: not JSON: {error}", remedy=FETCH_AGAIN) from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply", remedy=FETCH_AGAIN) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _cleaned(value: object) -> object:
    """Return a parsed value without NUL and lone surrogates, which neither UTF-8 nor a database can hold."""
    if isinstance(value, str):
        return _SURROGATES.sub("", value).replace("\0", "")
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return value


def shard_files(given: Sequence[Path], what: str) -> list[Path]:
    """Return the shards meant by files and folders: every `*.gz` of a folder, each file once, sorted.

    `what` names the data set in messages. Raises UsageFault when nothing was given, InputError for a path
    that is not there or a folder without shards.
    """
    if not given:
        raise UsageFault(f"no shards of {what} were given", remedy=f"name them with --{what}")
    found: dict[Path, Path] = {}
    for path in given:
        with machine_trouble(path):
            files = sorted(_shards_of(path)) if path.is_dir() else [path]
            if not files:
                raise InputError(f"{path}: no *.gz file in this folder", remedy=f"give the {what} shards to --{what}")
            for file in files:
                if not file.exists():
                    raise InputError(f"{file}: no such file or folder", remedy=f"check the path given to --{what}")
                found.setdefault(file.resolve(), file)
    return sorted(found.values())


def _shards_of(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.suffix == ".gz" and not path.name.startswith(".") and path.is_file():
            yield path
