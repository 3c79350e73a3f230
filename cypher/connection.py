"""A connection to a Neo4j server: statements out, tables back, and the driver's exceptions in words of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gniah.cypher.addresses import (
    PASSWORD_FILE_VARIABLE,
    PASSWORD_VARIABLE,
    USER_VARIABLE,
    Credentials,
    ServerAddress,
)
from gniah.cypher.store import Table
from gniah.records.errors import GniahError, StoreError

if TYPE_CHECKING:
    import neo4j

# `CALL (x) { … }`, which our statements use, came with 5.23.
OLDEST = (5, 23)
_CONNECTION_SECONDS = 15.0
_RETRY_SECONDS = 30.0
_FETCHED = 5_000
_MEMORY = re.compile(r"OutOfMemory|MemoryPool|StackOverFlow", re.IGNORECASE)


class Connection:
    """One driver for one database. Open it in the process that uses it."""

    def __init__(self, address: ServerAddress, credentials: Credentials) -> None:
        """Connect, and ask for the server's version. Raises StoreError that says what is wrong."""
        import neo4j

        self.address = address
        self._module = neo4j
        self._user = credentials.user
        with self._trouble():
            self._driver: neo4j.Driver = neo4j.GraphDatabase.driver(
                address.uri,
                auth=(credentials.user, credentials.password),
                connection_timeout=_CONNECTION_SECONDS,
                connection_acquisition_timeout=2 * _CONNECTION_SECONDS,
                max_transaction_retry_time=_RETRY_SECONDS,
                telemetry_disabled=True,
                notifications_min_severity="OFF",
                user_agent="gniah",
            )
        try:
            with self._trouble():
                self.version = server_version(self._driver.get_server_info().agent, str(address))
                self.run("RETURN 1")
        except BaseException:
            self._driver.close()
            raise

    def run(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a reading statement, and return all of its rows. The server refuses one that writes."""
        return self._run(text, parameters, self._module.READ_ACCESS)

    def change(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run one statement that may write, in a transaction that is tried again when the server asks for it."""

        def work(transaction: neo4j.ManagedTransaction) -> Table:
            return _table(transaction.run(text, dict(parameters or {})))

        with self._trouble(), self._session(self._module.WRITE_ACCESS) as session:
            return session.execute_write(work)

    def transact(self, work: Callable[[neo4j.ManagedTransaction], Any]) -> Any:
        """Do some work in one transaction that is tried again when the server asks for it: make it idempotent."""
        with self._trouble(), self._session(self._module.WRITE_ACCESS) as session:
            return session.execute_write(work)

    def command(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a statement outside any transaction of ours: schema, `IN TRANSACTIONS`, graph projections."""
        return self._run(text, parameters, self._module.WRITE_ACCESS)

    def stream(self, text: str, parameters: Mapping[str, Any] | None = None) -> Iterator[list[Any]]:
        """Yield the rows of a reading statement as they come, unconverted: for answers of plain numbers."""
        with self._trouble(), self._session(self._module.READ_ACCESS) as session:
            for record in session.run(text, dict(parameters or {})):
                yield record.values()

    def close(self) -> None:
        """Let go of the driver."""
        self._driver.close()

    def _run(self, text: str, parameters: Mapping[str, Any] | None, access: str) -> Table:
        with self._trouble(), self._session(access) as session:
            return _table(session.run(text, dict(parameters or {})))

    def _session(self, access: str) -> neo4j.Session:
        return self._driver.session(database=self.address.database, default_access_mode=access, fetch_size=_FETCHED)

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        errors = self._module.exceptions
        try:
            yield
        except (errors.DriverError, errors.Neo4jError) as error:
            raise self._explained(error) from None
        except (OSError, ValueError, OverflowError) as error:  # the driver lets some through
            raise StoreError(f"{self.address}: {_first_line(error)}") from None

    def _explained(self, error: Exception) -> GniahError:
        """Return what an exception of the driver means to the user, and what mends it."""
        errors = self._module.exceptions
        code = getattr(error, "code", None) or ""
        if isinstance(error, errors.AuthError):
            return StoreError(
                f"{self.address}: Neo4j does not take this password for the user {self._user}",
                remedy=f"correct {PASSWORD_VARIABLE} or {PASSWORD_FILE_VARIABLE}, or {USER_VARIABLE}",
            )
        if isinstance(error, errors.ServiceUnavailable | errors.SessionExpired):
            return StoreError(
                f"{self.address}: no Neo4j answers over Bolt here: {_first_line(error)}",
                remedy="start it (gniah-load neo4j start), or correct the address; then run the same command again",
            )
        if code.endswith("DatabaseNotFound"):
            return StoreError(
                f"{self.address}: there is no such database", remedy="leave the name out to use the default one"
            )
        if code.endswith(("ProcedureNotFound", "ProcedureRegistrationFailed")) or "Unknown function 'gds" in str(error):
            return StoreError(
                f"{self.address}: this server lacks a procedure: {_first_line(error)}",
                remedy="install Graph Data Science there, or use gniah-load neo4j start",
            )
        if _MEMORY.search(code) or _MEMORY.search(str(error)):
            return StoreError(
                f"{self.address}: Neo4j ran out of memory: {_first_line(error)}",
                remedy="start it with more: gniah-load neo4j start --heap 4g",
            )
        return StoreError(f"{self.address}: {_first_line(error)}")


@contextmanager
def connect(address: ServerAddress, credentials: Credentials) -> Iterator[Connection]:
    """Connect for the length of a block."""
    connection = Connection(address, credentials)
    try:
        yield connection
    finally:
        connection.close()


def server_version(agent: str, address: str) -> str:
    """Return the version in a server's name for itself, such as `Neo4j/5.26.30`.

    Raises StoreError for a product that is not Neo4j, or one that is too old.
    """
    found = re.fullmatch(r"Neo4j/((\d+)\.(\d+)\S*)", agent)
    if found is None:
        raise StoreError(f"{address}: {agent!r} answers here, and gniah knows Neo4j only")
    if (int(found[2]), int(found[3])) < OLDEST:
        raise StoreError(
            f"{address}: Neo4j {found[1]} is too old; {OLDEST[0]}.{OLDEST[1]} or newer is needed",
            remedy="upgrade it, or use gniah-load neo4j start",
        )
    return found[1]


def _table(result: neo4j.Result) -> Table:
    columns = tuple(result.keys())
    return Table(columns, tuple(tuple(plain(value) for value in record.values()) for record in result))


def plain(value: Any) -> Any:
    """Return a value of the driver as plain data: dates as Python's, nodes and relationships as their properties."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if hasattr(value, "to_native"):
        return value.to_native()
    if hasattr(value, "items"):
        return {name: plain(item) for name, item in value.items()}
    if hasattr(value, "nodes"):
        return [plain(node) for node in value.nodes]
    return str(value)


def _first_line(error: BaseException) -> str:
    text = getattr(error, "message", None) or str(error)
    # What the driver adds of addresses it has resolved says nothing more.
    text = str(text).partition(" (resolved to")[0].split("\n")[0]
    return " ".join(text.split())[:400] or type(error).__name__
