from __future__ import annotations

import pytest
from evaluator_toys import example

from gniah.evaluator.graphniah.prompts import asked
from gniah.evaluator.graphniah.scoring import SCORER
from gniah.records.errors import InputError


@pytest.mark.parametrize("task", ["yes-no", "multiple-choice", "counting"])
def test_the_task_is_seen_in_the_prompt(task: str) -> None:
    found = asked(example(task).user_prompt)
    assert found is not None
    assert found.task.name == task


@pytest.mark.parametrize("letters", ["ABCD", "ABCDE"])
def test_the_offered_letters_are_the_possible_answers(letters: str) -> None:
    prompt = example("multiple-choice", letters=letters).user_prompt
    answers = SCORER.answers_to("", prompt)
    assert answers is not None
    assert "".join(answers.answers) == letters


def test_a_count_lies_in_the_range_that_is_given() -> None:
    prompt = example("counting").user_prompt
    usual, given = SCORER.answers_to("", prompt), SCORER.answers_to("", prompt, (3, 5))
    assert usual is not None and given is not None
    assert (usual.answers[0], usual.answers[-1], len(usual.answers)) == ("99", "249", 151)
    assert list(given.answers) == ["3", "4", "5"]


@pytest.mark.parametrize("prompt", ["", "What is 2 + 2?", "# Question\n\nx\n\n# Context\n\ny"])
def test_other_prompts_are_not_recognised(prompt: str) -> None:
    assert asked(prompt) is None
    assert SCORER.answers_to("", prompt) is None


@pytest.mark.parametrize(("task", "answer"), [("yes-no", "MAYBE"), ("counting", ""), ("multiple-choice", "E")])
def test_an_example_whose_own_answer_cannot_be_read_is_refused(task: str, answer: str) -> None:
    with pytest.raises(InputError, match="qid-0"):
        SCORER.gold(example(task, answer))


def test_a_choice_without_options_is_refused() -> None:
    with pytest.raises(InputError, match="without options"):
        SCORER.gold(example("multiple-choice", "A", letters=""))


def test_distractors_are_shown_by_their_name_in_tables() -> None:
    shown = SCORER.variables(example("counting", "7", number=3))
    assert dict(shown) == {
        "task": "counting",
        "question_depth": "4",
        "component_node_count": "103",
        "distractor_type": "disjoint-component",
        "context_length": "200000",
    }
