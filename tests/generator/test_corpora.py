from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gniah.generator.corpora import DiskCorpus, FolderCorpus, open_corpus
from gniah.generator.graphniah.building import ExampleBuilder, Materials
from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.loader import build_corpus
from gniah.records.corpora import CORPUS_SCHEMA, CorpusWriter, packed
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.manifests import Manifest
from gniah.records.texts import CLEANING_RULES


def tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


FILES = {"b.c": b"int b;\n\nint c;\n", "a/z.py": b"z = 1\n", "a.h": b"#define A\n"}


def test_documents_stand_in_the_order_of_their_names(tmp_path: Path) -> None:
    corpus = FolderCorpus(tree(tmp_path, FILES))
    assert len(corpus) == 3
    assert [corpus.document(number).name for number in range(3)] == ["a.h", "a/z.py", "b.c"]
    last = corpus.document(2)
    assert last.blocks == ("int b;", "int c;")
    assert last.left_out == 0
    assert last.sha256 == hashlib.sha256(FILES["b.c"]).hexdigest()


def test_the_digest_does_not_depend_on_the_place(tmp_path: Path) -> None:
    one = FolderCorpus(tree(tmp_path / "here", FILES))
    other = FolderCorpus(tree(tmp_path / "far" / "__pycache__" / "away", dict(reversed(FILES.items()))))
    assert one.digest == other.digest


@pytest.mark.parametrize(
    "changed",
    [
        {"b.c": b"int b;\n\nint d;\n"},
        {"b.c": b"int b;\n\nint c;"},
        {"b.c": b"int b;\r\n\nint c;\n"},
        {"b.c": b"\xef\xbb\xbfint b;\n\nint c;\n"},
        {"c.c": b"int b;\n\nint c;\n"},
    ],
)
def test_the_digest_changes_with_every_byte_and_name(tmp_path: Path, changed: dict[str, bytes]) -> None:
    before = FolderCorpus(tree(tmp_path / "one", FILES)).digest
    assert FolderCorpus(tree(tmp_path / "two", {**FILES, **changed})).digest != before


def test_what_is_no_text_or_no_source_is_left_out(tmp_path: Path) -> None:
    folder = tree(
        tmp_path,
        {
            **FILES,
            "latin.c": "int \xfc;\n".encode("latin-1"),
            "nul.c": b"int a;\0\n",
            "empty.c": b"\n\n",
            "papers.c": b"Title: all of it\n",
            "notes.txt": b"not code\n",
            "__pycache__/x.py": b"x = 1\n",
        },
    )
    (folder / "link.c").symlink_to(folder / "b.c")
    corpus = FolderCorpus(folder)
    assert [corpus.document(number).name for number in range(len(corpus))] == ["a.h", "a/z.py", "b.c"]
    assert corpus.skipped == {"not UTF-8": 1, "holds a NUL byte": 1, "no block left": 2, "link": 1}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a file have such a name")
def test_a_file_whose_name_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    before = FolderCorpus(tree(tmp_path, FILES)).digest
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.c")).write_bytes(b"int a;\n")
    corpus = FolderCorpus(tmp_path)
    assert (corpus.digest, corpus.skipped) == (before, {"name not UTF-8": 1})


def test_a_file_that_changes_while_the_corpus_is_open_is_an_error(tmp_path: Path) -> None:
    corpus = FolderCorpus(tree(tmp_path, FILES))
    (tmp_path / "b.c").write_bytes(b"int other;\n")
    with pytest.raises(InputError, match=r"b\.c: changed while it was in use"):
        corpus.document(2)
    (tmp_path / "a.h").unlink()
    with pytest.raises(InputError):
        corpus.document(0)


def test_a_corpus_can_go_to_another_process(tmp_path: Path) -> None:
    corpus = FolderCorpus(tree(tmp_path, FILES))
    copy = pickle.loads(pickle.dumps(corpus))
    assert copy.digest == corpus.digest
    assert [copy.document(number) for number in range(3)] == [corpus.document(number) for number in range(3)]


