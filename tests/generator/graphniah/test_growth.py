from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from gniah.cypher.store import Direction, GraphStore
from gniah.generator.graphniah.growth import (
    Component,
    Growth,
    Neighbourhoods,
    Stuck,
    Weights,
    backbone_component,
    grow,
)
from gniah.generator.graphniah.rendering import TitleRegister
from gniah.records.errors import StoreError
from gniah.records.papers import Paper
from gniah.records.streams import Stream

MakePaper = Callable[..., Paper]
MakeStore = Callable[..., GraphStore]
Edges = list[tuple[int, int]]

ALPHA = Fraction(1, 10)
UNLIKELY = 1e-4
"""Streams are fixed, so a test of chance passes always or never."""


def started(store: GraphStore, backbones: Sequence[Sequence[int]], key: str = "k") -> tuple[list[Component], Growth]:
    """Backbones in place, all of their papers entered."""
    growth = Growth(Neighbourhoods(store), TitleRegister())
    stream = Stream(key, "backbones")
    components = [backbone_component(backbone, growth.neighbourhoods, stream) for backbone in backbones]
    for component in components:
        for identifier in component.papers:
            assert growth.refusal(identifier) is None
            growth.enter(identifier)
    return components, growth


def grown(
    store: GraphStore, backbones: Sequence[Sequence[int]], size: int, alpha: Fraction = ALPHA, key: str = "k"
) -> tuple[list[Component], Growth]:
    components, growth = started(store, backbones, key)
    grow(components, size, alpha, growth, Stream(key, "growth"))
    return components, growth


def distant(store: GraphStore, batch: int) -> GraphStore:
    """The same store, of which it is best to ask so much at once."""
    other = copy.copy(store)
    other.batch = batch
    return other


# --- the weights ------------------------------------------------------------------------------------------------


class PlainWeights(Weights):
    """The same draws by adding up all weights each time."""

    def __init__(self, capacity: int) -> None:
        self.values = [0] * capacity

    @property
    def total(self) -> int:
        return sum(self.values)

    def set(self, node: int, weight: int) -> None:
        self.values[node] = weight

    def at(self, mass: int) -> int:
        running = 0
        for node, weight in enumerate(self.values):
            running += weight
            if running > mass:
                return node
        raise AssertionError("the mass is not below the total")


@given(
    st.integers(1, 20).flatmap(
        lambda capacity: st.tuples(
            st.just(capacity),
            st.lists(st.tuples(st.integers(0, capacity - 1), st.integers(0, 9)), max_size=60),
        )
    )
)
def test_weights_draw_the_node_that_a_plain_running_sum_draws(case: tuple[int, list[tuple[int, int]]]) -> None:
    capacity, updates = case
    tree, plain = Weights(capacity), PlainWeights(capacity)
    for node, weight in updates:
        tree.set(node, weight)
        plain.set(node, weight)
        assert tree.total == plain.total
    assert [tree.at(mass) for mass in range(tree.total)] == [plain.at(mass) for mass in range(plain.total)]


def test_weights_are_exact_far_beyond_64_bits() -> None:
    weights = Weights(3)
    weights.set(0, 10**30)
    weights.set(2, 1)
    assert weights.total == 10**30 + 1
    assert weights.at(10**30 - 1) == 0
    assert weights.at(10**30) == 2


# --- the whole distribution -------------------------------------------------------------------------------------

Outcome = tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...] | str


