"""The server's jars: fetched once by Maven into a cache of the user, and checked by hash before each later start."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from gniah.loader.neo4j.java import Java
from gniah.loader.neo4j.releases import Release
from gniah.records.errors import EnvironmentFault, InputError, MissingDependency
from gniah.records.files import locked_place, machine_trouble, read_json, sha256_file, whole_folder, write_json
from gniah.records.manifests import check_schema

JARS_SCHEMA = "gniah/server-jars/1"
LOCK_NAME = "jars.json"
_FOLDERS = ("lib", "plugins", "browser")
# A repository that does not answer is given up after a while; older Mavens know the first, newer ones the others.
_PATIENCE = (
    "-Dmaven.wagon.rto=60000",
    "-Daether.connector.connectTimeout=20000",
    "-Daether.connector.requestTimeout=60000",
)
_NETWORK = re.compile(
    r"unknown host|unknownhost|could not transfer|connection refused|connect timed out|network is unreachable"
    r"|no route to host|read timed out|temporary failure in name resolution|offline mode|timeout",
    re.IGNORECASE,
)
_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Jars:
    """A folder of jars that were checked: `lib` for the server, `plugins` for GDS, `browser`."""

    folder: Path

    @property
    def plugins(self) -> Path:
        """Return the folder that the server looks for procedures in."""
        return self.folder / "plugins"

    def class_path(self, *, browser: bool = False) -> str:
        """Return Java's class path. GDS stands on it too, since its extensions are found there only."""
        folders = _FOLDERS if browser else _FOLDERS[:2]
        return os.pathsep.join(str(self.folder / name / "*") for name in folders)


def cache_folder() -> Path:
    """Return the user's folder for what can be fetched again: GNIAH_CACHE, else gniah in the platform's cache."""
    if given := os.environ.get("GNIAH_CACHE"):
        return Path(given).absolute()
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given).absolute() / "gniah"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "gniah"


def fetch_jars(
    release: Release, java: Java, *, report: Callable[[str], None], advance: Callable[[], None] = lambda: None
) -> Jars:
    """Return the jars of a release, from the cache when they are there as they were, else from Maven.

    `advance` is called for each file that Maven downloads. The hashes of the first time stay what later fetches are
    held to. Raises MissingDependency when Maven is missing or reaches no repository, InputError when it gives other
    bytes than the first time, EnvironmentFault when the disk is full.
    """
    folder = cache_folder() / "neo4j" / release.folder
    if os.pathsep in str(folder):
        raise EnvironmentFault(
            f"{folder}: Java takes {os.pathsep!r} for the end of a path", remedy="set GNIAH_CACHE to another folder"
        )
    wrong = _what_is_wrong(folder, release)
    if wrong is None:
        return Jars(folder)
    with locked_place(folder):
        wrong = _what_is_wrong(folder, release)  # another process may have fetched them by now
        if wrong is None:
            return Jars(folder)
        if wrong:
            report(f"{wrong}; all jars are fetched again")
        known = _known_hashes(folder, release)
        report(f"fetching Neo4j {release.neo4j} with Graph Data Science {release.gds} by Maven into {folder}")
        with whole_folder(folder) as part:
            _run_maven(release, part, java, folder.with_name(f"{folder.name}.log"), advance)
            found = _hashes(part)
            _hold_to(known, found, folder)
            write_json(part / LOCK_NAME, _lock(release, found))
    return Jars(folder)


def _lock(release: Release, hashes: Mapping[str, str]) -> dict[str, object]:
    return {
        "schema": JARS_SCHEMA,
        "release": release.name,
        "pom": sha256(release.pom).hexdigest(),
        "jars": dict(hashes),
    }


