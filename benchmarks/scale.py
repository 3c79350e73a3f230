"""The line at the scale of a real release, against goals, in one run.

    python benchmarks/scale.py --papers 1000000 --citations 3000000 --work FOLDER [--hubs 1]

Goals: import at most 1.2 times LadybugDB's own COPY; pruning and search at least 20 times faster than the same
definition written with networkx, at equal results; growth of a 2 x 250 example at most twice the sum of its
look-ups; an index of compatible paths for 1,000 paths in under a second; peak memory under 2 GB.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
from measure import run
from synthetic import write_shards

from gniah.cypher import open_store
from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.generator.graphniah.growth import Growth, Neighbourhoods, Stuck, backbone_component, grow
from gniah.generator.graphniah.paths import PathLimits, search_paths
from gniah.generator.graphniah.pruning import bounds, path_length, prune
from gniah.generator.graphniah.rendering import TitleRegister
from gniah.generator.graphniah.subgraphs import enter_backbone
from gniah.records.streams import Stream

DEPTHS = (4, 8, 16, 32)


def timed(what: str, began: float) -> float:
    seconds = time.perf_counter() - began
    print(f"  {what}: {seconds:.2f} s", flush=True)
    return seconds


def own_copy(graph: Path) -> float:
    """Time the engine's own COPY of the same columns, with its count."""
    import ladybug

    with tempfile.TemporaryDirectory() as place:
        began = time.perf_counter()
        database = ladybug.Database(f"{place}/copy.lbug", buffer_pool_size=1 << 30)
        connection = ladybug.Connection(database)
        connection.execute(
            "CREATE NODE TABLE Paper(corpusid INT64, title STRING, title_key STRING, authors STRING[], "
            "publicationdate DATE, venue STRING, arxiv_id STRING, PRIMARY KEY(corpusid))"
        )
        connection.execute("CREATE REL TABLE CITES(FROM Paper TO Paper, isinfluential BOOL)")
        columns = "corpusid, title, title_key, authors, publicationdate, venue, arxiv_id"
        connection.execute(f"COPY Paper FROM (LOAD FROM '{graph}/papers.parquet' RETURN {columns})")
        connection.execute(
            f"COPY CITES FROM (LOAD FROM '{graph}/citations.parquet' RETURN citing, cited, isinfluential)"
        )
        connection.execute("CHECKPOINT")
        connection.close()
        database.close()
        return timed("LadybugDB's own COPY", began)


def networkx_bounds(graph: nx.Graph) -> tuple[dict[int, int], dict[int, int]]:
    """The bounds of SPEC Step 1 on networkx's blocks, in linear time, without recursion."""
    through = dict.fromkeys(graph, 1)
    endpoint = dict.fromkeys(graph, 1)
    blocks = [list(block) for block in nx.biconnected_components(graph)]
    cuts = set(nx.articulation_points(graph))
    # A forest of blocks ("b", i) and cut papers; best two arms of each node by neighbour, by rerooting.
    forest: dict[object, list[object]] = {paper: [] for paper in cuts}
    for number, block in enumerate(blocks):
        joined = [paper for paper in block if paper in cuts]
        forest["b", number] = list(joined)
        for paper in joined:
            forest[paper].append(("b", number))
    weight = {node: (len(blocks[node[1]]) - 1 if isinstance(node, tuple) else 0) for node in forest}
    best: dict[object, list[tuple[int, object]]] = {node: [] for node in forest}
    seen: set[object] = set()
    for root in forest:
        if root in seen:
            continue
        order: list[tuple[object, object]] = []
        stack: list[tuple[object, object]] = [(root, None)]
        seen.add(root)
        while stack:
            node, parent = stack.pop()
            order.append((node, parent))
            for other in forest[node]:
                if other != parent:
                    seen.add(other)
                    stack.append((other, node))
        for node, parent in reversed(order):
            if parent is not None:
                keep(best[parent], weight[node] + (best[node][0][0] if best[node] else 0), node)
        for node, parent in order:
            if parent is not None:
                arms = [arm for arm, other in best[parent] if other != node]
                keep(best[node], weight[parent] + (arms[0] if arms else 0), parent)
    for number, block in enumerate(blocks):
        arms = [arm for arm, _ in best["b", number]]
        bound = len(block) + sum(arms[:2])
        for paper in block:
            through[paper] = max(through[paper], bound)
            if paper not in cuts:
                endpoint[paper] = len(block) + (arms[0] if arms else 0)
    for paper in cuts:
        endpoint[paper] = 1 + best[paper][0][0]
    return through, endpoint


