"""A graph into a stopped server by files and Neo4j's importer: the files, the commands, and what is there then."""

from __future__ import annotations

import csv
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neo4j_fixtures import SMALL, Running, start

from gniah.cypher import build_store, open_store
from gniah.cypher.addresses import Credentials, ServerAddress
from gniah.cypher.bolt_import import CONSTRAINTS
from gniah.cypher.connection import connect
from gniah.cypher.store import GRAPH_SCHEMA
from gniah.loader.filtering import filter_graph
from gniah.loader.neo4j.bulk import COUNTS, holds_graph, import_in_bulk, imported
from gniah.loader.neo4j.bulk_files import make_import_files, write_import_files
from gniah.loader.neo4j.bulk_lines import paper_lines
from gniah.loader.neo4j.java import find_java
from gniah.loader.neo4j.releases import RELEASES
from gniah.loader.neo4j.server import Server, Settings
from gniah.loader.parquet import CITATION_COLUMNS, PAPER_COLUMNS
from gniah.records.errors import BusyError, EnvironmentFault, InputError, MissingDependency, StoreError, UsageFault
from gniah.records.manifests import Manifest
from gniah.records.titles import normalised_title, shown_text

Load = Callable[..., subprocess.CompletedProcess[str]]
Make = Callable[..., dict[str, Any]]
Shard = Callable[..., Path]

LITTLE = Settings(memory=SMALL, patience=300.0)
DAY = datetime.date(2026, 4, 1)
ODD_TEXTS = (
    "ends in a backslash \\",
    'a "quoted" word',
    '"',
    '""',
    'a lone " inside',
    '\\"',
    'x\\""y',
    "a, b; c | d",
    "=SUM(A1:A9)",
    "# no comment",
    "null",
    "'single'",
    "a\nbreak and a\r\nreturn",
    "a\ttab, a\x0bvertical one and a\x0cform feed",
    "separators \u2028 \u2029 \x85 \x1c\x1d\x1e\x1f between",
    "  led and followed by spaces\u00a0 ",
    "NUL \x00 and bell \x07",
    "\ufefforder marks \u202e and \u200f",
    "\ufffe\uffff no characters",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 😀 e\u0301",
    "何祚庥；教育",
    '$O(\\log^{3} n)$, G\\"odel & &amp;quot;',
    "!!! ???",
    "long " * 20_000,
)
LARGEST = 2**63 - 1


@pytest.fixture
def odd_graph(shard: Shard, paper: Make, tmp_path: Path) -> Path:
    """Return what `filter` makes of papers with odd titles, names and venues, and of the largest ids."""
    ids = [0, LARGEST, 2**56, *range(1000, 1000 + len(ODD_TEXTS) - 3)]
    dates = ("0001-01-01", "9999-12-31", "2024-02-29", "2026-04-01")
    papers = []
    for number, (identifier, text) in enumerate(zip(ids, ODD_TEXTS, strict=True)):
        names = [text, "Two, Jr.", 'Al "Three" B', "C;D|E", "F\\", "G\x1fH"][: number % 7]
        papers.append(
            paper(
                identifier,
                title=text,
                authors=[{"authorId": None, "name": name} for name in names],
                venue=text if number % 3 == 0 else "",
                externalids={"ArXiv": text if number % 4 == 0 else None},
                publicationdate=dates[number % len(dates)],
            )
        )
    edges = [
        {"citingcorpusid": one, "citedcorpusid": other, "isinfluential": (one + other) % 2 == 0}
        for one in ids
        for other in ids[:4]
        if one != other
    ]
    return filtered(shard("p.gz", papers), shard("c.gz", edges), tmp_path / "it's an, odd (graph)")


@pytest.fixture
def small_graph(shard: Shard, paper: Make, tmp_path: Path) -> Path:
    edges = [{"citingcorpusid": 1, "citedcorpusid": 2, "isinfluential": True}]
    return filtered(
        shard("small-p.gz", [paper(1), paper(2), paper(3, authors=[])]), shard("small-c.gz", edges), tmp_path / "small"
    )


