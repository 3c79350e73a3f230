"""Shards in, a graph out: eligible papers and the citations among them, as Parquet files and a manifest."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gniah.cypher.store import GRAPH_SCHEMA
from gniah.loader.eligibility import Drop
from gniah.loader.graph_folders import check_replaceable, finished_graph, held, work_folder
from gniah.loader.merging import merge, merge_task, put_in_place
from gniah.loader.pieces import (
    CITATIONS,
    PAPERS,
    CitationsTask,
    PapersTask,
    citations_key,
    papers_key,
    read_citations,
    read_papers,
)
from gniah.loader.shards import shard_files
from gniah.loader.work_folder import Piece, WorkFolder, work_settings
from gniah.loader.workers import Advance, each_done
from gniah.records.errors import ImpossibleRequest, UsageFault
from gniah.records.files import machine_trouble, whole_folder
from gniah.records.manifests import Manifest, RunClock

# The number of the rules of eligibility and of edges. Whatever changes a row needs a new one.
RULES = 1

PAPER_COUNTS = (
    "papers",
    "papers_usable",
    "paper_rows",
    *(drop.value for drop in Drop),
    "papers_repeated",
    "papers_year_differs",
)
CITATION_COUNTS = (
    "citations",
    "citation_rows",
    "citations_null_citing",
    "citations_null_cited",
    "citations_self",
    "citations_dangling",
    "citations_repeated",
)
_ELIGIBLE = "eligible.npy"


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


def filter_graph(
    papers: Sequence[Path],
    citations: Sequence[Path],
    out: Path,
    *,
    cutoff: datetime.date,
    force: bool = False,
    jobs: int = 1,
    report: Callable[[str], None] = _ignore,
    advance: Advance = _ignore,
) -> Manifest:
    """Make the graph of the papers from a cutoff on; return its manifest (schema `gniah/graph/1`).

    `papers` and `citations` are shards, or folders of them. `out` gets `papers.parquet`, `citations.parquet`
    and `manifest.json`, all or nothing; the same rows give the same bytes however they are spread over
    shards and `jobs` processes. A folder that holds this very graph is left as it is, one that holds another
    graph is replaced with `force` only. What a call that was stopped has finished stands in `.NAME.work` beside
    `out`, and the next call uses it. `report` is told what happens, `advance` how many more rows were read.

    Raises InputError for a shard that is cut, damaged or of another kind (with file and line),
    ImpossibleRequest when no paper is eligible, UsageFault when the folder holds something else, BusyError
    when another process writes there.
    """
    shards = {PAPERS: shard_files(papers, "papers"), CITATIONS: shard_files(citations, "citations")}
    settings = {"cutoff": cutoff.isoformat(), "rules": RULES}
    out = out.resolve()
    with held(out):
        check_replaceable(out)
        work = WorkFolder(work_folder(out), work_settings(settings))
        if not force and (found := finished_graph(out, shards[PAPERS], shards[CITATIONS], settings)):
            work.remove()
            report(f"{out}: already there, nothing to do")
            return found
        clock = RunClock()
        call = _Call(shards, cutoff, work, jobs, report, advance)
        with _kept_work(work, report), whole_folder(out) as part:
            content, extra = call.fill(part)
            inputs = [str(path) for kind in (PAPERS, CITATIONS) for path in shards[kind]]
            run = clock.run("duckdb", inputs=inputs, jobs=jobs, **extra)
            manifest = Manifest(GRAPH_SCHEMA, {**settings, **content}, run)
            manifest.write(part)
        work.remove()
    return manifest


@contextlib.contextmanager
def _kept_work(work: WorkFolder, report: Callable[[str], None]) -> Iterator[None]:
    """Say what is kept when the user stops the work, and keep nothing that is of no use."""
    try:
        yield
    except UsageFault:  # the folder is not ours
        raise
    except ImpossibleRequest:
        work.remove()
        raise
    except BaseException as stop:
        work.tidy()
        kept = work.shards_read()
        if not kept:
            work.remove()
        elif isinstance(stop, KeyboardInterrupt):
            report(f"{work.folder}: {kept} finished shards are kept; the same command goes on from there")
        raise


@dataclass(frozen=True)
class _Call:
    """One call: what it reads, where it works, and whom it tells."""

    shards: Mapping[str, Sequence[Path]]
    cutoff: datetime.date
    work: WorkFolder
    jobs: int
    report: Callable[[str], None]
    advance: Advance

    def fill(self, part: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """Put the two Parquet files into a folder; return the manifest's content and what is of the run."""
        self.work.begin(self.report)
        papers, citations = self.shards[PAPERS], self.shards[CITATIONS]
        self.report(f"reading {len(papers)} papers and {len(citations)} citations shards")
        pieces = {PAPERS: self._read_papers()}
        eligible = self._eligible_ids(pieces[PAPERS])
        pieces[CITATIONS] = self._read_citations(eligible)
        merged = self._merged(pieces)
        for kind, piece in merged.items():
            put_in_place(piece, kind, part)
        content = {
            "inputs": {
                kind: sorted((piece.facts["shard"] for piece in pieces[kind]), key=_by_facts) for kind in merged
            },
            "counts": _counts(pieces, merged),
            "values": {kind: piece.facts["values"] for kind, piece in merged.items()},
        }
        files = {f"{kind}.parquet": piece.facts["sha256"] for kind, piece in merged.items()}
        # How many dates lie in the future changes from day to day, so it is no part of the content.
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        after = sum(count for day, count in merged[PAPERS].facts["future"].items() if day > today)
        return content, {"files": files, "papers_after_today": after}

    def _read_papers(self) -> list[Piece]:
        shards = self.shards[PAPERS]
        found = self.work.match(PAPERS, shards, self.jobs, lambda sha256: papers_key(self.work, sha256))
        self._say_found(PAPERS, found)
        tasks = [PapersTask(path, self.cutoff, self.work) for path in shards if path not in found]
        found.update(each_done(read_papers, tasks, self.jobs, self.advance))
        return [found[path] for path in shards]

    def _read_citations(self, eligible: str) -> list[Piece]:
        shards, work = self.shards[CITATIONS], self.work
        found = work.match(CITATIONS, shards, self.jobs, lambda sha256: citations_key(work, sha256, eligible))
        self._say_found(CITATIONS, found)
        tasks = [CitationsTask(path, work.folder / _ELIGIBLE, eligible, work) for path in shards if path not in found]
        found.update(each_done(read_citations, tasks, self.jobs, self.advance))
        return [found[path] for path in shards]

    def _say_found(self, kind: str, found: Mapping[Path, Piece]) -> None:
        if found:
            self.report(
                f"going on: {len(found)} of {len(self.shards[kind])} {kind} shards were read by an earlier call"
            )

    def _eligible_ids(self, pieces: Sequence[Piece]) -> str:
        """Write the sorted ids of all eligible papers into a file; return their digest."""
        ids = np.unique(np.concatenate([np.load(piece.files[1]) for piece in pieces]))
        if not len(ids):
            raise _nothing_eligible(self.cutoff, pieces)
        path = self.work.folder / _ELIGIBLE
        with machine_trouble(path), self.work.drafts(1) as (draft,):
            with draft.open("wb") as stream:
                np.save(stream, ids)
            draft.replace(path)
        return hashlib.sha256(ids.astype("<i8").tobytes()).hexdigest()

    def _merged(self, pieces: Mapping[str, Sequence[Piece]]) -> dict[str, Piece]:
        tasks = [merge_task(kind, some, self.work) for kind, some in pieces.items()]
        found = {task.kind: piece for task in tasks if (piece := self.work.find(task.name, task.key))}
        for kind in found:
            self.report(f"going on: the {kind} were sorted by an earlier call")
        self.report("sorting and writing")
        tasks = [task for task in tasks if task.kind not in found]
        found.update(each_done(merge, tasks, self.jobs, self.advance))
        return {kind: found[kind] for kind in pieces}


