"""The graph that paths are searched in, read from a store once for all depths."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from gniah.cypher.bolt import BoltStore
from gniah.cypher.connection import Connection
from gniah.cypher.gds import gds_version, projection
from gniah.cypher.store import GraphStore, IdArray
from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.gds_pruning import bounded_by_gds
from gniah.generator.graphniah.pruning import BoundedGraph, PrunedGraph, bounds
from gniah.records.errors import StoreError, UsageFault

Pruning = Literal["blocks", "gds"]
"""What finds the blocks: rustworkx over all edges in this process, or Graph Data Science as far as it goes."""


class PathGraph:
    """The papers with usable metadata and the citations among them, with bounds; read when first asked for.

    By `gds`, the components of fewer than `least` papers stay in the server.
    """

    def __init__(self, store: GraphStore, pruning: Pruning | None, least: int) -> None:
        """Read nothing yet. Raises UsageFault for `gds` on another store than Neo4j's, where it is the default."""
        if pruning not in (None, *get_args(Pruning)):
            raise UsageFault(f"{pruning!r} is no way to prune", remedy=f"one of {', '.join(get_args(Pruning))}")
        self._store = store
        self._least = least
        self._pruning: Pruning = pruning or ("gds" if isinstance(store, BoltStore) else "blocks")
        if self._pruning == "gds":
            neo4j_connection(store, "--pruning gds")
        self._read: tuple[BoundedGraph, IdArray, IdArray] | None = None

    @property
    def bounded(self) -> BoundedGraph:
        """Return the graph and its bounds, which are the same for every depth. Raises StoreError."""
        return self._whole()[0]

    def titles_of(self, pruned: PrunedGraph) -> list[int]:
        """Return for each node of a pruned graph a number that names its normalised title."""
        _, ids, titles = self._whole()
        found: list[int] = titles[np.searchsorted(ids, pruned.graph.ids)].tolist()
        return found

    def longest(self) -> int:
        """Return an upper bound on the papers of the longest simple path, small components included."""
        graph, ids, _ = self._whole()
        if graph.least > 1:
            graph = self._by_gds(1, len(ids))
        return graph.bounds.longest

    def _whole(self) -> tuple[BoundedGraph, IdArray, IdArray]:
        if self._read is None:
            ids, titles = self._store.usable_papers()
            graph = self._by_gds(self._least, len(ids)) if self._pruning == "gds" else self._by_blocks(ids)
            self._read = graph, ids, titles
        return self._read

    def _by_blocks(self, ids: IdArray) -> BoundedGraph:
        graph = CitationGraph.from_citations(ids, *self._store.edges())
        return BoundedGraph(graph, bounds(graph), len(graph), graph.edges)

    def _by_gds(self, least: int, papers: int) -> BoundedGraph:
        server = neo4j_connection(self._store, "--pruning gds")
        gds_version(server, "--pruning blocks")
        with projection(server) as projected:
            if projected.papers != papers:
                raise StoreError(
                    f"{self._store.address}: the graph changed while it was read", remedy="run the same command again"
                )
            return bounded_by_gds(projected, least)


def neo4j_connection(store: GraphStore, option: str) -> Connection:
    """Return the connection of a Neo4j store. Raises UsageFault for another store, which `option` does not fit."""
    if isinstance(store, BoltStore):
        return store.connection
    raise UsageFault(
        f"{option} works in a Neo4j server, and {store.address} is none",
        remedy="leave the option out, or import the graph into a server: gniah-load import GRAPH --store bolt://…",
    )
