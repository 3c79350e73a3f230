"""A Spark context for one run: quiet, bounded in time, and gone afterwards with the Java process it stands in."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from gniah.generator.spark.masters import SparkCluster
from gniah.records.errors import EnvironmentFault, GniahError

if TYPE_CHECKING:
    from pyspark import SparkContext

_MOST = 500
_END = 30.0


@contextlib.contextmanager
def spark_context(cluster: SparkCluster, name: str) -> Iterator[SparkContext]:
    """Give a context on a cluster until the block ends; one that this process has already is used, and left as it is.

    What Spark logs goes nowhere: only the reason why it did not start comes into a message. Raises EnvironmentFault
    then, or when the cluster does not take us on in time.
    """
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    if active is not None:
        yield active
        return
    # The interpreter that runs here has gniah; `python3`, Spark's own default, may be any.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryFile() as log:
        context, end = _started(cluster, name, log)
        try:
            yield context
        finally:
            end()


def _started(cluster: SparkCluster, name: str, log: IO[bytes]) -> tuple[SparkContext, Callable[[], None]]:
    """Return a new context, and what ends it and its Java process."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    settings = SparkConf().setMaster(cluster.master).setAppName(name)
    for key in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        settings.set(key, "false")
    gateway: Any = SparkContext._gateway
    ours = gateway is None
    late = threading.Event()
    handler = signal.getsignal(signal.SIGINT)
    try:
        with warnings.catch_warnings(action="ignore"):  # of pyspark, about libraries that nobody uses here
            gateway = gateway or launch_gateway(settings, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            clock = threading.Timer(cluster.patience, _too_late, (late, gateway if ours else None))
            clock.daemon = True
            clock.start()
            try:
                context = SparkContext(conf=settings, gateway=gateway)
            finally:
                clock.cancel()
    except Exception as error:  # noqa: BLE001  (py4j has many, and each has the reason in its text)
        _end_java(gateway if ours else None)
        if late.is_set():
            raise EnvironmentFault(
                f"{cluster.master}: the cluster did not take us on within {cluster.patience:,.0f} s",
                remedy="look at its queue and its log, or give it more time with --spark-wait",
            ) from None
        raise EnvironmentFault(
            f"{cluster.master}: Spark did not start: {reason_of(error) if gateway else _last_words(log)}",
            remedy="Spark needs Java 17 or newer, and the same version of Spark here as on the cluster",
        ) from None
    except BaseException:  # an interrupt
        _end_java(gateway if ours else None)
        raise
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)  # Spark has put its own there
    context.setLogLevel("OFF")

    def end() -> None:
        with warnings.catch_warnings(action="ignore"):
            apart(context.stop)
        _end_java(gateway if ours else None)

    return context, end


def apart(call: Callable[..., object], *arguments: object) -> None:
    """Make a call to Java in a thread of its own and wait for it, but not forever.

    Each thread has a connection of its own. That of a thread which was interrupted in the middle of an answer cannot
    be used any more.
    """

    def quietly() -> None:
        with contextlib.suppress(Exception):  # the process may have gone away; then nothing is left to end
            call(*arguments)

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    thread.join(_END)


def _too_late(late: threading.Event, gateway: Any) -> None:
    process = getattr(gateway, "proc", None)
    if process is not None:
        late.set()
        process.kill()


def _end_java(gateway: Any) -> None:
    """End the Java process that was started here, so that the next context gets a fresh one."""
    from pyspark import SparkContext

    process = getattr(gateway, "proc", None)
    if process is None:
        return
    apart(gateway.shutdown)
    process.stdin.close()
    try:
        process.wait(_END)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        SparkContext._gateway = None
        SparkContext._jvm = None


def reason_of(error: BaseException) -> str:
    """Return in a line what an error of Spark says, without the stack of Java."""
    lines = str(error).split("\n\tat ")[0].strip().splitlines()
    if lines and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    lines = [line.strip().lstrip(": ") for line in lines if line.strip()]
    if any("Traceback (most recent call last)" in line for line in lines):
        lines = [lines[0].partition("Traceback")[0].rstrip(), lines[-1]]
    return " ".join(lines)[:_MOST] or type(error).__name__


def _last_words(log: IO[bytes]) -> str:
    """Return the line of the log that tells most of why Spark's process ended."""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    told = [line for line in lines if re.search("error|exception", line, re.IGNORECASE)] or lines[-1:]
    return told[0][:_MOST] if told else "its process ended without a word"


def lost(error: BaseException, kept: str) -> GniahError:
    """Return what a user is told when Spark gave a task up, or went away itself."""
    interpreter = os.environ.get("PYSPARK_PYTHON", "python3")
    return EnvironmentFault(
        f"Spark gave up: {reason_of(error)}",
        remedy=f"see the logs of the cluster's workers, where {interpreter} has to be a Python like this one "
        f"(PYSPARK_PYTHON names it); then run the same command again; {kept}",
    )


__all__ = ["apart", "lost", "reason_of", "spark_context"]
