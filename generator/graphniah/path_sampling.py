"""Step 1 for several depths: prune, search, index, write (GraphNIAH A.2.1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gniah.cypher.store import GraphStore, IdArray
from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.generator.graphniah.paths import PathLimits, PathSearch, search_paths
from gniah.generator.graphniah.pool_files import (
    GROUPS_NAME,
    PATHS_NAME,
    SEARCH_SCHEMA,
    PathPool,
    path_length,
    pool_folder,
)
from gniah.generator.graphniah.pruning import Bounds, PrunedGraph, bounds, depth_within, prune
from gniah.records.canonical import digest
from gniah.records.command_line import Progress, say
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.files import locked_folder, remove_leftovers
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock

SEARCH_RULES = 1


@dataclass(frozen=True, slots=True)
class SampledPool:
    """What the pool of one depth came to: the graph before and after pruning, the search, and what it found.

    `path_length` is in papers. `rounds`, `starts` and `steps` count pruning and search; `papers_on_paths` are distinct.
    `can_stand_together` is the largest group of paths found that share nothing, `compatible_pairs` how many pairs do
    not; `seconds` is how long pruning and search took when they were done.
    """

    folder: Path
    question_depth: int
    path_length: int
    papers_before: int
    papers_after: int
    edges_after: int
    rounds: int
    paths: int
    papers_on_paths: int
    can_stand_together: int
    compatible_pairs: int
    starts: int
    steps: int
    seconds: float

    def counts(self) -> dict[str, int]:
        """Return all that is the same for the same graph and settings, as the pool's manifest has it."""
        return {name: value for name, value in asdict(self).items() if name not in ("folder", "seconds")}

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as an object."""
        return {**self.counts(), "seconds": self.seconds}

    @classmethod
    def from_manifest(cls, folder: Path, manifest: Manifest) -> SampledPool:
        """Read what a pool came to from its manifest. Raises InputError when it says something else."""
        try:
            return cls(folder, **manifest.content["counts"], seconds=manifest.run["search_seconds"])
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{folder / MANIFEST_NAME}: not the counts of a pool: {error}", remedy="sample the paths again"
            ) from None


def usable_graph(store: GraphStore) -> tuple[CitationGraph, IdArray]:
    """Return the undirected graph of the papers with usable metadata, and for each a number that names its title.

    Only they may stand on a path.
    """
    ids, titles = store.usable_papers()
    citing, cited = store.edges()
    return CitationGraph.from_citations(ids, citing, cited), titles


def sample_pools(
    store: GraphStore,
    out: Path,
    *,
    depths: Sequence[int],
    count: int = 1000,
    seed: int = 1,
    max_uses: int = 100,
    allow_fewer: bool = False,
) -> list[SampledPool]:
    """Write a pool of paths for each depth below `out`; return for each what pruning and search came to.

    A pool that is there already, from the same graph and settings, is kept. Raises ImpossibleRequest when a depth gives
    fewer paths than asked for, unless `allow_fewer`; none at all is always an error.
    """
    for depth in depths:
        if depth < 2:
            raise UsageFault(f"a question depth is at least 2, not {depth}")
    if len(set(depths)) < len(depths) or not depths:
        raise UsageFault("name each question depth once", remedy="as in --depths 4,8,16,32")
    with locked_folder(out):
        sampler = _Sampler(store, count, seed, max_uses)
        return [sampler.reuse(out, depth) or sampler.sample(out, depth, allow_fewer) for depth in depths]


class _Sampler:
    """Samples pools of one graph with one set of limits; the graph is read when it is first needed."""

    def __init__(self, store: GraphStore, count: int, seed: int, max_uses: int) -> None:
        self._store = store
        self._seed = seed
        self._limits = PathLimits(wanted=count, max_uses=max_uses)
        self._read: tuple[CitationGraph, IdArray, Bounds] | None = None
        self._cutoff = str(store.manifest.content["cutoff"])

    def _graph(self) -> tuple[CitationGraph, IdArray, Bounds]:
        """Return the graph, its nodes' titles and its bounds, which are the same for every depth."""
        if self._read is None:
            graph, titles = usable_graph(self._store)
            self._read = (graph, titles, bounds(graph))
        return self._read

    def _parameters(self, depth: int) -> dict[str, Any]:
        return {
            "graph": self._store.manifest.digest,
            "cutoff": self._cutoff,
            "question_depth": depth,
            "seed": self._seed,
            "rules": SEARCH_RULES,
            "limits": dict(vars(self._limits)),
        }

    def reuse(self, out: Path, depth: int) -> SampledPool | None:
        """Return a pool that was sampled before with the same settings, or None."""
        folder = pool_folder(out, self._cutoff, depth)
        for name in (PATHS_NAME, GROUPS_NAME, MANIFEST_NAME):
            remove_leftovers(folder / name)
        if not (folder / MANIFEST_NAME).exists():
            return None
        manifest = Manifest.read(folder, SEARCH_SCHEMA)
        if manifest.content.get("parameters") != self._parameters(depth):
            raise UsageFault(
                f"{folder}: holds paths of another graph or other settings", remedy="choose another --out folder"
            )
        say(f"k = {depth}: the paths are there already; nothing to do")
        return SampledPool.from_manifest(folder, manifest)

    def sample(self, out: Path, depth: int, allow_fewer: bool) -> SampledPool:
        """Prune, search, index and write one pool."""
        clock = RunClock()
        began = time.perf_counter()
        graph, graph_titles, known = self._graph()
        pruned = prune(graph, path_length(depth), known)
        if not pruned.papers:
            raise _too_deep(depth, known)
        titles = graph_titles[np.searchsorted(graph.ids, pruned.graph.ids)].tolist()
        key = digest({"paths": self._parameters(depth)})
        with Progress(f"k = {depth}: paths found", self._limits.wanted) as progress:
            reached = 0

            def told(found: int) -> None:
                nonlocal reached
                progress.advance(found - reached)
                reached = found

            search = search_paths(pruned, key, self._limits, titles=titles, progress=told)
        self._check_enough(depth, search, allow_fewer)
        by_id = dict(zip(pruned.graph.ids.tolist(), titles, strict=True))
        index = CompatibilityIndex.build(search.paths, by_id, graph)
        pool = PathPool(depth, self._store.manifest.digest, self._cutoff, self._seed, search.paths, index)
        counts = _counts(depth, pruned, search, index, len(graph))
        content = {"parameters": self._parameters(depth), "counts": counts, "paths": pool.digest}
        seconds = round(time.perf_counter() - began, 2)
        manifest = Manifest(SEARCH_SCHEMA, content, clock.run("rustworkx", "numpy", search_seconds=seconds))
        folder = pool_folder(out, self._cutoff, depth)
        pool.write(folder, manifest)
        return SampledPool.from_manifest(folder, manifest)

    def _check_enough(self, depth: int, search: PathSearch, allow_fewer: bool) -> None:
        found, wanted = len(search.paths), self._limits.wanted
        if found >= wanted:
            return
        why = {
            "no start left": "no paper is left that another path could begin at",
            "no new path": f"the last {self._limits.patience} searches brought no new path",
        }.get(search.reason, search.reason)
        message = f"k = {depth}: {found:,} of {wanted:,} paths were found, and {why}"
        if not found or not allow_fewer:
            raise ImpossibleRequest(
                message,
                remedy=f"use --count {found} or --allow-fewer, or raise --max-uses" if found else "use a smaller depth",
            )
        say(message)


def _too_deep(depth: int, known: Bounds) -> ImpossibleRequest:
    longest = known.longest
    possible = depth_within(longest)
    return ImpossibleRequest(
        f"no path of {path_length(depth)} papers (k = {depth}) can exist in this graph: the longest bound "
        f"through any paper is {longest}",
        remedy=f"use a depth of at most {possible}" if possible else "use a larger graph or an earlier cutoff",
    )


def _counts(
    depth: int, pruned: PrunedGraph, search: PathSearch, index: CompatibilityIndex, papers: int
) -> dict[str, Any]:
    return {
        "question_depth": depth,
        "path_length": pruned.length,
        "papers_before": papers,
        "papers_after": pruned.papers,
        "edges_after": pruned.edges,
        "rounds": pruned.rounds,
        "paths": len(search.paths),
        "papers_on_paths": len({paper for path in search.paths for paper in path}),
        "can_stand_together": len(index.largest_group_found()),
        "compatible_pairs": index.count_tuples(2) // 2,
        "starts": search.starts,
        "steps": search.steps,
    }
