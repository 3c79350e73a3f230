"""Lists of examples: which settings each slot has (GraphNIAH 4.1 and A.2.5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gniah.generator.graphniah.pool_files import path_length
from gniah.records.canonical import digest
from gniah.records.errors import UsageFault
from gniah.records.graphniah import COUNTING, FAMILY, MULTIPLE_CHOICE, YES_NO
from gniah.records.graphniah.settings import (
    DISTRACTOR_TYPES,
    Settings,
    alpha_fraction,
    decimal_text,
    distractor_in_files,
    distractor_in_tables,
)
from gniah.records.streams import Stream

LIST_SCHEMA = "gniah/experiment/1"
TASKS = tuple(task.name for task in FAMILY.tasks)
VARIABLES = ("question-depth", "node-count", "question-format", "distractor-type")

_QUESTION_TYPES = {task.name: task.question_type for task in FAMILY.tasks}
_LABELS = {YES_NO.question_type: ("YES", "NO"), MULTIPLE_CHOICE.question_type: ("A", "B", "C", "D")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSettings:
    """The settings of one list of examples. Sizes are drawn from the integers `sizes[0]` … `sizes[1]`.

    `count` is in slots, `context_length` in tokens of a whole request; `cutoff_date` is that of the graph.

    `vary` is None, or one of VARIABLES: then its values take turns by slot (round-robin) and labels are balanced
    within each value.
    """

    name: str = "mixed"
    count: int
    tasks: tuple[str, ...] = TASKS
    depths: tuple[int, ...] = (4, 8, 16, 32)
    sizes: tuple[int, int] = (100, 250)
    distractor_types: tuple[str, ...] = ("code", "disjoint-component")
    context_length: int
    seed: int = 1
    alpha: str = "0.1"
    cutoff_date: str
    templates: str = "plain"
    vary: str | None = None
    varied_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise UsageFault for settings that make no list."""
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", self.name):
            raise UsageFault(f"--name takes letters, digits, dots, dashes and underscores, not {self.name!r}")
        _refuse_unknown("task", self.tasks, TASKS)
        _refuse_unknown("distractor type", self.distractor_types, DISTRACTOR_TYPES)
        if self.vary is not None:
            _refuse_unknown("variable", (self.vary,), VARIABLES)
        if not self.depths:
            raise UsageFault("at least one question depth is needed", remedy="add --depths 4")
        for what, smallest, value in (
            ("--count", 1, self.count),
            ("--context-length", 1, self.context_length),
            ("--sizes", 1, self.sizes[0]),
            *(("--depths", 2, depth) for depth in self.depths),
            *(("--varied-sizes", 1, size) for size in self.varied_sizes),
        ):
            if value < smallest:
                raise UsageFault(f"{what} must be at least {smallest}, not {value}")
        if len(set(self.depths)) < len(self.depths):
            raise UsageFault(f"a depth is given twice: {', '.join(map(str, self.depths))}")
        if self.sizes[0] > self.sizes[1]:
            raise UsageFault(f"--sizes {self.sizes[0]}-{self.sizes[1]} runs backwards")
        if self.vary == "node-count" and not self.varied_sizes:
            raise UsageFault("--vary node-count needs the sizes that take turns", remedy="add --varied-sizes 100,150")
        if decimal_text(alpha_fraction(self.alpha)) != self.alpha:
            raise UsageFault(f"write alpha in its shortest form, {decimal_text(alpha_fraction(self.alpha))}")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as an object, distractor types by their names in files."""
        return {
            "name": self.name,
            "count": self.count,
            "tasks": list(self.tasks),
            "question_depths": list(self.depths),
            "component_node_counts": list(self.sizes),
            "distractor_types": [distractor_in_files(name) for name in self.distractor_types],
            "context_length": self.context_length,
            "seed": self.seed,
            "alpha": self.alpha,
            "cutoff_date": self.cutoff_date,
            "template_set": self.templates,
            "vary": self.vary,
            "varied_sizes": list(self.varied_sizes),
        }

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the values that take turns, or one None when nothing is varied."""
        choices: Mapping[str, tuple[Any, ...]] = {
            "question-depth": self.depths,
            "node-count": self.varied_sizes,
            "question-format": self.tasks,
            "distractor-type": self.distractor_types,
        }
        return (None,) if self.vary is None else choices[self.vary]

    @property
    def path(self) -> str:
        """Return where the list lies below an output folder, as on the dataset card."""
        hops = "-".join(str(path_length(depth)) for depth in sorted(set(self.depths)))
        return (
            f"cutoff_date={self.cutoff_date}/hops={hops}/context_length={written_length(self.context_length)}/"
            f"seed={self.seed}/alpha={self.alpha}/vary={self.name}/experiment.jsonl"
        )


