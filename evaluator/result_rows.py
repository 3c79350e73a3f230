"""Score files as rows: one a response, with the config of its example flattened. For frames and for Parquet.

Of the published archive the dataset card names no key of a score's row, so there what has the name of a field of the
card is read, and the rest is kept as it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gniah.evaluator.judging import NOT_COUNTED
from gniah.evaluator.readings import READINGS
from gniah.evaluator.score_files import ResultFile, damage, foreign_rows, result_files

# Types by the names that DuckDB has for them.
TEXT, INTEGER, NUMBER, TRUTH = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"
COLUMNS: Mapping[str, str] = {
    "file": TEXT,
    "model": TEXT,
    "reasoning_effort": TEXT,
    "base_address": TEXT,
    "parameters": TEXT,
    "qid": TEXT,
    "repeat": INTEGER,
    "task": TEXT,
    "gold": TEXT,
    **{
        f"{reading}_{part}": kind
        for reading in READINGS
        for part, kind in (("status", TEXT), ("value", TEXT), ("reason", TEXT), ("correct", TRUTH))
    },
    "chance": NUMBER,
    "finish_reason": TEXT,
    "seconds": NUMBER,
    "prompt_tokens": INTEGER,
    "completion_tokens": INTEGER,
    "reasoning_tokens": INTEGER,
    "cost": NUMBER,
    "tier": TEXT,
    "usage": TEXT,
    "other": TEXT,
}
PLACEMENTS: Mapping[str, str] = {
    "qid": TEXT,
    "name": TEXT,
    "context_length": INTEGER,
    "random_seed": INTEGER,
    "slot": INTEGER,
    "path": TEXT,
}
SUMMARIES: Mapping[str, str] = {
    "file": TEXT,
    "model": TEXT,
    "reasoning_effort": TEXT,
    "reading": TEXT,
    "variable": TEXT,
    "value": TEXT,
    "n": INTEGER,
    "correct": INTEGER,
    "percentage": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "chance": NUMBER,
    **{
        status.replace("-", "_"): INTEGER
        for status in ("wrong", "unreadable", "empty", "refused", "length", "prompt-cut", "error")
    },
}
# Parts of a path that are columns already.
_NAMED_PARTS = frozenset({"reasoning_effort", "model"})
_LARGEST = 2**63 - 1

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Survey:
    """What the rows below a folder look like: their columns with types, and what was not understood."""

    columns: Mapping[str, str]
    not_understood: tuple[str, ...]


def survey(folder: Path) -> Survey:
    """Return what the rows of the score files below a folder look like.

    The fixed columns come first, then `path_…`, `config_…` and `tokens_…`, one for each name that a path, a config
    or the token counts have. A column whose values are of several types is text.
    """
    found: dict[str, set[str]] = {}
    lines = []
    for file in result_files(folder):
        for row in rows(file):
            for name, value in row.items():
                if name not in COLUMNS and value is not None:
                    found.setdefault(name, set()).add(_kind(value))
        line = not_understood(file)
        lines += [] if line is None else [line]
    return Survey({**COLUMNS, **_extra(found)}, tuple(lines))


def _extra(found: Mapping[str, set[str]]) -> dict[str, str]:
    extra = sorted(found, key=lambda name: (("path_", "config_", "tokens_").index(name[: name.index("_") + 1]), name))
    return {name: _common(found[name]) for name in extra}


def rows(file: ResultFile) -> Iterator[Row]:
    """Yield a row for each response of a file, in its order. Raises InputError for one that was changed."""
    path = {f"path_{name}": text for name, text in file.parts.items() if name not in _NAMED_PARTS}
    with damage(file):
        if file.ours:
            yield from (_our_row(file, response) | path for response in file.value["responses"])
        else:
            yield from (_foreign_row(file, row) | path for row in foreign_rows(file.value))


def _our_row(file: ResultFile, response: Mapping[str, Any]) -> Row:
    value, asked = file.value, file.asked[response["qid"]]
    usage = response["usage"]
    row = {
        "file": file.name,
        "model": value["model"],
        "reasoning_effort": value["reasoning_effort"],
        "base_address": value["base_address"],
        "parameters": _text(value["parameters"]),
        "qid": response["qid"],
        "repeat": response["repeat"],
        "task": asked["variables"].get("task"),
        "gold": response["gold"],
        "chance": _fraction(asked["chance"]),
        "finish_reason": response["finish_reason"],
        "seconds": response["seconds"],
        "prompt_tokens": _count(usage.get("prompt_tokens")),
        "completion_tokens": _count(usage.get("completion_tokens")),
        "reasoning_tokens": _count(_reasoning(usage)),
        "cost": None if response.get("cost") is None else float(response["cost"]),
        "tier": response.get("tier"),
        "usage": _text(usage),
        "other": None,
    }
    for reading in READINGS:
        verdict = response[reading]
        counted = verdict["status"] not in NOT_COUNTED
        row |= {f"{reading}_{part}": verdict[part] for part in ("status", "value", "reason")}
        row[f"{reading}_correct"] = verdict["status"] == "correct" if counted else None
    return row | _flat(asked)


# What a row of the published archive may hold under a name of the dataset card, with its meaning there.
_UNDERSTOOD = frozenset({"qid", "reachability_task", "config", "token_counts", "correct"})


def _foreign_row(file: ResultFile, row: Mapping[str, Any]) -> Row:
    correct = row.get("correct")
    other = {name: value for name, value in row.items() if name not in _UNDERSTOOD}
    return {
        **dict.fromkeys(COLUMNS),
        "file": file.name,
        "model": file.parts.get("model"),
        "reasoning_effort": file.parts.get("reasoning_effort"),
        "qid": row["qid"],
        "repeat": 0,
        "task": row.get("reachability_task"),
        "card_correct": correct if isinstance(correct, bool) else None,
        "other": _text(other) if other else None,
        **_flat(row),
    }


def not_understood(file: ResultFile) -> str | None:
    """Return what of a file was not understood, in a line, or None."""
    if file.ours:
        return None
    found = foreign_rows(file.value)
    if not found:
        return f"{file.name}: no object in it has a qid"
    names = sorted({name for row in found for name in row} - _UNDERSTOOD)
    tops = sorted(file.value) if isinstance(file.value, dict) else []
    parts = [f"keys of rows: {', '.join(names)}"] if names else []
    parts += [f"keys of the file: {', '.join(tops)}"] if tops else []
    return f"{file.name}: not understood, {'; '.join(parts)}" if parts else None


def placements(file: ResultFile, seen: set[str]) -> Iterator[Row]:
    """Yield where each example is used: its qid, and what its `experiments` say. What is `seen` is passed over."""
    with damage(file):
        for qid, asked in file.asked.items():
            if qid not in seen:
                seen.add(qid)
                for item in asked["experiments"]:
                    yield {"qid": qid, **{name: item.get(name) for name in list(PLACEMENTS)[1:]}}


def summaries(file: ResultFile) -> Iterator[Row]:
    """Yield the summaries of one of our files: for each reading, all, then each value of each variable."""
    if file.ours:
        with damage(file):
            yield from _our_summaries(file)


def _our_summaries(file: ResultFile) -> Iterator[Row]:
    for reading in READINGS:
        under = file.value if reading == file.value["reading"] else file.value[reading]
        groups = [("all", "all", under["overall"])]
        groups += [(name, value, one) for name, values in under["by"].items() for value, one in values.items()]
        for variable, value, one in groups:
            low, high = one["wilson_95"] or (None, None)
            yield {
                "file": file.name,
                "model": file.value["model"],
                "reasoning_effort": file.value["reasoning_effort"],
                "reading": reading,
                "variable": variable,
                "value": value,
                **{name: one[name] for name in ("n", "correct", "percentage", "chance")},
                "low": low,
                "high": high,
                **{status.replace("-", "_"): many for status, many in one["statuses"].items() if status != "correct"},
            }


def as_column(value: Any, kind: str) -> Any:
    """Return a value in the form of its column's type, or None when it has none.

    In a column of text what is no text becomes JSON, and a lone surrogate, which has no UTF-8 form, U+FFFD.
    """
    if value is None:
        return None
    if kind != TEXT:
        # A fraction must be finite, since a Parquet file is made by way of JSON.
        fits = _kind(value) == kind or (kind == NUMBER and _kind(value) == INTEGER)
        return value if fits and (not isinstance(value, float) or math.isfinite(value)) else None
    text = value if isinstance(value, str) else _text(value)
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _flat(one: Mapping[str, Any]) -> Row:
    """Return config and token counts as columns."""
    parts = (("config_", one.get("config")), ("tokens_", one.get("token_counts")))
    return {f"{prefix}{name}": v for prefix, part in parts if isinstance(part, dict) for name, v in part.items()}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int):
        return INTEGER if abs(value) <= _LARGEST else TEXT
    return NUMBER if isinstance(value, float) else TEXT


def _common(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    return NUMBER if kinds == {INTEGER, NUMBER} else TEXT


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _fraction(text: str) -> float:
    top, _, bottom = text.partition("/")
    return int(top) / int(bottom or 1)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST else None


def _reasoning(usage: Mapping[str, Any]) -> Any:
    details = usage.get("completion_tokens_details")
    return usage.get("reasoning_tokens", details.get("reasoning_tokens") if isinstance(details, dict) else None)
