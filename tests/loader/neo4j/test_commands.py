"""`gniah-load neo4j` as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from neo4j_fixtures import Running

from gniah.loader.neo4j.java import find_java
from gniah.loader.neo4j.processes import Process
from gniah.loader.neo4j.releases import RELEASES
from gniah.loader.neo4j.server import Server, Settings
from gniah.records.errors import MissingDependency, StoreError

Load = Callable[..., subprocess.CompletedProcess[str]]
LITTLE = ("--heap", "512m", "--page-cache", "64m", "--wait", "300")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"
    Server(tmp_path / "home").stop()


def one_error(done: subprocess.CompletedProcess[str], code: int) -> str:
    """Return the error of a command that ended with a code and one error with a remedy."""
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.startswith("gniah-load: error: ") for line in lines[-2:]] == [True, False], done.stderr
    assert lines[-1].startswith("  to mend it: ")
    return lines[-2]


@pytest.mark.neo4j
@pytest.mark.slow
@pytest.mark.usefixtures("neo4j_server")  # which has fetched the jars, or said why not
def test_a_servers_life(gniah_load: Load, home: Path) -> None:
    started = gniah_load("neo4j", "start", "--home", home, "--browser", "--json", *LITTLE)
    assert started.returncode == 0, started.stderr
    status = json.loads(started.stdout)
    assert {name: status[name] for name in ("state", "release", "neo4j", "gds", "user")} == {
        "state": "running",
        "release": "5.26",
        "neo4j": RELEASES["5.26"].neo4j,
        "gds": RELEASES["5.26"].gds,
        "user": "neo4j",
    }
    secret = Path(status["password_file"]).read_text(encoding="utf-8").strip()
    with urllib.request.urlopen(status["browser"], timeout=30) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read().lower()
    again = gniah_load("neo4j", "start", "--home", home)
    assert again.returncode == 0
    assert f"it runs already at {status['address']}" in again.stderr
    assert json.loads(gniah_load("neo4j", "status", "--home", home, "--json").stdout) == status

    # Killed from outside: it is noticed, and the next start brings it back with its data, password and port.
    running = Running(Server(home), status["address"], "neo4j", Path(status["password_file"]))
    running.run("CREATE (:Paper {corpusid: 7})")
    process = Process.of(status["pid"])
    assert process is not None
    os.kill(status["pid"], signal.SIGKILL)
    assert process.wait(30)
    ended = gniah_load("neo4j", "status", "--home", home)
    assert ended.returncode == 1
    assert "ended" in ended.stdout
    back = gniah_load("neo4j", "start", "--home", home, *LITTLE)
    assert back.returncode == 0, back.stderr
    assert status["address"] in back.stdout
    assert running.run("MATCH (p:Paper) RETURN p.corpusid AS id") == [{"id": 7}]

    logs = gniah_load("neo4j", "logs", "--home", home, "--lines", "5")
    assert logs.returncode == 0
    assert len(logs.stdout.splitlines()) <= 5
    assert "Started." in logs.stdout

    stopped = gniah_load("neo4j", "stop", "--home", home)
    assert (stopped.returncode, stopped.stderr) == (0, "stopped\n")
    for done in (started, again, back, logs, stopped):
        assert secret not in done.stdout + done.stderr
    assert gniah_load("neo4j", "status", "--home", home).returncode == 1
    once_more = gniah_load("neo4j", "stop", "--home", home, "--json")
    assert once_more.returncode == 0
    assert json.loads(once_more.stdout)["state"] == "stopped"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(status["address"].rpartition(":")[2]))) != 0

    server = Server(home)
    assert server.admin("--version") == RELEASES["5.26"].neo4j
    with pytest.raises(StoreError, match="neo4j-admin no such failed"):
        server.admin("no", "such", "command")
    other = gniah_load("neo4j", "start", "--home", home, "--release", "2026.01")
    assert "the data here are of release 5.26, not 2026.01" in one_error(other, 3)


@pytest.mark.neo4j
@pytest.mark.slow
def test_the_newer_release_runs_on_a_newer_java(home: Path) -> None:
    release = RELEASES["2026.01"]
    try:
        java = find_java(release.java)
    except MissingDependency as error:
        pytest.skip(f"Neo4j {release.neo4j} is not tried: {error.message}")
    from neo4j_fixtures import start

    running = start(home, release="2026.01", java=java.program, browser=True)
    assert running.run("RETURN gds.version() AS version") == [{"version": release.gds}]
    running.run("CREATE (:Paper {corpusid: 1})-[:CITES]->(:Paper {corpusid: 2})")
    running.run("CALL gds.graph.project('g', 'Paper', 'CITES') YIELD nodeCount")
    assert running.run("CALL gds.wcc.write('g', {writeProperty: 'part'}) YIELD componentCount") == [
        {"componentCount": 1}
    ]
    page = running.server.status().browser
    assert page is not None
    with urllib.request.urlopen(page, timeout=30) as answer:
        assert answer.status == 200
    assert running.server.stop()


@pytest.mark.neo4j
@pytest.mark.slow
@pytest.mark.usefixtures("neo4j_server")
def test_a_server_that_cannot_come_up_says_why_and_leaves_no_process(gniah_load: Load, home: Path) -> None:
    done = gniah_load("neo4j", "start", "--home", home, "--heap", "1k")
    assert "too little memory" in one_error(done, 7)
    assert Server(home).status().state == "stopped"
    done = gniah_load("neo4j", "start", "--home", home, "--heap", "512m", "--page-cache", "64m", "--wait", "1")
    assert "did not answer within 1 s" in one_error(done, 5)
    assert Server(home).status().state == "stopped"
    with pytest.raises(StoreError):
        Server(home).start(Settings(patience=1.0))


@pytest.mark.neo4j
@pytest.mark.usefixtures("neo4j_server")
def test_a_port_that_is_taken(gniah_load: Load, home: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = gniah_load("neo4j", "start", "--home", home, "--bolt-port", port)
    assert f"port {port} is taken by another process" in one_error(done, 7)
    assert "--bolt-port" in done.stderr


def test_a_java_that_is_too_old(gniah_load: Load, home: Path, fake_java: Callable[[str, str], Path]) -> None:
    done = gniah_load("neo4j", "start", "--home", home, "--java", fake_java("old", "11.0.22"))
    assert "this is Java 11, and this Neo4j needs 17 or newer" in one_error(done, 4)


def test_maven_is_missing(gniah_load: Load, home: Path, tmp_path: Path, fake_java: Callable[[str, str], Path]) -> None:
    java = fake_java("new", "17.0.1")
    done = gniah_load(
        "neo4j", "start", "--home", home, "--java", java, PATH=str(java / "bin"), GNIAH_CACHE=str(tmp_path / "cache")
    )
    assert "there is no mvn on the PATH" in one_error(done, 4)
    assert "apt-get install maven" in done.stderr


def test_the_driver_is_missing(home: Path) -> None:
    hidden = "import sys; sys.modules['neo4j'] = None; from gniah.loader.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "neo4j", "start", "--home", str(home)],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert "Neo4j's driver is not installed" in one_error(done, 4)
    assert "pip install" in done.stderr


def test_where_no_server_ever_was(gniah_load: Load, home: Path) -> None:
    status = gniah_load("neo4j", "status", "--home", home, "--json")
    assert status.returncode == 1
    assert json.loads(status.stdout)["state"] == "stopped"
    assert gniah_load("neo4j", "stop", "--home", home).returncode == 0
    assert "there is no such log" in one_error(gniah_load("neo4j", "logs", "--home", home), 3)
    assert not home.exists()


@pytest.mark.parametrize(
    "words", [("--heap", "much"), ("--heap", "0g"), ("--bolt-port", "0"), ("--release", "4.4"), ("--http-port", "7474")]
)
def test_wrong_use(gniah_load: Load, home: Path, words: tuple[str, str]) -> None:
    assert gniah_load("neo4j", "start", "--home", home, *words).returncode == 2
    assert not home.exists()


def test_settings_of_a_file_and_of_the_environment(gniah_load: Load, home: Path, tmp_path: Path) -> None:
    settings = tmp_path / "gniah.toml"
    settings.write_text('[gniah-load.neo4j.start]\nheap = "much"\n', encoding="utf-8")
    done = gniah_load("--config", settings, "neo4j", "start", "--home", home)
    assert (done.returncode, "'much' is no amount" in done.stderr) == (2, True)
    settings.write_text('[gniah-load.neo4j.start]\nheaps = "1g"\n', encoding="utf-8")
    assert "start has no such option" in one_error(gniah_load("--config", settings, "neo4j", "status"), 3)
    settings.write_text('[gniah-load.neo4j]\nheap = "1g"\n', encoding="utf-8")
    assert "neo4j has no such option" in one_error(gniah_load("--config", settings, "neo4j", "status"), 3)
    done = gniah_load("neo4j", "start", "--home", home, GNIAH_LOAD_NEO4J_START_PAGE_CACHE="much")
    assert (done.returncode, "'much' is no amount" in done.stderr) == (2, True)
    done = gniah_load("neo4j", "status", GNIAH_NEO4J_HOME=str(home), GNIAH_LOAD_NEO4J_STATUS_JSON="1")
    assert json.loads(done.stdout)["home"] == str(home)


def test_help_is_quick(gniah_load: Load) -> None:
    times = []
    for _ in range(3):
        begun = time.monotonic()
        assert "--page-cache" in gniah_load("neo4j", "start", "--help").stdout
        times.append(time.monotonic() - begun)
    assert min(times) < 0.5


def test_a_shell_is_told_where_the_server_and_its_password_are(
    gniah_load: Load, home: Path, neo4j_server: Running
) -> None:
    told = gniah_load("neo4j", "env", "--home", neo4j_server.server.home.folder)
    script = 'eval "$1"; printf "%s|%s" "$GNIAH_STORE" "$GNIAH_NEO4J_PASSWORD_FILE"'
    shown = subprocess.run(["sh", "-c", script, "sh", told.stdout], capture_output=True, encoding="utf-8", check=True)
    assert shown.stdout == f"{neo4j_server.address}|{neo4j_server.password_file}"
    assert neo4j_server.password not in told.stdout
    assert "no server runs here" in one_error(gniah_load("neo4j", "env", "--home", home), 5)
    assert not home.exists()
