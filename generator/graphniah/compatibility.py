"""Which paths of a pool can stand together in one example (GraphNIAH A.2.1, "Paths for each example").

Two paths are compatible when they share no paper and no normalised title, and no citation connects them. Row
i of the index is an integer whose bit j is set when paths i and j are compatible; a path is never compatible
with itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from gniah.generator.graphniah.bit_rows import as_matrix, first_one_sided, grown_group, members
from gniah.generator.graphniah.citation_graph import CitationGraph, Ids, ascending
from gniah.records.streams import Stream

EXACT_GROUP = 4
"""The greatest group that is looked for exhaustively: multiple-choice has four components."""

_GREEDY_STARTS = 32
_ROWS_AT_ONCE = 1024
_HEXADECIMAL = re.compile("[0-9a-f]+")


@dataclass(frozen=True)
class CompatibilityIndex:
    """Which paths of a pool are compatible; paths are named by their place in the pool."""

    rows: tuple[int, ...]

    @classmethod
    def build(
        cls,
        paths: Sequence[Sequence[int]],
        titles: Mapping[int, Hashable],
        neighbours: CitationGraph | Callable[[int], Iterable[int]],
    ) -> CompatibilityIndex:
        """Return the index of a pool of paths, given as corpusids.

        `titles` names the normalised title of every paper on them, equal for equal titles;
        `neighbours` is the citation graph, or tells the corpusids that a paper cites or is cited by. Raises
        KeyError for a paper that either does not know.
        """
        if isinstance(neighbours, CitationGraph):
            return cls(_rows_of_graph(paths, titles, neighbours))
        of_paper: dict[int, int] = {}
        of_title: dict[Hashable, int] = {}
        for place, path in enumerate(paths):
            bit = 1 << place
            for paper in path:
                of_paper[paper] = of_paper.get(paper, 0) | bit
                title = titles[paper]
                of_title[title] = of_title.get(title, 0) | bit
        conflicts: dict[int, int] = {}
        for paper in of_paper:
            met = of_title[titles[paper]]
            for other in neighbours(paper):
                if other in of_paper:
                    met |= of_paper[other]
            conflicts[paper] = met
        everything = (1 << len(paths)) - 1
        rows = []
        for path in paths:
            # Its own papers make a path incompatible with itself.
            met = 0
            for paper in path:
                met |= conflicts[paper]
            rows.append(everything & ~met)
        return cls(tuple(rows))

    @classmethod
    def from_hex(cls, rows: Sequence[str]) -> CompatibilityIndex:
        """Return the index that `rows_hex` wrote. Raises ValueError, naming the row, if it cannot be one."""
        width = _width(len(rows))
        values = []
        for place, text in enumerate(rows):
            if len(text) != width or not _HEXADECIMAL.fullmatch(text):
                raise ValueError(f"row {place} must be {width} hexadecimal digits, not {text[:80]!r}")
            values.append(int(text, 16))
        for place, value in enumerate(values):
            if value >> len(rows) or value >> place & 1:
                raise ValueError(f"row {place} names a path that is not in the pool, or itself")
        one_sided = first_one_sided(as_matrix(values))
        if one_sided is not None:
            place, other = one_sided
            raise ValueError(f"row {place} has path {other}, but row {other} has not path {place}")
        return cls(tuple(values))

    def rows_hex(self) -> list[str]:
        """Return the rows as hexadecimal texts of equal width, most significant digit first."""
        width = _width(len(self.rows))
        return [f"{row:0{width}x}" for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def compatible(self, one: int, other: int) -> bool:
        """Return whether two paths are compatible."""
        return bool(self.rows[one] >> other & 1)

    def compatible_with(self, chosen: Iterable[int]) -> int:
        """Return the paths that are compatible with all chosen ones, as bits; `bit_rows.members` lists them."""
        left = (1 << len(self.rows)) - 1
        for place in chosen:
            left &= self.rows[place]
        return left

    def draw(self, size: int, stream: Stream, max_tries: int = 100_000) -> tuple[int, ...] | None:
        """Draw a tuple of paths, uniform over all ordered tuples of this size that are compatible in pairs.

        Whole tuples are drawn and rejected: choosing each path among those that fit the ones before it would
        favour some paths in the first place. A tuple that names a path twice is rejected like any other.
        Returns None after `max_tries` tuples, and at once when the pool has fewer paths than the tuple.
        Raises ValueError for a size under 1.
        """
        if size < 1:
            raise ValueError(f"a tuple has at least one path, not {size}")
        rows, count, below = self.rows, len(self.rows), stream.below
        if size > count:
            return None
        for _ in range(max_tries):
            place = below(count)
            drawn = [place]
            left = rows[place]
            while len(drawn) < size:
                place = below(count)
                if not left >> place & 1:
                    break
                drawn.append(place)
                left &= rows[place]
            else:
                return tuple(drawn)
        return None

    def count_tuples(self, size: int) -> int:
        """Return how many ordered tuples of one or two compatible paths there are; ValueError for more."""
        if size == 1:
            return len(self.rows)
        if size == 2:
            return sum(row.bit_count() for row in self.rows)
        raise ValueError(f"tuples of {size} paths are too many to count one by one; only 1 and 2 can be asked for")

    def has_group(self, size: int) -> bool:
        """Return whether some `size` paths are compatible in pairs, exactly; ValueError for more than 4."""
        if size > EXACT_GROUP:
            raise ValueError(f"groups are looked for exhaustively up to {EXACT_GROUP} paths, not {size}")
        if size <= 1:
            return size <= len(self.rows)
        return size <= len(self._greedy_group) or self._holds((1 << len(self.rows)) - 1, size)

    def largest_group_found(self) -> tuple[int, ...]:
        """Return a large group of paths that are compatible in pairs, in ascending order.

        The largest of several greedy searches, each the same at every call: a lower bound on how many can
        stand together, since the true maximum is NP-hard.
        """
        return self._greedy_group

    @cached_property
    def _greedy_group(self) -> tuple[int, ...]:
        count = len(self.rows)
        ranked = sorted(range(count), key=lambda place: (-self.rows[place].bit_count(), place))
        groups = [self._in_order(order) for order in (ranked, range(count), range(count - 1, -1, -1))]
        matrix = as_matrix(self.rows)
        groups += [grown_group(matrix, first) for first in ranked[:_GREEDY_STARTS]]
        largest = max(groups, key=len)
        return tuple(sorted(largest))

    def _in_order(self, order: Iterable[int]) -> list[int]:
        """Take every path that fits those already taken, in a given order."""
        group: list[int] = []
        left = (1 << len(self.rows)) - 1
        for place in order:
            if left >> place & 1:
                group.append(place)
                left &= self.rows[place]
        return group

    def _holds(self, among: int, size: int) -> bool:
        """Return whether `size` >= 1 of the paths given as bits are compatible in pairs."""
        if size == 1:
            return bool(among)
        # Set aside size - 1 classes of paths, no two of a class compatible. A group has at most one path of
        # each class, so it has one of the paths that are left.
        left = among
        for _ in range(size - 1):
            open_to_class = left
            while open_to_class:
                place = (open_to_class & -open_to_class).bit_length() - 1
                left ^= 1 << place
                open_to_class &= ~(self.rows[place] | 1 << place)
        for place in members(left):
            if self._holds(self.rows[place] & among, size - 1):
                return True
            among ^= 1 << place
        return False


def _rows_of_graph(
    paths: Sequence[Sequence[int]], titles: Mapping[int, Hashable], graph: CitationGraph
) -> tuple[int, ...]:
    """Return the rows of an index by products of sparse matrices: which paths have papers that cite, or share titles.

    Equal to the loop over papers and neighbours in `build`, and several times faster where papers have many neighbours.
    Raises KeyError for a paper that the graph or the titles do not know.
    """
    if not paths:
        return ()
    on_path = np.array([paper for path in paths for paper in path], np.int64)
    path_of = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    papers = ascending(on_path)
    part = graph.subgraph(np.isin(graph.ids, papers))
    if len(part) < len(papers):
        for paper in papers.tolist():
            graph.node(paper)
    numbers: dict[Hashable, int] = {}
    title_of = [numbers.setdefault(titles[paper], len(numbers)) for paper in on_path.tolist()]
    holds = _incidence(path_of, np.searchsorted(papers, on_path), len(paths), len(papers))
    named = _incidence(path_of, np.array(title_of, np.int64), len(paths), len(numbers))
    # Equal papers have equal titles, so sharing a title covers sharing a paper, and each path meets itself.
    met = holds @ part.matrix().astype(np.int32) @ holds.T + named @ named.T
    rows: list[int] = []
    for first in range(0, len(paths), _ROWS_AT_ONCE):
        packed = np.packbits(met[first : first + _ROWS_AT_ONCE].toarray() == 0, axis=1, bitorder="little")
        rows += (int.from_bytes(row.tobytes(), "little") for row in packed)
    return tuple(rows)


def _incidence(rows: Ids, columns: Ids, height: int, width: int) -> csr_array:
    return csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(height, width))


def _width(count: int) -> int:
    return max(1, -(-count // 4))
