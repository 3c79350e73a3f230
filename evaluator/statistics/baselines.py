"""What guessing reaches, in closed form. All rates are exact fractions."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction


def guessing_rate(answers: int) -> Fraction:
    """Return how often a uniform guess among a task's possible answers is right, whatever the right ones are.

    This is 1/|A| (GraphNIAH, appendix D). Raises ValueError when there is no answer to guess.
    """
    if answers < 1:
        raise ValueError("a task without possible answers cannot be guessed")
    return Fraction(1, answers)


def counting_rate(smallest: int, largest: int) -> Fraction:
    """Return how often a uniform guess among the integers from smallest to largest is right.

    This is 1/(largest - smallest + 1). Components of 100 to 250 papers give the counts 99 to 249 and 1/151
    (GraphNIAH, appendix D, which uses it in every experiment, those with one component size among them).
    Raises ValueError when smallest is over largest.
    """
    return guessing_rate(largest - smallest + 1)


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
