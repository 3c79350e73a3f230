"""A corpus of made-up passages with many equal scores, and its index."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gniah.generator.retrieval import build_index
from gniah.loader import build_corpus
from gniah.records.errors import MissingDependency
from gniah.records.lucene import java_class, lucene_versions
from gniah.records.streams import Stream

_WORDS = (
    *("galaxy", "galaxies", "river", "bridges", "lattice", "quark", "the", "of", "école", "network", "Neural"),
    *("market", "protein", "field", "fields", "theory", "black", "hole", "string", "AND", "x1"),
)


def made_up(count: int) -> dict[str, str]:
    """Return passages by name. Some are equal, and names do not stand in the order of numbers."""
    stream = Stream("passages")
    found = {}
    for number in range(count):
        # The first words of the list stand in more passages than the last.
        words = [stream.choice(_WORDS[: 1 + stream.below(len(_WORDS))]) for _ in range(1 + stream.below(90))]
        text = " ".join(words)
        found[f"{number * 7919 % 1009}-{number}"] = text
        if number % 9 == 0:
            found[f"again-{number % 4}-{number}"] = text
    return found


def write_corpus(folder: Path, passages: Mapping[str, str]) -> Path:
    """Make a corpus of passages, without an index."""
    folder.mkdir(parents=True)
    rows = [json.dumps({"id": name, "title": "T", "contents": text}) + "\n" for name, text in passages.items()]
    (folder / "rows.jsonl").write_text("".join(rows), encoding="utf-8")
    build_corpus("wikipedia", folder / "rows.jsonl", folder / "corpus")
    return folder / "corpus"


@pytest.fixture(scope="session")
def passages() -> Mapping[str, str]:
    """Return 667 passages by name."""
    return made_up(600)


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory, passages: Mapping[str, str]) -> Path:
    """Return a corpus of the passages with its index, which is not to be changed."""
    corpus = write_corpus(tmp_path_factory.mktemp("passages") / "made", passages)
    build_index(corpus)
    return corpus


@pytest.fixture(scope="session")
def lucene() -> None:
    """Skip a test where pyserini or a Java for it is missing; under CI it fails."""
    try:
        lucene_versions()
    except MissingDependency as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(error.message)


def anserini_index(
    folder: Path, passages: Mapping[str, str], *, raw: bool = True, commits: int = 1, stemmer: str = "porter"
) -> Path:
    """Make an index with Anserini alone, as pyserini's prebuilt ones were made. `raw` stores the passages."""
    names = list(passages)
    each = -(-len(names) // commits)
    for begin in range(0, len(names), each):
        arguments = java_class("io.anserini.index.IndexCollection$Args")()
        arguments.input, arguments.index, arguments.collectionClass = "", str(folder), "JsonCollection"
        arguments.storeRaw, arguments.threads, arguments.stemmer = raw, 1, stemmer
        if begin:
            arguments.append = True
        writer = java_class("io.anserini.index.SimpleIndexer")(arguments)
        rows = [json.dumps({"id": name, "contents": passages[name]}) for name in names[begin : begin + each]]
        assert writer.addRawDocuments(rows) == len(rows)
        writer.close()
    return folder


@pytest.fixture(scope="session")
def prebuilt(lucene: None) -> Callable[..., Path]:
    """Make a Lucene index of passages: `prebuilt(folder, {name: text}, raw=True)`."""
    return anserini_index


@pytest.fixture(scope="session")
def searched(lucene: None, tmp_path_factory: pytest.TempPathFactory, passages: Mapping[str, str]) -> Path:
    """Return a corpus of the passages with an index of Lucene, which is not to be changed."""
    corpus = write_corpus(tmp_path_factory.mktemp("passages") / "searched", passages)
    build_index(corpus, back_end="pyserini")
    return corpus


@pytest.fixture
def copied(indexed: Path, tmp_path: Path) -> Path:
    """Return a copy of the corpus and its index, which may be changed."""
    return Path(shutil.copytree(indexed, tmp_path / "copied"))


@pytest.fixture(scope="session")
def corpus_of() -> Callable[[Path, Mapping[str, str]], Path]:
    """Make a corpus without an index: `corpus_of(folder, {name: text})`."""
    return write_corpus