def _by_facts(facts: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(facts.values())


def _counts(pieces: Mapping[str, Sequence[Piece]], merged: Mapping[str, Piece]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for kind, rows in ((PAPERS, "paper_rows"), (CITATIONS, "citation_rows")):
        for piece in pieces[kind]:
            counts.update(piece.facts["counts"])
            counts[rows] += piece.facts["shard"]["rows"]
        counts[kind] = merged[kind].facts["rows"]
        counts[f"{kind}_repeated"] = sum(piece.facts["kept"] for piece in pieces[kind]) - counts[kind]
    counts["papers_usable"] = merged[PAPERS].facts["usable"]
    return {name: counts[name] for name in (*PAPER_COUNTS, *CITATION_COUNTS)}


def _nothing_eligible(cutoff: datetime.date, pieces: Sequence[Piece]) -> ImpossibleRequest:
    counts: Counter[str] = Counter()
    for piece in pieces:
        counts.update(piece.facts["counts"])
    date = max((piece.facts["newest"] or "" for piece in pieces), default="")
    newest = f"the newest date seen is {date}" if date else "no paper has a full date"
    if any(counts[drop] for drop in (Drop.NO_TITLE, Drop.MATHML)):
        newest = "those with a date from then on have no title, or one with MathML"
    rows = sum(piece.facts["shard"]["rows"] for piece in pieces)
    return ImpossibleRequest(
        f"none of the {rows:,} papers is eligible with the cutoff {cutoff}: {newest}",
        remedy="give newer shards, or an earlier date with --cutoff",
    )
