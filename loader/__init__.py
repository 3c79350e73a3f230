"""From S2AG shards to a graph: filtering, import into a store, exploration; from texts to corpora (`gniah-load`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.loader.corpora.building import build_corpus
    from gniah.loader.corpora.checking import check_corpus
    from gniah.loader.filtering import filter_graph
    from gniah.loader.importing import import_graph
    from gniah.loader.shipped import RfcShards, rfc_shards
    from gniah.loader.statistics import graph_statistics
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "corpora.building": ("build_corpus",),
            "corpora.checking": ("check_corpus",),
            "filtering": ("filter_graph",),
            "importing": ("import_graph",),
            "shipped": ("RfcShards", "rfc_shards"),
            "statistics": ("graph_statistics",),
        },
    )

__all__ = [
    "RfcShards",
    "build_corpus",
    "check_corpus",
    "filter_graph",
    "graph_statistics",
    "import_graph",
    "rfc_shards",
]
