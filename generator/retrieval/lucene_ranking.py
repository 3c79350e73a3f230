"""Rankings by Lucene, as Lucene has them.

Its score of a passage is a 32-bit float that follows from the passage, the query and totals over all passages, so from
nothing that depends on how the index was cut into segments. Passages of equal score are put into the order of their
names; those with the score of the last one that was fetched wait for the others that may have it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval.back_ends import command_for, damaged, read_index_manifest
from gniah.generator.retrieval.bm25 import K1, B
from gniah.generator.retrieval.lucene_files import NUMBERS, LuceneFiles, place_of
from gniah.generator.retrieval.lucene_matching import NO_PASSAGE, NUMBER, Numbers
from gniah.records.corpora import LUCENE_FOLDER
from gniah.records.lucene import LuceneFolder

_FIRST = 16
_MORE = 4


class LuceneIndex:
    """The index of a corpus of passages by Lucene, opened for reading and mapped into memory.

    Raises InputError when there is none, it does not fit or is damaged; MissingDependency without pyserini or Java.
    """

    def __init__(self, passages: DiskCorpus) -> None:
        manifest = read_index_manifest(LuceneFiles(), passages.folder, passages.digest)
        self.digest = manifest.digest
        self._place = passages.folder / LUCENE_FOLDER
        run = dict(manifest.run)
        given = f" --index {run['lucene_index']}" if "lucene_index" in run else ""
        self._remedy = f"{command_for(self._place)}{given} --force"
        self._passages = passages
        lucene = place_of(self._place, run)
        index = LuceneFolder(lucene, self._remedy)
        if (index.commit, index.documents) != (run.get("commit"), manifest.content["documents"]):
            raise damaged(self._place, f"{lucene} was replaced by another index")
        self._slots = index.slots
        self._numbers = self._mapped()
        self._searcher = index.searcher(K1, B)

    def ranking(self, text: str) -> Iterator[int]:
        """Yield the passages that share a word with a text, best first, those of equal score by name."""
        given, limit, certain = 0, _FIRST, False
        while not certain:
            limit = min(limit, self._slots)
            found = self._searcher.best(text, limit)
            certain = len(found) < limit or limit == self._slots
            # Others may have the score of the last one, and stand before it.
            bound = -math.inf if certain else found[-1][1]
            order = sorted(self._placed(slot, score) for slot, score in found if score > bound)
            for _, _, number in order[given:]:
                if number >= 0:
                    yield number
            given = len(order)
            limit *= _MORE

    def _placed(self, slot: int, score: float) -> tuple[float, str, int]:
        """Return what a document is sorted by, and the number of its passage, or -1 for one without."""
        number = int(self._numbers[slot])
        if number == NO_PASSAGE:
            return -score, "", -1
        if number >= len(self._passages):
            raise damaged(self._place, f"it names a passage {number}")
        return -score, self._passages.document(number).name, number

    def _mapped(self) -> Numbers:
        try:
            numbers: Numbers = np.memmap(self._place / NUMBERS, NUMBER, "r")
        except (OSError, ValueError) as error:
            raise damaged(self._place, f"{NUMBERS}: {error}") from None
        if len(numbers) != self._slots:
            raise damaged(self._place, f"{NUMBERS} has {len(numbers):,} numbers, and should have {self._slots:,}")
        return numbers
