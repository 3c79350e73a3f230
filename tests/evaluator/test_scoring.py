from __future__ import annotations

import dataclasses
import random  # noqa: TID251  (only to put the input in another order)
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from evaluator_toys import example, mixed, response

from gniah.evaluator import scoring
from gniah.evaluator.readings import Reading, Readings
from gniah.evaluator.results import escaped, eval_path, labels, model_json, unescaped, write_scores
from gniah.evaluator.scoring import score
from gniah.evaluator.tables import task_table, troubles, variable_table
from gniah.records import families
from gniah.records.errors import InputError
from gniah.records.files import json_document, read_json

RIGHT, WRONG = r"\answer{YES}", r"\answer{NO}"


def status(text: str = RIGHT, **changes: object) -> str:
    asked = example(token_counts={"a": 1000, "b": 1040})
    (model,) = score([asked], [response(asked, text, **changes)]).models
    return model.responses[0].card.status


# For each status, what makes it: a response can be made to fit several.
MAKERS: dict[str, dict[str, object]] = {
    "error": {"error": "timeout"},
    "prompt-cut": {"usage": {"prompt_tokens": 899}},
    "correct": {"text": RIGHT},
    "wrong": {"text": WRONG},
    "refused": {"finish_reason": "content_filter"},
    "length": {"finish_reason": "length"},
    "empty": {"text": ""},
    "unreadable": {"text": "hm"},
}
ORDER = list(MAKERS)


def pairs() -> list[tuple[str, str]]:
    """Every two statuses, the higher one first, that one response can fit: it has one text and one finish."""
    return [
        (higher, lower)
        for place, higher in enumerate(ORDER)
        for lower in ORDER[place + 1 :]
        if not set(MAKERS[higher]) & set(MAKERS[lower])
    ]


@pytest.mark.parametrize(("higher", "lower"), pairs())
def test_of_two_statuses_that_fit_the_higher_one_stands(higher: str, lower: str) -> None:
    both = {"text": "hm", **MAKERS[lower], **MAKERS[higher]}
    assert status(str(both.pop("text")), **both) == higher


def test_the_order_is_that_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| ([^|]+) \|", page.split("## Statuses")[1], re.MULTILINE)
    assert [int(place) for place, _ in rows] == list(range(1, len(rows) + 1))
    assert [name for _, names in rows for name in re.findall(r"`([\w-]+)`", names)] == ORDER


def test_each_status_stands_alone_and_every_pair_is_looked_at() -> None:
    for name, made in MAKERS.items():
        both = {"text": "hm", **made}
        assert status(str(both.pop("text")), **both) == name
    assert sorted(ORDER) == sorted(scoring.STATUSES)
    # Left out: two texts (correct, wrong, empty, unreadable: 6 pairs) and two finishes (1 pair).
    assert len(pairs()) == 8 * 7 // 2 - 6 - 1


@pytest.mark.parametrize(
    ("expected", "text", "changes"),
    [
        ("error", RIGHT, {"prompt_sha256": "0" * 64}),
        ("prompt-cut", "", {"usage": {"prompt_tokens": 899}, "finish_reason": "content_filter"}),
        ("correct", RIGHT, {"usage": {"prompt_tokens": 900}}),
        ("correct", RIGHT, {"usage": {"prompt_tokens": 0}}),
        ("correct", RIGHT, {"usage": {"prompt_tokens": "3"}}),
        ("correct", RIGHT, {"usage": {"input_tokens": 3}}),
        ("length", "<think>so the", {"finish_reason": "length"}),
        ("length", "", {"finish_reason": "MAX_TOKENS"}),
        ("refused", "I will not", {"finish_reason": "SAFETY"}),
        ("unreadable", "<think>so the", {"finish_reason": "stop"}),
        ("unreadable", "hm", {"finish_reason": None}),
        ("unreadable", "hm", {"finish_reason": ["odd"]}),
        ("empty", "\u200b\n", {}),
        ("empty", "<think>hm</think>", {}),
    ],
)
def test_what_makes_a_status(expected: str, text: str, changes: dict[str, object]) -> None:
    assert status(text, **changes) == expected


