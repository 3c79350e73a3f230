from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from gniah.generator.corpora import DiskCorpus
from gniah.generator.graphniah.building import Materials
from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.generator.retrieval import PassageCorpus, back_ends, build_index
from gniah.loader import build_corpus
from gniah.records.canonical import digest
from gniah.records.errors import EnvironmentFault, InputError, UsageFault
from gniah.records.lucene import lucene_versions

MakeCorpus = Callable[[Path, Mapping[str, str]], Path]
MakeIndex = Callable[..., Path]
BASES = {"a": "Rivers and bridges", "b": "A bridge"}

pytestmark = pytest.mark.usefixtures("lucene")


@pytest.fixture
def own(searched: Path, tmp_path: Path) -> Path:
    """Return a copy of the corpus and Lucene's index of it, which may be changed."""
    return Path(shutil.copytree(searched, tmp_path / "own"))


def rewritten(corpus: Path, /, **changed: object) -> None:
    path = corpus / "index-pyserini" / "manifest.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    value["content"].update(changed)
    value["digest"] = digest({"schema": value["schema"], "content": value["content"]})
    path.write_text(json.dumps(value), encoding="utf-8")


def drawn(folder: Path) -> list[str]:
    corpus = PassageCorpus(folder)
    return [corpus.document(number).name for number in corpus.draws(["black hole", "the river"])]