def filtered(papers: Path, citations: Path, out: Path) -> Path:
    filter_graph([papers], [citations], out, cutoff=datetime.date.min)
    return out


Rows = Iterable[tuple[Any, ...]]


def written(path: Path, columns: dict[str, str], rows: Rows) -> None:
    """Write rows as a Parquet file; columns that the rows lack are null."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
        for row in rows:
            filled = [*row, *[None] * (len(columns) - len(row))]
            connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", filled)
        connection.execute("COPY t TO ? (FORMAT parquet)", [str(path)])


PAPERS = {name: PAPER_COLUMNS[name] for name in ("corpusid", "title", "title_key", "authors", "publicationdate")} | {
    name: PAPER_COLUMNS[name] for name in ("venue", "arxiv_id")
}


def by_hand(folder: Path, papers: Rows, citations: Rows, /, **counts: int) -> Path:
    """Make a graph that `filter` would not make."""
    papers, citations = list(papers), list(citations)
    folder.mkdir()
    written(folder / "papers.parquet", dict(PAPERS), papers)
    written(folder / "citations.parquet", dict(CITATION_COLUMNS), citations)
    content = {"counts": {"papers": len(papers), "citations": len(citations)} | counts}
    Manifest(GRAPH_SCHEMA, content).write(folder)
    return folder


def a_paper(identifier: int, title: str = "A title", names: Iterable[str | None] = ("A. Author",)) -> tuple[Any, ...]:
    return identifier, title, normalised_title(title), list(names), DAY, None, None


# The lines.


def fields(line: str) -> list[str | None]:
    """Return the fields of a line by the grammar of RFC 4180, character by character; None for an empty one."""
    found: list[str | None] = []
    place = 0
    while True:
        if line[place : place + 1] == '"':
            text, place = "", place + 1
            while line[place] != '"' or line[place + 1 : place + 2] == '"':
                text += line[place]
                place += 2 if line[place] == '"' else 1
            place += 1
            found.append(text)
        else:
            end = line.find(",", place)
            end = len(line) if end < 0 else end
            assert '"' not in line[place:end]
            found.append(line[place:end] or None)
            place = end
        if place == len(line):
            return found
        assert line[place] == ","
        place += 1


texts = st.text(alphabet=st.one_of(st.sampled_from("\",;|\\'= \u2028\x85\x1fa"), st.characters())).map(
    lambda text: shown_text(text.encode("utf-8", "ignore").decode("utf-8"))
)
names = texts.filter(bool)
rows = st.tuples(
    st.integers(0, LARGEST),
    texts,
    texts,
    st.lists(names, max_size=4),
    st.dates(),
    st.none() | names,
    st.none() | names,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(rows, min_size=1, max_size=5))
def test_any_shown_text_is_read_back_as_it_was(tmp_path: Path, given_rows: list[tuple[Any, ...]]) -> None:
    path = tmp_path / "papers.parquet"
    written(path, dict(PAPERS), given_rows)
    lines = [line for batch in paper_lines(path) for line, _ in batch]
    counts = [count for batch in paper_lines(path) for _, count in batch]
    expected = [
        [str(row[0]), str(row[0]), row[1], row[2], "\x1f".join(row[3]) or None, row[4].isoformat(), row[5], row[6]]
        for row in given_rows
    ]
    assert [fields(line) for line in lines] == expected
    assert counts == [sum(field is not None for field in line[1:]) for line in expected]
    # Python's reader cannot tell an empty text from nothing, and knows no line break but these two.
    plain = [[field or "" for field in line] for line in expected]
    assert list(csv.reader([f"{line}\n" for line in lines], strict=True)) == plain
    assert not any("\n" in line or "\r" in line for line in lines)


@pytest.mark.parametrize(
    "wrong",
    [
        a_paper(7, "a\nbreak"),
        a_paper(7, "a return\r"),
        a_paper(7, "NUL \x00"),
        a_paper(7, names=["A\x1fB"]),
        a_paper(7, names=["A", ""]),
        a_paper(7, names=["A", None]),
        (7, None, "", [], DAY),
        (7, "A title", None, [], DAY),
        (7, "A title", "a title", None, DAY),
        (7, "A title", "a title", [], None),
        (None, "A title", "a title", [], DAY),
        (7, "A title", "a title", [], DAY, "a\nvenue"),
        (7, "A title", "a title", [], DAY, None, "a\x1fb"),
    ],
)
def test_rows_that_filter_never_writes_are_refused(tmp_path: Path, wrong: tuple[Any, ...]) -> None:
    graph = by_hand(tmp_path / "graph", [a_paper(1), a_paper(2), wrong], [])
    with pytest.raises(InputError, match=r"papers\.parquet: row 3 holds what gniah-load filter never writes"):
        write_import_files(graph, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph"]


# The files.


def test_the_files_of_a_graph(odd_graph: Path, tmp_path: Path) -> None:
    files = write_import_files(odd_graph, tmp_path / "out")
    papers = [fields(line) for line in (files.folder / "papers.csv").read_text(encoding="utf-8").split("\n")[:-1]]
    with duckdb.connect(":memory:") as connection:
        columns = "corpusid, title, title_key, authors, publicationdate, venue, arxiv_id"
        source = connection.execute(f"SELECT {columns} FROM read_parquet(?)", [str(odd_graph / "papers.parquet")])
        expected = [
            [str(row[0]), *map(str, row[:3]), "\x1f".join(row[3]) or None, str(row[4]), *row[5:]]
            for row in source.fetchall()
        ]
        edges = connection.execute("SELECT * FROM read_parquet(?)", [str(odd_graph / "citations.parquet")]).fetchall()
    assert len(expected) == len(ODD_TEXTS)
    assert papers == expected
    citations = (files.folder / "citations.csv").read_text(encoding="ascii").split("\n")[:-1]
    assert citations == [f"{one},{other},{str(flag).lower()}" for one, other, flag, _ in edges]
    assert files.expected == {
        "nodes": len(ODD_TEXTS) + 1,
        "relationships": len(edges),
        "properties": sum(field is not None for row in papers for field in row[1:]) + len(edges) + 9,
    }
    manifest = Manifest.read(files.folder, "gniah/neo4j-import/1")
    assert manifest.content["graph"]["digest"] == Manifest.read(odd_graph, GRAPH_SCHEMA).digest


def test_equal_graphs_give_equal_bytes(odd_graph: Path, tmp_path: Path) -> None:
    shutil.copytree(odd_graph, tmp_path / "copy")
    one = write_import_files(odd_graph, tmp_path / "one").folder
    other = write_import_files(tmp_path / "copy", tmp_path / "other").folder
    names = sorted(path.name for path in one.iterdir())
    assert len(names) == 7
    for name in names:
        if name != "manifest.json":
            assert (one / name).read_bytes() == (other / name).read_bytes()
    schema = "gniah/neo4j-import/1"
    assert Manifest.read(one, schema).digest == Manifest.read(other, schema).digest


def test_an_empty_graph_gives_headers_and_its_own_node(tmp_path: Path) -> None:
    files = write_import_files(by_hand(tmp_path / "graph", [], []), tmp_path / "out")
    assert (files.folder / "papers.csv").read_bytes() == (files.folder / "citations.csv").read_bytes() == b""
    assert files.expected == {"nodes": 1, "relationships": 0, "properties": 9}
    header = (files.folder / "papers-header.csv").read_text(encoding="ascii").strip().split(",")
    assert [name.partition(":")[0] for name in header[1:]] == list(PAPERS)


def test_a_line_longer_than_the_importers_buffer_gets_a_larger_one(tmp_path: Path) -> None:
    usual = write_import_files(by_hand(tmp_path / "usual", [a_paper(1)], []), tmp_path / "out").words()
    assert not any("buffer" in word for word in usual)
    title = "𝔘" * (1 << 20)
    words = write_import_files(by_hand(tmp_path / "long", [a_paper(1, title)], []), tmp_path / "long-out").words()
    size = next(int(word.partition("=")[2]) for word in words if word.startswith("--read-buffer-size="))
    assert size > len(title.encode("utf-8"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda graph: (graph / "papers.parquet").unlink(), "papers.parquet: no such file"),
        (lambda graph: (graph / "citations.parquet").write_bytes(b"PAR1"), "citations.parquet: "),
        (lambda graph: cut(graph / "papers.parquet", 40), "papers.parquet: "),
        (lambda graph: cut(graph / "citations.parquet", 1), "citations.parquet: "),
        (lambda graph: spoil(graph / "papers.parquet"), "papers.parquet: "),
        (lambda graph: shutil.copy(graph / "citations.parquet", graph / "papers.parquet"), "papers.parquet: "),
        (lambda graph: shutil.copy(graph / "papers.parquet", graph / "citations.parquet"), "citations.parquet: "),
        (lambda graph: (graph / "manifest.json").unlink(), "there is no manifest.json here"),
    ],
)
def test_a_damaged_graph_is_bad_input_and_leaves_nothing(
    small_graph: Path, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(small_graph)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        write_import_files(small_graph, tmp_path / "out")
    assert message in caught.value.message
    assert caught.value.remedy
    assert sorted(tmp_path.iterdir()) == before


def cut(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[:-count])


def spoil(path: Path) -> None:
    """Change the list of columns at the end of a Parquet file."""
    raw = bytearray(path.read_bytes())
    raw[-300:-200] = b"\xff" * 100
    path.write_bytes(raw)


def test_counts_that_are_not_the_manifests(tmp_path: Path) -> None:
    graph = by_hand(tmp_path / "graph", [a_paper(1), a_paper(2)], [(1, 2, True, [])], citations=2)
    with pytest.raises(InputError, match="hold 2 papers and 1 citations, the manifest says 2 and 2"):
        write_import_files(graph, tmp_path / "out")


def test_a_folder_of_files_is_kept_or_replaced_and_nothing_else_ever_is(
    small_graph: Path, odd_graph: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    make_import_files(small_graph, out)
    first = (out / "manifest.json").read_bytes()
    (out / "import.report").touch()  # the importer's own
    said: list[str] = []
    files = make_import_files(small_graph, out, report=said.append)
    assert (files.papers, said) == (3, [f"{out}: already there, nothing to do"])
    assert (out / "manifest.json").read_bytes() == first
    with pytest.raises(UsageFault, match="holds the files of another graph"):
        make_import_files(odd_graph, out)
    (out / "papers.csv").write_bytes(b"1,2\n")
    with pytest.raises(InputError, match=r"papers\.csv: missing, or changed") as caught:
        make_import_files(small_graph, out)
    assert "--force" in str(caught.value.remedy)
    assert make_import_files(odd_graph, out, force=True).papers == len(ODD_TEXTS)
    (out / "notes.txt").touch()
    for force in (False, True):
        with pytest.raises(UsageFault, match=r"holds something else than files to import \('notes.txt'\)"):
            make_import_files(odd_graph, out, force=force)
    assert (out / "notes.txt").is_file()


def test_the_printed_command_is_one_for_a_shell(
    gniah_load: Load, odd_graph: Path, tmp_path: Path, fake_java: Callable[[str, str], Path]
) -> None:
    out = tmp_path / "a, b's (c+) $HOME"
    done = gniah_load("neo4j", "files", odd_graph, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "gniah-load import " in done.stderr
    program = tmp_path / "bin" / "neo4j-admin"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\npwd; for word in "$@"; do echo "$word"; done\n', encoding="utf-8")
    program.chmod(0o755)
    ran = subprocess.run(
        ["/bin/sh", "-c", done.stdout],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
    )
    place, *words = ran.stdout.splitlines()
    assert place == str(out)
    assert words[:4] == ["database", "import", "full", "neo4j"]
    assert {"--bad-tolerance=0", "--strict=true", "--multiline-fields=false"} <= set(words)
    assert not [word for word in words if "skip" in word or "overwrite" in word]
    named = [name for word in words[4:7] for name in word.rpartition("=")[2].split(",")]
    assert len(named) == 6
    assert all((out / name).is_file() for name in named)
    again = gniah_load("neo4j", "files", odd_graph, "--out", out, "--json")
    answer = json.loads(again.stdout)
    assert answer["words"] == ["neo4j-admin", *words]
    assert (answer["papers"], answer["out"]) == (len(ODD_TEXTS), str(out))


# The command, where no import comes about.


def test_what_the_importer_says_at_its_end() -> None:
    done = "IMPORT DONE in 2s 611ms. \nImported:\n  32 nodes\n  30 relationships\n  206 properties\nPeak memory: 1GiB"
    assert imported(f"(4/4) Post processing\n\n\n{done}") == {"nodes": 32, "relationships": 30, "properties": 206}
    assert imported(done.replace("IMPORT DONE in", "IMPORT FAILED in")) is None
    assert imported("") is None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--heap", "much"), 2, "'much' is no amount of memory"),
        (("--off-heap", "0g"), 2, "'0g' is no amount of memory"),
        (("--release", "4.4"), 2, "4.4"),
        (("--java", "/nowhere/java"), 4, "this is no Java that runs"),
    ],
)
def test_wrong_use(gniah_load: Load, small_graph: Path, tmp_path: Path, words: Any, code: int, message: str) -> None:
    done = gniah_load("neo4j", "import", small_graph, "--home", tmp_path / "home", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not (tmp_path / "home" / "data" / "databases").exists()


def test_a_graph_that_is_none_is_said_before_anything_is_made(gniah_load: Load, tmp_path: Path) -> None:
    done = gniah_load("neo4j", "import", tmp_path, "--home", tmp_path / "home")
    assert (done.returncode, done.stdout) == (3, "")
    assert "this is no finished graph folder" in done.stderr
    assert not (tmp_path / "home").exists()


def test_no_server_starts_on_a_half_imported_database(gniah_load: Load, tmp_path: Path) -> None:
    server = Server(tmp_path / "home")
    server.home.make()
    server.home.import_marker.write_text("{}", encoding="utf-8")
    done = gniah_load("neo4j", "start", "--home", tmp_path / "home")
    assert (done.returncode, done.stdout) == (5, "")
    assert "a bulk import into this database was not finished" in done.stderr
    assert "give the same gniah-load neo4j import again" in done.stderr


# With a real server.


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Return a server of the test's own, in a folder with an odd name."""
    made = Server(tmp_path / "a, séparé (home)")
    yield made
    made.stop()


