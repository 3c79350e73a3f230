"""Which papers can lie on a path of a given length (GraphNIAH A.2.1, "Pruning").

The longest simple path is NP-hard, so two upper bounds stand in for it: the size of a paper's component, and
a bound from the biconnected components. Both are never under the truth, so no paper that lies on such a path
is lost.

A *block* is a maximal set of papers that no single paper's removal cuts apart (two papers, for an edge on no
cycle), a *cut paper* one that lies in several. Blocks and cut papers form a forest. A path runs through the
blocks of one chain of it, and can take at most all papers of each. So with

    arm(B, c) = |B| - 1 + the best arm that leaves B through a cut paper other than c, if there is one,

the most papers beyond c for a path that goes from c into B, a path that has an edge in B has at most

    through(B) = |B| + the two best arms that leave B through two different cut papers.

The bound through a paper is the greatest of its blocks. (A path that crosses the paper from one block into
another is counted there: the paper is then one of the two cut papers.) The bound as an endpoint is 1 plus its
best arm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import rustworkx
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from gniah.generator.graphniah.citation_graph import CitationGraph, Ids, ascending

MIN_DEPTH = 2


def path_length(depth: int) -> int:
    """Return how many papers a path has for question depth k: 3k - 2. Raises ValueError for k under 2."""
    if depth < MIN_DEPTH:
        raise ValueError(f"the question depth must be at least {MIN_DEPTH}, not {depth}")
    return 3 * depth - 2


def depth_within(length: int) -> int | None:
    """Return the greatest question depth whose paths have at most `length` papers, None if none has."""
    depth = (length + 2) // 3
    return depth if depth >= MIN_DEPTH else None


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds, in papers, on the longest simple path at each node; both of shape (papers,)."""

    through: Ids
    """Of a path that contains the paper."""
    endpoint: Ids
    """Of a path that begins at the paper."""

    @property
    def longest(self) -> int:
        """Return an upper bound on the papers of the longest simple path; 0 for a graph without papers."""
        return int(self.through.max(initial=0))


