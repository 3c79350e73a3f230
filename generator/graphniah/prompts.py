"""Prompts from templates. A template set is a data file, chosen by name (GraphNIAH, appendices A.4 and G)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gniah.records.canonical import digest
from gniah.records.errors import InputError, UsageFault
from gniah.records.files import read_json
from gniah.records.manifests import check_schema

TEMPLATES_SCHEMA = "gniah/templates/1"
_CONTEXT = "{context}"
_PLACE = re.compile(r"\{(\w+)\}")
_SHIPPED = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class TemplateSet:
    """The texts around needles and distractors, for each task by its public name."""

    name: str
    system: Mapping[str, str]
    question: Mapping[str, str]
    option: str
    none_option: str
    reminder: Mapping[str, str]
    user: str

    @property
    def digest(self) -> str:
        """Return the hash of all texts, which the qid covers."""
        return digest({name: getattr(self, name) for name in self.__slots__})

    def ask(self, task: str, source: str, *, target: str | None = None, options: Sequence[tuple[str, str]] = ()) -> str:
        """Return the question of a task about papers given by their titles; `options` are (label, title)."""
        lines = [filled(self.option, {"label": label, "title": title}) for label, title in options]
        return filled(self.question[task], {"source": source, "target": target or "", "options": "\n".join(lines)})

    def with_none_option(self, question: str, label: str) -> str:
        """Return a multiple-choice question with one more option, which is never right."""
        return question + "\n" + filled(self.none_option, {"label": label})

    def user_prompt(self, task: str, question: str, context: str) -> str:
        """Return the user's message."""
        before, after = self.around_context(task, question)
        return before + context + after

    def around_context(self, task: str, question: str) -> tuple[str, str]:
        """Return what stands before and after the context in the user's message."""
        before, _, after = self.user.partition(_CONTEXT)
        parts = {"question": question, "reminder": self.reminder[task]}
        return filled(before, parts), filled(after, parts)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its places filled in one pass: braces inside a value stay what they are.

    A place that has no value, such as the example in `\\answer{YES}`, stays as it is.
    """
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), template)


def load_templates(name: str) -> TemplateSet:
    """Return a shipped template set by its name, or one from a file by its path.

    Raises UsageFault for an unknown name, InputError for a file that lacks a text.
    """
    path = _SHIPPED / f"{name}.json"
    if not re.fullmatch(r"[a-z0-9-]+", name) or not path.is_file():
        path = Path(name)
        if not path.is_file():
            known = ", ".join(sorted(entry.stem for entry in _SHIPPED.glob("*.json")))
            raise UsageFault(f"there is no template set {name!r}", remedy=f"choose one of {known}, or give a file")
    value = read_json(path)
    check_schema(value.get("schema"), TEMPLATES_SCHEMA, str(path))
    return _read(value, str(path))


def _read(value: Mapping[str, Any], where: str) -> TemplateSet:
    texts: dict[str, Any] = {}
    for name in TemplateSet.__slots__:
        if name not in value:
            raise InputError(f"{where}: a template set needs {name!r}")
        texts[name] = value[name]
    for name in ("name", "option", "none_option", "user"):
        if not isinstance(texts[name], str):
            raise InputError(f"{where}: {name!r} must be a text, found {type(texts[name]).__name__}")
    if not isinstance(texts["user"], str) or texts["user"].count(_CONTEXT) != 1:
        raise InputError(f"{where}: 'user' needs the place {_CONTEXT} once")
    for name in ("system", "question", "reminder"):
        for task in ("yes-no", "multiple-choice", "counting"):
            if not isinstance(texts[name], Mapping) or not isinstance(texts[name].get(task), str):
                raise InputError(f"{where}: {name!r} needs a text for {task!r}")
    return TemplateSet(**texts)