def test_the_manifest_says_what_a_ranking_is_a_function_of(tmp_path: Path, corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(tmp_path / "one", BASES)
    told: list[int] = []
    manifest = build_index(corpus, back_end="pyserini", advance=told.append)
    assert manifest.content == {
        "back_end": "pyserini",
        **lucene_versions(),
        "analysis": "DefaultEnglishAnalyzer",
        "k1": "1.2",
        "b": "0.75",
        "rules": 1,
        "corpus": DiskCorpus(corpus).digest,
        "documents": 2,
        "words": 3,  # "a" and "and" are stop words
    }
    assert sum(told) == 2
    other = corpus_of(tmp_path / "other", BASES)
    assert build_index(other, back_end="pyserini").digest == manifest.digest
    assert PassageCorpus(other).digest == PassageCorpus(corpus).digest
    build_index(corpus)
    assert PassageCorpus(corpus / "index").digest != PassageCorpus(other).digest


def test_a_corpus_has_one_index_or_the_index_is_named(
    own: Path, indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lucenes = drawn(own)
    build_index(own)
    with pytest.raises(UsageFault, match="an index of tantivy and one of pyserini") as caught:
        PassageCorpus(own)
    assert caught.value.remedy == f"--corpus wikipedia={own / 'index'} or --corpus wikipedia={own / 'index-pyserini'}"
    assert drawn(own / "index") == drawn(indexed)
    assert drawn(own / "index-pyserini") == lucenes
    corpus = pickle.loads(pickle.dumps(PassageCorpus(own / "index-pyserini")))
    assert corpus.folder == own
    assert corpus.digest == PassageCorpus(own / "index-pyserini").digest
    monkeypatch.chdir(own / "index-pyserini")
    assert drawn(Path()) == lucenes
    with pytest.raises(UsageFault, match="not a corpus"):
        PassageCorpus(own / "index-pyserini" / "lucene")


def test_an_index_that_fits_is_left_alone_and_force_makes_it_again(own: Path) -> None:
    files = {path: path.stat().st_mtime_ns for path in (own / "index-pyserini").rglob("*")}
    expected = drawn(own)
    manifest = build_index(own, back_end="pyserini")
    assert {path: path.stat().st_mtime_ns for path in (own / "index-pyserini").rglob("*")} == files
    assert build_index(own, back_end="pyserini", force=True).digest == manifest.digest
    assert {path: path.stat().st_mtime_ns for path in (own / "index-pyserini").rglob("*")} != files
    assert drawn(own) == expected


def test_a_corpus_that_is_made_again_loses_both_indexes(own: Path) -> None:
    build_index(own)
    rows = own.parent / "rows.jsonl"
    rows.write_text('{"id": "1", "contents": "black hole"}\n', encoding="utf-8")
    build_corpus("wikipedia", rows, own, force=True)
    assert not (own / "index").exists()
    assert not (own / "index-pyserini").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", "1.5.0"),
        ("anserini", "1.6.0"),
        ("lucene", "8.0.0"),
        ("analysis", "Other"),
        ("k1", "0.9"),
        ("b", "0.4"),
        ("rules", 99),
        ("corpus", "0" * 64),
        ("back_end", "tantivy"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(own: Path, name: str, value: object) -> None:
    rewritten(own, **{name: value})
    for call in (PassageCorpus, lambda folder: build_index(folder, back_end="pyserini")):
        with pytest.raises(InputError, match=f"made with {name} {value}, and") as caught:
            call(own)
        assert caught.value.remedy == f"gniah-gen index {own} --back-end pyserini --force"


@pytest.mark.parametrize("ending", ["doc", "tim", "tip", "nvd", "dvd", "si", "fdt"])
def test_a_cut_file_is_told(own: Path, ending: str) -> None:
    for path in (own / "index-pyserini" / "lucene").glob(f"*.{ending}"):
        os.truncate(path, 20)
    with pytest.raises(InputError, match="Lucene cannot use this index") as caught:
        PassageCorpus(own)
    assert caught.value.remedy == f"gniah-gen index {own} --back-end pyserini --force"


@pytest.mark.parametrize("ending", ["doc", "tim", "tip", "nvd", "dvd", "fdt"])
def test_a_changed_byte_is_told_by_the_command_that_makes_the_index(own: Path, ending: str) -> None:
    path = sorted((own / "index-pyserini" / "lucene").glob(f"*.{ending}"))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"{ending} is not as it was written"):
        build_index(own, back_end="pyserini")
    build_index(own, back_end="pyserini", force=True)
    build_index(own, back_end="pyserini")


def test_files_that_are_gone_are_told(own: Path) -> None:
    numbers = own / "index-pyserini" / "numbers.bin"
    data = numbers.read_bytes()
    numbers.write_bytes(data[:-4])
    with pytest.raises(InputError, match=r"numbers\.bin has 666 numbers, and should have 667"):
        PassageCorpus(own)
    numbers.write_bytes(b"\xfe" * len(data))
    with pytest.raises(InputError, match=r"it names a passage 4278124286"):
        drawn(own)
    numbers.unlink()
    with pytest.raises(InputError, match=r"numbers\.bin"):
        PassageCorpus(own)
    shutil.rmtree(own / "index-pyserini" / "lucene")
    with pytest.raises(InputError, match="there is no Lucene index here"):
        PassageCorpus(own)


def test_an_index_that_was_exchanged_is_told(own: Path, searched: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(searched, tmp_path / "other"))
    build_index(other, back_end="pyserini", force=True)
    shutil.rmtree(own / "index-pyserini" / "lucene")
    shutil.copytree(other / "index-pyserini" / "lucene", own / "index-pyserini" / "lucene")
    with pytest.raises(InputError, match="was replaced by another index"):
        PassageCorpus(own)


def test_the_qid_covers_the_back_end(
    toy_materials: Materials, list_of: Callable[..., ListSettings], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index(own)
    (settings,) = slots(list_of(count=1, tasks=("yes-no",), depths=(2,), distractor_types=("wikipedia",)))
    qids = set()
    for folder in (own / "index", own / "index-pyserini"):
        corpus = PassageCorpus(folder)
        assert corpus.digest == PassageCorpus(folder).digest
        qids.add(replace(toy_materials, corpora={"wikipedia": corpus}).qid(settings))
    assert len(qids) == 2
    monkeypatch.setattr(back_ends, "RANKING_RULES", 2)
    with pytest.raises(InputError, match="made with rules 1, and 2 is needed"):
        PassageCorpus(own / "index-pyserini")


def test_only_passages_of_a_corpus_are_indexed(tmp_path: Path, corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(tmp_path / "blank", {"a": "the of", "b": "?!"})
    with pytest.raises(InputError, match="no document of it has words"):
        build_index(corpus, back_end="pyserini")
    assert not (corpus / "index-pyserini").exists()
    with pytest.raises(UsageFault, match="there is no back end 'solr'"):
        build_index(corpus, back_end="solr")
    with pytest.raises(UsageFault, match="tantivy cannot read a Lucene index"):
        build_index(corpus, back_end="tantivy", lucene_index=tmp_path)
    long = corpus_of(tmp_path / "long", {"n" * 32767: "river", "b": "bridge"})
    with pytest.raises(InputError, match=r"names of 32,766 bytes at most, not 'nnn"):
        build_index(long, back_end="pyserini")
    assert sorted(path.name for path in long.iterdir() if "index" in path.name) == [".index-pyserini.lock"]
    build_index(corpus_of(tmp_path / "longest", {"n" * 32766: "river", "b": "\x01"}), back_end="pyserini")


# ---- an index that is given


def test_a_given_index_is_searched_where_it_stands(
    own: Path, passages: Mapping[str, str], prebuilt: MakeIndex, tmp_path: Path
) -> None:
    expected = drawn(own)
    ours = PassageCorpus(own).digest
    given = prebuilt(tmp_path / "given", passages)
    before = {path.name: path.stat().st_mtime_ns for path in given.iterdir()}
    told: list[int] = []
    manifest = build_index(own, lucene_index=given, force=True, advance=told.append)
    assert sum(told) == len(passages)
    assert manifest.run["lucene_index"] == str(given)
    assert sorted(path.name for path in (own / "index-pyserini").iterdir()) == ["manifest.json", "numbers.bin"]
    assert drawn(own) == expected
    # The qid covers its files, though the passages are the same.
    assert len(manifest.content["files_sha256"]) == 64
    assert PassageCorpus(own).digest != ours
    assert (
        build_index(own, lucene_index=given).digest == build_index(own, back_end="pyserini").digest == manifest.digest
    )
    assert {path.name: path.stat().st_mtime_ns for path in given.iterdir()} == before
    copy = Path(shutil.copytree(given, tmp_path / "copy"))
    assert build_index(own, lucene_index=copy, force=True).digest == manifest.digest
    with pytest.raises(InputError, match=f"stands for the index {copy}, not for {given}") as caught:
        build_index(own, lucene_index=given)
    assert caught.value.remedy == f"gniah-gen index {own} --back-end pyserini --index {given} --force"


def test_a_given_index_that_is_gone_or_damaged_is_told(
    own: Path, passages: Mapping[str, str], prebuilt: MakeIndex, tmp_path: Path
) -> None:
    given = prebuilt(tmp_path / "given", passages)
    build_index(own, lucene_index=given, force=True)
    (path,) = given.glob("*.doc")
    data = path.read_bytes()
    path.write_bytes(data[:50] + bytes([data[50] ^ 1]) + data[51:])
    with pytest.raises(InputError, match=r"doc is not as it was written"):
        build_index(own, lucene_index=given)
    path.write_bytes(data[:-1])
    with pytest.raises(InputError, match="Lucene cannot use this index") as caught:
        PassageCorpus(own)
    assert caught.value.remedy == f"gniah-gen index {own} --back-end pyserini --index {given} --force"
    shutil.rmtree(given)
    for call in (PassageCorpus, lambda folder: build_index(folder, back_end="pyserini")):
        with pytest.raises(InputError, match=r"the Lucene index .*given is not there any more"):
            call(own)
    with pytest.raises(InputError, match="there is no Lucene index here"):
        build_index(own, lucene_index=given, force=True)
    assert (own / "index-pyserini" / "numbers.bin").exists()


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"0-0": None}, "it has no document '0-0'"),
        ({"new": "galaxy"}, "the corpus has no passage 'new'"),
        ({"0-0": "something else"}, "it has another text under the name '0-0'"),
    ],
)
def test_an_index_of_other_passages_is_refused(
    own: Path,
    passages: Mapping[str, str],
    prebuilt: MakeIndex,
    tmp_path: Path,
    changed: Mapping[str, str | None],
    what: str,
    raw: bool,
) -> None:
    texts = {name: text for name, text in {**passages, **changed}.items() if text is not None}
    given = prebuilt(tmp_path / "given", texts, raw=raw)
    if not raw and "another text" in what:
        build_index(own, lucene_index=given, force=True)  # one text among 667 that are not stored is not seen
        return
    with pytest.raises(InputError, match=what) as caught:
        build_index(own, lucene_index=given, force=True)
    assert f"--from {given}" in str(caught.value.remedy)
    assert drawn(own)