def test_a_kind_of_text_has_its_own_files(tmp_path: Path) -> None:
    folder = tree(tmp_path, {**FILES, "essay.md": b"One.\n\nTwo.\n", "book.txt": b"Three.\n"})
    names = {
        kind: [corpus.document(number).name for number in range(len(corpus))]
        for kind, corpus in ((kind, FolderCorpus(folder, kind)) for kind in ("code", "essays", "books"))
    }
    assert names == {
        "code": ["a.h", "a/z.py", "b.c"],
        "essays": ["book.txt", "essay.md"],
        "books": ["book.txt"],
    }


def test_a_folder_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        FolderCorpus(tmp_path / "nowhere")
    with pytest.raises(ImpossibleRequest, match=r"holds no text file that ends in \.S, \.c, \.h, \.py, \.rs"):
        FolderCorpus(tmp_path)


TOKENIZER = "ab" * 32


def disk(folder: Path, documents: int = 3, **changed: Any) -> Path:
    """Write a corpus as gniah-load does: document n has n + 1 blocks."""
    folder.mkdir(parents=True)
    with CorpusWriter(folder, "code") as writer:
        for number in range(documents):
            blocks = [f"block {number}.{block} é" for block in range(number + 1)]
            writer.add(packed(f"f{number}.c", hashlib.sha256(bytes(number)).hexdigest(), blocks, number))
        facts = writer.finish()
    content = {"kind": "code", "rules": {"cleaning": CLEANING_RULES}, **facts, **changed}
    Manifest(CORPUS_SCHEMA, content).write(folder)
    return folder


def test_a_corpus_on_disk_gives_its_documents(tmp_path: Path) -> None:
    corpus = DiskCorpus(disk(tmp_path / "c"))
    assert (len(corpus), corpus.block_count, corpus.kind) == (3, 6, "code")
    last = corpus.document(2)
    assert (last.name, last.left_out, last.blocks) == ("f2.c", 2, ("block 2.0 é", "block 2.1 é", "block 2.2 é"))
    assert last.sha256 == hashlib.sha256(bytes(2)).hexdigest()
    assert [corpus.block_range(number) for number in range(3)] == [range(0, 1), range(1, 3), range(3, 6)]


def test_a_folder_is_opened_as_what_it_is(tmp_path: Path) -> None:
    folder = tree(tmp_path / "plain", {**FILES, "manifest.json": b'{"name": "an app"}'})
    assert isinstance(open_corpus(folder, "code"), FolderCorpus)
    assert isinstance(open_corpus(disk(tmp_path / "c"), "code"), DiskCorpus)
    with pytest.raises(UsageFault, match="a corpus of kind code, not essays"):
        open_corpus(tmp_path / "c", "essays")
    (tmp_path / "c" / "texts.bin").unlink()
    with pytest.raises(InputError, match=r"texts\.bin: no such file"):
        open_corpus(tmp_path / "c", "code")


def test_a_corpus_that_cannot_be_right_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="made by the cleaning rules 99"):
        DiskCorpus(disk(tmp_path / "rules", rules={"cleaning": 99}))
    with pytest.raises(InputError, match=r"says nothing of texts\.bin"):
        DiskCorpus(disk(tmp_path / "files", files={}))
    cut = disk(tmp_path / "cut") / "texts.bin"
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"texts\.bin: has 71 bytes, and should have 72"):
        DiskCorpus(tmp_path / "cut")
    newer = disk(tmp_path / "newer")
    Manifest("gniah/corpus/2", {}).write(newer)
    with pytest.raises(InputError, match="written by a newer version"):
        open_corpus(newer, "code")


def test_a_damaged_place_is_told_when_it_is_read(tmp_path: Path) -> None:
    folder = disk(tmp_path / "c")
    with (folder / "texts.bin").open("r+b") as stream:
        stream.write(b"\xff")
    corpus = DiskCorpus(folder)
    assert corpus.document(1).name == "f1.c"
    with pytest.raises(InputError, match="damaged: the text from byte 0 to 12 is not UTF-8"):
        corpus.document(0)


def test_another_process_opens_the_same_corpus_itself(tmp_path: Path) -> None:
    corpus = DiskCorpus(disk(tmp_path / "big", 400))
    sent = pickle.dumps(corpus)
    assert len(sent) < 500
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(corpus.document, 2).result() == corpus.document(2)
    (tmp_path / "big").rename(tmp_path / "gone")
    disk(tmp_path / "big", 3)
    with pytest.raises(InputError, match="replaced by another corpus"):
        pickle.loads(sent)


