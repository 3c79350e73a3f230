"""Many examples: planned, built by any number of processes or machines, and put together as the published files.

Each finished example is a file of its own in `.work`, named by its qid, on disk before the next begins. A qid covers all
that an example is a function of, so what is found there is never wrong, whoever built it and when: that is how a
stopped run goes on, how parts are merged, and why the result has the same bytes for any number of jobs.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gniah.cypher import open_store
from gniah.generator.corpora import Corpus, FolderCorpus
from gniah.generator.graphniah.building import (
    COMPONENTS_TYPE,
    GENERATOR_VERSION,
    Built,
    ExampleBuilder,
    Materials,
)
from gniah.generator.graphniah.experiments import LIST_SCHEMA, ListSettings, slots, task_name, varied_value
from gniah.generator.graphniah.pool_files import PathPool, pool_folder
from gniah.generator.graphniah.possibility import Possibility, refuse
from gniah.generator.graphniah.prompts import load_templates
from gniah.generator.tokenizers import load_tokenizers
from gniah.records.canonical import digest
from gniah.records.command_line import Progress, say
from gniah.records.errors import EnvironmentFault, GniahError, InputError, UsageFault
from gniah.records.examples import Example
from gniah.records.files import json_document, json_line, locked_folder, read_json, whole_file
from gniah.records.graphniah.settings import Settings, distractor_in_files
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock, check_schema

BENCH_SCHEMA = "gniah/bench/1"
PLAN_SCHEMA = "gniah/plan/1"
WORK_NAME = ".work"
PLAN_NAME = "plan.json"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the materials are. `corpora` maps a distractor type in files to a folder of texts."""

    store: str
    paths: Path
    corpora: Mapping[str, Path]
    tokenizers: tuple[str, ...]
    templates: str
    cutoff_date: str
    depths: tuple[int, ...]

    def open(self, stack: ExitStack, corpora: Mapping[str, Corpus] | None = None) -> Materials:
        """Open the materials until the stack is closed; corpora that are open already are taken over.

        Raises InputError when they do not belong together.
        """
        store = stack.enter_context(open_store(self.store))
        pools = {}
        for depth in self.depths:
            folder = pool_folder(self.paths, self.cutoff_date, depth)
            pool = pools[depth] = PathPool.read(folder)
            if pool.graph != store.manifest.digest:
                raise InputError(
                    f"{folder}: these paths were sampled from another graph than {self.store} holds",
                    remedy="sample them from this store with gniah-gen paths",
                )
        return Materials(
            store,
            pools,
            corpora or {name: open_corpus(folder) for name, folder in self.corpora.items()},
            load_tokenizers(self.tokenizers),
            load_templates(self.templates),
        )


def open_corpus(folder: Path) -> Corpus:
    """Open a folder of source files as a corpus."""
    return FolderCorpus(folder)


