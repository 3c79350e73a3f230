"""Manifests: what a step was made from, in two parts.

`content` holds inputs by hash, parameters, rules and counts: it is the same for the same inputs on any machine,
and later steps hash it. `run` holds seconds, host, paths and library versions, and is never hashed.
"""

from __future__ import annotations

import datetime
import platform
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.files import read_json, write_json

MANIFEST_NAME = "manifest.json"


def package_version() -> str:
    """Return the version of the installed product."""
    return metadata.version("gniah")


def check_schema(found: object, known: str, where: str) -> None:
    """Check the `schema` of something read against the newest one known, as `gniah/<kind>/<number>`.

    Raises InputError when the kind differs or the number is newer than ours.
    """
    kind, _, newest = known.rpartition("/")
    match = re.fullmatch(r"(gniah/[a-z0-9-]+)/(\d{1,9})", found, re.ASCII) if isinstance(found, str) else None
    if match is None or match[1] != kind:
        raise InputError(
            f"{where}: expected the schema {known!r}, found {found!r}",
            remedy=f"give the file or folder that holds {kind.removeprefix('gniah/')} data",
        )
    if int(match[2]) > int(newest):
        raise InputError(
            f"{where}: written by a newer version of gniah (schema {found}, this one reads up to {newest})",
            remedy="upgrade gniah",
        )


@dataclass(frozen=True)
class Manifest:
    """A manifest: `schema` names its kind, `content` is hashed further on, `run` never is."""

    schema: str
    content: Mapping[str, Any]
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of schema and content: the name by which later steps refer to this one."""
        return digest({"schema": self.schema, "content": self.content})

    def write(self, folder: Path) -> None:
        """Write the manifest into a folder, whole or not at all."""
        value = {"schema": self.schema, "digest": self.digest, "content": self.content, "run": self.run}
        write_json(folder / MANIFEST_NAME, value)

    @classmethod
    def read(cls, folder: Path, schema: str) -> Manifest:
        """Read the manifest of a folder.

        Raises InputError when there is none, it is of another kind or newer, or its content does not match its
        digest.
        """
        path = folder / MANIFEST_NAME
        if not path.is_file():
            raise InputError(
                f"{folder}: there is no {MANIFEST_NAME} here, so this is no finished {schema.split('/')[1]} folder",
                remedy="run the step that makes it, or check the path",
            )
        value = read_json(path)
        check_schema(value.get("schema"), schema, str(path))
        content = value.get("content")
        if not isinstance(content, dict):
            raise InputError(f"{path}: there is no object under 'content'", remedy="make the folder again")
        run = value.get("run")
        manifest = cls(str(value["schema"]), content, run if isinstance(run, dict) else {})
        try:
            unchanged = value.get("digest") == manifest.digest
        except (TypeError, ValueError):  # a fraction, say, which we never write into a content
            unchanged = False
        if not unchanged:
            raise InputError(f"{path}: the content was changed after it was written", remedy="make the folder again")
        return manifest


class RunClock:
    """Gathers the `run` part of a manifest from the start of a step to its end."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

    def run(self, *libraries: str, **more: object) -> dict[str, Any]:
        """Return the run part so far: start, seconds, host, versions of the named libraries, and what is added."""
        versions = {name: metadata.version(name) for name in ("gniah", *libraries)}
        return {
            "started": self._at,
            "seconds": round(time.monotonic() - self._started, 3),
            "host": socket.gethostname(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "versions": versions,
            **more,
        }
