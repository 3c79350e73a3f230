"""The question about some components: where s and t are taken from, and how it is written (GraphNIAH 3.1.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gniah.generator.graphniah.experiments import is_counting, task_name
from gniah.generator.graphniah.growth import Component
from gniah.generator.graphniah.prompts import TemplateSet
from gniah.records.graphniah import MULTIPLE_CHOICE
from gniah.records.graphniah.settings import Settings
from gniah.records.streams import Stream

LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its answer, and the papers it is about; `options` are (letter, paper)."""

    question: str
    answer: str
    source: int
    target: int | None = None
    options: tuple[tuple[str, int], ...] = ()


def ask(
    settings: Settings,
    components: Sequence[Component],
    templates: TemplateSet,
    title_of: Callable[[int], str],
    stream: Stream,
) -> Asked:
    """Write the question of a task about its components, the source's first.

    YES and NO differ only in which component t is taken from. Of four options the planned letter gets the t of the
    source's component, the others get those of the other components in random order.
    """
    task = task_name(settings.question_type)
    first = components[0]
    source = title_of(first.source)
    if is_counting(settings.question_type):
        return Asked(templates.ask(task, source), str(len(first.papers) - 1), first.source)
    label = str(settings.label)
    if settings.question_type == MULTIPLE_CHOICE.question_type:
        wrong = stream.shuffled([component.target for component in components[1:]])
        options = tuple((letter, first.target if letter == label else wrong.pop()) for letter in LETTERS)
        titles = [(letter, title_of(paper)) for letter, paper in options]
        return Asked(templates.ask(task, source, options=titles), label, first.source, first.target, options)
    target = components[0 if label == "YES" else 1].target
    return Asked(templates.ask(task, source, target=title_of(target)), label, first.source, target)
