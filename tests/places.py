"""Worlds for one command each: what stands in a folder before it, and how that can be wrong."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from programs import Rfc, call_program

from gniah.loader.shipped import rfc_shards
from gniah.records.files import json_line
from gniah.records.manifests import Manifest

Words = Sequence[str | Path]


@dataclass
class Place:
    """A folder for one row, what every step made before it, and the words that make the row's world."""

    folder: Path
    rfc: Rfc
    parts: Path
    stack: contextlib.ExitStack
    environment: dict[str, str] = field(default_factory=dict)
    without_rights: bool = False

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    # Shards.

    def file(self, name: str, content: bytes = b"") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def shard(self, name: str, *lines: object) -> Path:
        raw = b"".join(line + b"\n" if isinstance(line, bytes) else json_line(line) for line in lines)
        return self.file(name, gzip.compress(raw, mtime=0))

    def papers(self, name: str = "p.gz", count: int = 3) -> Path:
        return self.shard(name, *map(paper, range(1, count + 1)))

    def citations(self, name: str = "c.gz") -> Path:
        return self.shard(name, citation(1, 2), citation(2, 3))

    def filter(self, *more: str | Path, papers: Path | None = None, citations: Path | None = None) -> Words:
        """Return a filter of a few papers into `graph`, but for what is given."""
        return (
            *("filter", "--papers", papers or self.papers(), "--citations", citations or self.citations()),
            *("--out", self / "graph", *more),
        )

    def big_filter(self, out: Path) -> Words:
        shards = rfc_shards()
        words = ("filter", "--papers", shards.papers, "--citations", shards.citations)
        return (*words, "--cutoff", self.rfc.cutoff, "--out", out)

    # What later steps read.

    def copy(self, name: str, where: str | None = None) -> Path:
        """Return a copy of what a step made: graph, store, paths, bench or run."""
        return Path(shutil.copytree(getattr(self.rfc, name), self / (where or name)))

    def pool(self, depth: int = 2) -> Path:
        """Return a copied folder of paths of one depth, the copy being `paths`."""
        if not (self / "paths").exists():
            self.copy("paths")
        return self / f"paths/data.{self.rfc.cutoff}/hops={3 * depth - 2}/papers-only"

    def paths(self, *more: str | Path, store: Path | None = None) -> Words:
        words = ("paths", "--store", store or self.rfc.store, "--out", self / "made", "--depths", "2")
        return (*words, "--count", "20", *more)

    def examples(self, *more: str | Path) -> Words:
        return self.rfc.example_words(self / "made", "--vary", "question-format", *more)

    def run(self, *more: str | Path, bench: Path | None = None) -> Words:
        return ("run", bench or self.rfc.bench, "--model", "constant", "--out", self / "answers", *more)

    # Disks, rights, and other processes.

    def disk(self, name: str, *, kilobytes: int = 1024) -> Path:
        """Return the root of a small disk of its own; skip the row where none can be mounted."""
        path = self / name
        path.mkdir()
        mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", path)
        self.stack.callback(subprocess.run, ["umount", "-l", str(path)], check=False)
        return path

    def full_disk(self, *, kilobytes: int = 1024) -> Path:
        """Return a folder on a disk that has no more than a few pages left."""
        path = self.disk("full", kilobytes=kilobytes)
        ballast = path / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as stream:
            while stream.write(b"\0" * 4096):
                pass
        os.truncate(ballast, ballast.stat().st_size - 8192)
        return path

    def read_only_disk(self, *names: str) -> Path:
        """Return the root of a disk that cannot be written to and holds what some steps made."""
        path = self.disk("fixed", kilobytes=16384)
        for name in names:
            shutil.copytree(getattr(self.rfc, name), path / name)
        mount("-o", "remount,ro", path)
        return path

    def forbidden(self, path: Path, mode: int = 0o555) -> Path:
        """Take rights from a path that is there, or make a folder without them, and give up root's privilege."""
        if not path.exists():
            path.mkdir()
        before = path.stat().st_mode
        path.chmod(mode)
        self.stack.callback(path.chmod, before)
        self.without_rights = True
        return path

    def hold(self, lock: contextlib.AbstractContextManager[None]) -> None:
        """Hold a lock until the row is over, as another process would."""
        self.stack.enter_context(lock)


