"""Sampling, building, verifying and running, stopped anywhere: the next call completes, with the same bytes.

`GNIAH_KILLS` sets how many kills each case gets; `GNIAH_KILLS_REPORT` names a file that gets a line about each case.
What is said here of filter and import stands in `tests/loader/test_stops.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from programs import Finished, Rfc, call_program, program_of

from gniah.records.files import json_line
from gniah.records.streams import Stream

KILLS = int(os.environ.get("GNIAH_KILLS", "6"))
REPORT = os.environ.get("GNIAH_KILLS_REPORT")
DEPTHS = (2, 3, 4, 6, 8, 12)
# The manifests' `run` part tells of a run and is no part of the result.
Result = dict[str, Any]

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Step:
    """A command that may be stopped: its words for an output folder, its result, and what of it is finished by then.

    `finished` counts what stands in a folder that a stopped call left, of a `total`; `words_of_resuming` is what the
    next call says of so many.
    """

    name: str
    words: Callable[[Path], Sequence[str | Path]]
    result: Callable[[Path], Result]
    finished: Callable[[Path], int]
    words_of_resuming: Callable[[int], str]
    total: int
    prints_result: bool = False


def files_below(folder: Path) -> Result:
    """Return all files by name; of a manifest what is hashed further on. Locks are no part of a result."""
    found: Result = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.name == ".lock":
            continue
        found[name] = json.loads(path.read_bytes())["content"] if path.name == "manifest.json" else path.read_bytes()
    return found


def whole_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def many_examples(rfc: Rfc, folder: Path, times: int) -> Path:
    """Return a file of the benchmark's examples, each many times over with a qid and a title of its own."""
    lines = (rfc.bench / "examples.jsonl").read_bytes().splitlines()
    with (folder / "examples.jsonl").open("wb") as stream:
        for number in range(times):
            for line in lines:
                value = json.loads(line)
                value["qid"] = f"{value['qid']}-{number}"
                value["user_prompt"] += "\n" * (number + 1)
                stream.write(json_line(value))
    return folder / "examples.jsonl"


def steps(rfc: Rfc, folder: Path) -> dict[str, Step]:
    many = many_examples(rfc, folder, 40)

    def copied(out: Path) -> Path:
        """Return the examples beside which a verification keeps its journal."""
        out.mkdir(exist_ok=True)
        if not (out / "examples.jsonl").exists():
            shutil.copyfile(many, out / "examples.jsonl")
        return out

    def paths(out: Path) -> Sequence[str | Path]:
        depths = ",".join(map(str, DEPTHS))
        return ("paths", "--store", rfc.store, "--out", out, "--depths", depths, "--count", "150", "--seed", "3")

    def pieces(out: Path) -> int:
        return len([path for path in (out / ".work").glob("*.json") if path.name != "plan.json"])

    def examples(jobs: int) -> Step:
        return Step(
            f"examples, {jobs} jobs",
            lambda out: rfc.example_words(out, "--count", "24", "--jobs", str(jobs)),
            files_below,
            pieces,
            lambda count: f"going on; {count} of 24 examples are finished already",
            24,
        )

    def verify(jobs: int) -> Step:
        return Step(
            f"verify, {jobs} jobs",
            lambda out: ("verify", copied(out), "--jobs", str(jobs), "--json"),
            files_below,
            lambda out: whole_lines(out / ".examples.jsonl.verified"),
            lambda count: f"going on; {count} examples are verified already",
            320,
            prints_result=True,
        )

    every = (
        Step(
            "paths",
            paths,
            files_below,
            lambda out: len(list(out.rglob("manifest.json"))),
            lambda count: f"k = {DEPTHS[count - 1]}: the paths are there already",
            len(DEPTHS),
        ),
        examples(1),
        examples(2),
        verify(1),
        verify(2),
        Step(
            "run",
            lambda out: ("run", many, "--model", "text-solver", "--model", "random", "--out", out),
            files_below,
            lambda out: whole_lines(out / "inference_pool.jsonl"),
            lambda count: f"going on; {count} answers are there already",
            640,
        ),
    )
    return {step.name: step for step in every}


STEPS = ("paths", "examples, 1 jobs", "examples, 2 jobs", "verify, 1 jobs", "verify, 2 jobs", "run")


