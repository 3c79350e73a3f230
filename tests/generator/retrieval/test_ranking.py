from __future__ import annotations

import gzip
import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pytest
import tantivy
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval import build_index, ranking
from gniah.generator.retrieval.analysis import load_analyser
from gniah.generator.retrieval.bm25 import stored_length
from gniah.generator.retrieval.ranking import TantivyIndex
from gniah.loader import build_corpus

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "corpora" / "wikipedia-passages.jsonl.gz"
QUERIES = (
    "galaxy",
    "The theory of black holes, and of strings",
    "neural networks; neural fields!",
    "x1 quark",
    "École",
)


def ranked_plainly(passages: Mapping[str, str], query: str) -> list[str]:
    """Rank all passages by the definition: slow, and with the logarithm of the C library."""
    analyse = load_analyser()
    words = {name: Counter(analyse(text)) for name, text in passages.items()}
    average = sum(one.total() for one in words.values()) / len(words)
    scores: dict[str, float] = {}
    for word, times in Counter(analyse(query)).items():
        holding = [name for name in words if words[name][word]]
        weight = math.log(1 + (len(words) - len(holding) + 0.5) / (len(holding) + 0.5)) if holding else 0
        for name in holding:
            often, length = words[name][word], stored_length(words[name].total())
            part = often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length / average))
            scores[name] = scores.get(name, 0) + times * weight * part
    return sorted(scores, key=lambda name: (-round(scores[name], 9), name))


def names(corpus: Path, query: str) -> Iterator[str]:
    passages = DiskCorpus(corpus)
    return (passages.document(number).name for number in TantivyIndex(passages).ranking(query))


@pytest.mark.parametrize("query", QUERIES)
def test_a_whole_ranking_is_that_of_the_definition(indexed: Path, passages: Mapping[str, str], query: str) -> None:
    expected = ranked_plainly(passages, query)
    assert len(expected) > 50
    assert list(names(indexed, query)) == expected


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["galaxy", "river", "the", "AND", "field", "hole", "x1", "zzz", "ecole"]), max_size=6))
def test_any_words_are_ranked_as_by_the_definition(
    indexed: Path, passages: Mapping[str, str], words: Sequence[str]
) -> None:
    query = " ".join(words)
    assert list(names(indexed, query)) == ranked_plainly(passages, query)


@pytest.mark.parametrize(("first", "more"), [(1, 2), (3, 3), (1000, 4)])
def test_how_much_is_fetched_at_once_changes_nothing(
    indexed: Path, monkeypatch: pytest.MonkeyPatch, first: int, more: int
) -> None:
    expected = [list(names(indexed, query)) for query in QUERIES]
    monkeypatch.setattr(ranking, "_FIRST", first)
    monkeypatch.setattr(ranking, "_MORE", more)
    assert [list(names(indexed, query)) for query in QUERIES] == expected


def test_passages_that_are_equal_stand_by_name(
    tmp_path: Path, corpus_of: Callable[[Path, Mapping[str, str]], Path]
) -> None:
    texts = {f"p{number * 37 % 100:02}": "a quiet river" for number in range(100)}
    corpus = corpus_of(tmp_path / "equal", {**texts, "best": "river"})
    build_index(corpus)
    assert list(names(corpus, "river")) == ["best", *sorted(texts)]


def test_a_word_that_nearly_every_passage_holds_is_ranked_too(
    tmp_path: Path, corpus_of: Callable[[Path, Mapping[str, str]], Path]
) -> None:
    texts = {f"{number}": "river " * (1 + number % 3) + "bank " * (number % 17) for number in range(1200)}
    corpus = corpus_of(tmp_path / "common", {**texts, "other": "nothing like it"})
    build_index(corpus)
    for query in ("river", "river bank", "bank rivers river"):
        assert list(names(corpus, query)) == ranked_plainly({**texts, "other": "nothing like it"}, query)


def test_an_index_in_many_segments_and_another_order_ranks_the_same(copied: Path) -> None:
    expected = [list(names(copied, query)) for query in QUERIES]
    passages, analyse = DiskCorpus(copied), load_analyser()
    for path in (copied / "index").iterdir():
        if path.name != "manifest.json":
            path.unlink()
    schema = tantivy.SchemaBuilder().add_text_field("words", tokenizer_name="whitespace", index_option="freq")
    index = tantivy.Index(schema.add_unsigned_field("number", fast=True).build(), path=str(copied / "index"))
    writer = index.writer(num_threads=1)
    for place, number in enumerate(reversed(range(len(passages)))):
        document = tantivy.Document()
        document.add_text("words", " ".join(analyse(passages.document(number).blocks[0])))
        document.add_unsigned("number", number)
        writer.add_document(document)
        if place % 150 == 149:
            writer.commit()
    writer.commit()
    writer.wait_merging_threads()
    assert tantivy.Index.open(str(copied / "index")).searcher().num_segments > 1
    assert [list(names(copied, query)) for query in QUERIES] == expected


@pytest.mark.parametrize(
    "title",
    [
        '"galaxy',
        "galaxy) AND (",
        "galaxy*",
        "words:galaxy",
        "+galaxy -galaxy",
        "galaxy~2^9",
        "NOT galaxy OR",
        "[galaxy TO river}",
        "\\galaxy\\",
        "/galaxy/",
        "galaxy\x00\n",
    ],
)
def test_a_title_is_never_read_as_query_syntax(indexed: Path, passages: Mapping[str, str], title: str) -> None:
    plain = re.sub(r"[^A-Za-z0-9 ]", " ", title)
    assert list(islice(names(indexed, title), 30)) == ranked_plainly(passages, plain)[:30]


@pytest.mark.parametrize("title", ["", "the of and", "?!", "zebra", "z" * 100])
def test_a_title_that_shares_no_word_has_an_empty_ranking(indexed: Path, title: str) -> None:
    assert list(names(indexed, title)) == []


def test_a_word_may_stand_in_a_title_a_thousand_times(indexed: Path) -> None:
    assert list(names(indexed, "quark " * 1000)) == list(names(indexed, "quark"))


def test_ranking_leaves_nothing_behind(indexed: Path, tmp_path: Path) -> None:
    before = sorted(path.name for path in indexed.rglob("*"))
    assert list(islice(names(indexed, "galaxy"), 3))
    assert sorted(path.name for path in indexed.rglob("*")) == before
    moved = Path(shutil.copytree(indexed, tmp_path / "moved"))
    assert list(names(moved, "galaxy")) == list(names(indexed, "galaxy"))


@pytest.mark.shared
def test_real_passages_are_ranked_as_by_the_definition(tmp_path: Path) -> None:
    with gzip.open(REAL, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    build_corpus("wikipedia", REAL, tmp_path / "corpus")
    build_index(tmp_path / "corpus")
    texts = {row["id"]: row["contents"] for row in rows}
    for query in ("Quantum theory of black holes and black strings", "On the first American film of the World Series"):
        expected = ranked_plainly(texts, query)
        assert len(expected) > 100
        assert list(names(tmp_path / "corpus", query)) == expected
