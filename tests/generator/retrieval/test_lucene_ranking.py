from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval import PassageCorpus, build_index, lucene_ranking
from gniah.generator.retrieval.bm25 import Bm25, stored_length
from gniah.generator.retrieval.lucene_ranking import LuceneIndex
from gniah.loader import build_corpus
from gniah.records.lucene import LuceneFolder, LuceneSearcher, words_of

SHARED = Path(__file__).parents[3].parent / "shared" / "data"
REAL = SHARED / "corpora" / "wikipedia-passages.jsonl.gz"
PAPERS = SHARED / "graphs" / "paperscape-1991-1996" / "papers.jsonl.gz"
QUERIES = (
    "galaxy",
    "The theory of black holes, and of strings",
    "neural networks; neural fields!",
    "x1 quark",
    "École",
)
MakeCorpus = Callable[[Path, Mapping[str, str]], Path]
MakeIndex = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("lucene")


def check_ranking(passages: Mapping[str, str], query: str, found: Sequence[str]) -> None:
    """Check a whole ranking against the definition, where floats of 32 bits may confuse nearly equal scores only.

    Those for which all is equal that a score is made of, and so the scores to the last bit, stand by name.
    """
    words = {name: Counter(words_of(text)) for name, text in passages.items()}
    documents = sum(bool(one) for one in words.values())
    formula = Bm25(documents, sum(one.total() for one in words.values()))
    asked = Counter(words_of(query))
    weights = formula.weights(asked, {word: sum(word in one for one in words.values()) for word in asked})
    assert set(found) == {name for name, one in words.items() if any(word in one for word in asked)}
    assert len(found) == len(set(found))
    scores = [formula.score(weights, list(words[name].elements())) for name in found]
    for better, worse in pairwise(scores):
        assert better >= worse * (1 - 1e-6)

    def makings(name: str) -> tuple[object, ...]:
        return stored_length(words[name].total()), *(words[name][word] for word, _ in weights)

    for _, equal in groupby(found, key=makings):
        assert (group := list(equal)) == sorted(group)


def names(corpus: Path, query: str) -> Iterator[str]:
    passages = DiskCorpus(corpus)
    return (passages.document(number).name for number in LuceneIndex(passages).ranking(query))


@pytest.mark.parametrize("query", QUERIES)
def test_a_whole_ranking_is_that_of_the_definition(searched: Path, passages: Mapping[str, str], query: str) -> None:
    found = list(names(searched, query))
    assert len(found) > 50
    check_ranking(passages, query, found)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["galaxy", "river", "the", "AND", "field", "hole", "x1", "zzz", "ecole"]), max_size=6))
def test_any_words_are_ranked_as_by_the_definition(
    searched: Path, passages: Mapping[str, str], words: Sequence[str]
) -> None:
    query = " ".join(words)
    check_ranking(passages, query, list(names(searched, query)))


def test_scores_are_those_of_the_formula(searched: Path, passages: Mapping[str, str]) -> None:
    words = {name: words_of(text) for name, text in passages.items()}
    formula = Bm25(sum(map(bool, words.values())), sum(map(len, words.values())))
    asked = Counter(words_of("black holes in string theory"))
    weights = formula.weights(asked, {word: sum(word in one for one in words.values()) for word in asked})
    index = LuceneFolder(searched / "index-pyserini" / "lucene")
    slots = {slot: name for slot, name, _ in index.stored()}
    searcher = index.searcher(1.2, 0.75)
    hits = searcher.best("black holes in string theory", 400)
    assert len(hits) > 300
    for slot, score in hits:  # Lucene leaves out the factor k1 + 1, which is the same for all
        assert score * 2.2 == pytest.approx(formula.score(weights, words[slots[slot]]), rel=1e-6)
        assert searcher.score(slot, "black holes in string theory") == score


@pytest.mark.parametrize(("first", "more"), [(1, 2), (3, 3), (1000, 4)])
def test_how_much_is_fetched_at_once_changes_nothing(
    searched: Path, monkeypatch: pytest.MonkeyPatch, first: int, more: int
) -> None:
    expected = [list(names(searched, query)) for query in QUERIES]
    monkeypatch.setattr(lucene_ranking, "_FIRST", first)
    monkeypatch.setattr(lucene_ranking, "_MORE", more)
    assert [list(names(searched, query)) for query in QUERIES] == expected


