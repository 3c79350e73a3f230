"""Shards in, a graph out: eligible papers and the citations among them, as Parquet files and a manifest."""

from __future__ import annotations

import contextlib
import datetime
import gc
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from gniah.cypher.store import GRAPH_SCHEMA
from gniah.loader.eligibility import Drop, RowFault, judge_paper, parse_date, read_citation, year_differs
from gniah.loader.graph_folders import check_replaceable, finished_graph, held
from gniah.loader.parquet import CITATIONS_FILE, PAPERS_FILE, Engine
from gniah.loader.shards import ShardFacts, ShardReader, shard_files
from gniah.records.errors import ImpossibleRequest, InputError
from gniah.records.files import machine_trouble, sha256_file, whole_folder
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
_STEP = 20_000


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for cycles less often: parsed rows have none, and looking took a quarter of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass
class _Tally:
    """What reading the shards adds up to."""

    counts: Counter[str] = field(default_factory=Counter)
    eligible: set[int] = field(default_factory=set)
    newest: datetime.date | None = None
    longest_line: int = 0


def filter_graph(
    papers: Sequence[Path],
    citations: Sequence[Path],
    out: Path,
    *,
    cutoff: datetime.date,
    force: bool = False,
    report: Callable[[str], None] = _ignore,
    advance: Callable[[int], None] = _ignore,
) -> Manifest:
    """Make the graph of the papers from a cutoff on; return its manifest (schema `gniah/graph/1`).

    `papers` and `citations` are shards, or folders of them. `out` gets `papers.parquet`, `citations.parquet`
    and `manifest.json`, all or nothing; the same rows give the same bytes however they are spread over
    shards. A folder that holds this very graph is left as it is, one that holds another graph is replaced
    with `force` only. `report` is told what happens, `advance` how many more rows were read.

    Raises InputError for a shard that is cut, damaged or of another kind (with file and line),
    ImpossibleRequest when no paper is eligible, UsageFault when the folder holds something else, BusyError
    when another process writes there.
    """
    paper_shards, citation_shards = shard_files(papers, "papers"), shard_files(citations, "citations")
    settings = {"cutoff": cutoff.isoformat(), "rules": RULES}
    out = out.resolve()
    with held(out):
        check_replaceable(out)
        if not force and (found := finished_graph(out, paper_shards, citation_shards, settings)):
            report(f"{out}: already there, nothing to do")
            return found
        clock = RunClock()
        with whole_folder(out) as part, _rare_collections():
            content, extra = _make(part, paper_shards, citation_shards, cutoff, settings, report, advance)
            files = {name: sha256_file(part / name) for name in (PAPERS_FILE, CITATIONS_FILE)}
            inputs = [str(path) for path in (*paper_shards, *citation_shards)]
            manifest = Manifest(GRAPH_SCHEMA, content, clock.run("duckdb", inputs=inputs, files=files, **extra))
            manifest.write(part)
    return manifest


