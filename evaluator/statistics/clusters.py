"""Rates of answers that hang together: repeats, efforts and variants of one example make a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gniah.evaluator.statistics.groups import Counts
from gniah.evaluator.statistics.proportions import Z_95, Interval, check_proportion, wilson_of_rate
from gniah.records.streams import Stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.int64]], NDArray[np.float64]]

RESAMPLES = 10_000
# So many draws are held at a time.
_DRAWS = 1 << 20
_WORD = 32


def clustered_error(clusters: Sequence[Counts]) -> float | None:
    """Return the standard error of the rate over all answers, from (correct, answers) of each cluster.

    With N answers of rate p it is √(Σ (correct - p · answers)²) / N over the clusters: the variance of a mean
    whose terms may depend on each other within a cluster in any way (Liang and Zeger 1986, without a correction
    for few clusters). It assumes independent clusters, and is too small for fewer than about 30. With one answer
    each it is √(p(1 - p)/N). None without an answer.

    Raises ValueError for a cluster that is no proportion.
    """
    for correct, n in clusters:
        check_proportion(correct, n)
    answers = sum(n for _, n in clusters)
    if not answers:
        return None
    right = sum(correct for correct, _ in clusters)
    # Whole numbers up to the root, so that equal clusters have an error of exactly 0.
    squares = sum((correct * answers - right * n) ** 2 for correct, n in clusters)
    return math.sqrt(squares) / answers**2


def clustered_interval(clusters: Sequence[Counts], z: float = Z_95) -> Interval | None:
    """Return a Wilson interval of the rate over all answers, from (correct, answers) of each cluster.

    It is Wilson's with the effective number of answers p(1 - p)/error² in the place of n, where error is
    `clustered_error` (Kish 1965 for the effective number, Korn and Graubard 1998 for its use in an interval). That
    number is taken as at most N, and as the number of clusters when all or none are right or there is one
    cluster only, as if the answers within a cluster were always the same. With one answer each it is
    `wilson_interval`. None without an answer.

    Raises ValueError for a cluster that is no proportion.
    """
    error = clustered_error(clusters)
    if error is None:
        return None
    asked = [(correct, n) for correct, n in clusters if n]
    right, answers = sum(correct for correct, _ in asked), sum(n for _, n in asked)
    rate = right / answers
    effective = float(len(asked))
    if 0 < right < answers and len(asked) > 1:
        effective = min(float(answers), rate * (1 - rate) / error**2) if error else float(answers)
    return wilson_of_rate(rate, effective, z)


def bootstrap(
    clusters: Sequence[Sequence[int]], statistic: Statistic, stream: Stream, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Return a statistic of resampled clusters, one value for each resample (Efron 1979).

    A cluster is a row of whole numbers. A resample draws as many clusters as there are, with replacement, and
    adds up their rows; `statistic` gets the sums, one row for each of several resamples, and returns a value for
    each. So a ratio of two columns is `lambda sums: sums[:, 0] / sums[:, 1]`. It assumes independent clusters, and
    enough of them (about 30) to stand for all.

    The draws are those of `stream.below(len(clusters))`, one after the other, and the sums are whole: the values
    are the same on every machine. 10,000 resamples of 500 clusters take half a second.

    Raises ValueError without clusters or resamples.
    """
    import numpy as np

    rows = np.asarray(clusters, dtype=np.int64)
    if not len(rows) or resamples < 1:
        raise ValueError("a bootstrap needs clusters and resamples")
    at_once = max(1, _DRAWS // len(rows))
    draws = _Draws(stream, len(rows))
    values = []
    for first in range(0, resamples, at_once):
        count = min(at_once, resamples - first)
        chosen = draws.take(count * len(rows)).reshape(count, len(rows))
        values.append(statistic(np.stack([column[chosen].sum(axis=1) for column in rows.T], axis=1)))
    return np.concatenate(values)


def percentile_interval(values: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return the bounds between which the middle share `level` of bootstrapped values lies.

    Of B values in order, ⌊B(1 - level)/2⌋ are left off at each end (Efron 1981, the percentile method). Raises
    ValueError without values, for one that is not finite, and unless 0 < level < 1.
    """
    import numpy as np

    if not len(values) or not np.isfinite(values).all() or not 0 < level < 1:
        raise ValueError("percentiles need finite values and a level between 0 and 1")
    ordered = np.sort(values)
    # A billionth, so that 2.5 % of 10,000 is 250 whatever the rounding.
    left_off = math.floor(len(ordered) * (1 - level) / 2 + 1e-9)
    return float(ordered[left_off]), float(ordered[-1 - left_off])


class _Draws:
    """What `Stream.below` draws, many at a time: a word of 32 bits for each try, its highest bits, rejection."""

    def __init__(self, stream: Stream, bound: int) -> None:
        self._stream = stream
        self._bound = bound
        self._width = (bound - 1).bit_length()

    def take(self, count: int) -> NDArray[np.int64]:
        import numpy as np

        if not self._width:
            return np.zeros(count, dtype=np.int64)
        taken: list[NDArray[np.int64]] = []
        missing = count
        while missing:
            taken.append(self._kept_of(missing))
            missing -= len(taken[-1])
        return np.concatenate(taken)

    def _kept_of(self, tries: int) -> NDArray[np.int64]:
        import numpy as np

        raw = self._stream.bits(_WORD * tries).to_bytes(_WORD // 8 * tries, "little")
        drawn = (np.frombuffer(raw, dtype="<u4") >> (_WORD - self._width)).astype(np.int64)
        return drawn[drawn < self._bound]
