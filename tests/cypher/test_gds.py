"""Graph Data Science in a real server: projections, and what its procedures say beside networkx."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from neo4j_fixtures import Running
from scipy.stats import chisquare

from gniah.cypher import build_store, gds, open_store
from gniah.cypher.bolt import BoltStore
from gniah.cypher.gds import Projection, drop_leftovers, gds_version, projection
from gniah.records.errors import StoreError
from gniah.records.manifests import Manifest

pytestmark = pytest.mark.neo4j
GraphWriter = Callable[..., Manifest]
Edge = tuple[int, int]

UNUSABLE = ({"corpusid": 5, "title": "", "authors": ["A"]}, {"corpusid": 12, "title": "No one", "authors": []})


def many_graphs() -> nx.Graph:
    """Sixty small graphs side by side, scattered over the ids, the largest one included."""
    parts = [nx.cycle_graph(7), nx.path_graph(5), nx.star_graph(6), nx.complete_graph(5), nx.barbell_graph(4, 2)]
    parts += [nx.gnm_random_graph(3 + number % 12, number % 19, seed=number) for number in range(50)]
    parts += [nx.random_labeled_tree(2 + number, seed=number) for number in range(5)]
    graph = nx.disjoint_union_all(parts)
    last = len(graph) - 1
    # Neighbours in the graph are none in the order of ids.
    return nx.relabel_nodes(graph, {node: 2**62 if node == last else 101 * node % 1009 * 7 + 3 for node in graph})


def citations_of(graph: nx.Graph) -> list[Edge]:
    """Every edge as a citation: one way, the other, or both; and some from and to papers that do not count."""
    found: set[Edge] = set()
    for number, (one, other) in enumerate(sorted(graph.edges())):
        found |= ({(one, other)}, {(other, one)}, {(one, other), (other, one)})[number % 3]
    first, *_, last = sorted(graph)
    unusable = [paper["corpusid"] for paper in UNUSABLE]
    return sorted(found | {(first, unusable[0]), (unusable[0], last), (unusable[1], first), (last, unusable[1])})


def pairs(ends: Iterable[Any]) -> list[Edge]:
    one, other = ends
    return list(zip(one.tolist(), other.tolist(), strict=True))


@pytest.fixture(scope="module")
def server(neo4j_server: Running) -> Iterator[Running]:
    """A server whose password the environment names, emptied before and after all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
        patch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(neo4j_server.password_file))
        neo4j_server.empty()
        yield neo4j_server
        neo4j_server.empty()


@pytest.fixture(scope="module")
def imported(
    server: Running, tmp_path_factory: pytest.TempPathFactory, graph_writer: GraphWriter
) -> tuple[nx.Graph, list[str]]:
    """Sixty small graphs that were imported, and the operators by which the server would project them right after."""
    graph, folder = many_graphs(), tmp_path_factory.mktemp("small") / "graph"
    papers = [{"corpusid": node, "title": f"T {node}"} for node in sorted(graph)]
    graph_writer(folder, [*papers, *UNUSABLE], citations_of(graph))
    build_store(folder, server.address)
    with server.driver() as driver, driver.session() as session:
        plan = session.run(f"EXPLAIN {gds._PROJECT}", {"name": "none", "without": []}).consume().plan
    return graph, list(operators(plan))


def operators(plan: dict[str, Any]) -> Iterator[str]:
    yield plan["operatorType"].partition("@")[0]
    for part in plan.get("children", ()):
        yield from operators(part)


@pytest.fixture(scope="module")
def small(server: Running, imported: tuple[nx.Graph, list[str]]) -> Iterator[tuple[BoltStore, nx.Graph]]:
    """A store of sixty small graphs, and the same as networkx has them."""
    with open_store(server.address) as store:
        assert isinstance(store, BoltStore)
        yield store, imported[0]


def projected(running: Running) -> list[str]:
    """The names of all projections in the server."""
    return [row["graphName"] for row in running.run("CALL gds.graph.list() YIELD graphName")]


# --- what procedures say


