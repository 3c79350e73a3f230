"""Benchmark families: how one makes itself known, and how shared code finds what belongs to it.

A family is one entry point in the group `gniah.families`. It names its parts as `module:attribute`, and a part is
imported when it is used: so the generator's and the evaluator's halves of a family need not know each other,
and naming a family costs nothing at start.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

from gniah.records.errors import InputError, MissingDependency

ENTRY_POINT_GROUP = "gniah.families"


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of question: its public name, and the two internal names that files carry."""

    name: str
    question_type: str
    answer_type: str


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command that a family adds to `gniah-gen`: where it is, and its line in the overview."""

    reference: str
    summary: str


@dataclass(frozen=True, slots=True)
class Family:
    """One family of benchmarks. Every part is a `module:attribute` reference, loaded with `load`.

    text_solver: `(system_prompt: str, user_prompt: str) -> Solution`, reads nothing else.
    scorer: an object with the protocol of `gniah.evaluator.scoring.Scorer`.
    commands: what the family adds to `gniah-gen`, by command name.
    """

    name: str
    tasks: tuple[Task, ...]
    text_solver: str
    scorer: str
    commands: Mapping[str, CommandSpec] = field(default_factory=dict)

    def task_of(self, question_type: str) -> Task | None:
        """Return the task with an internal name, or None."""
        return next((task for task in self.tasks if task.question_type == question_type), None)


@dataclass(frozen=True, slots=True)
class Solution:
    """What a text solver made of two prompts: the task it recognised, its answer, and why there is none."""

    task: str
    answer: str | None
    reason: str | None = None


@cache
def families() -> Mapping[str, Family]:
    """Return every installed family by name, in the order of the names."""
    found = {}
    for point in sorted(metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        family = point.load()
        if not isinstance(family, Family):
            raise MissingDependency(f"the entry point {point.name} of {ENTRY_POINT_GROUP} is not a Family")
        found[family.name] = family
    return found


def family_of(question_type: str, where: str = "") -> tuple[Family, Task]:
    """Return the family and task of an example by its question type. Raises InputError when none knows it.

    `where` names the example in that error.
    """
    for family in families().values():
        task = family.task_of(question_type)
        if task is not None:
            return family, task
    known = ", ".join(sorted(task.question_type for family in families().values() for task in family.tasks))
    raise InputError(
        f"{where}{': ' if where else ''}no installed family knows the question type {question_type!r}; known are "
        f"{known}",
        remedy="install the package of its family, or upgrade gniah",
    )


def load(reference: str) -> Any:
    """Import and return what a `module:attribute` reference names."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
