"""Graph Data Science in a Neo4j server: a projection of the citation graph, and what its procedures say of it.

A projection is an undirected simple graph in the server's memory. Rows go into it sorted by corpusid, so that its
inner numbers, on which random walks hang, are a function of the graph and not of how it was imported. All that comes
out is corpusids in an order of ours: neither inner numbers nor the order of a procedure's rows are ever seen.

GDS keeps a projection until it is dropped, also when the process that made it was killed. So each one is called
`gniah-…`, and its maker leaves an answer with that name unread while it is at work: the server lists the transaction of
that answer for as long as the maker is connected. A projection that no such transaction names is in nobody's use.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, cast

import numpy as np

from gniah.cypher.connection import Connection
from gniah.cypher.store import IdArray
from gniah.records.errors import GniahError, StoreError

PREFIX = "gniah-"
PROCEDURES = (
    "gds.articulationPoints.stream",
    "gds.bridges.stream",
    "gds.graph.drop",
    "gds.graph.list",
    "gds.graph.nodeProperty.stream",
    "gds.graph.relationships.stream",
    "gds.randomWalk.stream",
    "gds.wcc.mutate",
)
FUNCTIONS = ("gds.graph.project", "gds.util.asNode", "gds.util.nodeProperty", "gds.version")

_KNOWN = (
    "SHOW PROCEDURES YIELD name WHERE name IN $names RETURN collect(name)",
    "SHOW FUNCTIONS YIELD name WHERE name IN $names RETURN collect(name)",
)
# More rows than a driver fetches at once: the answer stays unread.
_AT_WORK = "UNWIND range(1, 1000000) AS row RETURN $projection"
_LEFTOVERS = "CALL gds.graph.list() YIELD graphName WITH graphName WHERE graphName STARTS WITH $prefix RETURN graphName"
_IN_USE = "SHOW TRANSACTIONS YIELD parameters RETURN parameters.projection"
_DROP = "CALL gds.graph.drop($name, false) YIELD graphName RETURN graphName"
# Papers with usable metadata, and the citations among them: of two papers that cite each other, only the one that goes
# from the lesser id. The end of a citation has no label in the pattern: right after an import the planner believes that
# the index of papers is empty, and would go through all of them for each.
_PROJECT = (
    "MATCH (p:Paper) WHERE p.title_key <> '' AND size(p.authors) > 0 AND NOT p.corpusid IN $without "
    "WITH p ORDER BY p.corpusid "
    "CALL (p) { MATCH (p)-[c:CITES]->() WITH p, endNode(c) AS q "
    "WHERE q.title_key <> '' AND size(q.authors) > 0 AND NOT q.corpusid IN $without "
    "AND (p.corpusid < q.corpusid OR NOT EXISTS { (q)-[:CITES]->(p) }) "
    "WITH DISTINCT q ORDER BY q.corpusid RETURN collect(q) AS cited } "
    "UNWIND CASE cited WHEN [] THEN [null] ELSE cited END AS q "
    "WITH gds.graph.project($name, p, q, {}, {undirectedRelationshipTypes: ['*']}) AS graph "
    "RETURN graph.nodeCount, graph.relationshipCount"
)
_LABEL = "CALL gds.wcc.mutate($name, {mutateProperty: 'component'}) YIELD componentCount RETURN componentCount"
_COMPONENTS = (
    "CALL gds.graph.nodeProperty.stream($name, 'component') YIELD nodeId, propertyValue "
    "WITH propertyValue AS component, collect(nodeId) AS nodes WHERE size(nodes) >= $least "
    "RETURN component, nodes, [node IN nodes | gds.util.asNode(node).corpusid]"
)
# One row, since to the driver rows cost more than what is in them.
_EDGES = (
    "CALL gds.graph.relationships.stream($name) YIELD sourceNodeId AS source, targetNodeId AS target "
    "WITH source, target WHERE source < target WITH source, collect(target) AS targets "
    "WHERE gds.util.nodeProperty($name, source, 'component') IN $components "
    "RETURN collect(source), collect(targets)"
)
_CUTS = "CALL gds.articulationPoints.stream($name) YIELD nodeId RETURN collect(gds.util.asNode(nodeId).corpusid)"
_BRIDGES = (
    "CALL gds.bridges.stream($name) YIELD from, to "
    "RETURN collect(gds.util.asNode(from).corpusid), collect(gds.util.asNode(to).corpusid)"
)
# On one thread, from sources in order: else the seed would not decide the walks.
_WALKS = (
    "MATCH (p:Paper) WHERE p.corpusid IN $sources WITH p ORDER BY p.corpusid WITH collect(p) AS sources "
    "CALL gds.randomWalk.stream($name, {sourceNodes: sources, walkLength: $length, walksPerNode: 1, "
    "randomSeed: $seed, concurrency: 1}) YIELD nodeIds RETURN [id IN nodeIds | gds.util.asNode(id).corpusid]"
)
_OF_EDGES = (_EDGES, _CUTS, _BRIDGES)


class Projection:
    """The papers with usable metadata and the citations among them, undirected, in the server's memory."""

    def __init__(self, connection: Connection, name: str, papers: int, edges: int) -> None:
        self.papers = papers
        self.edges = edges
        """How many undirected edges there are."""
        self._connection = connection
        self._name = name
        self._labelled = False
        # What `components` has seen: inner numbers, ascending, with the corpusid of each, and of components by label.
        self._nodes = self._corpusids = _array(())
        self._components: dict[int, int] = {}

    def components(self, least: int = 1) -> tuple[IdArray, IdArray]:
        """Return the papers of all connected components of at least `least` papers, by `gds.wcc`.

        Two arrays of equal length: the corpusids, ascending, and for each the least one of its component.
        """
        if not self._labelled:
            list(self._rows(_LABEL))
            self._labelled = True
        rows = list(self._rows(_COMPONENTS, least=least))
        self._components = {min(papers): component for component, _, papers in rows}
        nodes, papers = (_array(chain.from_iterable(row[place] for row in rows)) for place in (1, 2))
        order = np.argsort(nodes)
        self._nodes, self._corpusids = nodes[order], papers[order]
        labels = np.repeat(_array(self._components), _array(len(row[2]) for row in rows))
        order = np.argsort(papers)
        return papers[order], labels[order]

    def edges_of(self, labels: Iterable[int]) -> tuple[IdArray, IdArray]:
        """Return the edges of components, given by labels that `components` returned last.

        Two arrays of equal length: the lesser and the greater end of each edge, sorted by both.
        """
        components = [self._components[label] for label in labels]
        one, other = _array(()), _array(())
        for sources, targets in self._rows(_EDGES, components=components):
            one = np.repeat(_array(sources), _array(map(len, targets)))
            other = _array(chain.from_iterable(targets))
        return _pairs(*(self._corpusids[np.searchsorted(self._nodes, ends)] for ends in (one, other)))

    def articulation_points(self) -> IdArray:
        """Return the papers whose removal cuts their component apart, ascending, by `gds.articulationPoints`."""
        return np.sort(_array(chain.from_iterable(row[0] for row in self._rows(_CUTS))))

    def bridges(self) -> tuple[IdArray, IdArray]:
        """Return the edges on no cycle by `gds.bridges`: the lesser and the greater end of each, sorted by both."""
        rows = list(self._rows(_BRIDGES))
        one, other = (_array(chain.from_iterable(row[place] for row in rows)) for place in (0, 1))
        return _pairs(one, other)

    def walks(self, sources: Sequence[int], length: int, seed: int) -> dict[int, list[int]]:
        """Return a uniform random walk of `length` papers from each of these distinct papers, by `gds.randomWalk`.

        A walk may come back to papers; a source without neighbours has none. The same projected graph, sources, length
        and seed give the same walks. Raises StoreError for a paper that is not in the projection.
        """
        if not sources:  # to GDS, no source would mean every paper
            return {}
        rows = self._rows(_WALKS, sources=sorted(sources), length=length, seed=seed)
        return dict(sorted((walk[0], walk) for (walk,) in rows))

    def _rows(self, text: str, **parameters: Any) -> Iterator[list[Any]]:
        # A projection of no papers stands in no catalogue, and some procedures fail where there is no edge.
        if self.edges or (self.papers and text not in _OF_EDGES):
            yield from self._connection.stream(text, {"name": self._name, **parameters})


