"""Paths from random walks that Graph Data Science proposes: `--path-sampler gds-walk`.

Another distribution than the paper's search (GraphNIAH A.2.1), which stays the default. A walk goes to a neighbour
drawn uniformly, also back. Its loops are erased as they close: when it comes to a paper that is still on the path,
the path is cut back to that paper. As soon as the path has the papers wanted it is taken, and the rest of the walk is
left alone; so a path is the loop-erased beginning of a walk, and never more than one of a walk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any, Protocol

import numpy as np

from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.paths import Path, PathLimits, PathSearch, Reason, distinct
from gniah.generator.graphniah.pruning import PrunedGraph
from gniah.records.errors import StoreError
from gniah.records.streams import Stream

WALK_RULES = 1
_SEED_BITS = 31


class Walking(Protocol):
    """A projection of the citation graph that random walks go over; see `gniah.cypher.gds.Projection`."""

    def walks(self, sources: Sequence[int], length: int, seed: int) -> dict[int, list[int]]:
        """Return a walk of `length` papers from each of distinct papers."""


Project = Callable[[Sequence[int]], AbstractContextManager[Walking]]
"""Projects the papers with usable metadata, but for those it is given."""


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """How walks are asked for: how long each is, in papers a paper of the path, and how many at a time at most."""

    papers_walked: int = 5
    in_a_round: int = 500

    def named(self, gds: str) -> dict[str, Any]:
        """Return the sampler and all that its paths depend on, as a pool's manifest has it."""
        return {"name": "gds-walk", "rules": WALK_RULES, "gds": gds, **asdict(self)}


def walk_paths(
    pruned: PrunedGraph,
    key: str,
    project: Project,
    limits: PathLimits | None = None,
    settings: WalkSettings | None = None,
    *,
    titles: Sequence[Hashable] | None = None,
    progress: Callable[[int], None] | None = None,
) -> PathSearch:
    """Take distinct paths of `pruned.length` papers from random walks.

    Walks are asked for in rounds. Round number n draws the seed of its walks and their sources, which are distinct,
    from `Stream(key, "walks", n)`: uniformly from the papers whose bound as an endpoint allows a whole path, less those
    that are in `max_uses` paths already. Papers that have reached their cap leave the projection before the next round.
    `titles` names the normalised title of each node of the pruned graph; no path holds two papers of one title.

    In what comes back a start is a walk and a step is a paper of it that was looked at; `cut_starts` are the walks that
    gave no path. `limits.max_steps` means nothing here. Raises StoreError when a walk does not go along the
    edges of the pruned graph.
    """
    taken = _Taken(pruned, limits or PathLimits(), titles)
    rounds = _Rounds(pruned, key, settings or WalkSettings(), taken, progress or (lambda _: None))
    while (reason := rounds.over()) is None:
        with project(taken.begin()) as projection:
            while not taken.outdated and rounds.over() is None:
                rounds.walk(projection)
    return taken.search(reason)


def loop_erased(walk: Iterable[int], length: int) -> tuple[Path | None, int]:
    """Return the first path of `length` papers that erasing a walk's loops leaves, and how far the walk was followed.

    There may be none: then None, and the whole length of the walk.
    """
    path: list[int] = []
    place: dict[int, int] = {}
    followed = 0
    for paper in walk:
        followed += 1
        if paper in place:
            for erased in path[place[paper] + 1 :]:
                del place[erased]
            del path[place[paper] + 1 :]
        else:
            place[paper] = len(path)
            path.append(paper)
        if len(path) == length:
            return tuple(path), followed
    return None, followed


