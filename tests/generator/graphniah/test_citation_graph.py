import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.generator.graphniah.citation_graph import CitationGraph

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


def rows(graph: CitationGraph) -> dict[int, list[int]]:
    return {paper: graph.neighbour_ids(paper) for paper in graph.ids.tolist()}


def test_two_papers_that_cite_each_other_have_one_edge() -> None:
    graph = CitationGraph.from_citations([5, 9], [5, 9], [9, 5])
    assert graph.edges == 1
    assert rows(graph) == {5: [9], 9: [5]}


def test_repeated_citations_self_citations_and_unknown_papers_add_nothing() -> None:
    graph = CitationGraph.from_citations([30, 10, 20], [10, 10, 20, 10, 77, 1], [20, 20, 20, 99, 20, 2])
    assert graph.ids.tolist() == [10, 20, 30]
    assert rows(graph) == {10: [20], 20: [10], 30: []}
    assert graph.offsets.tolist() == [0, 1, 2, 2]
    assert graph.targets.tolist() == [1, 0]
    assert graph.degrees.tolist() == [1, 1, 0]


@pytest.mark.parametrize("ids", [[], [4, 7]])
def test_a_graph_may_have_no_citations_and_no_papers(ids: list[int]) -> None:
    graph = CitationGraph.from_citations(ids, [1], [2])
    assert len(graph) == len(ids)
    assert graph.edges == 0
    assert graph.subgraph(np.zeros(len(ids), np.bool_)).ids.tolist() == []
    assert [part.tolist() for part in graph.edge_list()] == [[], []]


def test_the_largest_corpusids_keep_their_value() -> None:
    large = 2**63 - 1
    graph = CitationGraph.from_citations([large, -3], [large], [-3])
    assert rows(graph) == {-3: [large], large: [-3]}


def test_an_unknown_paper_is_named() -> None:
    graph = CitationGraph.from_citations([1, 5], [1], [5])
    for paper in (0, 3, 6):
        with pytest.raises(KeyError, match=f"paper {paper} is not in the citation graph"):
            graph.node(paper)


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"equal length, not \(2,\) and \(1,\)"):
        CitationGraph.from_citations([1, 2], [1, 2], [2])


@given(EDGES, st.sets(st.integers(0, 9)))
def test_it_is_the_graph_that_networkx_builds(edges: list[tuple[int, int]], ids: set[int]) -> None:
    graph = CitationGraph.from_citations(sorted(ids, reverse=True), *zip(*edges, strict=True) if edges else ([], []))
    other = nx.Graph([(a, b) for a, b in edges if a != b]).subgraph(ids)
    expected = {paper: sorted(other[paper]) if paper in other else [] for paper in sorted(ids)}
    assert rows(graph) == expected
    assert graph.edges == other.number_of_edges()
    for one in range(len(graph)):
        for two in range(len(graph)):
            assert graph.has_edge(one, two) == other.has_edge(int(graph.ids[one]), int(graph.ids[two]))
    assert graph.matrix().toarray().tolist() == [
        [int(graph.has_edge(one, two)) for two in range(len(graph))] for one in range(len(graph))
    ]


@given(EDGES, st.lists(st.booleans(), min_size=10, max_size=10))
def test_a_subgraph_keeps_the_edges_among_its_papers(edges: list[tuple[int, int]], kept: list[bool]) -> None:
    ends = zip(*edges, strict=True) if edges else ([], [])
    part = CitationGraph.from_citations(range(10), *ends).subgraph(np.array(kept))
    ends = zip(*edges, strict=True) if edges else ([], [])
    again = CitationGraph.from_citations([paper for paper in range(10) if kept[paper]], *ends)
    assert rows(part) == rows(again)
    assert part.offsets.tolist() == again.offsets.tolist()
