"""GraphNIAH's half of scoring: right answers, variables, possible answers, and how responses are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gniah.evaluator.graphniah import reading
from gniah.evaluator.graphniah.prompts import asked
from gniah.evaluator.graphniah.reading import LABELS, Kind
from gniah.evaluator.readings import Readings
from gniah.evaluator.scoring import AnswerSet, CountRange
from gniah.records.errors import InputError
from gniah.records.examples import Example
from gniah.records.graphniah import COUNTING, FAMILY, MULTIPLE_CHOICE, YES_NO
from gniah.records.graphniah.settings import distractor_in_tables

# Components have 100 to 250 papers, and the source is not counted (GraphNIAH, appendix D).
COUNT_RANGE: CountRange = (99, 249)
_SETTINGS = ("question_depth", "component_node_count", "distractor_type", "context_length")


class GraphNiahScorer:
    """GraphNIAH's half of scoring; see `gniah.evaluator.scoring.Scorer`."""

    def read(self, example: Example, text: str) -> Readings:
        """Return what a response's visible text answers."""
        return reading.read(_kind(example), text)

    def gold(self, example: Example) -> str:
        """Return the example's answer in the form that `read` returns. Raises InputError for no answer."""
        kind = _kind(example)
        value = reading.value_of(kind, example.answer)
        if value is None:
            raise InputError(
                f"example {example.qid}: the answer {example.answer[:60]!r} is not {kind.wanted}",
                remedy="make the examples again, or check where they come from",
            )
        return value

    def counts(self, example: Example) -> bool:
        """Return whether the answer is a number, so that it can be too low or too high."""
        return example.question_type == COUNTING.question_type

    def variables(self, example: Example) -> Mapping[str, str]:
        """Return the task and the settings that tables are made by, as they are shown."""
        shown = {"task": self._task_name(example)}
        for name in _SETTINGS:
            if name in example.config:
                value = str(example.config[name])
                shown[name] = distractor_in_tables(value) if name == "distractor_type" else value
        return shown

    def possible_answers(self, example: Example, count_range: CountRange | None = None) -> Sequence[str]:
        """Return all answers an example could have had."""
        if example.question_type == MULTIPLE_CHOICE.question_type:
            return tuple(_texts(example))
        return _answers(example.question_type, count_range)

    def answers_to(
        self, system_prompt: str, user_prompt: str, count_range: CountRange | None = None
    ) -> AnswerSet | None:
        """Return task and possible answers of two prompts, or None when they are not GraphNIAH's."""
        found = asked(user_prompt)
        if found is None:
            return None
        return AnswerSet(found.task.name, found.letters or _answers(found.task.question_type, count_range))

    def constant_answers(self) -> Mapping[str, str]:
        """Return what the constant model answers: as if a search had found as little as it can."""
        return {YES_NO.name: "NO", MULTIPLE_CHOICE.name: "A", COUNTING.name: str(COUNT_RANGE[0])}

    def count_range(self, list_settings: Mapping[str, Any]) -> CountRange | None:
        """Return the range of counts in a list: a component's papers without the source (GraphNIAH, appendix D)."""
        sizes = [*list_settings.get("component_node_counts", ()), *list_settings.get("varied_sizes", ())]
        if not sizes or not all(type(size) is int and size > 0 for size in sizes):
            return None
        return (min(sizes) - 1, max(sizes) - 1)

    def _task_name(self, example: Example) -> str:
        task = FAMILY.task_of(example.question_type)
        return example.task if task is None else task.name


SCORER = GraphNiahScorer()


def _answers(question_type: str, count_range: CountRange | None) -> Sequence[str]:
    if question_type == YES_NO.question_type:
        return LABELS
    low, high = count_range or COUNT_RANGE
    return tuple(str(count) for count in range(low, high + 1))


def _kind(example: Example) -> Kind:
    if example.question_type == MULTIPLE_CHOICE.question_type:
        return reading.Choice(_texts(example))
    return reading.COUNTING_KIND if example.question_type == COUNTING.question_type else reading.YES_NO_KIND


def _texts(example: Example) -> Mapping[str, str]:
    """Return the options' texts by their letters. Raises InputError without options."""
    texts = {option.label: option.text for option in example.options or ()}
    if not texts:
        raise InputError(
            f"example {example.qid}: a multiple-choice question without options",
            remedy="give an examples.jsonl with the fields of the dataset card",
        )
    return texts
