"""Paths, examples, packing, verification: everything that makes a benchmark out of a graph store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.generator.corpora import Corpus, DiskCorpus, Document, FolderCorpus, clean_blocks, open_corpus
    from gniah.generator.retrieval import PassageCorpus, build_index
    from gniah.generator.spark import SparkCluster, find_cluster
    from gniah.generator.tokenizers import AddingTokenizer, Frame, Tokenizer, load_tokenizers, request_counts
    from gniah.generator.verification import Journal, Verdict, open_journal, verify, verify_all
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "corpora": ("Corpus", "DiskCorpus", "Document", "FolderCorpus", "clean_blocks", "open_corpus"),
            "retrieval": ("PassageCorpus", "build_index"),
            "spark": ("SparkCluster", "find_cluster"),
            "tokenizers": ("AddingTokenizer", "Frame", "Tokenizer", "load_tokenizers", "request_counts"),
            "verification": ("Journal", "Verdict", "open_journal", "verify", "verify_all"),
        },
    )

__all__ = [
    "AddingTokenizer",
    "Corpus",
    "DiskCorpus",
    "Document",
    "FolderCorpus",
    "Frame",
    "Journal",
    "PassageCorpus",
    "SparkCluster",
    "Tokenizer",
    "Verdict",
    "build_index",
    "clean_blocks",
    "find_cluster",
    "load_tokenizers",
    "open_corpus",
    "open_journal",
    "request_counts",
    "verify",
    "verify_all",
]
