"""What a score file says of each answer and of each example that was asked: all that comparing needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from gniah.evaluator.judging import NOT_COUNTED, STATUSES
from gniah.evaluator.readings import CARD
from gniah.evaluator.results import EVAL_FOLDER, EVAL_SCHEMA
from gniah.records.errors import InputError
from gniah.records.files import read_json
from gniah.records.manifests import check_schema

# The key of a config that names the example which this one was made from.
SOURCE = "source_qid"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one answer counts under one reading. `gold` is the right answer of its example."""

    qid: str
    status: str
    gold: str

    @property
    def counted(self) -> bool:
        """Return whether it is in the denominator."""
        return self.status not in NOT_COUNTED

    @property
    def correct(self) -> bool:
        """Return whether it is right."""
        return self.status == "correct"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a score file keeps of an example: the one it was made from, or itself, and its variables as shown."""

    base: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The answers of one model with one set of parameters under one reading, and the examples, by qid."""

    model: str
    reasoning_effort: str
    reading: str
    answers: tuple[Outcome, ...]
    asked: Mapping[str, Asked]

    @property
    def label(self) -> str:
        """Return a line that says whose answers these are."""
        return f"{self.model}, effort {self.reasoning_effort}, reading {self.reading}"


def score_file(path: Path) -> Path:
    """Return the score file that a path names: itself, or the only one below a folder. Raises InputError."""
    if not path.is_dir():
        return path
    found = sorted(one for one in path.glob("**/model=*.json") if EVAL_FOLDER in one.absolute().parts)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"{path}: holds no score file", remedy="make it with gniah-eval score, or name the file")
    shown = "".join(f"\n  {one}" for one in found[:10]) + ("\n  …" if len(found) > 10 else "")
    raise InputError(f"{path}: holds {len(found)} score files:{shown}", remedy="name one of them")


def read_outcomes(path: Path, reading: str = CARD) -> Outcomes:
    """Read what a score file says under one reading. Raises InputError for another, an older or a damaged file."""
    value = read_json(path)
    check_schema(value.get("schema"), EVAL_SCHEMA, str(path))
    if value["schema"] != EVAL_SCHEMA:
        raise InputError(f"{path}: written by an older version of gniah", remedy="score the run again")
    model, effort, responses, asked = (value.get(name) for name in ("model", "reasoning_effort", "responses", "asked"))
    if not (isinstance(model, str) and isinstance(effort, str) and _are_objects(responses) and _are_objects(asked)):
        raise _damaged(path, "model, effort, examples or responses are not as gniah-eval score writes them")
    examples = {_text(path, "example", one, "qid"): _asked(path, one) for one in asked}
    answers = tuple(_outcome(path, response, reading) for response in responses)
    missing = sorted({answer.qid for answer in answers} - set(examples))
    if missing:
        raise _damaged(path, f"the example {missing[0]} was answered, and is not among those asked")
    return Outcomes(model, effort, reading, answers, examples)


def _asked(path: Path, one: Mapping[str, Any]) -> Asked:
    variables, config = one.get("variables"), one.get("config")
    if not (isinstance(variables, dict) and isinstance(config, dict)):
        raise _damaged(path, f"the example {one['qid']} has no variables or no config")
    source = config.get(SOURCE)
    shown = {name: str(value) for name, value in variables.items()}
    return Asked(source if isinstance(source, str) else one["qid"], shown)


def _outcome(path: Path, response: Mapping[str, Any], reading: str) -> Outcome:
    qid, gold = (_text(path, "response", response, name) for name in ("qid", "gold"))
    verdict = response.get(reading)
    if not isinstance(verdict, dict) or verdict.get("status") not in STATUSES:
        raise _damaged(path, f"the response to {qid} has no known status under the reading {reading!r}")
    return Outcome(qid, verdict["status"], gold)


def _text(path: Path, noun: str, value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise _damaged(path, f"one {noun} lacks its {name}")
    return found


def _are_objects(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"{path}: {what}", remedy="make it again with gniah-eval score")
