"""Score files: `RUN/eval/reasoning_effort=<effort>/model=<name>.json`, the same bytes for the same scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from gniah.evaluator.scoring import READING, ModelScores, Scores, Summary, settled
from gniah.records.canonical import digest
from gniah.records.files import remove_leftovers, write_json

EVAL_SCHEMA = "gniah/eval/1"
EVAL_FOLDER = "eval"


def escaped(name: str) -> str:
    """Return a name as one part of a path, percent-encoded but for letters, digits and `_-~.`.

    `unescaped` gives it back. A leading point is encoded too, so no name is hidden, `.` or `..`.
    """
    text = quote(name, safe="")
    return f"%2E{text[1:]}" if text.startswith(".") else text


def unescaped(part: str) -> str:
    """Return the name that `escaped` made a part of a path from."""
    return unquote(part)


def labels(models: Sequence[ModelScores]) -> list[str]:
    """Return a name to show for each: the model's, with a hash where a name and effort has several."""
    shared = Counter((model.model, model.reasoning_effort) for model in models)
    return [
        model.model if shared[model.model, model.reasoning_effort] == 1 else f"{model.model} [{settings_hash(model)}]"
        for model in models
    ]


def settings_hash(model: ModelScores) -> str:
    """Return a short name of a model's address and parameters."""
    return digest([model.base_address, settled(model.parameters)])[:12]


def eval_path(run: Path, model: ModelScores, *, shared: bool) -> Path:
    """Return where a model's scores stand in a run folder; `shared` when its name and effort name several."""
    suffix = f".settings={settings_hash(model)}" if shared else ""
    effort = escaped(model.reasoning_effort)
    return run / EVAL_FOLDER / f"reasoning_effort={effort}" / f"model={escaped(model.model)}{suffix}.json"


def write_scores(run: Path, scores: Scores) -> list[Path]:
    """Write one file for each model, whole or not at all; return their paths."""
    shared = Counter((model.model, model.reasoning_effort) for model in scores.models)
    paths = []
    for model in scores.models:
        path = eval_path(run, model, shared=shared[model.model, model.reasoning_effort] > 1)
        remove_leftovers(path)  # the run folder is held
        write_json(path, model_json(model, scores))
        paths.append(path)
    return paths


def model_json(model: ModelScores, scores: Scores) -> dict[str, Any]:
    """Return one model's scores as the object of its file."""
    return {
        "schema": EVAL_SCHEMA,
        "reading": READING,
        "model": model.model,
        "base_address": model.base_address,
        "reasoning_effort": model.reasoning_effort,
        "parameters": dict(model.parameters),
        "examples": scores.examples,
        "duplicate_examples": list(scores.duplicate_examples),
        "duplicate_responses": model.duplicates,
        "unknown_examples": list(model.unknown),
        "without_response": list(model.without_response),
        "overall": summary_json(model.overall),
        "by": {
            variable: {value: summary_json(summary) for value, summary in values.items()}
            for variable, values in model.by.items()
        },
        "responses": [
            {
                "qid": response.qid,
                "repeat": response.repeat,
                "status": response.status,
                "value": response.value,
                "gold": response.gold,
                "reason": response.reason,
                "key": response.key,
            }
            for response in model.responses
        ],
    }


def summary_json(summary: Summary) -> Mapping[str, Any]:
    """Return a summary with its rates in per cent, to four places."""
    return {
        "n": summary.n,
        "correct": summary.correct,
        "percentage": percentage(Fraction(summary.correct, summary.n) if summary.n else None),
        "wilson_95": None if summary.interval is None else [percentage(bound) for bound in summary.interval],
        "chance": percentage(summary.chance),
        "statuses": dict(summary.statuses),
    }


def percentage(rate: Fraction | float | None) -> float | None:
    """Return a rate in per cent to four places, or None."""
    return None if rate is None else round(100 * float(rate), 4)
