"""Costs: exact, never counted twice, never 0 when unknown, and as the GraphNIAH paper prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from gniah.evaluator.inference.model_files import ModelFile, PriceRow, find_model, shipped_models
from gniah.evaluator.inference.prices import Usage, cost, cost_by_prices, price_row, read_usage, reserve, uncached_price


def shipped(name: str) -> ModelFile:
    found = find_model(name)
    assert found is not None
    return found


def row(tier: str = "default", above: int = 0, **prices: str | None) -> PriceRow:
    usual: dict[str, str | None] = {"input": "2", "cached": "0.5", "cache_write": "2.5", "output": "8"}
    values = {name: None if price is None else Decimal(price) for name, price in {**usual, **prices}.items()}
    return PriceRow(tier, above, **values)


def toy(*rows: PriceRow, **changes: Any) -> ModelFile:
    return replace(ModelFile("toy", "openai/toy", prices=rows or (row(),)), **changes)


def usage(prompt: int, completion: int, cached: int | None = None, written: int | None = None) -> Usage:
    return Usage(prompt, cached, written, completion)


def test_usage_is_read_as_litellm_gives_it() -> None:
    found = read_usage(
        {
            "prompt_tokens": 194,
            "completion_tokens": 20,
            "total_tokens": 214,
            "prompt_tokens_details": {"cached_tokens": 90, "cache_write_tokens": 100, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 15},
            "cost": 0.95,
        }
    )
    assert found == Usage(194, 90, 100, 20, 15, Decimal("0.95"), ())


@pytest.mark.parametrize(
    ("given", "cached", "written"),
    [
        ({"prompt_tokens_details": None}, None, None),
        ({"prompt_tokens_details": {"cached_tokens": None}}, None, None),
        ({"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_tokens": 7}}, 0, 7),
        ({"cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}, 3, 4),
        ({"prompt_tokens_details": {"cached_tokens": 3}, "cache_read_input_tokens": 9}, 3, None),
        ({"prompt_tokens_details": {"cache_write_tokens": 1, "cache_creation_tokens": 2}}, None, 1),
    ],
)
def test_cache_counts_are_found_under_each_of_their_names(
    given: dict[str, Any], cached: int | None, written: int | None
) -> None:
    found = read_usage({"prompt_tokens": 10, "completion_tokens": 1, **given})
    assert (found.cached_tokens, found.cache_write_tokens, found.unreadable) == (cached, written, ())


@pytest.mark.parametrize("wrong", ["10", -1, 10.0, 1.5, True, [], {}, float("nan"), 10**13])
def test_what_is_no_count_is_unknown_and_so_is_the_cost(wrong: Any) -> None:
    fine = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert cost(toy(), read_usage(fine), None) == Decimal("0.000059")
    for name, given in (
        ("prompt_tokens", {"prompt_tokens": wrong}),
        ("completion_tokens", {"completion_tokens": wrong}),
        ("cached_tokens", {"prompt_tokens_details": {"cached_tokens": wrong}}),
        ("cache_write_tokens", {"prompt_tokens_details": {"cache_write_tokens": wrong}}),
    ):
        found = read_usage({**fine, **given})
        assert (getattr(found, name), found.unreadable) == (None, (name,))
        assert cost(toy(), found, None) is None
    thinking = read_usage({**fine, "completion_tokens_details": {"reasoning_tokens": wrong}})
    assert (thinking.reasoning_tokens, thinking.unreadable) == (None, ("reasoning_tokens",))
    assert cost(toy(), thinking, None) == Decimal("0.000059")


@pytest.mark.parametrize("given", [None, "usage", [], 5, {}, {"prompt_tokens_details": 5}, {"cost": None}])
def test_a_usage_that_says_nothing_is_unknown(given: Any) -> None:
    assert read_usage(given) == Usage()
    assert cost(toy(), Usage(), None) is None


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        (0.00014, "0.00014"),
        (1e-7, "0.0000001"),
        (0, "0"),
        (3, "3"),
        ("0.1849", "0.1849"),
        (-0.1, None),
        (True, None),
        (float("inf"), None),
        (float("nan"), None),
        ("NaN", None),
        ("-1", None),
        ("one", None),
        ([1], None),
        ("1e999999", None),
    ],
)
def test_a_reported_cost_is_the_cost_where_the_file_says_so(given: Any, amount: str | None) -> None:
    found = read_usage({"prompt_tokens": 10, "completion_tokens": 5, "cost": given})
    expected = None if amount is None else Decimal(amount)
    assert found.reported_cost == expected
    assert cost(toy(reported_cost=True), found, None) == expected
    assert cost(toy(), found, None) == cost_by_prices(toy(reported_cost=True), found, None) == Decimal("0.00006")


def test_cached_tokens_are_counted_once() -> None:
    """LiteLLM's issue 14849: 0.7642 US dollars where 0.1849 were due, at the prices that the issue names."""
    prices = row(input="1.25", cached="0.625", cache_write=None, output="10")
    found = read_usage(
        {
            "prompt_tokens": 262_960,
            "completion_tokens": 1_744,
            "prompt_tokens_details": {"text_tokens": 262_960, "cached_tokens": 257_955},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }
    )
    assert cost(toy(prices), found, None) == Decimal("0.184918125")
    assert cost(toy(prices, row(above=200_000, input="2.5", cached="1.25", output="15")), found, None) == Decimal(
        "0.361116250"
    )


