"""Scored responses in the order of their examples, however many: a line of JSON each, kept out of memory.

What is needed to sort and count them stays in columns, about 60 bytes a response; the lines go to a temporary file
once they are many.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import orjson

from gniah.evaluator.judging import STATUSES, Verdict, Verdicts
from gniah.evaluator.readings import CARD, OURS, READINGS
from gniah.records.files import environment_fault
from gniah.records.responses import Response

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IN_MEMORY = 64 << 20
# How many lines are read together at most.
_AT_ONCE = 1000
_KEY_BYTES = 32
_CODES = {status: code for code, status in enumerate(STATUSES)}
LARGEST_REPEAT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ScoredResponse:
    """How one response counts under both readings. `gold` is the right answer; the rest is the response's own.

    `cost` is in US dollars, `tier` the service tier it was asked at.
    """

    qid: str
    repeat: int
    key: str
    gold: str
    card: Verdict
    ours: Verdict
    finish_reason: str | None
    usage: dict[str, Any]
    seconds: float | None
    cost: str | None = None
    tier: str | None = None

    def verdict(self, reading: str) -> Verdict:
        """Return how it counts under a reading, by its name."""
        return {CARD: self.card, OURS: self.ours}[reading]

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ScoredResponse:
        """Read a response back from the object of a score file."""
        verdicts = {reading: Verdict(**value[reading]) for reading in (CARD, OURS)}
        return cls(**{**value, **verdicts})


@dataclass(frozen=True, slots=True)
class Judged:
    """How responses count under one reading, as columns of one length.

    `status` holds codes of statuses, in the order of `STATUSES`. Where both the answer and the right answer are
    numbers, `low` tells that it is lower, `within` that it is off by a tenth at most, and `ratio` is answered by
    right number; else they are False, False and NaN.
    """

    status: NDArray[Any]
    low: NDArray[Any]
    within: NDArray[Any]
    ratio: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """One model's responses as columns, in the order of examples, repeats and keys. All columns have one length.

    `position` numbers examples, `judged` is by reading, `changed` tells whether the readings read different
    values. `duplicates` are (position, repeat) of further complete answers to one request.
    """

    position: NDArray[Any]
    judged: Mapping[str, Judged]
    changed: NDArray[Any]
    offset: NDArray[Any]
    length: NDArray[Any]
    duplicates: tuple[tuple[int, int], ...]


class ScoredResponses(Sequence[ScoredResponse]):
    """The responses of one model, read from their lines when they are looked at."""

    def __init__(self, ledger: Ledger, offsets: NDArray[Any], lengths: NDArray[Any]) -> None:
        self._ledger = ledger
        self._offsets = offsets
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> ScoredResponse: ...
    @overload
    def __getitem__(self, index: slice) -> ScoredResponses: ...
    def __getitem__(self, index: int | slice) -> ScoredResponse | ScoredResponses:
        """Return one response, or some of them."""
        if isinstance(index, slice):
            return ScoredResponses(self._ledger, self._offsets[index], self._lengths[index])
        line = self._ledger.line(int(self._offsets[index]), int(self._lengths[index]))
        return ScoredResponse.from_json(json.loads(line))

    def lines(self) -> Iterator[bytes]:
        """Yield each response as JSON in one line, without its newline."""
        for start in range(0, len(self), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            yield from self._ledger.lines(self._offsets[part].tolist(), self._lengths[part].tolist())


class Ledger:
    """Takes scored responses in any order, and gives those of one model back in order. `spill` is a folder."""

    def __init__(self, spill: Path | None = None) -> None:
        self._place = spill or Path(tempfile.gettempdir())
        # It lives as long as the responses do, and is closed with them.
        self._lines = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=None if spill is None else str(spill))  # noqa: SIM115
        self._end = 0
        self._at_end = True
        self._model, self._position = array("I"), array("I")
        self._repeat, self._key = array("i"), bytearray()
        self._complete, self._changed = array("B"), array("B")
        self._judged = {reading: _Judgements() for reading in READINGS}
        self._length = array("I")

    def add(self, model: int, position: int, response: Response, verdicts: Verdicts, gold: str, number: bool) -> None:
        """Take a response to the example at a position; `number` tells that its right answer is one."""
        card, ours = verdicts.card, verdicts.ours
        self._write(_line(response, verdicts, gold))
        self._model.append(model)
        self._position.append(position)
        self._repeat.append(response.repeat)
        self._key += _key_bytes(response.key)
        self._complete.append(response.complete)
        self._changed.append(card is not ours and card.value != ours.value)
        right = gold if number else None
        self._judged[CARD].add(card, right)
        self._judged[OURS].add(ours, right)

    def _write(self, line: bytes) -> None:
        try:
            if not self._at_end:
                self._lines.seek(self._end)
                self._at_end = True
            self._lines.write(line)
        except OSError as error:
            raise environment_fault(error, self._place) from error
        self._end += len(line)
        self._length.append(len(line))

    def line(self, offset: int, length: int) -> bytes:
        """Return one response's line."""
        try:
            self._at_end = False
            self._lines.seek(offset)
            return self._lines.read(length)
        except OSError as error:
            raise environment_fault(error, self._place) from error

    def lines(self, offsets: Sequence[int], lengths: Sequence[int]) -> Iterator[bytes]:
        """Yield some responses' lines; what stands together is read together."""
        first = 0
        while first < len(offsets):
            last, end = first, offsets[first]
            while last < len(offsets) and offsets[last] == end:
                end += lengths[last]
                last += 1
            piece, place = self.line(offsets[first], end - offsets[first]), 0
            for length in lengths[first:last]:
                yield piece[place : place + length]
                place += length
            first = last

    def rows(self, model: int) -> Rows:
        """Return a model's responses in order: of each request its first complete answer, else its last failure."""
        import numpy as np

        arrived = np.flatnonzero(_column(self._model) == model)
        position, repeat = _column(self._position)[arrived], _column(self._repeat)[arrived]
        complete = _column(self._complete)[arrived].astype(bool)
        keys = np.frombuffer(self._key, dtype=">u8").reshape(-1, _KEY_BYTES // 8)[arrived]
        preference = np.where(complete, arrived, -arrived)
        order = np.lexsort((preference, ~complete, *keys.T[::-1], repeat, position))
        same = np.zeros(len(order), dtype=bool)
        if len(order):
            sorted_keys = keys[order]
            same[1:] = (
                (sorted_keys[1:] == sorted_keys[:-1]).all(axis=1)
                & (position[order][1:] == position[order][:-1])
                & (repeat[order][1:] == repeat[order][:-1])
            )
        further = order[same & complete[order]]
        kept = arrived[order[~same]]
        length = _column(self._length)
        offset = np.cumsum(length, dtype=np.int64) - length
        return Rows(
            position=_column(self._position)[kept],
            judged={reading: judged.columns(kept) for reading, judged in self._judged.items()},
            changed=_column(self._changed)[kept].astype(bool),
            offset=offset[kept],
            length=length[kept],
            duplicates=tuple(zip(position[further].tolist(), repeat[further].tolist(), strict=True)),
        )


class _Judgements:
    """The columns of one reading while they grow."""

    def __init__(self) -> None:
        self._status, self._low, self._within, self._ratio = array("B"), array("B"), array("B"), array("d")

    def add(self, verdict: Verdict, right: str | None) -> None:
        """Take a verdict; `right` is the right answer when it is a number."""
        low, within, ratio = _NO_NUMBER if right is None else against(verdict.value, right)
        self._status.append(_CODES[verdict.status])
        self._low.append(low)
        self._within.append(within)
        self._ratio.append(ratio)

    def columns(self, kept: NDArray[Any]) -> Judged:
        return Judged(
            _column(self._status)[kept],
            _column(self._low)[kept].astype(bool),
            _column(self._within)[kept].astype(bool),
            _column(self._ratio)[kept],
        )


def _line(response: Response, verdicts: Verdicts, gold: str) -> bytes:
    """Return a response as one line of a score file."""
    card, call = verdicts.card.to_json(), response.call
    return json_bytes(
        {
            "qid": response.qid,
            "repeat": response.repeat,
            "gold": gold,
            CARD: card,
            OURS: card if verdicts.ours is verdicts.card else verdicts.ours.to_json(),
            "finish_reason": response.finish_reason,
            "usage": dict(response.usage),
            "seconds": response.seconds,
            "key": response.key,
            "cost": None if call is None else call.cost,
            "tier": None if call is None else call.tier,
        }
    )


def json_bytes(value: object) -> bytes:
    """Return a value as JSON in one line; a lone surrogate, which has no UTF-8 form, is written as an escape."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


_NO_NUMBER = (False, False, float("nan"))
# No count of papers comes near; it keeps a ratio of absurd numbers within what a float holds.
_LARGEST_RATIO = 1e12


def against(value: str | None, right: str) -> tuple[bool, bool, float]:
    """Return whether a number is lower than the right one, whether it is within a tenth of it, and their ratio.

    Both are digits. The ratio is NaN without a number or when the right one is 0, and at most 10^12.
    """
    if value is None:
        return _NO_NUMBER
    answered, wanted = int(value), int(right)
    low, near = answered < wanted, 10 * abs(answered - wanted) <= wanted
    if not wanted:
        return low, near, float("nan")
    return low, near, answered / wanted if answered < wanted * _LARGEST_RATIO else _LARGEST_RATIO


def _key_bytes(key: str) -> bytes:
    """Return 32 bytes that name a request: those of its digest, or a digest of another program's key."""
    try:
        found = bytes.fromhex(key)
    except ValueError:
        found = b""
    if len(found) == _KEY_BYTES and found.hex() == key:
        return found
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _column(values: array[Any]) -> NDArray[Any]:
    """Return a column as an array that shares its memory."""
    import numpy as np

    return np.frombuffer(values, dtype=np.dtype(values.typecode))
