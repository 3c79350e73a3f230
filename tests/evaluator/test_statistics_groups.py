from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.evaluator.statistics import chi_square, fisher_exact, holm


@st.composite
def groups(draw: st.DrawFn, count: int, largest: int = 25) -> list[tuple[int, int]]:
    sizes = [draw(st.integers(1, largest)) for _ in range(count)]
    return [(draw(st.integers(0, size)), size) for size in sizes]


def fisher_by_counting(first: tuple[int, int], second: tuple[int, int]) -> Fraction:
    """Add up the tables with the same margins that are no likelier than the one at hand, in whole numbers."""
    (a, n1), (b, n2) = first, second
    right = a + b
    ways = [math.comb(n1, k) * math.comb(n2, right - k) for k in range(max(0, right - n2), min(n1, right) + 1)]
    seen = math.comb(n1, a) * math.comb(n2, b)
    return Fraction(sum(way for way in ways if way <= seen), sum(ways))


@given(groups(2))
@settings(max_examples=200, deadline=None)
def test_fishers_p_is_the_share_of_tables_that_are_no_likelier(sides: list[tuple[int, int]]) -> None:
    expected = float(fisher_by_counting(sides[0], sides[1]))
    assert fisher_exact(*sides) == pytest.approx(expected, rel=1e-9)
    assert fisher_exact(*reversed(sides)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second"), [((0, 0), (3, 5)), ((0, 0), (0, 0)), ((5, 5), (2, 2)), ((0, 4), (0, 9)), ((1, 1), (1, 1))]
)
def test_one_possible_table_has_a_p_of_1(first: tuple[int, int], second: tuple[int, int]) -> None:
    assert fisher_exact(first, second) == 1.0


def chi_tail(statistic: float, freedom: int) -> float:
    """Return the upper tail of chi-square in closed form, by steps of two degrees of freedom."""
    half = statistic / 2
    tail = math.erfc(math.sqrt(half)) if freedom % 2 else math.exp(-half)
    for degrees in range(1 if freedom % 2 else 2, freedom, 2):
        tail += half ** (degrees / 2) * math.exp(-half) / math.gamma(degrees / 2 + 1)
    return tail


@given(st.integers(2, 7).flatmap(lambda count: groups(count, 60)))
@settings(max_examples=200, deadline=None)
def test_chi_square_is_its_definition(found: list[tuple[int, int]]) -> None:
    right, n = sum(correct for correct, _ in found), sum(size for _, size in found)
    result = chi_square(found)
    assert result.freedom == len(found) - 1
    if right in (0, n):
        assert (result.statistic, result.p) == (0.0, 1.0)
        return
    statistic = Fraction(0)
    for correct, size in found:
        for observed, share in ((correct, Fraction(right, n)), (size - correct, Fraction(n - right, n))):
            statistic += (observed - size * share) ** 2 / (size * share)
    assert result.statistic == pytest.approx(float(statistic), rel=1e-9, abs=1e-12)
    assert result.p == pytest.approx(chi_tail(float(statistic), len(found) - 1), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("found", [[], [(1, 2)], [(1, 2), (0, 0)]])
def test_chi_square_needs_groups_that_are_not_empty(found: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="two groups or more"):
        chi_square(found)


def test_what_is_no_proportion_is_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        fisher_exact((1, 2), (3, 2))
    with pytest.raises(ValueError, match="-1 of 2"):
        chi_square([(1, 2), (-1, 2)])


def holm_by_closure(p_values: list[float]) -> list[float]:
    """Return adjusted p-values by testing every set of hypotheses with Bonferroni's rule (closed testing)."""
    everyone = range(len(p_values))
    sets = [chosen for size in range(1, len(p_values) + 1) for chosen in combinations(everyone, size)]
    return [
        max(min(1.0, len(chosen) * min(p_values[other] for other in chosen)) for chosen in sets if one in chosen)
        for one in everyone
    ]


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.05, 1.0]), max_size=7))
@settings(max_examples=200, deadline=None)
def test_holm_is_the_closed_test_of_bonferronis(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert adjusted == pytest.approx(holm_by_closure(p_values), rel=1e-12)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))


def test_holm_keeps_the_order_it_was_given() -> None:
    known = {0.01: 0.04, 0.04: 0.06, 0.03: 0.06, 0.02: 0.06}
    for order in permutations(known):
        assert holm(order) == pytest.approx([known[p] for p in order])
    assert holm([]) == []
    assert holm([0.3]) == [0.3]


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), float("inf")])
def test_holm_refuses_what_is_no_probability(wrong: float) -> None:
    with pytest.raises(ValueError, match="no probability"):
        holm([0.5, wrong])
