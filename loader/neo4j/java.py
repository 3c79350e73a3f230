"""Finding a Java that a Neo4j server runs on."""

from __future__ import annotations

from pathlib import Path

from gniah.records import java
from gniah.records.errors import MissingDependency
from gniah.records.java import Java, java_version


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
    return java.find_java(
        oldest,
        "this Neo4j",
        f"install a Java {oldest} or newer (apt-get install openjdk-{oldest}-jre-headless, or Temurin), "
        "or name one with --java or JAVA_HOME",
    )


__all__ = ["Java", "find_java", "java_version"]
