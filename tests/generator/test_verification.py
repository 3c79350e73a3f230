from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gniah.generator.graphniah.building import ExampleBuilder, Materials
from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.generator.verification import Verdict, open_journal, verify, verify_all
from gniah.records.errors import InputError
from gniah.records.examples import Example


@pytest.fixture(scope="module")
def examples(toy_materials: Materials, list_of: Callable[..., ListSettings]) -> list[Example]:
    builder = ExampleBuilder(toy_materials)
    settings = list_of(count=6, vary="question-format", depths=(2,), context_length=2500)
    return [builder.build(slot).example for slot in slots(settings)]


def test_right_examples_are_found_right(examples: list[Example]) -> None:
    assert [verify(example) for example in examples] == [
        Verdict(example.qid, task, example.answer, example.answer, None)
        for example, task in zip(examples, ["yes-no", "multiple-choice", "counting"] * 2, strict=True)
    ]


def test_a_wrong_answer_is_found(examples: list[Example]) -> None:
    verdict = verify(replace(examples[2], answer="3"))
    assert not verdict.right
    assert (verdict.answer, verdict.found) == ("3", examples[2].answer)


def test_every_lost_citation_of_the_source_component_is_found_and_no_other_matters(examples: list[Example]) -> None:
    example = examples[2]
    lines = example.user_prompt.split("\n")
    wrong = 0
    for place, line in enumerate(lines):
        if line.startswith("- "):
            cut = "\n".join(lines[:place] + lines[place + 1 :])
            wrong += not verify(replace(example, user_prompt=cut)).right
    # A tree of n + 1 papers has n citations, and each of them is needed to reach n papers.
    assert wrong == int(example.answer)


def test_a_question_that_is_not_in_the_prompt_is_found(examples: list[Example]) -> None:
    verdict = verify(replace(examples[0], question=examples[0].question + " "))
    assert (verdict.right, verdict.reason) == (False, "the question is not in the prompt")


def test_a_prompt_of_another_task_is_found(examples: list[Example]) -> None:
    counting = examples[2]
    verdict = verify(replace(counting, question_type="reachability-yesno"))
    assert (verdict.right, verdict.found, verdict.reason) == (False, None, "read as counting")


def test_a_cut_prompt_has_no_answer(examples: list[Example]) -> None:
    verdict = verify(replace(examples[0], user_prompt=examples[0].user_prompt.partition("# Context")[0]))
    assert verdict.found is None
    assert verdict.reason


def test_a_question_type_that_nobody_knows_is_an_input_error(examples: list[Example]) -> None:
    with pytest.raises(InputError, match="riddle"):
        verify(replace(examples[0], question_type="riddle"))


def test_verdicts_come_in_order_from_any_number_of_processes(examples: list[Example]) -> None:
    some = [replace(example, answer="D") if number % 4 == 1 else example for number, example in enumerate(examples * 2)]
    alone = list(verify_all(some))
    assert [verdict.qid for verdict in alone] == [example.qid for example in some]
    assert list(verify_all(some, jobs=2)) == alone


def test_a_verification_that_was_stopped_goes_on_from_its_journal(examples: list[Example], tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    with pytest.raises(KeyboardInterrupt), open_journal(path) as journal:
        for number, _ in enumerate(verify_all(examples, journal=journal)):
            if number == 1:
                raise KeyboardInterrupt
    kept = tmp_path / ".examples.jsonl.verified"
    with kept.open("ab") as stream:
        stream.write(b'{"key":"cut off')
    with open_journal(path) as journal:
        assert journal is not None
        assert len(journal) == 2
        assert kept.read_bytes().endswith(b"}\n")
        assert list(verify_all(examples, journal=journal)) == list(verify_all(examples))
        assert len(journal) == len(examples)
    assert not kept.exists()