def keep(best: list[tuple[int, object]], arm: int, other: object) -> None:
    best.append((arm, other))
    best.sort(key=lambda item: -item[0])
    del best[3:]


def networkx_prune(graph: nx.Graph, length: int) -> tuple[nx.Graph, dict[int, int]]:
    kept = graph.copy()
    while True:
        before = len(kept)
        for component in list(nx.connected_components(kept)):
            if len(component) < length:
                kept.remove_nodes_from(component)
        through, endpoint = networkx_bounds(kept)
        kept.remove_nodes_from([paper for paper, bound in through.items() if bound < length])
        if len(kept) == before:
            return kept, endpoint


def networkx_search(
    graph: nx.Graph, endpoint: dict[int, int], titles: dict[int, int], length: int, key: str, limits: PathLimits
) -> list[tuple[int, ...]]:
    """The search of SPEC Step 1, drawing in the order that the product draws in."""
    found: dict[tuple[int, ...], None] = {}
    uses: dict[int, int] = {}
    starts = sorted(paper for paper in graph if endpoint[paper] >= length)
    idle = number = 0

    def choices(paper: int, stream: Stream) -> Iterator[int]:
        row = sorted(graph[paper])
        for place in stream.without_repeats(len(row)):
            yield row[place]

    while len(found) < limits.wanted and starts and idle < limits.patience:
        stream = Stream(key, "paths", number)
        place = draw_start(stream, starts, uses, limits)
        if place is None:
            break
        number += 1
        path, steps = [starts[place]], 1
        names = {titles[starts[place]]}
        trail = [choices(starts[place], stream)]
        while trail and len(path) < length and steps < limits.max_steps:
            for paper in trail[-1]:
                fits = endpoint[paper] >= length - len(path) and uses.get(paper, 0) < limits.max_uses
                if fits and titles[paper] not in names:
                    path.append(paper)
                    names.add(titles[paper])
                    trail.append(choices(paper, stream))
                    steps += 1
                    break
            else:
                names.discard(titles[path.pop()])
                trail.pop()
        whole = tuple(path) if path[:1] and path[0] <= path[-1] else tuple(reversed(path))
        if len(path) == length and whole not in found:
            found[whole] = None
            idle = 0
            for paper in whole:
                uses[paper] = uses.get(paper, 0) + 1
        else:
            idle += 1
        if not trail:
            starts[place] = starts[-1]
            starts.pop()
    return list(found)


def draw_start(stream: Stream, starts: list[int], uses: dict[int, int], limits: PathLimits) -> int | None:
    while starts:
        place = stream.below(len(starts))
        if uses.get(starts[place], 0) < limits.max_uses:
            return place
        starts[place] = starts[-1]
        starts.pop()
    return None


def compare_with_networkx(store_path: Path) -> None:
    limits = PathLimits()
    with open_store(str(store_path)) as store:
        ids, titles = store.usable_papers()
        citing, cited = store.edges()
    began = time.perf_counter()
    graph = CitationGraph.from_citations(ids, citing, cited)
    known = bounds(graph)
    ours = {}
    for depth in DEPTHS:
        pruned = prune(graph, path_length(depth), known)
        names = titles[np.searchsorted(graph.ids, pruned.graph.ids)].tolist()
        ours[depth] = (pruned, search_paths(pruned, f"scale {depth}", limits, titles=names))
    fast = timed("ours: graph, pruning and 1,000 paths for each depth", began)
    began = time.perf_counter()
    plain = nx.Graph()
    plain.add_nodes_from(ids.tolist())
    plain.add_edges_from(zip(citing.tolist(), cited.tolist(), strict=True))
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    by_id = dict(zip(ids.tolist(), titles.tolist(), strict=True))
    for depth in DEPTHS:
        kept, endpoint = networkx_prune(plain, path_length(depth))
        paths = networkx_search(kept, endpoint, by_id, path_length(depth), f"scale {depth}", limits)
        pruned, search = ours[depth]
        same = sorted(kept) == pruned.graph.ids.tolist() and tuple(paths) == search.paths
        timed(f"networkx up to depth {depth}, {len(paths)} paths, equal results: {same}", began)
    slow = time.perf_counter() - began
    print(f"  pruning and search: {slow / fast:.1f} times faster than networkx (goal 20)\n", flush=True)


