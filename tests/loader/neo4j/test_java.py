from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gniah.loader.neo4j.java import find_java, java_version
from gniah.records import java
from gniah.records.errors import MissingDependency

Fake = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def only_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the machine's own Javas."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr(java, "_USUAL_PLACES", ((str(tmp_path / "jvm"), "bin/java"),))
    if any((Path(folder) / "java").exists() for folder in os.environ["PATH"].split(":")):
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.parametrize(("said", "number"), [("1.8.0_392", 8), ("17.0.15", 17), ("25", 25), ("26-ea", 26)])
def test_the_number_of_a_version(fake_java: Fake, said: str, number: int) -> None:
    assert java_version(fake_java("any", said) / "bin" / "java") == number


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") is None
    assert java_version(Path("/bin/false")) is None


def test_a_java_that_was_given_and_is_too_old_is_named(fake_java: Fake) -> None:
    old = fake_java("old", "11.0.2")
    for given in (old, old / "bin" / "java"):
        with pytest.raises(MissingDependency, match=r"bin/java: this is Java 11, and this Neo4j needs 17 or newer"):
            find_java(17, given)
    with pytest.raises(MissingDependency, match="no Java that runs"):
        find_java(17, old / "bin" / "nothing")


def test_the_first_that_is_new_enough_is_taken(fake_java: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    home, path, usual = fake_java("home", "1.8.0"), fake_java("path", "17.0.1"), fake_java("jvm/new", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", f"{path / 'bin'}:/usr/bin:/bin")
    assert find_java(8).home == home
    assert find_java(17).home == path
    found = find_java(21)
    assert (found.home, found.version) == (usual, 25)


def test_without_one_it_says_what_to_install(fake_java: Fake) -> None:
    with pytest.raises(MissingDependency, match="needs Java 21 or newer, and none was found") as caught:
        find_java(21)
    assert "openjdk-21" in str(caught.value.remedy)
    fake_java("jvm/older", "17.0.3")
    with pytest.raises(MissingDependency, match=r"only older ones were found \(.*jvm/older/bin/java is Java 17\)"):
        find_java(21)