@dataclass(frozen=True, eq=False)
class PrunedGraph:
    """What is left of a citation graph for paths of `length` papers, with its bounds."""

    graph: CitationGraph
    length: int
    bounds: Bounds
    """Of the pruned graph itself."""
    rounds: int
    """How often papers were dropped until nothing changed."""
    papers_before: int
    edges_before: int
    components: int
    """How many connected components are left."""

    @property
    def papers(self) -> int:
        """How many papers are left."""
        return len(self.graph)

    @property
    def edges(self) -> int:
        """How many undirected edges are left."""
        return self.graph.edges


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which blocks each paper lies in; a paper without neighbours is in none."""

    block: Ids
    """The block of each membership; shape (memberships,)."""
    member: Ids
    """The node that lies in it; same shape."""
    sizes: Ids
    """How many papers each block has; shape (blocks,)."""

    @classmethod
    def of_edges(cls, papers: int, one: Ids, other: Ids) -> Blocks:
        """Return the blocks of the edges between nodes `one` and `other`, each edge given once."""
        if not len(one):
            none = np.zeros(0, np.int64)
            return cls(none, none, none)
        # Our edges are simple already, and the check for parallel ones costs more than the blocks do.
        whole = rustworkx.PyGraph(multigraph=True)
        whole.add_nodes_from([None] * papers)
        whole.extend_from_edge_list(list(zip(one.tolist(), other.tolist(), strict=True)))
        found = rustworkx.biconnected_components(whole)
        ends = _whole_numbers(chain.from_iterable(found.keys()), 2 * len(one))
        block = np.repeat(_whole_numbers(found.values(), len(one)), 2)
        joined = ascending(block * papers + ends)
        block, member = joined // papers, joined % papers
        return cls(block, member, np.bincount(block))

    def with_pairs(self, one: Ids, other: Ids) -> Blocks:
        """Return these blocks and one of two papers for each pair of nodes."""
        pairs = np.arange(len(one)) + len(self.sizes)
        return Blocks(
            np.concatenate((self.block, pairs, pairs)),
            np.concatenate((self.member, one, other)),
            np.concatenate((self.sizes, np.full(len(one), 2))),
        )

    def cut_papers(self, papers: int) -> Ids:
        """Return the nodes that lie in several blocks, ascending; `papers` is how many nodes there are."""
        return np.flatnonzero(np.bincount(self.member, minlength=papers) > 1)


def bounds(graph: CitationGraph, blocks: Blocks | None = None) -> Bounds:
    """Return the bounds of every paper of a graph, in time linear in its papers and edges.

    `blocks` are those of the graph, where they are known already.
    """
    blocks = blocks or Blocks.of_edges(len(graph), *graph.edge_list())
    block, member, sizes = blocks.block, blocks.member, blocks.sizes
    through = np.ones(len(graph), np.int64)
    endpoint = np.ones(len(graph), np.int64)
    if not len(sizes):
        return Bounds(through, endpoint)
    cuts = blocks.cut_papers(len(graph))
    number = np.full(len(graph), -1, np.int64)
    number[cuts] = np.arange(len(cuts))
    # The forest: blocks come first, weighing the papers they add to a path that enters; cut papers weigh
    # nothing.
    joins = number[member] >= 0
    weights = np.concatenate((sizes - 1, np.zeros(len(cuts), np.int64)))
    best, second = _best_arms(weights, block[joins], len(sizes) + number[member[joins]])
    np.maximum.at(through, member, (sizes + best[: len(sizes)] + second[: len(sizes)])[block])
    # A paper that is no cut paper begins in its one block and may leave it through any cut paper of it.
    plain = ~joins
    endpoint[member[plain]] = (sizes + best[: len(sizes)])[block[plain]]
    endpoint[cuts] = 1 + best[len(sizes) :]
    return Bounds(through, endpoint)


def prune(graph: CitationGraph, length: int, known: Bounds | None = None) -> PrunedGraph:
    """Drop the papers that lie on no path of `length` papers by the bounds, until nothing changes.

    `known` are the bounds of `graph`, if they have been computed already: they are the same for every length. They
    say all that the size of a component says, since no bound exceeds it. Raises ValueError for a length under 1.

    One round settles it, and the bounds of what is kept are what they were. Let v be a kept paper of a kept block C,
    and D another block of v. If D's is the best arm at v, then through(D) >= through(C): when v is one of C's two
    exits, D's arm is one of the two that through(C) adds up, and the other one and C itself lie behind v for D; when
    it is none, C's own arm at v is longer than D's. So the best arm of a kept paper goes into a kept block, and on.
    """
    if length < 1:
        raise ValueError(f"a path has at least one paper, not {length}")
    known = known or bounds(graph)
    stays = known.through >= length
    if stays.all():
        kept, now = graph, known
    else:
        kept, now = graph.subgraph(stays), Bounds(known.through[stays], known.endpoint[stays])
    rounds = int(not stays.all())
    return PrunedGraph(kept, length, now, rounds, len(graph), graph.edges, count_components(kept))


@dataclass(frozen=True, eq=False)
class BoundedGraph:
    """A citation graph with its bounds, or the part of one that is left without its small components."""

    graph: CitationGraph
    bounds: Bounds
    papers_before: int
    edges_before: int
    least: int = 1
    """How many papers a component has at least, to be in this graph."""

    def prune(self, length: int) -> PrunedGraph:
        """Return what `prune` leaves of the whole graph. Raises ValueError for a length under `least`."""
        if length < self.least:
            raise ValueError(f"components of fewer than {self.least} papers are not here, and {length} are too few")
        pruned = prune(self.graph, length, self.bounds)
        rounds = int(pruned.papers < self.papers_before)
        return replace(pruned, rounds=rounds, papers_before=self.papers_before, edges_before=self.edges_before)


def count_components(graph: CitationGraph) -> int:
    """Return how many connected components a graph has."""
    return int(connected_components(graph.matrix(), directed=False)[0]) if len(graph) else 0


def _whole_numbers(values: Iterable[int], count: int) -> Ids:
    return np.fromiter(values, np.int64, count)


def _best_arms(weights: Ids, one: Ids, other: Ids) -> tuple[Ids, Ids]:
    """Return the best and the second best arm, by two different edges, of each node of a weighted forest.

    An arm is a path away from the node, and counts the weights beyond it; where there is none it is 0. `one`
    and `other` are the ends of the forest's edges. Every edge is used once in each direction, from the leaves
    to the roots and back, without recursion, since a forest may be as deep as it is large.
    """
    order, parents = _rooted(len(weights), one, other)
    weight, parent = weights.tolist(), parents.tolist()
    best, second = [0] * len(weight), [0] * len(weight)
    for node in reversed(order):
        up = parent[node]
        if up >= 0:
            _keep_best(best, second, up, weight[node] + best[node])
    for node in order:
        up = parent[node]
        if up >= 0:
            # What the parent offers beyond this node: its best arm, unless that is the one that leads here.
            leads_here = best[up] == weight[node] + best[node]
            _keep_best(best, second, node, weight[up] + (second[up] if leads_here else best[up]))
    return np.array(best, np.int64), np.array(second, np.int64)


def _keep_best(best: list[int], second: list[int], node: int, arm: int) -> None:
    if arm > best[node]:
        best[node], second[node] = arm, best[node]
    elif arm > second[node]:
        second[node] = arm


def _rooted(count: int, one: Ids, other: Ids) -> tuple[list[int], Ids]:
    """Return the nodes of a forest, parents before children, and the parent of each, -1 for a root."""
    shape = (count, count)
    _, label = connected_components(coo_array((np.ones(len(one), np.int8), (one, other)), shape=shape), directed=False)
    _, roots = np.unique(label, return_index=True)
    # A node beyond the last holds all roots, so that one search orders the whole forest.
    ends = np.concatenate((one, np.full(len(roots), count))), np.concatenate((other, roots))
    joined = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(count + 1, count + 1)).tocsr()
    order, parents = breadth_first_order(joined, count, directed=False)
    parents = np.where(parents[:count] == count, -1, parents[:count])
    return order[1:].tolist(), parents.astype(np.int64)
