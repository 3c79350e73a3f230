"""The pool of a run folder: `inference_pool*.jsonl`, to which every response is appended as soon as it is there.

One response is one line and one write, so a crash can only cut the last line. That line is taken off when the
pool is next opened, and its request is made again; every complete answer before it is found by its request's
key and is never asked for twice. Failures are appended too, so that they can be looked at, but do not count
as done.

Each process that writes has a file to itself, the first one `inference_pool.jsonl`, the next one
`inference_pool.2.jsonl`, and whoever reads takes all of them as one. Two processes may run different models into one
folder; the same model with the same parameters is asked by one of them at a time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from gniah.evaluator.pool_reading import quick_responses
from gniah.records.errors import BusyError, InputError
from gniah.records.files import json_line, locked_folder, locked_name, machine_trouble, sync_folder
from gniah.records.responses import Call, Response

POOL_NAME = "inference_pool.jsonl"
_STEM = "inference_pool"
_CHUNK = 1 << 16

Notice = Callable[[str], None]
T = TypeVar("T")


def _silent(_: str) -> None:
    """Take what nobody wants to hear."""


@dataclass(slots=True)
class Found:
    """What the responses of a pool come to."""

    done: set[str] = field(default_factory=set)
    duplicates: int = 0
    spent: Decimal = Decimal(0)

    def add(self, response: Response) -> None:
        """Count one response."""
        if response.complete:
            self.duplicates += response.key in self.done
            self.done.add(response.key)
        if response.call is not None:
            for cost in (response.call.cost, response.call.perhaps_cost):
                if cost is not None:
                    self.spent += Decimal(cost)


class InferencePool:
    """The open pool of a run folder. Get it from `open_pool`.

    `path` is the file that this process appends to. `done` holds the keys of all complete answers in all files;
    `duplicates` counts further complete answers to one key. `spent` is what all responses that were there when it was
    opened have cost, in US dollars, failed attempts that may have been charged included.
    """

    def __init__(self, path: Path, stream: BinaryIO, there: Found, sync_every: int) -> None:
        self.path = path
        self.done = there.done
        self.duplicates = there.duplicates
        self.spent = there.spent
        self._stream = stream
        self._sync_every = sync_every
        self._unsynced = 0

    def append(self, response: Response) -> None:
        """Write one response as one line.

        A complete answer to a key that has one already is ignored. Raises EnvironmentFault when the disk is
        full; the pool ends with a whole line then too.
        """
        if response.complete and response.key in self.done:
            self.duplicates += 1
            return
        line = json_line(writable(response).to_json())
        with machine_trouble(self.path):
            append_line(self._stream, line)
            self._unsynced += 1
            if self._unsynced >= self._sync_every:
                self.sync()
        if response.complete:
            self.done.add(response.key)

    def append_all(self, responses: Iterable[Response]) -> None:
        """Write responses, and flush them to the disk together."""
        every, self._sync_every = self._sync_every, 1 << 62
        try:
            for response in responses:
                self.append(response)
        finally:
            self._sync_every = every
            with machine_trouble(self.path):
                self.sync()

    def sync(self) -> None:
        """Flush what was appended to the disk."""
        os.fsync(self._stream.fileno())
        self._unsynced = 0


@contextlib.contextmanager
def open_pool(
    folder: Path, notice: Notice = _silent, sync_every: int = 1, claims: Iterable[str] = ()
) -> Iterator[InferencePool]:
    """Give the pool of a run folder, mended after a crash, for appending.

    `notice` is told what was mended; `sync_every` responses are flushed to the disk together. `claims` name what only
    one process may ask at a time. Raises BusyError when another process holds the folder or a claim, and InputError
    when a line before the last is not a response.
    """
    with locked_folder(folder, shared=True), contextlib.ExitStack() as stack:
        for claim in sorted(set(claims)):
            stack.enter_context(locked_name(folder, f"asking.{claim}", f"{folder}: this model"))
        path = stack.enter_context(_own_file(folder))
        mend(path, notice)
        there = Found()
        for response in _responses(folder, path, notice):
            there.add(response)
        if there.duplicates:
            notice(f"{folder}: {there.duplicates} further answers to a request that has one are ignored")
        with machine_trouble(path):
            stream = stack.enter_context(path.open("ab", buffering=0))
            sync_folder(folder)
        pool = InferencePool(path, stream, there, sync_every)
        try:
            yield pool
        finally:
            with machine_trouble(path):
                pool.sync()


@contextlib.contextmanager
def held_responses(folder: Path, notice: Notice = _silent) -> Iterator[Iterator[Response]]:
    """Hold a run folder and give the responses of its pool, mended after a crash.

    Raises InputError when the folder has no pool, BusyError when another process holds it.
    """
    with held_pool(folder, notice) as paths:
        yield itertools.chain.from_iterable(map(quick_responses, paths))


@contextlib.contextmanager
def held_pool(folder: Path, notice: Notice = _silent) -> Iterator[list[Path]]:
    """Hold a run folder and give the files of its pool, mended after a crash. Raises as `held_responses` does."""
    if not pool_files(folder):
        raise InputError(f"{folder / POOL_NAME}: no such file", remedy="give the folder that gniah-eval run wrote")
    with locked_folder(folder):
        paths = pool_files(folder)
        for path in paths:
            mend(path, notice)
        yield paths


def pool_files(folder: Path) -> list[Path]:
    """Return the files of a run folder's pool in the order in which they are read."""
    with machine_trouble(folder):
        found = folder.glob(f"{_STEM}*.jsonl") if folder.is_dir() else ()
        return sorted((path for path in found if path.is_file()), key=_place)


