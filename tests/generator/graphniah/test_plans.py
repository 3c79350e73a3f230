from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from gniah.generator import Document, FolderCorpus, load_tokenizers
from gniah.generator.graphniah import (
    ListSettings,
    Materials,
    Sources,
    build_examples,
    open_materials,
    prompts,
    sources_for,
)
from gniah.records import UsageFault, digest


class OneNote:
    """A corpus of one document."""

    digest = digest("one note")

    def __len__(self) -> int:
        return 1

    def document(self, number: int) -> Document:
        return Document("note", self.digest, ("Calm.",), 0)


class Words:
    """Counts words."""

    name = label = "words"
    digest = digest("words")
    adds = False

    def joined(self, block: str) -> bool:
        return True

    def count(self, text: str) -> int:
        return len(text.split())

    def count_request(self, system_prompt: str, user_prompt: str) -> int:
        return self.count(system_prompt) + self.count(user_prompt)


def template_file(folder: Path, name: str) -> str:
    plain = Path(prompts.__file__).parent / "templates" / "plain.json"
    path = folder / "mine.json"
    path.write_text(json.dumps({**json.loads(plain.read_text(encoding="utf-8")), "name": name}), encoding="utf-8")
    return str(path)


def test_the_sources_of_a_list_follow_from_its_settings(list_of: Callable[..., ListSettings], tmp_path: Path) -> None:
    settings = list_of(depths=(3, 2))
    assert sources_for(settings, store=tmp_path, paths=tmp_path, corpora={"code": tmp_path}) == Sources(
        str(tmp_path), tmp_path, {"code": tmp_path}, ("tiktoken:o200k_base",), "plain", settings.cutoff_date, (2, 3)
    )


def test_a_template_file_that_the_settings_do_not_name_is_refused(
    list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    settings, path = list_of(distractor_types=("disjoint-component",)), template_file(tmp_path, "mine")
    with pytest.raises(UsageFault, match=r"holds the template set 'mine', and the settings name 'plain'"):
        sources_for(settings, store="store", paths=tmp_path, templates=path)
    named = list_of(distractor_types=("disjoint-component",), templates="mine")
    assert sources_for(named, store="store", paths=tmp_path, templates=path).templates == path


def test_corpora_and_tokenizers_of_ones_own_are_taken_beside_folders_and_names(
    list_of: Callable[..., ListSettings], rfc_sources: Sources, code_folder: Path
) -> None:
    settings = list_of(distractor_types=("code", "wikipedia"))
    corpus, tokenizer = OneNote(), Words()
    with open_materials(
        settings,
        store=rfc_sources.store,
        paths=rfc_sources.paths,
        corpora={"code": code_folder, "wikipedia": corpus},
        tokenizers=[tokenizer, "tiktoken:o200k_base"],
    ) as materials:
        assert materials.corpora["code"].digest == FolderCorpus(code_folder).digest
        assert materials.corpora["wikipedia"] is corpus
        assert [one.label for one in materials.tokenizers] == ["o200k_base", "words"]
        assert sorted(materials.pools) == [2, 3]


def test_a_folder_does_not_make_wikipedia(list_of: Callable[..., ListSettings], tmp_path: Path) -> None:
    settings = list_of(distractor_types=("wikipedia",))
    with (
        pytest.raises(UsageFault, match="a plain folder does not do"),
        open_materials(settings, store=tmp_path, paths=tmp_path, corpora={"wikipedia": tmp_path}),
    ):
        pass


def test_a_label_of_ones_own_may_not_be_taken() -> None:
    with pytest.raises(UsageFault, match="two tokenizers have the label 'words'"):
        load_tokenizers([Words(), "words=tiktoken:o200k_base"])


def test_examples_one_at_a_time_are_those_of_the_list(
    list_of: Callable[..., ListSettings], toy_materials: Materials
) -> None:
    settings = list_of(count=5)
    first = list(islice(build_examples(settings, toy_materials), 2))
    built = list(build_examples(settings, toy_materials))
    assert built[:2] == first
    assert [use["slot"] for one in built for use in one.example.experiments] == [0, 1, 2, 3, 4]
    assert {use["path"] for one in built for use in one.example.experiments} == {settings.path}
