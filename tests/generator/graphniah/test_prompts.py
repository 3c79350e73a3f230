from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gniah.generator.graphniah import prompts
from gniah.generator.graphniah.prompts import filled, load_templates
from gniah.records.errors import InputError, UsageFault

SHIPPED = Path(prompts.__file__).parent / "templates" / "plain.json"


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("{a} and {b}", {"a": "1", "b": "2"}, "1 and 2"),
        ("{a}{a}", {"a": "x"}, "xx"),
        ("{a} {b}", {"a": "{b}", "b": "{a}"}, "{b} {a}"),
        ("\\answer{YES} {a}", {"a": "1"}, "\\answer{YES} 1"),
        ("{ a } {a", {"a": "1"}, "{ a } {a"),
        ("{a}", {"a": "\\1 \\g<0>"}, "\\1 \\g<0>"),
    ],
)
def test_places_are_filled_in_one_pass(template: str, values: dict[str, str], text: str) -> None:
    assert filled(template, values) == text


def test_the_user_prompt_has_its_sections_in_order() -> None:
    templates = load_templates("plain")
    prompt = templates.user_prompt("counting", "How many? {context}", "Block {reminder}\n\n{question}")
    assert prompt == (
        "# Question\n\nHow many? {context}\n\n# Context\n\nBlock {reminder}\n\n{question}\n\n# Response Format\n\n"
        + templates.reminder["counting"]
    )


def test_titles_stand_in_questions_as_they_are() -> None:
    templates = load_templates("plain")
    source, target = 'On {target} "now"', "\\answer{NO} {source}"
    asked = templates.ask("yes-no", source, target=target)
    assert f'from the paper "{source}" to the paper "{target}"' in asked
    choices = templates.ask("multiple-choice", source, options=[("A", "{label}"), ("B", "{options}")])
    assert choices.endswith('\n\nA. Paper "{label}"\nB. Paper "{options}"')
    assert templates.with_none_option(choices, "E") == (
        choices + "\nE. None of these targets is reachable from the source."
    )


def test_every_task_ends_with_its_own_answer_line() -> None:
    templates = load_templates("plain")
    assert "\\answer{YES}" in templates.reminder["yes-no"]
    assert "\\answer{X}" in templates.reminder["multiple-choice"]
    assert "\\answer{N}" in templates.reminder["counting"]


def test_the_digest_covers_every_text() -> None:
    templates = load_templates("plain")
    changed = [
        replace(templates, name="x"),
        replace(templates, option="{label}) {title}"),
        replace(templates, none_option="{label}. None."),
        replace(templates, user="{question}{context}{reminder}"),
    ]
    for field in ("system", "question", "reminder"):
        for task, text in getattr(templates, field).items():
            longer: dict[str, Any] = {field: {**getattr(templates, field), task: text + " "}}
            changed.append(replace(templates, **longer))
    assert len({templates.digest, *(one.digest for one in changed)}) == 1 + 4 + 9


def write(path: Path, **changed: Any) -> str:
    value = json.loads(SHIPPED.read_text(encoding="utf-8")) | changed
    path.write_text(json.dumps({name: text for name, text in value.items() if text is not None}), encoding="utf-8")
    return str(path)


def test_a_set_can_be_a_file_and_is_the_same_wherever_it_lies(tmp_path: Path) -> None:
    assert load_templates(write(tmp_path / "mine.json")).digest == load_templates("plain").digest


@pytest.mark.parametrize("name", ["fancy", "../templates/plain", "", "PLAIN"])
def test_an_unknown_set_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UsageFault, match="there is no template set") as caught:
        load_templates(name)
    assert "plain" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"user": None}, "needs 'user'"),
        ({"system": {"yes-no": "x", "counting": "y"}}, "'system' needs a text for 'multiple-choice'"),
        ({"reminder": "x"}, "'reminder' needs a text for 'yes-no'"),
        ({"schema": "gniah/templates/2"}, "newer version"),
        ({"schema": "gniah/pool/1"}, "expected the schema 'gniah/templates/1'"),
    ],
)
def test_a_file_that_is_no_whole_set_is_an_input_error(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_templates(write(tmp_path / "mine.json", **changed))
