"""The citation graph as arrays: who is connected with whom, whichever of the two cites the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CitationGraph:
    """An undirected simple graph of papers in compressed rows (GraphNIAH A.2.1).

    A paper has two names here: its corpusid, and its node number, which is its place in `ids`. Both sort
    alike, so whatever is sorted by one is sorted by the other.
    """

    ids: Ids
    """The corpusids, ascending; shape (papers,)."""
    offsets: Ids
    """Where each node's neighbours begin in `targets`, and the end of the last; shape (papers + 1,)."""
    targets: Ids
    """The neighbours of all nodes, node numbers, ascending for each node; shape (2 * edges,)."""

    @classmethod
    def from_citations(cls, ids: npt.ArrayLike, citing: npt.ArrayLike, cited: npt.ArrayLike) -> CitationGraph:
        """Return the graph of these papers and of the citations among them.

        `ids` may come in any order and may hold papers without citations; `citing` and `cited` are corpusids
        of equal shape. Two papers that cite each other, or a citation that stands twice, make one edge; a
        paper's citation of itself makes none, and a citation from or to a paper that is not in `ids` is left
        out. Raises ValueError when the two arrays differ in length.
        """
        papers = ascending(np.asarray(ids, dtype=np.int64))
        first, second = np.asarray(citing, dtype=np.int64), np.asarray(cited, dtype=np.int64)
        if first.shape != second.shape or first.ndim != 1:
            raise ValueError(
                f"citing and cited must be two lists of equal length, not {first.shape} and {second.shape}"
            )
        count = len(papers)
        if not count:
            return cls(papers, np.zeros(1, np.int64), np.zeros(0, np.int64))
        left, left_known = _places(papers, first)
        right, right_known = _places(papers, second)
        kept = left_known & right_known & (left != right)
        left, right = left[kept], right[kept]
        # One number an edge end: sorting these sorts by node, then by neighbour, and brings repeats together.
        ends = ascending(np.concatenate((left * count + right, right * count + left)))
        return cls(papers, _offsets(ends // count, count), ends % count)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def edges(self) -> int:
        """How many undirected edges there are."""
        return len(self.targets) // 2

    @cached_property
    def degrees(self) -> Ids:
        """How many neighbours each node has; shape (papers,)."""
        return np.diff(self.offsets)

    @cached_property
    def sources(self) -> Ids:
        """The node whose neighbour stands at the same place in `targets`; shape (2 * edges,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.degrees)

    def node(self, corpusid: int) -> int:
        """Return the node number of a paper. Raises KeyError when the paper is not in the graph."""
        place = int(np.searchsorted(self.ids, corpusid))
        if place == len(self.ids) or self.ids[place] != corpusid:
            raise KeyError(f"paper {corpusid} is not in the citation graph")
        return place

    def neighbours(self, node: int) -> Ids:
        """Return the neighbours of a node as ascending node numbers (a view)."""
        return self.targets[self.offsets[node] : self.offsets[node + 1]]

    def neighbour_ids(self, corpusid: int) -> list[int]:
        """Return the ascending corpusids of a paper's neighbours. Raises KeyError for an unknown paper."""
        found: list[int] = self.ids[self.neighbours(self.node(corpusid))].tolist()
        return found

    def has_edge(self, one: int, other: int) -> bool:
        """Return whether two nodes, given by their numbers, are connected."""
        row = self.neighbours(one)
        place = int(np.searchsorted(row, other))
        return place < len(row) and bool(row[place] == other)

    def edge_list(self) -> tuple[Ids, Ids]:
        """Return each edge once, as two arrays of node numbers (smaller, greater) sorted by both."""
        once = self.sources < self.targets
        return self.sources[once], self.targets[once]

    def subgraph(self, kept: Mask) -> CitationGraph:
        """Return the part where `kept`, of shape (papers,), holds."""
        if kept.all():
            return self
        number = np.cumsum(kept) - 1
        stays = kept[self.sources] & kept[self.targets]
        papers = self.ids[kept]
        return CitationGraph(papers, _offsets(number[self.sources[stays]], len(papers)), number[self.targets[stays]])

    def matrix(self) -> csr_array:
        """Return the symmetric adjacency matrix."""
        ones = np.ones(len(self.targets), dtype=np.int8)
        return csr_array((ones, self.targets, self.offsets), shape=(len(self), len(self)))


def ascending(values: Ids) -> Ids:
    """Return the distinct values in ascending order.

    As `numpy.unique`, which newer releases do by hashing: several times as slow where few values repeat.
    """
    ordered = np.sort(values)
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def _places(papers: Ids, wanted: Ids) -> tuple[Ids, Mask]:
    """Return where each wanted id stands in `papers`, and whether it stands there at all."""
    places = np.minimum(np.searchsorted(papers, wanted), len(papers) - 1).astype(np.int64)
    return places, papers[places] == wanted


def _offsets(sources: Ids, count: int) -> Ids:
    """Return the row offsets of `count` nodes for the sources of all entries."""
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=count), out=offsets[1:])
    return offsets
