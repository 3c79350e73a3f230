"""Summaries of scored responses: accuracy with its interval, how far counts are off, and where readings differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gniah.evaluator.judging import NOT_COUNTED, STATUSES
from gniah.evaluator.ledger import Judged, Rows
from gniah.evaluator.readings import READINGS
from gniah.evaluator.statistics import wilson_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CORRECT, _WRONG = (STATUSES.index(status) for status in ("correct", "wrong"))
_UNCOUNTED = [STATUSES.index(status) for status in sorted(NOT_COUNTED)]


@dataclass(frozen=True, slots=True)
class Summary:
    """A group of responses: `n` is the denominator, `interval` the Wilson 95 % interval as fractions.

    `interval` is None when nothing was counted or an example was counted more than once, since repeats are
    not independent. `chance` is what uniform guessing would reach on the same examples.
    """

    n: int
    correct: int
    interval: tuple[float, float] | None
    chance: Fraction | None
    statuses: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CountDetails:
    """How answers to questions for a number compare with the right ones (GraphNIAH, table 15).

    `exact`, `too_low`, `too_high` and `no_number` add up to `n`; `within_tenth` counts answers that are off by at
    most a tenth of the right number, exact ones included. `median_ratio` is the median of answered by right
    number over all numbers, ratios over 10^12 taken as 10^12; None without a number.
    """

    n: int
    exact: int
    too_low: int
    too_high: int
    no_number: int
    within_tenth: int
    median_ratio: float | None


@dataclass(frozen=True, slots=True)
class ReadingScores:
    """The summaries of one model under one reading; `by` maps a variable to its values' summaries.

    `counts` is None when no example is answered by a number.
    """

    overall: Summary
    by: Mapping[str, Mapping[str, Summary]]
    counts: CountDetails | None


@dataclass(frozen=True, slots=True)
class Differences:
    """Counted responses that the two readings read differently: which way, and how many become right or wrong.

    `ours_only` were read by ours alone, `card_only` by the card alone, `other_value` by both. `gained` are right
    by ours alone, `lost` by the card alone. `qids` names the examples, in their order.
    """

    ours_only: int
    card_only: int
    other_value: int
    gained: int
    lost: int
    qids: tuple[str, ...]

    @property
    def responses(self) -> int:
        """Return how many there are."""
        return self.ours_only + self.card_only + self.other_value


class Register:
    """What is known of the examples, as columns that summaries are made by. Add them all before the first summary."""

    def __init__(self) -> None:
        self.qids: list[str] = []
        self.numbers: list[bool] = []
        self._chances: dict[Fraction, int] = {}
        self._chance: list[int] = []
        self._variables: dict[str, _Variable] = {}

    def add(self, qid: str, number: bool, chance: Fraction, variables: Mapping[str, str]) -> None:
        """Take an example; `number` tells that its right answer is one."""
        position = len(self.qids)
        self.qids.append(qid)
        self.numbers.append(number)
        self._chance.append(self._chances.setdefault(chance, len(self._chances)))
        for name, value in variables.items():
            self._variables.setdefault(name, _Variable()).add(position, value)

    def all_scores(self, rows: Rows) -> Mapping[str, ReadingScores]:
        """Return a model's summaries by the names of the readings."""
        return {reading: self.scores(rows, reading) for reading in READINGS}

    def scores(self, rows: Rows, reading: str) -> ReadingScores:
        """Return a model's summaries under a reading."""
        import numpy as np

        status = rows.judged[reading].status.astype(np.int64)
        everything = self._summaries(rows.position, status, np.zeros(len(status), dtype=np.int64), 1)
        by = {}
        for name, variable in self._variables.items():
            values = variable.column(len(self.qids))[rows.position]
            has = values >= 0
            groups = self._summaries(rows.position[has], status[has], values[has], len(variable.codes))
            found = {
                value: groups[code] for value, code in variable.codes.items() if any(groups[code].statuses.values())
            }
            if found:
                by[name] = {value: found[value] for value in sorted(found, key=_natural)}
        return ReadingScores(everything[0], by, self._counts(rows.position, rows.judged[reading]))

    def differences(self, rows: Rows) -> Differences:
        """Return where the two readings of a model's counted responses differ."""
        changed = rows.changed
        card, ours = (rows.judged[reading].status[changed] for reading in READINGS)
        by_card, by_ours = card <= _WRONG, ours <= _WRONG
        positions = dict.fromkeys(rows.position[changed].tolist())
        return Differences(
            ours_only=int((by_ours & ~by_card).sum()),
            card_only=int((by_card & ~by_ours).sum()),
            other_value=int((by_card & by_ours).sum()),
            gained=int(((ours == _CORRECT) & (card != _CORRECT)).sum()),
            lost=int(((card == _CORRECT) & (ours != _CORRECT)).sum()),
            qids=tuple(self.qids[position] for position in positions),
        )

    def _summaries(
        self, position: NDArray[Any], status: NDArray[Any], group: NDArray[Any], groups: int
    ) -> list[Summary]:
        """Return the summary of each of so many groups; `group` gives that of each response."""
        import numpy as np

        width = len(STATUSES)
        table = np.bincount(group * width + status, minlength=groups * width).reshape(groups, width)
        counted = ~np.isin(status, _UNCOUNTED)
        group, position = group[counted], position[counted]
        chance = np.asarray(self._chance, dtype=np.int64)[position]
        kinds = len(self._chances)
        chances = np.bincount(group * kinds + chance, minlength=groups * kinds).reshape(groups, kinds)
        # Rows are in the order of examples, and a value belongs to an example: its responses are in one group.
        first = np.diff(position.astype(np.int64), prepend=-1) > 0
        examples = np.bincount(group[first], minlength=groups)
        rates = list(self._chances)
        return [
            _summary(
                dict(zip(STATUSES, table[code].tolist(), strict=True)),
                int(examples[code]),
                [(rates[kind], int(many)) for kind, many in enumerate(chances[code]) if many],
            )
            for code in range(groups)
        ]

    def _counts(self, position: NDArray[Any], judged: Judged) -> CountDetails | None:
        import numpy as np

        asked = np.asarray(self.numbers, dtype=bool)[position] & ~np.isin(judged.status, _UNCOUNTED)
        if not asked.any():
            return None
        answered = asked & (judged.status <= _WRONG)
        wrong = asked & (judged.status == _WRONG)
        too_low = int((wrong & judged.low).sum())
        ratios = judged.ratio[answered & ~np.isnan(judged.ratio)]
        return CountDetails(
            n=int(asked.sum()),
            exact=int(answered.sum()) - int(wrong.sum()),
            too_low=too_low,
            too_high=int(wrong.sum()) - too_low,
            no_number=int(asked.sum()) - int(answered.sum()),
            within_tenth=int((answered & judged.within).sum()),
            median_ratio=float(np.median(ratios)) if len(ratios) else None,
        )


@dataclass(slots=True)
class _Variable:
    """The values of one variable, numbered, and which example has which."""

    codes: dict[str, int] = field(default_factory=dict)
    pairs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, position: int, value: str) -> None:
        self.pairs.append((position, self.codes.setdefault(value, len(self.codes))))

    def column(self, length: int) -> NDArray[Any]:
        """Return the code of each example's value, -1 where it has none."""
        import numpy as np

        column = np.full(length, -1, dtype=np.int64)
        positions, codes = zip(*self.pairs, strict=True)
        column[list(positions)] = codes
        return column


def _summary(statuses: Mapping[str, int], examples: int, chances: Iterable[tuple[Fraction, int]]) -> Summary:
    n = sum(many for status, many in statuses.items() if status not in NOT_COUNTED)
    correct = statuses["correct"]
    return Summary(
        n=n,
        correct=correct,
        interval=wilson_interval(correct, n) if examples == n else None,
        chance=sum((rate * many for rate, many in chances), Fraction(0)) / n if n else None,
        statuses=statuses,
    )


def _natural(value: str) -> tuple[int, int, str]:
    """Sort numbers by size and before words."""
    digits = value.isascii() and value.isdigit() and len(value) < 20
    return (0, int(value), value) if digits else (1, 0, value)
