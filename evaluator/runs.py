"""A run folder: `inference_pool.jsonl`, to which every response is appended as soon as it is there.

One response is one line and one write, so a crash can only cut the last line. That line is taken off when the
pool is next opened, and its request is made again; every complete answer before it is found by its request's
key and is never asked for twice. Failures are appended too, so that they can be looked at, but do not count
as done.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gniah.evaluator.models import Model
from gniah.records.errors import EnvironmentFault, InputError, MissingDependency, UsageFault
from gniah.records.examples import Example
from gniah.records.files import json_line, locked_folder, machine_trouble, sync_folder
from gniah.records.responses import Request, Response, read_responses

POOL_NAME = "inference_pool.jsonl"
# What costs nothing to make again is flushed to the disk in batches. What was paid for is flushed at once.
OFFLINE_SYNC_EVERY = 200
_CHUNK = 1 << 16

# What every further request would meet too, until the user has mended it.
_ENDS_A_RUN = (UsageFault, MissingDependency, EnvironmentFault, MemoryError)

Notice = Callable[[str], None]


def _silent(_: str) -> None:
    """Take what nobody wants to hear."""


@dataclass(slots=True)
class RunCounts:
    """What a run did for one model: new answers, answers that were there, failures."""

    model: str
    answered: int = 0
    already: int = 0
    failed: int = 0


class InferencePool:
    """The open pool of a run folder. Get it from `open_pool`.

    `done` holds the keys of all complete answers; `duplicates` counts further complete answers to one key.
    """

    def __init__(self, path: Path, stream: BinaryIO, done: set[str], duplicates: int, sync_every: int) -> None:
        self.path = path
        self.done = done
        self.duplicates = duplicates
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
        line = json_line(_writable(response).to_json())
        with machine_trouble(self.path):
            end = self._stream.seek(0, os.SEEK_END)
            try:
                _write_all(self._stream, line)
            except BaseException:
                with contextlib.suppress(OSError):
                    self._stream.truncate(end)
                raise
            self._unsynced += 1
            if self._unsynced >= self._sync_every:
                self.sync()
        if response.complete:
            self.done.add(response.key)

    def sync(self) -> None:
        """Flush what was appended to the disk."""
        os.fsync(self._stream.fileno())
        self._unsynced = 0


@contextlib.contextmanager
def open_pool(folder: Path, notice: Notice = _silent, sync_every: int = 1) -> Iterator[InferencePool]:
    """Hold a run folder and give its pool, mended after a crash, for appending.

    `notice` is told what was mended; `sync_every` responses are flushed to the disk together.
    Raises BusyError when another process holds the folder, and InputError when a line before the last is not
    a response.
    """
    with locked_folder(folder):
        path = folder / POOL_NAME
        mend(path, notice)
        done: set[str] = set()
        duplicates = 0
        for response in read_responses(path) if path.exists() else ():
            if response.complete:
                duplicates += response.key in done
                done.add(response.key)
        if duplicates:
            notice(f"{path}: {duplicates} further answers to a request that has one are ignored")
        with machine_trouble(path):
            stream = path.open("ab", buffering=0)
            sync_folder(folder)
        with stream:
            pool = InferencePool(path, stream, done, duplicates, sync_every)
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
    path = folder / POOL_NAME
    if not path.is_file():
        raise InputError(f"{path}: no such file", remedy="give the folder that gniah-eval run wrote")
    with locked_folder(folder):
        mend(path, notice)
        yield read_responses(path)


def mend(path: Path, notice: Notice) -> int:
    """Cut a last line without a newline off a pool; return how many bytes went. The lock must be held."""
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


def run_model(
    model: Model,
    examples: Iterable[Example],
    pool: InferencePool,
    *,
    repeats: int = 1,
    advance: Callable[[], None] = lambda: None,
) -> RunCounts:
    """Ask a model every example, `repeats` times each, in order, but for what the pool has.

    A request that fails becomes a response with an error and ends nothing; what the user must mend first (a
    wrong word, a missing package, a full disk) ends the run.
    """
    counts = RunCounts(model.name)
    for example in examples:
        for request in _requests(model, example, repeats):
            if request.key in pool.done:
                counts.already += 1
            else:
                response = _ask(model, request)
                pool.append(response)
                counts.answered += response.complete
                counts.failed += not response.complete
            advance()
    return counts


def _requests(model: Model, example: Example, repeats: int) -> Sequence[Request]:
    return [
        Request(
            qid=example.qid,
            model=model.name,
            system_prompt=example.system_prompt,
            user_prompt=example.user_prompt,
            base_address=model.base_address,
            parameters=model.parameters,
            repeat=repeat,
        )
        for repeat in range(repeats)
    ]


def _ask(model: Model, request: Request) -> Response:
    try:
        return model.complete(request)
    except _ENDS_A_RUN:
        raise
    except Exception as error:  # noqa: BLE001  (one bad request must not end a run that was paid for)
        return Response(
            key=request.key,
            qid=request.qid,
            model=request.model,
            repeat=request.repeat,
            prompt_sha256=request.prompt_sha256,
            text="",
            finish_reason=None,
            parameters=request.parameters,
            base_address=request.base_address,
            error=f"{type(error).__name__}: {error}",
        )


def _writable(response: Response) -> Response:
    """Replace lone surrogates, which have no UTF-8 form, in what a model may have sent."""
    return dataclasses.replace(
        response,
        text=_without_surrogates(response.text),
        reasoning=None if response.reasoning is None else _without_surrogates(response.reasoning),
        error=None if response.error is None else _without_surrogates(response.error),
    )


def _without_surrogates(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


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
