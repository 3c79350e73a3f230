"""Corpora on disk whose blocks are counted once, and what packing takes from that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gniah.generator import corpus_counts
from gniah.generator.block_lengths import RememberedLengths
from gniah.generator.corpora import DiskCorpus, FolderCorpus
from gniah.generator.corpus_counts import CountableCorpus, count_blocks, count_corpora
from gniah.generator.tokenizers import TiktokenTokenizer
from gniah.loader import build_corpus

O200K = TiktokenTokenizer("o200k_base", "gpt")


@pytest.fixture
def corpus(code_folder: Path, tmp_path: Path) -> DiskCorpus:
    build_corpus("code", code_folder, tmp_path / "corpus")
    return DiskCorpus(tmp_path / "corpus")


def test_a_corpus_on_disk_can_be_counted_and_a_folder_cannot(corpus: DiskCorpus, code_folder: Path) -> None:
    assert isinstance(corpus, CountableCorpus)
    assert not isinstance(FolderCorpus(code_folder), CountableCorpus)


@pytest.mark.parametrize("batch", [1, 1000, 1 << 22])
def test_every_block_is_counted_with_its_blank_line(
    batch: int, corpus: DiskCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_counts, "_BATCH", batch)
    done: list[int] = []
    count_blocks(corpus, [O200K], done.append)
    found = corpus.counts(O200K.text_digest)
    assert found is not None
    blocks = [block for number in range(len(corpus)) for block in corpus.document(number).blocks]
    assert found.tolist() == [O200K.count(block + "\n\n") for block in blocks]
    assert sum(done) == len(corpus)


def test_counted_lengths_are_taken_and_not_counted_again(corpus: DiskCorpus) -> None:
    count_blocks(corpus, [O200K], lambda _: None)

    class Never(TiktokenTokenizer):
        def count_many(self, texts: Sequence[str]) -> list[int]:
            raise AssertionError(texts)

    again = DiskCorpus(corpus.folder)
    remembered = RememberedLengths([Never("o200k_base", "gpt")], again)
    for number in range(len(again)):
        blocks = again.document(number).blocks
        lengths = remembered.of(number, blocks)
        assert [lengths.of(place) for place in range(len(blocks))] == [(O200K.count(one + "\n\n"),) for one in blocks]


def test_a_corpus_is_counted_when_about_all_of_it_will_be_drawn(corpus: DiskCorpus) -> None:
    characters = sum(len(block) for number in range(len(corpus)) for block in corpus.document(number).blocks)
    count_corpora({"code": corpus}, [O200K], {"code": characters // 4 - 1, "essays": 1 << 40})
    assert corpus.counts(O200K.text_digest) is None
    count_corpora({"code": corpus}, [O200K], {"code": characters // 4 + 1})
    assert corpus.counts(O200K.text_digest) is not None
