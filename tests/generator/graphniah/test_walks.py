"""Paths from random walks: by a stand-in that walks over networkx, and by a real server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neo4j_fixtures import Running
from programs import Finished, Rfc

from gniah.cypher import build_store, open_store
from gniah.generator.graphniah import PathPool, sample_pools
from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.paths import PathLimits, PathSearch, distinct
from gniah.generator.graphniah.pruning import PrunedGraph, prune
from gniah.generator.graphniah.walks import WalkSettings, loop_erased, walk_paths
from gniah.records.errors import ImpossibleRequest, StoreError
from gniah.records.streams import Stream


def pruned_of(graph: nx.Graph, length: int) -> PrunedGraph:
    edges = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    return prune(CitationGraph.from_citations(list(graph.nodes()), edges[:, 0], edges[:, 1]), length)


class Walker:
    """Projects a graph less some papers, and walks over it: each walk decided by its seed and its source."""

    def __init__(self, graph: nx.Graph) -> None:
        self.graph = graph
        self.projected: list[list[int]] = []
        self.asked: list[tuple[list[int], int, int]] = []

    @contextmanager
    def __call__(self, without: Sequence[int]) -> Iterator[Walker]:
        self.projected.append(list(without))
        yield self

    def walks(self, sources: Sequence[int], length: int, seed: int) -> dict[int, list[int]]:
        self.asked.append((list(sources), length, seed))
        here = self.graph.subgraph(set(self.graph) - set(self.projected[-1]))
        assert len(set(sources)) == len(sources) > 0
        assert set(sources) <= set(here)
        found = {}
        for source in sources:
            stream = Stream("walker", seed, source)
            walk = [source]
            while len(walk) < length and here.degree(walk[-1]):
                walk.append(stream.choice(sorted(here[walk[-1]])))
            if len(walk) > 1:
                found[source] = walk
        return found


def plainly_erased(walk: Sequence[int], length: int) -> tuple[int, ...] | None:
    """The definition: the loops of each beginning of the walk, erased in the order they close."""
    for end in range(1, len(walk) + 1):
        path: list[int] = []
        for paper in walk[:end]:
            path = path[: path.index(paper)] if paper in path else path
            path.append(paper)
        if len(path) == length:
            return tuple(path)
    return None


@pytest.mark.parametrize(
    ("walk", "length", "path", "followed"),
    [
        ([1, 2, 3], 3, (1, 2, 3), 3),
        ([1, 2, 3, 4, 5], 3, (1, 2, 3), 3),
        ([1, 2, 1, 3, 1, 4, 5], 3, (1, 4, 5), 7),
        ([1, 2, 3, 4, 2, 5, 6], 5, None, 7),
        ([1, 2, 3, 4, 2, 5, 3, 6], 5, (1, 2, 5, 3, 6), 8),
        ([1], 1, (1,), 1),
        ([1], 2, None, 1),
    ],
)
def test_loops_are_erased_as_they_close(
    walk: list[int], length: int, path: tuple[int, ...] | None, followed: int
) -> None:
    assert loop_erased(walk, length) == (path, followed)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.integers(1, 8))
def test_erasing_is_the_plain_definition(walk: list[int], length: int) -> None:
    # A walk does not stay at a paper.
    walk = [paper for place, paper in enumerate(walk) if not place or paper != walk[place - 1]]
    path, followed = loop_erased(walk, length)
    assert path == plainly_erased(walk, length)
    assert loop_erased(walk[:followed], length) == (path, followed)
    if path is None:
        assert followed == len(walk)


@st.composite
def random_graphs(draw: st.DrawFn, most: int = 12) -> nx.Graph:
    size = draw(st.integers(2, most))
    pairs = [(a, b) for a in range(size) for b in range(a)]
    graph = nx.empty_graph(size)
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=3 * size)))
    return nx.relabel_nodes(graph, {node: 7 * node + 3 for node in graph})


def check(search: PathSearch, graph: nx.Graph, length: int, limits: PathLimits) -> None:
    assert len(set(search.paths)) == len(search.paths) <= limits.wanted
    for path in search.paths:
        assert len(path) == len(set(path)) == length
        assert path == distinct(path)
        assert nx.is_path(graph, path)
    uses = Counter(paper for path in search.paths for paper in path)
    assert all(times <= limits.max_uses for times in uses.values())
    assert search.starts == len(search.paths) + search.duplicates + search.cut_starts
    assert search.exhausted_starts == 0
    assert (search.reason == "enough") == (len(search.paths) == limits.wanted)


@settings(max_examples=150, deadline=None)
@given(random_graphs(), st.integers(2, 7), st.integers(1, 4), st.integers(1, 9), st.booleans())
def test_paths_are_simple_adjacent_distinct_and_within_the_caps(
    graph: nx.Graph, length: int, uses: int, in_a_round: int, titled: bool
) -> None:
    pruned, walker = pruned_of(graph, length), Walker(graph)
    limits = PathLimits(wanted=12, max_uses=uses, patience=10)
    titles = [paper % 4 for paper in pruned.graph.ids.tolist()] if titled else None
    told: list[int] = []
    search = walk_paths(pruned, "key", walker, limits, WalkSettings(3, in_a_round), titles=titles, progress=told.append)
    check(search, graph, length, limits)
    if titled:
        assert all(len({paper % 4 for paper in path}) == length for path in search.paths)
    assert told == sorted(told)
    assert len(told) == search.starts
    assert all(len(sources) <= in_a_round and walked == 3 * length for sources, walked, _ in walker.asked)
    assert len({seed for _, _, seed in walker.asked}) == len(walker.asked)
    # Each projection lacks what has reached its cap by then, and is made for at least one round.
    assert len(walker.projected) <= len(walker.asked)
    assert all(set(one) < set(other) for one, other in zip(walker.projected, walker.projected[1:], strict=False))
    again = walk_paths(pruned, "key", Walker(graph), limits, WalkSettings(3, in_a_round), titles=titles)
    assert again == search


def test_walks_find_every_path_of_a_small_graph() -> None:
    graph = nx.complete_graph(5)
    search = walk_paths(pruned_of(graph, 3), "key", Walker(graph), PathLimits(wanted=30, patience=5_000))
    assert len(search.paths) == 30
    assert search.reason == "enough"


def test_the_key_decides_the_paths() -> None:
    graph = nx.complete_graph(9)
    pruned, limits = pruned_of(graph, 4), PathLimits(wanted=15)
    one, again, other = (walk_paths(pruned, key, Walker(graph), limits).paths for key in ("one", "one", "other"))
    assert one == again
    assert one != other


def test_a_graph_without_papers_has_no_start_and_is_not_projected() -> None:
    walker = Walker(nx.path_graph(3))
    search = walk_paths(pruned_of(walker.graph, 4), "key", walker)
    assert (search.paths, search.starts, search.reason, walker.projected) == ((), 0, "no start left", [])


def test_walks_end_when_nothing_new_comes() -> None:
    graph = nx.path_graph(5)
    search = walk_paths(pruned_of(graph, 5), "key", Walker(graph), PathLimits(patience=20))
    assert search.paths == ((0, 1, 2, 3, 4),)
    assert search.reason == "no new path"
    first = search.starts - search.duplicates - search.cut_starts
    assert first == 1
    assert search.starts >= 21


def test_papers_that_reach_their_cap_leave_the_projection_and_nothing_else_counts_against_the_rest() -> None:
    # Forty chains of four papers, and a hub beside all of them, which nearly every walk crosses.
    graph = nx.Graph()
    for chain in range(40):
        nx.add_path(graph, range(100 * chain + 1, 100 * chain + 5))
    graph.add_edges_from((0, paper) for paper in list(graph))
    walker = Walker(graph)
    search = walk_paths(pruned_of(graph, 4), "key", walker, PathLimits(wanted=30, max_uses=1, patience=25))
    assert walker.projected[0] == []
    assert all(0 in without for without in walker.projected[1:])
    assert (len(search.paths), search.reason) == (30, "enough")


@pytest.mark.parametrize("path", [(0, 2, 1, 3), (0, 1, 2, 9), (-5, 0, 1, 2)])
def test_a_walk_that_leaves_the_graph_is_refused(path: tuple[int, ...]) -> None:
    graph = nx.path_graph(4)

    class Liar(Walker):
        def walks(self, sources: Sequence[int], length: int, seed: int) -> dict[int, list[int]]:
            return {source: list(path) for source in sources}

    with pytest.raises(StoreError, match="went where no citation is") as caught:
        walk_paths(pruned_of(graph, 4), "key", Liar(graph))
    assert "--path-sampler dfs" in str(caught.value.remedy)


def test_another_number_of_titles_than_papers_is_refused() -> None:
    graph = nx.path_graph(5)
    with pytest.raises(ValueError, match="2 titles were given for 5 papers"):
        walk_paths(pruned_of(graph, 5), "key", Walker(graph), titles=["a", "b"])


# --- a real server


@pytest.fixture
def server(empty_neo4j: Running, rfc: Rfc, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with the RFC graph, whose password the environment names."""
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
    build_store(rfc.graph, empty_neo4j.address)
    return empty_neo4j