@pytest.mark.parametrize(
    ("policy", "written", "dollars"),
    [
        ("input", None, "0.000208"),
        ("cache-write", None, "0.000258"),
        ("cache-write", 0, "0.000208"),
        ("input", 40, "0.000228"),
    ],
)
def test_uncached_tokens_are_billed_as_the_file_says_unless_writes_are_named(
    policy: str, written: int | None, dollars: str
) -> None:
    assert cost(toy(uncached_input=policy), usage(100, 1, 0, written), None) == Decimal(dollars)


def test_a_price_row_holds_above_its_threshold() -> None:
    model = toy(row(), row(above=100, input="4", output="12"))
    assert [price_row(model, "default", length) for length in (0, 1, 100)] == [model.prices[0]] * 3
    assert price_row(model, "default", 101) == model.prices[1]
    assert cost(model, usage(100, 1), None) == Decimal("0.000208")
    assert cost(model, usage(101, 1), None) == Decimal("0.000416")
    assert price_row(toy(row(above=100)), "default", 100) is None


@pytest.mark.parametrize("price", ["input", "cached", "cache_write", "output"])
def test_tokens_at_an_unknown_price_make_the_cost_unknown(price: str) -> None:
    model = toy(row(**{price: None}))
    assert cost(model, Usage(10, 2, 3, 1), None) is None
    spared = {
        "input": Usage(5, 2, 3, 1),
        "cached": Usage(8, 0, 3, 1),
        "cache_write": Usage(7, 2, 0, 1),
        "output": Usage(10, 2, 3, 0),
    }
    assert cost(model, spared[price], None) == cost(toy(), spared[price], None) is not None


def test_no_price_is_no_zero() -> None:
    assert cost(toy(prices=()), usage(10, 1), None) is None
    assert cost(toy(prices=()), usage(0, 0), None) is None


def test_more_from_a_cache_than_there_is_is_unknown() -> None:
    assert cost(toy(), Usage(10, 11, None, 1), None) is None
    assert cost(toy(), Usage(10, 6, 5, 1), None) is None
    assert cost(toy(), Usage(10, 6, 4, 1), None) == Decimal("0.000021")


def test_the_tier_that_served_is_the_tier_that_counts() -> None:
    model = toy(
        row("flex", input="1", output="4"), row(), row("batch", input="0.5", output="2"), tiers=("flex", "default")
    )
    one = usage(1_000_000, 0)
    assert [cost(model, one, tier) for tier in ("flex", "default", "standard", "FLEX")] == [1, 2, 2, 1]
    assert [cost(model, one, tier) for tier in ("priority", "auto", "", None)] == [None] * 4
    assert cost(model, one, "default", batch=True) == Decimal("0.5")
    assert cost(model, one, None, batch=True) == Decimal("0.5")
    assert cost(toy(), one, None, batch=True) is None
    without = replace(model, tiers=())
    assert [cost(without, one, tier) for tier in (None, "default", "flex", "priority")] == [2, 2, 1, None]


