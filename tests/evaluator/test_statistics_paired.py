from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import multinomial, wilcoxon

from gniah.evaluator.statistics import (
    Z_95,
    PairedTable,
    mcnemar_exact,
    paired,
    paired_difference_interval,
    sign_flip_test,
    wilcoxon_signed_rank,
)

few = st.integers(0, 40)
tables = st.builds(PairedTable, few, few, few, few).filter(lambda table: table.n > 0)


def mcnemar_by_counting(gained: int, lost: int) -> Fraction:
    n = gained + lost
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**n))


@given(st.integers(0, 120), st.integers(0, 120))
@settings(max_examples=200, deadline=None)
def test_mcnemars_p_is_twice_the_smaller_tail(gained: int, lost: int) -> None:
    assert mcnemar_exact(gained, lost) == pytest.approx(float(mcnemar_by_counting(gained, lost)), rel=1e-9)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (7, 7), (1, 1), (4, 5)])
def test_few_or_balanced_pairs_have_a_p_of_1(gained: int, lost: int) -> None:
    assert mcnemar_exact(gained, lost) == pytest.approx(1.0, abs=1e-12)


def test_thousands_of_discordant_pairs_do_not_overflow() -> None:
    assert mcnemar_exact(2600, 2400) == pytest.approx(float(mcnemar_by_counting(2600, 2400)), rel=1e-9)
    assert mcnemar_exact(30_000, 0) == 0.0  # 2^-29999 is no floating point number
    assert mcnemar_exact(500_000, 500_000) == pytest.approx(1.0)


def test_numbers_below_0_are_refused() -> None:
    with pytest.raises(ValueError, match="below 0"):
        mcnemar_exact(-1, 3)
    with pytest.raises(ValueError, match="below 0"):
        PairedTable(1, 1, -1, 1)


def score_bounds(rate: float, n: int) -> tuple[float, float]:
    """Return the rates at which a score test is just not rejected, found by searching."""

    def excess(other: float) -> float:
        return n * (rate - other) ** 2 - Z_95**2 * other * (1 - other)

    low = 0.0 if rate == 0 else brentq(excess, 0.0, min(rate, 1 - 1e-9), xtol=1e-14)
    high = 1.0 if rate == 1 else brentq(excess, max(rate, 1e-9), 1.0, xtol=1e-14)
    return low, high


def newcombe_slowly(table: PairedTable) -> tuple[float, float]:
    n = table.n
    p = {
        "second": Fraction(table.both + table.gained, n),
        "first": Fraction(table.both + table.lost, n),
    }
    bounds = {side: score_bounds(float(rate), n) for side, rate in p.items()}
    cross = Fraction(table.both * table.neither - table.gained * table.lost)
    if cross > Fraction(n, 2):
        cross -= Fraction(n, 2)
    elif cross >= 0:
        cross = Fraction(0)
    variance = math.prod(rate * (1 - rate) for rate in p.values())
    phi = float(cross / n**2) / math.sqrt(variance) if variance else 0.0
    down = {side: float(rate) - bounds[side][0] for side, rate in p.items()}
    up = {side: bounds[side][1] - float(rate) for side, rate in p.items()}
    lengths = []
    for one, other in ((down["second"], up["first"]), (up["second"], down["first"])):
        correlation = np.array([[1.0, -phi], [-phi, 1.0]])
        lengths.append(math.sqrt(max(0.0, float(np.array([one, other]) @ correlation @ np.array([one, other])))))
    difference = float(p["second"] - p["first"])
    return max(-1.0, difference - lengths[0]), min(1.0, difference + lengths[1])


@given(tables)
@settings(max_examples=200, deadline=None)
def test_the_interval_is_newcombes_tenth_method(table: PairedTable) -> None:
    interval = paired_difference_interval(table)
    assert interval is not None
    assert interval == pytest.approx(newcombe_slowly(table), abs=1e-7)
    low, high = interval
    assert -1 <= low <= (table.gained - table.lost) / table.n <= high <= 1
    turned = paired_difference_interval(PairedTable(table.both, table.lost, table.gained, table.neither))
    assert turned is not None
    assert turned == pytest.approx((-high, -low), abs=1e-12)


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        # Worked in Fagerland, Lydersen and Laake, Statistical Analysis of Contingency Tables (2017), chapter 8:
        # complete response before and after consolidation (Cavo 2012), airway hyper-responsiveness (Bentur 2009).
        (PairedTable(both=59, gained=6, lost=16, neither=80), "-0.1186", "-0.0046"),
        (PairedTable(both=1, gained=1, lost=7, neither=12), "-0.5069", "-0.0256"),
        # Altman and others, Statistics with Confidence (2000), table 6.2.
        (PairedTable(both=14, gained=5, lost=0, neither=22), "0.0115", "0.2265"),
    ],
)
def test_published_examples_come_out(table: PairedTable, low: str, high: str) -> None:
    interval = paired_difference_interval(table)
    assert interval is not None
    assert tuple(f"{bound:.4f}" for bound in interval) == (low, high)


def test_without_pairs_there_is_no_interval_and_one_pair_says_little() -> None:
    assert paired_difference_interval(PairedTable(0, 0, 0, 0)) is None
    one = paired_difference_interval(PairedTable(1, 0, 0, 0))
    assert one is not None
    assert one == pytest.approx((-0.7934, 0.7934), abs=1e-4)


