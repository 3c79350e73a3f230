"""Comparing a Lucene index with a corpus of passages, document by document."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval.back_ends import KIND, text_of
from gniah.generator.retrieval.bm25 import K1, B, Bm25
from gniah.records.errors import InputError
from gniah.records.lucene import CONTENTS, LuceneFolder, row_of, words_of
from gniah.records.texts import cleaned

NUMBER = np.dtype("<u4")
# A document that has no passage, since the corpus leaves its text out.
NO_PASSAGE = 2**32 - 1
_AT_ONCE = 1000
# How many are tried; which part of them must be alike, as letters that are new to Unicode may be cut otherwise by an
# older Lucene; and how far 32-bit floats may be off.
_ASKED, _ENOUGH, _PART = 100, 0.95, 1e-4

Numbers = npt.NDArray[np.uint32]


def match(index: LuceneFolder, passages: DiskCorpus, advance: Callable[[int], None]) -> Numbers:
    """Return the number of the passage of each document of an index, and `NO_PASSAGE` where the corpus has none.

    Raises InputError unless each document is a passage of the corpus, or left out of it by a rule.
    """
    find = _finder(passages)
    numbers = np.full(index.slots, NO_PASSAGE, NUMBER)
    seen = np.zeros(len(passages), bool)
    for slot, name, raw in index.stored():
        texts = _texts(raw)
        number = find(name)
        if number is None:
            if not any(isinstance(cleaned(text, KIND), str) for text in texts):
                raise others(index, f"the corpus has no passage {name[:80]!r}")
        elif seen[number]:
            raise others(index, f"it holds {name[:80]!r} twice")
        elif texts and passages.document(number).sha256 not in {hashlib.sha256(text).hexdigest() for text in texts}:
            raise others(index, f"it has another text under the name {name[:80]!r}")
        else:
            seen[number], numbers[slot] = True, number
        if not (slot + 1) % _AT_ONCE:
            advance(_AT_ONCE)
    advance(index.slots % _AT_ONCE)
    return numbers


def without_document(numbers: Numbers, passages: DiskCorpus) -> Iterator[str]:
    """Yield the names of passages that have words and no document."""
    there = np.zeros(len(passages), bool)
    there[numbers[numbers != NO_PASSAGE]] = True
    for number in np.flatnonzero(~there).tolist():
        if words_of(text_of(passages, number)):
            yield passages.document(number).name


def check_alike(index: LuceneFolder, passages: DiskCorpus, numbers: Numbers) -> None:
    """Compare Lucene's scores of some passages for their own texts with those that the texts have by the formula.

    Raises InputError when they differ: the index is of other texts under these names, or cut them into other words.
    """
    formula = Bm25(index.with_words, index.words)
    searcher = index.searcher(K1, B)
    slots = np.flatnonzero(numbers != NO_PASSAGE)
    asked = np.unique(slots[np.linspace(0, len(slots) - 1, _ASKED).astype(int)]).tolist()
    alike = 0
    for slot in asked:
        text = text_of(passages, int(numbers[slot]))
        words = words_of(text)
        query = Counter(words)
        weights = formula.weights(query, {word: index.frequency(word) for word in query})
        exact = formula.score(weights, words) / (K1 + 1)  # a factor of all, which Lucene leaves out
        alike += abs(searcher.score(slot, text) - exact) <= _PART * exact
    if alike < _ENOUGH * len(asked):
        raise others(index, f"{len(asked) - alike} of {len(asked)} that were tried have other words in it")


def _texts(raw: str | None) -> list[bytes]:
    """Return what of a stored source may be the text of the passage."""
    if raw is None:
        return []
    row = row_of(raw)
    if row is None:
        found = [raw]
    else:
        contents = row.get(CONTENTS)
        found = [contents] if isinstance(contents, str) else [value for value in row.values() if isinstance(value, str)]
    return [text.encode("utf-8", "surrogatepass") for text in found]


def _finder(passages: DiskCorpus) -> Callable[[str], int | None]:
    """Return the function from a name to the number of the passage, with 16 bytes of memory for each passage."""
    hashes = np.fromiter((_hash(passages.document(number).name) for number in range(len(passages))), np.uint64)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]

    def find(name: str) -> int | None:
        place = int(np.searchsorted(ordered, np.uint64(wanted := _hash(name))))
        while place < len(ordered) and int(ordered[place]) == wanted:
            if passages.document(number := int(order[place])).name == name:
                return number
            place += 1
        return None

    return find


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def others(index: LuceneFolder, what: str) -> InputError:
    """Return the error that says that an index is of other passages."""
    return InputError(
        f"{index.folder}: this index is not of the passages of the corpus: {what}",
        remedy=f"make the corpus of it with gniah-load corpus {KIND} --from {index.folder}",
    )
