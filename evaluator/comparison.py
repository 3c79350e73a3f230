"""Comparing two sets of outcomes of the same examples: pure. A difference is always the second less the first.

An example counts once, whatever it was asked: its value is the share of its counted answers that are right.
When every example has one counted answer on each side and stands for itself, pairs are independent, and the
exact McNemar test and Newcombe's interval are used. When an example was asked several times, or some were made
from one another, what hangs together is one cluster, and the sign-flip test and a bootstrap over clusters are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gniah.evaluator.outcomes import Asked, Outcome, Outcomes
from gniah.evaluator.statistics import (
    PairedTable,
    bootstrap,
    holm,
    mcnemar_exact,
    paired_difference_interval,
    percentile_interval,
    sign_flip_test,
)
from gniah.evaluator.statistics.proportions import Interval
from gniah.evaluator.tables import MOST_VALUES
from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.streams import Stream

MCNEMAR = "mcnemar"
SIGN_FLIP = "sign-flip"
SCHEME = "gniah-compare/1"
# Shares of repeats with other denominators than this has are rounded in the bootstrap.
_FINEST = 10**9


@dataclass(frozen=True, slots=True)
class Difference:
    """How two sides differ on some examples.

    `first` and `second` are their rates; `gained` and `lost` the examples on which the second is better or worse.
    `table` is None and `method` is `sign-flip` when examples hang together; then `interval` is None where the
    bootstrap says nothing: with one cluster, or when all differ by the same.
    """

    examples: int
    clusters: int
    first: Fraction
    second: Fraction
    gained: int
    lost: int
    interval: Interval | None
    p: float
    method: str
    table: PairedTable | None


@dataclass(frozen=True, slots=True)
class Row:
    """The examples with one value of a variable; `p_holm` is p adjusted over all rows of the comparison."""

    variable: str
    value: str
    difference: Difference
    p_holm: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides compared: all examples, the rows by variable and value, and what was left out.

    `first_only` and `second_only` are counted on one side only; `skipped` are variables with too many values.
    """

    first: Outcomes
    second: Outcomes
    overall: Difference
    rows: tuple[Row, ...]
    skipped: tuple[str, ...]
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """One example on both sides: the share of right answers, and how many answers each has."""

    cluster: str
    first: Fraction
    second: Fraction
    answers: int
    variables: Mapping[str, str]

    @property
    def change(self) -> Fraction:
        return self.second - self.first


def compare(
    first: Outcomes, second: Outcomes, *, intersect: bool = False, pair_variants: bool = False, seed: int = 0
) -> Comparison:
    """Compare two sides, counted answers only; `seed` is that of the bootstrap.

    `pair_variants` pairs an example with the ones made from it, such as that with an option more.

    Raises InputError when an example is counted on one side only unless `intersect`, when nothing is left, and when
    the two sides take other answers for right.
    """
    sides = [_by_example(side, pair_variants) for side in (first, second)]
    first_only, second_only = (tuple(sorted(set(sides[i]) - set(sides[1 - i]))) for i in (0, 1))
    shared = sorted(set(sides[0]) & set(sides[1]))
    if (first_only or second_only) and not intersect:
        raise InputError(
            f"not the same examples are counted: {_named(first_only)} in A only, {_named(second_only)} in B only, "
            f"{len(shared)} in both",
            remedy="ask for what is missing again, or compare what both have with --intersect",
        )
    if not shared:
        raise InputError("no example is counted on both sides", remedy="give two score files of the same examples")
    pairs = [_pair(name, sides[0][name], sides[1][name], first.asked) for name in shared]
    rows, skipped = _rows(pairs, seed)
    overall = difference_of(pairs, _stream(seed, "all", ""))
    return Comparison(first, second, overall, rows, skipped, first_only, second_only)


def _by_example(side: Outcomes, pair_variants: bool) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for answer in side.answers:
        if answer.counted:
            name = side.asked[answer.qid].base if pair_variants else answer.qid
            found.setdefault(name, []).append(answer)
    return found


