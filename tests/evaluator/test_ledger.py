"""Scored responses kept as lines: in order, complete ones before failures, whatever their keys hold."""

from __future__ import annotations

import dataclasses
import json
import random  # noqa: TID251  (only to put the input in another order)
import tracemalloc
from pathlib import Path

import pytest
from evaluator_toys import example, mixed, response

from gniah.evaluator import ledger
from gniah.evaluator.judging import Verdict, Verdicts
from gniah.evaluator.ledger import Ledger, ScoredResponses, json_bytes
from gniah.evaluator.results import write_scores
from gniah.evaluator.scoring import score
from gniah.records.errors import EnvironmentFault, InputError


def test_a_response_comes_back_as_it_was_scored() -> None:
    asked = example()
    answer = response(asked, "<think>hm", usage={"prompt_tokens": 7}, finish_reason="length", repeat=3)
    (model,) = score([asked], [answer]).models
    (scored,) = model.responses
    assert (scored.qid, scored.repeat, scored.key, scored.gold) == ("qid-0", 3, answer.key, "YES")
    assert (scored.usage, scored.finish_reason, scored.seconds) == ({"prompt_tokens": 7}, "length", None)
    assert scored.card.status == scored.ours.status == "length"
    value = json.loads(next(model.responses.lines()))
    assert list(value) == [
        "qid",
        "repeat",
        "gold",
        "card",
        "ours",
        "finish_reason",
        "usage",
        "seconds",
        "key",
        "cost",
        "tier",
    ]
    assert value["card"] == {"status": "length", "value": None, "reason": scored.card.reason}


def test_keys_of_other_programs_are_told_apart() -> None:
    asked = example()
    keys = ["", "k", "K", "é", "\ud83d", "ab" * 32, "AB" * 32, " " + "ab" * 31 + "a"]
    answers = [response(asked, key=key) for key in keys for _ in range(2)]
    (model,) = score([asked], answers).models
    assert (len(model.responses), len(model.duplicates)) == (len(keys), len(keys))
    assert {one.key for one in model.responses} == set(keys)


def test_order_does_not_depend_on_when_a_response_came() -> None:
    asked = mixed(5)
    answers = [response(one, repeat=repeat) for one in asked for repeat in range(3)]
    shuffled = random.Random(1).sample(answers, len(answers))
    first, second = (score(asked, order).models[0].responses for order in (answers, shuffled))
    assert list(first.lines()) == list(second.lines())


def test_responses_can_be_sliced_and_read_between_writes() -> None:
    asked = mixed(5)
    (model,) = score(asked, [response(one) for one in asked]).models
    assert isinstance(model.responses[1:3], ScoredResponses)
    assert [one.qid for one in model.responses[1:3]] == ["qid-1", "qid-2"]
    assert model.responses[-1].qid == "qid-4"
    assert len(model.errors) == 0


def test_memory_does_not_grow_with_the_text_of_responses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_IN_MEMORY", 1000)
    asked = mixed(20)
    write_scores(tmp_path, score(asked, [response(asked[0])]))  # so that imports are not counted
    peaks = []
    for repeats in (100, 1100):
        answers = (response(one, repeat=repeat, error="e" * 2000) for repeat in range(repeats) for one in asked)
        tracemalloc.start()
        write_scores(tmp_path, score(asked, answers, spill=tmp_path))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 20,000 more responses, each of 2,000 characters: their columns and the sort of them are all that may grow.
    assert (peaks[1] - peaks[0]) / 20_000 < 300


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    taken = Ledger(tmp_path)
    asked = example()
    answer = response(asked)
    verdicts = Verdicts(Verdict("wrong"), Verdict("wrong"))
    with Path("/dev/full").open("wb", buffering=0) as full:
        taken._lines = full  # type: ignore[assignment]
        with pytest.raises(EnvironmentFault, match="the disk is full") as raised:
            taken.add(0, 0, answer, verdicts, "YES", False)
    assert str(tmp_path) in raised.value.message


def test_an_empty_ledger_has_no_rows() -> None:
    assert len(Ledger().rows(0).position) == 0


def test_what_has_no_utf8_is_escaped() -> None:
    assert json.loads(json_bytes({"a": "\ud83d", "b": 2**70})) == {"a": "\ud83d", "b": 2**70}
    assert json_bytes({"a": "é"}) == '{"a":"é"}'.encode()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parameters": ["x"]}, "parameters"),
        ({"usage": 3}, "usage"),
        ({"base_address": 3}, "base_address"),
        ({"repeat": -1}, "repeat -1"),
        ({"repeat": 2**40}, "out of range"),
        ({"model": "\ud83d"}, "surrogate"),
        ({"qid": "\ud83d"}, "surrogate"),
        ({"parameters": {"seed": 2**60}}, "53 bits"),
        ({"parameters": {"seed": "\ud83d"}}, "surrogate"),
    ],
)
def test_what_no_pool_holds_is_refused(changes: dict[str, object], said: str) -> None:
    odd = dataclasses.replace(response(example()), **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=said):
        score([example()], [odd])


def test_parameters_in_another_order_are_the_same_model_and_other_types_are_not() -> None:
    asked = example()
    spelled = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2}, {"a": True, "b": 2}]
    answers = [response(asked, parameters=parameters) for parameters in spelled]
    assert len(score([asked], answers).models) == 3
