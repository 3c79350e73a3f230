"""Fetching with a real Maven, but one small jar instead of hundreds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from neo4j_fixtures import not_here

from gniah.loader.neo4j.jars import Jars, fetch_jars
from gniah.loader.neo4j.java import Java, find_java
from gniah.loader.neo4j.releases import RELEASES, Release
from gniah.records.errors import InputError, MissingDependency

JAR = "lib/slf4j-api-2.0.17.jar"


class Small(Release):
    """A release of one jar that Neo4j needs too."""

    @property
    def pom(self) -> bytes:
        text = RELEASES["5.26"].pom.decode("utf-8")
        head, _, rest = text.partition("<dependencies>")
        tail = rest.partition("</dependencies>")[2]
        one = "<groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>2.0.17</version>"
        return f"{head}<dependencies><dependency>{one}</dependency></dependencies>{tail}".encode()


SMALL = Small("small", "5.26.30", "2.13.9", "none", 17)
Fetch = Callable[[], tuple[Jars, list[str]]]


@pytest.fixture(scope="module")
def java() -> Java:
    if shutil.which("mvn") is None:
        not_here("Maven is not installed")
    try:
        return find_java(17)
    except MissingDependency as error:
        not_here(error.message)


@pytest.fixture(scope="module")
def fetched(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that was filled once."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNIAH_CACHE", str(cache))
        fetch_jars(SMALL, java, report=lambda _: None)
    return cache


@pytest.fixture
def folder(fetched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the cache's folder of jars."""
    shutil.copytree(fetched, tmp_path / "cache")
    monkeypatch.setenv("GNIAH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "neo4j" / SMALL.folder


@pytest.fixture
def fetch(java: Java) -> Fetch:
    """Fetch the jars, and return what was reported."""

    def call() -> tuple[Jars, list[str]]:
        said: list[str] = []
        return fetch_jars(SMALL, java, report=said.append), said

    return call


@pytest.fixture
def without_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("without_maven")
def test_jars_that_are_there_are_taken_without_maven(folder: Path, fetch: Fetch) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["jars.json", "lib", "pom.xml"]
    jars, said = fetch()
    assert said == []
    assert jars.class_path(browser=True) == ":".join(str(folder / name / "*") for name in ("lib", "plugins", "browser"))
    assert "browser" not in jars.class_path()


@pytest.mark.usefixtures("without_maven")
@pytest.mark.parametrize("change", ["changed", "missing", "added"])
def test_a_jar_that_is_not_as_it_was_is_named(folder: Path, fetch: Fetch, change: str, java: Java) -> None:
    jar = folder / JAR
    if change == "changed":
        jar.write_bytes(jar.read_bytes()[:-1] + b"?")
    elif change == "missing":
        jar.unlink()
    else:
        jar = folder / "plugins" / "another.jar"
        jar.parent.mkdir()
        jar.write_bytes(b"PK")
    said: list[str] = []
    with pytest.raises(MissingDependency, match="no mvn on the PATH"):
        fetch_jars(SMALL, java, report=said.append)
    end = {"changed": "was changed", "missing": "is missing", "added": "was added"}[change]
    assert said[0] == f"{jar}: this file {end} since it was fetched; all jars are fetched again"


def test_a_corrupt_jar_is_fetched_again(folder: Path, fetch: Fetch) -> None:
    before = (folder / JAR).read_bytes()
    (folder / JAR).write_bytes(before[:1000])
    _, said = fetch()
    assert len(said) == 2
    assert (folder / JAR).read_bytes() == before
    assert fetch()[1] == []


def test_other_bytes_than_the_first_time_are_refused(folder: Path, fetch: Fetch) -> None:
    lock = json.loads((folder / "jars.json").read_text(encoding="utf-8"))
    lock["jars"][JAR] = "0" * 64
    (folder / "jars.json").write_text(json.dumps(lock), encoding="utf-8")
    with pytest.raises(InputError, match=f"Maven gave another {JAR} than the first time"):
        fetch()


def test_another_pom_means_another_fetch(folder: Path, fetch: Fetch) -> None:
    lock = json.loads((folder / "jars.json").read_text(encoding="utf-8"))
    (folder / "jars.json").write_text(json.dumps({**lock, "pom": "0" * 64}), encoding="utf-8")
    _, said = fetch()
    assert "no list of hashes for this release" in said[0]
    assert json.loads((folder / "jars.json").read_text(encoding="utf-8")) == lock


def test_without_a_network_nothing_is_left_behind(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "user"
    (home / ".m2").mkdir(parents=True)
    (home / ".m2" / "settings.xml").write_text(
        "<settings><mirrors><mirror><id>nowhere</id><mirrorOf>*</mirrorOf><url>http://127.0.0.1:9/</url></mirror>"
        "</mirrors></settings>",
        encoding="utf-8",
    )
    monkeypatch.setenv("MAVEN_OPTS", f"-Duser.home={home}")
    monkeypatch.setenv("GNIAH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingDependency, match="could not reach a repository") as caught:
        fetch_jars(SMALL, java, report=lambda _: None)
    log = tmp_path / "cache" / "neo4j" / f"{SMALL.folder}.log"
    assert str(log) in str(caught.value.remedy)
    left = sorted(path.name for path in log.parent.iterdir())
    assert left == [f".{SMALL.folder}.lock", log.name]
