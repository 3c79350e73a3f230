"""How many examples a comparison needs, and what it can see with those there are. Tests are two-sided."""

from __future__ import annotations

import math
from collections.abc import Callable

POWER = 0.8
LEVEL = 0.05
# Differences are found to a millionth.
_STEPS = 30
# What decimals lose when rates are added up.
_SLACK = 1e-9
# Smaller ones take millions of examples, and minutes to compute.
_LEAST_DIFFERENCE = 1e-3


def expected_discordance(rate: float, difference: float, given: float | None = None) -> float:
    """Return the share of pairs of which exactly one is right, for rates p and q = p + difference.

    Without a given one it is that of two models whose answers do not depend on each other, p(1 - q) + q(1 - p).
    Models that find the same examples hard agree more often, and then fewer examples are enough, so this is the
    careful assumption when nothing is known. A given one is checked: it is at least |p - q| and at most
    min(p + q, 2 - p - q).

    Raises ValueError unless both rates are between 0 and 1, and for a given share that they do not allow.
    """
    other = _other_rate(rate, difference)
    if given is None:
        return rate * (1 - other) + other * (1 - rate)
    least, most = abs(other - rate), min(rate + other, 2 - rate - other)
    if not least - _SLACK <= given <= most + _SLACK:
        raise ValueError(
            f"rates of {100 * rate:g} % and {100 * other:g} % differ in {100 * least:g} to {100 * most:g} % of pairs, "
            f"not in {100 * given:g} %"
        )
    return given


def mcnemar_power(n: int, difference: float, discordance: float, level: float = LEVEL) -> float:
    """Return the probability that the exact McNemar test on n pairs has a p-value of at most `level`.

    `discordance` is the probability that exactly one of a pair is right, `difference` how much likelier it is the
    second than the first. The number m of such pairs is binomial, and given m those gained are binomial with
    probability (1 + difference/discordance)/2: the power is the sum over m of the probability of m times that of
    the m-pair test's rejection region (Duffy 1984, Biometrics 40, 1005-1015). No approximation.

    Raises ValueError unless |difference| <= discordance <= 1, n >= 0 and 0 < level < 1.
    """
    import numpy as np
    from scipy.stats import binom

    _check(difference, discordance, level)
    if n < 0:
        raise ValueError(f"there are no {n} pairs")
    if not discordance:
        return 0.0
    gain = min(1.0, max(0.0, (1 + difference / discordance) / 2))
    # What lies further from the mean has less than 1e-20 of the probability (Bernstein's bound).
    mean, reach = n * discordance, 10 * math.sqrt(n * discordance) + 40
    pairs = np.arange(max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach)) + 1)
    shares = binom.pmf(pairs, n, discordance)
    # The largest number of the rarer kind at which twice the tail is at most the level, or -1.
    most = binom.ppf(level / 2, pairs, 0.5)
    most = np.where(2 * binom.cdf(most, pairs, 0.5) > level, most - 1, most)
    rejected = np.where(most < 0, 0.0, binom.cdf(most, pairs, gain) + binom.cdf(most, pairs, 1 - gain))
    return min(1.0, float(np.sum(shares * rejected)))


