"""Finished work of a filter that was stopped: pieces in a folder beside the output, used again only when right.

A piece is named by the SHA-256 of the shard it was read from and carries a key: a digest of all that it is a
function of. A shard that is there again is hashed, never trusted for its name, size or time, so a piece that is
found is always right. The JSON file of a piece is written last: a piece without one does not exist.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from gniah.records.canonical import digest
from gniah.records.errors import UsageFault
from gniah.records.files import PART_SUFFIX, machine_trouble, sha256_file, whole_file
from gniah.records.manifests import package_version

SETTINGS_NAME = "settings.json"
# The number of the form of pieces. Whatever changes their files or facts needs a new one.
FORM = 1

_OURS = re.compile(
    r"settings\.json|eligible\.npy|\..+\.part|(papers|citations|merged)-\w+\.(jsonl|npy|csv|parquet|json)"
)
_DRAFTS = itertools.count()


def work_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all but the shards that pieces are a function of: the settings, and the versions that read them."""
    versions = {
        "gniah": package_version(),
        "python": platform.python_version(),
        "unicode": unicodedata.unidata_version,
        "duckdb": metadata.version("duckdb"),
    }
    return {**settings, "form": FORM, **versions}


@dataclass(frozen=True, slots=True)
class Piece:
    """Finished work: its data files, and what it says about them."""

    name: str
    key: str
    files: tuple[Path, ...]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder of the pieces of one output. One process holds it; its workers write pieces."""

    folder: Path
    settings: Mapping[str, Any]

    def begin(self, report: Callable[[str], None]) -> None:
        """Make the folder, and clear what a killed process left half-written and what is of other settings.

        Raises UsageFault when something else has its name.
        """
        if (foreign := self._foreign()) is not None:
            raise UsageFault(
                f"{foreign}: is in the way of unfinished work", remedy="move it, or choose another folder with --out"
            )
        with machine_trouble(self.folder):
            if self.folder.exists() and (was := _read(self.folder / SETTINGS_NAME)) != self.settings:
                if was is not None:
                    report(f"{self.folder}: unfinished work of another {_difference(was, self.settings)} is removed")
                shutil.rmtree(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            self.tidy()
        if not (self.folder / SETTINGS_NAME).exists():
            with whole_file(self.folder / SETTINGS_NAME) as stream:
                stream.write(orjson.dumps(self.settings, option=orjson.OPT_INDENT_2))

    def tidy(self) -> None:
        """Remove what processes that were ended left half-written."""
        for entry in self.folder.glob(f".*{PART_SUFFIX}"):
            _remove(entry)

    def remove(self) -> None:
        """Remove the folder: the work is done, or of no use."""
        if self.folder.exists() and self._foreign() is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def key(self, **function_of: object) -> str:
        """Return the digest of all that a piece is a function of."""
        return digest({"settings": dict(self.settings), **function_of})

    def find(self, name: str, key: str) -> Piece | None:
        """Return the piece of a name when it is whole and has this key."""
        value = _read(self.folder / f"{name}.json")
        if value is None or value.get("key") != key:
            return None
        files = tuple(self.folder / file for file in value["files"])
        for path, size in zip(files, value["files"].values(), strict=True):
            if not path.is_file() or path.stat().st_size != size:
                return None
        return Piece(name, key, files, value["facts"])

    def match(self, kind: str, shards: Sequence[Path], jobs: int, key_of: Callable[[str], str]) -> dict[Path, Piece]:
        """Return the shards that were read already, each with its piece; remove the pieces of this kind of no use."""
        sizes = {facts["shard"]["bytes"] for facts in self._facts(kind)}
        with machine_trouble(self.folder):
            known = [path for path in shards if path.stat().st_size in sizes]
        with ThreadPoolExecutor(max(jobs, 1)) as executor:
            hashes = list(executor.map(sha256_file, known))
        found = {
            path: piece
            for path, sha256 in zip(known, hashes, strict=True)
            if (piece := self.find(f"{kind}-{sha256}", key_of(sha256)))
        }
        self._keep_only(kind, {piece.name for piece in found.values()})
        return found

    def shards_read(self) -> int:
        """Return how many pieces of shards there are."""
        return sum(1 for kind in ("papers", "citations") for _ in self._facts(kind))

    @contextlib.contextmanager
    def drafts(self, count: int) -> Iterator[list[Path]]:
        """Give paths to write the files of a piece to; what `keep` did not take is removed at the end."""
        paths = [self.folder / f".{os.getpid()}-{next(_DRAFTS)}{PART_SUFFIX}" for _ in range(count)]
        try:
            yield paths
        finally:
            for path in paths:
                _remove(path)

    def keep(self, name: str, key: str, drafts: Mapping[str, Path], facts: Mapping[str, Any]) -> Piece:
        """Give the drafts their names (`name` and each ending) and the piece its existence."""
        files = tuple(self.folder / f"{name}{ending}" for ending in drafts)
        with machine_trouble(self.folder):
            sizes = [_flushed(draft) for draft in drafts.values()]
            for draft, path in zip(drafts.values(), files, strict=True):
                draft.replace(path)
        written = {path.name: size for path, size in zip(files, sizes, strict=True)}
        with whole_file(self.folder / f"{name}.json") as stream:  # flushes the names in the folder too
            stream.write(orjson.dumps({"key": key, "files": written, "facts": facts}))
        return Piece(name, key, files, facts)

    def _foreign(self) -> Path | None:
        """Return something here that is not ours, so that nobody's files are ever removed by mistake."""
        if not self.folder.exists():
            return None
        if not self.folder.is_dir():
            return self.folder
        return next((path for path in sorted(self.folder.iterdir()) if not _OURS.fullmatch(path.name)), None)

    def _facts(self, kind: str) -> Iterator[Mapping[str, Any]]:
        for path in self.folder.glob(f"{kind}-*.json"):
            if (value := _read(path)) is not None:
                yield value["facts"]

    def _keep_only(self, kind: str, names: set[str]) -> None:
        for entry in self.folder.glob(f"{kind}-*"):
            if entry.name.partition(".")[0] not in names:
                _remove(entry)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    name = next((name for name in (*now, *was) if was.get(name) != now.get(name)), "kind")
    return f"{name} ({was.get(name)}, not {now.get(name)})"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flushed(path: Path) -> int:
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())
    return path.stat().st_size