def written_length(tokens: int) -> str:
    """Return a context length as folders write it: 200000 is 200k."""
    return f"{tokens // 1000}k" if tokens % 1000 == 0 else str(tokens)


def slots(settings: ListSettings) -> list[Settings]:
    """Return the settings of each slot of a list, in order.

    The values of the varied variable take turns; all other variables are drawn independently and uniformly. Within
    each value labels are balanced in order: yes-no in pairs, multiple-choice in groups of four, each in random
    order. The n-th slot with equal settings and label has index n, so a list never repeats an example.
    """
    key = digest({"list": settings.to_json()})
    labels = _Labels(key)
    seen: Counter[Settings] = Counter()
    result = []
    for slot in range(settings.count):
        value = settings.values[slot % len(settings.values)]
        drawn = _draw(settings, key, slot, value)
        labelled = replace(drawn, label=labels.next(drawn.question_type, value))
        result.append(replace(labelled, index=seen[labelled]))
        seen[labelled] += 1
    return result


def _draw(settings: ListSettings, key: str, slot: int, value: Any) -> Settings:
    """Draw every variable of a slot, in a fixed order; the varied one is then set to its value."""
    stream = Stream(key, "slots", slot)
    depth = stream.choice(settings.depths)
    size = settings.sizes[0] + stream.below(settings.sizes[1] - settings.sizes[0] + 1)
    task = stream.choice(settings.tasks)
    distractor = stream.choice(settings.distractor_types)
    return Settings(
        question_type=_QUESTION_TYPES[value if settings.vary == "question-format" else task],
        question_depth=value if settings.vary == "question-depth" else depth,
        component_node_count=value if settings.vary == "node-count" else size,
        distractor_type=distractor_in_files(value if settings.vary == "distractor-type" else distractor),
        context_length=settings.context_length,
        label=None,
        index=0,
        seed=settings.seed,
        alpha=settings.alpha,
        cutoff_date=settings.cutoff_date,
        templates=settings.templates,
    )


class _Labels:
    """Hands out labels within each value and task: every group holds each label once, in random order."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._given: Counter[tuple[str, str]] = Counter()
        self._group: dict[tuple[str, str], list[str]] = {}

    def next(self, question_type: str, value: Any) -> str | None:
        labels = _LABELS.get(question_type)
        if labels is None:
            return None
        cell = (question_type, str(value))
        group, place = divmod(self._given[cell], len(labels))
        if place == 0:
            self._group[cell] = Stream(self._key, "labels", *cell, group).shuffled(labels)
        self._given[cell] += 1
        return self._group[cell][place]


def varied_value(settings: Settings, vary: str | None) -> Any:
    """Return the value of the varied variable that a slot has, as tables show it."""
    if vary is None:
        return None
    return {
        "question-depth": settings.question_depth,
        "node-count": settings.component_node_count,
        "question-format": next(n for n, t in _QUESTION_TYPES.items() if t == settings.question_type),
        "distractor-type": distractor_in_tables(settings.distractor_type),
    }[vary]


def task_name(question_type: str) -> str:
    """Return the public name of a task: yes-no, multiple-choice or counting."""
    return next(name for name, kind in _QUESTION_TYPES.items() if kind == question_type)


def is_counting(question_type: str) -> bool:
    """Whether a task asks for a number."""
    return question_type == COUNTING.question_type


def _refuse_unknown(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    if not given:
        raise UsageFault(f"at least one {what} is needed; known are {', '.join(known)}")
    for name in given:
        if name not in known:
            raise UsageFault(f"there is no {what} {name!r}; known are {', '.join(known)}")
    if len(set(given)) < len(given):
        raise UsageFault(f"a {what} is given twice: {', '.join(given)}")
