from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gniah.generator.graphniah.building import Built, ExampleBuilder, Materials
from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.generator.graphniah.none_option import none_variant, write_none_variants
from gniah.generator.graphniah.production import Sources, produce
from gniah.generator.tokenizers import request_counts
from gniah.generator.verification import verify
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.examples import Example, Option, read_examples
from gniah.records.manifests import Manifest

OPTION = "E. None of these targets is reachable from the source."
TOKENIZERS = ("tiktoken:o200k_base",)


@pytest.fixture(scope="module")
def built(toy_materials: Materials, list_of: Callable[..., ListSettings]) -> list[Built]:
    builder = ExampleBuilder(toy_materials)
    return [builder.build(slot) for slot in slots(list_of(count=4, tasks=("multiple-choice",), depths=(2,)))]


def variant(result: Built, materials: Materials) -> Example:
    return none_variant(result.example, dict(result.record.inputs), tuple(materials.tokenizers), materials.templates)


def test_nothing_but_the_question_line_changes(toy_materials: Materials, built: list[Built]) -> None:
    for result in built:
        before, after = result.example, variant(result, toy_materials)
        assert after.question == before.question + "\n" + OPTION
        lines = after.user_prompt.split("\n")
        assert lines.count(OPTION) == 1
        lines.remove(OPTION)
        assert "\n".join(lines) == before.user_prompt
        assert after.system_prompt == before.system_prompt
        assert (after.answer, after.task, after.question_type) == (before.answer, before.task, before.question_type)
        assert before.options is not None
        assert after.options == (*before.options, Option("E", "None of these targets is reachable from the source."))
        assert dict(after.config) == {**before.config, "none_option": 1, "source_qid": before.qid}
        assert after.qid != before.qid


def test_the_counts_are_those_of_the_new_prompt(toy_materials: Materials, built: list[Built]) -> None:
    for result in built:
        after = variant(result, toy_materials)
        assert after.token_counts == request_counts(toy_materials.tokenizers, after.system_prompt, after.user_prompt)
        assert after.token_counts["o200k_base"] > result.example.token_counts["o200k_base"]


def test_the_text_still_gives_the_answer(toy_materials: Materials, built: list[Built]) -> None:
    assert all(verify(variant(result, toy_materials)).right for result in built)


def test_a_question_that_stands_twice_is_refused(toy_materials: Materials, built: list[Built]) -> None:
    example = built[0].example
    twice = replace(example, user_prompt=example.user_prompt + "\n" + example.question)
    with pytest.raises(InputError, match="does not stand exactly once"):
        none_variant(twice, {}, tuple(toy_materials.tokenizers), toy_materials.templates)


@pytest.fixture(scope="module")
def bench(rfc_sources: Sources, list_of: Callable[..., ListSettings], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("none") / "bench"
    produce(list_of(count=12, vary="question-format", depths=(2,)), rfc_sources, out)
    return out


def test_a_folder_is_converted_in_its_order(bench: Path, tmp_path: Path) -> None:
    chosen = [one for one in read_examples(bench / "examples.jsonl") if one.task == "multiple-choice"]
    assert write_none_variants(bench, tmp_path / "all", TOKENIZERS) == 4
    converted = list(read_examples(tmp_path / "all" / "examples.jsonl"))
    assert [one.config["source_qid"] for one in converted] == [one.qid for one in chosen]
    assert write_none_variants(bench, tmp_path / "two", TOKENIZERS, first=2) == 2
    whole = (tmp_path / "all" / "examples.jsonl").read_bytes()
    part = (tmp_path / "two" / "examples.jsonl").read_bytes()
    assert whole.startswith(part)
    content = Manifest.read(tmp_path / "two", "gniah/bench/1").content
    assert content["counts"] == {"examples": 2}
    assert content["plan"]["none_option_of"] == Manifest.read(bench, "gniah/bench/1").digest


def test_a_folder_in_use_and_other_labels_are_refused(bench: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="holds a benchmark already"):
        write_none_variants(bench, bench, TOKENIZERS)
    with pytest.raises(UsageFault, match="were counted under o200k_base, not gpt"):
        write_none_variants(bench, tmp_path / "out", ("gpt=tiktoken:o200k_base",))
    assert not (tmp_path / "out" / "examples.jsonl").exists()


def test_a_folder_without_multiple_choice_is_refused(
    rfc_sources: Sources, list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    produce(list_of(count=1, tasks=("counting",), depths=(2,)), rfc_sources, tmp_path / "bench")
    with pytest.raises(ImpossibleRequest, match="holds no multiple-choice example"):
        write_none_variants(tmp_path / "bench", tmp_path / "out", TOKENIZERS)
    assert not (tmp_path / "out" / "examples.jsonl").exists()
