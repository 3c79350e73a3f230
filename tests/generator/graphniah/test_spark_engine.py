"""Lists built on a real cluster of a master and two workers: the bytes of one process, whatever is lost on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from places import put, resealed
from programs import Finished, Rfc, program_of
from spark_fixtures import SparkRunning, children

from gniah.generator.graphniah import spark_engine
from gniah.generator.graphniah.plans import Sources
from gniah.generator.graphniah.spark_engine import build_on_spark
from gniah.generator.spark import SparkCluster
from gniah.loader import build_corpus
from gniah.records.errors import InputError, StoreError
from gniah.records.manifests import Manifest

pytestmark = pytest.mark.spark

COUNT = 48
PASSWORD = "open-sesame"


def words(rfc: Rfc, out: Path, *more: str) -> list[str]:
    many = ("--count", str(COUNT), "--context-length", "8000", "--sizes", "20-30", *more)
    return program_of(rfc.example_words(out, *many))


@pytest.fixture(scope="module")
def bench(rfc: Rfc, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a list, built by one process."""
    out = tmp_path_factory.mktemp("local") / "bench"
    subprocess.run(words(rfc, out), check=True, capture_output=True)
    return out


def published(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name not in {".lock", "manifest.json"}
    }
    return {**found, "manifest": Manifest.read(out, "gniah/bench/1").digest}


def pieces(out: Path) -> list[Path]:
    return [path for path in (out / ".work").glob("*.json") if len(path.stem) == 64]


def started(command: Sequence[str], running: SparkRunning, folder: Path) -> subprocess.Popen[str]:
    """Start a command on the cluster, in a folder and with a group of processes of its own."""
    return subprocess.Popen(
        [*command, "--engine", "spark", "--spark-master", running.address],
        env={**os.environ, **running.environment, "GNIAH_NEO4J_PASSWORD": PASSWORD},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
        cwd=folder,
    )


def until(true: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"it did not come about: {process.communicate(timeout=60)}")


def finished(process: subprocess.Popen[str]) -> Finished:
    out, err = process.communicate(timeout=120)
    return Finished(process.returncode, out, err)


@pytest.mark.slow
def test_a_worker_that_dies_midway_changes_no_byte(
    rfc: Rfc, bench: Path, spark_cluster: SparkRunning, tmp_path: Path
) -> None:
    out = tmp_path / "bench"
    process = started(words(rfc, out), spark_cluster, tmp_path)

    def at_work() -> Any:
        """Return a worker that has a Python process at work, once some examples are there."""
        if len(pieces(out)) < 3:
            return None
        works = (w for w in spark_cluster.alive() if any(children(pid) for pid in spark_cluster.executors(w)))
        return next(works, None)

    spark_cluster.kill(until(at_work, process))
    there = len(pieces(out))
    assert 3 <= there < COUNT
    done = finished(process)
    assert done.code == 0, done.err
    assert published(out) == published(bench)
    assert len(spark_cluster.alive()) == 1
    # Spark's own messages are kept off, and a password of this process goes nowhere.
    assert "WARN" not in done.err
    assert "ERROR" not in done.err
    assert "Exception" not in done.err
    for path in spark_cluster.folder.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_an_interrupted_run_leaves_the_cluster_and_goes_on_anywhere(
    gniah: Callable[..., Finished], rfc: Rfc, bench: Path, spark_cluster: SparkRunning, tmp_path: Path
) -> None:
    out = tmp_path / "bench"
    process = started(words(rfc, out), spark_cluster, tmp_path)
    until(lambda: len(pieces(out)) >= 3, process)
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
    done = finished(process)
    assert (done.code, done.out) == (130, "")
    assert "interrupted; finished work is kept" in done.err
    assert "Traceback" not in done.err
    assert time.monotonic() - begun < 20
    there = len(pieces(out))
    assert 3 <= there < COUNT
    end = time.monotonic() + 20
    while any(spark_cluster.executors(worker) for worker in spark_cluster.alive()):
        assert time.monotonic() < end, "the executors are still there"
        time.sleep(0.1)
    again = subprocess.run(words(rfc, out), check=True, capture_output=True, text=True, encoding="utf-8")
    assert f"going on; {there} of {COUNT} examples are finished already" in again.stderr
    assert published(out) == published(bench)


