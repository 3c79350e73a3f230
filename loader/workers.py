"""Tasks done by this process or by spawned ones, which stop at once when this one stops, is killed or interrupted."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import Any, TypeVar

from gniah.records.errors import EnvironmentFault

Advance = Callable[[int], None]
Task = TypeVar("Task")
Result = TypeVar("Result")

_LOOK = 0.2
# What this worker shares with its parent: the rows it read for each task, and whether to stop.
_shared: tuple[Any, Any] | None = None


def each_done(
    function: Callable[[Task, Advance], Result], tasks: Sequence[Task], jobs: int, advance: Advance
) -> Iterator[Result]:
    """Yield `function(task, advance)` of every task, as they end.

    With several jobs spawned processes do the work, so function, tasks and results are pickled. The first error
    of a task is raised here, and ends the others.
    """
    if jobs <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield function(task, advance)
        return
    try:
        yield from _spawned(function, tasks, jobs, advance)
    except BrokenProcessPool:
        raise EnvironmentFault(
            "a worker process was ended from outside, perhaps for want of memory",
            remedy="run the same command again, with fewer --jobs; finished shards are kept",
        ) from None


def _spawned(
    function: Callable[[Task, Advance], Result], tasks: Sequence[Task], jobs: int, advance: Advance
) -> Iterator[Result]:
    context = multiprocessing.get_context("spawn")
    read, stop = context.RawArray("q", len(tasks)), context.RawValue("b", 0)
    told = 0
    with ProcessPoolExecutor(min(jobs, len(tasks)), context, _start, (read, stop)) as executor:
        try:
            with _no_interrupts():
                waiting: set[Future[Result]] = {
                    executor.submit(_do, function, task, number) for number, task in enumerate(tasks)
                }
            while waiting:
                ended, waiting = wait(waiting, _LOOK, FIRST_COMPLETED)
                now = sum(read)
                if now > told:
                    advance(now - told)
                    told = now
                for future in ended:
                    yield future.result()
        except BaseException:
            stop.value = 1
            executor.shutdown(wait=True, cancel_futures=True)
            raise


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Hold interrupts back, also in the processes that are started meanwhile: the parent alone answers them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(read: Any, stop: Any) -> None:
    global _shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared = read, stop
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()


def _end_with_parent(stop: Any) -> None:
    """End this worker when its parent ended or says so, whatever it is at: what it was writing has no name yet."""
    parent = multiprocessing.parent_process()
    while not stop.value and not (parent and wait_for([parent.sentinel], _LOOK)):
        pass
    os._exit(1)


def _do(function: Callable[[Task, Advance], Result], task: Task, number: int) -> Result:
    assert _shared is not None
    read = _shared[0]

    def advance(rows: int) -> None:
        read[number] += rows

    return function(task, advance)