def test_all_but_error_and_cut_prompts_are_in_the_denominator() -> None:
    asked = [example(number=number, token_counts={"a": 100}) for number in range(7)]
    answers = [
        response(asked[0]),
        response(asked[1], WRONG),
        response(asked[2], "hm"),
        response(asked[3], ""),
        response(asked[4], "", finish_reason="content_filter"),
        response(asked[5], usage={"prompt_tokens": 10}),
        response(asked[6], error="timeout"),
    ]
    (model,) = score(asked, answers).models
    assert (model.overall.n, model.overall.correct) == (5, 1)
    assert sum(model.overall.statuses.values()) == 7


def test_accuracy_is_told_by_task_and_variable_with_what_guessing_reaches() -> None:
    asked = mixed(6)
    texts = [r"\answer{NO}", r"\answer{B}", r"\answer{99}"] * 2
    (model,) = score(asked, [response(item, text) for item, text in zip(asked, texts, strict=True)]).models
    assert {task: (value.n, value.correct, value.chance) for task, value in model.by["task"].items()} == {
        "yes-no": (2, 2, Fraction(1, 2)),
        "multiple-choice": (2, 0, Fraction(1, 4)),
        "counting": (2, 2, Fraction(1, 151)),
    }
    assert model.overall.chance == Fraction(1, 3) * (Fraction(1, 2) + Fraction(1, 4) + Fraction(1, 151))
    assert list(model.by["question_depth"]) == ["4", "16"]
    assert list(model.by["distractor_type"]) == ["disjoint-component"]


def test_the_range_of_counts_sets_what_guessing_reaches() -> None:
    asked = example("counting", "100")
    (model,) = score([asked], [response(asked)], (100, 199)).models
    assert model.overall.chance == Fraction(1, 100)


def test_a_failed_request_gives_way_to_its_answer_and_further_answers_are_ignored() -> None:
    asked = example()
    failed, first, second = response(asked, error="x"), response(asked), response(asked, WRONG)
    for order in ([failed, first, second], [first, failed, second]):
        (model,) = score([asked], order).models
        assert [item.card.status for item in model.responses] == ["correct"]
        assert model.duplicates == (("qid-0", 0),)
    (model,) = score([asked], [failed, failed]).models
    assert ([item.card.status for item in model.responses], model.duplicates) == (["error"], ())


def test_what_does_not_match_is_named() -> None:
    asked = mixed(3)
    stranger = example(number=9)
    scores = score([*asked, asked[0]], [response(asked[0]), response(stranger)])
    (model,) = scores.models
    assert model.unknown == ("qid-9",)
    assert model.without_response == ("qid-1", "qid-2")
    assert scores.duplicate_examples == ("qid-0",)
    assert not scores.sound
    assert len(troubles(scores)) == 3


def test_repeats_are_not_independent_so_they_have_no_interval() -> None:
    asked = mixed(2)
    answers = [response(item, repeat=repeat) for item in asked for repeat in range(2)]
    (model,) = score(asked, answers).models
    assert (model.overall.n, model.overall.interval) == (4, None)
    assert [item.repeat for item in model.responses] == [0, 1, 0, 1]
    (once,) = score(asked, answers[::2]).models
    assert once.overall.interval is not None
    assert (model.repeated, once.repeated) == (("qid-0", "qid-1"), ())