COUNTS = np.arange(10, 16, dtype=np.uint32)


def test_counts_are_kept_beside_the_corpus_under_the_digest_of_the_tokenizer(tmp_path: Path) -> None:
    folder = disk(tmp_path / "c")
    corpus = DiskCorpus(folder)
    assert corpus.counts(TOKENIZER) is None
    corpus.write_counts(TOKENIZER, COUNTS)
    assert [path.name for path in (folder / "counts").iterdir()] == [f"{TOKENIZER}.bin"]
    assert (folder / "counts" / f"{TOKENIZER}.bin").read_bytes() == COUNTS.astype("<u4").tobytes()
    for one in (corpus, DiskCorpus(folder)):
        counts = one.counts(TOKENIZER)
        assert counts is not None
        assert counts.tolist() == COUNTS.tolist()
        assert not counts.flags.writeable
    assert DiskCorpus(folder).counts("cd" * 32) is None


def test_counts_that_are_cut_or_for_other_blocks_are_none(tmp_path: Path) -> None:
    folder = disk(tmp_path / "c")
    corpus = DiskCorpus(folder)
    corpus.write_counts(TOKENIZER, COUNTS)
    for content in (b"", b"123", b"1234" * 5):
        (folder / "counts" / f"{TOKENIZER}.bin").write_bytes(content)
        assert DiskCorpus(folder).counts(TOKENIZER) is None
    with pytest.raises(ValueError, match=r"5,"):
        corpus.write_counts(TOKENIZER, COUNTS[:5])
    with pytest.raises(ValueError, match="no digest"):
        corpus.counts("../x")


def test_where_nothing_can_be_written_counts_are_kept_in_memory_and_go_to_other_processes(tmp_path: Path) -> None:
    folder = disk(tmp_path / "c")
    (folder / "counts").write_bytes(b"in the way")
    corpus = DiskCorpus(folder)
    corpus.write_counts(TOKENIZER, COUNTS)
    for one in (corpus, pickle.loads(pickle.dumps(corpus))):
        assert one.counts(TOKENIZER).tolist() == COUNTS.tolist()
    assert DiskCorpus(folder).counts(TOKENIZER) is None


def test_two_processes_may_write_counts_at_once(tmp_path: Path) -> None:
    corpus = DiskCorpus(disk(tmp_path / "c"))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(corpus.write_counts, [TOKENIZER] * 40, [COUNTS] * 40))
    counts = corpus.counts(TOKENIZER)
    assert counts is not None
    assert counts.tolist() == COUNTS.tolist()
    assert len(list((tmp_path / "c" / "counts").iterdir())) == 1


def test_examples_have_the_same_bytes_from_a_corpus_and_from_its_folder(
    tmp_path: Path, toy_materials: Materials, list_of: Callable[..., ListSettings]
) -> None:
    folder = toy_materials.corpora["code"]
    assert isinstance(folder, FolderCorpus)
    build_corpus("code", folder.folder, tmp_path / "c")
    corpus = open_corpus(tmp_path / "c", "code")
    assert isinstance(corpus, DiskCorpus)
    settings = slots(list_of(count=6, distractor_types=("code",)))
    one = ExampleBuilder(toy_materials)
    other = ExampleBuilder(replace(toy_materials, corpora={"code": corpus}))
    for slot in settings:
        assert one.build(slot) == other.build(slot)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")
def test_memory_stays_flat_however_much_is_read(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    block = "x" * 1_000_000
    with CorpusWriter(tmp_path / "c", "code") as writer:
        for number in range(400):
            writer.add(packed(f"f{number}.c", "0" * 64, [block], 0))
        facts = writer.finish()
    content = {"kind": "code", "rules": {"cleaning": CLEANING_RULES}, **facts}
    Manifest(CORPUS_SCHEMA, content).write(tmp_path / "c")
    corpus = DiskCorpus(tmp_path / "c")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096

    before, most = resident(), 0
    for number in range(len(corpus)):
        assert len(corpus.document(number).blocks[0]) == 1_000_000
        most = max(most, resident())
    assert most - before < 150_000_000
