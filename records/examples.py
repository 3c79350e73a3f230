"""The published form of an example: one line of `examples.jsonl`, with exactly the fields of the dataset card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gniah.records.errors import InputError
from gniah.records.files import json_line, read_json_lines, whole_file

FIELDS = (
    "qid",
    "reachability_task",
    "system_prompt",
    "user_prompt",
    "question",
    "answer",
    "question_type",
    "answer_type",
    "options",
    "config",
    "token_counts",
    "generator_version",
    "experiments",
)
OPTIONAL_FIELDS = frozenset({"options"})


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a multiple-choice question."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """One example: two prompts, a question, its answer, and the settings it was made with.

    `options` is None unless the question is multiple-choice. `token_counts` maps a tokenizer's label to the
    length of the whole request in tokens. `experiments` lists the places where the example is used.
    """

    qid: str
    task: str
    system_prompt: str
    user_prompt: str
    question: str
    answer: str
    question_type: str
    answer_type: str
    options: tuple[Option, ...] | None
    config: Mapping[str, Any]
    token_counts: Mapping[str, int]
    generator_version: str
    experiments: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the example as an object with the card's fields, in the card's order."""
        value: dict[str, Any] = {
            "qid": self.qid,
            "reachability_task": self.task,
            "system_prompt": self.system_prompt,
            "user_prompt": self.user_prompt,
            "question": self.question,
            "answer": self.answer,
            "question_type": self.question_type,
            "answer_type": self.answer_type,
        }
        if self.options is not None:
            value["options"] = [{"label": option.label, "text": option.text} for option in self.options]
        value["config"] = dict(self.config)
        value["token_counts"] = dict(self.token_counts)
        value["generator_version"] = self.generator_version
        value["experiments"] = [dict(item) for item in self.experiments]
        return value

    def with_experiments(self, experiments: tuple[Mapping[str, Any], ...]) -> Example:
        """Return the example with the places where it is used."""
        return replace(self, experiments=experiments)

    @classmethod
    def from_json(cls, value: Mapping[str, Any], where: str) -> Example:
        """Read an example; `where` names file and line in errors. Raises InputError."""
        missing = [name for name in FIELDS if name not in value and name not in OPTIONAL_FIELDS]
        if missing:
            raise InputError(
                f"{where}: an example lacks {', '.join(missing)}",
                remedy="give an examples.jsonl with the fields of the dataset card",
            )
        texts = {name: value[name] for name in FIELDS[:8]} | {"generator_version": value["generator_version"]}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise InputError(f"{where}: {name} must be a string, found {type(text).__name__}")
        options = value.get("options")
        try:
            read = None if options is None else tuple(Option(str(o["label"]), str(o["text"])) for o in options)
        except (TypeError, KeyError):
            raise InputError(f"{where}: options must be a list of objects with label and text") from None
        for name, kind in (("config", dict), ("token_counts", dict), ("experiments", list)):
            if not isinstance(value[name], kind):
                raise InputError(f"{where}: {name} must be a {'list' if kind is list else 'JSON object'}")
        return cls(
            qid=value["qid"],
            task=value["reachability_task"],
            system_prompt=value["system_prompt"],
            user_prompt=value["user_prompt"],
            question=value["question"],
            answer=value["answer"],
            question_type=value["question_type"],
            answer_type=value["answer_type"],
            options=read,
            config=value["config"],
            token_counts=value["token_counts"],
            generator_version=value["generator_version"],
            experiments=tuple(value["experiments"]),
        )


def examples_path(path: Path) -> Path:
    """Return the examples file that a path names: the file itself, or `examples.jsonl` in a folder."""
    found = path / "examples.jsonl" if path.is_dir() else path
    if not found.is_file():
        raise InputError(
            f"{found}: no such file",
            remedy="give an examples.jsonl, or the folder that gniah-gen examples wrote",
        )
    return found


def read_examples(path: Path) -> Iterator[Example]:
    """Yield the examples of a file, one at a time. Raises InputError with file and line."""
    for number, value in read_json_lines(path):
        yield Example.from_json(value, f"{path}:{number}")


def write_examples(path: Path, examples: Iterable[Example]) -> int:
    """Write examples into a file, one at a time, and return how many there were; it appears whole or not at all."""
    count = 0
    with whole_file(path) as stream:
        for example in examples:
            stream.write(json_line(example.to_json()))
            count += 1
    return count
