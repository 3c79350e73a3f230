from collections import Counter
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from gniah.generator.graphniah.bit_rows import members
from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.records.streams import Stream

PAPERS = 16


def index_of(graph: nx.Graph) -> CompatibilityIndex:
    """The index in which the edges of a graph are the compatible pairs."""
    return CompatibilityIndex(tuple(sum(1 << other for other in graph[node]) for node in sorted(graph)))


@st.composite
def indexes(draw: st.DrawFn, most: int = 9) -> CompatibilityIndex:
    count = draw(st.integers(0, most))
    graph = nx.empty_graph(count)
    if count > 1:
        pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
        graph.add_edges_from(draw(st.lists(pairs, max_size=3 * count)))
    return index_of(graph)


def fits(index: CompatibilityIndex, group: tuple[int, ...]) -> bool:
    return all(index.compatible(one, other) for one, other in combinations(group, 2))


def test_papers_titles_and_citations_keep_paths_apart() -> None:
    paths = [(1, 2), (2, 3), (4, 5), (6, 7), (8, 9)]
    titles = {paper: str(paper) for paper in range(1, 10)} | {7: "same", 9: "same"}
    graph = CitationGraph.from_citations(range(1, 10), [1, 3, 4, 6, 8, 5, 2], [2, 2, 5, 7, 9, 3, 9])
    index = CompatibilityIndex.build(paths, titles, graph)
    # 0-1 share paper 2, 3-4 share a title, 5 cites 3 (2-1), 2 cites 9 (0-4 and 1-4).
    assert [list(members(row)) for row in index.rows] == [[2, 3], [3], [0, 3, 4], [0, 1, 2], [2]]
    assert index == CompatibilityIndex.build(paths, titles, graph.neighbour_ids)


def test_a_paper_that_the_graph_does_not_know_is_named() -> None:
    graph = CitationGraph.from_citations([1, 2], [1], [2])
    with pytest.raises(KeyError, match="paper 3 is not in the citation graph"):
        CompatibilityIndex.build([(1, 3)], {1: "a", 3: "c"}, graph)


def test_an_empty_pool_has_no_groups() -> None:
    index = CompatibilityIndex.build([], {}, lambda _: ())
    assert (len(index), index.largest_group_found(), index.compatible_with([])) == (0, (), 0)
    assert [index.has_group(size) for size in (0, 1, 2)] == [True, False, False]
    assert index.draw(1, Stream("key")) is None
    assert CompatibilityIndex.from_hex(index.rows_hex()) == index


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, PAPERS - 1), min_size=1, max_size=4, unique=True), max_size=8),
    st.lists(st.tuples(st.integers(0, PAPERS - 1), st.integers(0, PAPERS - 1)), max_size=12),
    st.lists(st.integers(0, 30), min_size=PAPERS, max_size=PAPERS),
)
def test_rows_are_what_a_comparison_of_all_pairs_gives(
    paths: list[list[int]], edges: list[tuple[int, int]], names: list[int]
) -> None:
    titles = {paper: str(name) for paper, name in enumerate(names)}
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = CitationGraph.from_citations(range(PAPERS), pairs[:, 0], pairs[:, 1])
    index = CompatibilityIndex.build(paths, titles, graph)
    known = set(edges) | {(other, one) for one, other in edges}
    for one, left in enumerate(paths):
        for other, right in enumerate(paths):
            apart = one != other and all(
                a != b and titles[a] != titles[b] and (a, b) not in known for a in left for b in right
            )
            assert index.compatible(one, other) == apart


@settings(max_examples=80, deadline=None)
@given(indexes())
def test_groups_are_found_exactly_when_there_are_some(index: CompatibilityIndex) -> None:
    for size in range(5):
        exists = any(fits(index, group) for group in combinations(range(len(index)), size))
        assert index.has_group(size) == exists
    group = index.largest_group_found()
    assert fits(index, group)
    assert list(group) == sorted(set(group))
    largest = max(size for size in range(10) if any(fits(index, g) for g in combinations(range(len(index)), size)))
    assert len(group) <= largest
    assert len(group) >= min(largest, 2)


