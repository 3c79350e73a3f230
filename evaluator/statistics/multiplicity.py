"""Many tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the order of the given ones.

    With p sorted upwards, the i-th of m becomes the largest of min(1, (m - j + 1) p_j) over j <= i (Holm 1979).
    Rejecting what is at most 5 % then errs once or more with a probability of at most 5 %, whatever depends on
    what. The family is what is given: leave out no test that was looked at.

    Raises ValueError for a value that is no probability, NaN among them.
    """
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"{p} is no probability")
    order = sorted(range(len(p_values)), key=lambda position: p_values[position])
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, position in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = largest
    return adjusted
