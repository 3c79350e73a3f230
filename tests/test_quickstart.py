"""The quickstart's own numbers: every answer derived again, audits silent, models where they must be."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from gniah.generator import verify
from gniah.records import read_examples

PROGRAM = [sys.executable, "-c", "from gniah.generator.cli import main; main()", "quickstart"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("quickstart") / "here"
    done = subprocess.run([*PROGRAM, "--out", out], capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def scores(out: Path, model: str) -> dict[str, dict[str, float]]:
    value = json.loads((out / "results/eval/reasoning_effort=none" / f"model={model}.json").read_text("utf-8"))
    return {"all": value["overall"], **value["by"]["task"]}


@pytest.mark.slow
def test_every_answer_follows_from_the_text(ran: tuple[Path, str]) -> None:
    verdicts = [verify(example) for example in read_examples(ran[0] / "bench" / "examples.jsonl")]
    assert len(verdicts) == 24
    assert [verdict for verdict in verdicts if not verdict.right] == []
    assert {verdict.task for verdict in verdicts} == {"yes-no", "multiple-choice", "counting"}
    assert "24 of 24 right" in ran[1]


@pytest.mark.slow
def test_no_audit_finds_anything(ran: tuple[Path, str]) -> None:
    table = ran[1].split("what it finds\n")[1].split("24 examples audited")[0]
    found = re.findall(r"^([a-z-]+[a-z]) +(\d+) ", table, re.MULTILINE)
    assert len(found) >= 20
    assert {count for _, count in found} == {"0"}


@pytest.mark.slow
def test_models_are_where_they_must_be(ran: tuple[Path, str]) -> None:
    solver, guess = scores(ran[0], "text-solver"), scores(ran[0], "random")
    assert solver["all"]["correct"] == solver["all"]["n"] == 24
    # The chance of guessing lies within the interval of what guessing did, for each task and for all together.
    for group in guess.values():
        assert group["wilson_95"][0] <= group["chance"] <= group["wilson_95"][1]
    constant = scores(ran[0], "constant")
    assert (constant["yes-no"]["correct"], constant["multiple-choice"]["correct"]) == (4, 2)  # labels are balanced


@pytest.mark.slow
def test_the_picture_is_one(ran: tuple[Path, str]) -> None:
    root = ElementTree.parse(ran[0] / "example.svg").getroot()
    assert root.tag.endswith("svg")
    assert len(root.findall(".//{http://www.w3.org/2000/svg}circle")) > 40


@pytest.mark.slow
def test_a_second_run_reuses_what_is_there_and_says_the_same(ran: tuple[Path, str]) -> None:
    files = ("bench/examples.jsonl", "bench/pool.jsonl", "results/inference_pool.jsonl", "example.svg")
    before = {name: (ran[0] / name).read_bytes() for name in files}
    again = subprocess.run([*PROGRAM, "--out", ran[0]], capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("nothing to do") >= 3
    assert "all 24 examples were finished already" in again.stderr
    assert {name: (ran[0] / name).read_bytes() for name in files} == before
