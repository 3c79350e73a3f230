"""One example from its settings: a pure function of the config and the inputs it names by hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gniah.cypher.store import GraphStore
from gniah.generator.corpora import Corpus
from gniah.generator.graphniah.compatibility import members
from gniah.generator.graphniah.experiments import is_counting, task_name
from gniah.generator.graphniah.growth import Component, Growth, Neighbourhoods, Stuck, backbone_component, grow
from gniah.generator.graphniah.pool_files import PathPool
from gniah.generator.graphniah.prompts import BLOCK_SEPARATOR, TemplateSet
from gniah.generator.graphniah.rendering import TitleRegister, paper_block
from gniah.generator.packing import NEEDLE, Distractor, NeedlesTooLong, Pack, Packed, pack_plainly
from gniah.generator.tokenizers import Tokenizer, request_counts
from gniah.records.canonical import digest
from gniah.records.errors import ImpossibleRequest
from gniah.records.examples import Example, Option
from gniah.records.graphniah import FAMILY, MULTIPLE_CHOICE
from gniah.records.graphniah.pool import ComponentRecord, Needle, PoolRecord
from gniah.records.graphniah.settings import Settings, alpha_fraction, distractor_in_tables
from gniah.records.papers import Paper
from gniah.records.responses import prompt_sha256
from gniah.records.streams import Stream

GENERATOR_VERSION = "gniah.graphniah:1"
COMPONENTS_TYPE = "disjoint-tree"

# How often an example is built again with other paths before it is given up, and how many whole tuples of
# paths are drawn for one try.
MOST_ATTEMPTS = 100
MOST_LENGTH_ATTEMPTS = 20
MOST_DRAWS = 2_000_000

LETTERS = "ABCD"


@dataclass(frozen=True)
class Materials:
    """All that examples are made from. `corpora` is by distractor type, `pools` by question depth."""

    store: GraphStore
    pools: Mapping[int, PathPool]
    corpora: Mapping[str, Corpus]
    tokenizers: Sequence[Tokenizer]
    templates: TemplateSet

    def inputs(self, settings: Settings) -> dict[str, Any]:
        """Return by hash all that an example with these settings is a function of, beside its config."""
        corpus = self.corpora.get(settings.distractor_type)
        return {
            "generator_version": GENERATOR_VERSION,
            "graph": self.store.manifest.digest,
            "paths": self.pools[settings.question_depth].digest,
            "corpus": corpus.digest if corpus is not None else None,
            "tokenizers": [{"label": item.label, "digest": item.digest} for item in self.tokenizers],
            "templates": self.templates.digest,
        }

    def qid(self, settings: Settings) -> str:
        """Return the name of the example with these settings."""
        return digest({"config": settings.config(), "inputs": self.inputs(settings)})


@dataclass(frozen=True, slots=True)
class Built:
    """A finished example: its published form and its pool record."""

    example: Example
    record: PoolRecord


@dataclass(frozen=True, slots=True)
class _Task:
    """Grown task components and the question about them."""

    components: tuple[Component, ...]
    question: str
    answer: str
    source: int
    target: int | None
    options: tuple[tuple[str, int], ...]


class ExampleBuilder:
    """Builds examples. One for each process; `pack` is the way of packing, and every way gives the same result."""

    def __init__(self, materials: Materials, *, pack: Pack = pack_plainly, strict_fill: bool = False) -> None:
        self.materials = materials
        self._neighbourhoods = Neighbourhoods(materials.store)
        self._pack = pack
        self._strict_fill = strict_fill

    def build(self, settings: Settings) -> Built:
        """Build the example of these settings. Raises ImpossibleRequest when it cannot be had."""
        return _Building(self.materials, self._neighbourhoods, settings, self._pack, self._strict_fill).run()


class _Building:
    """One example in the making."""

    def __init__(
        self,
        materials: Materials,
        neighbourhoods: Neighbourhoods,
        settings: Settings,
        pack: Pack,
        strict_fill: bool,
    ) -> None:
        self.materials = materials
        self.neighbourhoods = neighbourhoods
        self.settings = settings
        self.qid = materials.qid(settings)
        self.pool = materials.pools[settings.question_depth]
        self.alpha = alpha_fraction(settings.alpha)
        self.task = task_name(settings.question_type)
        self.pack = pack
        self.strict_fill = strict_fill
        self.restarts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.attempt = 0
        self.chosen: tuple[int, ...] = ()
        self.further: list[Component] = []

    def run(self) -> Built:
        shortest: int | None = None
        for self.attempt in range(MOST_ATTEMPTS):
            growth = Growth(self.neighbourhoods, TitleRegister(), refused=self.refused)
            components = self._components(growth)
            if components is None:
                continue
            task = self._ask(components)
            needles = self._needles(components)
            self.further = []
            count = partial(self._count, task)
            try:
                packed = self.pack(
                    [needle.text for needle in needles],
                    self._distractors(growth),
                    self.settings.context_length,
                    count,
                    Stream(self.qid, "order"),
                )
            except NeedlesTooLong as error:
                self.restarts["needles too long"] += 1
                longest = max(error.counts.values())
                shortest = longest if shortest is None else min(shortest, longest)
                if self.restarts["needles too long"] >= MOST_LENGTH_ATTEMPTS:
                    break
                continue
            if packed.stopped == "exhausted":
                self._ran_out(packed)
                if self.settings.distractor_type == COMPONENTS_TYPE:
                    continue
            return self._finish(task, needles, packed)
        raise self._gave_up(shortest)

    def _components(self, growth: Growth) -> list[Component] | None:
        """Draw backbones and grow them; None when this attempt came to nothing."""
        stream = Stream(self.qid, "backbones", self.attempt)
        drawn = self.pool.index.draw(self.settings.components, stream, MOST_DRAWS)
        if drawn is None:
            raise ImpossibleRequest(
                f"no {self.settings.components} paths of depth {self.settings.question_depth} that can stand together "
                f"were found in {MOST_DRAWS:,} draws",
                remedy="use a smaller depth, a larger pool of paths, or a larger graph",
            )
        self.chosen = drawn
        components = []
        for number in drawn:
            component = self._backbone(number, stream)
            if not _enter_backbone(component, growth):
                self.restarts["confusable"] += 1
                return None
            components.append(component)
        try:
            grow(
                components,
                self.settings.component_node_count,
                self.alpha,
                growth,
                Stream(self.qid, "growth", self.attempt),
            )
        except Stuck:
            self.restarts["stuck"] += 1
            return None
        return components

    def _backbone(self, number: int, stream: Stream) -> Component:
        path = self.pool.paths[number]
        return backbone_component(path[::-1] if stream.coin() else path, self.neighbourhoods, stream)

    def _ask(self, components: Sequence[Component]) -> _Task:
        """Place s and t, and write the question. YES and NO differ only in where t is taken from."""
        settings, templates = self.settings, self.materials.templates
        first = components[0]
        source = self._title(first.source)
        if is_counting(settings.question_type):
            question = templates.ask(self.task, source)
            return _Task(tuple(components), question, str(len(first.papers) - 1), first.source, None, ())
        if settings.question_type == MULTIPLE_CHOICE.question_type:
            return self._ask_with_options(components, source)
        target = components[0 if settings.label == "YES" else 1].target
        question = templates.ask(self.task, source, target=self._title(target))
        return _Task(tuple(components), question, str(settings.label), first.source, target, ())

    def _ask_with_options(self, components: Sequence[Component], source: str) -> _Task:
        label = str(self.settings.label)
        wrong = Stream(self.qid, "place", self.attempt).shuffled([item.target for item in components[1:]])
        options = tuple((letter, components[0].target if letter == label else wrong.pop()) for letter in LETTERS)
        titles = [(letter, self._title(paper)) for letter, paper in options]
        question = self.materials.templates.ask(self.task, source, options=titles)
        return _Task(tuple(components), question, label, components[0].source, components[0].target, options)

    def _needles(self, components: Sequence[Component]) -> list[Needle]:
        """Render the blocks of the task components."""
        needles = []
        for number, component in enumerate(components):
            stream = Stream(self.qid, "references", self.attempt, number)
            for identifier, text in self._blocks(component, stream):
                needles.append(Needle(number, identifier, text))
        return needles

    def _blocks(self, component: Component, stream: Stream) -> Iterator[tuple[int, str]]:
        """Yield (paper, text) for each paper that cites one of its component, in the order papers were added."""
        references: dict[int, list[int]] = {}
        for citing, cited in component.edges:
            references.setdefault(citing, []).append(cited)
        for identifier in component.papers:
            if identifier in references:
                listed = [self._paper(reference) for reference in stream.shuffled(references[identifier])]
                yield identifier, paper_block(self._paper(identifier), listed)

    def _distractors(self, growth: Growth) -> Iterator[Distractor]:
        if self.settings.distractor_type == COMPONENTS_TYPE:
            return self._further_components(growth)
        return _documents(self.materials.corpora[self.settings.distractor_type], Stream(self.qid, "distractors"))

    def _further_components(self, growth: Growth) -> Iterator[Distractor]:
        """Yield additional components. One that is stuck, or shares papers or titles, is replaced alone."""
        chosen = list(self.chosen)
        index = self.pool.index
        open_paths = index.compatible_with(chosen)
        number = 0
        while open_paths:
            stream = Stream(self.qid, "distractors", number)
            number += 1
            pick = stream.choice(list(members(open_paths)))
            open_paths &= ~(1 << pick)
            component = self._grown_alone(pick, stream, growth)
            if component is None:
                continue
            chosen.append(pick)
            open_paths &= index.compatible_with((pick,))
            self.further.append(component)
            blocks = list(self._blocks(component, stream))
            source = {"backbone": list(component.backbone), "papers": [identifier for identifier, _ in blocks]}
            yield Distractor(source, tuple(text for _, text in blocks))

    def _grown_alone(self, number: int, stream: Stream, growth: Growth) -> Component | None:
        component = self._backbone(number, stream)
        if not _enter_backbone(component, growth):
            self.restarts["additional component confusable"] += 1
            return None
        try:
            grow([component], self.settings.component_node_count, self.alpha, growth, stream)
        except Stuck:
            growth.leave(component)
            self.restarts["additional component stuck"] += 1
            return None
        return component

    def _count(self, task: _Task, texts: Sequence[str]) -> dict[str, int]:
        system, user = self._prompts(task.question, texts)
        return request_counts(self.materials.tokenizers, system, user)

    def _prompts(self, question: str, texts: Sequence[str]) -> tuple[str, str]:
        templates = self.materials.templates
        user = templates.user_prompt(self.task, question, BLOCK_SEPARATOR.join(texts))
        return templates.system[self.task], user

    def _ran_out(self, packed: Packed) -> None:
        """Note that distractors ran out. A short prompt is allowed for texts; components are tried with other paths."""
        components = self.settings.distractor_type == COMPONENTS_TYPE
        if components:
            self.restarts["additional components ran out"] += 1
            if self.restarts["additional components ran out"] < MOST_LENGTH_ATTEMPTS:
                return
        elif not self.strict_fill:
            return
        shown = distractor_in_tables(self.settings.distractor_type)
        reached = max(packed.counts.values())
        raise ImpossibleRequest(
            f"the {shown} distractors ran out at {reached:,} of {self.settings.context_length:,} tokens "
            f"(depth {self.settings.question_depth}, size {self.settings.component_node_count})",
            remedy="use a shorter context, smaller sizes, a larger pool of paths or a larger graph"
            if components
            else "give a larger corpus, use a shorter context, or leave out --strict-fill",
        )

    def _gave_up(self, shortest: int | None) -> ImpossibleRequest:
        settings = self.settings
        what = (
            f"depth {settings.question_depth}, size {settings.component_node_count}, {settings.components} components"
        )
        if shortest is not None:
            return ImpossibleRequest(
                f"the papers alone do not fit into {settings.context_length:,} tokens ({what}): the least of "
                f"{self.restarts['needles too long']} tries was {shortest:,}",
                remedy=f"use --context-length {shortest} or more, or smaller sizes",
            )
        reasons = ", ".join(f"{reason} {count} times" for reason, count in sorted(self.restarts.items()))
        return ImpossibleRequest(
            f"no example came about in {MOST_ATTEMPTS} attempts ({what}): {reasons}",
            remedy="use smaller sizes or a larger graph",
        )

    def _paper(self, identifier: int) -> Paper:
        return self.neighbourhoods.paper(identifier)

    def _title(self, identifier: int) -> str:
        return self._paper(identifier).title

    def _finish(self, task: _Task, needles: list[Needle], packed: Packed) -> Built:
        texts = [block.text for block in packed.blocks]
        system, user = self._prompts(task.question, texts)
        options = tuple(Option(letter, self._title(paper)) for letter, paper in task.options) or None
        kind = FAMILY.task_of(self.settings.question_type)
        assert kind is not None
        example = Example(
            qid=self.qid,
            task=kind.name,
            system_prompt=system,
            user_prompt=user,
            question=task.question,
            answer=task.answer,
            question_type=kind.question_type,
            answer_type=kind.answer_type,
            options=options,
            config=self.settings.config(),
            token_counts=packed.counts,
            generator_version=GENERATOR_VERSION,
        )
        return Built(example, self._record(task, needles, packed, prompt_sha256(system, user)))

    def _record(self, task: _Task, needles: list[Needle], packed: Packed, prompts: str) -> PoolRecord:
        components = [
            ComponentRecord(
                "source" if number == 0 else "other",
                component.backbone,
                tuple(component.papers),
                tuple(component.edges),
            )
            for number, component in enumerate(task.components)
        ]
        distractors = []
        for distractor, kept in zip(packed.distractors, packed.kept, strict=True):
            distractors.append({**distractor.source, "blocks": len(distractor.blocks), "kept": kept})
        for component, distractor, kept in zip(self.further, packed.distractors, packed.kept, strict=False):
            if kept:
                components.append(_visible(component, distractor.source["papers"][:kept]))
        building = {
            "attempts": self.attempt + 1,
            "restarts": dict(sorted(self.restarts.items())),
            "refused": dict(sorted(self.refused.items())),
        }
        return PoolRecord(
            qid=self.qid,
            config=self.settings.config(),
            inputs=self.materials.inputs(self.settings),
            question_type=self.settings.question_type,
            question=task.question,
            answer=task.answer,
            source=task.source,
            target=task.target,
            option_papers=dict(task.options),
            components=tuple(components),
            needles=tuple(needles),
            distractors=tuple(distractors),
            context=tuple((block.distractor, block.block) for block in packed.blocks),
            token_counts=packed.counts,
            prompt_sha256=prompts,
            stopped=packed.stopped,
            building=building,
        )


def _enter_backbone(component: Component, growth: Growth) -> bool:
    """Enter a backbone's papers; when one cannot enter, take the others out again and say so."""
    entered: list[int] = []
    for identifier in component.papers:
        if growth.refusal(identifier) is not None:
            growth.leave(Component(component.backbone, entered))
            return False
        growth.enter(identifier)
        entered.append(identifier)
    return True


def _visible(component: Component, papers_with_blocks: Sequence[int]) -> ComponentRecord:
    """Return what a cut component shows: the edges of its kept blocks, and the papers on them."""
    kept = set(papers_with_blocks)
    edges = tuple(edge for edge in component.edges if edge[0] in kept)
    shown = {identifier for edge in edges for identifier in edge}
    return ComponentRecord(
        "distractor",
        tuple(identifier for identifier in component.backbone if identifier in shown),
        tuple(identifier for identifier in component.papers if identifier in shown),
        edges,
    )


def _documents(corpus: Corpus, stream: Stream) -> Iterator[Distractor]:
    for number in stream.without_repeats(len(corpus)):
        document = corpus.document(number)
        source = {"document": document.name, "sha256": document.sha256, "left_out": document.left_out}
        yield Distractor(source, document.blocks)


__all__ = ["GENERATOR_VERSION", "NEEDLE", "Built", "ExampleBuilder", "Materials"]
