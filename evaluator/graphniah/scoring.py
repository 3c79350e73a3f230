r"""Reading GraphNIAH's answers by the rules of its dataset card.

yes-no and counting: the last `\answer{…}` block; without one, the end of the response (100 characters for
yes-no, 30 for counting) counts when it is exactly a label or an integer. multiple-choice: the whole response
when it is one option letter, else the block, else the last line that is not empty. A block that is there
decides, readable or not. Each candidate is compared whole, after light normalisation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gniah.evaluator.extraction import ending, last_block, last_line
from gniah.evaluator.graphniah.prompts import asked
from gniah.evaluator.normalisation import integer, normalised, unwrapped
from gniah.evaluator.scoring import AnswerSet, CountRange, Reading
from gniah.records.errors import InputError
from gniah.records.examples import Example
from gniah.records.graphniah import COUNTING, FAMILY, MULTIPLE_CHOICE, YES_NO
from gniah.records.graphniah.settings import distractor_in_tables

LABELS = ("YES", "NO")
# Components have 100 to 250 papers, and the source is not counted (GraphNIAH, appendix D).
COUNT_RANGE: CountRange = (99, 249)
YES_NO_END = 100
COUNTING_END = 30
_OPTION = "option"
_SETTINGS = ("question_depth", "component_node_count", "distractor_type", "context_length")


class GraphNiahScorer:
    """GraphNIAH's half of scoring; see `gniah.evaluator.scoring.Scorer`."""

    def read(self, example: Example, text: str) -> Reading:
        """Return what a response's visible text answers."""
        if example.question_type == MULTIPLE_CHOICE.question_type:
            return _read_choice(text, _letters(example))
        length = COUNTING_END if example.question_type == COUNTING.question_type else YES_NO_END
        block = last_block(text)
        if block is not None:
            value = _value(example, block)
            return Reading(value, None if value else r"the last \answer{} block holds no " + _wanted(example))
        end = ending(text, length)
        value = None if end is None else _value(example, end)
        reason = rf"there is no \answer{{}} block, and the end is not exactly {_an(_wanted(example))}"
        return Reading(value, None if value else reason)

    def gold(self, example: Example) -> str:
        """Return the example's answer in the form that `read` returns. Raises InputError for no answer."""
        value = _value(example, example.answer)
        if value is None:
            raise InputError(
                f"example {example.qid}: the answer {example.answer[:60]!r} is no {_wanted(example)}",
                remedy="make the examples again, or check where they come from",
            )
        return value

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
            return _letters(example)
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


def _letters(example: Example) -> tuple[str, ...]:
    letters = tuple(option.label for option in example.options or ())
    if not letters:
        raise InputError(
            f"example {example.qid}: a multiple-choice question without options",
            remedy="give an examples.jsonl with the fields of the dataset card",
        )
    return letters


def _read_choice(text: str, letters: Sequence[str]) -> Reading:
    whole = _letter(text, letters)
    if whole is not None:
        return Reading(whole, None)
    block = last_block(text)
    if block is not None:
        value = _letter(block, letters)
        return Reading(value, None if value else r"the last \answer{} block holds no letter that was offered")
    value = _letter(last_line(text), letters)
    reason = r"there is no \answer{} block, and the last line is not one letter that was offered"
    return Reading(value, None if value else reason)


def _value(example: Example, candidate: str) -> str | None:
    if example.question_type == MULTIPLE_CHOICE.question_type:
        return _letter(candidate, _letters(example))
    bare = normalised(candidate)
    if bare is None:
        return None
    if example.question_type == COUNTING.question_type:
        return integer(bare)
    return bare.upper() if bare.upper() in LABELS else None


def _letter(candidate: str, letters: Sequence[str]) -> str | None:
    """Return the offered letter that a candidate is: `C`, `c`, `(C)`, `C.`, `Option C`."""
    bare = normalised(candidate)
    if bare is None:
        return None
    if bare[: len(_OPTION)].casefold() == _OPTION and bare[len(_OPTION) : len(_OPTION) + 1] in (
        " ",
        "(",
        "*",
    ):
        bare = unwrapped(bare[len(_OPTION) :])
    return bare.upper() if bare.upper() in letters else None


def _wanted(example: Example) -> str:
    return "integer" if example.question_type == COUNTING.question_type else "label"


def _an(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
