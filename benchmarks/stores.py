"""The same job on LadybugDB and on a Neo4j of its own, in one run: import, pruning, look-ups, examples.

    python benchmarks/stores.py --graph GRAPH --work FOLDER [--examples 40] [--over-bolt]

GRAPH is a folder of `gniah-load filter`; the server's home, the store and all else go below FOLDER. Neo4j is stopped at
the end. Nothing else should run beside it: both stores take what processors there are.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from measure import run

from gniah.cypher import GraphStore, open_store
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.generator.graphniah.growth import Growth, Neighbourhoods, Stuck, backbone_component, grow
from gniah.generator.graphniah.path_graph import PathGraph
from gniah.generator.graphniah.paths import PathLimits, search_paths
from gniah.generator.graphniah.pruning import PrunedGraph, path_length
from gniah.generator.graphniah.rendering import TitleRegister
from gniah.generator.graphniah.subgraphs import enter_backbone
from gniah.loader.neo4j.server import Server
from gniah.records.streams import Stream

DEPTHS = (4, 8, 16, 32)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def show(what: str, near: object, far: object) -> None:
    print(f"| {what} | {near} | {far} |", flush=True)


def pruned_sets(store: GraphStore, pruning: str) -> list[PrunedGraph]:
    graph = PathGraph(store, pruning, path_length(min(DEPTHS)))  # type: ignore[arg-type]
    return [graph.bounded.prune(path_length(depth)) for depth in DEPTHS]


def look_ups(store: GraphStore, ids: list[int]) -> tuple[float, float]:
    """Return the milliseconds of one paper's neighbours, asked for alone and among 5,000."""
    alone = [timed(lambda one=one: store.neighbours((one,), "cites")) for one in ids[:1000]]
    return 1000 * statistics.median(alone), 1000 * timed(lambda: store.neighbours(ids, "cites")) / len(ids)


def grown(
    store: GraphStore, paths: tuple[tuple[int, ...], ...], index: CompatibilityIndex, count: int
) -> Iterator[object]:
    """Yield the components of examples of four times 250 papers, from one worker's cache."""
    neighbourhoods = Neighbourhoods(store)
    for number in range(count):
        stream = Stream("stores", number)
        chosen = index.draw(4, stream)
        if chosen is None:
            continue
        growth = Growth(neighbourhoods, TitleRegister())
        components = [backbone_component(paths[place], neighbourhoods, stream) for place in chosen]
        if not all(enter_backbone(component, growth) for component in components):
            continue
        try:
            grow(components, 250, Fraction(1, 10), growth, stream)
        except Stuck:
            continue
        yield [component.papers for component in components]
    yield neighbourhoods.use


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=40)
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--over-bolt", action="store_true", help="Also import over Bolt, instead of in bulk.")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    home, store = given.work / "home", given.work / "store"
    shutil.rmtree(store, ignore_errors=True)
    server = Server(home)
    server.stop()
    shutil.rmtree(home, ignore_errors=True)
    near_import = run("gniah-load", "import", given.graph, "--store", store)
    far_import = run("gniah-load", "neo4j", "import", given.graph, "--home", home, "--heap", given.heap)
    run("gniah-load", "neo4j", "start", "--home", home, "--heap", given.heap)
    address = server.status().address
    assert address is not None
    os.environ["GNIAH_NEO4J_PASSWORD_FILE"] = str(server.home.password_file)
    try:
        with open_store(store) as near, open_store(address) as far:
            compare(near, far, near_import.seconds, far_import.seconds, given.examples)
        if given.over_bolt:
            bolt = run("gniah-load", "import", given.graph, "--store", address, "--force")
            show("import over Bolt, replacing the graph, s", "", f"{bolt.seconds:.1f}")
    finally:
        server.stop()


def compare(near: GraphStore, far: GraphStore, near_import: float, far_import: float, examples: int) -> None:
    counts = near.counts()
    assert counts == far.counts()
    print(f"\n{counts['papers']:,} papers, {counts['citations']:,} citations\n\n| | LadybugDB | Neo4j |\n|---|---|---|")
    show("import (Neo4j: in bulk, with a start and a stop), s", f"{near_import:.1f}", f"{far_import:.1f}")
    reading = [timed(lambda store=store: (store.edges(), store.usable_papers())) for store in (near, far)]
    show("all citations and usable papers read, s", *(f"{seconds:.1f}" for seconds in reading))
    began = time.perf_counter()
    ours = pruned_sets(near, "blocks")
    middle = time.perf_counter()
    theirs = pruned_sets(far, "gds")
    end = time.perf_counter()
    assert all(np.array_equal(one.graph.ids, other.graph.ids) for one, other in zip(ours, theirs, strict=True))
    show("pruning for k = 4, 8, 16, 32 (rustworkx; GDS), s", f"{middle - began:.1f}", f"{end - middle:.1f}")
    draw = Stream("look-ups")
    ids = [int(near_id) for near_id in ours[0].graph.ids]
    some = [ids[draw.below(len(ids))] for _ in range(5000)]
    results = [look_ups(store, some) for store in (near, far)]
    show("neighbours of one paper, asked alone, ms", *(f"{alone:.3f}" for alone, _ in results))
    show("neighbours of one paper, among 5,000, ms", *(f"{among:.3f}" for _, among in results))
    graph = PathGraph(near, "blocks", 1)
    pruned = ours[0]
    paths = search_paths(pruned, "stores", PathLimits(), titles=graph.titles_of(pruned)).paths
    titles = dict(zip(pruned.graph.ids.tolist(), graph.titles_of(pruned), strict=True))
    index = CompatibilityIndex.build(paths, titles, pruned.graph)
    outcomes = []
    for store in (near, far):
        began = time.perf_counter()
        *components, use = grown(store, paths, index, examples)
        outcomes.append((components, use, time.perf_counter() - began))
    assert outcomes[0][0] == outcomes[1][0]
    count = len(outcomes[0][0])
    show(
        f"subgraphs of 4 x 250 papers a second ({count} of them, equal)", *(f"{count / s:.1f}" for _, _, s in outcomes)
    )
    show("questions to the store for one", *(f"{use.questions / count:,.0f}" for _, use, _ in outcomes))
    show("ms a question", *(f"{1000 * use.seconds / use.questions:.2f}" for _, use, _ in outcomes))


if __name__ == "__main__":
    main()
