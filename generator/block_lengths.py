"""How many tokens each block of a document takes, counted once.

The length of a block is that of the block and the blank line after it. Counting is the costly part of packing, so
blocks are counted a few at a time, when they are asked for, and what was counted is remembered for other examples; a
corpus on disk may know the lengths of all its blocks.
"""

from __future__ import annotations

import itertools
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gniah.generator.tokenizers import AddingTokenizer

BLOCK_SEPARATOR = "\n\n"

# Characters that are counted at once; and of how many blocks a process remembers the lengths, 4 bytes for a tokenizer.
_BATCH = 1 << 16
# A document of fewer characters is counted together with others, and about so many are drawn ahead for that.
TOGETHER = 1 << 14
_REMEMBERED = 4_000_000

Counts = npt.NDArray[np.uint32]


@runtime_checkable
class CountedCorpus(Protocol):
    """A corpus that keeps the lengths of its blocks beside its texts, by the hash of what a tokenizer's counts need."""

    def block_range(self, number: int) -> range:
        """Return the numbers that a document's blocks have in the corpus."""

    def counts(self, tokenizer_digest: str) -> Counts | None:
        """Return the length of every block of the corpus, or None when they were not counted."""


class BlockLengths:
    """The lengths of a document's blocks, one for each tokenizer in their order.

    `known` are the lengths of the first blocks, an array for each tokenizer; they grow as more are asked for.
    """

    def __init__(
        self, blocks: Sequence[str], tokenizers: Sequence[AddingTokenizer], known: Sequence[array[int]] | None = None
    ) -> None:
        self._blocks = blocks
        self._known = list(zip(tokenizers, [array("I") for _ in tokenizers] if known is None else known, strict=True))

    def of(self, number: int) -> tuple[int, ...]:
        """Return the length of one block under each tokenizer."""
        for tokenizer, lengths in self._known:
            while number >= len(lengths):
                lengths.extend(tokenizer.count_many(self._next(len(lengths))))
        return tuple(lengths[number] for _, lengths in self._known)

    @property
    def short(self) -> bool:
        """Whether the document is so short that it is counted together with others."""
        return sum(map(len, self._blocks)) < TOGETHER

    def _next(self, begin: int) -> list[str]:
        """Return some blocks from a number on, as they are counted."""
        end, size = begin, 0
        while end < len(self._blocks) and size < _BATCH:
            size += len(self._blocks[end])
            end += 1
        return [block + BLOCK_SEPARATOR for block in self._blocks[begin:end]]


def count_together(documents: Sequence[BlockLengths]) -> None:
    """Count short documents whose lengths are not known, tokenizer by tokenizer; all have the same tokenizers.

    Each tokenizer looks its tokens up in tables of many megabytes, and going from one to the other for every short text
    takes half as long again as the counting.
    """
    short = [document for document in documents if document.short]
    if len(short) < 2:
        return
    for columns in zip(*(document._known for document in short), strict=True):
        unknown = [
            (lengths, document._next(0)) for (_, lengths), document in zip(columns, short, strict=True) if not lengths
        ]
        tokenizer = columns[0][0]
        counted = iter(tokenizer.count_many([text for _, texts in unknown for text in texts]))
        for lengths, texts in unknown:
            lengths.extend(itertools.islice(counted, len(texts)))


class RememberedLengths:
    """The lengths of the documents of one corpus, by number; those of documents that were not used for long go."""

    def __init__(self, tokenizers: Sequence[AddingTokenizer], corpus: object = None, most: int = _REMEMBERED) -> None:
        self._tokenizers = tokenizers
        self._corpus = corpus if isinstance(corpus, CountedCorpus) else None
        self._most = most
        self._found: OrderedDict[int, list[array[int]]] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._size = 0

    def of(self, number: int, blocks: Sequence[str]) -> BlockLengths:
        """Return the lengths of a document's blocks."""
        if number not in self._found:
            self._found[number] = self._counted(number)
            self._sizes[number] = len(blocks)
            self._size += len(blocks)
        self._found.move_to_end(number)
        while self._size > self._most and len(self._found) > 1:
            oldest, _ = self._found.popitem(last=False)
            self._size -= self._sizes.pop(oldest)
        return BlockLengths(blocks, self._tokenizers, self._found[number])

    def _counted(self, number: int) -> list[array[int]]:
        """Return what the corpus knows of a document."""
        found = []
        for tokenizer in self._tokenizers:
            counts = None if self._corpus is None else self._corpus.counts(tokenizer.text_digest)
            if self._corpus is None or counts is None:
                found.append(array("I"))
            else:
                blocks = self._corpus.block_range(number)
                found.append(array("I", counts[blocks.start : blocks.stop].astype(np.uint32).tobytes()))
        return found