@dataclass(frozen=True)
class Plan:
    """What a list consists of: a qid for each slot, and the settings of each distinct example.

    A slot that was left out as impossible has no qid; `left_out` counts them by reason.
    """

    settings: ListSettings
    inputs: Mapping[str, Any]
    qids: tuple[str | None, ...]
    by_qid: Mapping[str, Settings]
    left_out: Mapping[str, int]

    @property
    def content(self) -> dict[str, Any]:
        """Return the plan as the content of a manifest."""
        return {
            "generator_version": GENERATOR_VERSION,
            "list": self.settings.to_json(),
            "inputs": dict(self.inputs),
            "slots": len(self.qids),
            "qids": digest(self.qids),
            "left_out": dict(self.left_out),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a file: everything that putting the examples together needs."""
        return {
            "schema": PLAN_SCHEMA,
            "content": self.content,
            "path": self.settings.path,
            "slots": [
                {"slot": slot, "qid": qid, "value": varied_value(self.by_qid[qid], self.settings.vary)}
                for slot, qid in enumerate(self.qids)
                if qid is not None
            ],
        }


def make_plan(settings: ListSettings, materials: Materials, *, skip_impossible: bool = False) -> Plan:
    """Return the plan of a list: a pure function of its settings and of the materials' hashes.

    Raises ImpossibleRequest that names the cells the graph cannot give, unless they are to be left out.
    """
    possibility = Possibility(materials.pools)
    qids: list[str | None] = []
    by_qid: dict[str, Settings] = {}
    impossible = []
    for slot in slots(settings):
        trouble = possibility.of(slot)
        if trouble is not None:
            impossible.append(trouble)
            qids.append(None)
            continue
        qid = materials.qid(slot)
        qids.append(qid)
        by_qid.setdefault(qid, slot)
    if not skip_impossible or not by_qid:
        refuse(impossible)
    left_out = Counter(f"{trouble.cell}: {trouble.reason}" for trouble in impossible)
    inputs = {
        "graph": materials.store.manifest.digest,
        "paths": {str(depth): pool.digest for depth, pool in sorted(materials.pools.items())},
        "corpora": {name: corpus.digest for name, corpus in sorted(materials.corpora.items())},
        "tokenizers": [{"label": item.label, "digest": item.digest} for item in materials.tokenizers],
        "templates": materials.templates.digest,
    }
    return Plan(settings, inputs, tuple(qids), by_qid, dict(sorted(left_out.items())))


@dataclass(frozen=True, slots=True)
class Produced:
    """What a call came to: examples in the list, how many were built now, found finished, and are still missing."""

    total: int
    built: int
    found: int
    missing: int
    manifest: Manifest | None = None


def produce(
    settings: ListSettings,
    sources: Sources,
    out: Path,
    *,
    jobs: int = 1,
    part: tuple[int, int] = (1, 1),
    strict_fill: bool = False,
    skip_impossible: bool = False,
) -> Produced:
    """Build the examples of a list into a folder, or the part `i` of `n` of them; put them together when all are there.

    What an earlier call finished is not built again. Raises UsageFault when the folder holds another list, and
    ImpossibleRequest, before the first example is built, for cells that the graph cannot give.
    """
    clock = RunClock()
    with locked_folder(out), ExitStack() as stack:
        materials = sources.open(stack)
        plan = make_plan(settings, materials, skip_impossible=skip_impossible)
        finished = _finished(out, plan)
        if finished is not None:
            return Produced(len(plan.by_qid), 0, len(plan.by_qid), 0, finished)
        work = out / WORK_NAME
        _begin(work, plan)
        mine = [qid for number, qid in enumerate(sorted(plan.by_qid)) if number % part[1] == part[0] - 1]
        wanted = [qid for qid in mine if not (work / f"{qid}.json").is_file()]
        if len(wanted) < len(mine):
            say(f"{out}: going on; {len(mine) - len(wanted)} of {len(mine)} examples are finished already")
        tasks = [plan.by_qid[qid] for qid in wanted]
        with Progress("examples built", len(tasks)) as progress:
            for _ in _built(tasks, sources, materials, work, jobs, strict_fill):
                progress.advance()
        missing = sum(not (work / f"{qid}.json").is_file() for qid in plan.by_qid)
        manifest = None if missing else put_together(out, read_plan(work / PLAN_NAME), [work], clock)
        return Produced(len(plan.by_qid), len(wanted), len(mine) - len(wanted), missing, manifest)


def _finished(out: Path, plan: Plan) -> Manifest | None:
    if not (out / MANIFEST_NAME).exists():
        return None
    manifest = Manifest.read(out, BENCH_SCHEMA)
    if manifest.content.get("plan") == plan.content:
        return manifest
    raise _holds_another(out)


def _begin(work: Path, plan: Plan) -> None:
    work.mkdir(exist_ok=True)
    path = work / PLAN_NAME
    if path.exists():
        if read_plan(path)["content"] != plan.content:
            raise _holds_another(work.parent)
        return
    with whole_file(path) as stream:
        stream.write(json_document(plan.to_json()))


def _holds_another(out: Path) -> UsageFault:
    return UsageFault(
        f"{out}: holds the examples of other settings or inputs", remedy="choose another --out, or remove the folder"
    )


def read_plan(path: Path) -> dict[str, Any]:
    """Read a plan file. Raises InputError."""
    value = read_json(path)
    check_schema(value.get("schema"), PLAN_SCHEMA, str(path))
    return value


def _built(
    tasks: Sequence[Settings],
    sources: Sources,
    materials: Materials,
    work: Path,
    jobs: int,
    strict_fill: bool,
) -> Iterator[str]:
    """Yield the qid of each example when it is on disk, from this process or from spawned ones."""
    if jobs <= 1 or len(tasks) <= 1:
        builder = ExampleBuilder(materials, strict_fill=strict_fill)
        for settings in tasks:
            yield _write_piece(builder.build(settings), work)
        return
    context = multiprocessing.get_context("spawn")
    try:
        start = (sources, materials.corpora, work, strict_fill)
        with ProcessPoolExecutor(min(jobs, len(tasks)), context, _start_worker, start) as executor:
            running = [executor.submit(_work, settings) for settings in tasks]
            try:
                for future in as_completed(running):
                    yield future.result()
            except BaseException:
                executor.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool:
        raise EnvironmentFault(
            "a worker process was ended from outside, perhaps for want of memory",
            remedy="run the same command again, with fewer --jobs; finished examples are kept",
        ) from None


@dataclass
class _Worker:
    """What a worker process keeps from task to task."""

    builder: ExampleBuilder
    work: Path
    stack: ExitStack = field(default_factory=ExitStack)


_worker: _Worker | GniahError | None = None


def _start_worker(sources: Sources, corpora: Mapping[str, Corpus], work: Path, strict_fill: bool) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    stack = ExitStack()
    try:
        builder = ExampleBuilder(sources.open(stack, corpora), strict_fill=strict_fill)
        _worker = _Worker(builder, work, stack)
    except GniahError as error:
        _worker = error


def _end_with_parent(parent: int) -> None:
    """End this worker when its parent was killed, so that nothing goes on writing unseen."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _work(settings: Settings) -> str:
    if not isinstance(_worker, _Worker):
        raise _worker or GniahError("a worker process did not start")
    return _write_piece(_worker.builder.build(settings), _worker.work)


def _write_piece(built: Built, work: Path) -> str:
    """Write a finished example: its pool record on one line, its published form on the next."""
    with whole_file(work / f"{built.example.qid}.json") as stream:
        stream.write(json_line(built.record.to_json()))
        stream.write(json_line(built.example.to_json()))
    return built.example.qid


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
        manifest = put_together(out, plans[0], works, clock)
    total = len({slot["qid"] for slot in plans[0]["slots"]})
    return Produced(total, 0, total, 0, manifest)


def put_together(out: Path, plan: Mapping[str, Any], works: Sequence[Path], clock: RunClock) -> Manifest:
    """Write the published files from finished pieces, in the order of the list; return the manifest.

    The manifest comes last: it says that the folder is complete. The pieces are removed then.
    """
    uses = _uses(plan)
    pieces = _find_pieces(uses, works)
    summary = _Summary()
    hashes = {name: hashlib.sha256() for name in ("pool", "examples")}
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(whole_file(out / f"{name}.jsonl")) for name in ("pool", "pool.index", "examples")
        }
        offset = 0
        for qid, experiments in uses.items():
            record, example = _read_piece(pieces[qid])
            published = json_line(example.with_experiments(tuple(experiments)).to_json())
            files["pool"].write(record)
            files["examples"].write(published)
            files["pool.index"].write(json_line({"qid": qid, "offset": offset, "length": len(record)}))
            offset += len(record)
            hashes["pool"].update(record)
            hashes["examples"].update(published)
            summary.add(example, json.loads(record))
        path = out / str(plan["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = stack.enter_context(whole_file(path.with_name(f"{path.name}.settings.json")))
        settings.write(json_document({"schema": LIST_SCHEMA, **plan["content"]}))
        listed = stack.enter_context(whole_file(path))
        for slot in plan["slots"]:
            listed.write(json_line(slot))
    content = {
        "plan": plan["content"],
        "counts": {**summary.counts(), "left out": plan["content"]["left_out"]},
        "values": {name: value.hexdigest() for name, value in hashes.items()},
    }
    manifest = Manifest(BENCH_SCHEMA, content, clock.run("tiktoken"))
    manifest.write(out)
    shutil.rmtree(out / WORK_NAME, ignore_errors=True)
    return manifest


def _uses(plan: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return for each qid, in the order of first use, where it is used."""
    settings = plan["content"]["list"]
    uses: dict[str, list[dict[str, Any]]] = {}
    for slot in plan["slots"]:
        uses.setdefault(slot["qid"], []).append(
            {
                "name": settings["name"],
                "context_length": settings["context_length"],
                "random_seed": settings["seed"],
                "slot": slot["slot"],
                "path": plan["path"],
            }
        )
    return uses


def _find_pieces(qids: Iterable[str], works: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    missing = 0
    for qid in qids:
        place = next((work / f"{qid}.json" for work in works if (work / f"{qid}.json").is_file()), None)
        if place is None:
            missing += 1
        else:
            found[qid] = place
    if missing:
        raise InputError(
            f"{missing} of {missing + len(found)} examples are missing from the parts given",
            remedy="build and give every part",
        )
    return found


def _read_piece(path: Path) -> tuple[bytes, Example]:
    record, _, example = path.read_bytes().partition(b"\n")
    return record + b"\n", Example.from_json(json.loads(example), str(path))


class _Summary:
    """Counts over a list, for the manifest and for the person who made it."""

    def __init__(self) -> None:
        self._tasks: Counter[str] = Counter()
        self._stopped: Counter[str] = Counter()
        self._building: Counter[str] = Counter()
        self._examples = 0

    def add(self, example: Example, record: Mapping[str, Any]) -> None:
        self._examples += 1
        self._tasks[task_name(example.question_type)] += 1
        self._stopped[record["stopped"]] += 1
        building = record["building"]
        self._building["attempts"] += building["attempts"]
        for kind in ("restarts", "refused"):
            for reason, count in building[kind].items():
                self._building[f"{kind}: {reason}"] += count

    def counts(self) -> dict[str, Any]:
        return {
            "examples": self._examples,
            "tasks": dict(sorted(self._tasks.items())),
            "stopped": dict(sorted(self._stopped.items())),
            "building": dict(sorted(self._building.items())),
        }


def corpora_for(distractor_types: Sequence[str], given: Mapping[str, Path]) -> dict[str, Path]:
    """Return the corpus of each distractor type that needs one. Raises UsageFault for one that was not given."""
    found = {}
    for shown in distractor_types:
        stored = distractor_in_files(shown)
        if stored == COMPONENTS_TYPE:
            continue
        if shown not in given:
            raise UsageFault(f"distractors of type {shown} need a corpus", remedy=f"add --corpus {shown}=FOLDER")
        found[stored] = given[shown]
    return found