@dataclass(frozen=True)
class State:
    """A growing example: the papers and edges of each component, and (children, untried) of each node."""

    papers: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[tuple[int, int], ...], ...]
    nodes: frozenset[tuple[int, int, tuple[tuple[int, ...], tuple[int, ...]]]]

    def steps(self, store: GraphStore, size: int, alpha: Fraction) -> Iterator[tuple[State | str, Fraction]]:
        """Every draw of SPEC Step 2 with its probability, as it is written there."""
        known = {node: (children, untried) for node, children, untried in self.nodes}
        weights = {
            (home, node): Fraction(known[node][0]) or alpha
            for home, members in enumerate(self.papers)
            for node in members
            if len(members) < size and any(known[node][1])
        }
        growing = {home for home, members in enumerate(self.papers) if len(members) < size}
        if growing - {home for home, _ in weights}:
            yield "stuck", Fraction(1)
            return
        total = sum(weights.values())
        taken = {node for members in self.papers for node in members}
        for ((home, node), weight), way in itertools.product(weights.items(), (0, 1)):
            children, untried = known[node]
            direction = way if untried[way] else 1 - way
            for candidate in untried[direction]:
                one, other = (tuple(c for c in side if c != candidate) for side in untried)
                chance = weight / total / 2 / len(untried[direction])
                if candidate in taken:
                    yield State(self.papers, self.edges, rows({**known, node: (children, (one, other))})), chance
                    continue
                edge = (node, candidate) if direction == 0 else (candidate, node)
                after = {**known, node: (children + 1, (one, other)), candidate: (0, untried_at(store, candidate))}
                yield (
                    State(extended(self.papers, home, candidate), extended(self.edges, home, edge), rows(after)),
                    chance,
                )


def rows(
    known: Mapping[int, tuple[int, tuple[tuple[int, ...], tuple[int, ...]]]],
) -> frozenset[tuple[int, int, tuple[tuple[int, ...], tuple[int, ...]]]]:
    return frozenset((node, *values) for node, values in known.items())


def untried_at(store: GraphStore, identifier: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(store.neighbours((identifier,), "cites")[0]), tuple(store.neighbours((identifier,), "cited_by")[0])


def extended(rows: tuple[tuple[Any, ...], ...], home: int, item: object) -> tuple[tuple[Any, ...], ...]:
    return tuple((*row, item) if place == home else row for place, row in enumerate(rows))


def exact_outcomes(
    store: GraphStore, components: Sequence[Component], size: int, alpha: Fraction
) -> dict[Outcome, Fraction]:
    """The probability of every outcome, by following every draw with its own probability."""
    nodes = {node: (0, untried_at(store, node)) for component in components for node in component.papers}
    begin = State(
        tuple(tuple(one.papers) for one in components), tuple(tuple(one.edges) for one in components), rows(nodes)
    )
    found: dict[Outcome, Fraction] = {}
    states: dict[State, Fraction] = {begin: Fraction(1)}
    while states:
        following: dict[State, Fraction] = {}
        for state, chance in states.items():
            for after, share in state.steps(store, size, alpha):
                if isinstance(after, str):
                    found[after] = found.get(after, Fraction(0)) + chance * share
                elif all(len(members) == size for members in after.papers):
                    outcome = tuple(zip(after.papers, after.edges, strict=True))
                    found[outcome] = found.get(outcome, Fraction(0)) + chance * share
                else:
                    following[after] = following.get(after, Fraction(0)) + chance * share
        states = following
    assert sum(found.values()) == 1
    return found


def drawn_outcomes(
    store: GraphStore, components: Sequence[Component], size: int, alpha: Fraction, draws: int
) -> Counter[Outcome]:
    neighbourhoods = Neighbourhoods(store)
    found: Counter[Outcome] = Counter()
    for number in range(draws):
        copies = [Component(one.backbone, list(one.papers), list(one.edges)) for one in components]
        growth = Growth(neighbourhoods, TitleRegister())
        for component in copies:
            for identifier in component.papers:
                growth.enter(identifier)
        try:
            grow(copies, size, alpha, growth, Stream("chance", number))
        except Stuck:
            found["stuck"] += 1
        else:
            found[tuple((tuple(one.papers), tuple(one.edges)) for one in copies)] += 1
    return found


def agree(drawn: Counter[Outcome], exact: dict[Outcome, Fraction]) -> None:
    assert set(drawn) <= set(exact)
    draws = sum(drawn.values())
    common = [outcome for outcome, chance in exact.items() if chance * draws >= 5]
    counts = [drawn[outcome] for outcome in common]
    expected = [float(exact[outcome] * draws) for outcome in common]
    if len(common) < len(exact):
        counts.append(draws - sum(counts))
        expected.append(draws - sum(expected))
    if len(counts) > 1:
        assert chisquare(counts, expected).pvalue > UNLIKELY


def test_a_case_small_enough_to_work_out_by_hand(store_of: MakeStore) -> None:
    store = store_of([(1, 2), (1, 3), (2, 4), (3, 5)])
    component = Component((1,), [1])
    half = Fraction(1, 2)
    exact = exact_outcomes(store, [component], 3, half)
    # 2 or 3 comes first. Then node 1 weighs 1 and the new one 1/2; half of the new one's draws try node 1, which
    # is taken, and are drawn again: 1/3 (1/2 + 1/2 * 1/3) = 2/9 for the new one's own reference.
    by_papers = {outcome[0][0]: chance for outcome, chance in exact.items() if not isinstance(outcome, str)}
    assert by_papers == {
        (1, 2, 3): Fraction(7, 18),
        (1, 2, 4): Fraction(1, 9),
        (1, 3, 2): Fraction(7, 18),
        (1, 3, 5): Fraction(1, 9),
    }
    agree(drawn_outcomes(store, [component], 3, half, 4000), exact)


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(5, 2)])
def test_components_come_as_often_as_the_formula_says(store_of: MakeStore, alpha: Fraction) -> None:
    # Two components that meet in 5, a pair that cites both ways (2, 6), and a dead end at 8.
    store = store_of([(1, 2), (3, 4), (1, 5), (3, 5), (2, 6), (6, 2), (7, 3), (4, 8), (9, 1)])
    components, _ = started(store, [(1, 2), (3, 4)])
    exact = exact_outcomes(store, components, 3, alpha)
    assert len(exact) > 10
    agree(drawn_outcomes(store, components, 3, alpha, 6000), exact)


