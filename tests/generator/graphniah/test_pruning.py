from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.pruning import Bounds, bounds, depth_within, path_length, prune

Pair = tuple[dict[int, int], dict[int, int]]


def graph_of(graph: nx.Graph) -> CitationGraph:
    edges = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    return CitationGraph.from_citations(list(graph.nodes()), edges[:, 0], edges[:, 1])


def found(graph: nx.Graph) -> Pair:
    ours = graph_of(graph)
    both = bounds(ours)
    papers = ours.ids.tolist()
    return dict(zip(papers, both.through.tolist(), strict=True)), dict(zip(papers, both.endpoint.tolist(), strict=True))


def true_longest(graph: nx.Graph) -> Pair:
    """The longest simple path through and from each node: which sets are a path, and where it may end."""
    nodes = sorted(graph)
    place = {node: number for number, node in enumerate(nodes)}
    adjacent = [sum(1 << place[other] for other in graph[node]) for node in nodes]
    ends = [0] * (1 << len(nodes))
    for number in range(len(nodes)):
        ends[1 << number] = 1 << number
    through, endpoint = dict.fromkeys(nodes, 1), dict.fromkeys(nodes, 1)
    for taken, last in enumerate(ends):
        if not last:
            continue
        for number, node in enumerate(nodes):
            if taken >> number & 1:
                through[node] = max(through[node], taken.bit_count())
            if last >> number & 1:
                endpoint[node] = max(endpoint[node], taken.bit_count())
                for following in range(len(nodes)):
                    if adjacent[number] >> following & ~taken >> following & 1:
                        ends[taken | 1 << following] |= 1 << following
    return through, endpoint


def plain_bounds(graph: nx.Graph) -> Pair:
    """The definition, word for word, with both cases of the bound through a paper."""
    blocks = [frozenset(block) for block in nx.biconnected_components(graph)]
    cuts = set(nx.articulation_points(graph))

    def into(block: frozenset[int], paper: int) -> int:
        beyond = [out_of(block, other) for other in block & cuts if other != paper]
        return len(block) - 1 + max(beyond, default=0)

    def out_of(block: frozenset[int], paper: int) -> int:
        return max((into(other, paper) for other in blocks if paper in other and other != block), default=0)

    through, endpoint = {}, {}
    for paper in graph:
        own = [block for block in blocks if paper in block]
        arms = sorted((into(block, paper) for block in own), reverse=True)
        crossing = 1 + sum(arms[:2])
        inside = [
            len(block) + sum(sorted((out_of(block, cut) for cut in block & cuts), reverse=True)[:2]) for block in own
        ]
        through[paper] = max(crossing, *inside) if inside else 1
        endpoint[paper] = 1 + max(arms, default=0)
    return through, endpoint


def plain_prune(graph: nx.Graph, length: int) -> nx.Graph:
    kept = graph.copy()
    while True:
        before = len(kept)
        for component in list(nx.connected_components(kept)):
            if len(component) < length:
                kept.remove_nodes_from(component)
        through, _ = plain_bounds(kept)
        kept.remove_nodes_from([paper for paper, bound in through.items() if bound < length])
        if len(kept) == before:
            return kept


def cliques_glued(sizes: list[int], places: list[int]) -> nx.Graph:
    graph = nx.complete_graph(sizes[0])
    for size, place in zip(sizes[1:], places, strict=False):
        count = len(graph)
        new = [place % count, *range(count, count + size - 1)]
        graph.add_edges_from((a, b) for a in new for b in new if a < b)
    return graph


def cycle_with_tails(one: int, other: int) -> nx.Graph:
    """A cycle of 0 … 5 with tails of two papers at 0 and of one paper at another."""
    graph = nx.cycle_graph(6)
    graph.add_edges_from([(one, 10), (10, 11), (other, 20)])
    return graph


@st.composite
def random_graphs(draw: st.DrawFn, most: int = 10) -> nx.Graph:
    count = draw(st.integers(1, most))
    pairs = [(a, b) for a in range(count) for b in range(a)]
    graph = nx.empty_graph(count)
    if pairs:
        graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=2 * count)))
    return graph


