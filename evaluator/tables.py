"""Scores as plain tables, for people."""

from __future__ import annotations

from collections.abc import Sequence

from gniah.evaluator.results import labels
from gniah.evaluator.scoring import NOT_COUNTED, STATUSES, ModelScores, Scores, Summary
from gniah.records.command_line import table

_HEADINGS = ("n", "correct", "%", "95% from", "to", "chance %", "not read or not counted")
# A variable that is drawn freely has a value for every other example; such rows say nothing.
MOST_VALUES = 8
TASK = "task"
OVERALL = "all"


def task_table(scores: Scores) -> str:
    """Return accuracy by model and task."""
    rows = []
    for label, model in zip(labels(scores.models), scores.models, strict=True):
        groups = [*model.by.get(TASK, {}).items(), (OVERALL, model.overall)]
        rows += [(label, model.reasoning_effort, task, *_cells(summary)) for task, summary in groups]
    return table(("model", "effort", "task", *_HEADINGS), rows, title="Accuracy by model and task")


def variable_table(scores: Scores) -> str:
    """Return accuracy by model, variable and value, for variables with few values."""
    rows = []
    skipped: dict[str, None] = {}
    for label, model in zip(labels(scores.models), scores.models, strict=True):
        for variable, values in model.by.items():
            if variable == TASK:
                continue
            if len(values) == 1:
                continue  # the same as the overall row
            if len(values) > MOST_VALUES:
                skipped[variable] = None
                continue
            rows += [
                (label, model.reasoning_effort, variable, value, *_cells(summary)) for value, summary in values.items()
            ]
    text = table(("model", "effort", "variable", "value", *_HEADINGS), rows, title="Accuracy by variable")
    return text + "".join(f"\n{variable}: too many values for a table; see the score files" for variable in skipped)


def troubles(scores: Scores) -> list[str]:
    """Return what a person should know beside the numbers, one line each."""
    lines = []
    if scores.duplicate_examples:
        lines.append(f"{_count(scores.duplicate_examples, 'example')} listed more than once: the first counts")
    for label, model in zip(labels(scores.models), scores.models, strict=True):
        lines += [f"{label}: {line}" for line in _model_troubles(model)]
    return lines


def _model_troubles(model: ModelScores) -> list[str]:
    lines = [
        f"error: example {response.qid} repeat {response.repeat}: {response.reason}" for response in model.errors[:10]
    ]
    if len(model.errors) > 10:
        lines.append(f"{len(model.errors) - 10} more errors; see the score file")
    if model.unknown:
        lines.append(f"{_count(model.unknown, 'response')} to examples that are not in the examples file")
    if model.without_response:
        lines.append(f"{_count(model.without_response, 'example')} without a response")
    if model.duplicates:
        lines.append(f"{model.duplicates} further answers to a request that has one are ignored")
    return lines


def _count(qids: Sequence[str], noun: str) -> str:
    shown = ", ".join(qid[:12] for qid in qids[:3])
    return f"{len(qids)} {noun}{'s' if len(qids) > 1 else ''} ({shown}{', …' if len(qids) > 3 else ''})"


def _cells(summary: Summary) -> tuple[str, ...]:
    low, high = ("–", "–") if summary.interval is None else (f"{100 * bound:.2f}" for bound in summary.interval)
    others = [
        f"{status}{'*' if status in NOT_COUNTED else ''} {summary.statuses[status]}"
        for status in STATUSES
        if status not in ("correct", "wrong") and summary.statuses[status]
    ]
    return (
        str(summary.n),
        str(summary.correct),
        f"{100 * summary.correct / summary.n:.2f}" if summary.n else "–",
        low,
        high,
        f"{100 * float(summary.chance):.2f}" if summary.chance is not None else "–",
        ", ".join(others) or "–",
    )
