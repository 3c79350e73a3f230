from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from gniah.evaluator.statistics import Z_95, guessing_rate, mean_rate, mixed_rate, wilson_interval


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


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [
        (0, 32, "0.00", "10.72"),
        (0, 128, "0.00", "2.91"),
        (34, 34, "89.85", "100.00"),
        (20, 40, "35.20", "64.80"),
        (22, 43, "36.75", "65.38"),
        (70, 128, "46.05", "63.05"),
        (88, 145, "52.56", "68.27"),
        (10, 34, "16.83", "46.17"),
        (112, 127, "81.43", "92.71"),
    ],
)
def test_the_papers_printed_digits_come_out(correct: int, n: int, low: str, high: str) -> None:
    interval = wilson_interval(correct, n)
    assert interval is not None
    assert (f"{100 * interval[0]:.2f}", f"{100 * interval[1]:.2f}") == (low, high)


def test_nothing_counted_has_no_interval() -> None:
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize(("correct", "n"), [(1, 0), (-1, 3), (4, 3)])
def test_what_is_no_proportion_is_refused(correct: int, n: int) -> None:
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(correct, n)


def test_guessing_is_the_papers_baseline() -> None:
    rates = [guessing_rate(2), guessing_rate(4), guessing_rate(151)]
    third = Fraction(1, 3)
    mix = mixed_rate((third, rate) for rate in rates)
    assert mix == mean_rate(rates)
    assert [f"{100 * float(rate):.2f}" for rate in (*rates, mix)] == ["50.00", "25.00", "0.66", "25.22"]


def test_baselines_refuse_what_makes_no_sense() -> None:
    assert mean_rate([]) is None
    with pytest.raises(ValueError, match="without possible answers"):
        guessing_rate(0)
    with pytest.raises(ValueError, match="add up to 1/2"):
        mixed_rate([(Fraction(1, 2), Fraction(1, 2))])
