from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gniah.cypher import build_store
from gniah.records.manifests import Manifest
from gniah.records.titles import normalised_title

Edge = tuple[int, int]
PaperRow = dict[str, Any]
WriteGraph = Callable[..., Manifest]

# One paper of every kind that could break a query, a file name or a terminal.
NASTY: tuple[PaperRow, ...] = (
    {"corpusid": 1, "title": "It's \"quoted\" {braces} `ticks` $id ${x} \\n \\' end", "authors": ["O'Neil", 'A "B" C']},
    {"corpusid": 2, "title": "MATCH (n) DETACH DELETE n; // RETURN 1 /* x */", "authors": ["Zoë Ünal"], "venue": "V'"},
    {
        "corpusid": 3,
        "title": "שלום עולם العربية",
        "authors": ["א", "ب"],
        "date": "2026-05-09",
        "arxiv_id": "2605.00003",
    },
    {"corpusid": 4, "title": "🙂 👩‍👩‍👧 𝔘nicode 論文", "authors": ["李"], "date": "2026-05-31", "venue": "🙂"},
    {"corpusid": 5, "title": "A title, folded | with; commas\u2028and separators", "authors": [], "date": "2027-01-01"},
    {"corpusid": 6, "title": "…—!", "authors": ["A. Author"], "date": "2026-12-31"},
    {"corpusid": 7, "title": "", "authors": ["A. Author"]},
    {"corpusid": 2**62, "title": "A large id", "authors": ["A. Author", "B. Author"]},
    {"corpusid": 9, "title": "Alone", "authors": ["A. Author"]},
)
NASTY_EDGES: tuple[Edge, ...] = (
    (1, 2),
    (2, 1),
    (3, 1),
    (4, 1),
    (2**62, 1),
    (3, 2),
    (4, 3),
    (3, 4),
    (5, 6),
    (7, 2**62),
)
NASTY_NAME = 'it\'s "a" graph [x]* ?{y} `z` $1 \\ 論文 שלום'


def write_graph(folder: Path, papers: Iterable[PaperRow], edges: Sequence[Edge], **content: Any) -> Manifest:
    """Write the folder that `gniah-load filter` would, and return its manifest."""
    folder.mkdir(parents=True)
    rows = [
        [
            row["corpusid"],
            row["title"],
            row.get("title_key", normalised_title(row["title"])),
            row.get("authors", ["A. Author"]),
            datetime.date.fromisoformat(row.get("date", "2026-04-01")),
            row.get("venue"),
            row.get("arxiv_id"),
        ]
        for row in papers
    ]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE papers (corpusid BIGINT, title VARCHAR, title_key VARCHAR, authors VARCHAR[], "
            "publicationdate DATE, venue VARCHAR, arxiv_id VARCHAR)"
        ).fetchall()
        if rows:
            connection.executemany("INSERT INTO papers VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.execute(
            "CREATE TABLE citations (citing BIGINT, cited BIGINT, isinfluential BOOLEAN, citationids BIGINT[])"
        ).fetchall()
        if edges:
            connection.executemany("INSERT INTO citations VALUES (?, ?, ?, [])", [[*edge, False] for edge in edges])
        connection.table("papers").order("corpusid").write_parquet(str(folder / "papers.parquet"))
        connection.table("citations").order("citing, cited").write_parquet(str(folder / "citations.parquet"))
    counts = {"papers": len(rows), "citations": len(edges)}
    manifest = Manifest("gniah/graph/1", {"counts": counts, "cutoff": "2026-04-01"} | content)
    manifest.write(folder)
    return manifest


@pytest.fixture(scope="session")
def graph_writer() -> WriteGraph:
    """Return the function that writes a graph's folder."""
    return write_graph


@pytest.fixture(scope="session")
def nasty_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small graph with awkward titles; its own name is awkward too."""
    folder = tmp_path_factory.mktemp("nasty") / NASTY_NAME
    write_graph(folder, NASTY, NASTY_EDGES)
    return folder


@pytest.fixture(scope="session")
def nasty_papers() -> tuple[PaperRow, ...]:
    """The papers of that graph."""
    return NASTY


@pytest.fixture(scope="session")
def nasty_edges() -> tuple[Edge, ...]:
    """The citations of that graph."""
    return NASTY_EDGES


@pytest.fixture(scope="session")
def nasty_store(nasty_graph: Path) -> str:
    """The address of its store, awkward as well; not to be changed."""
    address = nasty_graph.parent / f"store of {NASTY_NAME}"
    build_store(nasty_graph, str(address))
    return str(address)
