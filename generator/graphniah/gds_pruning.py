"""Pruning with Graph Data Science (GraphNIAH A.2.1, "Pruning"): the same bounds as of `pruning`, begun in the server.

Small components never leave the server (`gds.wcc`), and `gds.bridges` cuts the others into their bridge-connected
parts: a bridge is a block of two papers. GDS has no procedure for biconnected components, so the blocks inside the
parts are computed from the streamed edges by the library that does so for the embedded store. The cut papers that
come out are compared with `gds.articulationPoints`: two computations that know nothing of each other must agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from gniah.generator.graphniah.citation_graph import CitationGraph, Ids, Mask, ascending
from gniah.generator.graphniah.pruning import Blocks, BoundedGraph, bounds, count_components
from gniah.records.errors import StoreError


class Projected(Protocol):
    """The citation graph of the papers with usable metadata in a server; see `gniah.cypher.gds.Projection`."""

    papers: int
    edges: int

    def components(self, least: int = 1) -> tuple[Ids, Ids]:
        """Return the papers of components of at least `least` papers, and for each its component's label."""

    def edges_of(self, labels: Iterable[int]) -> tuple[Ids, Ids]:
        """Return the edges of components, each once."""

    def articulation_points(self) -> Ids:
        """Return the papers whose removal cuts their component apart."""

    def bridges(self) -> tuple[Ids, Ids]:
        """Return the edges on no cycle, each once."""


def bounded_by_gds(projection: Projected, least: int) -> BoundedGraph:
    """Return the components of at least `least` papers with their bounds, as `bounds` gives them.

    Raises StoreError when a procedure of Graph Data Science contradicts what the streamed edges say.
    """
    papers, labels = projection.components(least)
    components = ascending(labels)
    one, other = projection.edges_of(components.tolist())
    graph = CitationGraph.from_citations(papers, one, other)
    _agree(graph.edges == len(one) and count_components(graph) == len(components), "gds.wcc", "connected components")
    bridge = _among(graph, *projection.bridges())
    rest = _without(graph, bridge)
    _agree(count_components(rest) == len(components) + int(bridge.sum()), "gds.bridges", "bridges")
    blocks = Blocks.of_edges(len(graph), *rest.edge_list())
    _agree(not np.any(blocks.sizes == 2), "gds.bridges", "bridges")
    ends = graph.edge_list()
    blocks = blocks.with_pairs(ends[0][bridge], ends[1][bridge])
    cuts = np.intersect1d(projection.articulation_points(), papers)
    _agree(np.array_equal(graph.ids[blocks.cut_papers(len(graph))], cuts), "gds.articulationPoints", "cut papers")
    return BoundedGraph(graph, bounds(graph, blocks), projection.papers, projection.edges, least)


def _among(graph: CitationGraph, one: Ids, other: Ids) -> Mask:
    """Return which edges of `edge_list` are among pairs of papers; pairs of papers that are not here do not matter."""
    here = np.isin(one, graph.ids)
    ends = [np.searchsorted(graph.ids, end[here]) for end in (one, other)]
    wanted = np.minimum(*ends) * len(graph) + np.maximum(*ends)
    lesser, greater = graph.edge_list()
    return np.isin(lesser * len(graph) + greater, wanted)


def _without(graph: CitationGraph, edges: Mask) -> CitationGraph:
    one, other = (graph.ids[end[~edges]] for end in graph.edge_list())
    return CitationGraph.from_citations(graph.ids, one, other)


def _agree(agreed: bool, procedure: str, what: str) -> None:
    if not agreed:
        raise StoreError(
            f"{procedure} disagrees with the edges of this graph about its {what}",
            remedy="use --pruning blocks, which needs no Graph Data Science, and report this",
        )
