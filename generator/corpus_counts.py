"""Lengths of all blocks of a corpus on disk, counted before many examples are built from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from gniah.generator.block_lengths import BLOCK_SEPARATOR, CountedCorpus, Counts
from gniah.generator.corpora import Corpus
from gniah.generator.tokenizers import AddingTokenizer
from gniah.records.command_line import Progress

# What a token takes, in characters: English and code have 3 to 5.
_CHARACTERS_A_TOKEN = 4
_SAMPLE = 64
_BATCH = 1 << 22


@runtime_checkable
class CountableCorpus(Corpus, CountedCorpus, Protocol):
    """A corpus beside which the lengths of its blocks can be kept."""

    @property
    def block_count(self) -> int:
        """The number of blocks of all documents."""

    def write_counts(self, tokenizer_digest: str, counts: Counts) -> None:
        """Keep the length of every block under a tokenizer."""


def count_corpora(
    corpora: Mapping[str, Corpus], tokenizers: Sequence[AddingTokenizer], wanted: Mapping[str, int]
) -> None:
    """Count the blocks of each corpus on disk that will be read about once or more, unless they are counted.

    `wanted` says by name how many tokens are to be drawn from each. A corpus of which only a little is needed is left
    alone: what is drawn is counted then, and forgotten afterwards.
    """
    for name, corpus in corpora.items():
        if not isinstance(corpus, CountableCorpus):
            continue
        missing = [one for one in tokenizers if corpus.counts(one.text_digest) is None]
        if missing and _characters(corpus) <= _CHARACTERS_A_TOKEN * wanted.get(name, 0):
            with Progress(f"documents of {name} counted", len(corpus)) as progress:
                count_blocks(corpus, missing, progress.advance)


def count_blocks(
    corpus: CountableCorpus, tokenizers: Sequence[AddingTokenizer], advance: Callable[[int], object]
) -> None:
    """Count every block of a corpus under each tokenizer and keep it beside it; `advance` is told of documents done."""
    counts = [np.zeros(corpus.block_count, np.uint32) for _ in tokenizers]
    texts: list[str] = []
    begin = done = size = 0
    for number in range(len(corpus)):
        blocks = [block + BLOCK_SEPARATOR for block in corpus.document(number).blocks]
        texts += blocks
        size += sum(map(len, blocks))
        if size < _BATCH and number + 1 < len(corpus):
            continue
        for tokenizer, array in zip(tokenizers, counts, strict=True):
            array[begin : begin + len(texts)] = tokenizer.count_many(texts)
        advance(number + 1 - done)
        begin, done, size, texts = begin + len(texts), number + 1, 0, []
    for tokenizer, array in zip(tokenizers, counts, strict=True):
        corpus.write_counts(tokenizer.text_digest, array)


def _characters(corpus: CountableCorpus) -> int:
    """Return about how many characters the blocks of a corpus have, from documents spread over it."""
    step = max(1, len(corpus) // _SAMPLE)
    documents = [corpus.document(number).blocks for number in range(0, len(corpus), step)]
    blocks = sum(map(len, documents))
    return corpus.block_count * sum(len(block) for document in documents for block in document) // max(blocks, 1)
