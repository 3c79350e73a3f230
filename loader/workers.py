"""Tasks done by this process or by spawned ones, which stop at once when this one stops, is killed or interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from multiprocessing import get_context
from typing import Any, TypeVar

from gniah.records.workers import Workers

Advance = Callable[[int], None]
Task = TypeVar("Task")
Result = TypeVar("Result")

_LOOK = 0.2
# What this worker shares with its parent: the rows it read for each task.
_read: Any = None


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
    read = get_context("spawn").RawArray("q", len(tasks))
    told = 0
    with Workers(min(jobs, len(tasks)), _share, (read,), kept="finished shards are kept") as workers:
        waiting: set[Future[Result]] = {
            workers.submit(_do, function, task, number) for number, task in enumerate(tasks)
        }
        while waiting:
            ended, waiting = wait(waiting, _LOOK, FIRST_COMPLETED)
            now = sum(read)
            if now > told:
                advance(now - told)
                told = now
            for future in ended:
                yield future.result()


def _share(read: Any) -> None:
    global _read
    _read = read


def _do(function: Callable[[Task, Advance], Result], task: Task, number: int) -> Result:
    def advance(rows: int) -> None:
        _read[number] += rows

    return function(task, advance)
