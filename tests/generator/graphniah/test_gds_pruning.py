"""Pruning by Graph Data Science: what it keeps is what `prune` keeps, by a stand-in and by a real server."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neo4j_fixtures import Running
from places import citation, paper
from programs import Finished, Rfc

from gniah.cypher import GraphStore, build_store, open_store
from gniah.generator.graphniah import sample_pools
from gniah.generator.graphniah.citation_graph import CitationGraph, Ids
from gniah.generator.graphniah.gds_pruning import bounded_by_gds
from gniah.generator.graphniah.path_graph import PathGraph
from gniah.generator.graphniah.pruning import PrunedGraph, path_length, prune
from gniah.records.errors import ImpossibleRequest, StoreError, UsageFault
from gniah.records.files import json_line

Call = Callable[..., Finished]
GRAPHS = Path(__file__).parents[3].parent / "shared" / "data" / "graphs"
Edge = tuple[int, int]


class Plain:
    """What a server answers about a graph, by networkx; all papers count. What is set in `lies` is answered instead."""

    def __init__(self, graph: nx.Graph, **lies: Any) -> None:
        self.papers = len(graph)
        self.edges = graph.number_of_edges()
        self._graph = graph
        self._lies = lies

    def components(self, least: int = 1) -> tuple[Ids, Ids]:
        found = [
            (paper, min(ids)) for ids in nx.connected_components(self._graph) if len(ids) >= least for paper in ids
        ]
        return _columns(self._lies.get("components", sorted(found)))

    def edges_of(self, labels: Iterable[int]) -> tuple[Ids, Ids]:
        papers = {paper for label in labels for paper in nx.node_connected_component(self._graph, label)}
        return _columns(self._lies.get("edges", self._graph.subgraph(papers).edges()))

    def articulation_points(self) -> Ids:
        return np.array(sorted(self._lies.get("cuts", nx.articulation_points(self._graph))), np.int64)

    def bridges(self) -> tuple[Ids, Ids]:
        return _columns(self._lies.get("bridges", nx.bridges(self._graph)))


def _columns(pairs: Iterable[Edge]) -> tuple[Ids, Ids]:
    table = np.array(list(pairs), np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def graph_of(graph: nx.Graph) -> CitationGraph:
    return CitationGraph.from_citations(list(graph.nodes()), *_columns(graph.edges()))


def same(one: PrunedGraph, other: PrunedGraph) -> None:
    """Fail unless two pruned graphs are equal in all that a pool is made from."""
    for name in ("ids", "offsets", "targets"):
        assert getattr(one.graph, name).tolist() == getattr(other.graph, name).tolist(), name
    for name in ("through", "endpoint"):
        assert getattr(one.bounds, name).tolist() == getattr(other.bounds, name).tolist(), name
    for field in fields(PrunedGraph):
        if field.name not in ("graph", "bounds"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name


@st.composite
def graphs(draw: st.DrawFn) -> nx.Graph:
    """A few random parts side by side, each from a forest to a dense graph, over scattered ids."""
    parts = []
    for count in draw(st.lists(st.integers(1, 14), min_size=1, max_size=4)):
        pairs = [(a, b) for a in range(count) for b in range(a)]
        part = nx.empty_graph(count)
        if pairs:
            part.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=2 * count)))
        parts.append(part)
    graph = nx.disjoint_union_all(parts)
    places = draw(st.permutations(range(len(graph))))
    return nx.relabel_nodes(graph, {node: 5 * places[node] + 2 for node in graph})


@settings(max_examples=300, deadline=None)
@given(graphs(), st.integers(1, 9))
def test_it_keeps_what_the_blocks_keep_with_the_same_bounds(graph: nx.Graph, least: int) -> None:
    bounded = bounded_by_gds(Plain(graph), least)
    assert {min(ids) for ids in nx.connected_components(graph) if len(ids) >= least} == {
        min(ids) for ids in nx.connected_components(graph) if ids <= set(bounded.graph.ids.tolist())
    }
    for length in range(least, 12):
        same(bounded.prune(length), prune(graph_of(graph), length))


def test_a_graph_without_papers_and_one_without_large_components() -> None:
    for graph in (nx.empty_graph(0), nx.path_graph(3)):
        bounded = bounded_by_gds(Plain(graph), 4)
        same(bounded.prune(4), prune(graph_of(graph), 4))
        assert len(bounded.graph) == 0


def test_a_length_for_which_too_much_was_left_in_the_server_is_refused() -> None:
    bounded = bounded_by_gds(Plain(nx.path_graph(9)), 5)
    assert bounded.prune(5).papers == 9
    with pytest.raises(ValueError, match="components of fewer than 5 papers are not here, and 4 are too few"):
        bounded.prune(4)


# Two squares, 0 … 3 and 10 … 13, with a chain from one to the other: bridges (3, 5), (5, 10); cut papers 3, 5, 10.
SQUARES = nx.Graph([(0, 1), (1, 2), (2, 3), (0, 3), (3, 5), (5, 10), (10, 11), (11, 12), (12, 13), (10, 13)])
LIES: dict[str, tuple[dict[str, Any], str]] = {
    "a bridge that is none": ({"bridges": [(3, 5), (5, 10), (0, 1)]}, "gds.bridges"),
    "a bridge is missing": ({"bridges": [(3, 5)]}, "gds.bridges"),
    "a bridge that is no edge": ({"bridges": [(3, 5), (0, 10)]}, "gds.bridges"),
    "a cut paper is missing": ({"cuts": [3, 10]}, "gds.articulationPoints"),
    "a cut paper that is none": ({"cuts": [0, 3, 5, 10]}, "gds.articulationPoints"),
    "one component for two": (
        {"components": [(n, 0) for n in (0, 1, 2, 3, 5, 10, 11, 12, 13, 40)]},
        "gds.wcc",
    ),
    "two components for one": (
        {"components": [(0, 0), (1, 0), (2, 0), (3, 0), (5, 5), (10, 5), (11, 5), (12, 5), (13, 5)]},
        "gds.wcc",
    ),
    "an edge to nowhere": ({"edges": [*SQUARES.edges(), (13, 99)]}, "gds.wcc"),
    "an edge is missing": ({"edges": [edge for edge in SQUARES.edges() if edge != (10, 11)]}, "gds.bridges"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_procedure_that_is_contradicted_is_named(lie: str) -> None:
    lies, procedure = LIES[lie]
    with pytest.raises(StoreError, match=f"^{procedure} disagrees with the edges") as caught:
        bounded_by_gds(Plain(SQUARES, **lies), 4)
    assert "--pruning blocks" in str(caught.value.remedy)
    assert len(bounded_by_gds(Plain(SQUARES), 4).graph) == 9


# --- on another store


@pytest.mark.parametrize("option", [{"pruning": "gds"}, {"sampler": "gds-walk"}])
def test_what_works_in_a_server_is_refused_on_another_store(rfc: Rfc, tmp_path: Path, option: dict[str, Any]) -> None:
    with open_store(rfc.store) as store, pytest.raises(UsageFault, match="works in a Neo4j server, and"):
        sample_pools(store, tmp_path / "out", depths=(2,), **option)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", [{"pruning": "other"}, {"sampler": "other"}])
def test_what_is_no_option_at_all_is_refused(rfc: Rfc, tmp_path: Path, option: dict[str, Any]) -> None:
    with open_store(rfc.store) as store, pytest.raises(UsageFault, match="'other' is no "):
        sample_pools(store, tmp_path / "out", depths=(2,), **option)
    assert list(tmp_path.iterdir()) == []


def test_on_the_command_line_too(rfc: Rfc, tmp_path: Path, gniah: Call) -> None:
    for words in (("--pruning", "gds"), ("--path-sampler", "gds-walk"), ("--pruning", "other")):
        done = gniah("paths", "--store", rfc.store, "--out", tmp_path / "out", *words)
        assert (done.code, done.out) == (2, ""), done.err
        assert "Traceback" not in done.err
    done = gniah(
        "paths", "--store", rfc.store, "--out", rfc.paths, "--depths", "2,3", "--count", "100", "--pruning", "blocks"
    )
    assert done.code == 0
    assert "k = 3: the paths are there already" in done.err


# --- a real server


@pytest.fixture
def server(empty_neo4j: Running, monkeypatch: pytest.MonkeyPatch) -> Running:
    """An empty server whose password the environment names."""
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
    return empty_neo4j


def files_of(folder: Path) -> dict[str, Any]:
    """The files of all pools below a folder: of manifests the content, of others their bytes."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*.json"):
        name = str(path.relative_to(folder))
        found[name] = json.loads(path.read_bytes())["content"] if path.name == "manifest.json" else path.read_bytes()
    return found


