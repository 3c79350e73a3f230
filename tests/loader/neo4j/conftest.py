"""The program `gniah-load` as a user calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def gniah_load() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `gniah-load` in a process of its own; what is given by name is set in its environment, None unset."""

    def call(*words: object, **environment: str | None) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, **environment}
        return subprocess.run(
            [sys.executable, "-c", "from gniah.loader.cli import main; main()", *map(str, words)],
            check=False,
            capture_output=True,
            encoding="utf-8",
            env={name: value for name, value in given.items() if value is not None},
        )

    return call


@pytest.fixture
def fake_java(tmp_path: Path) -> Callable[[str, str], Path]:
    """Make a Java that prints a version and does nothing else; return its home."""

    def make(name: str, version: str) -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n", encoding="utf-8")
        program.chmod(0o755)
        return tmp_path / name

    return make
