"""Which cluster is meant, and what is said when there is none."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gniah.generator.spark import SparkCluster, find_cluster
from gniah.records.errors import EnvironmentFault, MissingDependency, UsageFault

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch, spark_needs: None) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME", "MASTER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def listening() -> Iterator[str]:
    """Return a place where a connection is taken, and nothing said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def unused() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_without_a_master_anywhere_it_is_asked_for() -> None:
    with pytest.raises(UsageFault, match="no Spark master is given") as caught:
        find_cluster()
    assert caught.value.remedy == "as in --spark-master spark://HOST:7077"


def test_a_master_that_is_given_counts_before_those_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MASTER", "local[1]")
    assert find_cluster().master == "local[1]"
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.master local[9]\nspark.master.rest.enabled true\nspark.master     local[2]\n", encoding="utf-8"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert find_cluster().master == "local[2]"
    for words in ("--master local[3]", "--name x --master=local[3]", "--conf spark.master=local[3]"):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{words} pyspark-shell")
        assert find_cluster().master == "local[3]", words
    assert find_cluster("local[4]", patience=7) == SparkCluster("local[4]", 7)


def test_spark_s_own_folder_is_looked_into(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.master=yarn\n", encoding="utf-8")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert find_cluster().master == "yarn"


@pytest.mark.parametrize("name", ["cluster:7077", "spark://", "http://cluster:8080", "sc://cluster:15002"])
def test_what_is_no_master_is_refused(name: str) -> None:
    with pytest.raises(UsageFault, match="is no Spark master") as caught:
        find_cluster(name)
    assert ("Spark Connect" in caught.value.message) == name.startswith("sc:")


@pytest.mark.parametrize("name", ["spark://cluster", "spark://cluster:seventy", "spark://:7077", "spark://a:70777"])
def test_an_address_without_host_or_port_is_refused(name: str) -> None:
    with pytest.raises(UsageFault, match="lacks a host or a port"):
        find_cluster(name)


def test_a_master_that_is_not_there_is_named_at_once() -> None:
    begun = time.monotonic()
    place = unused()
    with pytest.raises(EnvironmentFault, match=rf"spark://{place}: no Spark master answers there \(.*refused\)"):
        find_cluster(f"spark://{place}")
    with pytest.raises(EnvironmentFault, match="no Spark master answers there"):
        find_cluster("spark://no.such.host.invalid:7077")
    assert time.monotonic() - begun < 20


def test_one_of_several_masters_is_enough(listening: str) -> None:
    assert find_cluster(f"spark://{unused()},{listening}").master.endswith(listening)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingDependency, match=r"there is none in JAVA_HOME \("):
        find_cluster("local")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependency, match="there is none on the PATH"):
        find_cluster("local")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependency, match="needs the package pyspark") as caught:
        find_cluster("local")
    assert caught.value.remedy == "pip install 'gniah[spark]'"


def test_spark_is_imported_only_when_a_cluster_is_at_work() -> None:
    code = (
        "import sys; from gniah.generator.graphniah import produce; from gniah.generator import find_cluster; "
        "find_cluster('local'); print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
