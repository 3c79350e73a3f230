from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

SHARED = Path(__file__).parents[2].parent / "shared"

Rows = Iterable[dict[str, Any]]


@pytest.fixture
def shard(tmp_path: Path) -> Callable[[str, Rows], Path]:
    """Write rows as a shard and return its path."""

    def write(name: str, rows: Rows) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows), mtime=0))
        return path

    return write


@pytest.fixture
def paper() -> Callable[..., dict[str, Any]]:
    """Return a row of papers that is eligible from 2026-04-01 on, but for what is given."""

    def make(corpusid: object = 1, **changed: object) -> dict[str, Any]:
        row = {
            "corpusid": corpusid,
            "externalids": {"ArXiv": None, "DOI": None},
            "title": f"Paper {corpusid}",
            "authors": [{"authorId": "7", "name": "A. Author"}],
            "venue": "",
            "publicationvenueid": None,
            "year": 2026,
            "publicationdate": "2026-04-01",
            "journal": None,
        }
        return row | changed

    return make


@pytest.fixture
def rows_of() -> Callable[[Path], list[tuple[Any, ...]]]:
    """Return the rows of a Parquet file."""

    def read(path: Path) -> list[tuple[Any, ...]]:
        with duckdb.connect(":memory:") as connection:
            return connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()

    return read


@pytest.fixture
def shared() -> Path:
    """Return the folder of real data, which stands beside the checkout."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"{SHARED} is missing, and a build must not pass without it")
        pytest.skip(f"the real data are not at {SHARED}")
    return SHARED
