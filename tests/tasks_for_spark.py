"""Tasks for the tests of Spark, importable here and on the workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gniah.records.errors import ImpossibleRequest, InputError


class Odd(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def times(_: ExitStack, factor: int) -> Callable[[int], tuple[int, int, int]]:
    """Return for each number its multiple, the process, and how many tasks that process had done before."""
    done: list[int] = []

    def work(number: int) -> tuple[int, int, int]:
        time.sleep(0.05)
        done.append(number)
        return number * factor, os.getpid(), len(done) - 1

    return work


def raising(_: ExitStack, __: object) -> Callable[[str], str]:
    """Raise what a task names."""
    errors: dict[str, Exception] = {
        "input": InputError("store: not there", remedy="make it"),
        "impossible": ImpossibleRequest("the graph is too small", remedy="a larger one"),
        "file": FileNotFoundError(2, "No such file or directory", "/somewhere/else"),
        "memory": MemoryError(),
        "defect": ValueError("a defect"),
        "odd": Odd("this", "that"),
    }

    def work(name: str) -> str:
        if name in errors:
            raise errors[name]
        return name

    return work


def unprepared(_: ExitStack, __: object) -> Callable[[Any], Any]:
    raise InputError("corpus: of another kind", remedy="give another")


def dying(_: ExitStack, folder: str) -> Callable[[int], int]:
    """End the process at task 3, the first time only, and say in a file for each task that it was begun."""

    def work(number: int) -> int:
        begun = Path(folder, str(number))
        if number == 3 and not begun.exists():
            begun.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        begun.touch()
        return number

    return work


def doomed(_: ExitStack, __: object) -> Callable[[int], int]:
    """End the process whatever the task."""

    def work(_: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    return work


def sleeping(_: ExitStack, folder: str) -> Callable[[int], int]:
    """Say in a file that a task was begun, and take a while."""

    def work(number: int) -> int:
        Path(folder, str(number)).touch()
        time.sleep(0.3)
        return number

    return work
