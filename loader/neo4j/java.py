"""Finding a Java that is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gniah.records.errors import MissingDependency

# Where Linux distributions put them. macOS has its own folder.
_USUAL_PLACES = (("/usr/lib/jvm", "bin/java"), ("/Library/Java/JavaVirtualMachines", "Contents/Home/bin/java"))


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that runs: its program and the number of its version, such as 17."""

    program: Path
    version: int

    @property
    def home(self) -> Path:
        """Return the folder that JAVA_HOME would name."""
        return self.program.resolve().parent.parent


def find_java(oldest: int, given: Path | None = None) -> Java:
    """Return the Java that was given, or the first that is new enough: JAVA_HOME, the PATH, the usual places.

    `given` is a program or the home of a Java. Raises MissingDependency that says what was found instead.
    """
    if given is not None:
        program = given / "bin" / "java" if given.is_dir() else given
        version = java_version(program)
        if version is None:
            raise MissingDependency(f"{program}: this is no Java that runs", remedy=f"give a Java {oldest} or newer")
        if version < oldest:
            raise MissingDependency(
                f"{program}: this is Java {version}, and this Neo4j needs {oldest} or newer",
                remedy=f"give another with --java, or leave it out to have one of {oldest} or newer looked for",
            )
        return Java(program, version)
    seen = []
    for program in _candidates():
        version = java_version(program)
        if version is not None and version >= oldest:
            return Java(program, version)
        if version is not None:
            seen.append(f"{program} is Java {version}")
    found = f"only older ones were found ({'; '.join(seen)})" if seen else "none was found"
    raise MissingDependency(
        f"this Neo4j needs Java {oldest} or newer, and {found}",
        remedy=f"install a Java {oldest} or newer (apt-get install openjdk-{oldest}-jre-headless, or Temurin), "
        "or name one with --java or JAVA_HOME",
    )


def java_version(program: Path) -> int | None:
    """Return the number of a Java's version (8 for 1.8.0), or None when it does not run."""
    try:
        done = subprocess.run(  # noqa: S603  (a program that the user named or installed)
            [str(program), "-version"],
            check=False,
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(rb'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match and done.returncode == 0 else None


def _candidates() -> Iterator[Path]:
    """Yield the programs that may be a Java, each once."""
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        found.append(Path(on_path))
    for folder, inner in _USUAL_PLACES:
        found += sorted(Path(folder).glob(f"*/{inner}"))
    seen = set()
    for program in found:
        if program.is_file() and program.resolve() not in seen:
            seen.add(program.resolve())
            yield program