def paired_examples(difference: float, discordance: float, power: float = POWER, level: float = LEVEL) -> int:
    """Return how many examples show a difference of two models that answer the same ones.

    Connor's formula, ⌈(z(1 - level/2) √ψ + z(power) √(ψ - d²))² / d²⌉ with difference d and discordance ψ (Connor
    1987, Biometrics 43, 207-211), is for the test without its exact tail. From there it is the nearest number at
    which `mcnemar_power` of the exact test reaches `power`, and at one less does not. `discordance` is the share
    of examples that one of the two gets right: gained and lost together, from a pilot run, or
    `expected_discordance`.

    Raises ValueError for a difference under 0.1 points, unless |difference| <= discordance <= 1, and unless power
    and level are between 0 and 1.
    """
    _check(difference, discordance, level, power)
    _check_size(difference)

    def reached(n: int) -> bool:
        return mcnemar_power(n, difference, discordance, level) >= power

    # One end where it is reached and one where it is not, then halving between them.
    low = high = connor_examples(difference, discordance, power, level)
    step = 1
    while low and reached(low):
        low, high, step = max(0, low - step), low, 2 * step
    while not reached(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def connor_examples(difference: float, discordance: float, power: float = POWER, level: float = LEVEL) -> int:
    """Return the number of pairs by Connor's formula, which `paired_examples` states. Needs a difference."""
    from scipy.stats import norm

    spread = math.sqrt(max(0.0, discordance - difference**2))
    root = norm.isf(level / 2) * math.sqrt(discordance) + norm.ppf(power) * spread
    return math.ceil((root / difference) ** 2)


def paired_difference(
    n: int, rate: float, discordance: float | None = None, power: float = POWER, level: float = LEVEL
) -> float | None:
    """Return the smallest difference upwards from a rate that n examples show, both models answering them, or None.

    It is the difference from which on `mcnemar_power` is at least `power`, found by halving, to a millionth. The
    discordance is that of `expected_discordance`.

    Raises ValueError for a rate that is not between 0 and 1, a discordance that it does not allow with any second
    one above it, and unless power and level are between 0 and 1.
    """
    least, largest = 0.0, 1 - rate
    if discordance is not None:
        least = max(0.0, discordance - 2 * rate)
        largest = min(largest, discordance, 2 - 2 * rate - discordance)
    _check(0, expected_discordance(rate, max(least, largest), discordance), level, power)

    def seen(difference: float) -> bool:
        return mcnemar_power(n, difference, expected_discordance(rate, difference, discordance), level) >= power

    return _smallest(seen, least, largest)


def unpaired_examples(rate: float, difference: float, power: float = POWER, level: float = LEVEL) -> int:
    """Return how many examples each of two groups needs to show a difference between models that answer other ones.

    With rates p and q = p + d and their mean r, n is (z(1 - level/2) √(2r(1 - r)) + z(power) √(p(1 - p) + q(1 - q)))²
    / d², and n (1 + √(1 + 4/(n |d|)))² / 4 rounded up allows for the care of Fisher's exact test (Fleiss, Tytun
    and Ury 1980, Biometrics 36, 343-346). An approximation on the safe side: where the tests count it out, the exact
    power at this number is 80 to 95 %, the more the nearer the rates are to 0 or 1.

    Raises ValueError for a difference under 0.1 points, and unless both rates, power and level are between 0 and 1.
    """
    _check_size(difference)
    return math.ceil(_unpaired(rate, difference, power, level))


def unpaired_difference(n: int, rate: float, power: float = POWER, level: float = LEVEL) -> float | None:
    """Return the smallest difference upwards from a rate that two groups of n examples each show, or None.

    It is the difference from which on `unpaired_examples` asks for at most n, found by halving, to a millionth.
    """
    return _smallest(lambda difference: _unpaired(rate, difference, power, level) <= n, 0.0, 1 - rate)


def _unpaired(rate: float, difference: float, power: float, level: float) -> float:
    from scipy.stats import norm

    other = _other_rate(rate, difference)
    _check(difference, 1.0, level, power)
    mean = (rate + other) / 2
    within = math.sqrt(rate * (1 - rate) + other * (1 - other))
    n = ((norm.isf(level / 2) * math.sqrt(2 * mean * (1 - mean)) + norm.ppf(power) * within) / difference) ** 2
    return float(n * (1 + math.sqrt(1 + 4 / (n * abs(difference)))) ** 2 / 4)


def _smallest(seen: Callable[[float], bool], least: float, largest: float) -> float | None:
    if largest <= 0 or not seen(largest):
        return None
    if least and seen(least):
        return least
    low, high = least, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


def _other_rate(rate: float, difference: float) -> float:
    other = rate + difference
    if not 0 <= rate <= 1 or not -_SLACK <= other <= 1 + _SLACK:
        raise ValueError(f"rates of {100 * rate:g} % and {100 * other:g} % do not both lie between 0 and 100 %")
    return min(1.0, max(0.0, other))


def _check(difference: float, discordance: float, level: float, power: float = POWER) -> None:
    if not abs(difference) <= discordance + _SLACK <= 1 + 2 * _SLACK:
        raise ValueError(
            f"a difference of {100 * difference:g} points does not fit in {100 * discordance:g} % of pairs that differ"
        )
    if not (0 < level < 1 and 0 < power < 1):
        raise ValueError(f"level {level:g} and power {power:g} must lie between 0 and 1")


def _check_size(difference: float) -> None:
    if abs(difference) < _LEAST_DIFFERENCE:
        raise ValueError(f"no affordable number of examples shows a difference of {100 * difference:g} points")
