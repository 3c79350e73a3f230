from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from gniah.generator import DiskCorpus
from gniah.loader import build_corpus, check_corpus
from gniah.records.errors import InputError, MissingDependency, UsageFault
from gniah.records.lucene import java_class, lucene_versions

Make = Callable[..., Path]
PASSAGES = {f"{number}": f"Passage {number}.\nOf a river, école \U0001d518" for number in range(30)}


@pytest.fixture
def index_of(tmp_path: Path) -> Make:
    """Make a Lucene index with Anserini: `index_of([row, …], raw=True)`; skip without pyserini, under CI fail."""
    try:
        lucene_versions()
    except MissingDependency as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(error.message)

    def make(rows: Sequence[Mapping[str, object]], *, raw: bool = True, name: str = "lucene") -> Path:
        arguments = java_class("io.anserini.index.IndexCollection$Args")()
        arguments.input, arguments.index, arguments.collectionClass = "", str(tmp_path / name), "JsonCollection"
        arguments.storeRaw, arguments.threads = raw, 1
        writer = java_class("io.anserini.index.SimpleIndexer")(arguments)
        for row in rows:
            assert writer.addRawDocuments([json.dumps(row)]) == 1
        writer.close()
        return tmp_path / name

    return make


def rows(passages: Mapping[str, str], **more: str) -> list[dict[str, object]]:
    return [{"id": name, "contents": text, **more} for name, text in passages.items()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_corpus_is_that_of_the_same_rows_in_the_order_of_names(index_of: Make, tmp_path: Path, jobs: int) -> None:
    ordered = {name: PASSAGES[name] for name in sorted(PASSAGES)}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(ordered)), encoding="utf-8")
    expected = build_corpus("wikipedia", tmp_path / "rows.jsonl", tmp_path / "plain")
    for place, given in enumerate((PASSAGES, dict(reversed(PASSAGES.items())))):
        index = index_of(rows(given, title="T"), name=f"index{place}")
        made = build_corpus("wikipedia", index, tmp_path / f"corpus{place}", jobs=jobs)
        assert made.content == expected.content
        assert check_corpus(tmp_path / f"corpus{place}") == []
    corpus = DiskCorpus(tmp_path / "corpus1")
    assert {corpus.document(number).name: corpus.document(number).blocks[0] for number in range(30)} == PASSAGES


def test_texts_may_stand_under_another_name(index_of: Make, tmp_path: Path) -> None:
    index = index_of([{"id": "1", "contents": "words of the index", "passage": "what is shown"}])
    build_corpus("wikipedia", index, tmp_path / "corpus", text_column="passage")
    assert DiskCorpus(tmp_path / "corpus").document(0).blocks == ("what is shown",)
    with pytest.raises(InputError, match="there is no text under 'text' but contents, id, passage") as caught:
        build_corpus("wikipedia", index, tmp_path / "other", text_column="text")
    assert "--text-column" in str(caught.value.remedy)
    with pytest.raises(UsageFault, match="have names already"):
        build_corpus("wikipedia", index, tmp_path / "other", id_column="id")
    assert not (tmp_path / "other").exists()


def test_an_index_without_texts_is_refused(index_of: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not store what it was made from") as caught:
        build_corpus("wikipedia", index_of(rows(PASSAGES), raw=False), tmp_path / "corpus")
    assert "--index" in str(caught.value.remedy)
    assert not (tmp_path / "corpus").exists()


def test_a_name_twice_is_told_with_both_places(index_of: Make, tmp_path: Path) -> None:
    index = index_of([*rows(PASSAGES), {"id": "7", "contents": "again"}])
    with pytest.raises(InputError, match=r"'7' names two texts: .*document 7 and .*document 30"):
        build_corpus("wikipedia", index, tmp_path / "corpus")


def test_a_damaged_index_is_told(index_of: Make, tmp_path: Path) -> None:
    index = index_of(rows(PASSAGES))
    (path,) = index.glob("*.fdt")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match="Lucene cannot use this index"):
        build_corpus("wikipedia", index, tmp_path / "corpus")