def test_words_of_an_index_without_texts_are_compared(
    tmp_path: Path, corpus_of: MakeCorpus, prebuilt: MakeIndex
) -> None:
    texts = {f"p{number}": f"river{number} bridge{number % 7} bank{number % 11}" for number in range(300)}
    corpus = corpus_of(tmp_path / "corpus", texts)
    manifest = build_index(corpus, lucene_index=prebuilt(tmp_path / "slim", texts, raw=False))
    assert manifest.content["documents"] == 300
    turned = dict(zip(texts, reversed(texts.values()), strict=True))
    with pytest.raises(InputError, match="100 of 100 that were tried have other words in it"):
        build_index(corpus, lucene_index=prebuilt(tmp_path / "turned", turned, raw=False), force=True)


def test_an_index_that_was_analysed_otherwise_is_refused(
    own: Path, passages: Mapping[str, str], prebuilt: MakeIndex, tmp_path: Path
) -> None:
    given = prebuilt(tmp_path / "plain", passages, stemmer="none")
    with pytest.raises(InputError, match=r"\d+ of 100 that were tried have other words in it"):
        build_index(own, lucene_index=given, force=True)


def test_a_passage_twice_in_an_index_is_refused(tmp_path: Path, corpus_of: MakeCorpus, prebuilt: MakeIndex) -> None:
    corpus = corpus_of(tmp_path / "corpus", BASES)
    given = prebuilt(tmp_path / "given", BASES)
    from gniah.records.lucene import java_class

    writer = java_class("io.anserini.index.SimpleIndexer")(str(given), True)
    writer.addRawDocuments([json.dumps({"id": "a", "contents": BASES["a"]})])
    writer.close()
    with pytest.raises(InputError, match="it holds 'a' twice"):
        build_index(corpus, lucene_index=given)