@contextmanager
def projection(connection: Connection, without: Sequence[int] = ()) -> Iterator[Projection]:
    """Project the papers with usable metadata, but for those in `without`, for the length of a block.

    It is dropped at the block's end whatever ends it. What killed processes left is dropped at its beginning.
    """
    drop_leftovers(connection)
    name = PREFIX + os.urandom(12).hex()
    at_work = cast("Generator[list[Any], None, None]", connection.stream(_AT_WORK, {"projection": name}))
    try:
        next(at_work)
        papers, edges = connection.run(_PROJECT, {"name": name, "without": list(without)}).rows[0]
        yield Projection(connection, name, papers or 0, (edges or 0) // 2)
    finally:
        # A server that is gone has nothing left to drop; anything else is found at the next start.
        with suppress(GniahError):
            connection.run(_DROP, {"name": name})
        with suppress(GniahError):
            at_work.close()


def drop_leftovers(connection: Connection) -> list[str]:
    """Drop the projections of ours that no process is at work with; return their names.

    They are listed before those in use are: one that was made meanwhile is not among them.
    """
    found = [name for (name,) in connection.run(_LEFTOVERS, {"prefix": PREFIX}).rows]
    used = {name for (name,) in connection.run(_IN_USE).rows} if found else set()
    left = sorted(set(found) - used)
    for name in left:
        connection.run(_DROP, {"name": name})
    return left


def gds_version(connection: Connection, otherwise: str) -> str:
    """Return the version of Graph Data Science in a server.

    Raises StoreError when it is not there or lacks what we call; `otherwise` is what else the user can do.
    """
    missing: list[str] = []
    for text, names in zip(_KNOWN, (PROCEDURES, FUNCTIONS), strict=True):
        known = connection.run(text, {"names": list(names)}).rows[0][0]
        missing += sorted(set(names) - set(known))
    if len(missing) == len(PROCEDURES) + len(FUNCTIONS):
        what = "this server has no Graph Data Science"
    elif missing:
        what = f"the Graph Data Science of this server lacks {', '.join(missing)}"
    else:
        return str(connection.run("RETURN gds.version()").rows[0][0])
    raise StoreError(
        f"{connection.address}: {what}",
        remedy=f"install Graph Data Science 2.13 or newer there, use gniah-load neo4j start, or use {otherwise}",
    )


def _array(values: Iterable[int]) -> IdArray:
    return np.fromiter(values, np.int64)


def _pairs(one: IdArray, other: IdArray) -> tuple[IdArray, IdArray]:
    """Return pairs with the lesser end first, sorted by both."""
    lesser, greater = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((greater, lesser))
    return lesser[order], greater[order]


__all__ = ["FUNCTIONS", "PREFIX", "PROCEDURES", "Projection", "drop_leftovers", "gds_version", "projection"]
