"""Neo4j's own tool `neo4j-admin`, run on the data of a server that is stopped."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from gniah.loader.neo4j.homes import Home
from gniah.loader.neo4j.jars import Jars
from gniah.loader.neo4j.java import Java
from gniah.loader.neo4j.releases import Release
from gniah.records.errors import BusyError, EnvironmentFault, GniahError, StoreError

# Doors into Java's own packages that the server and the tool need on newer Javas.
OPENED = tuple(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.nio", "java.io", "sun.nio.ch"))
_FULL = re.compile(r"no space left|disk quota", re.IGNORECASE)
_MEMORY = re.compile(
    r"OutOfMemory|reserve enough space|insufficient memory|(?:too small|invalid|than the) maximum heap"
    r"|maximum representable size|fatal error has been detected by the Java",
    re.IGNORECASE,
)
# Bytes that are as good as none, and seconds without any more.
_LEAST_SPACE = 1 << 20
_PATIENCE_WITHOUT_SPACE = 15.0
_LOCKED = re.compile(r"lock file|already locked|FileLockException|store_lock|database is in use", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Administration:
    """The tool for one home: of which release, which Java runs it, and with which jars."""

    home: Home
    release: Release
    java: Java
    jars: Jars

    def run(self, *words: str, heap: str | None = None, folder: Path | None = None) -> str:
        """Run a command, in `folder` if one is given, and return what it wrote.

        `heap` is Java's, such as 2g. Raises EnvironmentFault for a full disk or too little memory, BusyError when
        another Neo4j uses the data, and StoreError for anything else; the message is the tool's last words.
        """
        limit = [] if heap is None else [f"-Xmx{heap}"]
        process = subprocess.Popen(  # noqa: S603  (the Java that was found, with jars that were checked)
            [
                *(str(self.java.program), *limit, *OPENED, "-Dfile.encoding=UTF-8", "-cp", self.jars.class_path()),
                *("org.neo4j.cli.AdminTool", *words),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(self.home),
            cwd=folder or self.home.folder,
            umask=0o077,
        )
        said = _listen(process, self.home).decode("utf-8", "replace").strip()
        if self.home.password_file.is_file():
            said = said.replace(self.home.password(), "***")
        if process.returncode != 0:
            raise told_fault(said, self.home, f"neo4j-admin {' '.join(words[:2])} failed: {_last_words(said)}")
        return said


def _listen(process: subprocess.Popen[bytes], home: Home) -> bytes:
    """Return what a process wrote, once it has ended.

    One without space on the disk for a while is killed: Neo4j's importer tries forever to write the rest of a page.
    """
    full_since = None
    try:
        while True:
            try:
                return process.communicate(timeout=1.0)[0]
            except subprocess.TimeoutExpired:
                if not is_full(home.folder):
                    full_since = None
                elif full_since is None:
                    full_since = time.monotonic()
                elif time.monotonic() - full_since > _PATIENCE_WITHOUT_SPACE:
                    raise told_fault("no space left", home, "") from None
    except BaseException:
        process.kill()
        process.communicate()
        raise


def is_full(folder: Path) -> bool:
    """Say whether the disk of a folder has no space left for the user of this process."""
    disk = os.statvfs(folder)
    blocks = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    return blocks * disk.f_frsize < _LEAST_SPACE


def environment(home: Home) -> dict[str, str]:
    """Return the environment of a process that works on a home."""
    folder = home.folder
    return {**os.environ, "LC_ALL": "C.UTF-8", "NEO4J_HOME": str(folder), "NEO4J_CONF": str(folder / "conf")}


def told_fault(said: str, home: Home, message: str, remedy: str | None = None) -> GniahError:
    """Return the error for what Neo4j said when it ended: the machine's fault, another's, or else a StoreError."""
    if _FULL.search(said) or is_full(home.folder):
        return EnvironmentFault(f"{home.folder}: the disk is full", remedy="free some space, or another --home")
    if _MEMORY.search(said):
        return EnvironmentFault(
            f"Neo4j got too little memory: {_last_words(said)}",
            remedy="other --heap or --page-cache, and --off-heap for an import",
        )
    if _LOCKED.search(said):
        return BusyError(
            f"{home.folder}: another Neo4j that gniah did not start, or a command that was killed, uses these data",
            remedy="wait for it to end or stop it where it was started, or choose another --home",
        )
    return StoreError(message, remedy=remedy)


def _last_words(said: str) -> str:
    """Return the innermost cause that the tool named, else the end of what it wrote."""
    causes = re.findall(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?(.+)$", said, re.MULTILINE)
    return (causes[-1] if causes else said[-600:]).strip()[:600]