@st.composite
def random_trees(draw: st.DrawFn, most: int = 11) -> nx.Graph:
    parents = draw(st.lists(st.integers(0, 10**6), max_size=most - 1))
    graph = nx.empty_graph(1)
    graph.add_edges_from((parent % child, child) for child, parent in enumerate(parents, 1))
    return graph


def test_without_citations_every_bound_is_the_paper_itself() -> None:
    assert found(nx.empty_graph(0)) == ({}, {})
    assert found(nx.empty_graph(2)) == ({0: 1, 1: 1}, {0: 1, 1: 1})
    assert bounds(graph_of(nx.empty_graph(0))).longest == 0
    assert bounds(graph_of(nx.empty_graph(3))).longest == 1


def test_a_single_edge_is_a_path_of_two() -> None:
    assert found(nx.path_graph(2)) == ({0: 2, 1: 2}, {0: 2, 1: 2})


def test_a_chain_has_the_whole_of_it_through_every_paper() -> None:
    assert found(nx.path_graph(5)) == (dict.fromkeys(range(5), 5), {0: 5, 1: 4, 2: 3, 3: 4, 4: 5})


def test_a_star_has_paths_of_three() -> None:
    assert found(nx.star_graph(4)) == (dict.fromkeys(range(5), 3), {0: 2, 1: 3, 2: 3, 3: 3, 4: 3})


@pytest.mark.parametrize("graph", [nx.cycle_graph(6), nx.complete_graph(6), nx.ladder_graph(3)])
def test_a_single_block_allows_all_of_it_from_everywhere(graph: nx.Graph) -> None:
    assert found(graph) == (dict.fromkeys(range(6), 6), dict.fromkeys(range(6), 6))


@pytest.mark.parametrize("other", [1, 2, 3])
def test_a_cycle_with_two_tails_has_its_longest_path_through_a_third_paper(other: int) -> None:
    through, endpoint = found(cycle_with_tails(0, other))
    assert through == dict.fromkeys([0, 1, 2, 3, 4, 5, 10, 11, 20], 9)
    assert endpoint[11] == 9
    assert endpoint[20] == 9
    assert endpoint[0] == 7
    assert endpoint[other] == 8
    assert endpoint[5] == 8


def test_a_barbell_is_counted_whole() -> None:
    through, endpoint = found(nx.barbell_graph(4, 2))
    assert set(through.values()) == {10}
    assert endpoint == {0: 10, 1: 10, 2: 10, 3: 7, 4: 6, 5: 6, 6: 7, 7: 10, 8: 10, 9: 10}


def test_components_do_not_see_each_other() -> None:
    through, endpoint = found(nx.disjoint_union(nx.path_graph(3), nx.cycle_graph(4)))
    assert through == {0: 3, 1: 3, 2: 3, 3: 4, 4: 4, 5: 4, 6: 4}
    assert endpoint == {0: 3, 1: 2, 2: 3, 3: 4, 4: 4, 5: 4, 6: 4}


def connected_atlas() -> Iterator[nx.Graph]:
    for graph in nx.graph_atlas_g():
        if len(graph) and nx.is_connected(graph):
            yield graph


def test_no_bound_is_under_the_longest_path_of_any_connected_graph_of_up_to_seven_papers() -> None:
    count = 0
    for graph in connected_atlas():
        count += 1
        for bound, truth in zip(found(graph), true_longest(graph), strict=True):
            assert all(bound[paper] >= truth[paper] for paper in graph), list(graph.edges())
    assert count == 996


def test_bounds_are_the_plain_definition_on_any_connected_graph_of_up_to_six_papers() -> None:
    for graph in connected_atlas():
        if len(graph) <= 6:
            assert found(graph) == plain_bounds(graph), list(graph.edges())


@settings(max_examples=60, deadline=None)
@given(random_graphs())
def test_no_bound_is_under_the_longest_path_of_a_random_graph(graph: nx.Graph) -> None:
    for bound, truth in zip(found(graph), true_longest(graph), strict=True):
        assert all(bound[paper] >= truth[paper] for paper in graph)


@settings(max_examples=40, deadline=None)
@given(random_trees())
def test_bounds_are_exact_on_trees(graph: nx.Graph) -> None:
    assert found(graph) == true_longest(graph)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), st.lists(st.integers(0, 99), min_size=3, max_size=3))
