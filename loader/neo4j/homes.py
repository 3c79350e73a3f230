"""The folder of a server: its configuration, its password, and what is remembered of it between commands."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gniah.loader.neo4j.processes import Process
from gniah.loader.neo4j.releases import DEFAULT_RELEASE, RELEASES, Release
from gniah.records.errors import EnvironmentFault, InputError, StoreError
from gniah.records.files import machine_trouble, read_json, whole_file, write_json
from gniah.records.manifests import check_schema

STATE_SCHEMA = "gniah/graph-server/1"
USER = "neo4j"
LOGS = {"neo4j": "neo4j.log", "debug": "debug.log", "console": "console.log"}
_FOLDERS = ("conf", "data", "import", "logs", "run")


def default_home() -> Path:
    """Return the folder of the user's server: GNIAH_NEO4J_HOME, else one in the platform's folder for data."""
    if given := os.environ.get("GNIAH_NEO4J_HOME"):
        return Path(given).absolute()
    if given := os.environ.get("XDG_DATA_HOME"):
        return Path(given).absolute() / "gniah" / "neo4j"
    place = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
    return Path.home() / place / "gniah" / "neo4j"


@dataclass(frozen=True, slots=True)
class State:
    """What is remembered of a server: its release, its ports, and its process while it should be running."""

    release: Release
    bolt_port: int | None = None
    http_port: int | None = None
    process: Process | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as it stands in the file."""
        return {
            "schema": STATE_SCHEMA,
            "release": self.release.name,
            "bolt_port": self.bolt_port,
            "http_port": self.http_port,
            "process": None if self.process is None else self.process.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Memory:
    """How much memory a server may take: Java's heap, and the page cache beside it (such as 512m, 2g)."""

    heap: str = "2g"
    page_cache: str = "512m"


@dataclass(frozen=True, slots=True)
class Home:
    """A server's folder, readable by its owner only."""

    folder: Path

    @property
    def password_file(self) -> Path:
        """Return the file with the password of the user `neo4j`."""
        return self.folder / "password"

    @property
    def state_file(self) -> Path:
        """Return the file with what is remembered."""
        return self.folder / "server.json"

    def log(self, name: str) -> Path:
        """Return a log by its short name: neo4j, debug, or console for what the process itself wrote."""
        return self.folder / "logs" / LOGS[name]

    @property
    def has_database(self) -> bool:
        """Say whether a server was ever started here."""
        return (self.folder / "data" / "databases" / "system").is_dir()

    @property
    def _graph_folders(self) -> list[Path]:
        """Return where Neo4j keeps the database that users see."""
        return [self.folder / "data" / name / "neo4j" for name in ("databases", "transactions")]

    @property
    def has_graph(self) -> bool:
        """Say whether there is a database that users see, be it empty."""
        return any(folder.exists() for folder in self._graph_folders)

    def remove_graph(self) -> None:
        """Remove that database from a stopped server, which makes an empty one at its next start."""
        for folder in self._graph_folders:
            if folder.exists():
                shutil.rmtree(folder)

    @property
    def import_marker(self) -> Path:
        """Return the file that stands here from the beginning of a bulk import until its graph is whole."""
        return self.folder / "import.json"

    def refuse_unfinished(self) -> None:
        """Raise StoreError when a bulk import was stopped midway: some such databases open, and lack citations."""
        if self.import_marker.is_file():
            raise StoreError(
                f"{self.folder}: a bulk import into this database was not finished",
                remedy="give the same gniah-load neo4j import again, or choose another --home",
            )

    def make(self) -> None:
        """Make the folders, for their owner only."""
        with machine_trouble(self.folder):
            fresh = not self.folder.exists()
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if fresh:
                self.folder.chmod(0o700)
            if hasattr(os, "geteuid") and self.folder.stat().st_uid != os.geteuid():
                raise EnvironmentFault(
                    f"{self.folder}: this folder belongs to another user", remedy="choose a folder of your own: --home"
                )
            for name in _FOLDERS:
                (self.folder / name).mkdir(exist_ok=True)

    def state(self) -> State | None:
        """Return what is remembered, or None where no server was ever started. Raises InputError for a bad file."""
        if not self.state_file.is_file():
            return None
        value = read_json(self.state_file)
        check_schema(value.get("schema"), STATE_SCHEMA, str(self.state_file))
        release = RELEASES.get(str(value.get("release")))
        if release is None:
            raise InputError(
                f"{self.state_file}: the release {value.get('release')!r} is unknown; known are {', '.join(RELEASES)}",
                remedy="use the gniah that started this server, or another --home",
            )
        ports = (_port(value.get("bolt_port")), _port(value.get("http_port")))
        return State(release, *ports, Process.from_json(value.get("process")))

    def remember(self, state: State) -> None:
        """Write down what is to be remembered."""
        write_json(self.state_file, state.as_json())

    def forget_process(self) -> None:
        """Write down that no process should be running."""
        state = self.state()
        if state is not None and state.process is not None:
            self.remember(replace(state, process=None))

    def release(self, wanted: str | None) -> Release:
        """Return the release to start: the one whose data stand here, else the wanted one, else the default.

        Raises InputError when another one is wanted than the one whose data stand here.
        """
        state = self.state()
        if state is None or not self.has_database:
            return RELEASES[wanted or DEFAULT_RELEASE]
        if wanted is not None and wanted != state.release.name:
            raise InputError(
                f"{self.folder}: the data here are of release {state.release.name}, not {wanted}",
                remedy=f"leave --release out, or give release {wanted} another folder with --home",
            )
        return state.release

    def password(self) -> str:
        """Return the server's password. Raises InputError when its file is missing or empty."""
        with machine_trouble(self.password_file):
            if self.password_file.is_file():
                text = self.password_file.read_text(encoding="utf-8").strip()
                if text:
                    return text
        raise InputError(
            f"{self.password_file}: the server's password is not here",
            remedy="put it back (the file holds the password and nothing else), or start anew in another --home",
        )

    def secure_password(self, report: Callable[[str], None]) -> None:
        """Make a password where there is none yet, and see that nobody else can read it.

        Raises InputError when a database stands here whose password is gone.
        """
        if not self.password_file.exists() and not self.has_database:
            with whole_file(self.password_file) as stream:
                os.fchmod(stream.fileno(), 0o600)
                stream.write(secrets.token_urlsafe(24).replace("-", "x").encode("ascii") + b"\n")
        self.password()
        with machine_trouble(self.password_file):
            if stat.S_IMODE(self.password_file.stat().st_mode) & 0o077:
                self.password_file.chmod(0o600)
                report(f"warning: {self.password_file} could be read by others; now only you can")

    def configure(self, bolt_port: int, http_port: int | None, plugins: Path, memory: Memory) -> None:
        """Write the server's configuration: loopback only, no reports home, GDS allowed to do its work."""
        settings = {
            "server.default_listen_address": "127.0.0.1",
            "server.default_advertised_address": "127.0.0.1",
            "server.bolt.listen_address": f"127.0.0.1:{bolt_port}",
            "server.bolt.advertised_address": f"127.0.0.1:{bolt_port}",
            "server.http.enabled": "false" if http_port is None else "true",
            "server.https.enabled": "false",
            "server.directories.plugins": str(plugins),
            "dbms.security.auth_enabled": "true",
            "dbms.security.procedures.unrestricted": "gds.*",
            "dbms.usage_report.enabled": "false",
            "client.allow_telemetry": "false",
            "server.memory.heap.max_size": memory.heap,
            "server.memory.pagecache.size": memory.page_cache,
        }
        if http_port is not None:
            settings["server.http.listen_address"] = f"127.0.0.1:{http_port}"
            settings["server.http.advertised_address"] = f"127.0.0.1:{http_port}"
        lines = ["# Written by gniah at each start; changes here are lost."]
        lines += [f"{name}={value}" for name, value in settings.items()]
        with whole_file(self.folder / "conf" / "neo4j.conf") as stream:
            stream.write("\n".join([*lines, ""]).encode("utf-8"))

    def last_words(self) -> str:
        """Return the line of the logs that says best why a server ended, or ""."""
        fallback = ""
        for name in ("neo4j", "console"):
            with contextlib.suppress(OSError):
                lines = self.log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-200:]
                causes = [line for line in lines if "Caused by:" in line or " ERROR " in line or "Error: " in line]
                if causes:
                    return causes[-1].strip()[:400]
                fallback = next((line for line in reversed(lines) if line.strip()), fallback)
        return fallback.strip()[:400]


def _port(value: object) -> int | None:
    return value if isinstance(value, int) else None
