"""A context of one's own: quiet, bounded in time, and nothing of it left."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest
import tasks_for_spark as tasks
from spark_fixtures import SparkRunning, children

from gniah.generator.spark import SparkCluster, run_on_spark
from gniah.generator.spark.contexts import reason_of
from gniah.records.errors import EnvironmentFault

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def on_loopback(monkeypatch: pytest.MonkeyPatch, spark_session: SparkRunning) -> None:
    for name, value in spark_session.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(spark_session.folder / "path"))  # for workers of this machine
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


def javas() -> list[int]:
    return children(os.getpid())


def test_nothing_is_left_and_nothing_is_said(capfd: pytest.CaptureFixture[str], spark_session: SparkRunning) -> None:
    before, handler = javas(), signal.getsignal(signal.SIGINT)
    found = list(run_on_spark(SparkCluster("local[2]"), tasks.times, 2, range(6), kept=""))
    assert sorted(result for result, _, _ in found) == [0, 2, 4, 6, 8, 10]
    assert javas() == before
    assert signal.getsignal(signal.SIGINT) is handler
    assert capfd.readouterr() == ("", "")


def test_a_cluster_without_room_is_given_up_in_time(
    spark_cluster: SparkRunning, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = spark_cluster.environment["PYSPARK_SUBMIT_ARGS"]
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments.replace("memory=512m", "memory=64g"))
    before, begun = javas(), time.monotonic()
    with pytest.raises(EnvironmentFault, match="the cluster gave no free core for 3 s") as caught:
        list(
            run_on_spark(SparkCluster(spark_cluster.address, patience=3), tasks.times, 2, range(6), kept="all is kept")
        )
    assert "spark.executor.memory" in str(caught.value.remedy)
    assert str(caught.value.remedy).endswith("all is kept")
    assert time.monotonic() - begun < 30
    assert javas() == before


def test_a_master_that_takes_no_application_is_given_up_in_time(spark_session: SparkRunning) -> None:
    before, begun = javas(), time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EnvironmentFault, match="the cluster did not take us on within 4 s"):
            list(run_on_spark(SparkCluster(master, patience=4), tasks.times, 2, range(6), kept=""))
    assert time.monotonic() - begun < 30
    assert javas() == before


def test_why_spark_does_not_start_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--no-such-option pyspark-shell")
    with pytest.raises(EnvironmentFault, match=r"local: Spark did not start: .*no-such-option") as caught:
        list(run_on_spark(SparkCluster("local"), tasks.times, 2, range(6), kept=""))
    assert "\n" not in caught.value.message


def test_the_reason_is_without_the_stacks_of_java_and_python() -> None:
    text = (
        "An error occurred while calling z:org.PythonRDD.collectAndServe.\n: org.apache.spark.SparkException: Lost "
        "task 0.3: org.apache.PythonException: Traceback (most recent call last):\n  File x\nValueError: no\n\n"
        "\tat org.apache.spark.Here(There.scala:5)\n\tat java.lang.Thread.run\n"
    )
    expected = "org.apache.spark.SparkException: Lost task 0.3: org.apache.PythonException: ValueError: no"
    assert reason_of(RuntimeError(text)) == expected
    assert reason_of(RuntimeError("one\n\tat two")) == "one"
    assert reason_of(RuntimeError()) == "RuntimeError"
