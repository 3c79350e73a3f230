"""Score files: `RUN/eval/reasoning_effort=<effort>/model=<name>.json`, the same bytes for the same scores."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from gniah.evaluator.ledger import json_bytes
from gniah.evaluator.readings import OURS, READINGS
from gniah.evaluator.scoring import READING, KnownExample, ModelScores, Scores, settled
from gniah.evaluator.summaries import CountDetails, ReadingScores, Summary
from gniah.records.canonical import digest
from gniah.records.files import json_document, remove_leftovers, whole_file

EVAL_SCHEMA = "gniah/eval/2"
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
    paths = score_paths(run, scores)
    for path, model in zip(paths, scores.models, strict=True):
        remove_leftovers(path)  # the run folder is held
        with whole_file(path) as stream:
            stream.writelines(_document(model, scores))
    return paths


def score_paths(run: Path, scores: Scores) -> list[Path]:
    """Return where each model's scores stand in a run folder."""
    shared = Counter((model.model, model.reasoning_effort) for model in scores.models)
    return [eval_path(run, one, shared=shared[one.model, one.reasoning_effort] > 1) for one in scores.models]


def _document(model: ModelScores, scores: Scores) -> Iterator[bytes]:
    """Yield a score file in pieces: its head indented, then examples and responses a line each."""
    yield json_document(model_json(model, scores)).removesuffix(b"\n}\n")
    asked = (json_bytes(asked_json(one)) for one in model.asked)
    for name, lines in (("asked", asked), ("responses", model.responses.lines())):
        yield b',\n "%s": [' % name.encode("ascii")
        before = b"\n  "
        for line in lines:
            yield before + line
            before = b",\n  "
        yield b"\n ]" if before != b"\n  " else b"]"
    yield b"\n}\n"


def model_json(model: ModelScores, scores: Scores) -> dict[str, Any]:
    """Return one model's scores as the object of its file, without what is there once an example or response."""
    card, ours = (_reading_json(model.readings[reading]) for reading in READINGS)
    return {
        "schema": EVAL_SCHEMA,
        "model": model.model,
        "base_address": model.base_address,
        "reasoning_effort": model.reasoning_effort,
        "parameters": dict(model.parameters),
        "examples": scores.examples,
        "duplicate_examples": list(scores.duplicate_examples),
        "duplicate_responses": [{"qid": qid, "repeat": repeat} for qid, repeat in model.duplicates],
        "repeated_examples": list(model.repeated),
        "unknown_examples": list(model.unknown),
        "without_response": list(model.without_response),
        "reading": READING,
        **card,
        OURS: ours,
        "differences": {**dataclasses.asdict(model.differences), "qids": list(model.differences.qids)},
    }


def asked_json(one: KnownExample) -> dict[str, Any]:
    """Return what a score file keeps of an example, so that it can be understood without the prompts."""
    return {
        "qid": one.example.qid,
        "chance": str(one.chance),
        "variables": dict(one.variables),
        "config": dict(one.example.config),
        "token_counts": dict(one.example.token_counts),
        "experiments": [dict(item) for item in one.example.experiments],
    }


def _reading_json(scores: ReadingScores) -> dict[str, Any]:
    return {
        "overall": summary_json(scores.overall),
        "by": {
            variable: {value: summary_json(summary) for value, summary in values.items()}
            for variable, values in scores.by.items()
        },
        "counts": None if scores.counts is None else _counts_json(scores.counts),
    }


def _counts_json(counts: CountDetails) -> dict[str, Any]:
    ratio = counts.median_ratio
    return {**dataclasses.asdict(counts), "median_ratio": None if ratio is None else round(ratio, 4)}


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
