"""Rankings by tantivy, put into an order that no build of its index, no thread and no machine changes.

Tantivy finds candidates by scores in 32-bit floats, whose last bits and whose order among equals depend on how an index
was cut into segments. So each candidate is scored again from its words. Only those are given out whose exact score is
over the last candidate's by more than tantivy can err: nothing that was not fetched can stand before them. When these
are used up, more are fetched.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval.analysis import load_analyser, load_tantivy
from gniah.generator.retrieval.back_ends import damaged, read_index_manifest, text_of
from gniah.generator.retrieval.bm25 import Bm25
from gniah.generator.retrieval.tantivy_files import NUMBER, WORDS, TantivyFiles, open_searcher
from gniah.records.corpora import INDEX_FOLDER

_FIRST = 16
_MORE = 4
# How far tantivy's scores may be from the exact ones: a part of the score, and so much for each word of the query. A
# word's weight ln(1 + x) has an error of its own in 32-bit floats when x is small. Both are some times what can be.
_PART, _EACH = 1e-5, 2e-6

Weights = Sequence[tuple[str, float]]


class TantivyIndex:
    """The index beside a corpus of passages, opened for reading and mapped into memory.

    Raises InputError when there is none, it does not fit or is damaged; MissingDependency without tantivy.
    """

    def __init__(self, passages: DiskCorpus) -> None:
        manifest = read_index_manifest(TantivyFiles(), passages.folder, passages.digest)
        documents, words = manifest.content["documents"], manifest.content["words"]
        self.digest = manifest.digest
        self._passages = passages
        self._formula = Bm25(documents, words)
        self._analyse = load_analyser()
        self._schema, self._searcher = open_searcher(passages.folder, documents)

    def ranking(self, text: str) -> Iterator[int]:
        """Yield the passages that share a word with a text, best first, those of equal score by name."""
        query = Counter(self._analyse(text))
        frequencies = {word: self._searcher.doc_freq(WORDS, word) for word in query}
        weights = self._formula.weights(query, frequencies)
        known: dict[int, tuple[float, str]] = {}
        given, limit, certain = 0, _FIRST, False
        while weights and not certain:
            limit = min(limit, self._formula.documents)
            found = self._search(query, weights, limit)
            for number, roughly in found:
                if number not in known:
                    known[number] = self._placed(weights, number, roughly, _error(query, roughly))
            certain = len(found) < limit or limit == self._formula.documents
            bound = -math.inf if certain else found[-1][1] + _error(query, found[-1][1])
            order = sorted((number for number in known if -known[number][0] > bound), key=known.__getitem__)
            yield from order[given:]
            given = len(order)
            limit *= _MORE

    def _search(self, query: Counter[str], weights: Weights, limit: int) -> list[tuple[int, float]]:
        """Return at most `limit` passages with tantivy's scores, best first."""
        tantivy = load_tantivy()
        one = tantivy.Query
        clauses = [
            (
                tantivy.Occur.Should,
                one.boost_query(one.term_query(self._schema, WORDS, word, "freq"), float(query[word])),
            )
            for word, _ in weights
        ]
        hits = self._searcher.search(one.boolean_query(clauses), limit, count=False).hits
        numbers = self._searcher.fast_field_values(NUMBER, [address for _, address in hits])
        return [(number, score) for number, (score, _) in zip(numbers, hits, strict=True)]

    def _placed(self, weights: Weights, number: int, roughly: float, error: float) -> tuple[float, str]:
        """Return what a passage is sorted by. Raises InputError when the index does not know it as it is."""
        if not 0 <= number < len(self._passages):
            raise damaged(self._passages.folder / INDEX_FOLDER, f"it names a passage {number}")
        score = self._formula.score(weights, self._analyse(text_of(self._passages, number)))
        if abs(score - roughly) > error / 2:
            raise damaged(
                self._passages.folder / INDEX_FOLDER,
                f"passage {number} has the score {roughly}, and should have {score}",
            )
        return -score, self._passages.document(number).name


def _error(query: Counter[str], score: float) -> float:
    """Return how far a score by tantivy may be from the exact one, doubled."""
    return _PART * score + _EACH * query.total()