def test_a_projection_is_the_graph_of_usable_papers(small: tuple[BoltStore, nx.Graph]) -> None:
    store, graph = small
    components = [sorted(component) for component in nx.connected_components(graph)]
    with projection(store.connection) as found:
        assert (found.papers, found.edges) == (len(graph), graph.number_of_edges())
        for least in (4, 1, 7):
            papers, labels = found.components(least)
            expected = sorted((paper, ids[0]) for ids in components if len(ids) >= least for paper in ids)
            assert list(zip(papers.tolist(), labels.tolist(), strict=True)) == expected
            chosen = sorted({label for _, label in expected})[::2]
            parts = [ids for ids in components if ids[0] in chosen]
            edges = [tuple(sorted(edge)) for ids in parts for edge in graph.subgraph(ids).edges()]
            assert pairs(found.edges_of(chosen)) == sorted(edges)
        assert found.articulation_points().tolist() == sorted(nx.articulation_points(graph))
        assert pairs(found.bridges()) == sorted(tuple(sorted(edge)) for edge in nx.bridges(graph))


def test_papers_are_gone_through_once_even_while_the_planner_believes_that_there_are_none(
    imported: tuple[nx.Graph, list[str]],
) -> None:
    _, plan = imported
    assert [operator for operator in plan if "Scan" in operator or "Seek" in operator] == ["NodeIndexScan"]
    assert "Expand(All)" in plan


def test_papers_can_be_left_out(small: tuple[BoltStore, nx.Graph]) -> None:
    store, graph = small
    out = sorted(graph)[::5]
    rest = graph.subgraph(set(graph) - set(out))
    with projection(store.connection, out) as found:
        assert (found.papers, found.edges) == (len(rest), rest.number_of_edges())
        assert found.components()[0].tolist() == sorted(rest)
        assert found.articulation_points().tolist() == sorted(nx.articulation_points(rest))


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_without_papers_or_citations_there_is_nothing_to_say(small: tuple[BoltStore, nx.Graph], kept: int) -> None:
    store, graph = small
    alone = sorted(nx.maximal_independent_set(graph, seed=1))[:kept]
    with projection(store.connection, sorted(set(graph) - set(alone))) as found:
        assert (found.papers, found.edges) == (kept, 0)
        assert [column.tolist() for column in found.components()] == [alone, alone]
        assert pairs(found.edges_of(alone)) == pairs(found.bridges()) == []
        assert found.articulation_points().tolist() == []
        assert found.walks(alone, 10, 1) == {}


# --- walks


def walks_of(store: BoltStore, sources: list[int], length: int = 40, seed: int = 7) -> dict[int, list[int]]:
    with projection(store.connection) as found:
        return found.walks(sources, length, seed)


def test_walks_go_along_edges_from_their_sources(small: tuple[BoltStore, nx.Graph]) -> None:
    store, graph = small
    sources = sorted(graph)[::3]
    walks = walks_of(store, sources)
    assert list(walks) == [source for source in sources if graph.degree(source)]
    for source, walk in walks.items():
        assert walk[0] == source
        assert len(walk) == 40
        assert all(graph.has_edge(one, other) for one, other in pairwise(walk))
    assert walks_of(store, []) == {}


def test_steps_are_uniform_among_all_neighbours_the_paper_before_included(small: tuple[BoltStore, nx.Graph]) -> None:
    store, graph = small
    clique = next(
        ids for ids in nx.connected_components(graph) if nx.density(graph.subgraph(ids)) == 1 and len(ids) == 5
    )
    walk = walks_of(store, [min(clique)], 12_000)[min(clique)]
    # Where a walk goes, by where it is and where it was.
    steps = Counter(zip(walk, walk[1:], walk[2:], strict=False))
    for before, now in nx.DiGraph(graph.subgraph(clique)).edges():
        assert chisquare([steps[before, now, then] for then in sorted(clique - {now})]).pvalue > 1e-4


def test_the_seed_decides_the_walks_whatever_the_order_of_sources(small: tuple[BoltStore, nx.Graph]) -> None:
    store, graph = small
    sources = sorted(graph)
    assert walks_of(store, sources) == walks_of(store, sources[::-1])
    assert walks_of(store, sources) != walks_of(store, sources, seed=8)


