"""The length of a request, kept up while blocks are put into its context.

Counting a prompt again after each block costs its whole length each time. Where a tokenizer always cuts after a line
break, lengths of blocks add up, so a block costs only itself, or nothing when its length is known. Where it may not cut
(`Tokenizer.joined`), the length is put right by counting the few lines around that joint, up to the nearest line breaks
where it does cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache

from gniah.generator.block_lengths import BLOCK_SEPARATOR
from gniah.generator.tokenizers import AddingTokenizer

Place = tuple[int, ...]
_FIRST: Place = (-2,)
_LAST: Place = (1 << 64,)
# Longer texts around a joint are not remembered.
_SHORT = 1000


class RunningCounts:
    """The length of a request while blocks are put into its context, each at its place.

    A place is a tuple of integers, the first of 64 bits at most. `head` and `tail` are the user prompt before and after
    the context, without the blank lines between. With no block in it the length is not that of a request, which has
    two blank lines in a row then.
    """

    def __init__(self, tokenizers: Sequence[AddingTokenizer], system_prompt: str, head: str, tail: str) -> None:
        self.tokenizers = tuple(tokenizers)
        self._places: list[Place] = [_FIRST, _LAST]
        self._counters = [_Counter(tokenizer, system_prompt, head, tail) for tokenizer in self.tokenizers]

    @property
    def totals(self) -> tuple[int, ...]:
        """Return the length under each tokenizer."""
        return tuple(counter.total for counter in self._counters)

    def add(self, place: Place, text: str, lengths: Sequence[int]) -> None:
        """Put a block where its place among the others' says; `lengths` are its own, blank line after it included."""
        position = bisect_left(self._places, place)
        self._places.insert(position, place)
        for counter, length in zip(self._counters, lengths, strict=True):
            counter.add(position, text, length)

    def only_grow(self, texts: Sequence[str]) -> bool:
        """Whether no count can fall when these blocks come in: nothing is joined, so each adds its own length."""
        return not any(counter.any_joined or any(map(counter.joined, texts)) for counter in self._counters)


class _Counter:
    """One tokenizer's count: the lengths of the blocks, put right at every joint where it may not cut.

    `_texts` have the blank line after them; only those that stand beside a joined one are ever looked into.
    """

    def __init__(self, tokenizer: AddingTokenizer, system_prompt: str, head: str, tail: str) -> None:
        self._tokenizer = tokenizer
        self.joined = tokenizer.joined
        frame = tokenizer.frame(system_prompt)
        first, last = frame.before + head + BLOCK_SEPARATOR, tail + frame.after
        self._texts = [first, last]
        self._joined = [False, self.joined(last)]
        self.any_joined = self._joined[1]
        self._correction = lru_cache(maxsize=1 << 12)(self._correct)
        self.total = frame.others + tokenizer.count(first) + tokenizer.count(last) + self._around(0, 1)

    def add(self, position: int, text: str, length: int) -> None:
        joined = self.joined(text)
        if not joined and not self._joined[position]:
            self._insert(position, text, joined=False)
            self.total += length
            return
        self.any_joined = True
        before = self._around(position - 1, position)
        self._insert(position, text, joined=joined)
        self.total += length + self._around(position - 1, position + 1) - before

    def _insert(self, position: int, text: str, *, joined: bool) -> None:
        self._texts.insert(position, text + BLOCK_SEPARATOR)
        self._joined.insert(position, joined)

    def _around(self, first: int, last: int) -> int:
        """Return what has to be added to the lengths of texts `first` … `last` for the joints at and between them."""
        while self._joined[first] and self._first_cut(self._texts[first]) is None:
            first -= 1
        while last + 1 < len(self._texts) and self._joined[last + 1] and self._first_cut(self._texts[last]) is None:
            last += 1
        return sum(self._remembered(parts) for parts in self._runs(first, last))

    def _runs(self, first: int, last: int) -> Iterator[tuple[str, ...]]:
        """Yield each stretch of text without a certain cut at the joints in it, as the parts that texts have in it."""
        parts: list[str] = []
        for position in range(first, last + 1):
            text = self._texts[position]
            if parts and self._joined[position]:
                cut = self._first_cut(text)
                parts.append(text[:cut])
                if cut is None:
                    continue
            if len(parts) > 1:
                yield tuple(parts)
            parts = [text[self._last_cut(text) :]]
        if len(parts) > 1:
            yield tuple(parts)

    def _remembered(self, parts: tuple[str, ...]) -> int:
        short = sum(map(len, parts)) <= _SHORT
        return self._correction(parts) if short else self._correct(parts)

    def _correct(self, parts: tuple[str, ...]) -> int:
        return self._tokenizer.count("".join(parts)) - sum(map(self._tokenizer.count, parts))

    def _first_cut(self, text: str) -> int | None:
        """Return the first place inside a text where it is certainly cut; None when there is none."""
        end = len(text.rstrip("\n"))
        cut = text.find("\n", 0, end) + 1
        while cut:
            if not self.joined(text[cut:]):
                return cut
            cut = text.find("\n", cut, end) + 1
        return None

    def _last_cut(self, text: str) -> int:
        """Return the last place inside a text where it is certainly cut; 0 when there is none."""
        cut = text.rfind("\n", 0, len(text.rstrip("\n"))) + 1
        while cut and self.joined(text[cut:]):
            cut = text.rfind("\n", 0, cut - 1) + 1
        return cut