@pytest.mark.neo4j
def test_a_server_that_runs_is_left_alone(gniah_load: Load, neo4j_server: Running, small_graph: Path) -> None:
    home = neo4j_server.server.home
    done = gniah_load("neo4j", "import", small_graph, "--home", home.folder, "--force")
    assert (done.returncode, done.stdout) == (8, "")
    assert "the server runs" in done.stderr
    assert "gniah-load neo4j stop" in done.stderr
    assert not home.import_marker.exists()
    assert neo4j_server.run("RETURN 1 AS one") == [{"one": 1}]


def assert_same(running: Running, graph: Path, tmp_path: Path) -> None:
    """Check every node, property, citation and constraint of a server against the embedded store of the same graph."""
    build_store(graph, tmp_path / "embedded")
    source = Manifest.read(graph, GRAPH_SCHEMA)
    counts = {name: source.content["counts"][name] for name in ("papers", "citations")}
    with open_store(tmp_path / "embedded") as store:
        ids = [row[0] for row in store.cypher("MATCH (p:Paper) RETURN p.corpusid").rows]
        papers = store.papers(sorted(ids))
        edges = sorted(
            store.cypher("MATCH (a:Paper)-[c:CITES]->(b:Paper) RETURN a.corpusid, b.corpusid, c.isinfluential").rows
        )
    expected = []
    for paper in papers:
        values = {
            **{"corpusid": paper.corpusid, "title": paper.title, "title_key": paper.title_key},
            **{"authors": list(paper.authors) or None, "publicationdate": paper.publicationdate},
            **{"venue": paper.venue, "arxiv_id": paper.arxiv_id},
        }
        expected.append({name: value for name, value in values.items() if value is not None})
    found = [row["p"] for row in running.run("MATCH (p:Paper) RETURN properties(p) AS p ORDER BY p.corpusid")]
    for row in found:
        row["publicationdate"] = row["publicationdate"].to_native()
    assert found == expected
    cites = running.run(
        "MATCH (a:Paper)-[c:CITES]->(b:Paper) RETURN a.corpusid AS a, b.corpusid AS b, properties(c) AS c"
    )
    assert sorted((row["a"], row["b"], row["c"]["isinfluential"]) for row in cites) == edges
    assert all(set(row["c"]) == {"isinfluential"} for row in cites)
    assert running.run("MATCH (n) RETURN count(n) AS nodes") == [{"nodes": len(papers) + 1}]
    (node,) = running.run("MATCH (g:GniahGraph) RETURN properties(g) AS g")
    manifest = json.loads(node["g"].pop("manifest"))
    assert manifest == {"schema": source.schema, "content": source.content}
    assert node["g"] == {
        "name": "graph",
        "schema": "gniah/neo4j-graph/1",
        "digest": source.digest,
        "state": "complete",
        **counts,
        **{f"{name}_done": count for name, count in counts.items()},
    }
    constraints = running.run("SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties")
    assert sorted((row["name"], row["type"], row["labelsOrTypes"], row["properties"]) for row in constraints) == [
        ("gniah_graph", "UNIQUENESS", ["GniahGraph"], ["name"]),
        ("gniah_paper", "UNIQUENESS", ["Paper"], ["corpusid"]),
    ]


