"""The subgraph of one example: backbones drawn from the pool, grown together; more components as distractors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gniah.generator.graphniah.bit_rows import member
from gniah.generator.graphniah.growth import Component, Growth, Neighbourhoods, Stuck, backbone_component, grow
from gniah.generator.graphniah.pool_files import PathPool
from gniah.generator.graphniah.rendering import TitleRegister, paper_block
from gniah.records.errors import ImpossibleRequest
from gniah.records.graphniah.settings import Settings, alpha_fraction
from gniah.records.streams import Stream

# How many whole tuples of paths are drawn before an example is given up.
MOST_DRAWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Sampled:
    """The task components of one attempt, the source's first; which paths they stand on; and what they have taken."""

    components: tuple[Component, ...]
    chosen: tuple[int, ...]
    growth: Growth


class SubgraphSampler:
    """Samples the components of one example. All draws come from streams of its qid; one attempt has its own."""

    def __init__(self, settings: Settings, qid: str, pool: PathPool, neighbourhoods: Neighbourhoods) -> None:
        self._settings = settings
        self._qid = qid
        self._pool = pool
        self._alpha = alpha_fraction(settings.alpha)
        self.neighbourhoods = neighbourhoods
        self.restarts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def sample(self, attempt: int) -> Sampled | None:
        """Draw compatible paths and grow them in one loop; None, counted, when this attempt came to nothing.

        Raises ImpossibleRequest when no paths that can stand together are found at all.
        """
        stream = Stream(self._qid, "backbones", attempt)
        growth = Growth(self.neighbourhoods, TitleRegister(), refused=self.refused)
        chosen = self._draw(stream)
        components = []
        for number in chosen:
            component = self._backbone(number, stream)
            if not enter_backbone(component, growth):
                self.restarts["confusable"] += 1
                return None
            components.append(component)
        size = self._settings.component_node_count
        try:
            grow(components, size, self._alpha, growth, Stream(self._qid, "growth", attempt))
        except Stuck:
            self.restarts["stuck"] += 1
            return None
        return Sampled(tuple(components), chosen, growth)

    def further(self, sampled: Sampled, attempt: int) -> Iterator[tuple[Component, Stream]]:
        """Yield additional components until the pool has none that fits, each with the stream it was drawn from.

        One that is stuck, or whose papers cannot enter, is replaced alone.
        """
        index = self._pool.index
        open_paths = index.compatible_with(sampled.chosen)
        number = 0
        while open_paths:
            stream = Stream(self._qid, "distractors", attempt, number)
            number += 1
            pick = member(open_paths, stream.below(open_paths.bit_count()))
            open_paths &= ~(1 << pick)
            component = self._grown_alone(pick, stream, sampled.growth)
            if component is not None:
                open_paths &= index.compatible_with((pick,))
                yield component, stream

    def blocks(self, component: Component, stream: Stream) -> Iterator[tuple[int, str]]:
        """Yield (paper, text) for each paper that cites one of its component, in the order papers were added.

        The order of references inside a block is random.
        """
        references: dict[int, list[int]] = {}
        for citing, cited in component.edges:
            references.setdefault(citing, []).append(cited)
        paper = self.neighbourhoods.paper
        for identifier in component.papers:
            if identifier in references:
                listed = [paper(reference) for reference in stream.shuffled(references[identifier])]
                yield identifier, paper_block(paper(identifier), listed)

    def _draw(self, stream: Stream) -> tuple[int, ...]:
        drawn = self._pool.index.draw(self._settings.components, stream, MOST_DRAWS)
        if drawn is None:
            raise ImpossibleRequest(
                f"no {self._settings.components} paths of depth {self._settings.question_depth} that can stand "
                f"together were found in {MOST_DRAWS:,} draws",
                remedy="use a smaller depth, a larger pool of paths, or a larger graph",
            )
        return drawn

    def _backbone(self, number: int, stream: Stream) -> Component:
        path = self._pool.paths[number]
        return backbone_component(path[::-1] if stream.coin() else path, self.neighbourhoods, stream)

    def _grown_alone(self, number: int, stream: Stream, growth: Growth) -> Component | None:
        component = self._backbone(number, stream)
        if not enter_backbone(component, growth):
            self.restarts["additional component confusable"] += 1
            return None
        try:
            grow([component], self._settings.component_node_count, self._alpha, growth, stream)
        except Stuck:
            growth.leave(component)
            self.restarts["additional component stuck"] += 1
            return None
        return component


def enter_backbone(component: Component, growth: Growth) -> bool:
    """Enter a backbone's papers; when one cannot enter, take the others out again and say so."""
    entered: list[int] = []
    for identifier in component.papers:
        if growth.refusal(identifier, component.papers) is not None:
            growth.leave(Component(component.backbone, entered))
            return False
        growth.enter(identifier)
        entered.append(identifier)
    return True


def visible(component: Component, papers_with_blocks: Sequence[int]) -> Component:
    """Return what a cut component shows: the edges of its kept blocks, and the papers on them."""
    kept = set(papers_with_blocks)
    edges = [edge for edge in component.edges if edge[0] in kept]
    shown = {identifier for edge in edges for identifier in edge}
    return Component(
        tuple(identifier for identifier in component.backbone if identifier in shown),
        [identifier for identifier in component.papers if identifier in shown],
        edges,
    )
