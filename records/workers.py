"""Processes that work for this one: deaf to interrupts, which this one answers, and gone when it is gone."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from gniah.records.errors import EnvironmentFault

_LOOK = 0.2

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Workers(ProcessPoolExecutor):
    """An executor of spawned processes, for one `with` block.

    They end within a moment when this process is killed, or leaves the block by an error, whatever they are at: so
    what they write must appear whole or not at all. `start(*arguments)` runs first in each of them. `kept` says in a
    message what of the work is not lost. Raises EnvironmentFault when one of them was ended from outside.
    """

    def __init__(
        self, count: int, start: Callable[..., object] | None = None, arguments: tuple[Any, ...] = (), *, kept: str
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._kept = kept
        self._told_to_end = context.RawValue("b", 0)
        super().__init__(count, context, _start, (self._told_to_end, start, arguments))

    def submit(self, fn: Callable[_Given, _Result], /, *args: _Given.args, **kwargs: _Given.kwargs) -> Future[_Result]:
        """Give one call to the processes, which may start one of them."""
        with _no_interrupts():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for what was given, or after an error end it."""
        if kind is not None:
            self._told_to_end.value = 1
        self.shutdown(wait=True, cancel_futures=kind is not None)
        if isinstance(error, BrokenProcessPool):
            raise EnvironmentFault(
                "a worker process was ended from outside, perhaps for want of memory",
                remedy=f"run the same command again, with fewer --jobs; {self._kept}",
            ) from None


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Hold interrupts back while a process is started, in this one and in the new one, which cannot refuse them yet.

    Blocking the signal in this thread is not enough: another thread, of a numeric library say, may take it, and Python
    would then raise it here between the start of a process and the message that tells it what to do.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)


def _start(told_to_end: Any, start: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(told_to_end,), daemon=True).start()
    if start is not None:
        start(*arguments)


def _end_with_parent(told_to_end: Any) -> None:
    parent = multiprocessing.parent_process()
    while not told_to_end.value and not (parent and wait([parent.sentinel], _LOOK)):
        pass
    os._exit(1)


__all__ = ["Workers"]
