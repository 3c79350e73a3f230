"""Tasks on a real cluster: results, retries, and what goes wrong."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tasks_for_spark as tasks
from spark_fixtures import SparkRunning

from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.generator.graphniah.plans import Sources
from gniah.generator.graphniah.production import produce
from gniah.generator.graphniah.spark_engine import build_on_spark
from gniah.generator.spark import SparkCluster, find_cluster, run_on_spark, runs
from gniah.generator.spark.tasks import RemoteTrace
from gniah.records.errors import (
    EnvironmentFault,
    ImpossibleRequest,
    InputError,
    MissingDependency,
    StoreError,
)
from gniah.records.manifests import Manifest

pytestmark = pytest.mark.spark

KEPT = "nothing is kept"


@pytest.fixture(scope="module")
def cluster(spark_session: SparkRunning) -> Iterator[SparkCluster]:
    """Return the cluster, with a context in this process that all tests here share: executors begin once only."""
    from pyspark import SparkConf, SparkContext

    handler = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**spark_session.environment, "PYSPARK_PYTHON": sys.executable}.items():
            patch.setenv(name, value)
        spark_session.complete()
        with warnings.catch_warnings(action="ignore"):  # of pyspark, about libraries that nobody uses here
            context = SparkContext(conf=SparkConf().setMaster(spark_session.address).setAppName("tests"))
        context.setLogLevel("OFF")
        signal.signal(signal.SIGINT, handler)
        assert find_cluster() == SparkCluster(spark_session.address)  # of the context in this process
        yield SparkCluster(spark_session.address, patience=60)
        gateway = SparkContext._gateway
        context.stop()
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None


def run(cluster: SparkCluster, prepare: Any, start: object, *given: object) -> list[Any]:
    return list(run_on_spark(cluster, prepare, start, given, kept=KEPT))


def failure(cluster: SparkCluster, prepare: Any, *given: object) -> BaseException:
    with pytest.raises(Exception) as caught:
        run(cluster, prepare, None, *given)
    return caught.value


def test_every_task_has_its_result_and_processes_prepare_once(cluster: SparkCluster) -> None:
    found = run(cluster, tasks.times, 3, *range(20))
    assert sorted(result for result, _, _ in found) == [3 * number for number in range(20)]
    by_process: dict[int, list[int]] = {}
    for _, process, before in found:
        by_process.setdefault(process, []).append(before)
    for counts in by_process.values():
        assert sorted(counts) == list(range(len(counts)))
    # The same processes, prepared anew for another run.
    again = run(cluster, tasks.times, 5, *range(4))
    assert sorted(result for result, _, _ in again) == [0, 5, 10, 15]
    assert min(before for _, _, before in again) == 0


def test_no_tasks_need_no_cluster() -> None:
    assert run(SparkCluster("spark://no.such.host.invalid:7077"), tasks.times, 3) == []


def test_an_error_that_can_be_mended_is_the_same_here_and_names_the_host(cluster: SparkCluster) -> None:
    error = failure(cluster, tasks.raising, "input")
    assert isinstance(error, InputError)
    assert error.message.startswith("on ")
    assert error.message.endswith(": store: not there")
    assert (str(error), error.remedy) == (error.message, "make it")
    error = failure(cluster, tasks.raising, "impossible")
    assert isinstance(error, ImpossibleRequest)
    assert error.message == "the graph is too small"
    error = failure(cluster, tasks.unprepared, 1)
    assert isinstance(error, InputError)
    assert error.message.endswith(": corpus: of another kind")


def test_errors_of_the_machine_become_words(cluster: SparkCluster) -> None:
    error = failure(cluster, tasks.raising, "file")
    assert isinstance(error, InputError)
    assert error.message.endswith(": /somewhere/else: no such file or folder")
    error = failure(cluster, tasks.raising, "memory")
    assert isinstance(error, EnvironmentFault)
    assert error.message.endswith(": out of memory")


def test_a_defect_comes_with_its_trace(cluster: SparkCluster) -> None:
    error = failure(cluster, tasks.raising, "defect")
    assert isinstance(error, ValueError)
    assert str(error) == "a defect"
    assert isinstance(error.__cause__, RemoteTrace)
    assert "tasks_for_spark.py" in str(error.__cause__)
    error = failure(cluster, tasks.raising, "odd")
    assert isinstance(error, RuntimeError)
    assert str(error) == "Odd: this and that"


def test_a_task_whose_process_dies_runs_again(cluster: SparkCluster, tmp_path: Path) -> None:
    assert sorted(run(cluster, tasks.dying, str(tmp_path), *range(6))) == list(range(6))
    assert (tmp_path / "3").exists()


def test_a_task_that_kills_every_process_is_given_up(cluster: SparkCluster) -> None:
    error = failure(cluster, tasks.doomed, 1)
    assert isinstance(error, EnvironmentFault)
    assert error.message.startswith("Spark gave up: ")
    assert "failed 4 times" in error.message
    assert "\n" not in error.message
    assert "\tat " not in error.message
    assert str(error.remedy).endswith(KEPT)


def test_leaving_early_cancels_what_is_under_way(cluster: SparkCluster, tmp_path: Path) -> None:
    results = run_on_spark(cluster, tasks.sleeping, str(tmp_path), range(50), kept=KEPT)
    next(results)
    results.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("spark_")]
    time.sleep(1)  # a task may have been on its way to a worker
    begun = len(list(tmp_path.iterdir()))
    assert 1 <= begun < 12
    time.sleep(1)
    assert len(list(tmp_path.iterdir())) == begun


def test_another_version_on_a_worker_is_refused(cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "package_version", lambda: "9.9")
    error = failure(cluster, tasks.times, 1)
    assert isinstance(error, MissingDependency)
    assert "is installed, and 9.9 here" in error.message
    assert sys.executable in str(error.remedy)


WITHOUT = """
import pickle, sys
sys.modules["gniah"] = None
from pyspark import cloudpickle
print(list(pickle.loads(sys.stdin.buffer.read())([b""])))
"""


def test_a_worker_without_gniah_says_so() -> None:
    from pyspark import cloudpickle

    work: Callable[..., Any] = runs._portable("1", "key", None)
    sent = cloudpickle.dumps(work)
    done = subprocess.run([sys.executable, "-P", "-c", WITHOUT], input=sent, capture_output=True, check=True)
    assert done.stdout.decode().startswith("[('absent', ")
    assert "gniah is not installed there" in done.stdout.decode()


def test_what_is_sent_holds_no_password(cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD", "open-sesame")
    assert len(run(cluster, tasks.times, 3, 1, 2)) == 2
    context = SparkContext._active_spark_context
    assert context is not None
    assert "open-sesame" not in str(context.getConf().getAll())
    assert "open-sesame" not in str(context.environment)
    assert b"open-sesame" not in pickle.dumps((tasks.times, 3))


def test_examples_are_the_same_bytes_on_a_context_that_is_there(
    cluster: SparkCluster, rfc_sources: Sources, list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    from pyspark import SparkContext

    settings = list_of(vary="question-format")
    assert produce(settings, rfc_sources, tmp_path / "local").built == 12
    first = produce(settings, rfc_sources, tmp_path / "spark", cluster=cluster, part=(1, 2))
    second = produce(settings, rfc_sources, tmp_path / "spark", cluster=cluster, recount=False)
    assert (first.built, second.built, second.found) == (6, 6, 6)
    assert second.store.questions > 0
    assert second.manifest is not None
    assert second.manifest.digest == Manifest.read(tmp_path / "local", second.manifest.schema).digest
    for name in ("pool.jsonl", "pool.index.jsonl", "examples.jsonl", settings.path):
        assert (tmp_path / "spark" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    # It was there before, and still is.
    assert SparkContext._active_spark_context is not None
    assert SparkContext._active_spark_context.parallelize([1, 2], 2).count() == 2


def test_sources_that_a_worker_lacks_are_named_with_its_host(
    cluster: SparkCluster, rfc_sources: Sources, list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    there = replace(rfc_sources, store=str(tmp_path / "store"))
    told = rf"^on \S+: {tmp_path}/store: there is no graph store here"
    with ExitStack() as stack:
        materials = rfc_sources.open(stack)
        tasks_there = slots(list_of(count=2))
        building = build_on_spark(cluster, tasks_there, there, materials, strict_fill=False, recount=False)
        with pytest.raises(StoreError, match=told):
            list(building)
