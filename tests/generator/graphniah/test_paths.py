import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.paths import PathLimits, PathSearch, distinct, search_paths
from gniah.generator.graphniah.pruning import PrunedGraph, path_length, prune
from gniah.records.streams import Stream

GRAPHS = Path(__file__).parents[3].parent / "shared" / "data" / "graphs"


def pruned_of(graph: nx.Graph, length: int) -> PrunedGraph:
    edges = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    return prune(CitationGraph.from_citations(list(graph.nodes()), edges[:, 0], edges[:, 1]), length)


def all_paths(graph: nx.Graph, length: int) -> set[tuple[int, ...]]:
    def grow(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(path) == length:
            yield path
            return
        for paper in graph[path[-1]]:
            if paper not in path:
                yield from grow((*path, paper))

    return {distinct(path) for paper in graph for path in grow((paper,))}


def plain_search(
    pruned: PrunedGraph, key: str, limits: PathLimits, titles: list[str] | None = None
) -> tuple[list[tuple[int, ...]], list[str]]:
    """The same search as it is told: recursive, everything looked up anew, draws in the same order."""
    graph, bound = pruned.graph, pruned.bounds.endpoint
    named = titles or [str(node) for node in range(len(graph))]
    paths: list[tuple[int, ...]] = []
    outcomes: list[str] = []
    starts = [node for node in range(len(graph)) if bound[node] >= pruned.length]
    idle = 0

    def capped(node: int) -> bool:
        return sum(node in path for path in paths) >= limits.max_uses

    def grow(path: list[int], stream: Stream, steps: list[int]) -> bool:
        if len(path) == pruned.length:
            return True
        row = graph.neighbours(path[-1]).tolist()
        for first in range(len(row)):
            other = first + stream.below(len(row) - first)
            row[first], row[other] = row[other], row[first]
            node = row[first]
            if capped(node) or named[node] in {named[taken] for taken in path}:
                continue
            if bound[node] < pruned.length - len(path):
                continue
            if steps[0] == limits.max_steps:
                raise TimeoutError
            steps[0] += 1
            path.append(node)
            if grow(path, stream, steps):
                return True
            path.pop()
        return False

    while len(paths) < limits.wanted and idle < limits.patience:
        stream = Stream(key, "paths", len(outcomes))
        start = None
        while starts and start is None:
            place = stream.below(len(starts))
            start = starts[place]
            if capped(start):
                starts[place] = starts[-1]
                starts.pop()
                start = None
        if start is None:
            break
        path = [start]
        try:
            ends = "path" if grow(path, stream, [1]) else "exhausted"
        except TimeoutError:
            ends = "cut"
        outcomes.append(ends)
        idle += 1
        if ends == "exhausted":
            starts[place] = starts[-1]
            starts.pop()
        elif ends == "path" and distinct(tuple(path)) not in paths:
            paths.append(distinct(tuple(path)))
            idle = 0
    return [tuple(graph.ids[list(path)].tolist()) for path in paths], outcomes


@st.composite
def random_graphs(draw: st.DrawFn, most: int = 9) -> nx.Graph:
    count = draw(st.integers(2, most))
    pairs = [(a, b) for a in range(count) for b in range(a)]
    graph = nx.empty_graph(count)
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=3 * count)))
    return nx.relabel_nodes(graph, {node: 7 * node + 3 for node in graph})


def check(search: PathSearch, graph: nx.Graph, length: int, limits: PathLimits) -> None:
    assert len(set(search.paths)) == len(search.paths) <= limits.wanted
    for path in search.paths:
        assert len(path) == len(set(path)) == length
        assert path == distinct(path)
        assert nx.is_path(graph, path)
    uses = Counter(paper for path in search.paths for paper in path)
    assert all(count <= limits.max_uses for count in uses.values())
    assert search.starts == (len(search.paths) + search.duplicates + search.exhausted_starts + search.cut_starts)


def test_a_path_and_its_reverse_are_the_same() -> None:
    assert distinct((9, 2, 4)) == distinct((4, 2, 9)) == (4, 2, 9)


def test_a_chain_has_one_path_and_the_search_ends_when_it_finds_it_again_and_again() -> None:
    search = search_paths(pruned_of(nx.path_graph(5), 5), "key", PathLimits(patience=20))
    assert search.paths == ((0, 1, 2, 3, 4),)
    assert (search.reason, search.starts, search.duplicates, search.steps) == ("no new path", 21, 20, 105)


def test_the_search_ends_when_it_has_what_was_asked_for() -> None:
    told: list[int] = []
    search = search_paths(pruned_of(nx.complete_graph(8), 4), "key", PathLimits(wanted=5), progress=told.append)
    assert (len(search.paths), search.reason) == (5, "enough")
    assert len(told) == search.starts
    assert told[-1] == 5


def test_a_graph_without_papers_has_no_start() -> None:
    search = search_paths(pruned_of(nx.path_graph(3), 4), "key")
    assert (search.paths, search.starts, search.reason) == ((), 0, "no start left")


def test_a_start_that_was_searched_in_vain_is_not_drawn_again() -> None:
    # Every paper of K(2,6) has a bound of 8, but no path of it has more than 5 papers.
    search = search_paths(pruned_of(nx.complete_bipartite_graph(2, 6), 6), "key")
    assert (search.paths, search.reason, search.starts, search.exhausted_starts) == (
        (),
        "no start left",
        8,
        8,
    )


def test_a_search_stops_at_its_limit_of_steps() -> None:
    pruned = pruned_of(nx.complete_bipartite_graph(2, 6), 6)
    search = search_paths(pruned, "key", PathLimits(max_steps=7, patience=4))
    assert (search.reason, search.starts, search.cut_starts, search.steps) == ("no new path", 4, 4, 28)


