"""A real standalone Spark cluster on loopback: a master and two workers, started once a session.

Mark tests that ask for it with `pytest.mark.spark`. Without pyspark or Java they are skipped, under CI they fail.
`tasks_for_spark.py` beside this file is importable on the workers.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from neo4j_fixtures import not_here

PATIENCE = 120.0
# Everything of Spark stays on loopback, and its processes begin quickly rather than run fast.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass
class Process:
    """A process of the cluster and the file that it logs into."""

    process: subprocess.Popen[bytes]
    log: Path

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until a line of the log matches, and return the match."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            match = re.search(pattern, self.log.read_text(encoding="utf-8", errors="replace"))
            if match:
                return match
            time.sleep(0.1)
        raise AssertionError(f"no {pattern!r} in {self.log}:\n{self.log.read_text(encoding='utf-8')[-3000:]}")


@dataclass
class SparkRunning:
    """The cluster: where its master answers, and the folder with all logs."""

    folder: Path
    master: Process = field(init=False)
    address: str = field(init=False)
    workers: list[Process] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a driver needs to stay on loopback."""
        return {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{QUICK}' --conf spark.executor.memory=512m "
            f"--conf 'spark.executor.extraJavaOptions={QUICK}' pyspark-shell",
        }

    def start(self) -> None:
        (self.folder / "path").mkdir()
        shutil.copy(Path(__file__).with_name("tasks_for_spark.py"), self.folder / "path")
        self.master = self._launch("master", "master.Master", "--port", "0")
        self.address = self.master.until(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")[1]
        for _ in range(2):
            self.add_worker()
        self.complete()

    def add_worker(self) -> Process:
        name = f"worker-{len(self.workers) + 1}"
        words = ("--port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name), self.address)
        self.workers.append(self._launch(name, "worker.Worker", *words))
        return self.workers[-1]

    def complete(self) -> None:
        """Start what is missing of two workers, and wait until the master has them."""
        while len(self.alive()) < 2:
            self.add_worker()
        for worker in self.alive():
            worker.until("Successfully registered with master")

    def alive(self) -> list[Process]:
        return [worker for worker in self.workers if worker.process.poll() is None]

    def executors(self, worker: Process) -> list[int]:
        """Return the processes that a worker has started."""
        return children(worker.process.pid)

    def kill(self, worker: Process) -> None:
        """End a worker, its executors and their Python processes at once, as when a machine goes down."""
        pids = [worker.process.pid]
        for pid in pids:
            pids += children(pid)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        worker.process.wait()

    def stop(self) -> None:
        for one in (*self.workers, self.master):
            if one.process.poll() is None:
                self.kill(one)

    def _launch(self, name: str, kind: str, *words: str) -> Process:
        import pyspark

        home = Path(pyspark.__file__).parent
        log = self.folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
        own = {name: value for name, value in os.environ.items() if not name.startswith(("GNIAH_", "SPARK_"))}
        environment = {
            **own,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "PYTHONPATH": str(self.folder / "path"),
        }
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [*command, "--webui-port", "0", *words],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environment,
                cwd=self.folder,
            )
        return Process(process, log)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                state, parent = stat.rpartition(")")[2].split()[:2]
                if int(parent) == pid and state != "Z":
                    found.append(int(entry.name))
    return found


_SHARED = pytest.StashKey[SparkRunning]()


def _need_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        not_here("no Spark: pyspark is not installed")
    if shutil.which("java") is None:
        not_here("no Spark: Java is not installed")
    if not sys.platform.startswith("linux"):
        pytest.skip("the processes of the cluster are found by /proc")


@pytest.fixture(scope="session")
def spark_needs() -> None:
    """Skip what needs pyspark and Java where they are not."""
    _need_spark()


@pytest.fixture(scope="session")
def spark_session(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory, spark_needs: None
) -> SparkRunning:
    """Return the cluster of this session. A test may have ended one of its workers."""
    if _SHARED not in pytestconfig.stash:
        running = SparkRunning(tmp_path_factory.mktemp("spark"))
        pytestconfig.add_cleanup(running.stop)
        running.start()
        pytestconfig.stash[_SHARED] = running
    return pytestconfig.stash[_SHARED]


@pytest.fixture
def spark_cluster(spark_session: SparkRunning) -> SparkRunning:
    """Return the session's cluster with both workers up."""
    spark_session.complete()
    return spark_session
