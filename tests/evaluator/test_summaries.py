"""Summaries against a slow definition, counting details, and where the readings differ."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from evaluator_toys import example, mixed, response
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.evaluator import ledger
from gniah.evaluator.ledger import against
from gniah.evaluator.readings import READINGS
from gniah.evaluator.results import write_scores
from gniah.evaluator.scoring import NOT_COUNTED, STATUSES, ModelScores, score
from gniah.evaluator.statistics import wilson_interval
from gniah.evaluator.summaries import CountDetails, Differences, Summary
from gniah.evaluator.tables import counts_table, differences
from gniah.records.examples import Example
from gniah.records.responses import Response

ASKED = mixed(9)
BLOCKS = ["NO", "A", "99", "99 papers", "108", "90", "5"]
TEXTS = [
    *(f"\\answer{{{content}}}" for content in BLOCKS),
    r"\answer{YES} or \answer{NO}",
    r"\answer{99}, not \answer{100}",
    "",
    "hm",
]
KINDS: list[dict[str, object]] = [{}, {"error": "x"}, {"finish_reason": "length"}, {"usage": {"prompt_tokens": 1}}]

answers = st.lists(
    st.tuples(
        st.integers(0, len(ASKED) - 1), st.integers(0, 2), st.sampled_from(TEXTS), st.integers(0, 3), st.booleans()
    ),
    max_size=30,
)


def made(drawn: Sequence[tuple[int, int, str, int, bool]], asked: Sequence[Example]) -> list[Response]:
    return [
        response(asked[place], text, repeat=repeat, model="two" if other else "one", **KINDS[kind])
        for place, repeat, text, kind, other in drawn
    ]


def kept(responses: Sequence[Response], model: str, asked: Sequence[Example]) -> list[Response]:
    """Of each request the first complete answer, else the last failure; in the order of examples and repeats."""
    found: dict[str, Response] = {}
    for one in responses:
        if one.model == model and not (one.key in found and found[one.key].complete):
            found[one.key] = one
    order = [one.qid for one in asked]
    return sorted(found.values(), key=lambda one: (order.index(one.qid), one.repeat))


def slow_summary(verdicts: list[tuple[str, str, Fraction]]) -> Summary:
    """The definition: `verdicts` are (qid, status, chance)."""
    counted = [(qid, status, chance) for qid, status, chance in verdicts if status not in NOT_COUNTED]
    n, correct = len(counted), sum(status == "correct" for _, status, _ in counted)
    return Summary(
        n=n,
        correct=correct,
        interval=wilson_interval(correct, n) if len({qid for qid, _, _ in counted}) == n else None,
        chance=sum((chance for *_, chance in counted), Fraction(0)) / n if n else None,
        statuses={name: sum(status == name for _, status, _ in verdicts) for name in STATUSES},
    )


@given(answers)
@settings(max_examples=150, deadline=None)
def test_summaries_are_those_of_the_slow_definition(drawn: list[tuple[int, int, str, int, bool]]) -> None:
    asked = [*ASKED[:-1], example("counting", "99", number=8, token_counts={"a": 1000})]
    responses = made(drawn, asked)
    chances = {"yes-no": Fraction(1, 2), "multiple-choice": Fraction(1, 4), "counting": Fraction(1, 151)}
    by_qid = {one.qid: one for one in asked}
    scores = score(asked, responses)
    assert [model.model for model in scores.models] == sorted({one.model for one in responses})
    for model in scores.models:
        expected = kept(responses, model.model, asked)
        assert [(one.qid, one.repeat, one.key) for one in model.responses] == [
            (one.qid, one.repeat, one.key) for one in expected
        ]
        assert len(model.duplicates) == sum(one.complete for one in responses if one.model == model.model) - sum(
            one.complete for one in expected
        )
        for reading in READINGS:
            verdicts = [
                (one.qid, one.verdict(reading).status, chances[by_qid[one.qid].task]) for one in model.responses
            ]
            under = model.readings[reading]
            assert under.overall == slow_summary(verdicts)
            for task, found in under.by["task"].items():
                assert found == slow_summary([one for one in verdicts if by_qid[one[0]].task == task])
            for label, found in under.by.get("label", {}).items():
                of_label = [
                    one for one in verdicts if by_qid[one[0]].task != "counting" and by_qid[one[0]].answer == label
                ]
                assert found == slow_summary(of_label)
            assert under.counts == slow_counts(model, reading, by_qid)
        assert model.differences == slow_differences(model)


def slow_counts(model: ModelScores, reading: str, by_qid: dict[str, Example]) -> CountDetails | None:
    asked = [
        (one.verdict(reading).value, int(one.gold))
        for one in model.responses
        if by_qid[one.qid].task == "counting" and one.verdict(reading).status not in NOT_COUNTED
    ]
    if not asked:
        return None
    numbers = [(int(value), gold) for value, gold in asked if value is not None]
    return CountDetails(
        n=len(asked),
        exact=sum(value == gold for value, gold in numbers),
        too_low=sum(value < gold for value, gold in numbers),
        too_high=sum(value > gold for value, gold in numbers),
        no_number=len(asked) - len(numbers),
        within_tenth=sum(abs(Fraction(value - gold, gold)) <= Fraction(1, 10) for value, gold in numbers),
        median_ratio=statistics.median(value / gold for value, gold in numbers) if numbers else None,
    )


def slow_differences(model: ModelScores) -> Differences:
    changed = [one for one in model.responses if one.card.value != one.ours.value]
    return Differences(
        ours_only=sum(one.card.value is None for one in changed),
        card_only=sum(one.ours.value is None for one in changed),
        other_value=sum(one.card.value is not None and one.ours.value is not None for one in changed),
        gained=sum(one.ours.status == "correct" != one.card.status for one in changed),
        lost=sum(one.card.status == "correct" != one.ours.status for one in changed),
        qids=tuple(dict.fromkeys(one.qid for one in changed)),
    )


@pytest.mark.parametrize(
    ("value", "right", "expected"),
    [
        ("100", "100", (False, True, 1.0)),
        ("90", "100", (True, True, 0.9)),
        ("110", "100", (False, True, 1.1)),
        ("89", "100", (True, False, 0.89)),
        ("111", "100", (False, False, 1.11)),
        ("109", "99", (False, False, 109 / 99)),
        ("0", "100", (True, False, 0.0)),
        ("9" * 900, "100", (False, False, 1e12)),
    ],
)
def test_a_number_is_held_against_the_right_one(value: str, right: str, expected: tuple[bool, bool, float]) -> None:
    assert against(value, right) == expected


def test_a_ratio_needs_a_number_and_something_to_count() -> None:
    for low, near, ratio in (against(None, "100"), against("3", "0")):
        assert (low, near, ratio != ratio) == (False, False, True)


def test_counting_details_are_those_of_the_papers_table() -> None:
    """Counts made so that they come to the row of Gemini-3.8-Flash in Table 15 (GraphNIAH, appendix E)."""
    asked = [example("counting", "100", number=number) for number in range(100)]
    said = ["100"] * 55 + ["95"] * 4 + ["50"] * 8 + ["105"] * 5 + ["200"] * 10 + ["none"] * 18
    texts = [f"\\answer{{{text}}}" for text in said]
    (model,) = score(asked, [response(one, text) for one, text in zip(asked, texts, strict=True)]).models
    assert model.readings["card"].counts == CountDetails(100, 55, 12, 15, 18, 64, 1.0)
    row = (counts_table(score(asked, [response(asked[0])])) or "").splitlines()[-1]
    assert row.split() == ["toy", "none", "1", "0.00", "0.00", "0.00", "100.00", "0.00", "–"]
    assert counts_table(score(mixed(2), [response(mixed(1)[0])])) is None


def test_a_line_says_how_many_are_read_differently_and_which_way() -> None:
    asked = [example(number=number) for number in range(4)]
    texts = [r"\answer{YES}", "Answer: YES", r"\answer{NO} or \answer{YES}", r"\answer{YES}, not \answer{NO}"]
    scores = score(asked, [response(one, text) for one, text in zip(asked, texts, strict=True)])
    assert differences(scores) == [
        "toy, effort none: the readings differ in 3 of 4 responses: 1 read by ours only, 1 by the card only, 1 as "
        "another answer; ours gains 2 right ones and loses 1: 50.00 % by the card, 75.00 % by ours; (qid-1, qid-2, "
        "qid-3)"
    ]
    same = score(asked, [response(one) for one in asked])
    assert differences(same) == ["toy, effort none: both readings read the same in all 4 responses"]


def test_many_responses_go_to_a_file_and_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = mixed(9)
    texts = itertools.cycle(TEXTS)
    responses = [response(one, next(texts), repeat=repeat) for repeat in range(40) for one in asked]
    written = []
    for place, size in (("memory", 1 << 26), ("disk", 1000)):
        monkeypatch.setattr(ledger, "_IN_MEMORY", size)
        (tmp_path / place).mkdir()
        scores = score(asked, responses, spill=tmp_path / place)
        (path,) = write_scores(tmp_path / place, scores)
        written.append(path.read_bytes())
        assert [entry.name for entry in (tmp_path / place).iterdir()] == ["eval"]
    assert written[0] == written[1]
