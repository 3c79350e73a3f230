"""Finished examples put together as the published files, in the order of their list."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gniah.generator.graphniah.building import Built
from gniah.generator.graphniah.experiments import LIST_SCHEMA, task_name
from gniah.records.errors import InputError
from gniah.records.examples import Example
from gniah.records.files import json_document, json_line, read_json_lines, remove_leftovers, whole_file
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock

BENCH_SCHEMA = "gniah/bench/1"
WORK_NAME = ".work"


_PUBLISHED = ("pool", "pool.index", "examples")


def clear_leftovers(out: Path) -> None:
    """Remove what a process left half-written that was killed while it put a benchmark together.

    Call it under the folder's lock only.
    """
    for name in (*(f"{name}.jsonl" for name in _PUBLISHED), MANIFEST_NAME):
        remove_leftovers(out / name)


def piece_of(built: Built) -> bytes:
    """Return a finished example as a piece: its pool record on one line, its published form on the next."""
    return json_line(built.record.to_json()) + json_line(built.example.to_json())


def write_piece(built: Built, work: Path) -> str:
    """Write a finished example into a working folder."""
    write_piece_bytes(built.example.qid, piece_of(built), work)
    return built.example.qid


def write_piece_bytes(qid: str, content: bytes, work: Path) -> None:
    """Write a piece that came from elsewhere into a working folder."""
    with whole_file(work / f"{qid}.json") as stream:
        stream.write(content)


def put_together(out: Path, plan: Mapping[str, Any], works: Sequence[Path], clock: RunClock) -> Manifest:
    """Write the published files from finished pieces, in the order of the list; return the manifest.

    The manifest comes last: it says that the folder is complete. The pieces are removed then.
    """
    uses = uses_of(plan)
    pieces = _find_pieces(uses, works)
    summary = _Summary()
    hashes = {name: hashlib.sha256() for name in ("pool", "examples")}
    with ExitStack() as stack:
        files = {name: stack.enter_context(whole_file(out / f"{name}.jsonl")) for name in _PUBLISHED}
        offset = 0
        for qid, experiments in uses.items():
            line, example, record = _read_piece(pieces[qid])
            published = json_line(example.with_experiments(tuple(experiments)).to_json())
            files["pool"].write(line)
            files["examples"].write(published)
            files["pool.index"].write(json_line({"qid": qid, "offset": offset, "length": len(line)}))
            offset += len(line)
            hashes["pool"].update(line)
            hashes["examples"].update(published)
            summary.add(example, record)
        path = out / str(plan["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
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


def uses_of(plan: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return for each qid of a plan, in the order of first use, where it is used: its `experiments`."""
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


def _read_piece(path: Path) -> tuple[bytes, Example, Mapping[str, Any]]:
    lines = [value for _, value in read_json_lines(path)]
    if len(lines) != 2:
        raise InputError(f"{path}: has {len(lines)} lines, and an example has 2", remedy="remove it, and build again")
    record, published = lines
    return json_line(record), Example.from_json(published, str(path)), record


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
