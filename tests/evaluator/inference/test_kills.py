"""A run is killed again and again, at any moment: each request is answered once, and nothing kept is asked again.

`GNIAH_KILLS` says how many kills; `benchmarks/inference_kills.py` makes 200.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from evaluator_toys import mixed, write_examples
from inference_provider import Act, Asked, Provider, playing

from gniah.evaluator.pool import pool_files
from gniah.evaluator.pool_keeping import check_pool
from gniah.records.streams import Stream

KILLS = int(os.environ.get("GNIAH_KILLS", "6"))
# An answer that takes many writes of a disk's page, so that a kill may fall within it.
LONG = "word " * 20_000
# So many requests are made for each kill, so that a run does not end before its kill.
FOR_EACH_KILL = 6


def start(folder: Path, examples: Path, provider: Provider) -> subprocess.Popen[bytes]:
    words = ["run", str(examples), "--model", "toy", "--base-address", provider.address, "--out", str(folder / "run")]
    code = "from gniah.evaluator.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code, *words, "--concurrency", "4"],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "stderr").open("ab"),
    )


def kept(folder: Path) -> set[str]:
    """Return the prompts' hashes of all whole lines of the pool that are complete answers, read plainly."""
    found = set()
    for path in pool_files(folder / "run"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            value = json.loads(line)
            if value["error"] is None:
                found.add(value["qid"])
    return found


@pytest.mark.slow
def test_a_killed_run_asks_nothing_again_that_is_on_disk_and_ends_with_each_answer_once(tmp_path: Path) -> None:
    examples = write_examples(tmp_path, mixed(FOR_EACH_KILL * KILLS))
    stream = Stream("kills", KILLS)
    qid_of = {one.user_prompt: one.qid for one in mixed(FOR_EACH_KILL * KILLS)}
    wrong: list[str] = []
    before: set[str] = set()

    def script(asked: Asked) -> Act:
        if qid_of[asked.prompt] in before:
            wrong.append(qid_of[asked.prompt])
        return Act(text=f"{LONG}\n\\answer{{YES}}", pieces=4, piece_delay=stream.below(20) / 1000)

    killed = 0
    with playing(script) as provider:
        while killed < KILLS:
            count = len(provider.asked)
            process = start(tmp_path, examples, provider)
            until = time.monotonic() + 60
            while len(provider.asked) == count and process.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.005)
            time.sleep(stream.below(250) / 1000)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            while provider.running:
                time.sleep(0.005)
            before = kept(tmp_path)
            if len(before) == len(qid_of):
                break
        assert killed == KILLS, "the run ended too early"
        assert start(tmp_path, examples, provider).wait(timeout=120) == 0
        assert wrong == []
    report = check_pool(tmp_path / "run")
    assert report.wrong == [] and report.cut_bytes == 0
    (model,) = report.models
    assert (model.complete, model.duplicates, sum(model.failed.values())) == (len(qid_of), 0, 0)
    lines = [json.loads(line) for path in pool_files(tmp_path / "run") for line in path.read_bytes().splitlines()]
    assert Counter(line["qid"] for line in lines) == dict.fromkeys(qid_of.values(), 1)
    # At most what was under way at a kill is paid for twice.
    twice = len(provider.asked) - len(qid_of)
    print(f"\n{KILLS} kills, {len(qid_of)} requests, {twice} asked a second time")
    assert 0 <= twice <= 4 * KILLS
    assert "Traceback" not in (tmp_path / "stderr").read_text()
