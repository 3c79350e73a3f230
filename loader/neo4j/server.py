"""A Neo4j server with Graph Data Science as a child process of its own: start, status, stop."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gniah.loader.neo4j.administration import OPENED, Administration, environment, told_fault
from gniah.loader.neo4j.homes import USER, Home, Memory, State
from gniah.loader.neo4j.jars import fetch_jars
from gniah.loader.neo4j.java import find_java
from gniah.loader.neo4j.processes import Process
from gniah.loader.neo4j.releases import Release
from gniah.records.errors import BusyError, EnvironmentFault, MissingDependency, StoreError, UsageFault
from gniah.records.files import locked_folder, machine_trouble

if TYPE_CHECKING:
    import neo4j

START_PATIENCE = 180.0
STOP_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What a start can be told. None stands for: as the last time, else a free port or the default release."""

    release: str | None = None
    bolt_port: int | None = None
    http_port: int | None = None
    browser: bool = False
    memory: Memory = field(default_factory=Memory)
    java: Path | None = None
    patience: float = START_PATIENCE


@dataclass(frozen=True, slots=True)
class Status:
    """How a server is: `running`, `no-answer` (it starts, hangs, or refuses the password), `stopped`, or `ended`.

    `ended` is a process that is gone without having been stopped.
    """

    state: str
    home: Path
    release: Release | None = None
    address: str | None = None
    browser: str | None = None
    pid: int | None = None
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it for programs. There is no secret in it."""
        return {
            "state": self.state,
            "home": str(self.home),
            "address": self.address,
            "user": USER,
            "password_file": str(Home(self.home).password_file),
            "browser": self.browser,
            "release": self.release and self.release.name,
            "neo4j": self.release and self.release.neo4j,
            "gds": self.release and self.release.gds,
            "pid": self.pid,
            "reason": self.reason,
        }


def _ignore(_: str) -> None:
    """Take what nobody wants to hear."""


class Server:
    """The server of one folder. It outlives the program that started it, until it is stopped."""

    def __init__(
        self, home: Path, *, report: Callable[[str], None] = _ignore, advance: Callable[[], None] = lambda: None
    ) -> None:
        if os.name != "posix":
            raise EnvironmentFault(
                "servers are started on Linux and macOS only", remedy="use docker/compose.yaml, or any other Neo4j"
            )
        self.home = Home(home.resolve())  # Neo4j takes no path with .. in it
        self._report = report
        self._advance = advance

    def status(self) -> Status:
        """Say how the server is. Changes nothing."""
        state = self.home.state()
        if state is None or state.process is None:
            half = "a bulk import into its database was begun and is not finished"
            reason = half if self.home.import_marker.is_file() else None
            return Status("stopped", self.home.folder, None if state is None else state.release, reason=reason)
        if not state.process.runs():
            return Status(
                "ended",
                self.home.folder,
                state.release,
                reason=f"process {state.process.pid} is gone, and nobody stopped it",
            )
        name, reason = "running", None
        try:
            self._ask(state, seconds=5.0)
        except StoreError as error:
            name, reason = "no-answer", error.message
        return Status(
            name,
            self.home.folder,
            state.release,
            _address(state),
            None if state.http_port is None else f"http://127.0.0.1:{state.http_port}/browser/",
            state.process.pid,
            reason,
        )

    def start(self, settings: Settings = Settings()) -> Status:
        """Start it, unless it runs already, and return once it answers over Bolt with GDS at work.

        Raises MissingDependency without Java, Maven (the first time) or the driver; EnvironmentFault for a port that
        is taken, a full disk or too little memory; StoreError when it does not come up; BusyError while another
        process starts or stops it.
        """
        _check_ports(settings)
        _driver_module()
        self.home.make()
        with locked_folder(self.home.folder):
            status = self.status()
            if status.pid is not None:
                return self._running_already(status, settings)
            self.home.refuse_unfinished()
            return self._launch(self._tool(settings.release, settings.java), settings)

    def stop(self, patience: float = STOP_PATIENCE) -> bool:
        """Stop it; return False when it did not run. Kills it, with a report, when it does not end in time."""
        state = self.home.state()
        if state is None or state.process is None:
            return False
        with locked_folder(self.home.folder):
            return self._stop(patience)

    @contextlib.contextmanager
    def held(self, settings: Settings = Settings()) -> Iterator[Held]:
        """Hold the folder of the stopped server for work on its data, its release being that of `settings`.

        Nobody else starts it meanwhile. If the work leaves it running, it is stopped. Raises BusyError while it runs,
        MissingDependency as a start does.
        """
        _check_ports(settings)
        _driver_module()
        self.home.make()
        with locked_folder(self.home.folder):
            if self.status().pid is not None:
                raise BusyError(f"{self.home.folder}: the server runs", remedy="gniah-load neo4j stop")
            tool = self._tool(settings.release, settings.java)
            if not (self.home.folder / "conf" / "neo4j.conf").is_file():
                self.home.configure(0, None, tool.jars.plugins, Memory())
            try:
                yield Held(self, tool, settings)
            finally:
                self._stop(STOP_PATIENCE)

    def admin(self, *words: str, java: Path | None = None) -> str:
        """Run a command of `neo4j-admin`, such as `database dump`, on the stopped server's data.

        Returns what it wrote. Raises StoreError when it fails, BusyError while the server runs.
        """
        with self.held(Settings(java=java)) as held:
            return held.tool.run(*words)

    def _tool(self, release: str | None, java: Path | None) -> Administration:
        """Return Neo4j's tool with the Java and the jars that a start has too."""
        chosen = self.home.release(release)
        program = find_java(chosen.java, java)
        jars = fetch_jars(chosen, program, report=self._report, advance=self._advance)
        return Administration(self.home, chosen, program, jars)

    def _stop(self, patience: float) -> bool:
        state = self.home.state()
        if state is None or state.process is None:
            return False
        ran = state.process.runs()
        if ran:
            self._end(state.process, patience)
        self.home.forget_process()
        return ran

    def _running_already(self, status: Status, settings: Settings) -> Status:
        if status.state == "no-answer":
            raise BusyError(
                f"{self.home.folder}: process {status.pid} runs and does not answer: {status.reason}",
                remedy="wait if it was just started, else gniah-load neo4j stop, then start it again",
            )
        self._report(f"it runs already at {status.address}")
        if settings != Settings():
            self._report("it keeps the settings it was started with; stop it first to change them")
        return status

    def _with_ports(self, release: Release, settings: Settings) -> State:
        """Return the state to start with: ports as given, else those of the last time if they are free, else others."""
        before = self.home.state() or State(release)
        bolt = _choose_port(settings.bolt_port, before.bolt_port, "--bolt-port")
        http = None
        if settings.browser:
            http = _choose_port(settings.http_port, before.http_port, "--http-port")
        return State(release, bolt, http)

    def _launch(self, tool: Administration, settings: Settings) -> Status:
        folder = self.home.folder
        self.home.secure_password(self._report)
        state = self._with_ports(tool.release, settings)
        self.home.configure(state.bolt_port or 0, state.http_port, tool.jars.plugins, settings.memory)
        if not self.home.has_database:
            # The tool reads arguments from a file that is named with @, so the password is on no command line.
            tool.run("dbms", "set-initial-password", f"@{self.home.password_file}")
        words = [
            *(str(tool.java.program), f"-Xmx{settings.memory.heap}", *OPENED, "-Dfile.encoding=UTF-8"),
            *("-cp", tool.jars.class_path(browser=settings.browser), state.release.main_class),
            *(f"--home-dir={folder}", f"--config-dir={folder / 'conf'}"),
        ]
        self.home.log("neo4j").unlink(missing_ok=True)
        with machine_trouble(folder), self.home.log("console").open("wb") as console:
            child = subprocess.Popen(  # noqa: S603  (as above)
                words,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env=environment(self.home),
                cwd=folder,
                start_new_session=True,
                umask=0o077,
            )
        try:
            process = Process.of(child.pid)
            if process is None:
                self._tell_end(state)
            state = replace(state, process=process)
            self.home.remember(state)
            self._report(f"Neo4j {state.release.neo4j} starts as process {child.pid}; this takes about 20 s")
            self._await(state, process, settings.patience)
            return self.status()
        except BaseException:
            child.kill()
            child.wait()
            self.home.forget_process()
            raise

    def _await(self, state: State, process: Process, patience: float) -> None:
        limit = time.monotonic() + patience
        while process.runs():
            try:
                self._ask(state, seconds=min(30.0, patience))
            except _NotYet as reason:
                if time.monotonic() > limit:
                    raise told_fault(
                        "",
                        self.home,
                        f"Neo4j did not answer within {patience:.0f} s: {reason.message}",
                        remedy=f"give it longer with --wait; its log is {self.home.log('neo4j')}",
                    ) from None
                time.sleep(0.5)
            else:
                return
        self._tell_end(state)

    def _tell_end(self, state: State) -> NoReturn:
        """Say why the server ended while it started."""
        words = self.home.last_words()
        logs = f"gniah-load neo4j logs --home {self.home.folder}"
        if re.search(r"address already in use|failed to bind", words, re.IGNORECASE):
            raise EnvironmentFault(
                f"a port that Neo4j was to listen on was taken meanwhile ({state.bolt_port}, {state.http_port})",
                remedy="start it again, with other ports if need be: --bolt-port, --http-port",
            )
        raise told_fault(words, self.home, f"Neo4j ended while it started: {words or 'it said no reason'}", remedy=logs)

    def _end(self, process: Process, patience: float) -> None:
        if not process.is_ours():
            raise EnvironmentFault(
                f"process {process.pid} belongs to another user", remedy="let the user who started it stop it"
            )
        if not process.end(patience):
            self._report(f"it did not end within {patience:.0f} s and was killed; Neo4j recovers at the next start")

    def _ask(self, state: State, seconds: float) -> None:
        """Ask the server for the version of GDS. Raises StoreError when it gives none, _NotYet when it may later."""
        module = _driver_module()
        try:
            with _driver(_address(state), self.home.password(), seconds) as driver, driver.session() as session:
                record = session.run("RETURN gds.version() AS version").single(strict=True)
        except module.exceptions.AuthError:
            raise StoreError(
                f"the server does not take the password in {self.home.password_file}",
                remedy="if it was changed inside Neo4j, write the new one into that file",
            ) from None
        except (module.exceptions.DriverError, module.exceptions.Neo4jError) as error:
            words = str(error).partition(" (resolved to")[0].partition("\n")[0]
            raise _NotYet(words or type(error).__name__) from None
        if record["version"] != state.release.gds:
            raise StoreError(f"the server has Graph Data Science {record['version']}, not {state.release.gds}")