def _hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in the folders of jars, by its path below `folder`."""
    with machine_trouble(folder):
        files = sorted(path for name in _FOLDERS for path in (folder / name).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in files}


def _known_hashes(folder: Path, release: Release) -> dict[str, str]:
    """Return the hashes that were written down for this very release, or nothing."""
    path = folder / LOCK_NAME
    if not path.is_file():
        return {}
    try:
        lock = read_json(path)
        check_schema(lock.get("schema"), JARS_SCHEMA, str(path))
    except InputError:
        return {}
    jars = lock.get("jars")
    same = lock.get("pom") == sha256(release.pom).hexdigest() and isinstance(jars, dict)
    return {str(name): str(value) for name, value in jars.items()} if same and isinstance(jars, dict) else {}


def _what_is_wrong(folder: Path, release: Release) -> str | None:
    """Return what is wrong with the jars of the cache, "" when there are none, None when all are as they were."""
    if not folder.is_dir():
        return ""
    known = _known_hashes(folder, release)
    if not known:
        return f"{folder}: there is no list of hashes for this release"
    found = _hashes(folder)
    for name in sorted({*known, *found}):
        if known.get(name) != found.get(name):
            change = "is missing" if name not in found else "was added" if name not in known else "was changed"
            return f"{folder / name}: this file {change} since it was fetched"
    return None


def _hold_to(known: Mapping[str, str], found: Mapping[str, str], folder: Path) -> None:
    """Refuse jars that differ from those of the first time."""
    different = [name for name in sorted(known) if known[name] != found.get(name)]
    if different:
        raise InputError(
            f"Maven gave another {different[0]} than the first time, and a published jar never changes",
            remedy=f"remove it from Maven's own folder (~/.m2/repository) and try again; if you trust what it gives "
            f"now, remove {folder}",
        )


def _run_maven(release: Release, part: Path, java: Java, log: Path, advance: Callable[[], None]) -> None:
    """Let Maven copy the jars of a release into `part`, writing what it says to `log`."""
    program = shutil.which("mvn")
    if program is None:
        raise MissingDependency(
            "Neo4j's jars are fetched by Maven, and there is no mvn on the PATH",
            remedy="install Maven 3.6 or newer (apt-get install maven); it is needed once, for the first start",
        )
    pom = part / "pom.xml"
    pom.write_bytes(release.pom)
    words = [program, "-B", "-U", "--strict-checksums", *_PATIENCE, "-f", str(pom), "validate", f"-Dgniah.out={part}"]
    with log.open("wb") as kept:
        process = subprocess.Popen(  # noqa: S603  (the mvn that the user installed)
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "JAVA_HOME": str(java.home)},
            cwd=part,
        )
        try:
            said = _listen(process, kept, advance)
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
    if code != 0:
        _tell_failure(said, log)
    with contextlib.suppress(OSError):
        log.unlink()


def _listen(process: subprocess.Popen[bytes], kept: IO[bytes], advance: Callable[[], None]) -> list[str]:
    """Write down what Maven says, and return its errors."""
    errors = []
    assert process.stdout is not None
    for raw in process.stdout:
        kept.write(raw)
        line = raw.decode("utf-8", "replace").strip()
        if "Downloaded from" in line and ".jar" in line:
            advance()
        if "ERROR" in line[:20] or _FULL.search(line):
            errors.append(line)
    return errors


def _tell_failure(errors: list[str], log: Path) -> None:
    said = " ".join(errors)
    if _FULL.search(said):
        raise EnvironmentFault(f"{log.parent}: the disk is full", remedy="free 500 MB, or set GNIAH_CACHE elsewhere")
    first = re.sub(r"\x1b\[[0-9;]*m|\[ERROR\]", "", errors[0]).strip() if errors else "it said no reason"
    if _NETWORK.search(said):
        raise MissingDependency(
            "Maven could not reach a repository to fetch Neo4j's jars from (the first start needs the network)",
            remedy=f"check the network or the mirrors in Maven's settings.xml, then repeat; Maven's words are in {log}",
        )
    raise MissingDependency(
        f"Maven could not fetch Neo4j's jars: {first[:300]}", remedy=f"see {log} for all that Maven said"
    )