def _place(path: Path) -> tuple[int, str]:
    """Return what pool files are sorted by: the number that writers give, then the name."""
    match = re.fullmatch(rf"{_STEM}(?:\.([0-9]{{1,9}}))?\.jsonl", path.name, re.ASCII)
    return (1 << 32, path.name) if match is None else (int(match[1] or 1), path.name)


@contextlib.contextmanager
def _own_file(folder: Path) -> Iterator[Path]:
    """Hold the first pool file that no other process writes to, and give its path."""
    with contextlib.ExitStack() as stack:
        for number in itertools.count(1):
            path = folder / (POOL_NAME if number == 1 else f"{_STEM}.{number}.jsonl")
            with contextlib.suppress(BusyError):
                stack.enter_context(locked_name(folder, path.name, str(path)))
                break
        yield path


def _responses(folder: Path, own: Path, notice: Notice) -> Iterator[Response]:
    """Yield all responses of a folder, other files mended where no writer is at work."""
    for path in pool_files(folder):
        if path != own:
            with contextlib.suppress(BusyError), locked_name(folder, path.name, str(path)):
                mend(path, notice)
    yield from whole_responses(folder)


def whole_responses(folder: Path) -> Iterator[Response]:
    """Yield the responses of a run folder, of each file up to its last whole line; a writer may be at work."""
    for path in pool_files(folder):
        with machine_trouble(path), path.open("rb") as stream:
            end = _end_of_last_line(stream, stream.seek(0, os.SEEK_END))
        yield from quick_responses(path, end)


def mend(path: Path, notice: Notice) -> int:
    """Cut a last line without a newline off a pool file; return how many bytes went. Its lock must be held."""
    if not path.exists():
        return 0
    with machine_trouble(path), path.open("r+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        whole = _end_of_last_line(stream, size)
        if whole < size:
            stream.truncate(whole)
            stream.flush()
            os.fsync(stream.fileno())
            notice(f"{path}: its last line was cut, {size - whole} bytes taken off; that request is made again")
    return size - whole


def writable(response: Response) -> Response:
    """Replace lone surrogates, which have no UTF-8 form, in what a model or a provider may have sent."""
    return dataclasses.replace(
        response,
        text=_without_surrogates(response.text),
        reasoning=_without_surrogates(response.reasoning),
        error=_without_surrogates(response.error),
        finish_reason=_without_surrogates(response.finish_reason),
        usage=_without_surrogates(response.usage),
        call=None if response.call is None else Call(**_without_surrogates(_fields(response.call))),
    )


def _fields(call: Call) -> dict[str, Any]:
    return {one.name: getattr(call, one.name) for one in dataclasses.fields(call)}


def _without_surrogates(value: T) -> T:
    """Return a value with the lone surrogates in all its strings replaced."""
    found: object = value
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            found = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    elif isinstance(value, dict):
        found = {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    elif isinstance(value, list | tuple):
        found = type(value)(map(_without_surrogates, value))
    return cast("T", found)


def append_line(stream: BinaryIO, line: bytes) -> None:
    """Append a line to an unbuffered file, whole or not at all. Raises OSError."""
    end = stream.seek(0, os.SEEK_END)
    try:
        _write_all(stream, line)
    except BaseException:
        with contextlib.suppress(OSError):
            stream.truncate(end)
        raise


def _write_all(stream: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def _end_of_last_line(stream: BinaryIO, size: int) -> int:
    """Return the offset behind the last newline, searched from the end."""
    position = size
    while position > 0:
        start = max(0, position - _CHUNK)
        stream.seek(start)
        found = stream.read(position - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0