def paper(corpusid: object, **changed: object) -> dict[str, object]:
    """Return a row of papers that is eligible, but for what is given."""
    return {
        "corpusid": corpusid,
        "externalids": None,
        "title": f"Paper {corpusid}",
        "authors": [{"authorId": "7", "name": "A. Author"}],
        "venue": "",
        "publicationvenueid": None,
        "year": 2026,
        "publicationdate": "2026-05-01",
        "journal": None,
        **changed,
    }


def citation(citing: object, cited: object) -> dict[str, object]:
    return {"citationid": 5, "citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": False}


def mount(*words: str | Path) -> None:
    """Mount something, which takes root on Linux; skip the test elsewhere, but never in CI as root."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    done = None
    if root and sys.platform == "linux" and shutil.which("mount"):
        done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True, check=False)
    if done is None or done.returncode:
        why = done.stderr.strip() if done else "only root can mount a small disk"
        if os.environ.get("CI") and root:
            pytest.fail(f"no small disk could be mounted, and a build must not pass without it: {why}")
        pytest.skip(why)


def give_up_rights() -> None:
    """Take from a process of root what lets it pass over modes, before it begins; for others this does nothing."""
    if os.geteuid() == 0:
        drop_from_bounding_set, override, read_search = 24, 1, 2
        library = ctypes.CDLL(None, use_errno=True)
        for capability in (override, read_search):
            if library.prctl(drop_from_bounding_set, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


def changed(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change one line of a file of JSON lines."""
    lines = path.read_bytes().split(b"\n")
    value = json.loads(lines[number - 1])
    change(value)
    lines[number - 1] = json_line(value).rstrip(b"\n")
    path.write_bytes(b"\n".join(lines))
    return path.parent


def replaced(path: Path, number: int, line: bytes) -> Path:
    """Replace one line of a file."""
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))
    return path.parent


def cut(path: Path, lost: int = 20) -> Path:
    """Take the last bytes off a file."""
    os.truncate(path, path.stat().st_size - lost)
    return path.parent


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change a JSON document."""
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(json.dumps(value).encode())
    return path.parent


def resealed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change a manifest as another version would have written it: with a digest that fits."""
    value = json.loads((folder / "manifest.json").read_bytes())
    change(value["content"])
    Manifest(value["schema"], value["content"], value["run"]).write(folder)
    return folder


def without(*names: str) -> Callable[[dict[str, Any]], object]:
    return lambda value: [value.pop(name) for name in names]


def put(**values: object) -> Callable[[dict[str, Any]], object]:
    return lambda value: value.update(values)


def removed(path: Path) -> Path:
    path.unlink()
    return path.parent


def damaged(path: Path, start: int, content: bytes) -> Path:
    """Overwrite bytes of a file, counted from its end when the start is negative."""
    with path.open("r+b") as stream:
        stream.seek(start, os.SEEK_SET if start >= 0 else os.SEEK_END)
        stream.write(content)
    return path.parent


def first_qid(bench: Path) -> str:
    with (bench / "examples.jsonl").open("rb") as stream:
        return str(json.loads(stream.readline())["qid"])


def toml(at: Place, text: str) -> Path:
    return at.file("settings.toml", text.encode())


def template(at: Place, change: Callable[[dict[str, Any]], object]) -> Path:
    from gniah.generator.graphniah import prompts

    source = Path(prompts.__file__).parent / "templates" / "plain.json"
    edited(at.file("mine.json", source.read_bytes()), change)
    return at / "mine.json"


def part_of(at: Place, name: str, part: str, *more: str) -> Path:
    """Return a copy of a part of the list, as one machine of several would build it."""
    built = at.parts / "-".join([part.replace("/", "of"), *more])
    if not built.exists():
        done = call_program(*at.rfc.example_words(built, "--part", part, *more))
        assert done.code == 0, done.err
    return Path(shutil.copytree(built, at / name))


def some_piece(part: Path) -> Path:
    return sorted(path for path in (part / ".work").iterdir() if path.name != "plan.json")[0]
