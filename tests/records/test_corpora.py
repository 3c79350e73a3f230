from __future__ import annotations

import hashlib
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.records import corpora
from gniah.records.canonical import digest
from gniah.records.corpora import (
    DATA_FILES,
    CorpusDigest,
    CorpusFiles,
    CorpusWriter,
    digest_of,
    documents_of,
    is_corpus,
    packed,
)
from gniah.records.texts import CLEANING_RULES

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
DOCUMENTS = st.lists(
    st.tuples(TEXT, st.binary(max_size=3), st.lists(TEXT, min_size=1, max_size=4), st.integers(0, 5)),
    min_size=1,
    max_size=8,
)


def test_the_digest_is_that_of_the_value_it_stands_for() -> None:
    names = ['a"b.c', "é\n", "\u2028", "z"]
    documents = [(name, hashlib.sha256(name.encode()).hexdigest()) for name in names]
    for count in range(5):
        value = {"documents": documents[:count], "kind": "books", "rules": CLEANING_RULES}
        assert digest_of("books", documents[:count]) == digest(value)


def test_the_digest_can_be_asked_for_in_between() -> None:
    whole = CorpusDigest("code")
    whole.add("a", "1")
    first = whole.hexdigest()
    assert first == whole.hexdigest()
    whole.add("b", "2")
    assert whole.hexdigest() == digest_of("code", [("a", "1"), ("b", "2")]) != first


def test_the_bytes_of_the_files_are_those_of_the_format(tmp_path: Path) -> None:
    one, two = (bytes([number]) * 32 for number in (1, 2))
    with CorpusWriter(tmp_path, "code") as writer:
        writer.add(packed("a.c", one.hex(), ["xy", "é"], 3))
        writer.add(packed("b", two.hex(), ["z"], 0))
        facts = writer.finish()
    found = {name: (tmp_path / name).read_bytes() for name in DATA_FILES}
    assert found == {
        "texts.bin": "xyéz".encode(),
        "blocks.bin": struct.pack("<4Q", 0, 2, 4, 5),
        "names.bin": b"a.cb",
        "documents.bin": b"".join(
            struct.pack("<QQQ32s", *record) for record in ((0, 0, 3, one), (2, 3, 0, two), (3, 4, 0, bytes(32)))
        ),
    }
    assert facts["counts"] == {"documents": 2, "blocks": 3, "bytes": 5}
    assert facts["files"] == {
        name: {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()} for name, raw in found.items()
    }
    assert facts["digest"] == digest_of("code", [("a.c", one.hex()), ("b", two.hex())])


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS, st.sampled_from([1, 100, 1 << 20]))
def test_what_was_written_is_read_again(documents: list[tuple[str, bytes, list[str], int]], at_once: int) -> None:
    stored = [
        packed(name, hashlib.sha256(raw).hexdigest(), blocks, left_out) for name, raw, blocks, left_out in documents
    ]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "_AT_ONCE", at_once)
        patch.setattr(corpora, "_KEPT_BYTES", at_once)
        with CorpusWriter(Path(name), "code") as writer:
            for document in stored:
                writer.add(document)
            writer.finish()
        files = CorpusFiles(Path(name))
        assert [files.stored(number) for number in range(len(files))] == stored
        assert [files.texts(files.block_range(number)) for number in range(len(files))] == [one[2] for one in documents]
        assert list(documents_of(files)) == [(one.name, one.sha256) for one in stored]
        assert files.blocks == sum(len(one[2]) for one in documents)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, False),
        (b"", False),
        (b"[]", False),
        (b'{"schema": 7}', False),
        (b'{"schema": "gniah/graph/1"}', False),
        (b'{"schema": "gniah/corpus/1"}', True),
        (b'{"schema": "gniah/corpus/9"}', True),
    ],
)
def test_a_corpus_is_known_by_its_manifest(tmp_path: Path, content: bytes | None, found: bool) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    assert is_corpus(tmp_path) == found
