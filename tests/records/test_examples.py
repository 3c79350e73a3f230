from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gniah.records.errors import InputError
from gniah.records.examples import FIELDS, Example, Option, examples_path, read_examples, write_examples
from gniah.records.files import json_line


def example(**more: Any) -> Example:
    values: dict[str, Any] = {
        "qid": "ab" * 32,
        "task": "REACHABILITY_YESNO",
        "system_prompt": "s",
        "user_prompt": 'u\u2028 "q" 論文',
        "question": "q?",
        "answer": "A",
        "question_type": "reachability-multiple",
        "answer_type": "REACHABILITY_MULTIPLE",
        "options": (Option("A", "one"), Option("B", "two")),
        "config": {"alpha": "0.1"},
        "token_counts": {"o200k_base": 10},
        "generator_version": "1",
        "experiments": ({"vary": "x"},),
    }
    return Example(**(values | more))


def test_round_trip_with_and_without_options(tmp_path: Path) -> None:
    written = [example(), example(options=None, answer="YES")]
    path = tmp_path / "examples.jsonl"
    path.write_bytes(b"".join(json_line(item.to_json()) for item in written))
    assert list(read_examples(path)) == written


def test_what_is_written_is_read_back_and_half_of_it_is_not_there(tmp_path: Path) -> None:
    written = [example(), example(options=None, answer="YES")]
    assert write_examples(tmp_path / "examples.jsonl", iter(written)) == 2
    assert list(read_examples(tmp_path / "examples.jsonl")) == written

    def broken() -> Iterator[Example]:
        yield example()
        raise ValueError

    with pytest.raises(ValueError):
        write_examples(tmp_path / "other.jsonl", broken())
    assert [path.name for path in tmp_path.iterdir()] == ["examples.jsonl"]


def test_the_published_fields_are_the_cards_in_its_order() -> None:
    assert tuple(example().to_json()) == FIELDS
    assert tuple(example(options=None).to_json()) == tuple(name for name in FIELDS if name != "options")


def test_experiments_are_replaced_and_the_rest_is_kept() -> None:
    assert example().with_experiments(()) == example(experiments=())


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "options"])
def test_a_missing_field_is_named_with_file_and_line(tmp_path: Path, name: str) -> None:
    value = example().to_json()
    del value[name]
    path = tmp_path / "examples.jsonl"
    path.write_bytes(json_line(example().to_json()) + json_line(value))
    with pytest.raises(InputError, match=re.escape(f"{path}:2: an example lacks {name}")):
        list(read_examples(path))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("qid", 5, "qid must be a string, found int"),
        ("answer", None, "answer must be a string, found NoneType"),
        ("generator_version", 1, "generator_version must be a string, found int"),
        ("options", "ABCD", "options must be a list of objects with label and text"),
        ("options", [{"label": "A"}], "options must be a list of objects with label and text"),
        ("options", 3, "options must be a list of objects with label and text"),
        ("config", [], "config must be a JSON object"),
        ("token_counts", None, "token_counts must be a JSON object"),
        ("experiments", {}, "experiments must be a list"),
    ],
)
def test_a_wrong_type_is_named(name: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=f"^f:7: {re.escape(message)}$"):
        Example.from_json(example().to_json() | {name: value}, "f:7")


def test_unknown_fields_are_passed_over() -> None:
    assert Example.from_json(json.loads(json.dumps(example().to_json() | {"extra": 1})), "f:1") == example()


def test_a_path_names_the_file_or_its_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"examples\.jsonl: no such file"):
        examples_path(tmp_path)
    with pytest.raises(InputError, match="other: no such file"):
        examples_path(tmp_path / "other")
    (tmp_path / "examples.jsonl").write_bytes(b"")
    assert examples_path(tmp_path) == examples_path(tmp_path / "examples.jsonl") == tmp_path / "examples.jsonl"