def left_over(server: Server) -> list[str]:
    """Return what an import has left in a home that does not belong there."""
    usual = {".lock", "conf", "data", "import", "logs", "run", "password", "server.json"}
    return sorted(path.name for path in server.home.folder.iterdir() if path.name not in usual)


@pytest.mark.neo4j
@pytest.mark.slow
@pytest.mark.usefixtures("neo4j_server")  # which has fetched the jars, or said why not
def test_a_graph_is_imported_kept_and_replaced(
    gniah_load: Load, odd_graph: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = server.home.folder
    start(home)  # its database is there, and empty
    server.stop()
    little = ("--home", home, "--heap", "512m", "--page-cache", "64m", "--off-heap", "512m", "--wait", "300")
    done = gniah_load("neo4j", "import", odd_graph, *little, "--json")
    assert done.returncode == 0, done.stderr
    digest = Manifest.read(odd_graph, GRAPH_SCHEMA).digest
    answer = json.loads(done.stdout)
    assert {name: answer[name] for name in ("home", "graph", "papers")} == {
        "home": str(home),
        "graph": digest,
        "papers": len(ODD_TEXTS),
    }
    assert done.stderr.splitlines()[-1] == f"next: gniah-load neo4j start --home '{home}'"
    assert server.status().state == "stopped"
    assert left_over(server) == []

    running = start(home)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(running.password_file))
    assert_same(running, odd_graph, tmp_path)
    with open_store(running.address) as store:
        assert store.manifest.digest == digest
    server.stop()

    said: list[str] = []
    again = import_in_bulk(odd_graph, server, LITTLE, report=said.append)
    assert said[-1] == f"{home}: holds this graph already; nothing to do"
    assert again.content["counts"] == {name: answer[name] for name in ("papers", "citations")}

    other = by_hand(tmp_path / "empty", [], [])
    assert import_in_bulk(other, server, LITTLE, force=True).content["counts"] == {"papers": 0, "citations": 0}
    assert server.status().state == "stopped"
    assert left_over(server) == []