def test_a_ranking_is_read_no_deeper_than_it_is_asked_for(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    plain = LuceneSearcher.best

    def watched(searcher: LuceneSearcher, text: str, limit: int) -> list[tuple[int, float]]:
        limits.append(limit)
        return plain(searcher, text, limit)

    monkeypatch.setattr(LuceneSearcher, "best", watched)
    ranking = names(searched, "black holes of galaxies and networks in a quantum field")
    assert limits == []
    next(ranking)
    assert limits == [16]
    list(islice(ranking, 16))
    assert limits == [16, 64]


def test_passages_that_are_equal_stand_by_name(tmp_path: Path, corpus_of: MakeCorpus) -> None:
    texts = {f"{chr(0x1F600 + number * 37 % 100)}": "a quiet river" for number in range(100)}
    corpus = corpus_of(tmp_path / "equal", {**texts, "\uffee": "a quiet river", "best": "river"})
    build_index(corpus, back_end="pyserini")
    # By code points, in which U+FFEE stands before all beyond U+FFFF; in UTF-16 it would not.
    expected = ["best", "\uffee", *sorted(texts)]
    assert list(names(corpus, "river")) == expected
    for number in range(1, len(expected)):
        assert list(islice(names(corpus, "river"), number)) == expected[:number]


def test_an_index_in_many_segments_and_another_order_ranks_the_same(
    searched: Path, passages: Mapping[str, str], prebuilt: MakeIndex, tmp_path: Path
) -> None:
    expected = [list(names(searched, query)) for query in QUERIES]
    corpus = Path(shutil.copytree(searched, tmp_path / "corpus"))
    turned = prebuilt(tmp_path / "turned", dict(reversed(passages.items())), commits=5)
    build_index(corpus, lucene_index=turned, force=True)
    assert len({path.name.split("_")[1].split(".")[0] for path in turned.glob("_*")}) > 1
    assert [list(names(corpus, query)) for query in QUERIES] == expected


@pytest.mark.parametrize(
    "title",
    [
        '"galaxy',
        "galaxy) AND (",
        "galaxy*",
        "contents: galaxy",
        "+galaxy -galaxy",
        "galaxy ~2 ^9",
        "NOT galaxy OR",
        "[galaxy TO river}",
        "\\galaxy\\",
        "/galaxy/",
        "galaxy\x00\n",
        "galaxy \ud800",
        "galaxy 𝔘 \u2028",
    ],
)
def test_a_title_is_never_read_as_query_syntax(searched: Path, passages: Mapping[str, str], title: str) -> None:
    plain = re.sub(r"[^A-Za-z0-9 ]", " ", title)
    found = list(names(searched, title))
    assert found
    assert found == list(names(searched, plain))
    check_ranking(passages, plain, found)


@pytest.mark.parametrize("title", ["", "the of and", "?!", "zebra", "z" * 100, "\x00", "\ud800"])
def test_a_title_that_shares_no_word_has_an_empty_ranking(searched: Path, title: str) -> None:
    assert list(names(searched, title)) == []


def test_titles_may_be_of_any_length(searched: Path) -> None:
    assert list(names(searched, "quark " * 1000)) == list(names(searched, "quark"))
    assert list(names(searched, " ".join(f"word{number}" for number in range(5000)) + " quark")) == list(
        names(searched, "quark")
    )


def test_ranking_leaves_nothing_behind(searched: Path, tmp_path: Path) -> None:
    before = sorted(path.name for path in searched.rglob("*"))
    assert list(islice(names(searched, "galaxy"), 3))
    assert sorted(path.name for path in searched.rglob("*")) == before
    moved = Path(shutil.copytree(searched, tmp_path / "é moved"))
    assert list(names(moved, "galaxy")) == list(names(searched, "galaxy"))


ANOTHER = """
import sys
from pathlib import Path
from gniah.generator.retrieval import PassageCorpus
corpus = PassageCorpus(Path(sys.argv[1]))
print(corpus.digest, list(corpus.draws(sys.argv[2:])))
"""


def test_other_processes_and_other_locales_draw_the_same(searched: Path) -> None:
    corpus = PassageCorpus(searched)
    expected = f"{corpus.digest} {list(corpus.draws(QUERIES))}\n"
    for language in ("C", "tr_TR.UTF-8", "C.UTF-8"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", ANOTHER, searched, *QUERIES],
            env={**os.environ, "LC_ALL": language},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


WAITING = """
import sys, time
from pathlib import Path
from gniah.generator.retrieval import PassageCorpus
corpus = PassageCorpus(Path(sys.argv[1]))
print("ready", flush=True)
try:
    while True:
        list(corpus.draws(["galaxy", "river"]))
except KeyboardInterrupt:
    print("interrupted", len(list(corpus.draws(["galaxy"]))), flush=True)
"""


def test_an_interrupt_is_pythons_as_ever(searched: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", WAITING, searched], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, f"interrupted {len(list(names(searched, 'galaxy')))}\n", "")


def overlaps(corpus: Path, titles: Sequence[str]) -> tuple[list[float], int]:
    """Return for each title which part of the first 20 both back ends give, and for how many the first is the same."""
    ours, lucenes = PassageCorpus(corpus / "index"), PassageCorpus(corpus / "index-pyserini")
    parts, same = [], 0
    for title in titles:
        one, other = (list(islice(back_end.draws([title]), 20)) for back_end in (ours, lucenes))
        assert bool(one) == bool(other)
        if one:
            parts.append(len(set(one) & set(other)) / max(len(one), len(other)))
            same += one[0] == other[0]
    return parts, same


@pytest.mark.shared
def test_both_back_ends_give_nearly_the_same_real_passages(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    corpus = tmp_path / "corpus"
    build_corpus("wikipedia", REAL, corpus)
    documents = {build_index(corpus, back_end=back_end).content["documents"] for back_end in ("tantivy", "pyserini")}
    assert documents == {8018}
    with gzip.open(PAPERS, "rt", encoding="utf-8") as stream:
        titles = [json.loads(line)["title"] for line in islice(stream, 100)]
    parts, same = overlaps(corpus, titles)
    stated = f"{len(parts)} titles: {statistics.mean(parts):.1%} of the first 20, the first one for {same}"
    record_property("overlap", stated)
    print(stated)
    assert len(parts) == 99
    # Measured: 96.0 % on average, 70 % at worst, the first one 93 times. They differ in stop words and stems, so not 1.
    assert 0.94 < statistics.mean(parts) < 0.98
    assert min(parts) >= 0.6
    assert 90 <= same < 99


@pytest.mark.shared
def test_real_passages_are_ranked_as_by_the_definition(tmp_path: Path) -> None:
    with gzip.open(REAL, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    build_corpus("wikipedia", REAL, tmp_path / "corpus")
    build_index(tmp_path / "corpus", back_end="pyserini")
    texts = {row["id"]: row["contents"] for row in rows}
    found = list(names(tmp_path / "corpus", "Quantum theory of black holes and black strings"))
    assert len(found) > 100
    check_ranking(texts, "Quantum theory of black holes and black strings", found)
