"""Intervals of one rate. All rates are fractions between 0 and 1."""

from __future__ import annotations

import math

Interval = tuple[float, float]

# The 97.5 % point of the normal distribution as the paper's tables round it: with 1.959964 ten of their 630
# intervals come out with another last digit. Every interval of ours that needs a z uses this one.
Z_95 = 1.96


def wilson_interval(correct: int, n: int, z: float = Z_95) -> Interval | None:
    """Return the Wilson score interval of a rate, or None when nothing was counted.

    With p = correct / n, it is (p + z²/2n ± z √(p(1 - p)/n + z²/4n²)) / (1 + z²/n), the set of rates that a
    score test at this z does not reject (Wilson 1927). It assumes n independent trials with one rate, so
    repeats of one example must not be counted as n; `clustered_interval` is for these. For z = 1.96 it is the
    95 % interval of the paper's tables.

    Raises ValueError unless 0 <= correct <= n.
    """
    check_proportion(correct, n)
    return wilson_of_rate(correct / n, n, z) if n else None


def wilson_of_rate(rate: float, n: float, z: float = Z_95) -> Interval:
    """Return the Wilson score interval of a rate that n independent trials gave; n need not be whole."""
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / shrink
    # At 0 and 1 one bound is exact, and rounding must not push it past the end.
    return (0.0 if rate == 0 else max(0.0, centre - half)), (1.0 if rate == 1 else min(1.0, centre + half))


def jeffreys_interval(correct: int, n: int, level: float = 0.95) -> Interval | None:
    """Return the Jeffreys interval of a rate, or None when nothing was counted.

    The bounds are the (1 - level)/2 and (1 + level)/2 points of Beta(correct + ½, n - correct + ½), the
    posterior under Jeffreys' prior; the lower one is 0 when nothing is correct and the upper one 1 when all is
    (Brown, Cai and DasGupta 2001, Statistical Science 16). It assumes n independent trials with one rate, as Wilson's.

    Raises ValueError unless 0 <= correct <= n and 0 < level < 1.
    """
    from scipy.stats import beta

    check_proportion(correct, n)
    if not 0 < level < 1:
        raise ValueError(f"a level of {level} does not lie between 0 and 1")
    if n == 0:
        return None
    low, high = (
        float(beta.ppf(share, correct + 0.5, n - correct + 0.5)) for share in ((1 - level) / 2, (1 + level) / 2)
    )
    return (0.0 if correct == 0 else low), (1.0 if correct == n else high)


def check_proportion(correct: int, n: int) -> None:
    """Raise ValueError unless 0 <= correct <= n."""
    if not 0 <= correct <= n:
        raise ValueError(f"{correct} of {n} is no proportion")
