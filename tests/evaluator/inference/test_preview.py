"""Previews: what would be sent, cost and take, with what is unknown said to be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.evaluator.inference.model_files import Expected, Limits, ModelFile, PriceRow, find_model
from gniah.evaluator.inference.preview import Preview, Prompt, average, exceeds, preview, prompt_length
from gniah.evaluator.inference.preview_tables import dollars, preview_json, preview_table
from gniah.evaluator.inference.prices import Usage, cost_by_prices, reserve

FLEX = PriceRow("flex", 0, Decimal(1), Decimal("0.1"), Decimal("1.25"), Decimal(4))
LONG = PriceRow("flex", 1000, Decimal(2), Decimal("0.2"), Decimal("2.5"), Decimal(6))
DEFAULT = PriceRow("default", 0, Decimal(2), Decimal("0.2"), Decimal("2.5"), Decimal(8))
TOY = ModelFile(
    "toy",
    "openai/toy",
    tokenizers=("own", "other"),
    max_output_tokens=100,
    tiers=("flex", "default"),
    parameters={"reasoning_effort": "low"},
    prices=(FLEX, LONG, DEFAULT),
    prices_from="a list of May 2026",
    expected={
        "low": Expected(Decimal(10), Decimal(3), "a table"),
        "high": Expected(Decimal(90), Decimal(9), "a table"),
    },
)


def none(_: str) -> int:
    return 0


def prompts(*lengths: int, label: str = "own") -> list[Prompt]:
    return [Prompt(f"q{number}", {label: length}) for number, length in enumerate(lengths)]


def seen(model: ModelFile = TOY, *lengths: int, **more: Any) -> Preview:
    return preview(model, prompts(*lengths), more.pop("answered", none), **more)


def amounts(found: Preview, tier: int = 0) -> tuple[Decimal | None, ...]:
    one = found.tiers[tier]
    return (one.input, one.input_cached, one.total, one.total_cached)


def test_costs_are_those_of_each_request() -> None:
    found = seen(TOY, 500, 2000, repeats=3)
    assert (found.examples, found.requests, found.answered, found.prompt_tokens) == (2, 6, 0, 7500)
    # 500 tokens at 1 and output at 4, 2,000 tokens at 2 and output at 6; of three the last two at a tenth.
    assert amounts(found) == tuple(map(Decimal, ("0.0135", "0.0054", "0.0138", "0.0057")))
    assert amounts(found, 1) == tuple(map(Decimal, ("0.015", "0.006", "0.01548", "0.00648")))
    assert [one.tier for one in found.tiers] == ["flex", "default"]
    assert found.cost_range == (Decimal("0.0057"), Decimal("0.01548"))


def test_the_first_of_repeats_is_written_into_the_cache_where_that_is_charged() -> None:
    always = seen(replace(TOY, uncached_input="cache-write"), 1000, repeats=2)
    assert amounts(always)[:2] == (Decimal("0.0025"), Decimal("0.00135"))
    marked = replace(TOY, cache_markers=True)
    assert amounts(seen(marked, 1000, repeats=2))[:2] == (Decimal("0.0025"), Decimal("0.00135"))
    last = seen(marked, 1000, repeats=2, answered=lambda _: 1)
    assert amounts(last)[:2] == (Decimal("0.00125"), Decimal("0.00125"))
    # A prompt that is sent once is not marked.
    assert amounts(seen(marked, 1000))[:2] == (Decimal("0.001"), Decimal("0.001"))
    assert amounts(seen(TOY, 1000))[:2] == (Decimal("0.001"), Decimal("0.001"))


def test_what_is_answered_is_not_sent_again() -> None:
    done: Mapping[str, int] = {"q0": 3, "q1": 1, "q2": 99}
    found = seen(TOY, 100, 200, 300, repeats=3, answered=lambda qid: done[qid])
    assert (found.examples, found.requests, found.answered, found.prompt_tokens) == (3, 2, 7, 400)
    assert amounts(found)[0] == Decimal("0.0004")
    assert found.counted_with == {"own": 1}


def test_nothing_left_costs_nothing_and_takes_no_time() -> None:
    for found in (seen(TOY, 100, answered=lambda _: 1), seen(TOY)):
        assert (found.requests, found.prompt_tokens, found.most, found.seconds, found.binding) == (0, 0, 0, 0, None)
        assert amounts(found) == (0, 0, 0, 0)
    assert seen(replace(TOY, prices=()), 100, answered=lambda _: 1).tiers[0].total == 0


def test_output_is_expected_from_answers_so_far_then_from_the_file_then_not_at_all() -> None:
    observed = Expected(Decimal("2.5"), None, "answers so far")
    assert seen(TOY, 1, observed=observed).expected == observed
    assert amounts(seen(TOY, 0, observed=observed))[2] == Decimal("0.00001")
    assert seen(TOY, 1).expected == TOY.expected["low"]
    assert seen(replace(TOY, parameters={"reasoning_effort": "high"}), 1).expected == TOY.expected["high"]
    for effort in ({"reasoning_effort": "medium"}, {}):
        found = seen(replace(TOY, parameters=effort), 1000, repeats=2)
        assert found.expected is None
        assert amounts(found) == (Decimal("0.002"), Decimal("0.0011"), None, None)
        assert found.cost_range is None
        assert "unknown, so that only the input is priced" in preview_table(found)


def test_an_unknown_price_is_unknown() -> None:
    without = replace(TOY, prices=())
    assert [amounts(seen(without, 100), tier) for tier in (0, 1)] == [(None,) * 4] * 2
    assert seen(without, 100).most is None
    uncached = replace(TOY, prices=(replace(FLEX, cached=None), DEFAULT))
    assert amounts(seen(uncached, 100, repeats=2)) == (Decimal("0.0002"), None, Decimal("0.00028"), None)
    no_output = replace(TOY, prices=(replace(FLEX, output=None), DEFAULT))
    assert amounts(seen(no_output, 100)) == (Decimal("0.0001"), Decimal("0.0001"), None, None)
    assert amounts(seen(no_output, 100), 1)[2] == Decimal("0.00028")
    # One prompt above the only known row is enough.
    short = replace(TOY, prices=(replace(LONG, input=None), FLEX, DEFAULT))
    assert amounts(seen(short, 100, 2000)) == (None,) * 4
    shown = preview_table(seen(without, 100))
    assert "$" not in shown and shown.count("unknown") >= 9


def test_an_example_that_nobody_counted_makes_the_sums_unknown() -> None:
    found = preview(TOY, [Prompt("a", {"own": 100}), Prompt("b", {})], none)
    assert (found.requests, found.prompt_tokens, found.most) == (2, None, None)
    assert found.counted_with == {"no count": 1, "own": 1}
    assert amounts(found) == (None,) * 4


def test_the_models_own_tokenizer_counts_first() -> None:
    counts = {"big": 9, "Other": 5, "OWN": 3}
    assert prompt_length(TOY, counts) == (3, "OWN")
    assert prompt_length(TOY, {"big": 9, "Other": 5}) == (5, "Other")
    assert prompt_length(TOY, {"a": 7, "b": 9, "c": 9}) == (9, "b (the largest count; not the model's own)")
    assert prompt_length(TOY, {}) == (None, "no count")
    found = preview(TOY, [Prompt("a", counts), Prompt("b", {"x": 1}), Prompt("c", {"own": 1})], none)
    assert found.counted_with == {"OWN": 1, "own": 1, "x (the largest count; not the model's own)": 1}


@pytest.mark.parametrize(
    ("name", "fits"), [("gpt-5.6-luna", 922_000), ("gemini-3.1-pro", 983_040), ("qwen3.5-35b-a3b", 222_144)]
)
def test_output_and_thinking_have_their_place_in_the_window(name: str, fits: int) -> None:
    model = find_model(name)
    assert model is not None
    assert (exceeds(model, fits), exceeds(model, fits + 1)) == (False, True)


def test_what_does_not_fit_is_counted_and_named() -> None:
    assert not exceeds(TOY, 10**9)
    assert exceeds(replace(TOY, max_input_tokens=99), 100)
    assert exceeds(replace(TOY, max_output_tokens=None, context_window=99), 100)
    small = replace(TOY, context_window=1100)
    found = preview(small, prompts(*range(990, 1020)), none, repeats=2)
    assert found.exceeding == 19
    assert found.exceeding_qids == tuple(f"q{number}" for number in range(11, 21))
    assert found.requests == 60
    assert "19: q11, q12" in preview_table(found) and "q20, …" in preview_table(found)
    assert seen(small, 1001, answered=lambda _: 1).exceeding == 0


@pytest.mark.parametrize(
    ("limits", "seconds", "binding"),
    [
        (Limits(concurrency=2), "15.0", "concurrency"),
        (Limits(concurrency=100), "3.0", "concurrency"),
        (Limits(requests_per_minute=20), "30.0", "requests per minute"),
        (Limits(requests_per_minute=6000, tokens_per_minute=6000), "100.0", "tokens per minute"),
    ],
)
def test_the_slowest_limit_binds(limits: Limits, seconds: str, binding: str) -> None:
    found = seen(TOY, *[1000] * 10, limits=limits)
    assert (found.seconds, found.binding) == (Decimal(seconds), binding)


def test_time_is_unknown_when_nothing_says_it() -> None:
    without = replace(TOY, expected={})
    found = seen(without, 1000)
    assert (found.seconds, found.binding) == (None, None)
    assert seen(without, 1000, limits=Limits(requests_per_minute=1)).seconds == 60
    uncounted = preview(without, [Prompt("a", {})], none, limits=Limits(tokens_per_minute=1))
    assert uncounted.seconds is None


def test_prompts_longer_than_a_minutes_tokens_are_counted() -> None:
    found = seen(TOY, 99, 100, 101, 102, limits=Limits(tokens_per_minute=100))
    assert found.over_tokens_per_minute == 2
    assert "longer than a minute's tokens" in preview_table(found)
    assert "longer than a minute's tokens" not in preview_table(seen(TOY, 99))


def test_the_average_is_over_what_answers_have() -> None:
    assert average([(10, 1.5), (15, None), (None, 2.0), (20, 0.1)]) == Expected(
        Decimal(15), Decimal("1.2"), "answers so far"
    )
    assert average([(1, None), (2, None), (2, None)]) == Expected(Decimal("1.67"), None, "answers so far")
    assert average([]) is None and average([(None, 3.0)]) is None


def test_prompts_are_looked_at_one_by_one() -> None:
    held = 0

    def stream() -> Iterator[Prompt]:
        nonlocal held
        for number in range(1000):
            held += 1
            yield Prompt(f"q{number}", {"own": 10})
            held -= 1

    def answered(_: str) -> int:
        assert held == 1
        return 0

    assert preview(TOY, stream(), answered).requests == 1000


SIZES = st.lists(st.integers(1, 5000), max_size=20)


@given(SIZES, st.integers(1, 4))
def test_the_whole_is_the_sum_of_its_requests(lengths: list[int], repeats: int) -> None:
    found = seen(TOY, *lengths, repeats=repeats)
    for tier in found.tiers:
        each = [cost_by_prices(TOY, Usage(one, 0, None, 10), tier.tier) for one in lengths]
        assert tier.total == repeats * sum(each)  # type: ignore[arg-type]
    assert found.most == repeats * sum(reserve(TOY, one) for one in lengths)  # type: ignore[misc]


@given(SIZES, SIZES, st.integers(1, 4))
def test_costs_add_up_over_lists_and_caches_never_cost_more(one: list[int], other: list[int], repeats: int) -> None:
    parts = [seen(TOY, *lengths, repeats=repeats) for lengths in (one, other)]
    both = seen(TOY, *one, *other, repeats=repeats)
    for tier in (0, 1):
        sums = [sum(pair) for pair in zip(*(amounts(part, tier) for part in parts), strict=True)]  # type: ignore[arg-type]
        assert list(amounts(both, tier)) == sums
        plain, cached, total, total_cached = amounts(both, tier)
        assert plain is not None and cached is not None and total is not None and total_cached is not None
        assert cached <= plain <= total and cached <= total_cached <= total
        assert both.most is not None and total <= both.most


def test_a_shipped_model_comes_out_as_the_paper_paid() -> None:
    """Table 29: 400 examples of about 172,000 tokens cost 8.77 US dollars at flex."""
    model = find_model("gpt-5.6-luna")
    assert model is not None
    found = preview(model, prompts(*[172_025] * 400, label="o200k_base"), none)
    assert round(found.tiers[0].total or 0, 2) == Decimal("8.77")
    assert found.counted_with == {"o200k_base": 400}


def test_json_has_exact_amounts_and_nulls() -> None:
    found = preview_json(seen(TOY, 500, 2000, repeats=3))
    assert json.loads(json.dumps(found)) == {
        "model": "toy",
        "examples": 2,
        "requests": 6,
        "answered": 0,
        "prompt_tokens": 7500,
        "counted_with": {"own": 2},
        "expected": {"output_tokens": "10", "seconds": "3", "source": "a table"},
        "output_limit": 100,
        "tiers": [
            {"tier": "flex", "input": "0.0135", "input_cached": "0.0054", "total": "0.0138", "total_cached": "0.0057"},
            {
                "tier": "default",
                "input": "0.015",
                "input_cached": "0.006",
                "total": "0.01548",
                "total_cached": "0.00648",
            },
        ],
        "cost": {"low": "0.0057", "high": "0.01548"},
        "most": "0.02355",
        "prices_from": "a list of May 2026",
        "reported_cost": False,
        "seconds": "3",
        "binding": "concurrency",
        "exceeding": 0,
        "exceeding_qids": [],
        "over_tokens_per_minute": 0,
    }
    unknown = preview_json(seen(replace(TOY, prices=(), expected={}), 500))
    assert [unknown[name] for name in ("expected", "cost", "most", "seconds")] == [None] * 4
    assert set(unknown["tiers"][0].values()) == {"flex", None}


def test_a_table_says_all_of_it() -> None:
    found = preview(TOY, prompts(500, 2000), lambda qid: int(qid == "q0"), repeats=3)
    shown = preview_table(found)
    for words in (
        "requests to send",
        "answered already",
        "7,000 (own: 2 examples)",
        "10 (a table)",
        "a list of May 2026",
    ):
        assert words in shown
    assert "flex" in shown and "default" in shown and "1 min (set by concurrency)" in shown
    assert "1 h 1 min (set by" in preview_table(replace(found, seconds=Decimal(3601)))
    assert "what the provider reports" not in shown
    assert "what the provider reports" in preview_table(replace(found, reported_cost=True))


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "unknown"),
        ("0", "$0.00"),
        ("0.000001", "$0.0001"),
        ("0.18491", "$0.1850"),
        ("1", "$1.00"),
        ("1234.561", "$1,234.57"),
    ],
)
def test_dollars_are_rounded_up(amount: str | None, shown: str) -> None:
    assert dollars(None if amount is None else Decimal(amount)) == shown
