"""What an index over passages has to give, and how the rankings of many queries become one order of draws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol


class PassageIndex(Protocol):
    """An index over the passages of one corpus, which are named by their numbers in it."""

    @property
    def digest(self) -> str:
        """The hash of all that a ranking is a function of: passages, back end and its version, rules."""

    def ranking(self, text: str) -> Iterator[int]:
        """Yield the passages that share a word with a text, best first, those of equal score by name.

        The text is data: no character of it has a meaning of its own. A ranking ends after the last such passage.
        """


def in_turns(rankings: Iterable[Iterator[int]]) -> Iterator[int]:
    """Yield passages without repeats: each ranking in turn gives its best one that was not drawn yet.

    A ranking that has no more drops out, and when all have, the draws end. None is read further than was asked for.
    """
    drawn: set[int] = set()
    left = list(rankings)
    while left:
        going_on = []
        for ranking in left:
            number = next((one for one in ranking if one not in drawn), None)
            if number is not None:
                drawn.add(number)
                going_on.append(ranking)
                yield number
        left = going_on
