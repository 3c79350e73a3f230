"""Comparing rates of independent groups: other examples in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gniah.evaluator.statistics.proportions import check_proportion

# How many of a group were right, and how many there were.
Counts = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Pearson's statistic, its degrees of freedom and its p-value."""

    statistic: float
    freedom: int
    p: float


def fisher_exact(first: Counts, second: Counts) -> float:
    """Return the two-sided p-value of Fisher's exact test that two groups have one rate.

    Given how many are right in both groups together, the number right in the first is hypergeometric; p is the
    total probability of the tables that are no likelier than the one at hand (Fisher 1935; the two-sided sum is
    Freeman and Halton's, 1951). It assumes independent answers, in the groups and between them. When a group is
    empty, or all or none are right, one table is possible and p is 1.

    Raises ValueError unless each group is a proportion.
    """
    import numpy as np
    from scipy.stats import fisher_exact as test

    for correct, n in (first, second):
        check_proportion(correct, n)
    table = np.array([[correct, n - correct] for correct, n in (first, second)])
    return min(1.0, float(test(table).pvalue))


def chi_square(groups: Sequence[Counts]) -> ChiSquare:
    """Return Pearson's chi-square test that all groups have one rate.

    The statistic is Σ (observed - expected)²/expected over right and wrong of each group, without Yates'
    correction, and p its upper tail with one degree of freedom less than there are groups (Pearson 1900). It
    assumes independent answers and expected numbers of about 5 and more; with few, use `fisher_exact` on pairs
    and `holm`. When all or none are right, the groups do not differ: the statistic is 0 and p is 1.

    Raises ValueError for fewer than two groups, for an empty one and for one that is no proportion.
    """
    from scipy.stats import chi2_contingency

    for correct, n in groups:
        check_proportion(correct, n)
    if len(groups) < 2 or not all(n for _, n in groups):
        raise ValueError("a chi-square test needs two groups or more, and none of them empty")
    freedom = len(groups) - 1
    if sum(correct for correct, _ in groups) in (0, sum(n for _, n in groups)):
        return ChiSquare(0.0, freedom, 1.0)
    found = chi2_contingency([[correct, n - correct] for correct, n in groups], correction=False)
    return ChiSquare(float(found.statistic), freedom, float(found.pvalue))