def index_and_growth(store_path: Path) -> None:
    with open_store(str(store_path)) as store:
        ids, titles = store.usable_papers()
        graph = CitationGraph.from_citations(ids, *store.edges())
        by_id = dict(zip(ids.tolist(), titles.tolist(), strict=True))
        pruned = prune(graph, path_length(32))
        long = search_paths(pruned, "index", PathLimits()).paths
        began = time.perf_counter()
        CompatibilityIndex.build(long, by_id, graph)
        timed(f"index of {len(long)} paths of {path_length(32)} papers (goal 1 s)", began)
        paths = search_paths(prune(graph, path_length(4)), "growth", PathLimits()).paths
        index = CompatibilityIndex.build(paths, by_id, graph)
        ratios = list(_growth_ratios(store, paths, index))
        print(f"  growth of 2 x 250 papers: {statistics.median(ratios):.2f} times its look-ups (goal 2)\n", flush=True)


def _growth_ratios(store: object, paths: tuple[tuple[int, ...], ...], index: CompatibilityIndex) -> Iterator[float]:
    for number in range(30):
        timer = _Timed(store)
        neighbourhoods = Neighbourhoods(timer)  # type: ignore[arg-type]
        stream = Stream("growth", number)
        chosen = index.draw(2, stream)
        if chosen is None:
            continue
        began = time.perf_counter()
        growth = Growth(neighbourhoods, TitleRegister())
        components = [backbone_component(paths[place], neighbourhoods, stream) for place in chosen]
        if not all(enter_backbone(component, growth) for component in components):
            continue
        try:
            grow(components, 250, Fraction(1, 10), growth, stream)
        except Stuck:
            continue
        yield (time.perf_counter() - began) / timer.seconds


class _Timed:
    """A store whose look-ups are timed."""

    batch = 1

    def __init__(self, store: object) -> None:
        self._store = store
        self.seconds = 0.0

    def neighbours(self, ids: object, direction: str) -> object:
        began = time.perf_counter()
        found = self._store.neighbours(ids, direction)  # type: ignore[attr-defined]
        self.seconds += time.perf_counter() - began
        return found

    def papers(self, ids: object) -> object:
        return self._store.papers(ids)  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--papers", type=int, default=1_000_000)
    parser.add_argument("--citations", type=int, default=3_000_000)
    parser.add_argument("--hubs", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--no-networkx", action="store_true")
    given = parser.parse_args()
    work: Path = given.work
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "shards").exists():
        write_shards(work / "shards", given.papers, given.citations, hubs=given.hubs)
        for kind in ("papers", "citations"):
            (work / kind).mkdir()
            for path in (work / "shards").glob(f"{kind}-*.gz"):
                path.rename(work / kind / path.name)
    for name in ("graph", "store", "paths"):
        shutil.rmtree(work / name, ignore_errors=True)
    peaks = [
        run(
            "gniah-load",
            "filter",
            "--papers",
            work / "papers",
            "--citations",
            work / "citations",
            "--out",
            work / "graph",
        )
    ]
    copy = own_copy(work / "graph")
    imported = run("gniah-load", "import", work / "graph", "--store", work / "store")
    print(f"  import: {imported.seconds / copy:.2f} times LadybugDB's own COPY (goal 1.2)\n", flush=True)
    peaks += [imported, run("gniah-gen", "paths", "--store", work / "store", "--out", work / "paths", "--allow-fewer")]
    index_and_growth(work / "store")
    if not given.no_networkx:
        compare_with_networkx(work / "store")
    print(f"peak memory of our commands: {max(item.peak_mb for item in peaks):.0f} MB (goal 2,000)")


if __name__ == "__main__":
    main()
