"""The score files below a folder: what gniah wrote, exactly, and those of the published archive, as far as they go."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gniah.evaluator.results import EVAL_FOLDER, EVAL_SCHEMA, unescaped
from gniah.records.errors import InputError
from gniah.records.files import machine_trouble
from gniah.records.manifests import check_schema


@dataclass(slots=True)
class ResultFile:
    """One score file: where it stands, what its path says, and what it holds.

    `ours` tells that gniah wrote it. `asked` are its examples by qid.
    """

    name: str
    parts: Mapping[str, str]
    value: Any
    ours: bool
    asked: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def result_files(folder: Path) -> Iterator[ResultFile]:
    """Yield the score files below a folder, one at a time, in the order of their paths.

    Raises InputError when there is none, and for a file that is cut, newer, or of an earlier form.
    """
    paths = sorted(path for path in folder.glob("**/model=*.json") if EVAL_FOLDER in path.absolute().parts)
    if not paths:
        raise InputError(
            f"{folder}: there is no score file here ({EVAL_FOLDER}/reasoning_effort=…/model=….json)",
            remedy="give a folder that gniah-eval score wrote into",
        )
    for path in paths:
        value = _read(path)
        ours = isinstance(value, dict) and str(value.get("schema")).startswith("gniah/")
        parts = {
            name: unescaped(text)
            for name, sign, text in (part.partition("=") for part in path.with_suffix("").parts)
            if sign and name
        }
        if ours:
            _check(value, str(path))
        asked = {one.get("qid"): one for one in value["asked"]} if ours else {}
        yield ResultFile(path.relative_to(folder).as_posix(), parts, value, ours, asked)


def _read(path: Path) -> Any:
    with machine_trouble(path):
        raw = path.read_bytes()
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}", remedy="score again, or fetch the file again") from None


def _check(value: Mapping[str, Any], where: str) -> None:
    check_schema(value.get("schema"), EVAL_SCHEMA, where)
    if value["schema"] != EVAL_SCHEMA:
        raise InputError(f"{where}: scored by an earlier version of gniah", remedy="give gniah-eval score again")
    for name in ("asked", "responses"):
        if not isinstance(value.get(name), list) or not all(isinstance(one, dict) for one in value[name]):
            raise InputError(f"{where}: {name} is no list of objects", remedy="give gniah-eval score again")


@contextlib.contextmanager
def damage(file: ResultFile) -> Iterator[None]:
    """Turn what a changed score file lacks into an error a user can act on."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{file.name}: damaged: {type(error).__name__}: {error}", remedy="give gniah-eval score again"
        ) from error


def foreign_rows(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the objects with a qid in a score file of another program: of its list, or of a list or map inside."""
    if isinstance(value, list):
        return [row for row in value if isinstance(row, dict) and isinstance(row.get("qid"), str)]
    found: list[Mapping[str, Any]] = []
    for inner in value.values() if isinstance(value, dict) else ():
        if isinstance(inner, list):
            found += foreign_rows(inner)
        elif isinstance(inner, dict):
            named = [{"qid": qid, **row} for qid, row in inner.items() if isinstance(row, dict) and _is_qid(qid)]
            found += named
    return found


def _is_qid(text: str) -> bool:
    return len(text) == 64 and all(character in "0123456789abcdef" for character in text)
