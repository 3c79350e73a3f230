from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

import pytest

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval import PassageCorpus, build_index
from gniah.generator.retrieval.analysis import tantivy_version
from gniah.generator.retrieval.ranking import TantivyIndex
from gniah.loader import build_corpus
from gniah.records.canonical import digest
from gniah.records.errors import EnvironmentFault, ImpossibleRequest, InputError, MissingDependency, UsageFault

MakeCorpus = Callable[[Path, Mapping[str, str]], Path]
BASES = {"a": "Rivers and bridges", "b": "A bridge"}


def rewritten(corpus: Path, /, **changed: object) -> None:
    """Change the content of an index's manifest, its digest with it."""
    path = corpus / "index" / "manifest.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    value["content"].update(changed)
    value["digest"] = digest({"schema": value["schema"], "content": value["content"]})
    path.write_text(json.dumps(value), encoding="utf-8")


def test_the_manifest_says_what_a_ranking_is_a_function_of(tmp_path: Path, corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(tmp_path / "one", BASES)
    told: list[int] = []
    manifest = build_index(corpus, advance=told.append)
    content = dict(manifest.content)
    assert len(content.pop("words_sha256")) == 64
    assert content == {
        "back_end": "tantivy",
        "version": tantivy_version(),
        "rules": 1,
        "corpus": DiskCorpus(corpus).digest,
        "documents": 2,
        "words": 3,  # "a" and "and" are stop words
    }
    assert sum(told) == 2
    other = corpus_of(tmp_path / "other", BASES)
    assert build_index(other).digest == manifest.digest == TantivyIndex(DiskCorpus(corpus)).digest


def test_other_passages_have_another_digest(tmp_path: Path, corpus_of: MakeCorpus) -> None:
    found = []
    for place, texts in enumerate((BASES, {**BASES, "b": "Bridges"}, {"a": BASES["a"]}, dict(reversed(BASES.items())))):
        corpus = corpus_of(tmp_path / str(place), texts)
        build_index(corpus)
        found.append(PassageCorpus(corpus).digest)
    assert len(set(found)) == 4


def test_an_index_that_fits_is_left_alone_and_force_makes_it_again(copied: Path) -> None:
    files = {path: path.stat().st_mtime_ns for path in (copied / "index").iterdir()}
    manifest = build_index(copied)
    assert {path: path.stat().st_mtime_ns for path in (copied / "index").iterdir()} == files
    assert build_index(copied, force=True).digest == manifest.digest
    assert {path: path.stat().st_mtime_ns for path in (copied / "index").iterdir()} != files


def test_an_index_can_be_read_by_who_can_read_its_manifest(indexed: Path) -> None:
    modes = {path.stat().st_mode for path in (indexed / "index").iterdir()}
    assert len(modes) == 1


def test_a_corpus_without_an_index_is_refused(tmp_path: Path, corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(tmp_path / "bare", BASES)
    with pytest.raises(InputError, match="no index yet") as caught:
        PassageCorpus(corpus)
    assert caught.value.remedy == f"gniah-gen index {corpus}"


@pytest.mark.parametrize(
    ("name", "value"), [("version", "0.1.0"), ("rules", 99), ("corpus", "0" * 64), ("back_end", "else")]
)
def test_an_index_that_does_not_fit_is_refused(copied: Path, name: str, value: object) -> None:
    rewritten(copied, **{name: value})
    for call in (PassageCorpus, build_index):
        with pytest.raises(InputError, match=f"made with {name} {value}, and") as caught:
            call(copied)
        assert "--force" in str(caught.value.remedy)
    build_index(copied, force=True)
    PassageCorpus(copied)


@pytest.mark.parametrize("name", ["documents", "words"])
def test_a_manifest_without_counts_is_refused(copied: Path, name: str) -> None:
    rewritten(copied, **{name: "many"})
    with pytest.raises(InputError, match="lacks its counts"):
        PassageCorpus(copied)


@pytest.mark.parametrize("ending", ["idx", "term", "fieldnorm", "fast", "json"])
def test_a_cut_file_is_told(copied: Path, ending: str) -> None:
    for path in (copied / "index").glob(f"*.{ending}"):
        if path.name != "manifest.json":
            os.truncate(path, 20)
    with pytest.raises(InputError, match="the index is damaged"):
        PassageCorpus(copied)


@pytest.mark.parametrize("ending", ["idx", "term", "fieldnorm", "fast"])
def test_a_changed_byte_is_told_by_the_command_that_makes_the_index(copied: Path, ending: str) -> None:
    build_index(copied)
    (path,) = (copied / "index").glob(f"*.{ending}")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"{ending} is not as it was written"):
        build_index(copied)
    build_index(copied, force=True)
    build_index(copied)


def test_a_file_that_is_missing_is_told(copied: Path) -> None:
    next((copied / "index").glob("*.idx")).unlink()
    for call in (PassageCorpus, build_index):
        with pytest.raises(InputError, match="the index is damaged"):
            call(copied)


def test_an_index_with_other_passages_in_it_is_told_when_it_is_asked(
    copied: Path, tmp_path: Path, corpus_of: MakeCorpus
) -> None:
    passages = DiskCorpus(copied)
    texts = {passages.document(number).name: "galaxy river" for number in range(len(passages))}
    other = corpus_of(tmp_path / "other", texts)
    build_index(other)
    shutil.copy(copied / "index" / "manifest.json", other / "index" / "manifest.json")
    shutil.rmtree(copied / "index")
    shutil.copytree(other / "index", copied / "index")
    with pytest.raises(InputError, match="has the score"):
        next(TantivyIndex(passages).ranking("galaxy"))
    rewritten(copied, documents=len(passages) + 1)
    with pytest.raises(InputError, match=r"has 667 passages, and should have 668"):
        TantivyIndex(passages)


def test_only_passages_are_searched(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_bytes(b"int a;\n")
    source = tmp_path / "tree"
    source.mkdir()
    (source / "a.c").write_bytes(b"int a;\n")
    build_corpus("code", source, tmp_path / "code")
    with pytest.raises(UsageFault, match="a corpus of kind code; passages"):
        build_index(tmp_path / "code")
    with pytest.raises(UsageFault, match="a corpus of kind code, not wikipedia") as caught:
        PassageCorpus(tmp_path / "code")
    assert f"--corpus code={tmp_path / 'code'}" in str(caught.value.remedy)
    with pytest.raises(UsageFault, match="a plain folder does not do"):
        PassageCorpus(source)
    with pytest.raises(InputError):
        build_index(tmp_path / "no")


def test_passages_without_a_word_are_refused_and_leave_nothing(tmp_path: Path, corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(tmp_path / "blank", {"a": "the of", "b": "?!"})
    with pytest.raises(ImpossibleRequest, match="no passage holds a word"):
        build_index(corpus)
    assert not (corpus / "index").exists()


def test_without_tantivy_the_extra_is_named(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    for call in (PassageCorpus, build_index):
        with pytest.raises(MissingDependency) as caught:
            call(indexed)
        assert caught.value.remedy == "pip install 'gniah[wikipedia]'"


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """Return a disk of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    words = ("mount", "-t", "tmpfs", "-o", "size=2m", "gniah-test", str(place))
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield place  # type: ignore[misc]
    subprocess.run(("umount", str(place)), check=True)


def test_a_full_disk_is_told_and_nothing_is_left(small_disk: Path, indexed: Path) -> None:
    corpus = small_disk / "corpus"
    shutil.copytree(indexed, corpus, ignore=shutil.ignore_patterns("index"))
    free = shutil.disk_usage(small_disk).free
    (small_disk / "filler").write_bytes(bytes(free - 8192))
    with pytest.raises(EnvironmentFault):
        build_index(corpus)
    assert [path.name for path in corpus.iterdir() if "index" in path.name] == [".index.lock"]


def test_an_index_is_read_where_nothing_can_be_written(small_disk: Path, indexed: Path) -> None:
    corpus = Path(shutil.copytree(indexed, small_disk / "corpus"))
    subprocess.run(("mount", "-o", "remount,ro", str(small_disk)), check=True)
    expected = list(PassageCorpus(indexed).draws(["black hole"]))
    assert len(expected) > 100
    assert list(PassageCorpus(corpus).draws(["black hole"])) == expected
    assert list(islice(PassageCorpus(corpus).draws(["black hole"]), 2)) == expected[:2]
