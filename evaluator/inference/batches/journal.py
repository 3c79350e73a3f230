"""`batches.jsonl` of a run folder: what was handed to a provider's batch interface, and what became of it.

Each line is one event of one batch (`gniah/batch/1`), appended and flushed before the next step. The first one of a
batch says all that it asks, so that nothing else is needed to collect it. A crash can only cut the last line.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from gniah.evaluator.pool import append_line, mend
from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.files import json_line, locked_name, machine_trouble, read_json_lines, sync_folder
from gniah.records.manifests import check_schema

SCHEMA = "gniah/batch/1"
JOURNAL_NAME = "batches.jsonl"
FOLDER_NAME = "batches"
REQUESTS = "requests"
# The events of a batch, which are also the steps it goes through.
PLANNED, UPLOADED, SUBMITTING, SUBMITTED, SEEN, COLLECTED, DROPPED = (
    "planned",
    "uploaded",
    "submitting",
    "submitted",
    "seen",
    "collected",
    "dropped",
)
_ENDED = frozenset({COLLECTED, DROPPED})
_KEY_PART, _ID_PART = 40, 16

Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a batch. `most` is the most that it can cost, in US dollars, None when that is not known."""

    custom_id: str
    key: str
    qid: str
    repeat: int
    prompt_sha256: str
    counted_tokens: int | None
    most: Decimal | None

    def to_json(self) -> dict[str, Any]:
        """Return the request as an object of the journal."""
        return {
            "custom_id": self.custom_id,
            "key": self.key,
            "qid": self.qid,
            "repeat": self.repeat,
            "prompt_sha256": self.prompt_sha256,
            "counted_tokens": self.counted_tokens,
            "most": None if self.most is None else f"{self.most:f}",
        }


@dataclass(slots=True)
class Batch:
    """One batch, as the journal has it.

    `id` is ours. `model` is the model as `batches.planning` wrote it. `step` is the last event but `seen`. `state` and
    `counts` are the provider's words. `most` is the most that all requests can cost. `cost` is what the collected
    answers cost, in US dollars; `unpriced` of them have an unknown cost. `let_go` tells that a user gave it up, so
    that it may have cost anything. `strange` results were told to the user, and stay in their files.
    """

    id: str
    at: str
    shape: str
    address: str
    model: Mapping[str, Any]
    requests: tuple[Asked, ...]
    bytes: int
    sha256: str
    step: str = PLANNED
    file_id: str | None = None
    provider_id: str | None = None
    submitting_at: str | None = None
    submitted_at: str | None = None
    state: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None
    answered: int = 0
    failed: int = 0
    cut: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    strange: int = 0
    let_go: bool = False

    @property
    def open(self) -> bool:
        """Whether its requests may still be answered, or are about to be sent."""
        return self.step not in _ENDED

    @property
    def short(self) -> str:
        """Return the beginning of its name, as people see it."""
        return self.id[:12]

    @property
    def most(self) -> Decimal | None:
        """Return the most that it can cost, None when that is not known."""
        known = [asked.most for asked in self.requests if asked.most is not None]
        return sum(known, Decimal(0)) if len(known) == len(self.requests) else None


def custom_id(key: str, batch: str) -> str:
    """Return a request's name inside a batch: 57 letters, digits and a hyphen, where providers take 64 at most."""
    return f"{key[:_KEY_PART]}-{batch[:_ID_PART]}"


def now() -> str:
    """Return the time in UTC, as the journal has it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


class Journal:
    """The open journal of a run folder. Get it from `open_journal`. `batches` are by our name, in their order."""

    def __init__(self, folder: Path, batches: dict[str, Batch]) -> None:
        self.folder = folder
        self.batches = batches

    @property
    def path(self) -> Path:
        """Return the journal's file."""
        return self.folder / JOURNAL_NAME

    def open_batches(self) -> list[Batch]:
        """Return the batches that have not ended, in their order."""
        return [batch for batch in self.batches.values() if batch.open]

    def input_path(self, batch: str) -> Path:
        """Return where a batch's requests stand until they are submitted."""
        return self.folder / FOLDER_NAME / f"{batch[:_ID_PART]}.{REQUESTS}"

    def result_path(self, batch: str, name: str) -> Path:
        """Return where a batch's results stand until they are in the pool."""
        return self.folder / FOLDER_NAME / f"{batch[:_ID_PART]}.{name}"

    def new_id(self) -> str:
        """Return a name for a batch that no other has, in this folder or in another one, of this machine or another."""
        place = [str(self.folder.absolute()), socket.gethostname(), str(os.getpid())]
        return digest(["gniah-batch/1", place, str(time.time_ns()), len(self.batches)])

    def plan(self, batch: Batch) -> None:
        """Note a batch that is about to be submitted."""
        self._write(batch.id, PLANNED, at=batch.at, **_planned(batch))
        self.batches[batch.id] = batch

    def note(self, batch: Batch, event: str, **facts: Any) -> None:
        """Note what happened to a batch; when this returns, it is on disk."""
        at = now()
        self._write(batch.id, event, at=at, **facts)
        _apply(batch, event, {"at": at, **facts})

    def _write(self, batch: str, event: str, **facts: Any) -> None:
        line = json_line({"schema": SCHEMA, "batch": batch, "event": event, **facts})
        with machine_trouble(self.path):
            new = not self.path.exists()
            with self.path.open("ab", buffering=0) as stream:
                append_line(stream, line)
                os.fsync(stream.fileno())
            if new:
                sync_folder(self.folder)