@dataclass(frozen=True)
class Undisturbed:
    """A step that nobody disturbed: what came of it, what it printed, and how long it took."""

    step: Step
    result: Result
    printed: str
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(rfc: Rfc, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Undisturbed]:
    folder = tmp_path_factory.mktemp("undisturbed")
    every = steps(rfc, folder)
    known: dict[str, Undisturbed] = {}

    def run(name: str) -> Undisturbed:
        if name not in known:
            step, out = every[name], folder / name.replace(" ", "-")
            step.words(out)
            began = time.monotonic()
            done = completed(step, out)
            known[name] = Undisturbed(step, step.result(out), done.out, time.monotonic() - began)
        return known[name]

    return run


def completed(step: Step, out: Path) -> Finished:
    done = call_program(*step.words(out))
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    return done


@contextlib.contextmanager
def started(words: Sequence[str | Path]) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a process group of its own, of which nothing is left at the end."""
    process = subprocess.Popen(
        program_of(words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)


def ended_alone(process: subprocess.Popen[str]) -> bool:
    """Kill a process but not its workers; return whether it had ended before. Workers must follow it at once."""
    before = process.poll() is not None
    process.kill()
    # Workers hold the pipes too: their end is the end of the last one.
    process.communicate(timeout=5)
    until_all_are_gone(process)
    return before


def until_all_are_gone(process: subprocess.Popen[str]) -> None:
    """Wait for the end of all that a process has started, which must come within a moment of its own."""
    deadline = time.monotonic() + 3
    while living(process.pid):
        assert time.monotonic() < deadline, f"workers live on: {living(process.pid)}"
        time.sleep(0.02)


def living(group: int) -> list[str]:
    """Return the processes of a group that still run; the dead whom nobody has buried yet do not count."""
    if not Path("/proc/self/stat").exists():
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(owner) == group and state not in "ZX":
                    found.append(entry.name)
    return found


def check_result(wanted: Undisturbed, out: Path, done: Finished) -> None:
    found = wanted.step.result(out)
    assert sorted(found) == sorted(wanted.result)
    assert found == wanted.result
    if wanted.step.prints_result:
        assert done.out == wanted.printed


def until(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that a process is about to do."""
    deadline = time.monotonic() + 60
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_completes_after_a_kill_at_any_moment(
    undisturbed: Callable[[str], Undisturbed], tmp_path: Path, name: str
) -> None:
    wanted = undisturbed(name)
    step, stream = wanted.step, Stream("kills", name)
    moments, resumed, late = [], 0, 0
    for turn in range(KILLS):
        out = tmp_path / str(turn)
        # One moment in each of the equal parts of a run, so that even a few kills meet all of it; every other one is
        # counted in finished work, for the time that a run takes is not the same under another load.
        moment = (turn + stream.below(1000) / 1000) / KILLS
        words = step.words(out)
        began = time.monotonic()
        with started(words) as process:
            if turn % 2:
                amount = 1 + int(moment * (step.total - 1))
                while process.poll() is None and step.finished(out) < amount:
                    time.sleep(0.002)
            else:
                time.sleep(moment * wanted.seconds)
            late += ended_alone(process)
        moments.append(round(time.monotonic() - began, 3))
        finished = step.finished(out)
        lines = first_lines(out, finished) if name == "run" else b""
        done = completed(step, out)
        check_result(wanted, out, done)
        if finished:
            resumed += 1
            assert step.words_of_resuming(finished) in done.err
            assert first_lines(out, finished).startswith(lines)
        shutil.rmtree(out)
    if REPORT:
        report = {"step": name, "kills": KILLS, "too late": late, "found finished work": resumed, "moments": moments}
        with Path(REPORT).open("ab") as sheet:
            sheet.write(json_line({**report, "seconds": round(wanted.seconds, 2)}))


def first_lines(run: Path, count: int) -> bytes:
    path = run / "inference_pool.jsonl"
    return b"".join(path.read_bytes().splitlines(keepends=True)[:count]) if path.is_file() else b""


def test_a_run_has_every_request_once(undisturbed: Callable[[str], Undisturbed]) -> None:
    keys = [json.loads(line)["key"] for line in undisturbed("run").result["inference_pool.jsonl"].splitlines()]
    assert len(keys) == len(set(keys)) == 2 * 8 * 40


def test_a_finished_depth_is_not_sampled_again(undisturbed: Callable[[str], Undisturbed], tmp_path: Path) -> None:
    wanted = undisturbed("paths")
    with started(wanted.step.words(tmp_path)) as process:
        until(lambda: wanted.step.finished(tmp_path) >= 2, process)
        ended_alone(process)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("manifest.json")}
    done = completed(wanted.step, tmp_path)
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    assert done.err.count("the paths are there already") == len(before) >= 2
    check_result(wanted, tmp_path, done)


