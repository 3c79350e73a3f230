"""Looking after the pool of a run folder: checking it line by line, putting its files together, and giving it out.

A record says all that its key is made of, so a key can be checked without the prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from gniah.evaluator.pool import POOL_NAME, Notice, held_pool, pool_files
from gniah.evaluator.results import escaped
from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.files import (
    json_document,
    json_line,
    machine_trouble,
    parse_object,
    read_json_lines,
    whole_file,
)
from gniah.records.responses import Response, effort_of, request_key, settled

INFERENCE_SCHEMA = "gniah/inference/1"
LIST_NAME = "experiment.jsonl"


@dataclass(slots=True)
class ModelPart:
    """What a pool holds of one model with one set of parameters. `cost` is in US dollars; unknown ones are counted."""

    model: str
    parameters: Mapping[str, Any]
    base_address: str | None
    complete: int = 0
    cut: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    perhaps: Decimal = Decimal(0)

    @property
    def effort(self) -> str:
        """Return the effort that was asked for, `none` without one."""
        return effort_of(self.parameters)


@dataclass(slots=True)
class PoolReport:
    """What checking a pool found. `wrong` names each damaged line with what is wrong with it."""

    files: int = 0
    lines: int = 0
    models: list[ModelPart] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    cut_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the report as an object."""
        return {
            "files": self.files,
            "lines": self.lines,
            "wrong": self.wrong,
            "cut_bytes": self.cut_bytes,
            "models": [
                {
                    "model": one.model,
                    "base_address": one.base_address,
                    "parameters": dict(one.parameters),
                    "complete": one.complete,
                    "prompt_cut": one.cut,
                    "failed": dict(sorted(one.failed.items())),
                    "duplicates": one.duplicates,
                    "cost": f"{one.cost:f}",
                    "unpriced": one.unpriced,
                    "perhaps": f"{one.perhaps:f}",
                }
                for one in self.models
            ],
        }


def check_pool(folder: Path) -> PoolReport:
    """Read every line of a pool, whatever is wrong with others, and say what it holds. Nothing is changed.

    A run may be at work: a last line without its end is counted in `cut_bytes`, and is no damage. Raises InputError
    when there is no pool.
    """
    paths = pool_files(folder)
    if not paths:
        raise InputError(f"{folder / POOL_NAME}: no such file", remedy="give the folder that gniah-eval run wrote")
    report = PoolReport(files=len(paths))
    parts: dict[str, ModelPart] = {}
    done: set[str] = set()
    for path in paths:
        for where, line in _lines(path, report):
            response = _checked(where, line, report)
            if response is not None:
                _add(parts, response, done)
    report.models = [parts[name] for name in sorted(parts, key=lambda name: (parts[name].model, parts[name].effort))]
    return report


def _lines(path: Path, report: PoolReport) -> Iterator[tuple[str, bytes]]:
    with machine_trouble(path), path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                report.cut_bytes += len(line)
                return
            report.lines += 1
            yield f"{path}:{number}", line


def _checked(where: str, line: bytes, report: PoolReport) -> Response | None:
    """Return the response of a line, or None with a word in the report when it is none."""
    try:
        response = Response.from_json(parse_object(line, where), where)
    except InputError as error:
        report.wrong.append(error.message)
        return None
    key = request_key(
        response.model, response.base_address, response.parameters, response.prompt_sha256, response.repeat
    )
    if key != response.key:
        report.wrong.append(f"{where}: its key is not that of what it says was asked")
    return response


