from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from evaluator_toys import example, mixed, write_examples

from gniah.evaluator.selection import Selection, Wanted, select
from gniah.records.errors import InputError, UsageFault
from gniah.records.examples import Example
from gniah.records.files import json_line
from gniah.records.responses import prompt_sha256


def uses(*places: tuple[str, int, int]) -> tuple[dict[str, object], ...]:
    return tuple({"name": name, "context_length": length, "slot": slot} for name, length, slot in places)


def bench(folder: Path) -> Path:
    """Write five examples: `depth` in the order 4 2 0 at 100, `depth` at 200 is example 1, `size` is 3 and 0."""
    examples = [
        example(number=0).with_experiments(uses(("depth", 100, 2), ("size", 100, 1))),
        example(number=1).with_experiments(uses(("depth", 200, 0))),
        example(number=2).with_experiments(uses(("depth", 100, 1))),
        example(number=3).with_experiments(uses(("size", 100, 0))),
        example(number=4).with_experiments(uses(("depth", 100, 0))),
    ]
    return write_examples(folder, examples)


def numbers(selection: Selection) -> list[int]:
    return [int(one.qid.removeprefix("qid-")) for one in selection.chosen]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), [0, 1, 2, 3, 4]),
        (Wanted(limit=2), [0, 1]),
        (Wanted(experiment="size"), [3, 0]),
        (Wanted(experiment="depth", context_length=100), [4, 2, 0]),
        (Wanted(context_length=200), [1]),
        (Wanted(experiment="depth", context_length=100, slots=(1, 2)), [2, 0]),
        (Wanted(experiment="depth", context_length=100, slots=(1, 9), limit=1), [2]),
    ],
)
def test_what_is_wanted_is_chosen_in_the_order_of_slots(tmp_path: Path, wanted: Wanted, found: list[int]) -> None:
    assert numbers(select(bench(tmp_path), wanted)) == found
    assert numbers(select(tmp_path, wanted)) == found


def test_prompts_are_read_again_where_they_stand(tmp_path: Path) -> None:
    path = bench(tmp_path)
    with select(path, Wanted(experiment="size")) as selection:
        read = [selection.read(one) for one in selection.chosen]
        only = selection.only(selection.chosen[1:])
        assert only.read(only.chosen[0]) == read[1]
    assert [one.qid for one in read] == ["qid-3", "qid-0"]
    for one, chosen in zip(read, selection.chosen, strict=True):
        assert chosen.prompt_sha256 == prompt_sha256(one.system_prompt, one.user_prompt)
        assert dict(chosen.token_counts) == dict(one.token_counts)


def write_list(folder: Path, qids: list[str]) -> Path:
    path = folder / "cutoff_date=2026-04-01" / "vary=depth" / "experiment.jsonl"
    path.parent.mkdir(parents=True)
    lines = [json_line({"slot": slot, "qid": qid, "value": "x"}) for slot, qid in enumerate(qids)]
    path.write_bytes(b"".join(lines[::-1]))
    return path


def test_a_list_names_examples_of_the_benchmark_around_it(tmp_path: Path) -> None:
    bench(tmp_path)
    path = write_list(tmp_path, ["qid-3", "qid-0", "qid-3", "qid-2"])
    assert numbers(select(path)) == [3, 0, 2]  # what stands in two slots is asked once
    assert numbers(select(path, Wanted(slots=(1, 2)))) == [0, 3]
    with pytest.raises(UsageFault, match="is one list already"):
        select(path, Wanted(experiment="depth"))


def test_a_list_of_other_examples_is_refused(tmp_path: Path) -> None:
    bench(tmp_path)
    with pytest.raises(InputError, match=r"lacks 2 examples of .*, the first being qid-7"):
        select(write_list(tmp_path, ["qid-0", "qid-7", "qid-8"]))


def test_a_list_without_examples_around_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no examples\.jsonl in a folder above"):
        select(write_list(tmp_path, ["qid-0"]))


def test_lines_whose_qid_does_not_stand_first_are_found_too(tmp_path: Path) -> None:
    bench(tmp_path)
    lines = [dict(reversed(json.loads(line).items())) for line in (tmp_path / "examples.jsonl").open()]
    (tmp_path / "examples.jsonl").write_bytes(b"".join(map(json_line, lines)))
    assert numbers(select(write_list(tmp_path, ["qid-3", "qid-0"]))) == [3, 0]


def test_several_lists_of_one_name_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="several lists fit: depth at 100, depth at 200"):
        select(bench(tmp_path), Wanted(experiment="depth"))


@pytest.mark.parametrize("wanted", [Wanted(experiment="nothing"), Wanted(experiment="size", slots=(7, 9))])
def test_nothing_chosen_is_an_error(tmp_path: Path, wanted: Wanted) -> None:
    with pytest.raises(UsageFault, match="holds no example that was asked for"):
        select(bench(tmp_path), wanted)


def test_a_file_that_is_changed_while_it_is_in_use_is_noticed(tmp_path: Path) -> None:
    path = write_examples(tmp_path, mixed(3))
    with select(path) as selection:
        changed = [dataclasses.replace(one, question=one.question + " ") for one in mixed(3)]
        prompts = [one.user_prompt.replace("Title: X.", "Title: Y.") for one in mixed(3)]
        others = [dataclasses.replace(one, user_prompt=prompt) for one, prompt in zip(mixed(3), prompts, strict=True)]
        for examples in (changed, others):
            path.write_bytes(b"".join(json_line(one.to_json()) for one in examples))
            with pytest.raises(InputError, match="was changed while it was in use"):
                for one in selection.chosen:
                    selection.read(one)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{\n", "not JSON"),
        (b"{", "the file was cut"),
        (b"[]\n", "expected a JSON object"),
        (b'{"qid":"x"}\n', "an example lacks"),
        (b"", "twice"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, line: bytes, message: str) -> None:
    first = json_line(example(number=0).to_json())
    (tmp_path / "examples.jsonl").write_bytes(first + (line or first))
    with pytest.raises(InputError, match=message):
        select(tmp_path)


def test_counts_that_are_none_are_refused(tmp_path: Path) -> None:
    wrong: Example = dataclasses.replace(example(number=0), token_counts={"t": -1})
    with pytest.raises(InputError, match=r"token_counts\.t"):
        select(write_examples(tmp_path, [wrong]))
