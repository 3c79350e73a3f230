"""The folder of a graph: held by one process, used again when it is already right, never taken by mistake."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gniah.cypher.store import GRAPH_SCHEMA
from gniah.loader.parquet import CITATIONS_FILE, PAPERS_FILE
from gniah.records.errors import BusyError, InputError, UsageFault
from gniah.records.files import locked_folder, machine_trouble, sha256_file
from gniah.records.manifests import MANIFEST_NAME, Manifest

_OURS = {PAPERS_FILE, CITATIONS_FILE, MANIFEST_NAME}
CHOOSE = "add --force to make it again, or choose another folder with --out"


@contextlib.contextmanager
def held(out: Path) -> Iterator[None]:
    """Hold the name of a folder for one process, whether the folder exists or not; raises BusyError.

    The folder itself is replaced as a whole, so the lock stands beside it, as `.NAME.lock`. What a killed
    process left half-written under this name is removed.
    """
    if not out.name:
        raise UsageFault(f"{out}: this cannot be a graph folder", remedy="choose another folder with --out")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked_folder(out.with_name(f".{out.name}.lock")))
        except BusyError as error:
            raise BusyError(f"{out}: another process is writing this folder", remedy=error.remedy) from None
        _remove_leftovers(out)
        yield


def work_folder(out: Path) -> Path:
    """Return where unfinished work on a folder stands: beside it, so that they are on one disk."""
    return out.with_name(f".{out.name}.work")


def _remove_leftovers(out: Path) -> None:
    leftover = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{8}}\.(part|old)")
    for entry in sorted(out.parent.iterdir()):
        if leftover.fullmatch(entry.name) and entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)


def check_replaceable(out: Path) -> None:
    """Refuse, even when forced, to replace anything but a graph folder. Raises UsageFault."""
    with machine_trouble(out):
        if not out.exists():
            return
        if not out.is_dir():
            raise UsageFault(f"{out}: a file has this name", remedy="choose another folder with --out")
        foreign = sorted(entry.name for entry in out.iterdir() if entry.name not in _OURS)
    if foreign:
        raise UsageFault(
            f"{out}: holds something else than a graph ({foreign[0]!r}), and is never overwritten",
            remedy="choose another folder with --out",
        )


def finished_graph(
    out: Path, papers: Sequence[Path], citations: Sequence[Path], settings: Mapping[str, Any]
) -> Manifest | None:
    """Return the manifest of a graph that was already made from these very shards with these settings.

    Returns None when the folder is not there or empty. Raises UsageFault when it holds another graph,
    InputError when it holds a damaged one.
    """
    if not out.exists() or not any(out.iterdir()):
        return None
    try:
        manifest = Manifest.read(out, GRAPH_SCHEMA)
    except InputError as error:
        raise InputError(error.message, remedy=CHOOSE) from None
    content = manifest.content
    for name, value in settings.items():
        if content.get(name) != value:
            raise UsageFault(
                f"{out}: holds a graph with another {name}: {content.get(name)}, not {value}", remedy=CHOOSE
            )
    inputs = content.get("inputs") or {}
    for kind, paths in (("papers", papers), ("citations", citations)):
        if sorted(shard["sha256"] for shard in inputs.get(kind, [])) != sorted(map(sha256_file, paths)):
            raise UsageFault(f"{out}: holds a graph made from other {kind} shards", remedy=CHOOSE)
    files = manifest.run.get("files") or {}
    for name in (PAPERS_FILE, CITATIONS_FILE):
        path = out / name
        if not path.is_file() or sha256_file(path) != files.get(name):
            raise InputError(f"{path}: missing, or changed after it was written", remedy=CHOOSE)
    return manifest
