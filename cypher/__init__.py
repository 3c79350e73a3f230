"""The graph store: one small protocol, the embedded implementation behind it, and named queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.cypher.exploration import Answer, Explorable, answer, open_to_explore
    from gniah.cypher.queries import NamedQuery, Parameter, named_queries, named_query
    from gniah.cypher.store import Direction, GraphStore, IdArray, Table, build_store, open_store, store_holds
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "exploration": ("Answer", "Explorable", "answer", "open_to_explore"),
            "queries": ("NamedQuery", "Parameter", "named_queries", "named_query"),
            "store": ("Direction", "GraphStore", "IdArray", "Table", "build_store", "open_store", "store_holds"),
        },
    )

__all__ = [
    "Answer",
    "Direction",
    "Explorable",
    "GraphStore",
    "IdArray",
    "NamedQuery",
    "Parameter",
    "Table",
    "answer",
    "build_store",
    "named_queries",
    "named_query",
    "open_store",
    "open_to_explore",
    "store_holds",
]