def parameters_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())["content"]["parameters"]
    return found


@pytest.mark.neo4j
def test_a_server_proposes_walks(server: Running, rfc: Rfc, tmp_path: Path, gniah: Callable[..., Finished]) -> None:
    places = (tmp_path / str(number) for number in count())
    with open_store(server.address) as store:
        walked = sample_pools(store, next(places), depths=(4, 8), count=300, sampler="gds-walk")
        again = sample_pools(store, next(places), depths=(4, 8), count=300, sampler="gds-walk", pruning="blocks")
        searched = sample_pools(store, next(places), depths=(4, 8), count=300)
        graph = nx.Graph(list(zip(*(ends.tolist() for ends in store.edges()), strict=True)))
        usable, titles = (column.tolist() for column in store.usable_papers())
        with pytest.raises(ImpossibleRequest, match="the last 500 walks brought no new path") as caught:
            sample_pools(store, next(places), depths=(100,), sampler="gds-walk")
        assert str(caught.value.remedy).startswith("use a smaller depth, or use --path-sampler dfs")
    title_of = dict(zip(usable, titles, strict=True))
    for one, same, other in zip(walked, again, searched, strict=True):
        pools = [PathPool.read(pool.folder) for pool in (one, same, other)]
        assert pools[0] == pools[1]
        assert pools[0].digest != pools[2].digest
        for path in pools[0].paths:
            assert len({title_of[paper] for paper in path}) == len(path) == one.path_length
            assert nx.is_path(graph, path)
        ours, theirs = (parameters_of(pool.folder) for pool in (one, other))
        assert ours.pop("sampler") == {
            "name": "gds-walk",
            "rules": 1,
            "gds": "2.13.9",
            "papers_walked": 5,
            "in_a_round": 500,
        }
        assert ours == theirs
        assert one.starts >= 300
    assert server.run("CALL gds.graph.list() YIELD graphName") == []
    done = gniah(
        *("paths", "--store", server.address, "--out", walked[0].folder.parents[2], "--depths", "4,8"),
        *("--count", "300", "--path-sampler", "gds-walk"),
    )
    assert (done.code, done.err.count("the paths are there already")) == (0, 2)
    done = gniah(
        "paths", "--store", server.address, "--out", walked[0].folder.parents[2], "--depths", "4", "--count", "300"
    )
    assert done.code == 2
    assert "other settings" in done.err


def test_a_pool_of_the_search_names_its_parameters_as_ever(rfc: Rfc) -> None:
    for folder in sorted(path.parent for path in rfc.paths.rglob("manifest.json")):
        found = parameters_of(folder)
        assert sorted(found) == ["cutoff", "graph", "limits", "question_depth", "rules", "seed"]
        assert found["limits"] == {"wanted": 100, "max_uses": 100, "max_steps": 100_000, "patience": 500}
        assert found["rules"] == 1