def test_being_stuck_comes_as_often_as_the_formula_says(store_of: MakeStore) -> None:
    store = store_of([(1, 2), (3, 2), (3, 4)])
    components = [Component((1,), [1]), Component((4,), [4])]
    exact = exact_outcomes(store, components, 2, ALPHA)
    assert "stuck" not in exact
    agree(drawn_outcomes(store, components, 2, ALPHA, 2000), exact)
    lonely = [Component((1,), [1]), Component((3,), [3])]
    exact = exact_outcomes(store, lonely, 2, ALPHA)
    # Whoever takes 2 first: 3 may take 4 instead, 1 has nothing else.
    assert exact["stuck"] == Fraction(1, 4)
    agree(drawn_outcomes(store, lonely, 2, ALPHA, 2000), exact)


# --- what every outcome has in common ---------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    count = draw(st.integers(4, 24))
    ends = st.integers(1, count)
    pairs = draw(st.lists(st.tuples(ends, ends).filter(lambda p: p[0] != p[1]), min_size=count, max_size=4 * count))
    return count, pairs


def two_backbones(store: GraphStore, count: int) -> list[tuple[int, ...]]:
    """Two disjoint pairs of papers that cite each other, as far as there are any."""
    found: list[tuple[int, ...]] = []
    used: set[int] = set()
    for one in range(1, count + 1):
        for other in store.neighbours((one,), "cites")[0]:
            if len(found) < 2 and not used & {one, other}:
                found.append((one, other))
                used |= {one, other}
    return found