@dataclass(frozen=True, slots=True)
class Held:
    """The stopped server of a folder that is held: Neo4j's tool for it, and starts in between."""

    server: Server
    tool: Administration
    settings: Settings

    @contextlib.contextmanager
    def running(self) -> Iterator[Status]:
        """Let it run for the length of a block. Raises what a start raises."""
        status = self.server._launch(self.tool, self.settings)
        try:
            yield status
        finally:
            self.server._stop(STOP_PATIENCE)


class _NotYet(StoreError):
    """The server does not answer, and may do so later."""


def _check_ports(settings: Settings) -> None:
    if settings.http_port is not None and not settings.browser:
        raise UsageFault("a port for HTTP is of use with the Browser only", remedy="add --browser")


def _driver_module() -> Any:
    try:
        import neo4j
    except ImportError:
        raise MissingDependency(
            "Neo4j's driver is not installed", remedy="pip install --force-reinstall gniah"
        ) from None
    return neo4j


@contextlib.contextmanager
def _driver(address: str, password: str, seconds: float) -> Iterator[neo4j.Driver]:
    module = _driver_module()
    driver = module.GraphDatabase.driver(
        address,
        auth=(USER, password),
        connection_timeout=seconds,
        connection_acquisition_timeout=seconds,
        telemetry_disabled=True,
    )
    try:
        yield driver
    finally:
        driver.close()


def _address(state: State) -> str:
    return f"bolt://127.0.0.1:{state.bolt_port}"


def _choose_port(given: int | None, before: int | None, option: str) -> int:
    """Return a port of this machine's loopback address that nobody listens on.

    Raises EnvironmentFault when the one that was given is taken or not allowed.
    """
    if given is not None:
        try:
            return _free_port(given)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            raise EnvironmentFault(
                f"port {given} is {'taken by another process' if taken else 'not allowed'} on 127.0.0.1",
                remedy=f"give another {option}, or leave it out to have a free one chosen",
            ) from None
    if before is not None:
        with contextlib.suppress(OSError):
            return _free_port(before)
    return _free_port(0)


def _free_port(port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])
