from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from gniah.evaluator import statistics
from gniah.evaluator.statistics import (
    Z_95,
    counting_rate,
    guessing_rate,
    jeffreys_interval,
    mean_rate,
    mixed_rate,
    smoothed_divergence,
    wilson_interval,
)

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


@st.composite
def proportions(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 3000))
    return draw(st.integers(0, n)), n


@given(proportions())
@settings(max_examples=60, deadline=None)
def test_the_interval_is_scipys_at_the_same_z(proportion: tuple[int, int]) -> None:
    correct, n = proportion
    interval = wilson_interval(correct, n)
    assert interval is not None
    level = 2 * norm.cdf(Z_95) - 1
    expected = binomtest(correct, n).proportion_ci(confidence_level=level, method="wilson")
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-12)
    usual = binomtest(correct, n).proportion_ci(method="wilson")
    assert interval == pytest.approx((usual.low, usual.high), abs=2e-5)


@given(proportions())
@settings(max_examples=60, deadline=None)
def test_bounds_hold_the_rate_and_stay_between_0_and_1(proportion: tuple[int, int]) -> None:
    correct, n = proportion
    interval = wilson_interval(correct, n)
    assert interval is not None
    low, high = interval
    assert 0 <= low <= correct / n <= high <= 1
    mirrored = wilson_interval(n - correct, n)
    assert mirrored is not None
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-12)


def beta_share(correct: int, n: int, bound: float) -> float:
    """Return how much of Beta(correct + ½, n - correct + ½) lies below a bound, by adding up.

    With x = sin²θ the density is sin^(2 correct)θ cos^(2(n - correct))θ, which is smooth.
    """
    angles = np.linspace(0, np.pi / 2, 40_001)
    logs = np.zeros_like(angles)
    with np.errstate(divide="ignore"):
        if correct:
            logs += 2 * correct * np.log(np.sin(angles))
        if n - correct:
            logs += 2 * (n - correct) * np.log(np.cos(angles))
    density = np.exp(logs - logs.max())
    below = angles <= np.arcsin(np.sqrt(bound))
    return float(density[below].sum() / density.sum())


@pytest.mark.parametrize(("correct", "n"), [(1, 2), (5, 20), (55, 100), (97, 100), (3, 500)])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_jeffreys_bounds_cut_equal_tails_off_the_posterior(correct: int, n: int, level: float) -> None:
    interval = jeffreys_interval(correct, n, level)
    assert interval is not None
    assert beta_share(correct, n, interval[0]) == pytest.approx((1 - level) / 2, abs=1e-3)
    assert beta_share(correct, n, interval[1]) == pytest.approx((1 + level) / 2, abs=1e-3)


@pytest.mark.parametrize("n", [1, 7, 100])
def test_jeffreys_interval_reaches_0_and_1_when_all_are_alike(n: int) -> None:
    none, every = jeffreys_interval(0, n), jeffreys_interval(n, n)
    assert none is not None and every is not None
    assert (none[0], every[1]) == (0.0, 1.0)
    assert none[1] == pytest.approx(1 - every[0], abs=1e-12)
    assert beta_share(0, n, none[1]) == pytest.approx(0.975, abs=1e-3)


def test_nothing_counted_has_no_interval() -> None:
    assert wilson_interval(0, 0) is None
    assert jeffreys_interval(0, 0) is None


@pytest.mark.parametrize(("correct", "n"), [(1, 0), (-1, 3), (4, 3)])
def test_what_is_no_proportion_is_refused(correct: int, n: int) -> None:
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(correct, n)
    with pytest.raises(ValueError, match="no proportion"):
        jeffreys_interval(correct, n)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0, float("nan")])
def test_a_level_lies_between_0_and_1(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        jeffreys_interval(1, 2, level)


def test_guessing_is_the_papers_baseline() -> None:
    rates = [guessing_rate(2), guessing_rate(4), guessing_rate(151)]
    third = Fraction(1, 3)
    mix = mixed_rate((third, rate) for rate in rates)
    assert mix == mean_rate(rates)
    assert [f"{100 * float(rate):.2f}" for rate in (*rates, mix)] == ["50.00", "25.00", "0.66", "25.22"]


@pytest.mark.parametrize(("smallest", "largest", "answers"), [(99, 249, 151), (149, 149, 1), (99, 149, 51), (7, 8, 2)])
def test_counts_are_guessed_among_all_of_their_range(smallest: int, largest: int, answers: int) -> None:
    assert counting_rate(smallest, largest) == Fraction(1, answers) == Fraction(1, len(range(smallest, largest + 1)))


def test_option_e_makes_guessing_harder() -> None:
    assert f"{100 * float(guessing_rate(5) - guessing_rate(4)):+.2f}" == "-5.00"


def test_baselines_refuse_what_makes_no_sense() -> None:
    assert mean_rate([]) is None
    with pytest.raises(ValueError, match="without possible answers"):
        guessing_rate(0)
    with pytest.raises(ValueError, match="without possible answers"):
        counting_rate(5, 4)
    with pytest.raises(ValueError, match="add up to 1/2"):
        mixed_rate([(Fraction(1, 2), Fraction(1, 2))])


@given(
    st.dictionaries(st.integers(1, 12), st.integers(0, 50), min_size=1).filter(lambda counts: sum(counts.values())),
    st.dictionaries(st.integers(1, 12), st.integers(0, 50), min_size=1).filter(lambda counts: sum(counts.values())),
)
@settings(deadline=None)
def test_the_divergence_is_its_definition(counts: dict[int, int], reference: dict[int, int]) -> None:
    support = range(1, 15)
    expected = Decimal(0)
    for value in support:
        p, q = (
            (1 - Decimal("1e-8")) * side.get(value, 0) / sum(side.values()) + Decimal("1e-8") / 14
            for side in (counts, reference)
        )
        expected += p * (p / q).ln()
    found = smoothed_divergence(counts, reference, support)
    assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-12)
    assert found >= -1e-12


def test_equal_distributions_do_not_diverge_and_unequal_ones_do() -> None:
    assert smoothed_divergence({1: 3, 2: 1}, {1: 30, 2: 10}) == pytest.approx(0, abs=1e-15)
    assert smoothed_divergence({1: 1}, {1: 1, 2: 1}) == pytest.approx(math.log(2), abs=1e-6)
    # What the reference never shows costs about log(M/epsilon).
    assert smoothed_divergence({1: 1}, {2: 1}) == pytest.approx(math.log(2e8), abs=1e-5)


@pytest.mark.parametrize(
    ("counts", "reference", "more", "said"),
    [
        ({}, {1: 1}, {}, "needs counts"),
        ({1: 0}, {1: 1}, {}, "needs counts"),
        ({1: 1}, {}, {}, "needs counts"),
        ({1: 3, 2: -1}, {1: 1}, {}, "none below 0"),
        ({1: 1, 7: 1}, {1: 1}, {"support": [1]}, "7 is not in the support"),
        ({1: 1}, {1: 1}, {"smoothing": 0.0}, "smoothing"),
        ({1: 1}, {1: 1}, {"smoothing": float("nan")}, "smoothing"),
    ],
)
def test_the_divergence_refuses_what_is_no_distribution(
    counts: dict[int, int], reference: dict[int, int], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        smoothed_divergence(counts, reference, **more)


def test_the_page_on_statistics_names_every_function() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in statistics.__all__ if f"`{name}`" not in page] == []
