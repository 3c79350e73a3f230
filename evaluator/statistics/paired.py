"""Comparing two sets of answers to the same examples. A difference is always the second less the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from gniah.evaluator.statistics.proportions import Z_95, Interval, wilson_of_rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Up to so many points of its distribution (some seconds), the sign-flip test is exact.
MOST_POINTS = 1 << 22
# Up to so many differences that are not zero, the signed-rank test is exact.
MOST_RANKS = 50


@dataclass(frozen=True, slots=True)
class PairedTable:
    """Pairs by who is right: both, only the second (gained), only the first (lost), neither."""

    both: int
    gained: int
    lost: int
    neither: int

    def __post_init__(self) -> None:
        if min(self.both, self.gained, self.lost, self.neither) < 0:
            raise ValueError(f"{self}: there are no numbers of pairs below 0")

    @property
    def n(self) -> int:
        """Return how many pairs there are."""
        return self.both + self.gained + self.lost + self.neither


def mcnemar_exact(gained: int, lost: int) -> float:
    """Return the two-sided p-value of the exact McNemar test from the pairs with one right answer.

    Under one rate for both, gained is binomial with gained + lost trials and probability ½; p is twice the
    smaller tail, at most 1 (McNemar 1947; exact form in Mosteller 1952). It assumes pairs that are independent
    of each other: repeats of an example are not, see `sign_flip_test`. Without such pairs p is 1.

    Raises ValueError for a number below 0.
    """
    from scipy.stats import binomtest

    if gained < 0 or lost < 0:
        raise ValueError(f"{gained} gained and {lost} lost: there are no numbers of pairs below 0")
    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def paired_difference_interval(table: PairedTable, z: float = Z_95) -> Interval | None:
    """Return Newcombe's interval of the difference of two paired rates, or None without pairs.

    With p1, p2 the rates of first and second, [l, u] their Wilson intervals and d = p2 - p1, it is
    d - √((p2 - l2)² - 2φ(p2 - l2)(u1 - p1) + (u1 - p1)²) to d + √((u2 - p2)² - 2φ(u2 - p2)(p1 - l1) + (p1 - l1)²).
    With c = both · neither - gained · lost, φ is c / √(product of the four margins), where a c over n/2 is made
    smaller by n/2 and one from 0 to n/2 is taken as 0; φ is 0 when a margin is 0 (Newcombe 1998, Statistics in
    Medicine 17, 2635-2650, method 10). It assumes independent pairs. It is no inversion of `mcnemar_exact`, which
    is more careful: with few discordant pairs it may leave out 0 where p is over 5 %.
    """
    n = table.n
    if not n:
        return None
    right_first, right_second = table.both + table.lost, table.both + table.gained
    first, second = right_first / n, right_second / n
    (low_first, high_first), (low_second, high_second) = wilson_of_rate(first, n, z), wilson_of_rate(second, n, z)
    phi = _correlation(table, right_first, right_second)
    difference = (table.gained - table.lost) / n
    below = _added(second - low_second, high_first - first, phi)
    above = _added(high_second - second, first - low_first, phi)
    return max(-1.0, difference - below), min(1.0, difference + above)


def _correlation(table: PairedTable, right_first: int, right_second: int) -> float:
    n = table.n
    margins = right_first * (n - right_first) * right_second * (n - right_second)
    if not margins:
        return 0.0
    cross = float(table.both * table.neither - table.gained * table.lost)
    if cross > 0:
        cross = max(0.0, cross - n / 2)
    return cross / math.sqrt(margins)


def _added(one: float, other: float, phi: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))


def sign_flip_test(differences: Sequence[Fraction | int]) -> float:
    """Return the two-sided p-value of the sign-flip test that differences are as likely up as down.

    p is the share of all 2^n ways to give the differences signs whose sum is at least as far from 0 as that at
    hand (Fisher 1935, section 21), found by adding up the distribution of the sum one difference after the
    other. Give one difference for each group of answers that hang together, such as the repeats of an example:
    the groups have to be independent, and under the hypothesis each difference symmetric about 0. For
    differences of 1 and -1 it is `mcnemar_exact`. Without differences, p is 1.

    Differences whose sizes in their common unit add up to more than `MOST_POINTS` get the normal approximation,
    with variance Σ d².
    """
    sizes = whole_units(differences)
    seen, reach = abs(sum(sizes)), sum(abs(size) for size in sizes)
    if not reach:
        return 1.0
    if reach > MOST_POINTS:
        return math.erfc(seen / math.sqrt(2 * sum(size * size for size in sizes)))
    shares = _share_of_sums([abs(size) for size in sizes if size])
    # shares[s] belongs to the sum 2s - reach, and both tails are equal.
    return min(1.0, 2 * float(shares[(reach + seen) // 2 :].sum())) if seen else 1.0


def _share_of_sums(sizes: list[int]) -> NDArray[np.float64]:
    import numpy as np

    shares = np.zeros(sum(sizes) + 1)
    shares[0], reach = 1.0, 0
    for size in sorted(sizes):
        before = shares[: reach + 1] / 2
        shares[: reach + 1] = before
        reach += size
        shares[size : reach + 1] += before
    return shares


def whole_units(values: Sequence[Fraction | int]) -> list[int]:
    """Return fractions as whole numbers of their largest common unit."""
    fractions = [Fraction(value) for value in values]
    unit = math.lcm(*(value.denominator for value in fractions)) if fractions else 1
    whole = [int(value * unit) for value in fractions]
    shared = math.gcd(*whole) or 1
    return [size // shared for size in whole]


def wilcoxon_signed_rank(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test that differences are symmetric about 0.

    Zeros are dropped, the rest is ranked by size with mean ranks for ties, and the statistic is the sum of the
    ranks of positive differences (Wilcoxon 1945). For up to `MOST_RANKS` of them p is exact, ties or none: the
    share of all ways to give the ranks signs. Over that it is the normal approximation with the correction of
    variance for ties and none for continuity. It assumes independent differences, one for each example. Without
    a difference that is not 0, p is 1.

    Raises ValueError for NaN and infinite values.
    """
    from scipy.stats import rankdata, wilcoxon

    if not all(math.isfinite(value) for value in differences):
        raise ValueError("a difference is not a finite number")
    values = [float(value) for value in differences if value]
    if len(values) > MOST_RANKS:
        return float(wilcoxon(values, correction=False).pvalue)
    ranks = rankdata([abs(value) for value in values]).tolist() if values else []
    signed = [Fraction(rank) if value > 0 else -Fraction(rank) for rank, value in zip(ranks, values, strict=True)]
    return sign_flip_test(signed)
