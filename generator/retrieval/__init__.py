"""Passages of Wikipedia, found with BM25: an index beside a corpus, rankings, and the order in which they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.generator.retrieval.index_files import build_index
    from gniah.generator.retrieval.interface import PassageIndex
    from gniah.generator.retrieval.passages import PassageCorpus, RankedCorpus, open_texts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "index_files": ("build_index",),
            "interface": ("PassageIndex",),
            "passages": ("PassageCorpus", "RankedCorpus", "open_texts"),
        },
    )

__all__ = ["PassageCorpus", "PassageIndex", "RankedCorpus", "build_index", "open_texts"]
