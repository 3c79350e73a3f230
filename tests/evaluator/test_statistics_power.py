from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from gniah.evaluator.statistics import (
    connor_examples,
    expected_discordance,
    mcnemar_exact,
    mcnemar_power,
    paired_difference,
    paired_examples,
    unpaired_difference,
    unpaired_examples,
)
from gniah.records.streams import Stream


def power_by_counting(n: int, difference: float, discordance: float, level: float) -> float:
    """Add up the probabilities of all tables whose exact p-value is at most the level."""
    gain, loss = (discordance + difference) / 2, (discordance - difference) / 2
    total = 0.0
    for gained in range(n + 1):
        for lost in range(n + 1 - gained):
            if mcnemar_exact(gained, lost) <= level:
                rest = n - gained - lost
                ways = math.comb(n, gained) * math.comb(n - gained, lost)
                total += ways * gain**gained * loss**lost * (1 - discordance) ** rest
    return total


@pytest.mark.parametrize(
    ("n", "difference", "discordance", "level"),
    [
        (0, 0.1, 0.2, 0.05),
        (1, 0.1, 0.2, 0.05),
        (12, 0.5, 0.5, 0.05),
        (30, 0.3, 0.5, 0.05),
        (30, -0.3, 0.5, 0.05),
        (25, 0.0, 1.0, 0.05),
        (25, 0.4, 1.0, 0.01),
        (40, 0.1, 0.15, 0.2),
        (20, 0.0, 0.0, 0.05),
    ],
)
def test_the_power_is_that_of_all_tables(n: int, difference: float, discordance: float, level: float) -> None:
    expected = power_by_counting(n, difference, discordance, level)
    assert mcnemar_power(n, difference, discordance, level) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_the_power_is_how_often_simulated_runs_differ() -> None:
    n, difference, discordance, runs = 166, 0.15, 0.45, 1000
    stream, seen = Stream("power"), 0
    for _ in range(runs):
        gained = lost = 0
        for _ in range(n):
            drawn = stream.bits(30) / 2**30
            gained += drawn < (discordance + difference) / 2
            lost += (discordance + difference) / 2 <= drawn < discordance
        seen += mcnemar_exact(gained, lost) <= 0.05
    expected = mcnemar_power(n, difference, discordance)
    assert expected == pytest.approx(0.8, abs=0.01)
    assert seen / runs == pytest.approx(expected, abs=4 * math.sqrt(0.16 / runs))


@pytest.mark.parametrize(
    ("first_only", "second_only", "examples"),
    [(0.45, 0.05, 23), (0.3, 0.15, 155)],  # as calculators of Connor's formula say
)
def test_connors_formula(first_only: float, second_only: float, examples: int) -> None:
    assert connor_examples(first_only - second_only, first_only + second_only) == examples


GRID = [(0.05, 0.1), (0.05, 0.5), (0.1, 0.3), (0.2, 0.2), (0.4, 0.5), (-0.15, 0.45), (0.5, 1.0), (0.02, 0.05)]


@pytest.mark.parametrize(("difference", "discordance"), GRID)
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_the_number_of_examples_is_the_least(difference: float, discordance: float, power: float) -> None:
    n = paired_examples(difference, discordance, power)
    assert mcnemar_power(n, difference, discordance) >= power
    least = n - 1 if n > 600 else 0
    assert not any(mcnemar_power(fewer, difference, discordance) >= power for fewer in range(least, n))
    assert 0.8 * connor_examples(difference, discordance, power) <= n
    assert n <= 1.1 * connor_examples(difference, discordance, power) + 5


@pytest.mark.parametrize(("rate", "discordance"), [(0.5, None), (0.9, None), (0.5, 0.1), (0.3, 0.4), (0.0, None)])
@pytest.mark.parametrize("n", [100, 500])
def test_the_smallest_difference_is_where_the_power_begins(n: int, rate: float, discordance: float | None) -> None:
    found = paired_difference(n, rate, discordance)
    assert found is not None

    def power(difference: float) -> float:
        return mcnemar_power(n, difference, expected_discordance(rate, difference, discordance))

    assert power(found) >= 0.8 > power(found - 1e-5)


@pytest.mark.parametrize(
    ("n", "rate", "discordance"), [(5, 0.5, None), (1, 0.0, None), (500, 1.0, None), (5, 0.5, 0.3)]
)
def test_too_few_examples_show_nothing(n: int, rate: float, discordance: float | None) -> None:
    assert paired_difference(n, rate, discordance) is None