def _pair(name: str, first: list[Outcome], second: list[Outcome], asked: Mapping[str, Asked]) -> _Pair:
    golds = sorted({answer.gold for answer in (*first, *second)})
    if len(golds) > 1:
        raise InputError(
            f"example {name}: the two sides take other answers for right: {', '.join(gold[:60] for gold in golds)}",
            remedy="score both runs against the same examples",
        )
    known = asked[first[0].qid]
    return _Pair(known.base, _share(first), _share(second), len(first) + len(second), known.variables)


def _share(answers: Sequence[Outcome]) -> Fraction:
    return Fraction(sum(answer.correct for answer in answers), len(answers))


def difference_of(pairs: Sequence[_Pair], stream: Stream) -> Difference:
    """Return how the second sides of some pairs differ from the first; `stream` is for the bootstrap."""
    clusters: dict[str, list[Fraction]] = {}
    for pair in pairs:
        clusters.setdefault(pair.cluster, []).append(pair.change)
    gained, lost = sum(pair.change > 0 for pair in pairs), sum(pair.change < 0 for pair in pairs)
    table, p, interval = None, 1.0, None
    if len(clusters) == len(pairs) and all(pair.answers == 2 for pair in pairs):
        both = sum(pair.first == pair.second == 1 for pair in pairs)
        table = PairedTable(both, gained, lost, len(pairs) - both - gained - lost)
        p, interval = mcnemar_exact(gained, lost), paired_difference_interval(table)
    else:
        p = sign_flip_test([sum(changes, Fraction(0)) for changes in clusters.values()])
        interval = _bootstrapped(list(clusters.values()), stream)
    return Difference(
        examples=len(pairs),
        clusters=len(clusters),
        first=sum((pair.first for pair in pairs), Fraction(0)) / len(pairs),
        second=sum((pair.second for pair in pairs), Fraction(0)) / len(pairs),
        gained=gained,
        lost=lost,
        interval=interval,
        p=p,
        method=SIGN_FLIP if table is None else MCNEMAR,
        table=table,
    )


def _bootstrapped(clusters: Sequence[Sequence[Fraction]], stream: Stream) -> Interval | None:
    if len({sum(changes, Fraction(0)) / len(changes) for changes in clusters}) == 1:
        return None
    unit = min(math.lcm(*(change.denominator for changes in clusters for change in changes)), _FINEST)
    rows = [(sum(round(change * unit) for change in changes), len(changes)) for changes in clusters]
    return percentile_interval(bootstrap(rows, lambda sums: sums[:, 0] / (sums[:, 1] * unit), stream))


def _rows(pairs: Sequence[_Pair], seed: int) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    by: dict[str, dict[str, list[_Pair]]] = {}
    for pair in pairs:
        for variable, value in pair.variables.items():
            by.setdefault(variable, {}).setdefault(value, []).append(pair)
    skipped = tuple(variable for variable, values in by.items() if len(values) > MOST_VALUES)
    found = [
        (variable, value, difference_of(values[value], _stream(seed, variable, value)))
        for variable, values in by.items()
        if 1 < len(values) <= MOST_VALUES
        for value in sorted(values, key=_natural)
    ]
    adjusted = holm([difference.p for _, _, difference in found])
    return tuple(Row(*row, p_holm) for row, p_holm in zip(found, adjusted, strict=True)), skipped


def _stream(seed: int, variable: str, value: str) -> Stream:
    return Stream(digest([SCHEME, str(seed)]), "bootstrap", variable, value)


def _named(qids: Sequence[str]) -> str:
    return str(len(qids)) + (f" ({', '.join(qids[:10])}{', …' if len(qids) > 10 else ''})" if qids else "")


def _natural(value: str) -> tuple[int, int, str]:
    """Sort numbers by size and before words."""
    digits = value.isascii() and value.isdigit() and len(value) < 20
    return (0, int(value), value) if digits else (1, 0, value)
