"""One shard read into one piece. Shards are read independently, by any number of processes."""

from __future__ import annotations

import contextlib
import datetime
import gc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson

from gniah.loader.eligibility import Drop, RowFault, citation_numbers, judge_paper, parse_date, year_differs
from gniah.loader.shards import ShardReader
from gniah.loader.work_folder import Piece, WorkFolder
from gniah.loader.workers import Advance
from gniah.records.errors import InputError
from gniah.records.files import machine_trouble

PAPERS = "papers"
CITATIONS = "citations"
IdArray = npt.NDArray[np.int64]

_STEP = 20_000
_NONE = -1  # in the place of an id or a citation id that is not known; true ones are never negative


@dataclass(frozen=True, slots=True)
class PapersTask:
    """A shard of papers to read."""

    shard: Path
    cutoff: datetime.date
    work: WorkFolder


@dataclass(frozen=True, slots=True)
class CitationsTask:
    """A shard of citations to read, and the sorted ids of the eligible papers in a file, with their digest."""

    shard: Path
    eligible: Path
    eligible_digest: str
    work: WorkFolder


def papers_key(work: WorkFolder, sha256: str) -> str:
    """Return the key of what a shard of papers is read into."""
    return work.key(kind=PAPERS, shard=sha256)


def citations_key(work: WorkFolder, sha256: str, eligible_digest: str) -> str:
    """Return the key of what a shard of citations is read into: it depends on which papers are eligible."""
    return work.key(kind=CITATIONS, shard=sha256, eligible=eligible_digest)


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for cycles less often: parsed rows have none, and looking took a quarter of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _rows(shard: ShardReader, advance: Advance) -> Iterator[tuple[int, dict[str, Any]]]:
    told = 0
    for number, row in shard:
        if number - told >= _STEP:
            advance(number - told)
            told = number
        yield number, row
    advance(shard.facts.rows - told if shard.facts.rows > told else 0)


@dataclass(slots=True)
class _Papers:
    """What the papers of one shard add up to."""

    counts: Counter[str] = field(default_factory=Counter)
    ids: list[int] = field(default_factory=list)
    newest: datetime.date | None = None  # the newest date before the cutoff, until a paper is eligible
    longest_line: int = 0


def read_papers(task: PapersTask, advance: Advance) -> tuple[Path, Piece]:
    """Read a shard of papers: its eligible rows as lines of JSON, and their ids sorted.

    Raises InputError for a shard that is cut, damaged or of another kind, with file and line.
    """
    shard, work, found = ShardReader(task.shard), task.work, _Papers()
    with work.drafts(2) as (rows, ids), rare_collections():
        with machine_trouble(rows), rows.open("wb") as stream:
            _judge(shard, task.cutoff, stream, found, advance)
        with machine_trouble(ids), ids.open("wb") as stream:
            np.save(stream, np.unique(np.array(found.ids, dtype=np.int64)))
        facts = {
            "shard": shard.facts.to_json(),
            "counts": dict(found.counts),
            "kept": len(found.ids),
            "newest": found.newest.isoformat() if found.newest else None,
            "longest_line": found.longest_line,
        }
        sha256 = shard.facts.sha256
        drafts = {".jsonl": rows, ".npy": ids}
        return task.shard, work.keep(f"{PAPERS}-{sha256}", papers_key(work, sha256), drafts, facts)


def _judge(shard: ShardReader, cutoff: datetime.date, stream: IO[bytes], found: _Papers, advance: Advance) -> None:
    counts, ids = found.counts, found.ids
    for number, row in _rows(shard, advance):
        try:
            verdict = judge_paper(row, cutoff)
        except RowFault as fault:
            raise _bad_row(shard.path, number, fault, PAPERS) from None
        if isinstance(verdict, Drop):
            counts[verdict.value] += 1
            if verdict is Drop.BEFORE_CUTOFF and not ids:
                date = parse_date(row["publicationdate"])
                if date is not None and (found.newest is None or date > found.newest):
                    found.newest = date
            continue
        ids.append(verdict.corpusid)
        if year_differs(row, verdict.publicationdate):
            counts["papers_year_differs"] += 1
        length = stream.write(orjson.dumps(verdict, option=orjson.OPT_APPEND_NEWLINE))
        if length > found.longest_line:
            found.longest_line = length


def read_citations(task: CitationsTask, advance: Advance) -> tuple[Path, Piece]:
    """Read a shard of citations: its rows between eligible papers as `citing,cited,0|1,citationid`, repeats included.

    The eligible ids are looked up in a file that all workers share, batch by batch. Raises InputError for a shard
    that is cut, damaged or of another kind, with file and line.
    """
    shard, work = ShardReader(task.shard), task.work
    counts: Counter[str] = Counter()
    eligible: IdArray = np.load(task.eligible, mmap_mode="r")
    with work.drafts(1) as (rows,), rare_collections():
        with machine_trouble(rows), rows.open("w", encoding="ascii", newline="\n") as stream:
            for batch in _batches(shard, advance):
                stream.writelines(_between(batch, eligible, counts))
        sha256 = shard.facts.sha256
        key = citations_key(work, sha256, task.eligible_digest)
        kept = counts.pop("kept", 0)
        facts = {"shard": shard.facts.to_json(), "counts": dict(counts), "kept": kept}
        return task.shard, work.keep(f"{CITATIONS}-{sha256}", key, {".csv": rows}, facts)


def _batches(shard: ShardReader, advance: Advance) -> Iterator[list[int]]:
    """Yield the numbers of many rows in one list: citing, cited, 0 or 1, citation id, and again."""
    batch: list[int] = []
    for number, row in _rows(shard, advance):
        try:
            batch += citation_numbers(row)
        except RowFault as fault:
            raise _bad_row(shard.path, number, fault, CITATIONS) from None
        if len(batch) >= 4 * _STEP:
            yield batch
            batch = []
    yield batch


def _between(batch: list[int], eligible: IdArray, counts: Counter[str]) -> Iterator[str]:
    """Yield the lines of the rows between two eligible papers, and count why others are not among them."""
    rows = np.array(batch, dtype=np.int64).reshape(-1, 4)
    rows = _without(rows, rows[:, 0] == _NONE, "citations_null_citing", counts)
    rows = _without(rows, rows[:, 1] == _NONE, "citations_null_cited", counts)
    rows = _without(rows, rows[:, 0] == rows[:, 1], "citations_self", counts)
    for end in (0, 1):
        rows = _without(rows, ~_among(rows[:, end], eligible), "citations_dangling", counts)
    counts["kept"] += len(rows)
    for citing, cited, influential, number in rows.tolist():
        yield f"{citing},{cited},{influential},{number if number != _NONE else ''}\n"


def _without(rows: IdArray, gone: npt.NDArray[np.bool_], name: str, counts: Counter[str]) -> IdArray:
    counts[name] += int(gone.sum())
    return rows[~gone]


def _among(ids: IdArray, eligible: IdArray) -> npt.NDArray[np.bool_]:
    """Return for each id whether it is one of the sorted ones."""
    places = np.searchsorted(eligible, ids)
    places[places == len(eligible)] = 0
    return np.asarray(eligible[places] == ids)


def _bad_row(path: Path, number: int, fault: RowFault, what: str) -> InputError:
    return InputError(f"{path}:{number}: {fault}", remedy=f"give shards of the S2AG data set {what} to --{what}")
