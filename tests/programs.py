"""The three programs as a user calls them, and what they made of the shards that ship with gniah."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOMS = {
    **dict.fromkeys(("filter", "import", "stats", "query", "cypher", "corpus", "neo4j"), "loader"),
    **dict.fromkeys(("run", "batch", "models", "lists", "score", "compare", "power", "export"), "evaluator"),
}


@dataclass(frozen=True)
class Finished:
    """How a program ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Rfc:
    """What every step made of the shards that ship with gniah: real RFCs and the references among them."""

    graph: Path
    store: Path
    paths: Path
    bench: Path
    run: Path
    code: Path
    cutoff: str

    def example_words(self, out: Path, *more: str | Path) -> list[str | Path]:
        """Return the command that builds examples like those of `bench`; later options overrule earlier ones."""
        return [
            *("examples", "--store", self.store, "--paths", self.paths, "--out", out, "--count", "8"),
            *("--context-length", "3000", "--depths", "2,3", "--sizes", "7-9", "--vary", "question-format"),
            *("--corpus", f"code={self.code}", *more),
        ]


def program_of(words: Sequence[str | Path]) -> list[str]:
    """Return the words that start the program which has a command, the command's own words behind."""
    command = next((str(word) for word in words if str(word) in _ROOMS), "")
    module = f"gniah.{_ROOMS.get(command, 'generator')}.cli"
    return [sys.executable, "-c", f"from {module} import main; main()", *map(str, words)]


def call_program(*words: str | Path, **environment: str) -> Finished:
    """Run a command in a process of its own."""
    done = subprocess.run(
        program_of(words),
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **environment},
    )
    return Finished(done.returncode, done.stdout, done.stderr)
