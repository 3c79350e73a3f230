"""Filter and import, killed and interrupted anywhere: the next call completes, with the bytes of an undisturbed run.

GNIAH_KILLS sets how many kills each case gets.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gniah.cypher import open_store
from gniah.records.files import sha256_file
from gniah.records.manifests import Manifest
from gniah.records.streams import Stream

KILLS = int(os.environ.get("GNIAH_KILLS", "8"))
FILES = ["citations.parquet", "manifest.json", "papers.parquet"]
PAPERS, CITATIONS, SHARDS = 20_000, 60_000, 4


def start(*words: object) -> subprocess.Popen[str]:
    """Start `gniah-load` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from gniah.loader.cli import main; main()", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={"PATH": "/usr/bin:/bin"},
        start_new_session=True,
    )


def finish(*words: object) -> str:
    """Run `gniah-load` to its end; return what it said."""
    process = start(*words)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process and what it started, with no chance to tidy up; gone workers are waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


def write_gz(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    text = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    path.write_bytes(gzip.compress(text, compresslevel=1, mtime=0))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards of papers in `p` and of citations in `c`, with repeats in both."""
    folder = tmp_path_factory.mktemp("shards")
    stream = Stream("shards", "test")
    papers = [
        {
            "corpusid": 7 * number,
            "title": f"On the subject {number % 5000} &amp; Émile's {number}",
            "authors": [{"authorId": str(number % 900), "name": f"A. Person {number % 900}"}],
            "venue": "V" * (number % 3),
            "publicationdate": f"2026-{number % 6 + 1:02d}-11",
        }
        for number in range(PAPERS)
    ]
    citations = [
        {
            "citationid": number % 50_000,
            "citingcorpusid": 7 * stream.below(PAPERS),
            "citedcorpusid": 7 * stream.below(PAPERS // 20),
            "isinfluential": number % 9 == 0,
        }
        for number in range(CITATIONS)
    ]
    for shard in range(SHARDS):
        write_gz(folder / "p" / f"{shard}.gz", papers[shard::SHARDS] + papers[shard : shard + 10])
        write_gz(folder / "c" / f"{shard}.gz", citations[shard::SHARDS] + citations[shard : shard + 10])
    return folder


def filter_words(shards: Path, out: Path, *more: object) -> list[object]:
    return ["filter", "--papers", shards / "p", "--citations", shards / "c", "--out", out, *more]


@pytest.fixture(scope="module")
def undisturbed(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The graph of a run that nobody disturbed, and its seconds."""
    out = tmp_path_factory.mktemp("undisturbed") / "g"
    before = time.monotonic()
    finish(*filter_words(shards, out))
    return out, time.monotonic() - before


def same_graph(out: Path, wanted: Path) -> None:
    assert sorted(entry.name for entry in out.iterdir()) == FILES
    for name in FILES[::2]:
        assert sha256_file(out / name) == sha256_file(wanted / name)
    assert Manifest.read(out, "gniah/graph/1").content == Manifest.read(wanted, "gniah/graph/1").content


def beside(out: Path) -> list[str]:
    return sorted(entry.name for entry in out.parent.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_filter_completes_after_a_kill_at_any_moment(
    shards: Path, undisturbed: tuple[Path, float], tmp_path: Path, jobs: int
) -> None:
    wanted, seconds = undisturbed
    stream = Stream("kills", "filter", jobs)
    resumed = 0
    for turn in range(KILLS):
        out = tmp_path / str(turn) / "g"
        out.parent.mkdir()
        words = filter_words(shards, out, "--jobs", jobs)
        process = start(*words)
        # One moment of each of the equal parts of a run, so that even a few kills meet all of it.
        moment = (turn + stream.below(1000) / 1000) / KILLS * seconds * (1 if jobs == 1 else 1.5)
        time.sleep(0.1 + moment)
        kill_group(process)
        if out.exists():
            same_graph(out, wanted)
        resumed += "going on:" in finish(*words)
        same_graph(out, wanted)
        assert beside(out) == [".g.lock", "g"]
    assert resumed


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends(
    shards: Path, undisturbed: tuple[Path, float], tmp_path: Path
) -> None:
    wanted, seconds = undisturbed
    words = filter_words(shards, tmp_path / "g")
    for _ in range(60):
        process = start(*words)
        try:
            process.communicate(timeout=seconds * 0.7)
        except subprocess.TimeoutExpired:
            kill_group(process)
        if process.returncode == 0:
            break
    same_graph(tmp_path / "g", wanted)
    assert beside(tmp_path / "g") == [".g.lock", "g"]


def until(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that a process is about to do."""
    end = time.monotonic() + 60
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


def pieces(out: Path) -> int:
    return len(list(out.with_name(f".{out.name}.work").glob("*-*.json")))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_finished_shards_and_the_next_call_goes_on(
    shards: Path, undisturbed: tuple[Path, float], tmp_path: Path, jobs: int
) -> None:
    out = tmp_path / "g"
    words = filter_words(shards, out, "--jobs", jobs)
    process = start(*words)
    until(lambda: pieces(out) > 0, process)
    os.killpg(process.pid, signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert printed == ""
    assert "Traceback" not in said
    assert f"{tmp_path / '.g.work'}: " in said and "finished shards are kept; the same command goes on" in said
    assert said.splitlines()[-1].startswith("interrupted; finished work is kept")
    assert beside(out) == [".g.lock", ".g.work"]
    assert not list((tmp_path / ".g.work").glob(".*"))
    again = finish(*words)
    assert "going on: " in again and "papers shards were read by an earlier call" in again
    same_graph(out, undisturbed[0])
    assert beside(out) == [".g.lock", "g"]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_while_sorting_is_an_interrupt(
    shards: Path, undisturbed: tuple[Path, float], tmp_path: Path, jobs: int
) -> None:
    words = filter_words(shards, tmp_path / "g", "--jobs", jobs)
    for turn in range(4):
        process = start(*words)
        assert process.stderr is not None
        assert any("sorting" in line for line in process.stderr)
        time.sleep(0.05 * turn)
        os.killpg(process.pid, signal.SIGINT)
        printed, said = process.communicate(timeout=60)
        if process.returncode == 0:  # it was too late
            break
        assert process.returncode == 130, said
        assert printed == ""
        assert "Traceback" not in said
        assert "8 finished shards are kept" in said
    assert turn
    assert "8 finished" not in finish(*words)
    same_graph(tmp_path / "g", undisturbed[0])
    assert beside(tmp_path / "g") == [".g.lock", "g"]


@pytest.mark.slow
def test_an_interrupt_while_workers_start_prints_no_traceback(shards: Path, tmp_path: Path) -> None:
    for turn in range(4):
        process = start(*filter_words(shards, tmp_path / str(turn), "--jobs", 2))
        assert process.stderr is not None
        assert select.select([process.stderr], [], [], 60)[0]  # "reading 4 papers …"
        time.sleep(0.1 * turn)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "Traceback" not in said


@pytest.mark.slow
def test_workers_end_when_their_parent_alone_is_killed(shards: Path, tmp_path: Path) -> None:
    process = start(*filter_words(shards, tmp_path / "g", "--jobs", 2))
    work = tmp_path / ".g.work"
    until(lambda: len(list(work.glob(".*.part"))) >= 2, process)
    process.kill()
    process.communicate(timeout=30)  # its end of file: no worker holds the pipes any more
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a worker lives on")


@pytest.mark.slow
def test_import_completes_after_a_kill_at_any_moment(undisturbed: tuple[Path, float], tmp_path: Path) -> None:
    graph, _ = undisturbed
    before = time.monotonic()
    finish("import", graph, "--store", tmp_path / "wanted")
    seconds = time.monotonic() - before
    stream = Stream("kills", "import")
    with open_store(str(tmp_path / "wanted")) as wanted:
        citing, cited = wanted.edges()
        some = sorted({*citing[:50].tolist(), *cited[:50].tolist()})
        papers, around = wanted.papers(some), wanted.neighbours(some, "cited_by")
        counts = wanted.counts()
    for turn in range(KILLS):
        store = tmp_path / str(turn) / "store"
        store.parent.mkdir()
        process = start("import", graph, "--store", store)
        time.sleep(0.1 + (turn + stream.below(1000) / 1000) / KILLS * seconds)
        kill_group(process)
        if store.exists():
            assert sorted(entry.name for entry in store.iterdir()) == ["graph.lbug", "manifest.json"]
            assert Manifest.read(store, "gniah/store/1").content["counts"] == counts
        finish("import", graph, "--store", store)
        with open_store(str(store)) as found:
            assert found.counts() == counts
            assert found.manifest.digest == Manifest.read(graph, "gniah/graph/1").digest
            assert all((one == other).all() for one, other in zip(found.edges(), (citing, cited), strict=True))
            assert found.papers(some) == papers
            assert found.neighbours(some, "cited_by") == around
        assert sorted(entry.name for entry in store.iterdir()) == ["graph.lbug", "manifest.json"]
        assert beside(store) == [".store.lock", "store"]
