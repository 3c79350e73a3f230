"""The graph store: one small protocol, the embedded implementation behind it, and named queries."""

from __future__ import annotations

from gniah.cypher.queries import NamedQuery, named_queries, named_query
from gniah.cypher.store import Direction, GraphStore, Table, build_store, open_store

__all__ = [
    "Direction",
    "GraphStore",
    "NamedQuery",
    "Table",
    "build_store",
    "named_queries",
    "named_query",
    "open_store",
]
