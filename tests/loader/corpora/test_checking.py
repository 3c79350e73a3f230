from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gniah.loader import build_corpus, check_corpus
from gniah.loader.corpora.checking import corpora_in
from gniah.records.corpora import CORPUS_SCHEMA
from gniah.records.errors import InputError
from gniah.records.files import sha256_file
from gniah.records.manifests import Manifest

Make = Callable[..., Path]


@pytest.fixture
def corpus(tmp_path: Path, tree: Make) -> Path:
    build_corpus("code", tree(), tmp_path / "out")
    return tmp_path / "out"


def overwrite(path: Path, place: int, content: bytes) -> None:
    with path.open("r+b") as stream:
        stream.seek(place)
        stream.write(content)


def seal(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
    """Write the manifest again as if the files were meant to be what they are."""
    value = json.loads((folder / "manifest.json").read_bytes())
    for name, facts in value["content"]["files"].items():
        facts.update(bytes=(folder / name).stat().st_size, sha256=sha256_file(folder / name))
    change(value["content"])
    Manifest(CORPUS_SCHEMA, value["content"]).write(folder)


def test_a_whole_corpus_has_no_fault(corpus: Path) -> None:
    read: list[int] = []
    assert check_corpus(corpus, advance=read.append) == []
    assert sum(read) == 4


@pytest.mark.parametrize("name", ["texts.bin", "blocks.bin", "names.bin", "documents.bin"])
def test_one_changed_byte_is_found_in_any_file(corpus: Path, name: str) -> None:
    raw = (corpus / name).read_bytes()
    overwrite(corpus / name, 20, bytes([raw[20] ^ 1]))
    assert f"{name}: its bytes are not those that were written" in check_corpus(corpus)


def test_a_cut_or_missing_file_is_told(corpus: Path) -> None:
    overwrite(corpus / "texts.bin", 43, b"more")
    with pytest.raises(InputError, match=r"texts\.bin: has 47 bytes, and should have 43"):
        check_corpus(corpus)
    (corpus / "names.bin").unlink()
    (corpus / "texts.bin").write_bytes((corpus / "texts.bin").read_bytes()[:43])
    with pytest.raises(InputError, match=r"names\.bin: no such file"):
        check_corpus(corpus)


def test_what_the_hashes_of_a_forged_manifest_do_not_show_is_found(corpus: Path) -> None:
    overwrite(corpus / "names.bin", 0, b"b")
    seal(corpus)
    assert check_corpus(corpus) == [
        "documents.bin, names.bin: the documents have another digest than the manifest says"
    ]


def test_offsets_that_do_not_ascend_are_found(corpus: Path) -> None:
    overwrite(corpus / "blocks.bin", 8, bytes(8))
    seal(corpus)
    assert any(fault.startswith("damaged: a text from byte 0 to 0") for fault in check_corpus(corpus))
    overwrite(corpus / "documents.bin", 56, (9).to_bytes(8, "little"))
    seal(corpus)
    assert any("document 0 has blocks 0 to 9" in fault for fault in check_corpus(corpus))


def test_counts_that_differ_are_found(corpus: Path) -> None:
    seal(corpus, lambda content: content["counts"].update(blocks=7))
    assert check_corpus(corpus) == ["6 blocks, and the manifest says 7"]
    seal(corpus, lambda content: content["counts"].update(blocks=6))
    seal(corpus, lambda content: content["rules"].update(cleaning=99))
    assert check_corpus(corpus)[0].startswith("made by the cleaning rules 99")


def test_a_cut_cache_of_counts_is_told(corpus: Path) -> None:
    (corpus / "counts").mkdir()
    (corpus / "counts" / f"{'0' * 64}.bin").write_bytes(b"1234")
    assert check_corpus(corpus) == [f"counts/{'0' * 64}.bin: 4 bytes, and 24 are needed; it can be removed"]


def test_corpora_are_found_in_a_folder_and_by_name(tmp_path: Path, corpus: Path, tree: Make) -> None:
    build_corpus("essays", tree("e", {"a.txt": b"one"}), tmp_path / "all" / "b")
    corpus.rename(tmp_path / "all" / "a")
    assert corpora_in([tmp_path / "all"]) == [tmp_path / "all/a", tmp_path / "all/b"]
    assert corpora_in([tmp_path / "all/b"]) == [tmp_path / "all/b"]
    with pytest.raises(InputError, match="no corpus, and there is none in it"):
        corpora_in([tree()])
    with pytest.raises(InputError, match="no such folder"):
        corpora_in([tmp_path / "nowhere"])