def test_options_of_the_other_engine_are_refused(
    gniah: Callable[..., Finished], rfc: Rfc, tmp_path: Path, spark_needs: None
) -> None:
    def told(*more: str) -> Finished:
        return gniah(*rfc.example_words(tmp_path / "out", *more))

    done = told("--engine", "spark", "--jobs", "2", "--spark-master", "local")
    assert (done.code, "leave out --jobs" in done.err) == (2, True)
    done = told("--spark-master", "local")
    assert (done.code, "add --engine spark" in done.err) == (2, True)
    done = told("--engine", "spark", "--spark-master", "spark://127.0.0.1:1")
    assert (done.code, "no Spark master answers there" in done.err) == (7, True)
    assert not (tmp_path / "out").exists()


# --- what a worker finds ------------------------------------------------------------------------------------------


@pytest.fixture
def start(rfc_sources: Sources, code_folder: Path, tmp_path: Path) -> Callable[..., Any]:
    """Prepare a worker as for a run of `rfc_sources`, where it finds other sources."""
    shutil.copytree(code_folder, tmp_path / "code")
    given = replace(rfc_sources, corpora={"code": tmp_path / "code"})

    def prepare(stack: ExitStack, given: Sources = given, **changed: Any) -> Any:
        there = replace(given, **changed)
        with ExitStack() as driver, pytest.MonkeyPatch.context() as patch:
            sent: list[Any] = []
            patch.setattr(spark_engine, "run_on_spark", lambda _, __, start, *___, **____: sent.append(start))
            build_on_spark(SparkCluster("x"), [], there, given.open(driver), strict_fill=False, recount=True)
            return spark_engine._prepare(stack, sent[0])

    return prepare


def test_a_store_that_is_missing_on_a_worker_or_another_is_named(
    start: Callable[..., Any], rfc: Rfc, tmp_path: Path, gniah: Callable[..., Finished]
) -> None:
    with ExitStack() as stack, pytest.raises(StoreError, match=f"^{tmp_path}/store: there is no graph store here"):
        start(stack, store=str(tmp_path / "store"))
    # The same rows under a manifest with another cutoff.
    shutil.copytree(rfc.graph, tmp_path / "graph")
    resealed(tmp_path / "graph", put(cutoff="2011-01-01"))
    done = gniah("import", tmp_path / "graph", "--store", tmp_path / "store")
    assert done.code == 0, done.err
    with ExitStack() as stack, pytest.raises(InputError, match=f"another graph than {tmp_path}/store holds"):
        start(stack, store=str(tmp_path / "store"))


def test_other_paths_a_corpus_tokenizer_or_templates_on_a_worker_are_named(
    start: Callable[..., Any], rfc: Rfc, rfc_sources: Sources, tmp_path: Path, gniah: Callable[..., Finished]
) -> None:
    done = gniah("paths", "--store", rfc.store, "--out", tmp_path / "p", "--depths", "2,3", "--count", "99")
    assert done.code == 0, done.err
    shipped = Path(spark_engine.__file__).with_name("templates") / "plain.json"
    text = shipped.read_text(encoding="utf-8").replace("Title", "Titel")
    (tmp_path / "own.json").write_text(text, encoding="utf-8")
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "x.py").write_text("a = 1\n\nb = 2\n", encoding="utf-8")
    build_corpus("code", tmp_path / "code", tmp_path / "corpus")
    build_corpus("code", tmp_path / "books", tmp_path / "other")
    on_disk = replace(rfc_sources, corpora={"code": tmp_path / "corpus"})
    with ExitStack() as stack:
        for changed, told in (
            ({"paths": tmp_path / "p"}, f"{tmp_path}/p/.*: another pool of paths"),
            ({"corpora": {"code": tmp_path / "gone"}}, f"{tmp_path}/gone: no such folder"),
            ({"given": on_disk, "corpora": {"code": tmp_path / "other"}}, f"{tmp_path}/other: another corpus"),
            ({"tokenizers": ("x=tiktoken:o200k_base",)}, "x=tiktoken:o200k_base: another tokenizer"),
            ({"templates": str(tmp_path / "own.json")}, f"{tmp_path}/own.json: another template set"),
        ):
            with pytest.raises(InputError, match=f"^{told}") as caught:
                start(stack, **changed)
            assert caught.value.remedy
        assert callable(start(stack))
        assert callable(start(stack, given=on_disk))
