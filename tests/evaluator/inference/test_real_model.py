"""A real model behind a real server, asked through the command line: what is kept is what the server counted and did.

The model is far too weak for the questions. What it is right for is the wire, the counts, and how an end is told.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

if "small_model" not in sys.modules:
    _spec = importlib.util.spec_from_file_location("small_model", Path(__file__).with_name("small_model.py"))
    assert _spec is not None and _spec.loader is not None
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["small_model"] = _module
    _spec.loader.exec_module(_module)

from programs import Finished, Rfc, call_program
from small_model import WINDOW, served, tokenizer_file

pytestmark = pytest.mark.slow

LIMIT = 24
Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


@dataclass(frozen=True)
class Benches:
    """Two short examples, and one that is longer than the model's window."""

    short: Path
    long: Path


@pytest.fixture(scope="module")
def benches(address: str, rfc: Rfc, tmp_path_factory: pytest.TempPathFactory) -> Benches:
    folder = tmp_path_factory.mktemp("small")
    tokenizer = tokenizer_file(folder / "tokenizer")
    made = Benches(folder / "short", folder / "long")
    tokenizers = ("--tokenizer", "tiktoken:o200k_base", "--tokenizer", f"smollm2=file:{tokenizer}")
    for out, tasks, size, length in (
        (made.short, "yes-no,counting", "4-4", "1000"),
        (made.long, "yes-no", "60-60", "9500"),
    ):
        settings = ("--tasks", tasks, "--depths", "2", "--sizes", size, "--context-length", length, "--seed", "3")
        count = str(1 + tasks.count(","))
        words = rfc.example_words(out, "--count", count, "--distractors", "code", *settings, *tokenizers)
        done = call_program(*words)
        assert done.code == 0, done.err
    return made


@pytest.fixture(scope="module")
def ask(address: str) -> Callable[..., Finished]:
    """Ask the model, one request at a time, for short answers."""

    def asked(bench: Path, out: Path, *more: str, model: str | Path = "smollm2") -> Finished:
        words = ("--base-address", address, "--parameter", f"max_tokens={LIMIT}", "--parameter", "temperature=0")
        return call_program("run", bench, "--model", model, "--out", out, *words, "--concurrency", "1", *more, "--json")

    return asked


