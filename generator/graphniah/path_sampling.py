"""Step 1 for several depths: prune, search, index, write (GraphNIAH A.2.1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from gniah.cypher.gds import gds_version, projection
from gniah.cypher.store import GraphStore
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.generator.graphniah.path_graph import PathGraph, Pruning, neo4j_connection
from gniah.generator.graphniah.paths import PathLimits, PathSearch, search_paths
from gniah.generator.graphniah.pool_files import (
    GROUPS_NAME,
    PATHS_NAME,
    SEARCH_SCHEMA,
    PathPool,
    path_length,
    pool_folder,
)
from gniah.generator.graphniah.pruning import PrunedGraph, depth_within
from gniah.generator.graphniah.walks import WalkSettings, walk_paths
from gniah.records.canonical import digest
from gniah.records.command_line import Progress, say
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.files import locked_folder, remove_leftovers
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock

SEARCH_RULES = 1

PathSampler = Literal["dfs", "gds-walk"]
"""What finds paths: the paper's depth-first search, or random walks by Graph Data Science."""


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


def sample_pools(
    store: GraphStore,
    out: Path,
    *,
    depths: Sequence[int],
    count: int = 1000,
    seed: int = 1,
    max_uses: int = 100,
    allow_fewer: bool = False,
    pruning: Pruning | None = None,
    sampler: PathSampler = "dfs",
) -> list[SampledPool]:
    """Write a pool of paths for each depth below `out`; return for each what pruning and search came to.

    A pool that is there already, from the same graph and settings, is kept. `pruning` (on a Neo4j store `gds` by
    default, else `blocks`) changes no byte of a pool, `sampler` gives other paths.

    Raises ImpossibleRequest when a depth gives fewer paths than asked for, unless `allow_fewer`; none at all is always
    an error. Raises UsageFault for `gds` or `gds-walk` on another store than Neo4j's, StoreError when its server lacks
    Graph Data Science.
    """
    for depth in depths:
        if depth < 2:
            raise UsageFault(f"a question depth is at least 2, not {depth}")
    if len(set(depths)) < len(depths) or not depths:
        raise UsageFault("name each question depth once", remedy="as in --depths 4,8,16,32")
    if sampler not in get_args(PathSampler):
        raise UsageFault(f"{sampler!r} is no path sampler", remedy=f"one of {', '.join(get_args(PathSampler))}")
    graph = PathGraph(store, pruning, path_length(min(depths)))
    pools = _Sampler(store, graph, PathLimits(wanted=count, max_uses=max_uses), seed, sampler)
    with locked_folder(out):
        return [pools.reuse(out, depth) or pools.sample(out, depth, allow_fewer) for depth in depths]


class _Sampler:
    """Samples pools of one graph with one set of limits."""

    def __init__(
        self, store: GraphStore, graph: PathGraph, limits: PathLimits, seed: int, sampler: PathSampler
    ) -> None:
        self._store = store
        self._graph = graph
        self._seed = seed
        self._limits = limits
        self._cutoff = str(store.manifest.content["cutoff"])
        self._gds: str | None = None
        """The version of Graph Data Science, where its walks are the sampler."""
        if sampler == "gds-walk":
            server = neo4j_connection(store, "--path-sampler gds-walk")
            self._gds = gds_version(server, "--path-sampler dfs --pruning blocks")

    def _parameters(self, depth: int) -> dict[str, Any]:
        parameters = {
            "graph": self._store.manifest.digest,
            "cutoff": self._cutoff,
            "question_depth": depth,
            "seed": self._seed,
            "rules": SEARCH_RULES,
            "limits": dict(vars(self._limits)),
        }
        if self._gds is not None:
            parameters["sampler"] = WalkSettings().named(self._gds)
        return parameters

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
        graph = self._graph.bounded
        pruned = graph.prune(path_length(depth))
        if not pruned.papers:
            raise _too_deep(depth, self._graph.longest())
        titles = self._graph.titles_of(pruned)
        search = self._search(depth, pruned, titles)
        self._check_enough(depth, search, allow_fewer)
        by_id = dict(zip(pruned.graph.ids.tolist(), titles, strict=True))
        index = CompatibilityIndex.build(search.paths, by_id, graph.graph)
        pool = PathPool(depth, self._store.manifest.digest, self._cutoff, self._seed, search.paths, index)
        counts = _counts(depth, pruned, search, index)
        content = {"parameters": self._parameters(depth), "counts": counts, "paths": pool.digest}
        seconds = round(time.perf_counter() - began, 2)
        manifest = Manifest(SEARCH_SCHEMA, content, clock.run("rustworkx", "numpy", search_seconds=seconds))
        folder = pool_folder(out, self._cutoff, depth)
        pool.write(folder, manifest)
        return SampledPool.from_manifest(folder, manifest)

    def _search(self, depth: int, pruned: PrunedGraph, titles: list[int]) -> PathSearch:
        key = digest({"paths": self._parameters(depth)})
        with Progress(f"k = {depth}: paths found", self._limits.wanted) as progress:
            reached = 0

            def told(found: int) -> None:
                nonlocal reached
                progress.advance(found - reached)
                reached = found

            if self._gds is None:
                return search_paths(pruned, key, self._limits, titles=titles, progress=told)
            project = partial(projection, neo4j_connection(self._store, "--path-sampler gds-walk"))
            return walk_paths(pruned, key, project, self._limits, titles=titles, progress=told)

    def _check_enough(self, depth: int, search: PathSearch, allow_fewer: bool) -> None:
        found, wanted = len(search.paths), self._limits.wanted
        if found >= wanted:
            return
        searches = "searches" if self._gds is None else "walks"
        why = {
            "no start left": "no paper is left that another path could begin at",
            "no new path": f"the last {self._limits.patience} {searches} brought no new path",
        }.get(search.reason, search.reason)
        message = f"k = {depth}: {found:,} of {wanted:,} paths were found, and {why}"
        if not found or not allow_fewer:
            remedy = f"use --count {found} or --allow-fewer, or raise --max-uses" if found else "use a smaller depth"
            if self._gds is not None:
                remedy += ", or use --path-sampler dfs, which goes on where a walk turns back"
            raise ImpossibleRequest(message, remedy=remedy)
        say(message)


def _too_deep(depth: int, longest: int) -> ImpossibleRequest:
    possible = depth_within(longest)
    return ImpossibleRequest(
        f"no path of {path_length(depth)} papers (k = {depth}) can exist in this graph: the longest bound "
        f"through any paper is {longest}",
        remedy=f"use a depth of at most {possible}" if possible else "use a larger graph or an earlier cutoff",
    )


def _counts(depth: int, pruned: PrunedGraph, search: PathSearch, index: CompatibilityIndex) -> dict[str, Any]:
    return {
        "question_depth": depth,
        "path_length": pruned.length,
        "papers_before": pruned.papers_before,
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