def compare(near: GraphStore, far: GraphStore, depths: tuple[int, ...], folder: Path) -> None:
    """Fail unless the pruned sets and the pools of all depths are the same on both stores, however they were pruned."""
    whole, by_gds = PathGraph(near, "blocks", 1), PathGraph(far, None, path_length(min(depths)))
    assert by_gds.bounded.least == path_length(min(depths))
    assert len(by_gds.bounded.graph) < len(whole.bounded.graph)
    for depth in depths:
        one, other = (graph.bounded.prune(path_length(depth)) for graph in (whole, by_gds))
        same(one, other)
        assert whole.titles_of(one) == by_gds.titles_of(other)
    assert whole.longest() == by_gds.longest()
    expected = None
    for name, store, pruning in (("near", near, None), ("gds", far, "gds"), ("blocks", far, "blocks")):
        pools = sample_pools(store, folder / name, depths=depths, pruning=pruning)  # type: ignore[arg-type]
        assert [pool.paths for pool in pools] == [1000] * len(depths)
        expected = expected or files_of(folder / "near")
        assert len(expected) == 3 * len(depths)
        assert files_of(folder / name) == expected


@pytest.mark.neo4j
def test_recent_rfcs_give_the_same_pools_on_both_stores(server: Running, rfc: Rfc, tmp_path: Path) -> None:
    build_store(rfc.graph, server.address)
    with open_store(rfc.store) as near, open_store(server.address) as far:
        compare(near, far, (4, 8, 16, 32), tmp_path)
        for depths in ((5000,), (4, 5000)):
            said = []
            for store in (near, far):
                with pytest.raises(ImpossibleRequest, match="can exist in this graph") as caught:
                    sample_pools(store, tmp_path / f"deep {len(said)} {len(depths)}", depths=depths)
                said.append((caught.value.message, caught.value.remedy))
            assert said[0] == said[1]
    assert server.run("CALL gds.graph.list() YIELD graphName") == []


