"""How far one distribution of degrees is from another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

SMOOTHING = 1e-8


def smoothed_divergence(
    counts: Mapping[int, int],
    reference: Mapping[int, int],
    support: Iterable[int] | None = None,
    smoothing: float = SMOOTHING,
) -> float:
    """Return the Kullback-Leibler divergence from counted values to reference ones, in nats.

    Both are turned into shares P and Q over a common support of M values and smoothed, as (1 - ε)P + ε/M; the
    divergence is Σ P log(P/Q) over the support (Kullback and Leibler 1951; GraphNIAH, equations 2 to 5, with
    ε = 1e-8). GraphNIAH counts papers by in-degree, degree 0 left out, and takes as support every degree that
    the graph or the examples of any task under any candidate alpha show. `support` is by default what the two
    show: give it when several divergences are to be compared.

    Raises ValueError when one side has no counts or a negative one, for a value outside the support and for a
    smoothing that is not between 0 and 1.
    """
    values = sorted(set(counts) | set(reference) if support is None else set(support))
    if not 0 < smoothing < 1:
        raise ValueError(f"a smoothing of {smoothing} does not lie between 0 and 1")
    p, q = (_shares(side, values, smoothing) for side in (counts, reference))
    return math.fsum(mine * math.log(mine / other) for mine, other in zip(p, q, strict=True))


def _shares(counts: Mapping[int, int], support: list[int], smoothing: float) -> list[float]:
    outside = set(counts) - set(support)
    if outside:
        raise ValueError(f"the value {min(outside)} is not in the support")
    total = sum(counts.values())
    if total <= 0 or min(counts.values()) < 0:
        raise ValueError("a distribution needs counts, and none below 0")
    return [(1 - smoothing) * counts.get(value, 0) / total + smoothing / len(support) for value in support]