@pytest.mark.neo4j
@pytest.mark.parametrize("kind", COUNTS)
def test_counts_come_from_the_rows(empty_neo4j: Running, kind: str) -> None:
    def operators(plan: dict[str, Any]) -> set[str]:
        return {plan["operatorType"].partition("@")[0]}.union(*map(operators, plan.get("children", [])))

    for statement in CONSTRAINTS:
        empty_neo4j.run(statement)
    with empty_neo4j.driver() as driver, driver.session() as session:
        found = operators(session.run(f"EXPLAIN {COUNTS[kind]}").consume().plan)
        kept = operators(session.run("EXPLAIN MATCH (p:Paper) RETURN count(p)").consume().plan)
    assert not {name for name in found if "CountStore" in name}
    assert "NodeCountFromCountStore" in kept


@pytest.mark.neo4j
def test_what_a_database_holds(empty_neo4j: Running, small_graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Manifest.read(small_graph, GRAPH_SCHEMA)
    counts = {"papers": 3, "citations": 1}
    place = ServerAddress(empty_neo4j.address, None)
    with connect(place, Credentials(empty_neo4j.user, empty_neo4j.password)) as connection:
        assert not holds_graph(connection, source, counts, "home")
        empty_neo4j.run("CREATE (:Note {text: 'mine'})")
        with pytest.raises(UsageFault, match="the database holds what is no graph of gniah") as caught:
            holds_graph(connection, source, counts, "home")
        assert "--force" in str(caught.value.remedy)
        empty_neo4j.run("MATCH (n) DELETE n")

        monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
        build_store(small_graph, empty_neo4j.address)
        assert holds_graph(connection, source, counts, "home")
        other = Manifest(GRAPH_SCHEMA, {"counts": counts})
        with pytest.raises(UsageFault, match=f"the database holds the graph {source.digest[:12]}$"):
            holds_graph(connection, other, counts, "home")
        for change in (
            "MATCH (p:Paper {corpusid: 3}) DETACH DELETE p",
            "MATCH (g:GniahGraph) SET g.state = 'importing' CREATE (:Paper {corpusid: 3, title: 'Paper 3'})",
        ):
            empty_neo4j.run(change)
            with pytest.raises(UsageFault, match="which is this one, and not the whole of it"):
                holds_graph(connection, source, counts, "home")


@pytest.mark.neo4j
@pytest.mark.slow
@pytest.mark.usefixtures("neo4j_server")
@pytest.mark.parametrize("release", list(RELEASES))
def test_the_files_are_for_a_server_of_ones_own_too(
    release: str, odd_graph: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        java = find_java(RELEASES[release].java)
    except MissingDependency as error:
        pytest.skip(f"Neo4j {release} is not tried: {error.message}")
    files = write_import_files(odd_graph, tmp_path / "a, b's (c+)")
    with server.held(Settings(release=release, java=java.program)) as held:
        assert imported(held.tool.run(*files.words(), folder=files.folder)) == files.expected
    running = start(server.home.folder, release=release, java=java.program)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(running.password_file))
    with pytest.raises(StoreError, match="the import of this graph was not finished"):
        open_store(running.address)
    build_store(odd_graph, running.address)
    assert_same(running, odd_graph, tmp_path)


def killed_at_the_import(graph: Path, server: Server) -> None:
    """Run the command until Neo4j's importer is at work, and kill them both."""
    command = [sys.executable, "-c", "from gniah.loader.cli import main; main()", "neo4j", "import", str(graph)]
    child = subprocess.Popen(
        [*command, "--home", str(server.home.folder), "--heap", "512m"], start_new_session=True, stderr=subprocess.PIPE
    )
    limit = time.monotonic() + 120
    while not server.home.has_graph:
        assert child.poll() is None, child.stderr and child.stderr.read()
        assert time.monotonic() < limit
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@pytest.mark.neo4j
@pytest.mark.slow
@pytest.mark.usefixtures("neo4j_server")
def test_an_import_that_was_killed_is_done_again(small_graph: Path, server: Server, tmp_path: Path) -> None:
    killed_at_the_import(small_graph, server)
    assert server.home.import_marker.is_file()
    assert "is not finished" in str(server.status().reason)
    with pytest.raises(StoreError, match="was not finished"):
        server.start(LITTLE)
    assert server.status().state == "stopped"
    # What stands in it now is nobody's, so another graph may take its place.
    other = by_hand(tmp_path / "other", [a_paper(5), a_paper(6)], [(5, 6, False, [])])
    with pytest.raises(StoreError, match="did not answer within 1 s"):
        import_in_bulk(other, server, replace(LITTLE, patience=1.0))
    assert server.status().state == "stopped"
    with pytest.raises(StoreError, match="was not finished"):
        server.start(LITTLE)
    # The importer has done its work by now; what is left is done by the next call.
    said: list[str] = []
    manifest = import_in_bulk(other, server, LITTLE, report=said.append)
    assert manifest.content["counts"] == {"papers": 2, "citations": 1}
    assert not [line for line in said if line.startswith("importing")]
    assert left_over(server) == []


@pytest.mark.neo4j
@pytest.mark.usefixtures("neo4j_server")
@pytest.mark.parametrize(
    ("papers", "edges", "message"),
    [
        ([a_paper(1), a_paper(2)], [(1, 2, True, []), (1, 77, True, [])], "77"),
        ([a_paper(1), a_paper(2), a_paper(1)], [(1, 2, True, [])], "'1' is defined more than once"),
    ],
)
def test_bad_rows_leave_an_empty_database(
    server: Server, tmp_path: Path, papers: Rows, edges: Rows, message: str
) -> None:
    graph = by_hand(tmp_path / "graph", papers, edges)
    with pytest.raises(InputError, match=message) as caught:
        import_in_bulk(graph, server, LITTLE)
    assert caught.value.remedy == "run gniah-load filter again"
    assert not server.home.has_graph
    assert left_over(server) == []


@pytest.mark.neo4j
@pytest.mark.usefixtures("neo4j_server")
def test_too_little_memory(gniah_load: Load, small_graph: Path, server: Server) -> None:
    done = gniah_load("neo4j", "import", small_graph, "--home", server.home.folder, "--heap", "24m")
    assert (done.returncode, done.stdout) == (7, "")
    assert "Neo4j got too little memory" in done.stderr
    assert not server.home.has_graph


@pytest.mark.neo4j
@pytest.mark.slow
@pytest.mark.usefixtures("neo4j_server")
@pytest.mark.parametrize("kilobytes", [100, 800])  # where Neo4j's importer stops, and where it would never end
def test_a_full_disk(small_graph: Path, tmp_path: Path, kilobytes: int) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        server = Server(place / "home")
        with pytest.raises(EnvironmentFault, match="the disk is full"):
            import_in_bulk(small_graph, server, LITTLE)
        assert not server.home.has_graph
        assert left_over(server) == []
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.neo4j
@pytest.mark.usefixtures("neo4j_server")
def test_data_that_another_neo4j_uses(small_graph: Path, server: Server, tmp_path: Path) -> None:
    """An importer whose command was killed goes on for a while; its database is not touched meanwhile."""
    graph = by_hand(tmp_path / "graph", [a_paper(1)], [])
    server.home.make()
    database = server.home.folder / "data" / "databases" / "neo4j"
    database.mkdir(parents=True)
    server.home.import_marker.write_text("{}", encoding="utf-8")
    lock = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(1, flush=True)"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{lock}; time.sleep(300)", str(database / "database_lock")], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(BusyError, match="uses these data"):
            import_in_bulk(graph, server, LITTLE)
        assert server.home.has_graph
        assert server.home.import_marker.is_file()
        # Whatever stood there without a marker goes on standing there without one.
        server.home.import_marker.unlink()
        with pytest.raises(BusyError, match="uses these data"):
            import_in_bulk(graph, server, LITTLE, force=True)
        assert server.home.has_graph
        assert not server.home.import_marker.exists()
    finally:
        holder.kill()
        holder.wait()