def test_bounds_are_exact_on_cliques_glued_at_cut_papers(sizes: list[int], places: list[int]) -> None:
    graph = cliques_glued(sizes, places)
    assert found(graph) == true_longest(graph)


@settings(max_examples=100, deadline=None)
@given(st.one_of(random_graphs(30), random_trees(30)))
def test_bounds_are_the_plain_definition_on_larger_graphs(graph: nx.Graph) -> None:
    assert found(graph) == plain_bounds(graph)


@settings(max_examples=300, deadline=None)
@given(st.one_of(random_graphs(25), random_trees(25)), st.integers(1, 12))
def test_what_is_kept_is_what_the_plain_definition_keeps(graph: nx.Graph, length: int) -> None:
    expected = plain_prune(graph, length)
    ours = graph_of(graph)
    for known in (None, bounds(ours)):
        pruned = prune(ours, length, known)
        assert pruned.graph.ids.tolist() == sorted(expected)
        assert pruned.edges == expected.number_of_edges()
        assert pruned.rounds == int(len(expected) < len(graph))
        assert pruned.components == nx.number_connected_components(expected)
        through, endpoint = plain_bounds(expected)
        assert pruned.bounds.through.tolist() == [through[paper] for paper in sorted(expected)]
        assert pruned.bounds.endpoint.tolist() == [endpoint[paper] for paper in sorted(expected)]


def test_pruning_leaves_the_bounds_of_what_it_keeps_as_they_were() -> None:
    for graph in connected_atlas():
        ours = graph_of(graph)
        for length in range(2, len(graph) + 1):
            pruned = prune(ours, length)
            again = bounds(pruned.graph)
            assert pruned.bounds.through.tolist() == again.through.tolist()
            assert pruned.bounds.endpoint.tolist() == again.endpoint.tolist()


@settings(max_examples=40, deadline=None)
@given(random_graphs(9))
def test_no_paper_of_a_long_enough_path_is_dropped(graph: nx.Graph) -> None:
    through, _ = true_longest(graph)
    for length in range(1, 10):
        kept = set(prune(graph_of(graph), length).graph.ids.tolist())
        assert {paper for paper in graph if through[paper] >= length} <= kept


def test_pruning_says_what_it_did() -> None:
    graph = nx.disjoint_union_all([nx.path_graph(4), nx.star_graph(5), nx.path_graph(2)])
    pruned = prune(graph_of(graph), 4)
    assert pruned.graph.ids.tolist() == [0, 1, 2, 3]
    assert (pruned.papers_before, pruned.edges_before) == (12, 9)
    assert (pruned.papers, pruned.edges, pruned.components, pruned.rounds) == (4, 3, 1, 1)
    assert pruned.bounds.through.tolist() == [4, 4, 4, 4]
    assert pruned.bounds.endpoint.tolist() == [4, 3, 3, 4]


def test_nothing_is_left_when_no_paper_has_a_path() -> None:
    pruned = prune(graph_of(nx.path_graph(5)), 6)
    assert (pruned.papers, pruned.edges, pruned.components) == (0, 0, 0)


def test_a_path_has_at_least_one_paper() -> None:
    with pytest.raises(ValueError, match="at least one paper, not 0"):
        prune(graph_of(nx.path_graph(2)), 0)


def test_bounds_need_no_stack_however_long_a_chain_is() -> None:
    count = 200_000
    chain = np.arange(count)
    graph = CitationGraph.from_citations(chain, chain[:-1], chain[1:])
    both: Bounds = bounds(graph)
    assert both.through.min() == count
    assert both.endpoint.tolist() == np.maximum(chain + 1, count - chain).tolist()


def test_a_depth_of_k_takes_three_k_less_two_papers() -> None:
    assert [path_length(depth) for depth in (2, 4, 8, 16, 32)] == [4, 10, 22, 46, 94]
    with pytest.raises(ValueError, match="at least 2, not 1"):
        path_length(1)


def test_the_greatest_depth_fits_the_longest_path() -> None:
    assert [depth_within(length) for length in (0, 3, 4, 6, 7, 93, 94)] == [None, None, 2, 2, 3, 31, 32]