def test_the_same_graph_imported_in_another_order_gives_the_same_walks(
    small: tuple[BoltStore, nx.Graph], server: Running
) -> None:
    store, graph = small
    expected = walks_of(store, sorted(graph))
    papers = [row["p"] for row in server.run("MATCH (p:Paper) RETURN properties(p) AS p ORDER BY p.corpusid DESC")]
    server.run("MATCH (p:Paper) DETACH DELETE p")
    server.run("UNWIND $papers AS paper CREATE (:Dust) CREATE (p:Paper) SET p = paper", papers=papers)
    server.run(
        "UNWIND $edges AS edge MATCH (a:Paper {corpusid: edge[0]}) MATCH (b:Paper {corpusid: edge[1]}) "
        "CREATE (a)-[:CITES]->(b)",
        edges=[list(edge) for edge in citations_of(graph)[::-1]],
    )
    assert walks_of(store, sorted(graph)) == expected


def test_no_walk_begins_at_a_paper_that_is_not_there(small: tuple[BoltStore, nx.Graph]) -> None:
    store, graph = small
    first, second = sorted(graph)[:2]
    with projection(store.connection, [first]) as found, pytest.raises(StoreError):
        found.walks([first, second], 10, 1)


# --- what is left behind


def test_a_projection_is_dropped_whatever_ends_its_block(small: tuple[BoltStore, nx.Graph], server: Running) -> None:
    store, _ = small

    def fail(found: Projection, error: BaseException) -> None:
        assert found.papers
        assert len(projected(server)) == 1
        raise error

    for error in (ZeroDivisionError(), KeyboardInterrupt(), StoreError("no")):
        with pytest.raises(type(error)), projection(store.connection) as found:
            fail(found, error)
        assert projected(server) == []
    with projection(store.connection) as one, projection(store.connection) as other:
        assert len(projected(server)) == 2
        assert one.components()[0].tolist() == other.components()[0].tolist()
    assert projected(server) == []
    assert server.run("SHOW TRANSACTIONS YIELD parameters WHERE parameters.projection IS NOT NULL") == []


HOLDER = """
import sys, time
from gniah.cypher import open_store
from gniah.cypher.gds import projection

try:
    with open_store(sys.argv[1]) as store, projection(store.connection):
        print("ready", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture
def holder(small: tuple[BoltStore, nx.Graph], server: Running) -> Iterator[subprocess.Popen[str]]:
    """Another process that has a projection."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, server.address], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_an_interrupted_process_leaves_nothing(holder: subprocess.Popen[str], server: Running) -> None:
    assert len(projected(server)) == 1
    holder.send_signal(signal.SIGINT)
    assert holder.wait(timeout=30) == 130
    assert projected(server) == []


def test_what_a_killed_process_left_is_dropped_at_the_next_start_and_not_before(
    holder: subprocess.Popen[str], server: Running, small: tuple[BoltStore, nx.Graph]
) -> None:
    store, _ = small
    (held,) = projected(server)
    server.run("MATCH (p:Paper) WITH gds.graph.project('not-ours', p, null) AS graph RETURN graph.nodeCount")
    with projection(store.connection):
        assert held in projected(server)
    assert drop_leftovers(store.connection) == []
    holder.kill()
    holder.wait()
    limit = time.monotonic() + 30
    while server.run("SHOW TRANSACTIONS YIELD parameters WHERE parameters.projection IS NOT NULL"):
        assert time.monotonic() < limit
        time.sleep(0.05)
    assert sorted(projected(server)) == sorted([held, "not-ours"])
    with projection(store.connection):
        assert held not in projected(server)
    assert projected(server) == ["not-ours"]
    server.run("CALL gds.graph.drop('not-ours') YIELD graphName")


# --- a server without


def test_the_version_is_told(small: tuple[BoltStore, nx.Graph]) -> None:
    assert gds_version(small[0].connection, "--else") == "2.13.9"


def test_what_a_server_lacks_is_named(small: tuple[BoltStore, nx.Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    connection = small[0].connection
    monkeypatch.setattr(gds, "PROCEDURES", (*gds.PROCEDURES, "gds.nosuch.stream"))
    with pytest.raises(StoreError, match=r"Graph Data Science of this server lacks gds\.nosuch\.stream$") as caught:
        gds_version(connection, "--else")
    assert caught.value.remedy is not None
    assert "gniah-load neo4j start" in caught.value.remedy
    assert caught.value.remedy.endswith("use --else")
    monkeypatch.setattr(gds, "PROCEDURES", ("gds.nosuch.stream",))
    monkeypatch.setattr(gds, "FUNCTIONS", ("gds.nosuch",))
    with pytest.raises(StoreError, match=r"this server has no Graph Data Science$"):
        gds_version(connection, "--else")