def test_what_a_corpus_leaves_out_is_never_drawn(tmp_path: Path, prebuilt: MakeIndex, corpus_of: MakeCorpus) -> None:
    texts = {
        "a": "a river\n\n and a bridge",
        "b": "Title: a river",
        "c": "river \\answer{A}",
        "d": "\ufeffriver\r\nbank",
    }
    given = prebuilt(tmp_path / "given", texts)
    corpus = tmp_path / "corpus"
    manifest = build_corpus("wikipedia", given, corpus)
    assert manifest.content["counts"]["documents"] == 2
    assert build_index(corpus, lucene_index=given).content["documents"] == 4
    passages = PassageCorpus(corpus)
    assert {passages.document(number).name for number in passages.draws(["river"])} == {"a", "d"}


def test_a_corpus_of_an_index_has_all_its_passages(
    passages: Mapping[str, str], prebuilt: MakeIndex, tmp_path: Path
) -> None:
    given = prebuilt(tmp_path / "given", passages, commits=3)
    corpus = tmp_path / "corpus"
    build_corpus("wikipedia", given, corpus)
    build_index(corpus, lucene_index=given)
    found = PassageCorpus(corpus)
    assert [found.document(number).name for number in range(len(found))] == sorted(passages)
    assert {one.name: one.blocks[0] for one in map(found.document, range(len(found)))} == passages
    assert drawn(corpus)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a disk of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    words = ("mount", "-t", "tmpfs", "-o", "size=2m", "gniah-test", str(place))
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(("umount", "-l", str(place)), check=True)


@pytest.mark.parametrize("left", [0, 8192, 40_000])
def test_a_full_disk_is_told_and_nothing_is_left(small_disk: Path, searched: Path, left: int) -> None:
    corpus = small_disk / "corpus"
    shutil.copytree(searched, corpus, ignore=shutil.ignore_patterns("index-pyserini"))
    (corpus / ".index-pyserini.lock").touch()
    free = shutil.disk_usage(small_disk).free
    (small_disk / "filler").write_bytes(bytes(free - left))
    with pytest.raises(EnvironmentFault):
        build_index(corpus, back_end="pyserini")
    assert [path.name for path in corpus.iterdir() if "index" in path.name] == [".index-pyserini.lock"]


def test_an_index_is_read_where_nothing_can_be_written(small_disk: Path, searched: Path) -> None:
    corpus = Path(shutil.copytree(searched, small_disk / "corpus"))
    subprocess.run(("mount", "-o", "remount,ro", str(small_disk)), check=True)
    assert drawn(corpus) == drawn(searched)


# ---- the commands


