"""A corpus of passages that is not drawn from at random, but by rankings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from gniah.generator.corpora import Corpus, Counts, DiskCorpus, open_corpus
from gniah.generator.retrieval.back_ends import KIND, TANTIVY, index_of
from gniah.generator.retrieval.interface import PassageIndex, in_turns
from gniah.records.canonical import digest
from gniah.records.errors import InputError, UsageFault

# How queries become draws. What changes an order of draws needs a new number.
DRAWING_RULES = 1


@runtime_checkable
class RankedCorpus(Protocol):
    """A corpus whose documents are drawn by what an example is about."""

    def draws(self, queries: Iterable[str]) -> Iterator[int]:
        """Yield the numbers of documents without repeats, the first query's best one first."""


class PassageCorpus(DiskCorpus):
    """A corpus of passages on disk and the index beside it. Another process that is given it opens both itself.

    `folder` is the corpus, or the index in it where there are several. Raises UsageFault when it is no such corpus or
    leaves a choice, InputError when corpus or index are damaged or the index is missing, MissingDependency without
    the index's library.
    """

    def __init__(self, folder: Path) -> None:
        self._given = folder
        corpus, back_end = index_of(folder)
        super().__init__(corpus)
        if self.kind != KIND:
            raise UsageFault(
                f"{folder}: a corpus of kind {self.kind}, not {KIND}",
                remedy=f"give it as --corpus {self.kind}={folder}",
            )
        self._index = _opened_index(back_end, DiskCorpus(corpus))

    @property
    def digest(self) -> str:
        """Return the hash of all that draws are a function of, the queries aside: passages, index, rules."""
        return digest({"corpus": self._digest, "index": self._index.digest, "drawing_rules": DRAWING_RULES})

    def draws(self, queries: Iterable[str]) -> Iterator[int]:
        """Yield the numbers of passages without repeats: each query in turn gives its best one that is left.

        A query without a passage that shares a word with it drops out; when all have, the draws end.
        """
        return in_turns(map(self._index.ranking, queries))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process opens the same corpus; counts that could not be written go with it."""
        unwritten = {key: value for key, value in self._counts.items() if value.flags.owndata}
        return _opened_again, (self._given, self.digest, unwritten)


def _opened_index(back_end: str, passages: DiskCorpus) -> PassageIndex:
    if back_end == TANTIVY:
        from gniah.generator.retrieval.ranking import TantivyIndex

        return TantivyIndex(passages)
    from gniah.generator.retrieval.lucene_ranking import LuceneIndex

    return LuceneIndex(passages)


def _opened_again(folder: Path, found: str, counts: dict[str, Counts]) -> PassageCorpus:
    corpus = PassageCorpus(folder)
    if corpus.digest != found:
        raise InputError(f"{folder}: replaced by another corpus while it was in use", remedy="start again")
    corpus._counts.update(counts)
    return corpus


def open_texts(folder: Path, kind: str) -> Corpus:
    """Open the texts of a distractor type: passages with their index, and anything else as `open_corpus` does."""
    return PassageCorpus(folder) if kind == KIND else open_corpus(folder, kind)