def test_the_interval_covers_about_as_often_as_it_says() -> None:
    n = 20
    everything = [PairedTable(a, b, c, n - a - b - c) for a, b, c in product(range(n + 1), repeat=3) if a + b + c <= n]
    numbers = [(table.both, table.gained, table.lost, table.neither) for table in everything]
    intervals = [paired_difference_interval(table) for table in everything]
    covered = []
    for shares in ((0.4, 0.1, 0.1, 0.4), (0.3, 0.2, 0.1, 0.4), (0.5, 0.3, 0.05, 0.15), (0.8, 0.05, 0.1, 0.05)):
        truth = shares[1] - shares[2]
        likely = multinomial.pmf(numbers, n, shares)
        covered.append(
            sum(p for p, one in zip(likely, intervals, strict=True) if one is not None and one[0] <= truth <= one[1])
        )
    assert all(0.92 < share < 0.99 for share in covered), covered


def flips_by_counting(differences: list[Fraction]) -> float:
    seen = abs(sum(differences, Fraction(0)))
    ways = [
        abs(sum((sign * size for sign, size in zip(signs, differences, strict=True)), Fraction(0))) >= seen
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(ways) / len(ways)


@given(st.lists(st.fractions(-1, 1, max_denominator=12), max_size=9))
@settings(max_examples=100, deadline=None)
def test_the_sign_flip_test_counts_all_ways_to_give_signs(differences: list[Fraction]) -> None:
    assert sign_flip_test(differences) == pytest.approx(flips_by_counting(differences), rel=1e-12)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_with_one_answer_each_the_sign_flip_test_is_mcnemars(gained: int, lost: int, equal: int) -> None:
    found = sign_flip_test([1] * gained + [0] * equal + [-1] * lost)
    assert found == pytest.approx(mcnemar_exact(gained, lost), rel=1e-9)


def test_sizes_that_are_too_fine_get_the_normal_approximation(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [Fraction(step % 37 - 15, 36) for step in range(200)]
    exact = sign_flip_test(differences)
    monkeypatch.setattr(paired, "MOST_POINTS", 10)
    assert sign_flip_test(differences) != exact
    assert sign_flip_test(differences) == pytest.approx(exact, abs=2e-3)
    assert 0.001 < exact < 0.999


def ranks_by_counting(differences: list[float]) -> float:
    """Count all ways to give mean ranks signs, as Wilcoxon's test does under its hypothesis."""
    values = [value for value in differences if value]
    sizes = sorted(abs(value) for value in values)
    ranks = [
        Fraction(sum(index + 1 for index, size in enumerate(sizes) if size == abs(value)), sizes.count(abs(value)))
        for value in values
    ]
    middle = sum(ranks, Fraction(0)) / 2
    seen = abs(sum((rank for rank, value in zip(ranks, values, strict=True) if value > 0), Fraction(0)) - middle)
    ways = [
        abs(sum((rank for rank, up in zip(ranks, ups, strict=True) if up), Fraction(0)) - middle) >= seen
        for ups in product((True, False), repeat=len(values))
    ]
    return sum(ways) / len(ways)


@given(st.lists(st.integers(-6, 6).map(float), max_size=9))
@settings(max_examples=100, deadline=None)
def test_the_signed_rank_test_is_exact_with_ties_and_zeros(differences: list[float]) -> None:
    assert wilcoxon_signed_rank(differences) == pytest.approx(ranks_by_counting(differences), rel=1e-12)


def test_it_is_exact_with_ties_among_more_than_a_dozen_too() -> None:
    differences = [1.0, 1.0, -1.0, 2.0, 2.0, -2.0, 3.0, 3.0, 3.0, -1.0, 4.0, 4.0, -3.0, 1.0]
    assert wilcoxon_signed_rank(differences) == pytest.approx(ranks_by_counting(differences), rel=1e-12)


@given(st.lists(st.floats(-100, 100).filter(bool), min_size=1, max_size=50, unique_by=abs))
@settings(max_examples=40, deadline=None)
def test_without_ties_it_is_scipys_exact_one(differences: list[float]) -> None:
    assert wilcoxon_signed_rank(differences) == pytest.approx(wilcoxon(differences, method="exact").pvalue, rel=1e-9)


def test_many_differences_get_the_normal_approximation_with_its_tie_correction() -> None:
    differences = [float(step % 9 - 3) for step in range(90)]
    values = [value for value in differences if value]
    sizes = [abs(value) for value in values]
    ranks = {size: np.mean([i + 1 for i, one in enumerate(sorted(sizes)) if one == size]) for size in set(sizes)}
    n, up = len(values), sum(ranks[value] for value in values if value > 0)
    ties = sum(sizes.count(size) ** 3 - sizes.count(size) for size in set(sizes))
    z = (up - n * (n + 1) / 4) / math.sqrt(n * (n + 1) * (2 * n + 1) / 24 - ties / 48)
    assert n > paired.MOST_RANKS
    assert wilcoxon_signed_rank(differences) == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), rel=1e-9)


def test_nothing_changed_is_no_evidence() -> None:
    assert wilcoxon_signed_rank([]) == wilcoxon_signed_rank([0.0, 0.0]) == 1.0
    assert sign_flip_test([]) == sign_flip_test([0, 0]) == sign_flip_test([1, -1]) == 1.0


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        wilcoxon_signed_rank([1.0, wrong])
