from __future__ import annotations

import json
import pickle
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval import PassageCorpus, RankedCorpus, build_index, open_texts
from gniah.loader import build_corpus
from gniah.records.errors import InputError

TITLES = ["Black holes", "The river", "Zebras", "Neural networks of galaxies"]


ANOTHER = """
import pickle, sys
corpus = pickle.load(sys.stdin.buffer)
print(list(corpus.draws(sys.argv[1:]))[:40])
"""


def test_titles_take_turns(indexed: Path) -> None:
    corpus = PassageCorpus(indexed)
    holes, river, galaxies = (list(corpus.draws([title])) for title in TITLES if title != "Zebras")
    draws = list(corpus.draws(TITLES))
    assert draws[0] == holes[0]
    assert draws[1] == next(one for one in river if one != holes[0])
    assert draws[2] == next(one for one in galaxies if one not in draws[:2])
    assert draws[3] == next(one for one in holes if one not in draws[:3])
    assert len(draws) == len(set(draws))
    assert set(draws) == {*holes, *river, *galaxies}


def test_it_is_the_same_corpus_but_for_how_it_is_drawn_from(indexed: Path) -> None:
    corpus, plain = PassageCorpus(indexed), DiskCorpus(indexed)
    assert isinstance(corpus, RankedCorpus)
    assert not isinstance(plain, RankedCorpus)
    assert len(corpus) == len(plain)
    assert corpus.document(5) == plain.document(5)
    assert corpus.digest != plain.digest


def test_another_process_draws_the_same(indexed: Path) -> None:
    corpus = PassageCorpus(indexed)
    words = (sys.executable, "-P", "-c", ANOTHER, *TITLES)
    done = subprocess.run(words, input=pickle.dumps(corpus), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == list(islice(corpus.draws(TITLES), 40))


def test_counts_that_could_not_be_written_go_along(indexed: Path) -> None:
    corpus = PassageCorpus(indexed)
    corpus._counts["a" * 64] = np.arange(corpus.block_count, dtype=np.uint32)
    again = pickle.loads(pickle.dumps(corpus))
    assert again.digest == corpus.digest
    assert np.array_equal(again.counts("a" * 64), np.arange(corpus.block_count))


def test_one_that_was_replaced_meanwhile_is_told(copied: Path) -> None:
    stored = pickle.dumps(PassageCorpus(copied))
    rows = copied.parent / "rows.jsonl"
    rows.write_text('{"id": "1", "contents": "black hole"}\n', encoding="utf-8")
    build_corpus("wikipedia", rows, copied, force=True)
    build_index(copied)
    with pytest.raises(InputError, match="replaced by another corpus"):
        pickle.loads(stored)


def test_other_kinds_are_opened_as_ever(indexed: Path, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_bytes(b"int a;\n")
    assert not isinstance(open_texts(tmp_path, "code"), RankedCorpus)
    assert isinstance(open_texts(indexed, "wikipedia"), PassageCorpus)