@contextlib.contextmanager
def open_journal(folder: Path, notice: Notice) -> Iterator[Journal]:
    """Give the journal of a run folder for appending, mended after a crash.

    Raises BusyError when another process works on the batches of the folder, InputError when a line is damaged.
    """
    with machine_trouble(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked_name(folder, FOLDER_NAME, f"{folder}: the batches"):
        lost = mend(folder / JOURNAL_NAME, lambda _: None)
        if lost:
            notice(f"{folder / JOURNAL_NAME}: its last line was cut, {lost} bytes taken off")
        journal = Journal(folder, read_batches(folder))
        _clear(journal)
        yield journal


def _clear(journal: Journal) -> None:
    """Remove the files that a killed process left behind: unfinished ones, and those of batches that are done with."""
    folder = journal.folder / FOLDER_NAME
    batches = {batch.id[:_ID_PART]: batch for batch in journal.batches.values()}
    with machine_trouble(folder):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            name, _, kind = path.name.partition(".")
            batch = batches.get(name)
            if kind == REQUESTS:
                wanted = batch is not None and batch.step in (PLANNED, UPLOADED, SUBMITTING)
            else:
                wanted = batch is not None and (batch.open or batch.strange > 0)
            if not wanted:
                path.unlink()


def read_batches(folder: Path) -> dict[str, Batch]:
    """Return the batches of a run folder by our name for them, in their order; a writer may be at work.

    Raises InputError when a line is damaged.
    """
    path = folder / JOURNAL_NAME
    found: dict[str, Batch] = {}
    if not path.exists():
        return found
    with machine_trouble(path), path.open("rb") as stream:
        end = sum(len(line) for line in stream if line.endswith(b"\n"))
    for number, value in read_json_lines(path, end):
        where = f"{path}:{number}"
        check_schema(value.get("schema"), SCHEMA, where)
        try:
            name, event = str(value["batch"]), value["event"]
            if event == PLANNED:
                found[name] = _batch(name, value)
            else:
                _apply(found[name], event, value)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise InputError(
                f"{where}: no event of a batch: {type(error).__name__} {error}",
                remedy="restore the file from a copy; without it, batches at the provider cannot be collected",
            ) from None
    return found


def aside_of(batches: Iterable[Batch]) -> Decimal:
    """Return the most that those of these batches that were not collected can cost, as far as that is known."""
    left = [batch for batch in batches if batch.open or batch.let_go]
    return sum((asked.most or Decimal(0) for batch in left for asked in batch.requests), Decimal(0))


def _planned(batch: Batch) -> dict[str, Any]:
    return {
        "shape": batch.shape,
        "address": batch.address,
        "model": dict(batch.model),
        "bytes": batch.bytes,
        "sha256": batch.sha256,
        "requests": [asked.to_json() for asked in batch.requests],
    }


def _batch(name: str, value: Mapping[str, Any]) -> Batch:
    requests = tuple(
        Asked(
            custom_id=one["custom_id"],
            key=one["key"],
            qid=one["qid"],
            repeat=one["repeat"],
            prompt_sha256=one["prompt_sha256"],
            counted_tokens=one["counted_tokens"],
            most=None if one["most"] is None else Decimal(one["most"]),
        )
        for one in value["requests"]
    )
    return Batch(
        id=name,
        at=value["at"],
        shape=value["shape"],
        address=value["address"],
        model=value["model"],
        requests=requests,
        bytes=value["bytes"],
        sha256=value["sha256"],
    )


def _apply(batch: Batch, event: str, facts: Mapping[str, Any]) -> None:
    """Change a batch by an event."""
    if event == UPLOADED:
        batch.file_id = facts["file_id"]
    elif event == SUBMITTING:
        batch.submitting_at = batch.submitting_at or facts["at"]
    elif event == SUBMITTED:
        batch.provider_id, batch.submitted_at = facts["provider_id"], facts["at"]
    elif event == COLLECTED:
        batch.answered, batch.failed, batch.cut = facts["answered"], facts["failed"], facts["cut"]
        batch.cost, batch.unpriced = Decimal(facts["cost"]), facts["unpriced"]
        batch.strange = facts["strange"]
    elif event not in (SEEN, DROPPED):
        raise ValueError(event)
    batch.state = facts.get("state", batch.state)
    batch.counts = facts.get("counts", batch.counts)
    batch.reason = facts.get("reason", batch.reason)
    batch.let_go = facts.get("let_go", batch.let_go)
    if event != SEEN:
        batch.step = event
