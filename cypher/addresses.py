"""Addresses of graph stores, and the credentials for those that ask for some."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gniah.records.errors import InputError, UsageFault
from gniah.records.files import machine_trouble

SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
USER_VARIABLE = "GNIAH_NEO4J_USER"
PASSWORD_VARIABLE = "GNIAH_NEO4J_PASSWORD"  # noqa: S105  (the name of a variable)
PASSWORD_FILE_VARIABLE = "GNIAH_NEO4J_PASSWORD_FILE"  # noqa: S105
_CREDENTIALS = f"set {PASSWORD_VARIABLE}, or {PASSWORD_FILE_VARIABLE} to a file that holds it"
_DATABASE = re.compile(r"[A-Za-z][A-Za-z0-9.-]{2,62}")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a Neo4j server answers over Bolt, and which of its databases is meant (None: the user's home database)."""

    uri: str
    database: str | None

    def __str__(self) -> str:
        """Return it as it is written: `neo4j://host:7687/database`."""
        return self.uri if self.database is None else f"{self.uri}/{self.database}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, which no `repr` shows."""

    user: str
    password: str = field(repr=False)


def parse_address(address: str | Path) -> Path | ServerAddress:
    """Return the folder or the server that an address names.

    Anything with `://` names a server: `bolt` and `neo4j`, each with `+s` or `+ssc` for TLS, then host, port (7687 by
    default) and perhaps a database. Raises UsageFault for another scheme, for credentials in the address, and
    for parts that mean nothing here; the message does not repeat a password.
    """
    if isinstance(address, Path) or "://" not in address:
        return Path(address)
    scheme = address.partition("://")[0]
    if scheme.lower() not in SCHEMES:
        raise UsageFault(
            f"{scheme}:// is no kind of store", remedy="give a folder, or bolt://HOST:PORT or neo4j://HOST:PORT"
        )
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise UsageFault(f"{scheme}://: host or port cannot be read", remedy="as in bolt://127.0.0.1:7687") from None
    if "@" in parts.netloc:
        raise UsageFault(
            f"{scheme}://: user and password do not belong into an address",
            remedy=f"set {USER_VARIABLE}; {_CREDENTIALS}",
        )
    if not parts.hostname or parts.query or parts.fragment:
        raise UsageFault(f"{address}: not an address of a server", remedy="as in bolt://127.0.0.1:7687")
    database = parts.path.strip("/") or None
    if database is not None and not _DATABASE.fullmatch(database):
        raise UsageFault(
            f"{address}: {database!r} is no name of a database", remedy="as in bolt://127.0.0.1:7687/neo4j"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return ServerAddress(f"{scheme.lower()}://{host}:{port or 7687}", database)


def credentials() -> Credentials:
    """Return user and password from the environment or from the file that it names.

    Raises UsageFault without a password, InputError for a file that holds none.
    """
    user = os.environ.get(USER_VARIABLE) or "neo4j"
    if password := os.environ.get(PASSWORD_VARIABLE):
        return Credentials(user, password)
    place = os.environ.get(PASSWORD_FILE_VARIABLE)
    if not place:
        raise UsageFault("a Neo4j store needs a password", remedy=_CREDENTIALS)
    path = Path(place)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file with a password", remedy=f"correct {PASSWORD_FILE_VARIABLE}")
    with machine_trouble(path):
        password = path.read_text(encoding="utf-8", errors="replace").strip("\r\n")
    if not password:
        raise InputError(f"{path}: this file holds no password", remedy=_CREDENTIALS)
    return Credentials(user, password)
