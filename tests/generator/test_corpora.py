from __future__ import annotations

import hashlib
import os
import pickle
import sys
from pathlib import Path

import pytest

from gniah.generator.corpora import FolderCorpus, clean_blocks
from gniah.records.errors import ImpossibleRequest, InputError


@pytest.mark.parametrize(
    ("text", "blocks", "left_out"),
    [
        ("one\ntwo\n\nthree\n", ["one\ntwo", "three"], 0),
        ("\ufeffone\n", ["one"], 0),
        ("one\r\ntwo\r\n\r\nthree\r\n", ["one\ntwo", "three"], 0),
        ("one\rtwo\r\rthree", ["one\ntwo", "three"], 0),
        ("one\n \t\ntwo\n\x0c\nthree", ["one", "two", "three"], 0),
        ("\n\n\n  one\n\n\n\n\ttwo  \n\n", ["  one", "\ttwo  "], 0),
        ("one\n\nTitle: A paper.\nReferences:\n\ntwo", ["one", "two"], 1),
        ("code\n  title: shown\n\ntwo", ["two"], 1),
        ("a Title: inside a line\n\nSubtitle: no", ["a Title: inside a line", "Subtitle: no"], 0),
        ("say \\answer{YES}\nmore\n\ntwo\n\n\\answer{", ["two"], 2),
        ("an \\answer without a brace", ["an \\answer without a brace"], 0),
        ("line\u2028separator\x85stays", ["line\u2028separator\x85stays"], 0),
        ("", [], 0),
        (" \n\t\n", [], 0),
    ],
)
def test_texts_are_cut_at_blank_lines_and_cleaned(text: str, blocks: list[str], left_out: int) -> None:
    assert clean_blocks(text) == (blocks, left_out)


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
    assert corpus.skipped == {"not text": 2, "no block left": 2}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a file have such a name")
def test_a_file_whose_name_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    before = FolderCorpus(tree(tmp_path, FILES)).digest
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.c")).write_bytes(b"int a;\n")
    corpus = FolderCorpus(tmp_path)
    assert (corpus.digest, corpus.skipped) == (before, {"not text": 1})


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