def test_the_reserve_is_the_dearest_case() -> None:
    model = toy(row("flex", input="1"), row(), tiers=("flex", "default"), max_output_tokens=10)
    assert reserve(model, 100) == Decimal("0.000330")
    assert reserve(replace(model, tiers=("flex",)), 100) == Decimal("0.000330")  # a write into a cache is dearer
    assert reserve(replace(model, parameters={"max_tokens": 5}), 100) == Decimal("0.000290")
    assert reserve(replace(model, max_output_tokens=None), 100) is None
    assert reserve(replace(model, tiers=("flex", "priority")), 100) is None
    assert reserve(replace(model, prices=()), 100) is None
    assert reserve(toy(row(output=None), max_output_tokens=10), 100) is None
    assert reserve(toy(row(input=None), max_output_tokens=10), 100) is None


COUNTS = st.integers(0, 10**7)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    prompt = draw(COUNTS)
    cached = draw(st.integers(0, prompt))
    return Usage(prompt, cached, draw(st.none() | st.integers(0, prompt - cached)), draw(COUNTS))


MODELS = st.builds(
    lambda policy, name: replace(shipped(name), uncached_input=policy, reported_cost=False),
    st.sampled_from(["input", "cache-write"]),
    st.sampled_from(["gpt-5.6-sol", "gpt-5.6-luna"]),
)
FLAT = st.builds(
    lambda model: replace(model, prices=tuple(one for one in model.prices if not one.above)),
    MODELS,
)


def known(model: ModelFile, found: Usage, tier: str = "flex") -> Decimal:
    amount = cost(model, found, tier)
    assert amount is not None
    return amount


@for_all(FLAT, usages(), usages())
def test_costs_add_up(model: ModelFile, one: Usage, other: Usage) -> None:
    if (one.cache_write_tokens is None) == (other.cache_write_tokens is None):
        both = Usage(
            (one.prompt_tokens or 0) + (other.prompt_tokens or 0),
            (one.cached_tokens or 0) + (other.cached_tokens or 0),
            None if one.cache_write_tokens is None else one.cache_write_tokens + (other.cache_write_tokens or 0),
            (one.completion_tokens or 0) + (other.completion_tokens or 0),
        )
        assert known(model, both) == known(model, one) + known(model, other)


@for_all(MODELS, usages(), COUNTS)
def test_more_tokens_never_cost_less(model: ModelFile, one: Usage, more: int) -> None:
    assert known(model, replace(one, prompt_tokens=(one.prompt_tokens or 0) + more)) >= known(model, one)
    assert known(model, replace(one, completion_tokens=(one.completion_tokens or 0) + more)) >= known(model, one)


@for_all(MODELS, usages(), st.sampled_from(["flex", "default"]))
def test_a_cache_hit_never_costs_more_and_flex_is_half(model: ModelFile, one: Usage, tier: str) -> None:
    none = replace(one, cached_tokens=0)
    assert known(model, one, tier) <= known(model, none, tier)
    assert known(model, replace(one, cached_tokens=None), tier) == known(model, none, tier)
    assert 2 * known(model, one, "flex") == known(model, one, "default")


@for_all(MODELS, usages())
def test_no_answer_costs_more_than_its_reserve(model: ModelFile, one: Usage) -> None:
    most = reserve(model, one.prompt_tokens or 0)
    assert most is not None
    short = replace(one, completion_tokens=min(one.completion_tokens or 0, 128_000))
    for tier in ("flex", "default"):
        assert known(model, short, tier) <= most


NAMES = ("prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens", "cost")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES), inner),
)


@for_all(ANYTHING)
def test_no_usage_is_too_odd(given_usage: Any) -> None:
    amount = cost(toy(), read_usage(given_usage), None)
    assert amount is None or amount >= 0


def test_every_shipped_model_has_a_known_cost_and_reserve() -> None:
    for name in shipped_models():
        model = shipped(name)
        for tier in model.billed_tiers:
            for length in (1_000, 200_000, 200_001, 500_000, 922_000):
                assert (cost_by_prices(model, usage(length, 1_000), tier) or 0) > 0
                assert (reserve(model, length) or 0) > (cost_by_prices(model, usage(length, 1_000), tier) or 0)


