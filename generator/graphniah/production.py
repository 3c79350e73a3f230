"""Many examples: planned, built by any number of processes or machines, and put together as the published files.

Each finished example is a file of its own in `.work`, named by its qid, on disk before the next begins. A qid covers
all that an example is a function of, so what is found there is never wrong, whoever built it and when: that is how
a stopped run goes on, how parts are merged, and why the result has the same bytes for any number of jobs.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from gniah.generator.corpora import Corpus
from gniah.generator.corpus_counts import count_corpora
from gniah.generator.graphniah.building import Built, ExampleBuilder
from gniah.generator.graphniah.experiments import ListSettings
from gniah.generator.graphniah.growth import StoreUse
from gniah.generator.graphniah.materials import GENERATOR_VERSION, Materials
from gniah.generator.graphniah.plans import Plan, Sources, inputs_of, make_plan, read_plan
from gniah.generator.graphniah.publication import (
    BENCH_SCHEMA,
    WORK_NAME,
    clear_leftovers,
    put_together,
    uses_of,
    write_piece,
    write_piece_bytes,
)
from gniah.generator.graphniah.spark_engine import build_on_spark
from gniah.generator.requests import adding_tokenizers
from gniah.generator.spark import SparkCluster
from gniah.generator.tokenizers import slow_tokenizers
from gniah.records.command_line import Progress, say
from gniah.records.errors import GniahError, InputError, UsageFault
from gniah.records.files import json_document, locked_folder, whole_file
from gniah.records.graphniah.settings import Settings
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock
from gniah.records.workers import Workers

PLAN_NAME = "plan.json"


@dataclass(frozen=True, slots=True)
class Produced:
    """What a call came to: examples in the list, how many were built now, found finished, and are still missing.

    `manifest` is that of the finished folder, and None as long as examples are missing. `store` is what building asked
    of the graph store.
    """

    total: int
    built: int
    found: int
    missing: int
    manifest: Manifest | None = None
    store: StoreUse = field(default_factory=StoreUse)


class _Ways(NamedTuple):
    """How every process builds: whether a corpus may run out, and whether finished prompts are counted whole."""

    strict_fill: bool
    recount: bool


def build_examples(
    settings: ListSettings,
    sources: Sources | Materials,
    *,
    strict_fill: bool = False,
    skip_impossible: bool = False,
    recount: bool = True,
) -> Iterator[Built]:
    """Yield the examples of a list one at a time, in the order of the list; no file is written.

    They are the ones that `produce` writes, each once. With `recount` each prompt is counted whole beside what packing
    found. Sources are opened while the iterator lives; materials are used
    as they are. Raises ImpossibleRequest with the first one for cells that the graph cannot give.
    """
    with ExitStack() as stack:
        materials = sources.open(stack) if isinstance(sources, Sources) else sources
        plan = make_plan(settings, materials, skip_impossible=skip_impossible, strict_fill=strict_fill)
        builder = ExampleBuilder(materials, strict_fill=strict_fill, recount=recount)
        for qid, uses in uses_of(plan.to_json()).items():
            built = builder.build(plan.by_qid[qid])
            yield replace(built, example=built.example.with_experiments(tuple(uses)))


def produce(
    settings: ListSettings,
    sources: Sources,
    out: Path,
    *,
    jobs: int = 1,
    cluster: SparkCluster | None = None,
    part: tuple[int, int] = (1, 1),
    strict_fill: bool = False,
    skip_impossible: bool = False,
    recount: bool = True,
) -> Produced:
    """Build the examples of a list into a folder, or the part `i` of `n` of them; put them together when all are there.

    What an earlier call finished is not built again. They are built by `jobs` processes of this machine, or on a
    cluster; either way their pieces are written here. With `recount` each prompt is counted whole, by each tokenizer
    itself, beside what packing found; it changes no byte. Raises UsageFault when the folder holds another list, and
    ImpossibleRequest, before the first example is built, for cells that the graph cannot give.
    """
    clock = RunClock()
    with locked_folder(out), ExitStack() as stack:
        clear_leftovers(out)
        materials = sources.open(stack)
        finished = _finished(out, settings, materials, skip_impossible)
        if finished is not None:
            shutil.rmtree(out / WORK_NAME, ignore_errors=True)  # of a process that was killed at its very end
            total = int(finished.content["counts"]["examples"])
            return Produced(total, 0, total, 0, finished)
        plan = make_plan(settings, materials, skip_impossible=skip_impossible, strict_fill=strict_fill)
        work = out / WORK_NAME
        _begin(work, plan)
        mine = [qid for number, qid in enumerate(sorted(plan.by_qid)) if number % part[1] == part[0] - 1]
        wanted = [qid for qid in mine if not (work / f"{qid}.json").is_file()]
        if len(wanted) < len(mine):
            say(f"{out}: going on; {len(mine) - len(wanted)} of {len(mine)} examples are finished already")
        tasks = [plan.by_qid[qid] for qid in wanted]
        asked = StoreUse()
        ways = _Ways(strict_fill, recount)
        _prepare(materials, tasks)
        if cluster is None:
            building = _built(tasks, sources, materials, work, jobs, ways)
        else:
            building = _built_elsewhere(cluster, tasks, sources, materials, work, ways)
        with Progress("examples built", len(tasks)) as progress, closing(building):
            for use in building:
                progress.advance()
                asked += use
        missing = sum(not (work / f"{qid}.json").is_file() for qid in plan.by_qid)
        manifest = None if missing else put_together(out, read_plan(work / PLAN_NAME), [work], clock)
        return Produced(len(plan.by_qid), len(wanted), len(mine) - len(wanted), missing, manifest, asked)


def _prepare(materials: Materials, tasks: Sequence[Settings]) -> None:
    """Warn of slow tokenizers, and count the corpora that are about to be read from end to end."""
    for message in slow_tokenizers(materials.tokenizers):
        say(message)
    tokenizers = adding_tokenizers(materials.tokenizers)
    if tokenizers is not None:
        wanted: Counter[str] = Counter()
        for task in tasks:
            wanted[task.distractor_type] += task.context_length
        count_corpora(materials.corpora, tokenizers, wanted)


def _finished(out: Path, settings: ListSettings, materials: Materials, skip_impossible: bool) -> Manifest | None:
    """Return the manifest of a folder that holds this very list, finished; what is impossible is not measured again.

    Raises UsageFault when it holds another list. One from which cells were left out is this list only when they may be.
    """
    if not (out / MANIFEST_NAME).exists():
        return None
    manifest = Manifest.read(out, BENCH_SCHEMA)
    plan = manifest.content.get("plan")
    wanted = {
        "generator_version": GENERATOR_VERSION,
        "list": settings.to_json(),
        "inputs": inputs_of(materials),
    }
    if not isinstance(plan, Mapping) or any(plan.get(name) != value for name, value in wanted.items()):
        raise _holds_another(out)
    if plan.get("left_out") and not skip_impossible:
        raise _holds_another(out)
    return manifest


def _begin(work: Path, plan: Plan) -> None:
    work.mkdir(exist_ok=True)
    path = work / PLAN_NAME
    if path.exists():
        if read_plan(path)["content"] != plan.content:
            raise _holds_another(work.parent)
        return
    with whole_file(path) as stream:
        stream.write(json_document(plan.to_json()))


def _refuse_another(out: Path, content: Mapping[str, Any]) -> None:
    """Raise UsageFault when a folder holds a finished list, or pieces of one, that is not this one."""
    plan = out / WORK_NAME / PLAN_NAME
    if (out / MANIFEST_NAME).exists() and Manifest.read(out, BENCH_SCHEMA).content.get("plan") != content:
        raise _holds_another(out)
    if plan.exists() and read_plan(plan)["content"] != content:
        raise _holds_another(out)


def _holds_another(out: Path) -> UsageFault:
    return UsageFault(
        f"{out}: holds the examples of other settings or inputs", remedy="choose another --out, or remove the folder"
    )


def _built(
    tasks: Sequence[Settings],
    sources: Sources,
    materials: Materials,
    work: Path,
    jobs: int,
    ways: _Ways,
) -> Generator[StoreUse]:
    """Yield what each example asked of the store when it is on disk, from this process or from spawned ones."""
    if jobs <= 1 or len(tasks) <= 1:
        builder = ExampleBuilder(materials, strict_fill=ways.strict_fill, recount=ways.recount)
        for settings in tasks:
            yield _build(builder, settings, work)
        return
    start = (sources, materials.corpora, work, ways)
    with Workers(min(jobs, len(tasks)), _start_worker, start, kept="finished examples are kept") as workers:
        for future in as_completed([workers.submit(_work, settings) for settings in tasks]):
            yield future.result()


def _built_elsewhere(
    cluster: SparkCluster, tasks: Sequence[Settings], sources: Sources, materials: Materials, work: Path, ways: _Ways
) -> Generator[StoreUse]:
    """Yield what each example asked of the store when it has come from the cluster and is on disk."""
    pieces = build_on_spark(cluster, tasks, sources, materials, strict_fill=ways.strict_fill, recount=ways.recount)
    with closing(pieces):
        for piece in pieces:
            write_piece_bytes(piece.qid, piece.content, work)
            yield piece.use


@dataclass
class _Worker:
    """What a worker process keeps from task to task."""

    builder: ExampleBuilder
    work: Path
    stack: ExitStack = field(default_factory=ExitStack)


_worker: _Worker | GniahError | None = None


def _start_worker(sources: Sources, corpora: Mapping[str, Corpus], work: Path, ways: _Ways) -> None:
    global _worker
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the other cores have workers of their own
    stack = ExitStack()
    try:
        builder = ExampleBuilder(sources.open(stack, corpora), strict_fill=ways.strict_fill, recount=ways.recount)
        _worker = _Worker(builder, work, stack)
    except GniahError as error:
        _worker = error


def _work(settings: Settings) -> StoreUse:
    if not isinstance(_worker, _Worker):
        raise _worker or GniahError("a worker process did not start")
    return _build(_worker.builder, settings, _worker.work)


def _build(builder: ExampleBuilder, settings: Settings, work: Path) -> StoreUse:
    """Build one example and write it; return what it asked of the store."""
    before = builder.neighbourhoods.use
    write_piece(builder.build(settings), work)
    return builder.neighbourhoods.use - before


def merge(parts: Sequence[Path], out: Path) -> Produced:
    """Put together what several calls with `--part` built, perhaps on several machines.

    Raises InputError when the parts are of different lists, or when examples are missing, and says how many.
    """
    clock = RunClock()
    works = [path / WORK_NAME for path in parts]
    for path, work in zip(parts, works, strict=True):
        if not (work / PLAN_NAME).is_file():
            raise InputError(f"{path}: holds no part of a list", remedy="give the --out of gniah-gen examples --part")
    plans = [read_plan(work / PLAN_NAME) for work in works]
    for path, plan in zip(parts, plans, strict=True):
        if plan["content"] != plans[0]["content"]:
            raise InputError(f"{path}: is a part of another list than {parts[0]}", remedy="merge parts of one list")
    with locked_folder(out):
        clear_leftovers(out)
        _refuse_another(out, plans[0]["content"])
        manifest = put_together(out, plans[0], works, clock)
    total = len({slot["qid"] for slot in plans[0]["slots"]})
    return Produced(total, 0, total, 0, manifest)


__all__ = ["BENCH_SCHEMA", "PLAN_NAME", "WORK_NAME", "Produced", "Sources", "build_examples", "merge", "produce"]
