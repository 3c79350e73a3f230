"""A real Neo4j with Graph Data Science, started once a session and shared by every test that asks for it.

Mark such tests with `pytest.mark.neo4j`. Without Java or Maven they are skipped, under CI they fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from gniah.loader.neo4j.homes import Memory
from gniah.loader.neo4j.server import Server, Settings
from gniah.records.errors import BusyError, MissingDependency

SMALL = Memory(heap="512m", page_cache="64m")


@dataclass(frozen=True)
class Running:
    """A server that runs: where it answers, as whom, and the file with the password."""

    server: Server
    address: str
    user: str
    password_file: Path

    @property
    def password(self) -> str:
        return self.server.home.password()

    def driver(self) -> Any:
        """Return a driver, to be used as a context manager."""
        import neo4j

        return neo4j.GraphDatabase.driver(self.address, auth=(self.user, self.password))

    def run(self, text: str, **parameters: object) -> list[dict[str, Any]]:
        """Run one statement and return its rows."""
        with self.driver() as driver, driver.session() as session:
            return [dict(record) for record in session.run(text, parameters)]

    def restart(self) -> None:
        """Start it again after its process was killed; it answers at the same address."""
        status = self.server.start(Settings(memory=SMALL, patience=300.0))
        assert status.address == self.address

    def empty(self) -> None:
        """Remove all nodes, constraints, indexes and projected graphs."""
        for row in self.run("CALL gds.graph.list() YIELD graphName"):
            self.run("CALL gds.graph.drop($name) YIELD graphName", name=row["graphName"])
        self.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS")
        for row in self.run("SHOW CONSTRAINTS YIELD name"):
            self.run(f"DROP CONSTRAINT `{row['name']}`")
        for row in self.run("SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP'"):
            self.run(f"DROP INDEX `{row['name']}`")


def not_here(reason: object) -> NoReturn:
    """Skip a test that needs something which is not installed; a build must not pass without it."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (and a build must not pass without it)", pytrace=False)
    pytest.skip(str(reason))


def start(home: Path, **settings: Any) -> Running:
    """Start a server that takes little memory, or skip the test when what it needs is not installed."""
    server = Server(home)
    try:
        status = server.start(Settings(**{"memory": SMALL, "patience": 300.0, **settings}))
    except MissingDependency as error:
        not_here(f"no Neo4j: {error.message}")
    except BusyError:  # another session fetches the jars at this moment
        not_here("no Neo4j: its jars are being fetched by another process")
    assert status.address is not None
    return Running(server, status.address, "neo4j", server.home.password_file)


_SHARED = pytest.StashKey[Running]()


@pytest.fixture(scope="session")
def neo4j_server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Running:
    """Return the server of this session: Neo4j 5.26 with GDS, in a folder whose name has a space and an accent."""
    if _SHARED not in pytestconfig.stash:
        running = start(tmp_path_factory.mktemp("neo4j") / "a séparé home")
        pytestconfig.stash[_SHARED] = running
        pytestconfig.add_cleanup(running.server.stop)
    return pytestconfig.stash[_SHARED]


@pytest.fixture
def empty_neo4j(neo4j_server: Running) -> Iterator[Running]:
    """Return the session's server with nothing in it, and leave nothing in it."""
    neo4j_server.empty()
    yield neo4j_server
    neo4j_server.empty()