def _add(parts: dict[str, ModelPart], response: Response, done: set[str]) -> None:
    name = digest([response.model, response.base_address, settled(response.parameters)])
    part = parts.setdefault(name, ModelPart(response.model, response.parameters, response.base_address))
    if response.error is not None:
        part.failed[response.error_kind or "unnamed"] += 1
    elif response.prompt_cut:
        part.cut += 1
    elif response.key in done:
        part.duplicates += 1
    else:
        done.add(response.key)
        part.complete += 1
    call = response.call
    if call is None:
        return
    part.perhaps += Decimal(call.perhaps_cost or 0)
    if response.error is None:
        part.cost += Decimal(call.cost or 0)
        part.unpriced += call.cost is None


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a line of a pool stands, and what is needed of it to choose and to sort."""

    path: Path
    offset: int
    length: int
    key: str
    qid: str
    repeat: int
    group: str
    complete: bool
    cost: Decimal

    def read(self) -> Response:
        with machine_trouble(self.path), self.path.open("rb") as stream:
            stream.seek(self.offset)
            line = stream.read(self.length)
        return Response.from_json(parse_object(line, str(self.path)), str(self.path))


@dataclass(slots=True)
class _Kept:
    """The lines of a pool that are kept, in order; what others of their keys cost; how many lines there were."""

    lines: list[_Line] = field(default_factory=list)
    costs: dict[str, Decimal] = field(default_factory=dict)
    groups: dict[str, Response] = field(default_factory=dict)
    total: int = 0


def compact(folder: Path, notice: Notice) -> tuple[int, int]:
    """Put all files of a pool together: of each request its first complete answer, else its last failure.

    Return how many lines there were and how many are left. What attempts cost stays told: the costs of what is left
    out are added to the `perhaps_cost` of what is kept. The new file is whole before an old one goes. Raises
    InputError for a damaged line, BusyError when a run is at work.
    """
    with held_pool(folder, notice) as paths:
        kept = _kept(paths)
        with whole_file(folder / POOL_NAME) as stream:
            for line in kept.lines:
                stream.write(json_line(_with_costs(line.read(), kept.costs.get(line.key)).to_json()))
        for path in paths:
            if path.name != POOL_NAME:
                with machine_trouble(path):
                    path.unlink()
    return kept.total, len(kept.lines)


def _kept(paths: Iterable[Path]) -> _Kept:
    found = _Kept()
    best: dict[str, _Line] = {}
    for path in paths:
        for line in _placed(path, found.groups):
            found.total += 1
            other = best.get(line.key)
            loser = line
            if other is None or not other.complete:
                best[line.key], loser = line, other or line
            if other is not None and loser.cost:
                found.costs[line.key] = found.costs.get(line.key, Decimal(0)) + loser.cost
    order = {path: number for number, path in enumerate(paths)}
    found.lines = sorted(best.values(), key=lambda line: (order[line.path], line.offset))
    return found


def _placed(path: Path, groups: dict[str, Response]) -> Iterator[_Line]:
    """Yield the lines of a file; of each model with its parameters one response, without texts, goes to `groups`."""
    offset = 0
    with machine_trouble(path), path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            where = f"{path}:{number}"
            one = Response.from_json(parse_object(raw, where), where)
            group = digest([one.model, one.base_address, settled(one.parameters)])
            groups.setdefault(group, replace(one, text="", reasoning=None))
            yield _Line(path, offset, len(raw), one.key, one.qid, one.repeat, group, one.complete, _cost(one))
            offset += len(raw)


def _cost(response: Response) -> Decimal:
    call = response.call
    return Decimal(0) if call is None else Decimal(call.cost or 0) + Decimal(call.perhaps_cost or 0)


def _with_costs(response: Response, more: Decimal | None) -> Response:
    if more is None or response.call is None:
        return response
    perhaps = Decimal(response.call.perhaps_cost or 0) + more
    return replace(response, call=replace(response.call, perhaps_cost=f"{perhaps:f}"))


def export_lists(folder: Path, bench: Path, notice: Notice) -> list[Path]:
    """Write, beside each list of a benchmark, the responses to its examples, as the dataset card lays them out.

    The files are `inference/reasoning_effort=<effort>/model=<model>.json` in the folder of the list, whole or not at
    all; return their paths. Raises InputError when the benchmark has no list or the folder no pool.
    """
    lists = sorted(bench.glob(f"**/{LIST_NAME}"))
    if not lists:
        raise InputError(f"{bench}: holds no {LIST_NAME}", remedy="give the folder that gniah-gen examples wrote")
    written: list[Path] = []
    with held_pool(folder, notice) as paths:
        kept = _kept(paths)
        by_qid: dict[str, list[_Line]] = {}
        for line in kept.lines:
            by_qid.setdefault(line.qid, []).append(line)
        for path in lists:
            slots = [(value.get("slot"), str(value.get("qid"))) for _, value in read_json_lines(path)]
            written += _export(path.parent, slots, by_qid, kept.groups)
    return written


def _export(
    place: Path, slots: Sequence[tuple[Any, str]], by_qid: Mapping[str, Sequence[_Line]], groups: Mapping[str, Response]
) -> Iterator[Path]:
    mine: dict[str, list[tuple[Any, _Line]]] = {}
    for slot, qid in slots:
        for line in by_qid.get(qid, ()):
            mine.setdefault(line.group, []).append((slot, line))
    names = Counter((groups[name].model, effort_of(groups[name].parameters)) for name in mine)
    for name in sorted(mine):
        head = groups[name]
        effort = effort_of(head.parameters)
        suffix = f".settings={name[:12]}" if names[head.model, effort] > 1 else ""
        path = place / "inference" / f"reasoning_effort={escaped(effort)}" / f"model={escaped(head.model)}{suffix}.json"
        value = {
            "schema": INFERENCE_SCHEMA,
            "model": head.model,
            "base_address": head.base_address,
            "reasoning_effort": effort,
            "parameters": dict(head.parameters),
        }
        ordered = sorted(mine[name], key=lambda item: (item[0], item[1].repeat, item[1].offset))
        with whole_file(path) as stream:
            stream.write(json_document(value).removesuffix(b"\n}\n") + b',\n "responses": [')
            for number, (slot, line) in enumerate(ordered):
                stream.write(b",\n  " if number else b"\n  ")
                stream.write(json_line({"slot": slot, **line.read().to_json()}).rstrip(b"\n"))
            stream.write(b"\n ]\n}\n")
        yield path
