"""Step 2: components grown from their backbones by preferential attachment (GraphNIAH A.2.3)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, pairwise
from typing import TypeVar

from gniah.cypher.store import GraphStore
from gniah.generator.graphniah.rendering import TitleRegister
from gniah.records.errors import StoreError
from gniah.records.papers import Paper
from gniah.records.streams import Stream

_CACHE_LIMIT = 200_000

_Answer = TypeVar("_Answer")


class Stuck(Exception):
    """A component has no node left that could receive a child before it was full."""

    def __init__(self, component: int) -> None:
        super().__init__(f"component {component} cannot grow any further")
        self.component = component


@dataclass(frozen=True, slots=True)
class StoreUse:
    """How many questions a store was asked, and how many seconds it took to answer them."""

    questions: int = 0
    seconds: float = 0.0

    def __add__(self, other: StoreUse) -> StoreUse:
        return StoreUse(self.questions + other.questions, self.seconds + other.seconds)

    def __sub__(self, other: StoreUse) -> StoreUse:
        return StoreUse(self.questions - other.questions, self.seconds - other.seconds)


class Neighbourhoods:
    """A store's papers and neighbours, each asked for once. One for each process.

    A store that is far away answers many ids as fast as one: so a question takes along up to `store.batch` ids that are
    likely to be asked for next and are not known yet. What is answered does not depend on that.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._cites: dict[int, tuple[list[int], list[int]]] = {}
        self._papers: dict[int, Paper] = {}
        self.use = StoreUse()
        """What the store was asked so far."""

    def of(self, identifier: int, along: Iterable[int] = ()) -> tuple[list[int], list[int]]:
        """Return the sorted ids that a paper cites, and those that cite it. The lists are not to be changed."""
        found = self._cites.get(identifier)
        if found is None:
            if len(self._cites) >= _CACHE_LIMIT:
                self._cites.clear()
            ids = self._with_unknown(identifier, along, self._cites)
            cites = self._timed(lambda: self._store.neighbours(ids, "cites"))
            cited_by = self._timed(lambda: self._store.neighbours(ids, "cited_by"))
            self._cites.update(zip(ids, zip(cites, cited_by, strict=True), strict=True))
            found = self._cites[identifier]
        return found

    def paper(self, identifier: int, along: Iterable[int] = ()) -> Paper:
        """Return a paper's metadata."""
        found = self._papers.get(identifier)
        if found is None:
            if len(self._papers) >= _CACHE_LIMIT:
                self._papers.clear()
            ids = self._with_unknown(identifier, along, self._papers)
            self._papers.update(zip(ids, self._timed(lambda: self._store.papers(ids)), strict=True))
            found = self._papers[identifier]
        return found

    def _with_unknown(self, identifier: int, along: Iterable[int], known: Container[int]) -> list[int]:
        ids = {identifier: None}
        if self._store.batch > 1:
            for other in along:
                if other not in known:
                    ids[other] = None
                if len(ids) >= self._store.batch:
                    break
        return list(ids)

    def _timed(self, ask: Callable[[], _Answer]) -> _Answer:
        begun = time.perf_counter()
        answer = ask()
        self.use += StoreUse(1, time.perf_counter() - begun)
        return answer


