"""BM25 in IEEE doubles, one order of sums and correctly rounded logarithms, so that no two machines differ.

The formula is that of Robertson and Zaragoza (2009) with Lucene's idf, ln(1 + (N - n + 1/2) / (n + 1/2)). A length is
first rounded down to one of 256 values, as Lucene and tantivy store it in a byte: so scores are those of the engine
but for its 32-bit floats.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache

K1 = 1.2
B = 0.75


def _stored_lengths() -> tuple[int, ...]:
    """Return the 256 lengths that a byte can stand for: all up to 40, then eight of each step of 2, 4, 8 and so on."""
    lengths, step = list(range(41)), 2
    while len(lengths) < 256:
        lengths += [lengths[-1] + step * place for place in range(1, 9)]
        step *= 2
    return tuple(lengths[:256])


_LENGTHS = _stored_lengths()


def stored_length(words: int) -> int:
    """Return the length that stands in an index for a passage of some words."""
    return _LENGTHS[bisect_right(_LENGTHS, words) - 1]


@lru_cache(maxsize=1 << 16)
def idf(documents: int, frequency: int) -> float:
    """Return the weight of a word that stands in `frequency` of `documents` passages."""
    context = Context(prec=30)  # its ln is correctly rounded, which that of the C library need not be
    ratio = context.divide(Decimal(2 * documents + 2), Decimal(2 * frequency + 1))
    return float(context.ln(ratio))


@dataclass(frozen=True, slots=True)
class Bm25:
    """The score of passages of a corpus that has `documents` passages of `words` words in all."""

    documents: int
    words: int

    def weights(self, query: Mapping[str, int], frequencies: Mapping[str, int]) -> list[tuple[str, float]]:
        """Return the weight of each word of a query, sorted by word: how often it stands there, times its idf.

        `frequencies` says in how many passages it stands; a word that stands in none is left out.
        """
        return [
            (word, times * idf(self.documents, frequencies[word]))
            for word, times in sorted(query.items())
            if frequencies[word]
        ]

    def score(self, weights: Sequence[tuple[str, float]], passage: Sequence[str]) -> float:
        """Return the score of a passage, given as its words in any order."""
        length = K1 * (1 - B + B * stored_length(len(passage)) * self.documents / self.words)
        total = 0.0
        for word, weight in weights:
            times = passage.count(word)
            if times:
                total += weight * (K1 + 1) * times / (times + length)
        return total