class _Taken:
    """The paths that were taken so far, what is used up, and what it took."""

    def __init__(self, pruned: PrunedGraph, limits: PathLimits, titles: Sequence[Hashable] | None) -> None:
        if titles is not None and len(titles) != pruned.papers:
            raise ValueError(f"{len(titles)} titles were given for {pruned.papers} papers")
        self.paths: dict[Path, None] = {}
        self._graph = pruned.graph
        self._length = pruned.length
        self._limits = limits
        self._titles = dict(zip(pruned.graph.ids.tolist(), titles, strict=True)) if titles is not None else None
        self._uses: Counter[int] = Counter()
        self.outdated = True
        """Whether a paper of the last projection has reached its cap."""
        self._walks = self._steps = self._duplicates = self._without = self._idle = 0

    def available(self, paper: int) -> bool:
        """Return whether a paper may still be put on a path."""
        return self._uses[paper] < self._limits.max_uses

    def begin(self) -> list[int]:
        """Return the papers that have reached their cap, ascending, for a projection without them."""
        self._idle = 0
        self.outdated = False
        return sorted(paper for paper, uses in self._uses.items() if uses >= self._limits.max_uses)

    def reason(self, starts: bool) -> Reason | None:
        """Return why the search is over, None when it goes on; `starts` says whether one is left."""
        if len(self.paths) >= self._limits.wanted:
            return "enough"
        if not starts:
            return "no start left"
        return "no new path" if self._idle >= self._limits.patience else None

    def take(self, walk: Sequence[int]) -> None:
        """Take the path of a walk, if it has one that is new and fits."""
        self._walks += 1
        # A projection with papers that have reached their cap says nothing of what is still to be found.
        self._idle += not self.outdated
        path, followed = loop_erased(walk, self._length)
        self._steps += followed
        if path is None or not self._fits(path):
            self._without += 1
            return
        path = distinct(path)
        if path in self.paths:
            self._duplicates += 1
            return
        _check(path, self._graph)
        self.paths[path] = None
        self._uses.update(path)
        self._idle = 0
        self.outdated = self.outdated or not all(self.available(paper) for paper in path)

    def search(self, reason: Reason) -> PathSearch:
        """Return all that was found."""
        return PathSearch(tuple(self.paths), self._walks, self._steps, self._duplicates, 0, self._without, reason)

    def _fits(self, path: Path) -> bool:
        if not all(self.available(paper) for paper in path):
            return False
        titles = self._titles
        return titles is None or len({titles.get(paper) for paper in path}) == len(path)


class _Rounds:
    """Rounds of walks, one after the other."""

    def __init__(
        self,
        pruned: PrunedGraph,
        key: str,
        settings: WalkSettings,
        taken: _Taken,
        progress: Callable[[int], None],
    ) -> None:
        self._key = key
        self._settings = settings
        self._taken = taken
        self._progress = progress
        self._length = settings.papers_walked * pruned.length
        self._starts = pruned.graph.ids[np.flatnonzero(pruned.bounds.endpoint >= pruned.length)].tolist()
        self._number = 0

    def over(self) -> Reason | None:
        """Return why there is no further round, None when there is one."""
        self._starts = [paper for paper in self._starts if self._taken.available(paper)]
        return self._taken.reason(bool(self._starts))

    def walk(self, projection: Walking) -> None:
        """Do one round: draw, walk, and take what fits, in the order drawn, until there is enough."""
        stream = Stream(self._key, "walks", self._number)
        self._number += 1
        seed = stream.bits(_SEED_BITS)
        draws = islice(stream.without_repeats(len(self._starts)), self._settings.in_a_round)
        sources = [self._starts[place] for place in draws]
        walks = projection.walks(sources, self._length, seed)
        for source in sources:
            if self._taken.reason(starts=True) is not None:
                return
            self._taken.take(walks.get(source, [source]))
            self._progress(len(self._taken.paths))


def _check(path: Path, graph: CitationGraph) -> None:
    """Refuse a path that is none in the graph: it changed since it was read, or the procedure is wrong."""
    nodes = np.searchsorted(graph.ids, path)
    known = bool((graph.ids[np.minimum(nodes, len(graph) - 1)] == path).all())
    if not known or not all(graph.has_edge(one, other) for one, other in pairwise(nodes.tolist())):
        raise StoreError(
            "a random walk of Graph Data Science went where no citation is",
            remedy="if the graph was imported anew meanwhile, run the same command again; else use --path-sampler dfs",
        )