def test_an_exhaustive_look_finds_the_group_that_greed_misses_and_none_where_there_is_none() -> None:
    # The hub of many pairs leads a greedy search away from the one group of four.
    graph = nx.disjoint_union(nx.complete_multipartite_graph(12, 12, 12), nx.complete_graph(4))
    assert index_of(graph).has_group(4)
    assert not index_of(nx.complete_multipartite_graph(12, 12, 12)).has_group(4)
    # No triangle, though no three classes hold it: the Grötzsch graph needs four colours.
    assert not index_of(nx.mycielski_graph(4)).has_group(3)


@pytest.mark.parametrize("chance", [0.1, 0.2, 0.3, 0.4])
def test_the_exhaustive_look_needs_no_greedy_one(chance: float) -> None:
    for seed in range(40):
        graph = nx.gnp_random_graph(24, chance, seed=seed)
        index = index_of(graph)
        largest = max(len(clique) for clique in nx.find_cliques(graph))
        for size in (2, 3, 4):
            assert index._holds(index.compatible_with([]), size) == (largest >= size)


def test_groups_of_more_than_four_are_not_looked_for() -> None:
    with pytest.raises(ValueError, match="up to 4 paths, not 5"):
        index_of(nx.complete_graph(6)).has_group(5)


def test_a_group_of_paths_that_are_all_compatible_is_the_whole_pool() -> None:
    assert index_of(nx.complete_graph(7)).largest_group_found() == tuple(range(7))
    assert len(index_of(nx.complete_multipartite_graph(5, 4, 3)).largest_group_found()) == 3


@settings(max_examples=80, deadline=None)
@given(indexes())
def test_counts_are_of_ordered_tuples(index: CompatibilityIndex) -> None:
    assert index.count_tuples(1) == len(index)
    assert index.count_tuples(2) == sum(fits(index, pair) for pair in permutations(range(len(index)), 2))
    with pytest.raises(ValueError, match="tuples of 3 paths"):
        index.count_tuples(3)


@settings(max_examples=80, deadline=None)
@given(indexes(), st.lists(st.integers(0, 8), max_size=3))
def test_compatible_with_are_the_paths_that_fit_all_chosen_ones(index: CompatibilityIndex, chosen: list[int]) -> None:
    chosen = [place for place in chosen if place < len(index)]
    expected = [other for other in range(len(index)) if all(index.compatible(one, other) for one in chosen)]
    assert list(members(index.compatible_with(chosen))) == expected


@pytest.mark.parametrize("size", [1, 2, 3])
def test_drawn_tuples_are_uniform_over_the_compatible_ordered_tuples(size: int) -> None:
    # Paths with many and with few partners: choosing one after the other would favour the latter.
    index = index_of(nx.Graph([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (2, 4), (4, 5), (3, 5), (2, 5)]))
    stream = Stream("uniform", size)
    drawn = Counter(index.draw(size, stream) for _ in range(6_000))
    expected = {group for group in permutations(range(6), size) if fits(index, group)}
    assert set(drawn) == expected
    assert chisquare(list(drawn.values())).pvalue > 0.001


def test_a_draw_gives_up_after_its_tries() -> None:
    index = index_of(nx.empty_graph(5))
    assert index.draw(2, Stream("key"), max_tries=50) is None
    assert index.draw(6, Stream("key")) is None
    with pytest.raises(ValueError, match="at least one path, not 0"):
        index.draw(0, Stream("key"))


@settings(max_examples=60, deadline=None)
@given(indexes(12))
def test_rows_come_back_from_their_hexadecimal_form(index: CompatibilityIndex) -> None:
    rows = index.rows_hex()
    assert {len(row) for row in rows} <= {max(1, -(-len(index) // 4))}
    assert CompatibilityIndex.from_hex(rows) == index


def test_hexadecimal_rows_have_the_first_path_as_their_last_digit() -> None:
    assert index_of(nx.path_graph(5)).rows_hex() == ["02", "05", "0a", "14", "08"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["02", "1"], "row 0 must be 1 hexadecimal digits, not '02'"),
        (["2", "g"], "row 1 must be 1 hexadecimal digits, not 'g'"),
        (["2", "F"], "row 1 must be 1 hexadecimal digits, not 'F'"),
        (["2", "5"], "row 1 names a path that is not in the pool, or itself"),
        (["2", "3"], "row 1 names a path that is not in the pool, or itself"),
        (["2", "0"], "row 0 has path 1, but row 1 has not path 0"),
    ],
)
def test_rows_that_are_no_index_are_refused(rows: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CompatibilityIndex.from_hex(rows)
