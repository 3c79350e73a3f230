"""Random streams: everything that is drawn, is drawn here.

A stream is named by what it is for, never by an index added to a seed: its seed is the SHA-256 of the canonical
JSON of its name. Draws use `random.Random.getrandbits` alone, whose sequence for an integer seed is the same on
every Python, so a stream gives the same values in any process, on any machine and for any PYTHONHASHSEED.
"""

from __future__ import annotations

import random  # noqa: TID251  (the one place that may)
from collections.abc import Iterator, MutableSequence, Sequence
from typing import TypeVar

from gniah.records.canonical import digest

T = TypeVar("T")

STREAM_SCHEME = "gniah-stream/1"


class Stream:
    """A deterministic source of draws, named by a key (often a qid) and the purpose of the draws."""

    def __init__(self, key: str, *purpose: str | int) -> None:
        self._bits = random.Random(int(digest([STREAM_SCHEME, key, *purpose]), 16)).getrandbits  # noqa: S311

    def bits(self, count: int) -> int:
        """Return `count` random bits as an integer."""
        return self._bits(count)

    def below(self, bound: int) -> int:
        """Return an integer uniform over 0 … bound - 1, by rejection. Raises ValueError for a bound under 1."""
        if bound < 1:
            raise ValueError(f"nothing lies below {bound}")
        width = (bound - 1).bit_length()
        if not width:
            return 0
        value = self._bits(width)
        while value >= bound:
            value = self._bits(width)
        return value

    def coin(self) -> bool:
        """Return True or False with equal probability."""
        return bool(self._bits(1))

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items, each with equal probability."""
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Put the items in a uniformly random order, in place (Fisher-Yates, from the end)."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return a new list of the items in a uniformly random order."""
        result = list(items)
        self.shuffle(result)
        return result

    def without_repeats(self, count: int) -> Iterator[int]:
        """Yield the integers 0 … count - 1 in a uniformly random order, drawn one at a time."""
        moved: dict[int, int] = {}
        for first in range(count):
            other = first + self.below(count - first)
            yield moved.get(other, other)
            moved[other] = moved.pop(first, first)
