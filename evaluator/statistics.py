"""Intervals and baselines in closed form. All rates are fractions between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

# The 97.5 % point of the normal distribution as the paper's tables round it.
Z_95 = 1.96


def wilson_interval(correct: int, n: int, z: float = Z_95) -> tuple[float, float] | None:
    """Return the Wilson score interval of a rate, or None when nothing was counted.

    With p = correct / n, it is (p + z²/2n ± z √(p(1 - p)/n + z²/4n²)) / (1 + z²/n), the set of rates that a
    score test at this z does not reject (Wilson 1927). It assumes n independent trials with one rate, so
    repeats of one example must not be counted as n. For z = 1.96 it is the 95 % interval of the paper's
    tables.

    Raises ValueError unless 0 <= correct <= n.
    """
    if not 0 <= correct <= n:
        raise ValueError(f"{correct} of {n} is no proportion")
    if n == 0:
        return None
    rate = correct / n
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / shrink
    # At 0 and n one bound is exact, and rounding must not push it past the end.
    return (0.0 if correct == 0 else max(0.0, centre - half)), (1.0 if correct == n else min(1.0, centre + half))


def guessing_rate(answers: int) -> Fraction:
    """Return how often a uniform guess among a task's possible answers is right, whatever the right ones are.

    This is 1/|A| (GraphNIAH, appendix D). Raises ValueError when there is no answer to guess.
    """
    if answers < 1:
        raise ValueError("a task without possible answers cannot be guessed")
    return Fraction(1, answers)


def mean_rate(rates: Iterable[Fraction]) -> Fraction | None:
    """Return the mean of the guessing rates of some examples, or None when there are none.

    Over examples it is the law of total probability with the tasks' observed shares.
    """
    values = list(rates)
    return sum(values, Fraction(0)) / len(values) if values else None


def mixed_rate(shares: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the guessing rate of a mix of tasks from (probability of the task, its rate) pairs.

    This is the law of total probability (GraphNIAH, equation 8). Raises ValueError unless the probabilities
    add up to 1.
    """
    pairs = list(shares)
    total = sum((share for share, _ in pairs), Fraction(0))
    if total != 1:
        raise ValueError(f"the probabilities of the tasks add up to {total}, not 1")
    return sum((share * rate for share, rate in pairs), Fraction(0))