@pytest.mark.neo4j
def test_the_longest_path_may_be_in_a_component_that_stays_in_the_server(
    server: Running, tmp_path: Path, gniah: Call
) -> None:
    # A star of twelve papers, through which no path has more than three, and a chain of five.
    star, chain = [(1, leaf) for leaf in range(2, 13)], [(20, 21), (21, 22), (22, 23), (23, 24)]
    shards = tmp_path / "papers.gz", tmp_path / "citations.gz"
    rows = [*map(paper, range(1, 13)), *map(paper, range(20, 25))], [citation(*edge) for edge in star + chain]
    for shard, lines in zip(shards, rows, strict=True):
        shard.write_bytes(gzip.compress(b"".join(map(json_line, lines))))
    words = ("filter", "--papers", shards[0], "--citations", shards[1], "--out", tmp_path / "graph")
    done = gniah(*words)
    assert done.code == 0, done.err
    build_store(tmp_path / "graph", server.address)
    with open_store(server.address) as store:
        with pytest.raises(ImpossibleRequest, match="the longest bound through any paper is 5") as caught:
            sample_pools(store, tmp_path / "out", depths=(4,))
        assert caught.value.remedy == "use a depth of at most 2"
        (pool,) = sample_pools(store, tmp_path / "out", depths=(2,), allow_fewer=True)
        assert (pool.papers_before, pool.papers_after, pool.paths) == (17, 5, 2)


@pytest.mark.neo4j
def test_a_server_without_gds_is_told_what_else_works(
    server: Running, rfc: Rfc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_store(rfc.graph, server.address)
    monkeypatch.setattr("gniah.cypher.gds.PROCEDURES", ("gds.nosuch.stream",))
    monkeypatch.setattr("gniah.cypher.gds.FUNCTIONS", ("gds.nosuch",))
    with open_store(server.address) as store:
        with pytest.raises(StoreError, match="has no Graph Data Science") as caught:
            sample_pools(store, tmp_path / "out", depths=(2,), count=10)
        assert str(caught.value.remedy).endswith("use --pruning blocks")
        with pytest.raises(StoreError, match="has no Graph Data Science") as caught:
            sample_pools(store, tmp_path / "out", depths=(2,), count=10, pruning="blocks", sampler="gds-walk")
        assert str(caught.value.remedy).endswith("use --path-sampler dfs --pruning blocks")
        (pool,) = sample_pools(store, tmp_path / "out", depths=(2,), count=10, pruning="blocks")
        assert pool.paths == 10


@pytest.mark.neo4j
@pytest.mark.shared
@pytest.mark.slow
def test_paperscape_gives_the_same_pools_on_both_stores(server: Running, tmp_path: Path, gniah: Call) -> None:
    shards = GRAPHS / "paperscape-1991-1996"
    if not shards.is_dir():
        message = f"the real graphs are not at {GRAPHS}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    done = gniah(
        *("filter", "--papers", shards / "papers.jsonl.gz", "--citations", shards / "citations.jsonl.gz"),
        *("--cutoff", "1991-01-01", "--out", tmp_path / "graph"),
    )
    assert done.code == 0, done.err
    for address in (tmp_path / "store", server.address):
        build_store(tmp_path / "graph", address)
    with open_store(tmp_path / "store") as near, open_store(server.address) as far:
        assert near.counts() == {"papers": 49_264, "citations": 145_644}
        compare(near, far, (4, 8, 16, 32), tmp_path)
