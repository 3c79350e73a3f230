"""A real server, shared by the session, and what a start does before there is one."""

from __future__ import annotations

import contextlib
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from neo4j_fixtures import Running

from gniah.loader.neo4j.homes import State
from gniah.loader.neo4j.processes import Process
from gniah.loader.neo4j.releases import RELEASES
from gniah.loader.neo4j.server import Server, Settings
from gniah.records.errors import BusyError, EnvironmentFault, UsageFault

LISTENS = "0A"


def listening(pid: int) -> set[str]:
    """Return the addresses that a process listens on, read from /proc."""
    opened = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            opened.add(str(entry.readlink()))
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and f"socket:[{fields[9]}]" in opened:
                digits, port = fields[1].split(":")
                words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
                found.add(f"{socket.inet_ntop(family, b''.join(words))} {int(port, 16)}")
    return found


def process_of(running: Running) -> int:
    pid = running.server.status().pid
    assert pid is not None
    return pid


@pytest.mark.neo4j
def test_graph_data_science_answers_over_bolt(neo4j_server: Running) -> None:
    assert neo4j_server.run("RETURN gds.version() AS version") == [{"version": RELEASES["5.26"].gds}]
    rows = neo4j_server.run("CALL dbms.components() YIELD name, versions, edition RETURN versions[0] AS v, edition")
    assert rows == [{"v": RELEASES["5.26"].neo4j, "edition": "community"}]


@pytest.mark.neo4j
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_but_bolt_on_loopback_listens(neo4j_server: Running) -> None:
    port = neo4j_server.address.rpartition(":")[2]
    assert listening(process_of(neo4j_server)) <= {f"127.0.0.1 {port}", f"::ffff:127.0.0.1 {port}"}
    assert len(listening(process_of(neo4j_server))) == 1


@pytest.mark.neo4j
def test_the_password_is_in_its_file_and_nowhere_else(neo4j_server: Running) -> None:
    secret = neo4j_server.password.encode("ascii")
    assert stat.S_IMODE(neo4j_server.password_file.stat().st_mode) == 0o600
    home = neo4j_server.server.home.folder
    holders = [path for path in home.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert holders == [neo4j_server.password_file]
    if sys.platform == "linux":
        assert secret not in Path(f"/proc/{process_of(neo4j_server)}/cmdline").read_bytes()
        assert secret not in Path(f"/proc/{process_of(neo4j_server)}/environ").read_bytes()
    assert neo4j_server.password not in str(neo4j_server.server.status().as_json())


@pytest.mark.neo4j
def test_a_wrong_password_is_refused(neo4j_server: Running) -> None:
    import neo4j

    for given in ("neo4j", "another-password"):
        with (
            neo4j.GraphDatabase.driver(neo4j_server.address, auth=("neo4j", given)) as driver,
            pytest.raises(neo4j.exceptions.AuthError),
        ):
            driver.verify_connectivity()


@pytest.mark.neo4j
def test_it_reports_nothing_home_and_keeps_to_its_memory(neo4j_server: Running) -> None:
    rows = neo4j_server.run(
        "SHOW SETTINGS 'dbms.usage_report.enabled', 'client.allow_telemetry', 'server.memory.pagecache.size' "
        "YIELD name, value RETURN name, value"
    )
    assert {row["name"]: row["value"] for row in rows} == {
        "dbms.usage_report.enabled": "false",
        "client.allow_telemetry": "false",
        "server.memory.pagecache.size": "64.00MiB",
    }
    rows = neo4j_server.run(
        "CALL dbms.queryJmx('java.lang:type=Memory') YIELD attributes "
        "RETURN attributes.HeapMemoryUsage.value.properties.max AS heap"
    )
    assert rows == [{"heap": 512 * 2**20}]


@pytest.mark.neo4j
def test_a_second_start_finds_it_running(neo4j_server: Running) -> None:
    said: list[str] = []
    status = Server(neo4j_server.server.home.folder, report=said.append).start(Settings(bolt_port=1))
    assert (status.state, status.pid) == ("running", process_of(neo4j_server))
    assert said[0] == f"it runs already at {neo4j_server.address}"
    assert "stop it first" in said[1]


@pytest.mark.neo4j
def test_administration_waits_for_a_stop(neo4j_server: Running) -> None:
    with pytest.raises(BusyError, match="the server runs"):
        neo4j_server.server.admin("--version")


@pytest.mark.neo4j
def test_the_session_gives_an_empty_database(empty_neo4j: Running) -> None:
    assert empty_neo4j.run("MATCH (n) RETURN count(n) AS nodes") == [{"nodes": 0}]
    empty_neo4j.run("CREATE CONSTRAINT paper FOR (p:Paper) REQUIRE p.corpusid IS UNIQUE")
    empty_neo4j.run("UNWIND range(1, 100) AS id CREATE (:Paper {corpusid: id})")
    empty_neo4j.run(
        "MATCH (p:Paper) WITH collect(p) AS ps UNWIND range(0, 98) AS i WITH ps[i] AS a, ps[i + 1] AS b "
        "CREATE (a)-[:CITES]->(b)"
    )
    empty_neo4j.run("CALL gds.graph.project('g', 'Paper', 'CITES') YIELD nodeCount")
    rows = empty_neo4j.run("CALL gds.wcc.stats('g') YIELD componentCount")
    assert rows == [{"componentCount": 1}]
    empty_neo4j.empty()
    assert empty_neo4j.run("CALL gds.graph.list() YIELD graphName") == []
    assert empty_neo4j.run("SHOW CONSTRAINTS") == []


def test_a_port_that_is_taken_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        server = Server(tmp_path / "home")
        with pytest.raises(EnvironmentFault, match=f"port {port} is taken by another process on 127"):
            server._with_ports(RELEASES["5.26"], Settings(bolt_port=port))
        # A port of the last time that is taken now gives way to a free one.
        server.home.make()
        server.home.remember(State(RELEASES["5.26"], port))
        chosen = server._with_ports(RELEASES["5.26"], Settings()).bolt_port
        assert chosen not in {None, port}


def test_a_port_of_the_last_time_is_kept(tmp_path: Path) -> None:
    server = Server(tmp_path / "home")
    first = server._with_ports(RELEASES["5.26"], Settings(browser=True))
    server.home.make()
    server.home.remember(first)
    assert server._with_ports(RELEASES["5.26"], Settings(browser=True)) == first


def test_a_port_for_http_is_of_no_use_without_the_browser(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="with the Browser only"):
        Server(tmp_path / "home").start(Settings(http_port=7474))


def test_a_process_that_took_over_the_number_is_never_stopped(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        process = Process.of(other.pid)
        assert process is not None
        server = Server(tmp_path / "home")
        server.home.make()
        server.home.remember(State(RELEASES["5.26"], 7000, None, replace(process, began="before")))
        assert server.status().state == "ended"
        assert not server.stop()
        assert server.status().state == "stopped"
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