@pytest.fixture(scope="module")
def run(benches: Benches, ask: Callable[..., Finished], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    done = ask(benches.short, out, "--repeats", "2")
    assert done.code == 0, done.err
    told = json.loads(done.out)["models"][0]
    assert (told["total"], told["answered"], told["failed"], told["cut"], told["unpriced"]) == (4, 4, 0, 0, 4)
    return out


def lines(path: Path) -> Records:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pool(out: Path) -> Records:
    return lines(out / "inference_pool.jsonl")


def counts(bench: Path) -> Mapping[str, int]:
    """Return how many tokens each request has by the model's own tokenizer, its chat format included."""
    return {one["qid"]: one["token_counts"]["smollm2"] for one in lines(bench / "examples.jsonl")}


def test_the_server_counts_as_many_tokens_as_the_benchmark(run: Path, benches: Benches) -> None:
    found = pool(run)
    assert [(one["qid"], one["repeat"]) for one in found] == [
        (qid, repeat) for qid in counts(benches.short) for repeat in (0, 1)
    ]
    for one in found:
        assert one["usage"]["prompt_tokens"] == counts(benches.short)[one["qid"]]


def test_a_repeat_finds_its_prompt_in_the_cache(run: Path) -> None:
    for one in pool(run):
        usage = one["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        assert cached == usage["prompt_tokens"] - 1 if one["repeat"] else cached < usage["prompt_tokens"] / 2


def test_records_are_whole(run: Path, address: str) -> None:
    for one in pool(run):
        written, end = one["usage"]["completion_tokens"], one["finish_reason"]
        assert one["text"]
        assert (end == "length" and written == LIMIT) or (end == "stop" and written < LIMIT)
        assert (one["model"], one["base_address"], one["error"]) == ("smollm2", address, None)
        assert one["parameters"] == {"model": "openai/smollm2", "max_tokens": LIMIT, "temperature": 0}
        call = one["call"]
        assert call["sent"]["max_tokens"] == LIMIT and call["sent"]["stream"] is True
        assert (call["served"]["model"], call["served"]["finish_reason"]) == ("smollm2", end)
        assert call["served"]["id"].startswith("chatcmpl-")
        assert (call["failed"], call["cost"]) == ([], None)
        assert 0 < call["first_token_seconds"] <= one["seconds"]


def test_what_is_answered_is_not_asked_again(run: Path, benches: Benches, ask: Callable[..., Finished]) -> None:
    before = (run / "inference_pool.jsonl").read_bytes()
    done = ask(benches.short, run, "--repeats", "2")
    assert done.code == 0, done.err
    told = json.loads(done.out)["models"][0]
    assert (told["already"], told["answered"]) == (4, 0)
    assert (run / "inference_pool.jsonl").read_bytes() == before


def test_answers_are_scored_by_what_they_say_and_how_they_ended(run: Path, benches: Benches) -> None:
    done = call_program("score", benches.short, run)
    assert done.code == 0, done.err
    (path,) = run.rglob("model=*.json")
    statuses = json.loads(path.read_text(encoding="utf-8"))["overall"]["statuses"]
    assert sum(statuses.values()) == 4
    assert statuses["error"] == statuses["prompt-cut"] == 0
    unread = [one for one in pool(run) if one["finish_reason"] == "length" and "answer" not in one["text"].lower()]
    assert statuses["length"] >= len(unread)


def test_an_answer_that_is_not_streamed_is_kept_alike(
    run: Path, benches: Benches, ask: Callable[..., Finished], tmp_path: Path
) -> None:
    done = ask(benches.short, tmp_path / "run", "--slots", "1-1", "--no-stream")
    assert done.code == 0, done.err
    (whole,) = pool(tmp_path / "run")
    streamed = next(one for one in pool(run) if one["key"] == whole["key"])
    assert whole["usage"]["prompt_tokens"] == streamed["usage"]["prompt_tokens"]
    assert whole["usage"]["completion_tokens"] <= LIMIT and whole["text"]
    assert "stream" not in whole["call"]["sent"] or whole["call"]["sent"]["stream"] is False
    assert whole["call"]["first_token_seconds"] is None


def test_a_prompt_longer_than_the_window_is_told_as_that(
    benches: Benches, ask: Callable[..., Finished], tmp_path: Path
) -> None:
    (length,) = counts(benches.long).values()
    assert length > WINDOW
    done = ask(benches.long, tmp_path / "run")
    assert done.code == 1
    assert "context-window 1" in done.err
    (one,) = pool(tmp_path / "run")
    assert one["error_kind"] == "context-window"
    assert f"({length} tokens)" in one["error"]
    assert (one["text"], one["finish_reason"], one["usage"]) == ("", None, {})
    scored = call_program("score", benches.long, tmp_path / "run")
    assert scored.code == 1
    (path,) = tmp_path.rglob("model=*.json")
    statuses = json.loads(path.read_text(encoding="utf-8"))["overall"]["statuses"]
    assert {name for name, count in statuses.items() if count} == {"error"}


def test_where_the_window_is_known_nothing_is_sent(
    benches: Benches, ask: Callable[..., Finished], tmp_path: Path
) -> None:
    file = tmp_path / "smollm2.toml"
    file.write_text(
        'schema = "gniah/model/1"\nname = "smollm2"\nlitellm = "openai/smollm2"\ntokenizers = ["smollm2"]\n'
        f"context_window = {WINDOW}\n",
        encoding="utf-8",
    )
    refused = ask(benches.long, tmp_path / "run", model=file)
    assert refused.code == 2
    assert "1 of 1 examples exceed its window" in refused.err
    skipped = ask(benches.long, tmp_path / "run", "--too-long", "skip", model=file)
    assert skipped.code == 0, skipped.err
    assert not (tmp_path / "run" / "inference_pool.jsonl").read_bytes()


def test_a_limit_of_cost_needs_prices(benches: Benches, ask: Callable[..., Finished], tmp_path: Path) -> None:
    done = ask(benches.short, tmp_path / "run", "--max-cost", "1")
    assert done.code == 2
    assert "is unknown, so --max-cost could not be kept" in done.err
    assert not (tmp_path / "run").exists()
