"""Sampling undirected paths from a pruned citation graph (GraphNIAH A.2.1, "Sampling")."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gniah.generator.graphniah.pruning import PrunedGraph
from gniah.records.streams import Stream

Path = tuple[int, ...]

Reason = Literal["enough", "no start left", "no new path"]
"""Why a search for paths ended: it has what was asked for; no paper is left that a path could begin at; or
too many starts in a row brought nothing new."""

_Outcome = Literal["path", "exhausted", "cut"]


@dataclass(frozen=True)
class PathLimits:
    """How many paths are wanted, and what may be spent on them. Raises ValueError for a limit under 1."""

    wanted: int = 1_000
    max_uses: int = 100
    """In how many paths one paper may be."""
    max_steps: int = 100_000
    """Steps of one search; a step puts a paper on the path."""
    patience: int = 500
    """After how many starts in a row without a new path the search ends."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")


@dataclass(frozen=True)
class PathSearch:
    """The paths that were found, in the order they were found, and what it took."""

    paths: tuple[Path, ...]
    """Distinct, as corpusids, the smaller end first."""
    starts: int
    steps: int
    duplicates: int
    """Searches that found a path that was known."""
    exhausted_starts: int
    """Searches that proved that no path begins at their start; it was not drawn again."""
    cut_starts: int
    """Searches that were stopped at the limit of steps."""
    reason: Reason


def distinct(path: Path) -> Path:
    """Return a path with its smaller end first: a path and its reverse are the same path."""
    return path if path[0] <= path[-1] else path[::-1]


def search_paths(
    pruned: PrunedGraph,
    key: str,
    limits: PathLimits | None = None,
    *,
    titles: Sequence[Hashable] | None = None,
    progress: Callable[[int], None] | None = None,
) -> PathSearch:
    """Search for distinct paths of `pruned.length` papers.

    Each start is drawn uniformly from the papers whose bound as an endpoint allows a whole path, less those
    that are in `max_uses` paths already and those that were proved to begin none. Start number n draws all it
    needs from `Stream(key, "paths", n)`, so the outcome is a function of the graph, the key and the limits.
    The graph must hold papers with usable metadata only.

    `titles` names the normalised title of each node of the pruned graph, in their order. If it is given, no
    path holds two papers of one title: a paper is not stepped on while its title stands on the path.
    `progress` is told after each start how many paths there are. Raises ValueError when there are not as many
    titles as papers.
    """
    limits = limits or PathLimits()
    walk = _Walk(pruned, limits, titles)
    ids = pruned.graph.ids
    starts = [node for node, bound in enumerate(walk.bounds) if bound >= pruned.length]
    found: dict[Path, None] = {}
    number = idle = duplicates = 0
    reason: Reason = "enough"
    outcomes: dict[_Outcome, int] = {"path": 0, "exhausted": 0, "cut": 0}
    while len(found) < limits.wanted:
        stream = Stream(key, "paths", number)
        place = _draw_start(stream, starts, walk)
        if place is None:
            reason = "no start left"
            break
        if idle >= limits.patience:
            reason = "no new path"
            break
        outcome, nodes = walk.search(starts[place], stream)
        number += 1
        outcomes[outcome] += 1
        path = distinct(nodes) if outcome == "path" else None
        if path is not None and path not in found:
            found[path] = None
            walk.use(path)
            idle = 0
        else:
            idle += 1
            duplicates += path is not None
        if outcome == "exhausted":
            # Papers only ever become unavailable, so what was not found now will not be found later.
            _remove(starts, place)
        if progress is not None:
            progress(len(found))
    return PathSearch(
        tuple(tuple(ids[list(path)].tolist()) for path in found),
        number,
        walk.steps,
        duplicates,
        outcomes["exhausted"],
        outcomes["cut"],
        reason,
    )


def _draw_start(stream: Stream, starts: list[int], walk: _Walk) -> int | None:
    """Return the place of a start, uniform among those below their cap; the others leave the list."""
    while starts:
        place = stream.below(len(starts))
        if walk.available(starts[place]):
            return place
        _remove(starts, place)
    return None


def _remove(starts: list[int], place: int) -> None:
    starts[place] = starts[-1]
    starts.pop()


class _Walk:
    """The state that all searches of a pool share: rows of neighbours as lists, and what is used up."""

    def __init__(self, pruned: PrunedGraph, limits: PathLimits, titles: Sequence[Hashable] | None) -> None:
        papers = len(pruned.graph)
        if titles is not None and len(titles) != papers:
            raise ValueError(f"{len(titles)} titles were given for {papers} papers")
        self.bounds: list[int] = pruned.bounds.endpoint.tolist()
        self.steps = 0
        self._graph = pruned.graph
        self._length = pruned.length
        self._limits = limits
        self._rows: dict[int, list[int]] = {}
        self._uses: dict[int, int] = {}
        self._full = bytearray(papers)
        # What a path holds only once, as a number for each node: its title, or the paper itself.
        numbers: dict[Hashable, int] = {}
        self._names = (
            list(range(papers)) if titles is None else [numbers.setdefault(title, len(numbers)) for title in titles]
        )
        self._on_path = bytearray(papers)

    def available(self, node: int) -> bool:
        """Return whether a paper may still be put on a path."""
        return not self._full[node]

    def use(self, path: Path) -> None:
        """Count the papers of a path, and mark those that have reached their cap."""
        for node in path:
            uses = self._uses[node] = self._uses.get(node, 0) + 1
            if uses >= self._limits.max_uses:
                self._full[node] = 1

    def search(self, start: int, stream: Stream) -> tuple[_Outcome, Path]:
        """Search depth-first for one path from a start; return how that ended, and the path found."""
        length, bounds, full = self._length, self.bounds, self._full
        names, on_path = self._names, self._on_path
        path = [start]
        rows = [self._row(start)]
        draws: list[Iterator[int]] = [stream.without_repeats(len(rows[0]))]
        on_path[names[start]] = 1
        steps = 1
        outcome: _Outcome = "path"
        while len(path) < length:
            needed = length - len(path)
            row = rows[-1]
            # Passing over what may not be stepped on leaves the draw uniform among the rest, and seldom walks
            # the whole row of a hub. After backtracking the draw goes on where it stopped.
            for place in draws[-1]:
                node = row[place]
                if bounds[node] >= needed and not full[node] and not on_path[names[node]]:
                    break
            else:
                on_path[names[path.pop()]] = 0
                rows.pop()
                draws.pop()
                if not path:
                    outcome = "exhausted"
                    break
                continue
            if steps >= self._limits.max_steps:
                outcome = "cut"
                break
            steps += 1
            path.append(node)
            on_path[names[node]] = 1
            row = self._row(node)
            rows.append(row)
            draws.append(stream.without_repeats(len(row)))
        for node in path:
            on_path[names[node]] = 0
        self.steps += steps
        return outcome, tuple(path) if outcome == "path" else ()

    def _row(self, node: int) -> list[int]:
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = self._graph.neighbours(node).tolist()
        return row