@given(graphs(), st.integers(2, 8), st.sampled_from(["0.1", "1", "0.000001", "999999"]), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_components_are_trees_of_real_citations_that_share_nothing(
    paper: MakePaper, store_of: MakeStore, graph: tuple[int, Edges], size: int, alpha: str, key: int
) -> None:
    count, pairs = graph
    # Every third title is one of a few, and some papers have no author.
    papers = [
        paper(n, f"Twin {n % 2}" if n % 3 == 0 else None, authors=() if n % 7 == 6 else (f"Author {n}",))
        for n in range(1, count + 1)
    ]
    store = store_of(pairs, papers)
    growth = Growth(Neighbourhoods(store), TitleRegister())
    components = []
    for backbone in two_backbones(store, count):
        component = backbone_component(backbone, growth.neighbourhoods, Stream("mutual", key))
        for identifier in backbone:
            if growth.refusal(identifier) is not None:
                return
            growth.enter(identifier)
        components.append(component)
    plain, plain_growth = copy.deepcopy(components), copy.deepcopy(growth)
    far, far_growth = copy.deepcopy(components), copy.deepcopy(growth)
    far_growth.neighbourhoods = Neighbourhoods(distant(store, 5))
    ended = []
    for some, state, weights_of in (
        (components, growth, Weights),
        (plain, plain_growth, PlainWeights),
        (far, far_growth, Weights),
    ):
        try:
            grow(some, size, Fraction(alpha), state, Stream("growth", key), weights_of=weights_of)
            ended.append(-1)
        except Stuck as stuck:
            ended.append(stuck.component)
    # The tree of weights and a plain sum come to the same, draw by draw.
    assert ended[0] == ended[1]
    assert components == plain
    assert growth.refused == plain_growth.refused
    # So do questions that take others along.
    assert (ended[0], components, growth.refused) == (ended[2], far, far_growth.refused)
    everyone = [identifier for component in components for identifier in component.papers]
    assert len(set(everyone)) == len(everyone)
    assert growth.taken == set(everyone)
    titles = [one.title_key for one in store.papers(everyone)]
    assert len(set(titles)) == len(titles)
    for component in components:
        tree = nx.Graph(component.edges)
        assert nx.is_tree(tree)
        assert set(tree) == set(component.papers)
        assert len(component.edges) == len(component.papers) - 1
        assert set(component.edges) <= set(pairs)
        assert all(one.usable for one in store.papers(component.papers))
        if ended[0] == -1:
            assert len(component.papers) == size
    if ended[0] >= 0:
        assert len(components[ended[0]].papers) < size


def test_a_pair_that_cites_both_ways_shows_either_direction_equally_often(store_of: MakeStore) -> None:
    store = store_of([(1, 2), (2, 1), (3, 2)])
    neighbourhoods = Neighbourhoods(store)
    backbones = Counter(
        tuple(backbone_component((1, 2, 3), neighbourhoods, Stream("b", number)).edges) for number in range(2000)
    )
    assert set(backbones) == {((1, 2), (3, 2)), ((2, 1), (3, 2))}
    assert chisquare(list(backbones.values())).pvalue > UNLIKELY
    grown_edges: Counter[tuple[int, int]] = Counter()
    for number in range(2000):
        components, growth = started(store_of([(1, 2), (2, 1)]), [(1,)])
        grow(components, 2, ALPHA, growth, Stream("g", number))
        grown_edges.update(components[0].edges)
    assert set(grown_edges) == {(1, 2), (2, 1)}
    assert sum(grown_edges.values()) == 2000
    assert chisquare(list(grown_edges.values())).pvalue > UNLIKELY


def test_the_direction_is_drawn_before_the_neighbour(store_of: MakeStore) -> None:
    # Nine papers cite 1, which cites one: that one is taken half of the time.
    store = store_of([(1, 2), *((citing, 1) for citing in range(3, 12))])
    first: Counter[int] = Counter()
    for number in range(3000):
        components, growth = started(store, [(1,)])
        grow(components, 2, ALPHA, growth, Stream("d", number))
        first[components[0].papers[1]] += 1
    expected = [1500.0 if identifier == 2 else 1500 / 9 for identifier in range(2, 12)]
    assert chisquare([first[identifier] for identifier in range(2, 12)], expected).pvalue > UNLIKELY


def test_a_backbone_needs_a_citation_between_neighbours(store_of: MakeStore) -> None:
    with pytest.raises(ValueError, match="papers 1 and 3 stand together on a path and do not cite each other"):
        backbone_component((2, 1, 3), Neighbourhoods(store_of([(1, 2), (3, 2)])), Stream("k"))


def test_source_target_and_true_path_stand_where_the_paper_puts_them() -> None:
    deep = Component(tuple(range(1, 11)))  # k = 4: L = 10, s = p_4, t = p_7
    assert (deep.source, deep.target, deep.true_path) == (4, 7, (4, 5, 6, 7))
    least = Component((1, 2, 3, 4))  # k = 2
    assert (least.source, least.target, least.true_path) == (2, 3, (2, 3))


# --- refusals, and no way on ------------------------------------------------------------------------------------


class Recorded(Growth):
    """Growth that remembers every candidate it was asked about."""

    def refusal(self, candidate: int, along: Iterable[int] = ()) -> str | None:
        self.asked.append(candidate)
        return super().refusal(candidate, along)

    asked: list[int]


def test_a_node_never_tries_a_neighbour_twice(paper: MakePaper, store_of: MakeStore) -> None:
    unusable = [paper(number, authors=()) for number in range(2, 30)]
    store = store_of([*((1, n) for n in range(2, 31)), *((n, 1) for n in range(2, 20))], unusable)
    for number in range(30):
        growth = Recorded(Neighbourhoods(store), TitleRegister())
        growth.asked = []
        growth.enter(1)
        component = Component((1,), [1])
        grow([component], 2, ALPHA, growth, Stream("t", number))
        assert component.papers == [1, 30]
        assert len(set(growth.asked)) == len(growth.asked)
        assert growth.refused == ({"unusable": len(growth.asked) - 1} if len(growth.asked) > 1 else {})


def test_refusals_are_counted_by_their_reason(paper: MakePaper, store_of: MakeStore) -> None:
    papers = [paper(1, "One thing"), paper(2, authors=()), paper(3, "one THING!"), paper(4, "Four"), paper(5, "…")]
    components, growth = started(store_of([(1, 2), (1, 3), (4, 1), (5, 1)], papers), [(1,), (4,)])
    with pytest.raises(Stuck):
        grow(components[:1], 2, ALPHA, growth, Stream("k"))
    assert growth.refused == {"taken": 1, "unusable": 2, "confusable": 1}


@pytest.mark.parametrize(
    ("citations", "backbones", "stuck"),
    [
        ([(1, 2), (1, 3)], [(1,), (9,)], 1),  # a paper without any citation
        ([(8, 1), (9, 2), (9, 3)], [(1,), (9,)], 0),  # both of its papers are in before it is full
        ([(1, 2), (1, 3), (7, 9)], [(1,), (9,)], 1),
    ],
)
def test_stuck_names_the_component_that_cannot_grow(
    paper: MakePaper, store_of: MakeStore, citations: Edges, backbones: list[tuple[int, ...]], stuck: int
) -> None:
    components, growth = started(store_of(citations, [paper(9)]), backbones)
    with pytest.raises(Stuck) as caught:
        grow(components, 3, ALPHA, growth, Stream("k"))
    assert caught.value.component == stuck


def test_a_component_that_is_full_at_once_takes_no_part(store_of: MakeStore) -> None:
    components, _ = grown(store_of([(1, 2), (2, 3), (1, 4), (5, 6), (6, 7)]), [(1, 2), (5,)], 2)
    assert [component.papers for component in components] == [[1, 2], [5, 6]]


def test_the_full_component_stops_while_the_other_grows_on(store_of: MakeStore) -> None:
    star = [(1, leaf) for leaf in range(10, 40)] + [(2, leaf) for leaf in range(50, 80)]
    components, _ = grown(store_of(star), [(1,), (2,)], 20)
    assert [len(component.papers) for component in components] == [20, 20]


def test_leaving_restores_the_register_and_the_taken_papers(paper: MakePaper, store_of: MakeStore) -> None:
    titles = {5: "Twice. Said", 6: "Six? Seven. Eight", 7: "Plain"}
    papers = [paper(n, titles.get(n)) for n in range(1, 30)]
    store = store_of([(n, n // 2) for n in range(2, 30)], papers)
    _, growth = started(store, [(1, 2)])
    before = copy.deepcopy((vars(growth.register), growth.taken))
    extra = Component((3,), [3])
    growth.enter(3)
    grow([extra], 7, ALPHA, growth, Stream("k"))
    assert (vars(growth.register), growth.taken) != before
    growth.leave(extra)
    assert (vars(growth.register), growth.taken) == before


# --- alpha ------------------------------------------------------------------------------------------------------


def test_the_least_alpha_makes_a_star(store_of: MakeStore) -> None:
    (component,), _ = grown(
        store_of([(n, n * 40 + leaf) for n in range(1, 41) for leaf in range(1, 41)]), [(1,)], 30, Fraction(1, 10**6)
    )
    assert {citing for citing, _ in component.edges} == {1}


def test_the_greatest_alpha_gives_nearly_every_paper_one_child(store_of: MakeStore) -> None:
    ring = [(number, (number + step) % 1000) for number in range(1000) for step in range(1, 6)]
    (component,), _ = grown(store_of(ring), [(1,)], 60, Fraction(999_999))
    parents = Counter(
        cited if citing == child else citing
        for child, (citing, cited) in zip(component.papers[1:], component.edges, strict=True)
    )
    assert sum(parents.values()) == 59
    assert max(parents.values()) <= 2
    assert len(parents) >= 50


def test_papers_and_neighbours_are_asked_for_once(store_of: MakeStore) -> None:
    store = store_of([(1, 2), (3, 1)])
    neighbourhoods = Neighbourhoods(store)
    assert neighbourhoods.of(1) == ([2], [3])
    assert neighbourhoods.of(1) is neighbourhoods.of(1)
    assert neighbourhoods.paper(1) is neighbourhoods.paper(1)
    assert neighbourhoods.paper(1) == store.papers((1,))[0]


def test_a_distant_store_is_asked_for_a_whole_frontier_at_once(store_of: MakeStore) -> None:
    pairs = [(one, other) for one in range(1, 60) for other in (one + 1, one // 2) if other]
    use = {}
    grown_to = []
    for batch in (1, 40):
        components, growth = grown(distant(store_of(pairs), batch), [(1, 2), (20, 21)], 25)
        use[batch] = growth.neighbourhoods.use.questions
        grown_to.append(components)
    assert grown_to[0] == grown_to[1]
    assert use[40] < use[1] * 2 / 3
    assert growth.neighbourhoods.use.seconds > 0


def test_what_is_taken_along_is_new_and_within_the_batch(store_of: MakeStore) -> None:
    asked: list[list[int]] = []

    class Listening:
        """The same store, which notes what it is asked."""

        batch = 3

        def neighbours(self, ids: Sequence[int], direction: Direction) -> list[list[int]]:
            asked.append(list(ids))
            return store_of([(1, 2), (3, 1), (4, 1)]).neighbours(ids, direction)

    store = cast(GraphStore, Listening())
    neighbourhoods = Neighbourhoods(store)
    assert neighbourhoods.of(1, [1, 2, 2, 3, 4]) == ([2], [3, 4])
    assert neighbourhoods.of(2) == ([], [1])
    assert neighbourhoods.of(4, [1, 2, 3]) == ([1], [])
    assert asked == [[1, 2, 3], [1, 2, 3], [4], [4]]


def test_a_store_whose_directions_disagree_is_named(store_of: MakeStore) -> None:
    class OneSided:
        """The same store, without the neighbours of paper 3."""

        batch = 1
        papers = store_of([(1, 2), (1, 3)]).papers

        def neighbours(self, ids: Sequence[int], direction: Direction) -> list[list[int]]:
            found = store_of([(1, 2), (1, 3)]).neighbours(ids, direction)
            return [[] if one == 3 else others for one, others in zip(ids, found, strict=True)]

    with pytest.raises(StoreError, match=r"paper 3 .*no neighbours"):
        grown(cast(GraphStore, OneSided()), [(1, 2)], 5, Fraction(999999))