@dataclass(slots=True)
class Component:
    """One component: its backbone, then its grown papers in the order they were added.

    `edges` holds (citing, cited): the backbone's, then one for each grown paper.
    """

    backbone: tuple[int, ...]
    papers: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def source(self) -> int:
        """Return s = p_k of a backbone of 3k - 2 papers (GraphNIAH A.2.2)."""
        return self.backbone[(len(self.backbone) + 2) // 3 - 1]

    @property
    def target(self) -> int:
        """Return t = p_(2k-1)."""
        return self.backbone[2 * ((len(self.backbone) + 2) // 3) - 2]

    @property
    def true_path(self) -> tuple[int, ...]:
        """Return the k papers from s to t."""
        k = (len(self.backbone) + 2) // 3
        return self.backbone[k - 1 : 2 * k - 1]


def backbone_component(backbone: Sequence[int], neighbourhoods: Neighbourhoods, stream: Stream) -> Component:
    """Return a component that is its backbone only. A pair that cites both ways shows one direction, drawn here."""
    component = Component(tuple(backbone), list(backbone))
    for one, other in pairwise(backbone):
        cites, cited_by = neighbourhoods.of(one, backbone)
        forward, backward = other in cites, other in cited_by
        if not (forward or backward):
            raise ValueError(f"papers {one} and {other} stand together on a path and do not cite each other")
        if forward and backward:
            forward = stream.coin()
        component.edges.append((one, other) if forward else (other, one))
    return component


@dataclass(slots=True)
class Growth:
    """The state of an example while it grows: which papers are taken, and why candidates were refused."""

    neighbourhoods: Neighbourhoods
    register: TitleRegister
    taken: set[int] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)

    def refusal(self, candidate: int, along: Iterable[int] = ()) -> str | None:
        """Return why a paper cannot enter the example, or None when it can. `along` may be asked about next."""
        if candidate in self.taken:
            return "taken"
        paper = self.neighbourhoods.paper(candidate, along)
        if not paper.usable:
            return "unusable"
        return None if self.register.accepts(paper) else "confusable"

    def enter(self, identifier: int) -> None:
        """Take a paper into the example."""
        self.taken.add(identifier)
        self.register.add(self.neighbourhoods.paper(identifier))

    def leave(self, component: Component) -> None:
        """Take a component's papers out of the example again."""
        for identifier in component.papers:
            self.taken.discard(identifier)
            self.register.remove(self.neighbourhoods.paper(identifier))


class Weights:
    """Integer weights of numbered nodes with draws in proportion to them, in logarithmic time (a Fenwick tree)."""

    def __init__(self, capacity: int) -> None:
        self._size = 1 << max(capacity - 1, 1).bit_length()
        self._tree = [0] * (self._size + 1)
        self._values = [0] * self._size

    @property
    def total(self) -> int:
        """Return the sum of all weights."""
        return self._tree[self._size]

    def set(self, node: int, weight: int) -> None:
        """Give a node a weight."""
        change = weight - self._values[node]
        if not change:
            return
        self._values[node] = weight
        position = node + 1
        tree, size = self._tree, self._size
        while position <= size:
            tree[position] += change
            position += position & -position

    def at(self, mass: int) -> int:
        """Return the node at which the running sum of weights first exceeds `mass` (0 <= mass < total)."""
        tree, position, step = self._tree, 0, self._size
        while step:
            following = position + step
            if following <= self._size and tree[following] <= mass:
                position = following
                mass -= tree[following]
            step >>= 1
        return position


def grow(
    components: Sequence[Component],
    size: int,
    alpha: Fraction,
    growth: Growth,
    stream: Stream,
    *,
    weights_of: Callable[[int], Weights] = Weights,
) -> None:
    """Grow all components in one loop until each has `size` papers, in place.

    At each step a node is drawn with weight alpha when it has received no child here, else with the number of its
    children; then a direction, then an untried neighbour of that direction (or of the other when there is none). A
    refused candidate counts as tried for that node, and the whole step is drawn again. Weights are exact: alpha is
    p/q, so a node weighs p without children and q times their number with. Raises Stuck for a component that
    cannot be filled.
    """
    loop = _Loop(components, size, alpha, growth, stream, weights_of)
    loop.run()


class _Loop:
    def __init__(
        self,
        components: Sequence[Component],
        size: int,
        alpha: Fraction,
        growth: Growth,
        stream: Stream,
        weights_of: Callable[[int], Weights],
    ) -> None:
        self._components = components
        self._size = size
        self._alpha = alpha
        self._growth = growth
        self._stream = stream
        self._weights = weights_of(size * len(components))
        self._nodes: list[int] = []
        self._home: list[int] = []
        self._children: list[int] = []
        # None for a grown paper until it is drawn: it has a neighbour, its parent, and need not be asked about before.
        self._untried: list[tuple[list[int], list[int]] | None] = []
        self._members: list[list[int]] = [[] for _ in components]
        self._open = [0] * len(components)
        self._missing = sum(size - len(component.papers) for component in components)
        for home, component in enumerate(components):
            for identifier in component.papers:
                self._add_node(identifier, home)
                node = len(self._nodes) - 1
                if not any(self._load(node)):
                    self._close(node)

    def run(self) -> None:
        for home, component in enumerate(self._components):
            if len(component.papers) >= self._size:
                self._fill(home)
            elif not self._open[home]:
                raise Stuck(home)
        while self._missing:
            self._step()

    def _step(self) -> None:
        node = self._weights.at(self._stream.below(self._weights.total))
        direction = self._stream.below(2)
        lists = self._untried[node] or self._load(node)
        if not any(lists):
            raise _one_sided(self._nodes[node])
        if not lists[direction]:
            direction = 1 - direction
        candidate = self._take(lists, direction)
        home = self._home[node]
        refusal = self._growth.refusal(candidate, chain(lists[direction], lists[1 - direction]))
        if refusal is not None:
            self._growth.refused[refusal] += 1
            if not (lists[0] or lists[1]):
                self._close(node)
                if not self._open[home]:
                    raise Stuck(home)
            return
        self._accept(node, home, candidate, direction)

    def _accept(self, node: int, home: int, candidate: int, direction: int) -> None:
        component = self._components[home]
        parent = self._nodes[node]
        component.papers.append(candidate)
        component.edges.append((parent, candidate) if direction == 0 else (candidate, parent))
        self._growth.enter(candidate)
        self._missing -= 1
        self._children[node] += 1
        self._add_node(candidate, home)
        if len(component.papers) >= self._size:
            self._fill(home)
            return
        lists = self._untried[node]
        if lists and (lists[0] or lists[1]):
            self._weights.set(node, self._weight(node))
        else:
            self._close(node)
            if not self._open[home]:
                raise Stuck(home)

    def _take(self, lists: tuple[list[int], list[int]], direction: int) -> int:
        """Draw an untried neighbour and mark it as tried, in both directions when the pair cites both ways."""
        chosen = lists[direction]
        place = self._stream.below(len(chosen))
        candidate = chosen[place]
        chosen[place] = chosen[-1]
        chosen.pop()
        other = lists[1 - direction]
        if other and candidate in other:
            other.remove(candidate)
        return candidate

    def _add_node(self, identifier: int, home: int) -> None:
        node = len(self._nodes)
        self._nodes.append(identifier)
        self._home.append(home)
        self._children.append(0)
        self._untried.append(None)
        self._members[home].append(node)
        self._open[home] += 1
        self._weights.set(node, self._weight(node))

    def _load(self, node: int) -> tuple[list[int], list[int]]:
        """Find out a node's neighbours, in one question with those of the whole frontier where that costs no more."""
        frontier = (self._nodes[other] for other, lists in enumerate(self._untried) if lists is None)
        cites, cited_by = self._growth.neighbourhoods.of(self._nodes[node], frontier)
        lists = self._untried[node] = (list(cites), list(cited_by))
        return lists

    def _weight(self, node: int) -> int:
        children = self._children[node]
        return children * self._alpha.denominator if children else self._alpha.numerator

    def _close(self, node: int) -> None:
        self._weights.set(node, 0)
        self._open[self._home[node]] -= 1

    def _fill(self, home: int) -> None:
        for node in self._members[home]:
            self._weights.set(node, 0)


def _one_sided(identifier: int) -> StoreError:
    return StoreError(
        f"the store gives paper {identifier} as a neighbour, and no neighbours of it", remedy="import the graph again"
    )