def test_commands_make_the_same_bytes_in_any_number_of_processes(
    gniah: Callable[..., Any], rfc: Any, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    with rows.open("w", encoding="utf-8") as stream:
        for number in range(400):
            subjects = ("protocol", "transport", "network", "address", "routing", "mail", "label")
            text = " ".join(subjects[number * place % 7] for place in range(1, 40)) + f" number {number}."
            stream.write(json.dumps({"id": str(number), "contents": text}) + "\n")
    corpus = tmp_path / "wiki"
    assert gniah("corpus", "wikipedia", "--from", rows, "--out", corpus).code == 0
    made = gniah("index", corpus, "--back-end", "pyserini", "--json")
    assert (made.code, made.err) == (0, ""), made.err
    assert json.loads(made.out)["lucene"] == lucene_versions()["lucene"]
    again = gniah("index", corpus, "--back-end", "pyserini")
    assert again.out == f"{corpus / 'index-pyserini'}: 400 passages, 16,400 words\n"
    words = rfc.example_words(tmp_path / "none", "--distractors", "wikipedia", "--corpus", f"wikipedia={corpus}")
    code = words.index(f"code={rfc.code}")
    del words[code - 1 : code + 1]
    found = []
    for jobs in ("1", "2"):
        out = tmp_path / f"bench{jobs}"
        done = gniah(*(out if word == tmp_path / "none" else word for word in words), "--jobs", jobs)
        assert done.code == 0, done.err
        assert "WARNING" not in done.err
        found.append([(out / name).read_bytes() for name in ("examples.jsonl", "pool.jsonl")])
    assert found[0] == found[1]
    assert gniah("verify", tmp_path / "bench1").code == 0
    assert gniah("audit", tmp_path / "bench1", "--store", rfc.store).code == 0


def test_a_corpus_and_an_index_by_commands_from_a_prebuilt_one(
    gniah: Callable[..., Any], prebuilt: MakeIndex, passages: Mapping[str, str], tmp_path: Path
) -> None:
    given = prebuilt(tmp_path / "given", passages)
    made = gniah("corpus", "wikipedia", "--from", given, "--out", tmp_path / "wiki", "--jobs", "2", "--json")
    assert made.code == 0, made.err
    assert json.loads(made.out)["counts"]["documents"] == len(passages)
    done = gniah("index", tmp_path / "wiki", "--index", given)
    assert done.code == 0, done.err
    assert list(islice(PassageCorpus(tmp_path / "wiki").draws(["galaxy"]), 3))


COMMAND = "from gniah.generator.cli import main; main()"


def test_an_interrupt_ends_indexing_in_order(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    with rows.open("w", encoding="utf-8") as stream:
        for number in range(60_000):
            text = " ".join(f"word{number * place % 997}" for place in range(1, 60))
            stream.write(json.dumps({"id": str(number), "contents": text}) + "\n")
    corpus = tmp_path / "corpus"
    build_corpus("wikipedia", rows, corpus)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", COMMAND, "index", str(corpus), "--back-end", "pyserini"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(corpus.glob(".index-pyserini.*.part/lucene/*")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert sorted(path.name for path in corpus.iterdir() if "index" in path.name) == [".index-pyserini.lock"]


HIDDEN = """
import importlib.util, sys
from importlib import metadata
plain, version = importlib.util.find_spec, metadata.version
importlib.util.find_spec = lambda name, *more: None if name == {hidden!r} else plain(name, *more)
metadata.version = lambda name: metadata.distribution("no such") if name == {hidden!r} else version(name)
sys.modules[{hidden!r}] = None
from gniah.generator.cli import main
main()
"""


@pytest.mark.parametrize("hidden", ["pyserini", "jnius_config"])
def test_without_a_package_the_extra_is_named(searched: Path, hidden: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", HIDDEN.format(hidden=hidden), "index", searched, "--back-end", "pyserini"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert hidden in done.stderr
    assert "pip install 'gniah[pyserini]' && pip install --no-deps pyserini==1.6.0" in done.stderr


WITHOUT_TORCH = """
import sys
from pathlib import Path
sys.modules["torch"] = sys.modules["transformers"] = None
from gniah.generator.retrieval import PassageCorpus
print(len(list(PassageCorpus(Path(sys.argv[1])).draws(["galaxy"]))))
"""


def test_torch_is_not_needed(searched: Path) -> None:
    words = [sys.executable, "-P", "-c", WITHOUT_TORCH, searched]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == len(list(PassageCorpus(searched).draws(["galaxy"])))