# The paper's Appendix F: table, what is varied, answered examples, mean output tokens, mean cost in cents.
PRINTED = {
    "gpt-5.6-sol": [("29", "", 300, "1340.02", "44.12"), ("30", "", 253, "1424.49", "41.83")],
    "gpt-5.6-luna": [
        ("29", "", 400, "715.69", "2.19"),
        ("30", "", 400, "785.28", "2.16"),
        ("31", "", 300, "738.38", "2.17"),
        ("32", "", 500, "759.95", "2.16"),
        ("33", "low", 100, "823.21", "1.95"),
        ("33", "medium", 100, "1937.24", "2.26"),
        ("33", "high", 100, "6672.60", "2.54"),
        ("34", "500k", 50, "748.56", "11.13"),
        ("34", "922k", 50, "844.76", "20.60"),
    ],
    "gemini-3.1-pro": [("29", "", 400, "4642.54", "20.88"), ("30", "", 400, "4744.15", "20.78")],
    "gemini-3.8-flash": [
        ("29", "", 400, "19412.21", "20.91"),
        ("30", "", 400, "20513.35", "21.20"),
        ("31", "", 300, "20248.57", "21.13"),
        ("32", "", 500, "21187.22", "21.43"),
        ("33", "low", 100, "23086.40", "22.46"),
        ("33", "medium", 100, "29207.72", "24.75"),
        ("33", "high", 100, "37624.94", "27.11"),
        ("34", "500k", 50, "31639.22", "47.85"),
        ("34", "922k", 50, "32091.20", "78.99"),
    ],
    "gemini-3.6-flash": [("29", "", 400, "10410.75", "7.79"), ("30", "", 400, "11143.68", "6.89")],
    "qwen3.5-397b-a17b": [("29", "", 400, "15729.28", "12.21"), ("30", "", 400, "15841.35", "11.85")],
    "qwen3.5-122b-a10b": [("29", "", 400, "14843.83", "7.87"), ("30", "", 400, "15186.61", "7.90")],
    "qwen3.5-35b-a3b": [
        ("29", "", 400, "16387.97", "5.10"),
        ("30", "", 400, "16510.21", "5.08"),
        ("31", "", 300, "16471.95", "5.08"),
        ("32", "", 500, "17419.60", "5.17"),
        ("33", "low", 100, "15219.30", "4.92"),
        ("33", "medium", 100, "16866.72", "5.14"),
        ("33", "high", 100, "16423.57", "5.07"),
    ],
}
TOTALS = {
    ("gpt-5.6-sol", "29"): "132.35",
    ("gpt-5.6-luna", "29"): "8.77",
    ("gemini-3.1-pro", "29"): "83.54",
    ("gemini-3.8-flash", "29"): "83.62",
    ("gemini-3.6-flash", "29"): "31.16",
    ("qwen3.5-397b-a17b", "29"): "48.85",
    ("qwen3.5-122b-a10b", "29"): "31.47",
    ("qwen3.5-35b-a3b", "29"): "20.41",
}
# Table 2: mean prompt lengths under o200k_base, in thousands of tokens, of each value of an experiment's variable.
LENGTHS = {
    ("29", ""): ("174.79", "171.80", "171.55", "169.96"),
    ("30", ""): ("171.38", "171.15", "168.00", "166.83"),
    ("31", ""): ("175.14", "163.65", "171.72"),
    ("32", ""): ("176.48", "155.13", "186.08", "138.95", "188.70"),
    ("33", "low"): ("171.39",),
    ("33", "medium"): ("171.39",),
    ("33", "high"): ("171.39",),
    ("34", "500k"): ("442.57",),
    ("34", "922k"): ("821.01",),
}


def length(table: str, part: str) -> Decimal:
    means = [Decimal(one) * 1000 for one in LENGTHS[table, part]]
    return sum(means, Decimal(0)) / len(means)


def served(model: ModelFile) -> str:
    return model.billed_tiers[0]


def solved(name: str, tier: str | None = None) -> Iterator[tuple[tuple[str, str], Decimal]]:
    """Yield the mean prompt length that makes each printed cost, with no cache hit."""
    model = shipped(name)
    for table, part, _, output, cents in PRINTED[name]:
        found = price_row(model, tier or served(model), 190_000 if table != "34" else 400_000)
        assert found is not None and found.output is not None
        price = uncached_price(model, found)
        assert price is not None
        yield (table, part), (Decimal(cents) * 10_000 - Decimal(output) * found.output) / price