def test_papers_at_their_cap_end_the_search() -> None:
    limits = PathLimits(max_uses=1)
    search = search_paths(pruned_of(nx.complete_graph(9), 4), "key", limits)
    check(search, nx.complete_graph(9), 4, limits)
    assert (len(search.paths), search.reason) == (2, "no start left")


def test_with_titles_no_path_holds_two_papers_of_one_title() -> None:
    graph = nx.complete_graph(8)
    titles = ["a", "b", "c", "d"] * 2
    search = search_paths(pruned_of(graph, 4), "key", PathLimits(patience=10_000, wanted=192), titles=titles)
    assert len(search.paths) == 192  # 4! orders, 2 papers for each title, halved for the direction
    assert all(len({titles[paper] for paper in path}) == 4 for path in search.paths)
    none = search_paths(pruned_of(graph, 5), "key", titles=titles)
    assert (none.paths, none.exhausted_starts, none.reason) == ((), 8, "no start left")


def test_another_number_of_titles_than_papers_is_refused() -> None:
    with pytest.raises(ValueError, match="2 titles were given for 5 papers"):
        search_paths(pruned_of(nx.path_graph(5), 5), "key", titles=["a", "b"])


@pytest.mark.parametrize("name", ["wanted", "max_uses", "max_steps", "patience"])
def test_a_limit_under_one_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        PathLimits(**{name: 0})


def test_the_key_decides_the_paths() -> None:
    pruned = pruned_of(nx.complete_graph(10), 4)
    limits = PathLimits(wanted=20)
    one, again, other = (search_paths(pruned, key, limits) for key in ("one", "one", "other"))
    assert one == again
    assert one.paths != other.paths


@settings(max_examples=60, deadline=None)
@given(random_graphs(), st.integers(2, 7), st.integers(1, 4), st.integers(1, 200))
def test_paths_are_simple_adjacent_distinct_and_within_the_caps(
    graph: nx.Graph, length: int, uses: int, steps: int
) -> None:
    limits = PathLimits(wanted=12, max_uses=uses, max_steps=steps, patience=10)
    check(search_paths(pruned_of(graph, length), "key", limits), graph, length, limits)


@settings(max_examples=60, deadline=None)
@given(random_graphs(8), st.integers(2, 8))
def test_a_path_is_found_exactly_when_there_is_one(graph: nx.Graph, length: int) -> None:
    search = search_paths(pruned_of(graph, length), "key", PathLimits(wanted=1))
    assert search.reason in {"enough", "no start left"}
    assert bool(search.paths) == bool(all_paths(graph, length))


@settings(max_examples=30, deadline=None)
@given(random_graphs(6), st.integers(2, 6))
def test_with_patience_all_paths_of_a_small_graph_are_found(graph: nx.Graph, length: int) -> None:
    everything = all_paths(graph, length)
    if len(everything) <= 20:
        limits = PathLimits(max_uses=1_000, patience=1_000, wanted=max(1, len(everything)))
        assert set(search_paths(pruned_of(graph, length), "key", limits).paths) == everything


@settings(max_examples=100, deadline=None)
@given(random_graphs(12), st.integers(2, 9), st.integers(1, 5), st.integers(1, 60), st.booleans())
def test_it_is_the_plain_search(graph: nx.Graph, length: int, uses: int, steps: int, titled: bool) -> None:
    pruned = pruned_of(graph, length)
    limits = PathLimits(wanted=8, max_uses=uses, max_steps=steps, patience=6)
    titles = [str(paper % 5) for paper in pruned.graph.ids.tolist()] if titled else None
    search = search_paths(pruned, "plain", limits, titles=titles)
    paths, outcomes = plain_search(pruned, "plain", limits, titles)
    assert list(search.paths) == paths
    assert search.starts == len(outcomes)
    assert search.exhausted_starts == outcomes.count("exhausted")
    assert search.cut_starts == outcomes.count("cut")


def test_starts_and_steps_are_uniform() -> None:
    pruned = pruned_of(nx.complete_graph(5), 3)
    drawn = Counter(search_paths(pruned, f"key {n}", PathLimits(wanted=1)).paths[0] for n in range(3_000))
    assert set(drawn) == all_paths(nx.complete_graph(5), 3)
    assert chisquare(list(drawn.values())).pvalue > 0.001


@pytest.mark.shared
def test_recent_rfcs_give_a_pool_of_a_thousand_paths_at_depth_four() -> None:
    folder = GRAPHS / "rfc-2023"
    if not folder.is_dir():
        message = f"the real graphs are not at {GRAPHS}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with gzip.open(folder / "papers.jsonl.gz") as lines:
        papers = [paper for paper in map(json.loads, lines) if (paper["publicationdate"] or "") >= "2010-01-01"]
    with gzip.open(folder / "citations.jsonl.gz") as lines:
        edges = [(row["citingcorpusid"], row["citedcorpusid"]) for row in map(json.loads, lines)]
    edges = [edge for edge in edges if None not in edge]
    ids = sorted(int(paper["corpusid"]) for paper in papers)
    graph = CitationGraph.from_citations(ids, *np.array(edges, dtype=np.int64).T)
    pruned = prune(graph, path_length(4))
    limits = PathLimits()
    search = search_paths(pruned, "rfc", limits)
    assert (len(search.paths), search.reason) == (1_000, "enough")
    whole = nx.Graph(zip(*(graph.ids[part].tolist() for part in graph.edge_list()), strict=True))
    check(search, whole, 10, limits)