# Ends the process as kill -9 does, at the n-th time that a file gets its name, or when the pieces are removed.
KILLED_AT = """
import os, pathlib, shutil, signal, sys
at, named, replace, rmtree = sys.argv.pop(1), [], pathlib.Path.replace, shutil.rmtree
def stopping_replace(path, target):
    named.append(target)
    if str(len(named)) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(path, target)
def stopping_rmtree(path, *more, **named):
    if at == "removing" and str(path).endswith(".work"):
        (pathlib.Path(path) / "plan.json").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return rmtree(path, *more, **named)
pathlib.Path.replace, shutil.rmtree = stopping_replace, stopping_rmtree
from gniah.generator.cli import main
main()
"""


@pytest.mark.parametrize("at", ["1", "2", "4", "6", "removing"])
def test_a_kill_while_a_benchmark_is_published(rfc: Rfc, tmp_path: Path, at: str) -> None:
    out = tmp_path / "bench"
    # All pieces are there, and what is left is five files and the manifest.
    for part in ("1/2", "2/2"):
        assert call_program(*rfc.example_words(tmp_path / part[0], "--part", part)).code == 0
    shutil.copytree(tmp_path / "1" / ".work", out / ".work")
    shutil.copytree(tmp_path / "2" / ".work", out / ".work", dirs_exist_ok=True)
    words = [str(word) for word in rfc.example_words(out)]
    killed = subprocess.run([sys.executable, "-c", KILLED_AT, at, *words], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (out / "manifest.json").exists() == (at == "removing")
    done = call_program(*words)
    assert done.code == 0, done.err
    said = "all 8 examples were finished already" if at == "removing" else "going on; 8 of 8 examples"
    assert said in done.err
    assert files_below(out) == files_below(rfc.bench)


@pytest.mark.parametrize("name", STEPS)
def test_an_interrupt_ends_a_step_in_order(
    undisturbed: Callable[[str], Undisturbed], tmp_path: Path, name: str
) -> None:
    wanted = undisturbed(name)
    step, out = wanted.step, tmp_path / "out"
    with started(step.words(out)) as process:
        until(lambda: step.finished(out) > 0, process)
        os.killpg(process.pid, signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert printed == ""
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("interrupted; finished work is kept, and the same command goes on")
    assert not [path for path in out.rglob("*") if path.name.endswith((".part", ".old"))]
    finished = step.finished(out)
    assert finished
    done = completed(step, out)
    assert step.words_of_resuming(finished) in done.err
    check_result(wanted, out, done)


@pytest.mark.parametrize("name", STEPS)
def test_two_interrupts_end_a_step_at_once(
    undisturbed: Callable[[str], Undisturbed], tmp_path: Path, name: str
) -> None:
    wanted = undisturbed(name)
    step, out = wanted.step, tmp_path / "out"
    with started(step.words(out)) as process:
        until(lambda: step.finished(out) > 0, process)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=3)
    # The second one ends the process without another word; a shell calls that 130 too.
    assert process.returncode in {130, -signal.SIGINT}
    assert "Traceback" not in said
    until_all_are_gone(process)
    done = completed(step, out)
    check_result(wanted, out, done)


@pytest.mark.parametrize("moment", [0.0, 0.15, 0.3, 0.45])
def test_an_interrupt_while_workers_start_prints_no_traceback(rfc: Rfc, tmp_path: Path, moment: float) -> None:
    with started(rfc.example_words(tmp_path / "out", "--jobs", "2")) as process:
        until((tmp_path / "out/.work/plan.json").exists, process)
        time.sleep(moment)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode in {0, 130}
    assert "Traceback" not in said


def test_of_two_processes_in_one_folder_one_is_busy_and_the_other_completes(rfc: Rfc, tmp_path: Path) -> None:
    words = rfc.example_words(tmp_path)
    with started([*words, "--jobs", "2"]) as one:
        until((tmp_path / ".work/plan.json").exists, one)
        os.killpg(one.pid, signal.SIGSTOP)  # so that it is still there when the other comes
        two = call_program(*words)
        os.killpg(one.pid, signal.SIGCONT)
        _, said = one.communicate(timeout=60)
    assert (one.returncode, two.code) == (0, 8), said + two.err
    assert f"{tmp_path}: another process is writing here" in two.err
    assert files_below(tmp_path) == files_below(rfc.bench)
