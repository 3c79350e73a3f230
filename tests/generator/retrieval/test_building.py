from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gniah.generator.corpora import DiskCorpus
from gniah.generator.graphniah.building import ExampleBuilder, Materials
from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.generator.retrieval import PassageCorpus, back_ends, build_index
from gniah.generator.retrieval import passages as passages_module
from gniah.generator.verification import verify
from gniah.records.errors import InputError
from gniah.records.graphniah.settings import Settings
from gniah.records.streams import Stream

MakeList = Callable[..., ListSettings]


@pytest.fixture
def materials(toy_materials: Materials, indexed: Path) -> Materials:
    """Return the materials of toy examples with made-up passages."""
    return replace(toy_materials, corpora={"wikipedia": PassageCorpus(indexed)})


def two(list_of: MakeList, **changed: Any) -> list[Settings]:
    """Return the settings of two examples with passages."""
    return slots(list_of(count=2, tasks=("yes-no",), depths=(2,), distractor_types=("wikipedia",), **changed))


def test_passages_are_drawn_by_the_titles_of_the_example(
    materials: Materials, list_of: MakeList, indexed: Path, passages: Mapping[str, str]
) -> None:
    builder = ExampleBuilder(materials)
    corpus = PassageCorpus(indexed)
    drawn = []
    for settings in two(list_of):
        built = builder.build(settings)
        record = built.record
        assert record.stopped in {"full", "near"}
        assert record.config["distractor_queries"] == built.example.config["distractor_queries"] == "paper-titles"
        papers = sorted(paper for one in record.components for paper in one.papers)
        titles = [
            paper.title for paper in materials.store.papers(Stream(built.example.qid, "distractors").shuffled(papers))
        ]
        expected = [corpus.document(number).name for number in corpus.draws(titles)]
        found = [one["document"] for one in record.distractors]
        assert len(found) > 10
        assert found == expected[: len(found)]
        assert all(passages[name] in built.example.user_prompt for name in found[:-1])
        assert verify(built.example).right
        drawn.append(found)
    assert drawn[0] != drawn[1]


def test_the_qid_covers_passages_index_and_rules(
    materials: Materials, list_of: MakeList, indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = two(list_of)[0]
    assert materials.inputs(settings)["corpus"] == materials.corpora["wikipedia"].digest
    qids = {materials.qid(settings)}
    plain = replace(materials, corpora={"wikipedia": DiskCorpus(indexed)})
    qids.add(plain.qid(settings))
    monkeypatch.setattr(passages_module, "DRAWING_RULES", 2)
    qids.add(materials.qid(settings))
    assert len(qids) == 3
    monkeypatch.setattr(back_ends, "RANKING_RULES", 2)
    with pytest.raises(InputError, match="made with rules 1, and 2 is needed"):
        PassageCorpus(indexed)


def test_rankings_that_end_leave_a_prompt_short(
    toy_materials: Materials, list_of: MakeList, tmp_path: Path, corpus_of: Callable[..., Path]
) -> None:
    texts = {"a": "A river", "b": "Nothing of the kind", "c": "Proteins, orbits; glaciers and dialects, kernels"}
    corpus = corpus_of(tmp_path / "few", texts)
    build_index(corpus)
    materials = replace(toy_materials, corpora={"wikipedia": PassageCorpus(corpus)})
    built = ExampleBuilder(materials).build(two(list_of)[0])
    assert built.record.stopped == "exhausted"
    assert {one["document"] for one in built.record.distractors} <= {"a", "c"}
    assert "Nothing of the kind" not in built.example.user_prompt


def test_commands_make_the_same_bytes_in_any_number_of_processes(
    gniah: Callable[..., Any], rfc: Any, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    with rows.open("w", encoding="utf-8") as stream:
        for number in range(400):
            subjects = ("protocol", "transport", "network", "address", "routing", "mail", "label")
            text = " ".join(subjects[number * place % 7] for place in range(1, 40)) + f" number {number}."
            stream.write(json.dumps({"id": str(number), "contents": text}) + "\n")
    corpus = tmp_path / "wiki"
    assert gniah("corpus", "wikipedia", "--from", rows, "--out", corpus).code == 0
    words = rfc.example_words(tmp_path / "none", "--distractors", "wikipedia", "--corpus", f"wikipedia={corpus}")
    code = words.index(f"code={rfc.code}")
    del words[code - 1 : code + 1]
    early = gniah(*words)
    assert early.code == 3
    assert f"gniah-gen index {corpus}" in early.err
    indexed = gniah("index", corpus, "--json")
    assert indexed.code == 0, indexed.err
    assert json.loads(indexed.out)["documents"] == 400
    assert "400 passages" in gniah("index", corpus).out
    found = []
    for jobs in ("1", "2"):
        out = tmp_path / f"bench{jobs}"
        done = gniah(*(out if word == tmp_path / "none" else word for word in words), "--jobs", jobs)
        assert done.code == 0, done.err
        found.append([(out / name).read_bytes() for name in ("examples.jsonl", "pool.jsonl")])
    assert found[0] == found[1]
    assert gniah("verify", tmp_path / "bench1").code == 0
    assert gniah("audit", tmp_path / "bench1", "--store", rfc.store).code == 0
