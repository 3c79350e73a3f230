"""One example from its settings: a pure function of the config and the inputs it names by hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gniah.generator.block_lengths import RememberedLengths
from gniah.generator.corpora import Corpus
from gniah.generator.graphniah.asking import Asked, ask
from gniah.generator.graphniah.experiments import task_name
from gniah.generator.graphniah.growth import Component, Neighbourhoods
from gniah.generator.graphniah.materials import GENERATOR_VERSION, Materials
from gniah.generator.graphniah.subgraphs import Sampled, SubgraphSampler, visible
from gniah.generator.packing import NEAR, Distractor, NeedlesTooLong, Pack, Packed, pack
from gniah.generator.requests import Request, adding_tokenizers
from gniah.generator.retrieval import RankedCorpus
from gniah.records.errors import ImpossibleRequest
from gniah.records.examples import Example, Option
from gniah.records.families import family_of
from gniah.records.graphniah.pool import ComponentRecord, Needle, PoolRecord
from gniah.records.graphniah.settings import Settings, distractor_in_tables
from gniah.records.responses import prompt_sha256
from gniah.records.streams import Stream

COMPONENTS_TYPE = "disjoint-tree"

# How often an example is built again with other paths before it is given up; how often of these because the needles
# were too long or further components ran out.
MOST_ATTEMPTS = 100
MOST_LENGTH_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Built:
    """A finished example: its published form and its pool record."""

    example: Example
    record: PoolRecord


class ExampleBuilder:
    """Builds examples. One for each process; `pack` is the way of packing, and every way gives the same result.

    With `recount` each finished prompt is counted whole by each tokenizer itself, beside what packing found.
    """

    def __init__(
        self, materials: Materials, *, pack: Pack = pack, strict_fill: bool = False, recount: bool = True
    ) -> None:
        self.materials = materials
        self.neighbourhoods = Neighbourhoods(materials.store)
        self._ways = Ways(pack, strict_fill, recount, _remembered(materials))

    def build(self, settings: Settings) -> Built:
        """Build the example of these settings. Raises ImpossibleRequest when it cannot be had."""
        return self.begin(settings).run()

    def begin(self, settings: Settings) -> Building:
        """Return an example in the making, for a trial."""
        return Building(self.materials, self.neighbourhoods, settings, self._ways)


@dataclass(frozen=True, slots=True)
class Ways:
    """How examples are built, which changes none: packing, recounting, and what is remembered of corpora.

    `lengths` is by distractor type; it lacks a corpus where the counts of some tokenizer do not add up.
    """

    pack: Pack
    strict_fill: bool
    recount: bool
    lengths: Mapping[str, RememberedLengths]


class Building:
    """One example in the making."""

    def __init__(
        self,
        materials: Materials,
        neighbourhoods: Neighbourhoods,
        settings: Settings,
        ways: Ways,
    ) -> None:
        self._materials = materials
        self._settings = settings
        self._qid = materials.qid(settings)
        self._task = task_name(settings.question_type)
        self._ways = ways
        pool = materials.pools[settings.question_depth]
        self._sampler = SubgraphSampler(settings, self._qid, pool, neighbourhoods)
        self._restarts = self._sampler.restarts

    def run(self) -> Built:
        """Build the example: attempt after attempt with other paths, boundedly. Raises ImpossibleRequest."""
        shortest: int | None = None
        for attempt in range(MOST_ATTEMPTS):
            sampled = self._sampler.sample(attempt)
            if sampled is None:
                continue
            asked, needles = self._written(sampled, attempt)
            further: list[Component] = []
            texts = [needle.text for needle in needles]
            request = self._request(asked.question)
            distractors = self._distractors(sampled, attempt, further)
            order = Stream(self._qid, "order")
            try:
                packed = self._ways.pack(texts, distractors, self._settings.context_length, request, order)
            except NeedlesTooLong as error:
                self._restarts["needles too long"] += 1
                longest = max(error.counts.values())
                shortest = longest if shortest is None else min(shortest, longest)
                if self._restarts["needles too long"] >= MOST_LENGTH_ATTEMPTS:
                    break
                continue
            if packed.stopped == "exhausted":
                self._ran_out(packed)
                if self._settings.distractor_type == COMPONENTS_TYPE:
                    continue
            return self._finish(asked, sampled, needles, packed, further, attempt)
        raise self._gave_up(shortest)

    def needles_alone(self, attempt: int) -> tuple[int, int] | None:
        """Return the length in tokens of a request without any block, and of one with the needles only.

        Both under the tokenizer that gives most for the latter. None when this attempt came to nothing.
        """
        sampled = self._sampler.sample(attempt)
        return None if sampled is None else self._counted(sampled, attempt)[1:]

    def components_alone(self, attempt: int) -> tuple[int, int] | None:
        """Grow components until they fill a prompt, or until none is left that fits; return how many they are in all.

        The second number is about how many tokens a request with all of them has, under the tokenizer that gives most
        for the needles: those of the needles are counted, the others are taken to have as many for a character. None
        when this attempt came to nothing.
        """
        sampled = self._sampler.sample(attempt)
        if sampled is None:
            return None
        characters, empty, needles = self._counted(sampled, attempt)
        together, tokens = len(sampled.components), float(needles)
        further = self._sampler.further(sampled, attempt)
        while tokens < self._settings.context_length - NEAR and (drawn := next(further, None)) is not None:
            together += 1
            tokens += sum(len(text) for _, text in self._sampler.blocks(*drawn)) / characters * (needles - empty)
        return together, round(tokens)

    def _counted(self, sampled: Sampled, attempt: int) -> tuple[int, int, int]:
        """Return the characters of all needles, and what `needles_alone` does."""
        asked, needles = self._written(sampled, attempt)
        texts = [needle.text for needle in needles]
        request = self._request(asked.question)
        counts, empty = request(texts), request([])
        label = max(counts, key=lambda name: counts[name])
        return sum(map(len, texts)), empty[label], counts[label]

    def _written(self, sampled: Sampled, attempt: int) -> tuple[Asked, list[Needle]]:
        """Return the question and the needles of a sampled subgraph."""
        place = Stream(self._qid, "place", attempt)
        asked = ask(self._settings, sampled.components, self._materials.templates, self._title, place)
        needles = []
        for number, component in enumerate(sampled.components):
            stream = Stream(self._qid, "references", attempt, number)
            for identifier, text in self._sampler.blocks(component, stream):
                needles.append(Needle(number, identifier, text))
        return asked, needles

    def _distractors(self, sampled: Sampled, attempt: int, further: list[Component]) -> Iterator[Distractor]:
        """Yield distractors; a component is also appended to `further`."""
        if self._settings.distractor_type != COMPONENTS_TYPE:
            kind = self._settings.distractor_type
            corpus = self._materials.corpora[kind]
            yield from _documents(corpus, self._order(corpus, sampled), self._ways.lengths.get(kind))
            return
        for component, stream in self._sampler.further(sampled, attempt):
            further.append(component)
            blocks = list(self._sampler.blocks(component, stream))
            source = {"backbone": list(component.backbone), "papers": [identifier for identifier, _ in blocks]}
            yield Distractor(source, tuple(text for _, text in blocks))

    def _order(self, corpus: Corpus, sampled: Sampled) -> Iterator[int]:
        """Yield numbers of documents as they are drawn: at random, or ranked by the titles of all papers."""
        stream = Stream(self._qid, "distractors")
        if not isinstance(corpus, RankedCorpus):
            return stream.without_repeats(len(corpus))
        papers = sorted(paper for component in sampled.components for paper in component.papers)
        return corpus.draws([self._title(paper) for paper in stream.shuffled(papers)])

    def _request(self, question: str) -> Request:
        templates = self._materials.templates
        head, tail = templates.around_context(self._task, question)
        tokenizers = tuple(self._materials.tokenizers)
        return Request(tokenizers, templates.system[self._task], head, tail, self._ways.recount)

    def _title(self, identifier: int) -> str:
        return self._sampler.neighbourhoods.paper(identifier).title

    def _ran_out(self, packed: Packed) -> None:
        """Note that distractors ran out. A short prompt is allowed for texts; components are tried with other paths."""
        components = self._settings.distractor_type == COMPONENTS_TYPE
        if components:
            self._restarts["additional components ran out"] += 1
            if self._restarts["additional components ran out"] < MOST_LENGTH_ATTEMPTS:
                return
        elif not self._ways.strict_fill:
            return
        shown = distractor_in_tables(self._settings.distractor_type)
        reached = max(packed.counts.values())
        raise ImpossibleRequest(
            f"the {shown} distractors ran out at {reached:,} of {self._settings.context_length:,} tokens "
            f"(depth {self._settings.question_depth}, size {self._settings.component_node_count})",
            remedy="use a shorter context, larger sizes, more paths (gniah-gen paths --count) or a larger graph"
            if components
            else "give a larger corpus, use a shorter context, or leave out --strict-fill",
        )

    def _gave_up(self, shortest: int | None) -> ImpossibleRequest:
        settings = self._settings
        what = (
            f"{self._task}, depth {settings.question_depth}, size {settings.component_node_count}, "
            f"{settings.components} components"
        )
        if shortest is not None:
            return ImpossibleRequest(
                f"the papers alone do not fit into {settings.context_length:,} tokens ({what}): the least of "
                f"{self._restarts['needles too long']} tries was {shortest:,}",
                remedy=f"use --context-length {shortest} or more, or smaller sizes",
            )
        reasons = ", ".join(f"{reason} {count} times" for reason, count in sorted(self._restarts.items()))
        return ImpossibleRequest(
            f"no example came about in {MOST_ATTEMPTS} attempts ({what}): {reasons}",
            remedy="use smaller sizes or a larger graph",
        )

    def _finish(
        self,
        asked: Asked,
        sampled: Sampled,
        needles: Sequence[Needle],
        packed: Packed,
        further: Sequence[Component],
        attempt: int,
    ) -> Built:
        request = self._request(asked.question)
        system, user = request.system_prompt, request.user_prompt([block.text for block in packed.blocks])
        options = tuple(Option(letter, self._title(paper)) for letter, paper in asked.options) or None
        _, task = family_of(self._settings.question_type)
        config = self._settings.config()
        example = Example(
            qid=self._qid,
            task=task.name,
            system_prompt=system,
            user_prompt=user,
            question=asked.question,
            answer=asked.answer,
            question_type=task.question_type,
            answer_type=task.answer_type,
            options=options,
            config=config,
            token_counts=packed.counts,
            generator_version=GENERATOR_VERSION,
        )
        record = PoolRecord(
            qid=self._qid,
            config=config,
            inputs=self._materials.inputs(self._settings),
            question_type=task.question_type,
            question=asked.question,
            answer=asked.answer,
            source=asked.source,
            target=asked.target,
            option_papers=dict(asked.options),
            components=tuple(_component_records(sampled, packed, further)),
            needles=tuple(needles),
            distractors=tuple(_distractor_records(packed)),
            context=tuple((block.distractor, block.block) for block in packed.blocks),
            token_counts=packed.counts,
            prompt_sha256=prompt_sha256(system, user),
            stopped=packed.stopped,
            building={
                "attempts": attempt + 1,
                "restarts": dict(sorted(self._restarts.items())),
                "refused": dict(sorted(self._sampler.refused.items())),
            },
        )
        return Built(example, record)


def _component_records(sampled: Sampled, packed: Packed, further: Sequence[Component]) -> Iterator[ComponentRecord]:
    """Yield the task components, then what the prompt shows of the additional ones."""
    for number, component in enumerate(sampled.components):
        yield _component_record("source" if number == 0 else "other", component)
    for component, distractor, kept in zip(further, packed.distractors, packed.kept, strict=False):
        if kept:
            yield _component_record("distractor", visible(component, distractor.source["papers"][:kept]))


def _component_record(role: str, component: Component) -> ComponentRecord:
    return ComponentRecord(role, component.backbone, tuple(component.papers), tuple(component.edges))


def _distractor_records(packed: Packed) -> Iterator[dict[str, Any]]:
    for distractor, kept in zip(packed.distractors, packed.kept, strict=True):
        yield {**distractor.source, "blocks": len(distractor.blocks), "kept": kept}


def _remembered(materials: Materials) -> dict[str, RememberedLengths]:
    """Return a memory of lengths for each corpus, where the counts of all tokenizers add up."""
    adding = adding_tokenizers(materials.tokenizers)
    if adding is None:
        return {}
    return {name: RememberedLengths(adding, corpus) for name, corpus in materials.corpora.items()}


def _documents(corpus: Corpus, order: Iterable[int], lengths: RememberedLengths | None) -> Iterator[Distractor]:
    for number in order:
        document = corpus.document(number)
        source = {"document": document.name, "sha256": document.sha256, "left_out": document.left_out}
        yield Distractor(source, document.blocks, None if lengths is None else lengths.of(number, document.blocks))


__all__ = ["GENERATOR_VERSION", "Building", "Built", "ExampleBuilder", "Materials"]