def test_a_discordance_that_only_a_large_difference_allows_is_seen_at_once() -> None:
    assert paired_difference(400, 0.1, 0.5) == pytest.approx(0.3)


def fisher_power(n: int, first: float, second: float) -> float:
    """Add up the probabilities of all tables of two groups of n that Fisher's test rejects at 5 %."""
    likely = [binom.pmf(np.arange(n + 1), n, rate) for rate in (first, second)]
    total = 0.0
    for right in range(2 * n + 1):
        counts = np.arange(max(0, right - n), min(n, right) + 1)
        tables = hypergeom.pmf(counts, 2 * n, right, n)
        ordered = np.sort(tables)
        p = np.cumsum(ordered)[np.searchsorted(ordered, tables * (1 + 1e-7), side="right") - 1]
        total += float((likely[0][counts] * likely[1][right - counts])[p <= 0.05].sum())
    return total


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.25, 0.5, 0.7])
@pytest.mark.parametrize("difference", [0.1, 0.15, 0.3])
def test_two_groups_of_the_size_that_is_told_have_the_power(rate: float, difference: float) -> None:
    n = unpaired_examples(rate, difference)
    assert 0.8 <= fisher_power(n, rate, rate + difference) <= 0.95
    assert unpaired_examples(1 - rate, -difference) == n
    smallest = unpaired_difference(n, rate)
    assert smallest is not None and smallest <= difference
    with_one_less = unpaired_difference(n - 1, rate)
    assert with_one_less is None or difference < with_one_less


def test_two_small_groups_show_nothing() -> None:
    assert unpaired_difference(2, 0.5) is None
    assert unpaired_difference(500, 1.0) is None


@pytest.mark.parametrize(
    ("rate", "difference", "given", "share"),
    [
        (0.5, 0.05, None, 0.5),
        (0.0, 0.3, None, 0.3),
        (0.9, 0.1, None, 0.1),
        (0.5, 0.1, 0.1, 0.1),
        (0.5, 0.1, 0.9, 0.9),
        (0.1, -0.1, 0.1, 0.1),
    ],
)
def test_pairs_that_differ(rate: float, difference: float, given: float | None, share: float) -> None:
    assert expected_discordance(rate, difference, given) == pytest.approx(share)


NAN = math.nan


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: expected_discordance(1.2, 0.0), "between 0 and 100"),
        (lambda: expected_discordance(0.9, 0.2), "90 % and 110 %"),
        (lambda: expected_discordance(NAN, 0.2), "between 0 and 100"),
        (lambda: expected_discordance(0.5, 0.1, 0.05), "10 to 90 % of pairs, not in 5 %"),
        (lambda: expected_discordance(0.95, 0.03, 0.5), "3 to 7 % of pairs, not in 50 %"),
        (lambda: expected_discordance(0.5, 0.1, NAN), "not in nan"),
        (lambda: mcnemar_power(10, 0.3, 0.2), "does not fit"),
        (lambda: mcnemar_power(10, 0.3, 1.2), "does not fit"),
        (lambda: mcnemar_power(-1, 0.1, 0.2), "no -1 pairs"),
        (lambda: mcnemar_power(10, 0.1, 0.2, level=5), "between 0 and 1"),
        (lambda: paired_examples(0.0, 0.2), "difference of 0 points"),
        (lambda: paired_examples(1e-200, 0.2), "1e-198 points"),
        (lambda: paired_examples(NAN, 0.2), "does not fit"),
        (lambda: paired_examples(0.1, 0.2, power=80), "between 0 and 1"),
        (lambda: paired_difference(100, 0.95, 0.5), "0 to 10 % of pairs, not in 50 %"),
        (lambda: paired_difference(100, 0.5, NAN), "not in nan"),
        (lambda: paired_difference(100, NAN), "between 0 and 100"),
        (lambda: paired_difference(100, 0.5, None, 0.8, NAN), "between 0 and 1"),
        (lambda: unpaired_examples(0.5, 0.0), "difference of 0 points"),
        (lambda: unpaired_examples(0.5, 0.6), "50 % and 110 %"),
        (lambda: unpaired_examples(0.5, 0.1, power=1.0), "between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=said):
        call()