def test_a_scorer_that_fails_costs_one_response(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(asked: object, text: str) -> Readings:
        if "odd" in text:
            raise RecursionError("too odd")
        return Readings(Reading("YES"), Reading("YES"))

    real = families.load(families.family_of("reachability-yesno")[0].scorer)
    fake = SimpleNamespace(
        **{name: getattr(real, name) for name in ("gold", "counts", "variables", "possible_answers")}, read=read
    )
    monkeypatch.setattr(families, "load", lambda reference: fake)
    asked = mixed(1)
    odd = response(asked[0], "odd")
    (model,) = score(asked, [odd]).models
    assert model.responses[0].card == model.responses[0].ours
    assert model.responses[0].card.status == "error"
    assert "too odd" in (model.responses[0].card.reason or "")


def test_an_example_of_no_family_is_refused() -> None:
    with pytest.raises(InputError, match="no installed family"):
        score([dataclasses.replace(example(), question_type="riddle")], [])


def test_equal_input_gives_equal_bytes_in_any_order_of_responses(tmp_path: Path) -> None:
    asked = mixed(9)
    answers = [
        response(item, text, model=model, parameters={"temperature": 0.5})
        for item in asked
        for model, text in (("a/b", RIGHT), ("c", r"\answer{99}"))
    ]
    shuffled = random.Random(3).sample(answers, len(answers))
    files = []
    for folder, order in (("one", answers), ("two", shuffled)):
        paths = write_scores(tmp_path / folder, score(asked, order))
        files.append([(path.relative_to(tmp_path / folder), path.read_bytes()) for path in paths])
    assert files[0] == files[1]
    assert [str(path) for path, _ in files[0]] == [
        "eval/reasoning_effort=none/model=a%2Fb.json",
        "eval/reasoning_effort=none/model=c.json",
    ]


def test_a_score_file_says_what_it_is(tmp_path: Path) -> None:
    asked = mixed(3)
    scores = score(asked, [response(item, parameters={"reasoning_effort": "low"}) for item in asked])
    (path,) = write_scores(tmp_path, scores)
    value = read_json(path)
    assert path.parent.name == "reasoning_effort=low"
    assert (value["schema"], value["reading"], value["model"]) == ("gniah/eval/2", "card", "toy")
    assert value["overall"]["n"] == 3
    assert [item["card"]["status"] for item in value["responses"]] == ["wrong", "unreadable", "unreadable"]
    head = {name: part for name, part in value.items() if name not in {"asked", "responses"}}
    assert json_document(model_json(scores.models[0], scores)) == json_document(head)
    assert [one["qid"] for one in value["asked"]] == ["qid-0", "qid-1", "qid-2"]
    assert value["asked"][0]["config"] == asked[0].config


def test_one_name_with_several_settings_gets_several_files(tmp_path: Path) -> None:
    asked = mixed(3)
    scores = score(asked, [response(asked[0], parameters={"seed": seed}) for seed in (1, 2)])
    paths = write_scores(tmp_path, scores)
    assert len(set(paths)) == len(set(labels(scores.models))) == 2
    assert all(".settings=" in path.name for path in paths)


@pytest.mark.parametrize(
    "name",
    [
        "openrouter/qwen/qwen3.5:free",
        "..",
        ".",
        ".hidden",
        "a b",
        "a%2Fb",
        "ü",
        "model=x",
        "C:\\x",
        "a.b.json",
    ],
)
def test_a_models_name_is_one_part_of_a_path_and_comes_back(name: str, tmp_path: Path) -> None:
    part = escaped(name)
    assert unescaped(part) == name
    assert not set(part) & set('/\\:*?"<>| ')
    assert not part.startswith(".")
    asked = example()
    (model,) = score([asked], [response(asked, model=name, parameters={"reasoning_effort": name})]).models
    path = eval_path(tmp_path, model, shared=False)
    assert path.parent.parent == tmp_path / "eval"


def test_tables_hold_every_model_and_leave_out_what_has_too_many_values() -> None:
    asked = mixed(20)
    scores = score(asked, [response(item, model=model) for item in asked for model in ("m1", "m2\x1b[31m")])
    text = task_table(scores) + variable_table(scores)
    assert "m1" in text and "\x1b" not in text
    assert "component_node_count: too many values" in text
    assert "disjoint-component" not in text  # the only value of its variable: the overall row says it all