def _make(
    part: Path,
    papers: Sequence[Path],
    citations: Sequence[Path],
    cutoff: datetime.date,
    settings: dict[str, Any],
    report: Callable[[str], None],
    advance: Callable[[int], None],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fill a folder with the two Parquet files; return the manifest's content and what is of the run."""
    work = part / "work"
    work.mkdir()
    tally = _Tally()
    counts = tally.counts
    report(f"reading {len(papers)} papers and {len(citations)} citations shards")
    paper_facts = _stage_papers(papers, work / "papers.jsonl", cutoff, tally, advance)
    if not tally.eligible:
        raise _nothing_eligible(cutoff, tally)
    citation_facts = _stage_citations(citations, work / "citations.csv", tally, advance)
    report("sorting and writing")
    with Engine(work) as engine:
        counts["papers_repeated"] = engine.write_papers(work / "papers.jsonl", tally.longest_line, part / PAPERS_FILE)
        staged = counts.pop("staged_citations", 0)
        counts["citations"] = engine.write_citations(work / "citations.csv", part / CITATIONS_FILE)
        counts["citations_repeated"] = staged - counts["citations"]
        counts["papers"] = len(tally.eligible)
        counts["papers_usable"] = engine.usable_papers(part / PAPERS_FILE)
        after_today = engine.papers_after(part / PAPERS_FILE, datetime.datetime.now(datetime.UTC).date())
        values = {
            "papers": engine.value_digest(part / PAPERS_FILE),
            "citations": engine.value_digest(part / CITATIONS_FILE),
        }
    shutil.rmtree(work)
    content = {
        **settings,
        "inputs": {
            "papers": [facts.to_json() for facts in sorted(paper_facts)],
            "citations": [facts.to_json() for facts in sorted(citation_facts)],
        },
        "counts": {name: counts[name] for name in (*PAPER_COUNTS, *CITATION_COUNTS)},
        "values": values,
    }
    # How many dates lie in the future changes from day to day, so it is no part of the content.
    return content, {"papers_after_today": after_today}


def _rows(shard: ShardReader, advance: Callable[[int], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    told = 0
    for number, row in shard:
        if number - told >= _STEP:
            advance(number - told)
            told = number
        yield number, row
    advance(shard.facts.rows - told if shard.facts.rows > told else 0)


def _stage_papers(
    paths: Sequence[Path], staged: Path, cutoff: datetime.date, tally: _Tally, advance: Callable[[int], None]
) -> list[ShardFacts]:
    """Write the eligible rows of all papers shards into one file, in the order they come."""
    counts, eligible, facts = tally.counts, tally.eligible, []
    with machine_trouble(staged), staged.open("wb") as stream:
        for path in paths:
            shard = ShardReader(path)
            for number, row in _rows(shard, advance):
                try:
                    verdict = judge_paper(row, cutoff)
                except RowFault as fault:
                    raise _bad_row(path, number, fault, "papers") from None
                if isinstance(verdict, Drop):
                    counts[verdict.value] += 1
                    if verdict is Drop.BEFORE_CUTOFF and not eligible:
                        date = parse_date(row["publicationdate"])
                        if date is not None and (tally.newest is None or date > tally.newest):
                            tally.newest = date
                    continue
                eligible.add(verdict.corpusid)
                counts["papers_year_differs"] += year_differs(row, verdict.publicationdate)
                tally.longest_line = max(
                    tally.longest_line, stream.write(orjson.dumps(verdict, option=orjson.OPT_APPEND_NEWLINE))
                )
            facts.append(shard.facts)
    counts["paper_rows"] = sum(shard.rows for shard in facts)
    return facts


def _stage_citations(
    paths: Sequence[Path], staged: Path, tally: _Tally, advance: Callable[[int], None]
) -> list[ShardFacts]:
    """Write the rows between eligible papers of all citations shards into one file, repeats included."""
    eligible, facts = tally.eligible, []
    null_citing = null_cited = loops = dangling = kept = 0
    with machine_trouble(staged), staged.open("w", encoding="ascii", newline="\n") as stream:
        for path in paths:
            shard = ShardReader(path)
            for number, row in _rows(shard, advance):
                try:
                    citing, cited, influential, citation = read_citation(row)
                except RowFault as fault:
                    raise _bad_row(path, number, fault, "citations") from None
                if citing is None:
                    null_citing += 1
                elif cited is None:
                    null_cited += 1
                elif citing == cited:
                    loops += 1
                elif citing not in eligible or cited not in eligible:
                    dangling += 1
                else:
                    kept += 1
                    number_text = "" if citation is None else citation
                    stream.write(f"{citing},{cited},{int(influential)},{number_text}\n")
            facts.append(shard.facts)
    tally.counts.update(
        citation_rows=sum(shard.rows for shard in facts),
        citations_null_citing=null_citing,
        citations_null_cited=null_cited,
        citations_self=loops,
        citations_dangling=dangling,
        staged_citations=kept,
    )
    return facts


def _bad_row(path: Path, number: int, fault: RowFault, what: str) -> InputError:
    return InputError(f"{path}:{number}: {fault}", remedy=f"give shards of the S2AG data set {what} to --{what}")


def _nothing_eligible(cutoff: datetime.date, tally: _Tally) -> ImpossibleRequest:
    newest = f"the newest date seen is {tally.newest}" if tally.newest else "no paper has a full date"
    if any(tally.counts[drop] for drop in (Drop.NO_TITLE, Drop.MATHML)):
        newest = "those with a date from then on have no title, or one with MathML"
    rows = tally.counts["paper_rows"]
    return ImpossibleRequest(
        f"none of the {rows:,} papers is eligible with the cutoff {cutoff}: {newest}",
        remedy="give newer shards, or an earlier date with --cutoff",
    )
