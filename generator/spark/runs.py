"""Independent tasks, run on a cluster: one Spark job each, so that each result is here as soon as it is there."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from gniah.generator.spark.contexts import apart, lost, spark_context
from gniah.generator.spark.masters import SparkCluster
from gniah.generator.spark.tasks import ABSENT, Outcome, Prepare, result_of
from gniah.records.errors import EnvironmentFault
from gniah.records.manifests import package_version

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOOK = 1.0
# Jobs under way: enough that no core waits for the next, and a bound on the results that are held here.
_FOR_EACH_CORE = 2
_MOST_AT_ONCE = 256
# Several runs of one program may share a context, and each cancels its own jobs only.
_RUNS = itertools.count(1)

_Answer = TypeVar("_Answer")


def run_on_spark(
    cluster: SparkCluster, prepare: Prepare, start: object, tasks: Sequence[object], *, kept: str
) -> Generator[Any]:
    """Yield the result of each task in the order in which they come, until all are there.

    Each process of the cluster calls `prepare(stack, start)` once, and what it returns with each task. Both are
    functions of an installed module, and arguments and results are pickled. A task that was lost with its process or
    machine runs again, as often as Spark's `spark.task.maxFailures` allows; one that raises ends the run with what it
    raised. Closing the iterator cancels what is under way. `kept` says in a message what of the work is not lost.
    Raises EnvironmentFault when the cluster does not start, gives no core for as long as it may, or gives a task up,
    and MissingDependency when a worker has no gniah, or another version of it.
    """
    if not tasks:
        return
    with spark_context(cluster, "gniah") as context:
        run = _Run(context, cluster, pickle.dumps((prepare, start)), kept)
        try:
            yield from run.results(tasks)
        finally:
            run.end()


class _Run:
    """The jobs of one run."""

    def __init__(self, context: SparkContext, cluster: SparkCluster, shared: bytes, kept: str) -> None:
        self._context = context
        self._cluster = cluster
        self._kept = kept
        self._group = f"gniah-{next(_RUNS)}"
        key = hashlib.sha256(shared).hexdigest()
        self._work = _portable(package_version(), key, context.broadcast(shared))
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE + 1, "spark", self._begin_thread)

    def _begin_thread(self) -> None:
        self._context.setJobGroup(self._group, "gniah", interruptOnCancel=True)

    def results(self, tasks: Sequence[object]) -> Iterator[Any]:
        waiting = iter(tasks)
        pending: set[Future[Outcome]] = set()
        heard = counted = time.monotonic()
        cores = self._cores()
        while True:
            for task in itertools.islice(waiting, max(0, cores * _FOR_EACH_CORE - len(pending))):
                pending.add(self._threads.submit(self._job, pickle.dumps(task)))
            if not pending:
                return
            done, pending = wait(pending, _LOOK, FIRST_COMPLETED)
            for future in done:
                yield result_of(self._outcome(future))
            if done or self._busy():
                heard = time.monotonic()
            elif time.monotonic() - heard > self._cluster.patience:
                raise self._no_cores()
            if time.monotonic() - counted > _LOOK:
                cores, counted = self._cores(), time.monotonic()

    def _job(self, task: bytes) -> Outcome:
        found = self._context.parallelize([task], 1).mapPartitions(self._work).collect()
        return Outcome(*found[0])

    def _outcome(self, future: Future[Outcome]) -> Outcome:
        try:
            return future.result()
        except Exception as error:  # noqa: BLE001  (py4j has many)
            raise lost(error, self._kept) from None

    # Questions to Java are asked in threads of the pool: an interrupt in the middle of an answer would spoil the
    # connection of this one.

    def _asked(self, question: Callable[[], _Answer]) -> _Answer:
        try:
            return self._threads.submit(question).result()
        except Exception as error:  # noqa: BLE001  (py4j has many)
            raise lost(error, self._kept) from None

    def _cores(self) -> int:
        cores = self._asked(lambda: self._context.defaultParallelism)
        return max(1, min(cores, _MOST_AT_ONCE // _FOR_EACH_CORE))

    def _busy(self) -> bool:
        """Return whether any task is being done, rather than waiting for a core."""

        def look() -> bool:
            tracker = self._context.statusTracker()
            stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
            return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)

        return self._asked(look)

    def _no_cores(self) -> EnvironmentFault:
        return EnvironmentFault(
            f"{self._cluster.master}: the cluster gave no free core for {self._cluster.patience:,.0f} s",
            remedy="see that its workers have cores and memory to spare (spark.executor.memory) and reach this machine "
            f"(spark.driver.host), or give it more time with --spark-wait; {self._kept}",
        )

    def end(self) -> None:
        """Cancel what is under way, and wait for the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        apart(self._context.cancelJobGroup, self._group)
        self._threads.shutdown(wait=True)


def _portable(
    version: str, key: str, shared: Any
) -> Callable[[Iterable[bytes]], Iterator[tuple[str, str, bytes, str]]]:
    """Return the function that Spark sends out.

    It goes by value, being an inner one, and imports what it needs by itself. So it can say that gniah is not there,
    where a function that goes by its name would fail before it begins.
    """
    absent = ABSENT

    def work(tasks: Iterable[bytes]) -> Iterator[tuple[str, str, bytes, str]]:
        import importlib.metadata
        import platform
        import sys

        try:
            found = importlib.metadata.version("gniah")
            from gniah.generator.spark.tasks import perform
        except ImportError as error:
            yield absent, platform.node(), f"gniah is not installed there ({error})".encode(), sys.executable
            return
        if found != version:
            yield absent, platform.node(), f"gniah {found} is installed, and {version} here".encode(), sys.executable
            return
        for task in tasks:
            yield perform(key, lambda: shared.value, task)

    return work


__all__ = ["run_on_spark"]
