"""The pieces of all shards put together: each of the two Parquet files is a piece too, so it is made once."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gniah.loader.parquet import CITATIONS_FILE, PAPERS_FILE, Engine
from gniah.loader.pieces import PAPERS
from gniah.loader.work_folder import Piece, WorkFolder
from gniah.loader.workers import Advance
from gniah.records.files import machine_trouble, sha256_file

_NAMES = {"papers": PAPERS_FILE, "citations": CITATIONS_FILE}


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Staged rows of one kind to sort and write."""

    kind: str
    staged: tuple[Path, ...]
    longest_line: int
    key: str
    work: WorkFolder

    @property
    def name(self) -> str:
        """Return the name of the piece."""
        return f"merged-{self.kind}"


def merge_task(kind: str, pieces: Sequence[Piece], work: WorkFolder) -> MergeTask:
    """Return the task of merging pieces. Equal shards have one piece, which counts once here."""
    distinct = sorted({piece.name: piece for piece in pieces}.items())
    staged = tuple(piece.files[0] for _, piece in distinct)
    longest = max((int(piece.facts.get("longest_line", 0)) for _, piece in distinct), default=0)
    keys = [piece.key for _, piece in distinct]
    return MergeTask(kind, staged, longest, work.key(merged=keys), work)


def merge(task: MergeTask, _: Advance) -> tuple[str, Piece]:
    """Sort the staged rows of one kind and write its Parquet file, with what the manifest says of it."""
    work = task.work
    with work.drafts(2) as (place, draft):
        with machine_trouble(place):
            place.mkdir()
        staged = [path for path in task.staged if path.stat().st_size] or [task.staged[0]]
        with Engine(place) as engine:
            facts: dict[str, Any]
            if task.kind == PAPERS:
                engine.write_papers(staged, task.longest_line, draft)
                today = datetime.datetime.now(datetime.UTC).date()
                facts = {
                    "rows": engine.papers(draft),
                    "usable": engine.usable_papers(draft),
                    "future": engine.papers_after(draft, today),
                }
            else:
                facts = {"rows": engine.write_citations(staged, draft)}
            facts |= {"values": engine.value_digest(draft), "sha256": sha256_file(draft)}
        shutil.rmtree(place)
        return task.kind, work.keep(task.name, task.key, {".parquet": draft}, facts)


def put_in_place(piece: Piece, kind: str, folder: Path) -> None:
    """Give a merged file its place in the graph's folder too; it stays a piece until the folder has its name."""
    target = folder / _NAMES[kind]
    with machine_trouble(target):
        try:
            target.hardlink_to(piece.files[0])
        except (OSError, NotImplementedError):  # a file system without links
            shutil.copyfile(piece.files[0], target)
