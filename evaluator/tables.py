"""Scores as plain tables, for people."""

from __future__ import annotations

from collections.abc import Sequence

from gniah.evaluator.readings import CARD, OURS
from gniah.evaluator.results import labels
from gniah.evaluator.scoring import NOT_COUNTED, READING, STATUSES, ModelScores, Scores
from gniah.evaluator.summaries import Summary
from gniah.records.command_line import table

_HEADINGS = ("n", "correct", "%", "95% from", "to", "chance %", "not read or not counted")
_COUNT_HEADINGS = ("n", "exact %", "too low %", "too high %", "no number %", "within a tenth %", "median ratio")
# A variable that is drawn freely has a value for every other example; such rows say nothing.
MOST_VALUES = 8
TASK = "task"
OVERALL = "all"


def task_table(scores: Scores, reading: str = READING) -> str:
    """Return accuracy by model and task under a reading."""
    rows = []
    for label, model in zip(labels(scores.models), scores.models, strict=True):
        under = model.readings[reading]
        groups = [*under.by.get(TASK, {}).items(), (OVERALL, under.overall)]
        rows += [(label, model.reasoning_effort, task, *_cells(summary)) for task, summary in groups]
    return table(("model", "effort", "task", *_HEADINGS), rows, title=f"Accuracy by model and task{_under(reading)}")


def variable_table(scores: Scores, reading: str = READING) -> str:
    """Return accuracy by model, variable and value under a reading, for variables with few values."""
    rows = []
    skipped: dict[str, None] = {}
    for label, model in zip(labels(scores.models), scores.models, strict=True):
        for variable, values in model.readings[reading].by.items():
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
    title = f"Accuracy by variable{_under(reading)}"
    text = table(("model", "effort", "variable", "value", *_HEADINGS), rows, title=title)
    return text + "".join(f"\n{variable}: too many values for a table; see the score files" for variable in skipped)


def counts_table(scores: Scores, reading: str = READING) -> str | None:
    """Return how answers to questions for a number compare with the right ones, in per cent; None without any."""
    rows = []
    for label, model in zip(labels(scores.models), scores.models, strict=True):
        counts = model.readings[reading].counts
        if counts is not None:
            shares = (counts.exact, counts.too_low, counts.too_high, counts.no_number, counts.within_tenth)
            ratio = "–" if counts.median_ratio is None else f"{counts.median_ratio:.2f}"
            percents = (_percent(share, counts.n) for share in shares)
            rows.append((label, model.reasoning_effort, str(counts.n), *percents, ratio))
    return (
        table(("model", "effort", *_COUNT_HEADINGS), rows, title=f"Counting answers{_under(reading)}") if rows else None
    )


def differences(scores: Scores) -> list[str]:
    """Return for each model how many responses the two readings read differently, and which way."""
    return [
        f"{label}, effort {model.reasoning_effort}: {_difference(model)}"
        for label, model in zip(labels(scores.models), scores.models, strict=True)
    ]


def _difference(model: ModelScores) -> str:
    found = model.differences
    n = model.overall.n
    if not found.responses:
        return f"both readings read the same in all {n} responses"
    ways = [
        f"{many} {way}"
        for many, way in (
            (found.ours_only, "read by ours only"),
            (found.card_only, "by the card only"),
            (found.other_value, "as another answer"),
        )
        if many
    ]
    card, ours = (_percent(model.readings[reading].overall.correct, n) for reading in (CARD, OURS))
    return (
        f"the readings differ in {found.responses} of {n} responses: {', '.join(ways)}; ours gains {found.gained} "
        f"right ones and loses {found.lost}: {card} % by the card, {ours} % by ours; {_shown(found.qids)}"
    )


def _under(reading: str) -> str:
    return "" if reading == READING else f" (reading: {reading})"


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
        f"error: example {response.qid} repeat {response.repeat}: {response.card.reason}"
        for response in model.errors[:10]
    ]
    if len(model.errors) > 10:
        lines.append(f"{len(model.errors) - 10} more errors; see the score file")
    if model.unknown:
        lines.append(f"responses to {_count(model.unknown, 'example')} that are not in the examples file")
    if model.without_response:
        lines.append(f"{_count(model.without_response, 'example')} without a response")
    if model.repeated:
        lines.append(f"{_count(model.repeated, 'example')} asked more than once: no interval where they are counted")
    if model.duplicates:
        many = len(model.duplicates)
        named = _shown([qid for qid, _ in model.duplicates])
        lines.append(f"{many} further answer{'s' if many > 1 else ''} to a request that has one ignored {named}")
    return lines


def _count(qids: Sequence[str], noun: str) -> str:
    return f"{len(qids)} {noun}{'s' if len(qids) > 1 else ''} {_shown(qids)}"


def _shown(qids: Sequence[str]) -> str:
    return f"({', '.join(qid[:12] for qid in qids[:3])}{', …' if len(qids) > 3 else ''})"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}" if whole else "–"


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
        _percent(summary.correct, summary.n),
        low,
        high,
        f"{100 * float(summary.chance):.2f}" if summary.chance is not None else "–",
        ", ".join(others) or "–",
    )