def exactly(name: str, tokens: Decimal, output: str) -> Decimal:
    """Return the cost in cents, to two places, of a prompt's and an answer's mean length."""
    model = shipped(name)
    found = cost(model, usage(round(tokens), round(Decimal(output))), served(model))
    assert found is not None
    return (found * 100).quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def test_printed_totals_are_the_means_times_the_examples() -> None:
    for (name, table), total in TOTALS.items():
        ((count, cents),) = [(n, cents) for where, _, n, _, cents in PRINTED[name] if where == table]
        assert abs(Decimal(total) - count * Decimal(cents) / 100) <= count * Decimal("0.00005") + Decimal("0.005")


@pytest.mark.parametrize("printed", PRINTED["gpt-5.6-luna"], ids=lambda one: "-".join(one[:2]))
def test_luna_costs_what_the_paper_prints_from_the_mean_lengths_alone(printed: tuple[str, str, int, str, str]) -> None:
    """Half of 1.25 times the input price and half of the output price; over 272,000 tokens twice and 1.5 times that."""
    table, part, _, output, cents = printed
    found = exactly("gpt-5.6-luna", length(table, part), output)
    if part == "low":  # the one row with a cache hit: see the next test
        assert found == Decimal("2.19") != Decimal(cents)
    else:
        assert found == Decimal(cents)


def test_one_row_of_luna_had_one_prompt_in_eight_in_the_cache() -> None:
    model = shipped("gpt-5.6-luna")
    one = read_usage(
        {
            "prompt_tokens": 171_390,
            "completion_tokens": 823,
            "prompt_tokens_details": {"cached_tokens": round(171_390 * 0.1226)},
        }
    )
    found = cost(model, one, "flex")
    assert found is not None and (found * 100).quantize(Decimal("0.01")) == Decimal("1.95")


def test_sols_prompts_come_out_a_little_shorter_than_all_prompts() -> None:
    """It answered 300 and 253 of the 400, and which ones is not printed."""
    shares = {where: tokens / length(*where) for where, tokens in solved("gpt-5.6-sol")}
    assert {where: round(share, 3) for where, share in shares.items()} == {
        ("29", ""): Decimal("0.995"),
        ("30", ""): Decimal("0.954"),
    }


def test_flash_was_sent_at_the_standard_tier_as_the_stars_say() -> None:
    """At flex prices, the printed costs would need prompts more than twice as long as they can be."""
    longest = {"500k": 500_000, "922k": 922_000}
    for tier, fits in (("default", True), ("flex", False)):
        for (_, part), tokens in solved("gemini-3.8-flash", tier):
            assert (tokens <= longest.get(part, 200_000)) is fits


def test_flash_prompts_are_a_little_longer_than_under_o200k_base() -> None:
    ratios = {where: tokens / length(*where) for where, tokens in solved("gemini-3.8-flash")}
    # The same prompts as at the other two efforts, so that some of them were in the cache.
    assert round(ratios.pop(("33", "high")), 3) == Decimal("1.011")
    assert Decimal("1.056") < min(ratios.values()) < max(ratios.values()) < Decimal("1.088")


def test_pro_and_flash_agree_on_the_length_of_the_same_prompts() -> None:
    flash = dict(solved("gemini-3.8-flash"))
    for where, tokens in solved("gemini-3.1-pro"):
        assert Decimal("0.995") < tokens / flash[where] < 1


def test_flash_3_6_had_cache_hits_or_other_prices() -> None:
    flash = dict(solved("gemini-3.8-flash"))
    missing = {where: round(1 - tokens / flash[where], 3) for where, tokens in solved("gemini-3.6-flash")}
    assert missing == {("29", ""): Decimal("0.143"), ("30", ""): Decimal("0.289")}


def test_the_two_small_qwens_agree_on_the_length_of_the_same_prompts() -> None:
    small = dict(solved("qwen3.5-35b-a3b"))
    for where, tokens in solved("qwen3.5-122b-a10b"):
        assert Decimal("0.99") < tokens / small[where] < 1
    for where, tokens in small.items():
        assert Decimal("1.07") < tokens / length(*where) < Decimal("1.085")


def test_the_large_qwen_was_not_served_at_the_printed_price_alone() -> None:
    """No prompt has more than 200,000 tokens, and these would have more on average."""
    assert [round(tokens, -2) for _, tokens in solved("qwen3.5-397b-a17b")] == [218_700, 208_800]
