"""The request around a context, and its length in tokens: counted whole, or kept as blocks come in.

Counting a prompt again after each block costs its whole length each time. For a tokenizer that always cuts after a
blank line the counts of blocks add up, so a block costs only itself; where it may not cut (`Tokenizer.joined`), the
blocks around that joint are counted as one. The finished prompt is counted whole all the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gniah.generator.tokenizers import Tokenizer, request_counts

BLOCK_SEPARATOR = "\n\n"

Place = tuple[int, int, int]
_FIRST: Place = (-1, -1, -1)


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose context is still open: the system prompt, and the user prompt before and after the context."""

    tokenizers: tuple[Tokenizer, ...]
    system_prompt: str
    head: str
    tail: str

    def user_prompt(self, texts: Sequence[str]) -> str:
        """Return the user prompt with a context of these blocks."""
        return self.head + BLOCK_SEPARATOR.join(texts) + self.tail

    def __call__(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the length of the whole request by tokenizer label, as each tokenizer itself gives it."""
        return request_counts(self.tokenizers, self.system_prompt, self.user_prompt(texts))

    def running(self) -> RunningCounts | None:
        """Return counts that are kept up as blocks come in, or None when some tokenizer's do not add up."""
        ends = self.head.endswith(BLOCK_SEPARATOR) and self.tail.startswith(BLOCK_SEPARATOR)
        tail = self.tail.removeprefix(BLOCK_SEPARATOR)
        known = all(tokenizer.adds and not tokenizer.joined(tail) for tokenizer in self.tokenizers)
        return RunningCounts(self) if ends and known and tail else None


class RunningCounts:
    """The length of a request while blocks are put into its context, each at its place."""

    def __init__(self, request: Request) -> None:
        head = request.head.removesuffix(BLOCK_SEPARATOR)
        self._places: list[Place] = [_FIRST]
        self._texts = [head]
        self._counters = [_Counter(tokenizer, request, head) for tokenizer in request.tokenizers]

    @property
    def counts(self) -> dict[str, int]:
        """Return the length of the request by tokenizer label."""
        return {counter.label: counter.total for counter in self._counters}

    def add(self, place: Place, text: str) -> None:
        """Put a block where its place among the others' says."""
        position = bisect_left(self._places, place)
        before = [counter.around(self._texts, position - 1, position) for counter in self._counters]
        self._places.insert(position, place)
        self._texts.insert(position, text)
        for counter, old in zip(self._counters, before, strict=True):
            counter.total += counter.around(self._texts, position - 1, position + 1) - old


class _Counter:
    """One tokenizer's count of a request: the sum over runs of blocks between which it cuts for certain."""

    def __init__(self, tokenizer: Tokenizer, request: Request, head: str) -> None:
        self.label = tokenizer.label
        self._tokenizer = tokenizer
        self._count = _cached_count(tokenizer)
        whole = tokenizer.count_request(request.system_prompt, request.user_prompt([]))
        # What is left of an empty request when head, separator and tail are taken out is the chat format's.
        tail = request.tail.removeprefix(BLOCK_SEPARATOR)
        empty = tokenizer.count(request.head + request.tail)
        self.total = whole - empty + self._count(head + BLOCK_SEPARATOR) + tokenizer.count(tail)

    def around(self, texts: Sequence[str], first: int, last: int) -> int:
        """Return the tokens of all runs that touch the blocks `first` … `last - 1`, blank lines after them included."""
        joined = self._tokenizer.joined
        while first > 0 and joined(texts[first]):
            first -= 1
        while last < len(texts) and joined(texts[last]):
            last += 1
        total, begin = 0, first
        for position in range(first + 1, last + 1):
            if position == last or not joined(texts[position]):
                total += self._count(BLOCK_SEPARATOR.join(texts[begin:position]) + BLOCK_SEPARATOR)
                begin = position
        return total


@lru_cache(maxsize=16)
def _cached_count(tokenizer: Tokenizer) -> Callable[[str], int]:
    """Return a tokenizer's count that remembers: the same blocks come again in other examples."""
    return lru_cache(maxsize=1 << 16)(tokenizer.count)
