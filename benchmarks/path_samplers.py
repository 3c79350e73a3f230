"""The two path samplers beside each other, and the two ways to prune, on graphs in a Neo4j server.

    python benchmarks/path_samplers.py --graph FOLDER [--graph FOLDER] --store bolt://127.0.0.1:7687 [--count 1000]

Each graph (what `gniah-load filter` wrote) is imported into the server in place of the one before. Prints what
`docs/path-samplers.md` shows: for each depth how many papers the paths use, how many of them are on one path only, how
connected they are, how many paths can stand together, and how long the search took, the least of `--repeats` times. The
password comes from the environment. The machine's load is printed beside its times.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from gniah.cypher import build_store, open_store
from gniah.cypher.bolt import BoltStore
from gniah.cypher.gds import gds_version, projection
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.generator.graphniah.path_graph import PathGraph, Pruning
from gniah.generator.graphniah.paths import PathLimits, PathSearch, search_paths
from gniah.generator.graphniah.pruning import PrunedGraph, path_length
from gniah.generator.graphniah.walks import walk_paths

T = TypeVar("T")
HEADINGS = (
    *("k", "sampler", "papers used", "on one path only", "degree of a place: mean", "median", "stand together"),
    *("searches or walks", "papers looked at", "s"),
)


def least_time(work: Callable[[], T], repeats: int) -> tuple[T, float]:
    """Return what some work gives, and the least seconds that it took."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return result, min(times)


def line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def degrees(values: np.ndarray) -> tuple[str, str]:
    return f"{values.mean():.1f}", f"{np.median(values):.0f}"


def row(name: str, depth: int, graph: PathGraph, pruned: PrunedGraph, search: PathSearch, seconds: float) -> None:
    uses = Counter(paper for path in search.paths for paper in path)
    places = np.array([paper for path in search.paths for paper in path])
    titles = dict(zip(pruned.graph.ids.tolist(), graph.titles_of(pruned), strict=True))
    index = CompatibilityIndex.build(search.paths, titles, graph.bounded.graph)
    line(
        *(depth, name, f"{len(uses):,}", f"{sum(times == 1 for times in uses.values()) / len(uses):.0%}"),
        *degrees(pruned.graph.degrees[np.searchsorted(pruned.graph.ids, places)]),
        *(len(index.largest_group_found()), f"{search.starts:,}", f"{search.steps:,}", f"{seconds:.1f}"),
    )


def compare(store: BoltStore, depths: list[int], limits: PathLimits, repeats: int) -> None:
    ways: tuple[Pruning, ...] = ("blocks", "gds")
    for way in ways:
        read, seconds = least_time(lambda way=way: _read(store, way, path_length(min(depths))), repeats)
        print(f"graph read and bounded by {way}: {seconds:.1f} s; load {os.getloadavg()[0]:.1f}")
    print(f"\n{read.bounded.papers_before:,} usable papers, {read.bounded.edges_before:,} edges\n")
    line(*HEADINGS)
    line(*("---" for _ in HEADINGS))
    for depth in depths:
        pruned = read.bounded.prune(path_length(depth))
        titles = read.titles_of(pruned)
        mean, median = degrees(pruned.graph.degrees)
        line(depth, "pruned graph", f"{pruned.papers:,}", "", mean, median, "", "", "", "")
        for name, work in (
            ("dfs", partial(search_paths, pruned, f"samplers {depth}", limits, titles=titles)),
            (
                "gds-walk",
                partial(
                    walk_paths,
                    pruned,
                    f"samplers {depth}",
                    partial(projection, store.connection),
                    limits,
                    titles=titles,
                ),
            ),
        ):
            search, seconds = least_time(work, repeats)
            row(
                f"{name} ({search.reason})" if search.reason != "enough" else name, depth, read, pruned, search, seconds
            )
    print(f"\nload {os.getloadavg()[0]:.1f}\n", flush=True)


def _read(store: BoltStore, way: Pruning, least: int) -> PathGraph:
    graph = PathGraph(store, way, least)
    assert graph.bounded.least == (least if way == "gds" else 1)
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", type=Path, action="append", required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--depths", default="4,8,16,32")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    for graph in given.graph:
        build_store(graph, given.store, force=True)
        with open_store(given.store) as store:
            assert isinstance(store, BoltStore), "a server is needed"
            version = gds_version(store.connection, "nothing else: this compares it")
            print(f"## {graph.name}: Neo4j {store.connection.version}, Graph Data Science {version}\n")
            compare(store, [int(k) for k in given.depths.split(",")], PathLimits(wanted=given.count), given.repeats)


if __name__ == "__main__":
    main()
