"""`gniah-eval run` with models over a network, as a user types it; `models`, `pool` and `lists`."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click.testing
import pytest
from evaluator_toys import mixed, write_examples

from gniah.evaluator.cli import PROGRAM
from gniah.evaluator.inference.model_files import shipped_models
from gniah.evaluator.pool import open_pool
from gniah.records.errors import GniahError
from gniah.records.files import locked_name
from gniah.records.responses import read_responses


@pytest.fixture(scope="module")
def provider_module() -> Any:
    import importlib.util

    if "inference_provider" not in sys.modules:
        path = Path(__file__).with_name("inference") / "provider.py"
        spec = importlib.util.spec_from_file_location("inference_provider", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["inference_provider"] = module
        spec.loader.exec_module(module)
    return sys.modules["inference_provider"]


@pytest.fixture
def provider(provider_module: Any) -> Iterator[Any]:
    with provider_module.playing(provider_module.Act()) as running:
        yield running


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    examples = [dataclasses.replace(one, token_counts={"t": 900}) for one in mixed(6)]
    uses = [({"name": "depth", "context_length": 1000, "slot": 5 - number},) for number in range(6)]
    write_examples(tmp_path / "bench", [one.with_experiments(use) for one, use in zip(examples, uses, strict=True)])
    return tmp_path / "bench"


def call(*words: object) -> click.testing.Result:
    return click.testing.CliRunner().invoke(PROGRAM, list(map(str, words)))


def error(*words: object) -> GniahError:
    found = call(*words).exception
    assert isinstance(found, GniahError), found
    return found


MODEL_FILE = """
schema = "gniah/model/1"
name = "mine"
litellm = "openai/served"
base_address = "{address}"
max_output_tokens = 100
context_window = {window}
tiers = ["flex", "default"]
prices_from = "nowhere, 2026"
[parameters]
temperature = 0.5
[[prices]]
tier = "flex"
input = "1"
output = "2"
[[prices]]
input = "2"
output = "4"
"""


def model_file(folder: Path, address: str, window: int = 1000) -> Path:
    path = folder / "mine.toml"
    path.write_text(MODEL_FILE.format(address=address, window=window))
    return path


def test_a_model_file_is_asked_as_it_says_and_its_costs_are_told(tmp_path: Path, bench: Path, provider: Any) -> None:
    result = call("run", bench, "--model", model_file(tmp_path, provider.address), "--out", tmp_path / "run")
    assert result.exit_code == 0, result.exception
    assert re.search(r"mine +6 +0 +0 +0 +0 +\$0\.01", result.output)
    assert {one.body["temperature"] for one in provider.asked} == {0.5}
    assert {one.body["service_tier"] for one in provider.asked} == {"flex"}
    found = list(read_responses(tmp_path / "run/inference_pool.jsonl"))
    assert {one.call.cost for one in found if one.call} == {"0.001040"}
    assert {json.dumps(dict(one.parameters)) for one in found} == {'{"model": "openai/served", "temperature": 0.5}'}


def test_efforts_and_parameters_of_the_command_line_go_before_the_file(
    tmp_path: Path, bench: Path, provider: Any
) -> None:
    words = ("run", bench, "--model", model_file(tmp_path, provider.address), "--out", tmp_path / "run", "--limit", 1)
    more = ("--effort", "low", "--effort", "high", "--parameter", "temperature=0.7", "--parameter", "stop=[]")
    result = call(*words, *more, "--tiers", "default", "--no-stream")
    assert result.exit_code == 0, result.exception
    assert sorted(one.body["reasoning_effort"] for one in provider.asked) == ["high", "low"]
    for one in provider.asked:
        assert (one.body["temperature"], one.body["stop"], one.body["service_tier"]) == (0.7, [], "default")
        assert not one.body.get("stream")
    assert call(*words, *more).exit_code == 0
    assert len(provider.asked) == 2  # a tier and a stream are ways to travel, and ask nothing new


def test_slots_of_a_list_are_asked_in_their_order(tmp_path: Path, bench: Path, provider: Any) -> None:
    words = ("run", bench, "--model", "toy", "--base-address", provider.address, "--out", tmp_path / "run")
    result = call(*words, "--experiment", "depth", "--slots", "1-3", "--concurrency", 1)
    assert result.exit_code == 0, result.exception
    found = [one.qid for one in read_responses(tmp_path / "run/inference_pool.jsonl")]
    assert found == ["qid-4", "qid-3", "qid-2"]


def test_offline_models_and_models_over_a_network_run_together(tmp_path: Path, bench: Path, provider: Any) -> None:
    file = model_file(tmp_path, provider.address)
    result = call("run", bench, "--model", "random", "--model", file, "--out", tmp_path / "run", "--json")
    assert result.exit_code == 0, result.exception
    assert [one["model"] for one in json.loads(result.stdout)["models"]] == ["random", "mine"]
    scored = call("score", bench, tmp_path / "run")
    assert scored.exit_code == 0, scored.exception
    assert "mine" in scored.output and "random" in scored.output


def test_a_preview_sends_and_writes_nothing(tmp_path: Path, bench: Path, provider: Any) -> None:
    words = ("run", bench, "--model", model_file(tmp_path, provider.address), "--out", tmp_path / "run")
    result = call(*words, "--preview", "--repeats", 2)
    assert result.exit_code == 0, result.exception
    assert not provider.asked and not (tmp_path / "run").exists()
    assert re.search(r"requests to send +12", result.output) and "nowhere, 2026" in result.output
    assert call(*words).exit_code == 0
    (found,) = json.loads(call(*words, "--preview", "--repeats", 2, "--json").stdout)["models"]
    assert (found["requests"], found["answered"]) == (6, 6)


def test_the_limit_on_cost_is_kept_and_told(tmp_path: Path, bench: Path, provider: Any) -> None:
    """One request can cost 0.0022 USD at most, and costs 0.00104."""
    words = ("run", bench, "--model", model_file(tmp_path, provider.address), "--out", tmp_path / "run")
    found = error(*words, "--max-cost", "0.004")
    assert found.exit_code == 1 and "could cost" in found.message
    assert 2 <= len(provider.asked) <= 3
    assert call(*words, "--max-cost", "1").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--model", "no-such"), 2, "there is no model 'no-such'; known are text-solver, random"),
        (("--model", "nowhere.toml"), 3, "nowhere.toml"),
        (("--model", "toy", "--base-address", "HERE", "--max-cost", "1"), 2, "--max-cost could not be kept"),
        (("--model", "toy", "--base-address", "ftp://x"), 2, "--base-address"),
        (("--model", "toy", "--base-address", "http://user:pass@127.0.0.1/v1"), 2, "--base-address"),
        (("--model", "toy", "--base-address", "HERE", "--parameter", "messages=[]"), 2, "--parameter .messages"),
        (("--model", "toy", "--base-address", "HERE", "--parameter", "drop_params=true"), 2, "drop_params"),
        (("--model", "toy", "--base-address", "HERE", "--parameter", "api_key=sk-0123456789abcdef"), 2, "api_key"),
        (("--model", "toy", "--base-address", "HERE", "--parameter", "nothing"), 2, "NAME=JSON"),
        (("--model", "toy", "--base-address", "HERE", "--key-variable", "NO_SUCH_KEY"), 2, "NO_SUCH_KEY is not set"),
        (("--model", "toy", "--base-address", "HERE", "--effort", "low", "--effort", "low"), 2, "given twice"),
        (("--model", "random", "--preview"), 2, "--preview is for models"),
        (("--model", "random", "--experiment", "none"), 2, "holds no example"),
        (("--model", "random", "--slots", "3-x"), 2, "range"),
        (("--model", "random", "--max-cost", "-1"), 2, "US dollars"),
        (("--model", "random", "--max-cost", "NaN"), 2, "US dollars"),
    ],
)
def test_wrong_words_are_told_before_anything_is_sent(
    tmp_path: Path, bench: Path, provider: Any, words: tuple[str, ...], code: int, message: str
) -> None:
    given = [word.replace("HERE", provider.address) for word in words]
    result = call("run", bench, "--out", tmp_path / "run", *given)
    found = result.exception
    shown = found.message if isinstance(found, GniahError) else result.output
    assert (found.exit_code if isinstance(found, GniahError) else result.exit_code) == code
    assert message in shown and "sk-0123456789abcdef" not in shown
    assert not provider.asked


@pytest.mark.parametrize(("how", "asked"), [("skip", 3), ("send", 6)])
def test_prompts_beyond_the_window_are_told_before_anything_is_sent(
    tmp_path: Path, provider: Any, how: str, asked: int
) -> None:
    examples = [dataclasses.replace(one, token_counts={"t": 900 + number % 2}) for number, one in enumerate(mixed(6))]
    bench = write_examples(tmp_path / "long", examples)
    words = ("run", bench, "--model", model_file(tmp_path, provider.address), "--out", tmp_path / "run")
    found = error(*words)
    assert found.exit_code == 2 and "3 of 6 examples exceed its window" in found.message and not provider.asked
    assert call(*words, "--too-long", how).exit_code == 0
    assert len(provider.asked) == asked


def test_one_model_is_not_asked_by_two_runs_at_once(tmp_path: Path, bench: Path, provider: Any) -> None:
    words = ("--model", "toy", "--base-address", provider.address, "--out", tmp_path / "run")
    assert call("run", bench, *words).exit_code == 0
    from gniah.evaluator.choosing import Changes, asked_models

    (model,) = asked_models("toy", Changes(provider.address, None, (), {}, None, None, {}, None))
    with locked_name(tmp_path / "run", f"asking.{model.claim}", "x"):
        assert error("run", bench, *words).exit_code == 8
        assert call("run", bench, "--model", "random", "--out", tmp_path / "run").exit_code == 0


def test_the_models_that_come_with_it_are_listed_and_printed_to_be_changed(tmp_path: Path) -> None:
    listed = call("models").output
    assert all(name in listed for name in shipped_models()) and len(shipped_models()) == 8
    printed = call("models", "gpt-5.6-luna").output
    (tmp_path / "mine.toml").write_text(printed)
    result = call(
        "run", write_examples(tmp_path, mixed(1)), "--model", tmp_path / "mine.toml", "--out", tmp_path, "--preview"
    )
    assert result.exit_code == 0, result.exception
    assert error("models", "no-such").exit_code == 2


def test_the_pool_is_checked_put_together_and_given_out(tmp_path: Path, bench: Path, provider: Any) -> None:
    words = ("run", bench, "--model", "toy", "--base-address", provider.address, "--out", tmp_path / "run")
    assert call(*words).exit_code == 0
    run = tmp_path / "run"
    assert re.search(r"toy +none +6 ", call("pool", "check", run).output)
    assert json.loads(call("pool", "check", run, "--json").stdout)["lines"] == 6
    assert "6 of 6 lines are left" in call("pool", "compact", run).output
    with open_pool(run) as pool, pool.path.open("ab") as stream:
        stream.write(b"{}\n")
    found = error("pool", "check", run)
    assert found.exit_code == 1 and "1 of 7 lines are damaged" in found.message
    assert error("pool", "check", tmp_path / "nowhere").exit_code == 3


def test_lists_are_named(bench: Path) -> None:
    assert re.search(r"depth +1000 +6 +0-5", call("lists", bench).output)
    assert json.loads(call("lists", bench, "--json").stdout) == [
        {"experiment": "depth", "context_length": 1000, "slots": 6, "last_slot": 5}
    ]
