from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.evaluator.statistics import (
    bootstrap,
    clustered_error,
    clustered_interval,
    percentile_interval,
    wilson_interval,
)
from gniah.records.streams import Stream

Clusters = list[list[int]]

answers = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=5), min_size=1, max_size=12)


def counted(clusters: Clusters) -> list[tuple[int, int]]:
    return [(sum(cluster), len(cluster)) for cluster in clusters]


def error_over_pairs(clusters: Clusters) -> float:
    """Return the standard error by adding the products of all pairs of answers within each cluster."""
    n = sum(map(len, clusters))
    mean = Fraction(sum(map(sum, clusters)), n)
    products = [(one - mean) * (other - mean) for cluster in clusters for one in cluster for other in cluster]
    return math.sqrt(sum(products, Fraction(0)) / n**2)


@given(answers)
@settings(max_examples=150, deadline=None)
def test_the_error_adds_up_all_pairs_within_a_cluster(clusters: Clusters) -> None:
    assert clustered_error(counted(clusters)) == pytest.approx(error_over_pairs(clusters), rel=1e-12, abs=1e-15)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200))
@settings(max_examples=100, deadline=None)
def test_one_answer_each_is_the_usual_error_and_interval(single: list[int]) -> None:
    rate, n = sum(single) / len(single), len(single)
    clusters = [(one, 1) for one in single]
    assert clustered_error(clusters) == pytest.approx(math.sqrt(rate * (1 - rate) / n), rel=1e-12)
    assert clustered_interval(clusters) == pytest.approx(wilson_interval(sum(single), n), rel=1e-12)


@given(st.lists(st.integers(0, 1), min_size=2, max_size=60), st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_the_same_answer_again_and_again_adds_nothing(single: list[int], repeats: int) -> None:
    again = [(one * repeats, repeats) for one in single]
    assert clustered_error(again) == pytest.approx(clustered_error([(one, 1) for one in single]), rel=1e-12)
    assert clustered_interval(again) == pytest.approx(wilson_interval(sum(single), len(single)), rel=1e-9)


@pytest.mark.parametrize(
    ("clusters", "effective"),
    [
        ([(3, 3)] * 4, (4, 4)),  # all right: as many as there are clusters
        ([(0, 3)] * 4, (0, 4)),
        ([(2, 4)] * 5, (10, 20)),  # alike clusters: no more than there are answers
        ([(0, 0), (1, 1), (0, 1)], (1, 2)),  # an empty cluster says nothing
    ],
)
def test_edges_of_the_effective_number(clusters: list[tuple[int, int]], effective: tuple[int, int]) -> None:
    assert clustered_interval(clusters) == pytest.approx(wilson_interval(*effective), rel=1e-9)


def test_one_cluster_counts_as_one_answer() -> None:
    interval = clustered_interval([(5, 10)])
    assert interval == pytest.approx((0.0546, 0.9454), abs=1e-4)
    assert clustered_interval([(5, 10), (5, 10)]) == pytest.approx(wilson_interval(10, 20), rel=1e-9)


def test_without_answers_there_is_nothing_and_no_proportion_is_refused() -> None:
    assert clustered_error([]) is clustered_interval([]) is clustered_interval([(0, 0)]) is None
    with pytest.raises(ValueError, match="3 of 2"):
        clustered_error([(3, 2)])


@pytest.mark.parametrize("together", [0.0, 0.5, 1.0])
def test_the_interval_covers_about_as_often_as_it_says(together: float) -> None:
    """40 examples of rate 0.3, asked four times each; `together` is how often the answers of one are the same."""
    stream, rate, covered, worlds = Stream("coverage", str(together)), 0.3, 0, 1500

    def happens(chance: float) -> bool:
        return stream.bits(30) < chance * 2**30

    for _ in range(worlds):
        clusters = []
        for _ in range(40):
            if happens(together):
                clusters.append((4 * happens(rate), 4))
            else:
                clusters.append((sum(happens(rate) for _ in range(4)), 4))
        interval = clustered_interval(clusters)
        assert interval is not None
        covered += interval[0] <= rate <= interval[1]
    assert 0.92 < covered / worlds < 0.98


def mean(sums: np.ndarray) -> np.ndarray:
    return np.asarray(sums[:, 0] / sums[:, 1])


@pytest.mark.parametrize("count", [1, 2, 7, 8, 100])
@pytest.mark.parametrize("resamples", [1, 33])
def test_a_resample_is_what_the_stream_draws(count: int, resamples: int) -> None:
    clusters = [(3 * number % 5, 1 + number % 3) for number in range(count)]
    stream = Stream("slow", "bootstrap")
    expected = []
    for _ in range(resamples):
        drawn = [clusters[stream.below(count)] for _ in range(count)]
        expected.append(sum(one for one, _ in drawn) / sum(n for _, n in drawn))
    assert bootstrap(clusters, mean, Stream("slow", "bootstrap"), resamples).tolist() == expected


def test_pieces_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = [(number % 2, 1) for number in range(50)]
    whole = bootstrap(clusters, mean, Stream("k"), 200).tolist()
    monkeypatch.setattr("gniah.evaluator.statistics.clusters._DRAWS", 170)
    assert bootstrap(clusters, mean, Stream("k"), 200).tolist() == whole
    assert bootstrap(clusters, mean, Stream("another"), 200).tolist() != whole


def test_the_draws_are_the_same_on_every_python() -> None:
    values = bootstrap([(number, 1) for number in range(10)], mean, Stream("golden", "bootstrap"), 8)
    assert values.tolist() == [5.8, 2.8, 6.2, 3.9, 4.2, 4.9, 3.1, 5.0]


def test_the_spread_of_resamples_is_the_clustered_error() -> None:
    clusters = [(number % 4, 3) for number in range(100)]
    values = bootstrap(clusters, mean, Stream("spread"), 4000)
    error = clustered_error(clusters)
    assert error is not None
    assert float(values.std()) == pytest.approx(error, rel=0.05)
    low, high = percentile_interval(values)
    assert (high - low) / (2 * 1.96) == pytest.approx(error, rel=0.07)


@pytest.mark.parametrize(
    ("count", "level", "low", "high"),
    [(10_000, 0.95, 250, 9749), (39, 0.95, 0, 38), (40, 0.95, 1, 38), (10, 0.8, 1, 8)],
)
def test_percentiles_leave_the_same_number_off_at_both_ends(count: int, level: float, low: int, high: int) -> None:
    values = np.arange(count, dtype=np.float64)[::-1]
    assert percentile_interval(values, level) == (low, high)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="needs clusters"):
        bootstrap([], mean, Stream("k"))
    with pytest.raises(ValueError, match="needs clusters"):
        bootstrap([(1, 1)], mean, Stream("k"), 0)
    for values, level in (([], 0.95), ([1.0, math.nan], 0.95), ([1.0], 0.0), ([1.0], math.nan)):
        with pytest.raises(ValueError, match="finite values"):
            percentile_interval(np.array(values), level)
