"""A task as it runs in a process of the cluster. Nothing here knows Spark, and what goes back are plain values."""

from __future__ import annotations

import pickle
import platform
import traceback
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from gniah.records.errors import EnvironmentFault, GniahError, ImpossibleRequest, MissingDependency
from gniah.records.files import environment_fault

# Given a stack that lives as long as the process needs what is opened, and what all tasks share: how one is done.
Prepare = Callable[[ExitStack, Any], Callable[[Any], Any]]

DONE = "done"
FAILED = "failed"
ABSENT = "absent"
# Texts shrink to a quarter, and with them what Java here has to hold when many tasks end at once.
_QUICKLY = 1


class Outcome(NamedTuple):
    """What came of a task: its kind, and on which host.

    `content` is the packed result, the pickled exception, or why gniah is not there; `trace` is where the exception
    came about, or which interpreter has no gniah.
    """

    kind: str
    host: str
    content: bytes
    trace: str = ""


class RemoteTrace(Exception):
    """Where in another process an exception came about."""


class _Process:
    """What this process keeps from task to task of one run."""

    def __init__(self) -> None:
        self._key = ""
        self._stack = ExitStack()
        self._work: Callable[[Any], Any] | None = None

    def work(self, key: str, shared: Callable[[], bytes]) -> Callable[[Any], Any]:
        if self._work is None or self._key != key:
            self._stack.close()
            self._work = None
            prepare, start = pickle.loads(shared())  # noqa: S301  (from our own driver)
            self._work = prepare(self._stack, start)
            self._key = key
        return self._work


_process = _Process()


def perform(key: str, shared: Callable[[], bytes], task: bytes) -> tuple[str, str, bytes, str]:
    """Do one task, in a process that prepares itself for the first of its run; return the fields of an `Outcome`.

    `shared` fetches what all its tasks share, a pickled `Prepare` and its argument, and `key` is the hash of that.
    """
    try:
        result = _process.work(key, shared)(pickle.loads(task))  # noqa: S301
        return DONE, platform.node(), zlib.compress(pickle.dumps(result), _QUICKLY), ""
    except Exception as error:  # noqa: BLE001  (it is raised again where the command was given)
        return FAILED, platform.node(), _pickled(error), traceback.format_exc()


def _pickled(error: Exception) -> bytes:
    try:
        content = pickle.dumps(error)
        pickle.loads(content)  # noqa: S301
    except Exception:  # noqa: BLE001  (an exception of a library may be anything)
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return content


def result_of(outcome: Outcome) -> Any:
    """Return the result of a task, or raise what it raised.

    An error that a user can mend names the host, unless it would be the same on any.
    """
    if outcome.kind == DONE:
        return pickle.loads(zlib.decompress(outcome.content))  # noqa: S301  (from our own task)
    if outcome.kind == ABSENT:
        raise MissingDependency(
            f"on {outcome.host}: {outcome.content.decode()}",
            remedy=f"install the same version of gniah on every worker (it is looked for by {outcome.trace})",
        )
    error = pickle.loads(outcome.content)  # noqa: S301
    if isinstance(error, MemoryError):
        error = EnvironmentFault("out of memory", remedy="give executors more memory, or fewer cores")
    elif isinstance(error, OSError):
        error = environment_fault(error, error.filename or "")
    if isinstance(error, GniahError):
        raise error if isinstance(error, ImpossibleRequest) else on_host(error, outcome.host)
    raise error from RemoteTrace(f"on {outcome.host}:\n{outcome.trace}")


def on_host(error: GniahError, host: str) -> GniahError:
    """Return an error with the host where it came about."""
    error.message = f"on {host}: {error.message}"
    error.args = (error.message,)
    return error


__all__ = ["ABSENT", "DONE", "FAILED", "Outcome", "Prepare", "RemoteTrace", "on_host", "perform", "result_of"]
