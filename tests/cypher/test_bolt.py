"""The store on a real Neo4j server, beside the embedded one: what one answers, the other does."""

from __future__ import annotations

import datetime
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from neo4j_fixtures import Running

from gniah.cypher import bolt_import, build_store, open_store, store_holds
from gniah.cypher.queries import named_queries
from gniah.records.errors import BusyError, GniahError, InputError, StoreError, UsageFault
from gniah.records.manifests import Manifest
from gniah.records.streams import Stream

pytestmark = pytest.mark.neo4j
GraphWriter = Callable[..., Manifest]
UNUSED = "bolt://127.0.0.1:9"


@pytest.fixture
def server(empty_neo4j: Running, monkeypatch: pytest.MonkeyPatch) -> Running:
    """An empty server whose password the environment names."""
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
    return empty_neo4j


@pytest.fixture
def nasty_server(server: Running, nasty_graph: Path) -> Running:
    """The server with the graph of awkward titles."""
    build_store(nasty_graph, server.address)
    return server


def load(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from gniah.loader.cli import main; main()", *map(str, words)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


def everything(running: Running) -> tuple[list[Any], list[Any]]:
    """All nodes and relationships with all of their properties."""
    nodes = running.run("MATCH (n) RETURN labels(n) AS labels, properties(n) AS p ORDER BY labels, n.corpusid")
    edges = running.run(
        "MATCH (a)-[r]->(b) RETURN a.corpusid AS a, type(r) AS t, properties(r) AS p, b.corpusid AS b ORDER BY a, b"
    )
    return nodes, edges


# --- reading


def test_both_stores_give_the_same_graph(nasty_server: Running, nasty_store: str, nasty_graph: Path) -> None:
    with open_store(nasty_server.address) as far, open_store(nasty_store) as near:
        assert far.counts() == near.counts() == {"papers": 9, "citations": 10}
        assert far.manifest == near.manifest
        assert far.manifest.digest == Manifest.read(nasty_graph, "gniah/graph/1").digest
        ids = [9, 1, 2, 3, 4, 5, 6, 7, 2**62, 1]
        assert far.papers(ids) == near.papers(ids)
        for direction in ("cites", "cited_by"):
            assert far.neighbours([*ids, 77], direction) == near.neighbours([*ids, 77], direction)
        for one, other in zip(
            (*far.edges(), *far.usable_papers()), (*near.edges(), *near.usable_papers()), strict=True
        ):
            assert one.dtype == other.dtype == np.int64
            assert one.tolist() == other.tolist()
        assert far.address == nasty_server.address
        assert far.batch > near.batch == 1


def test_every_property_is_that_of_the_parquet_file(nasty_server: Running, nasty_graph: Path) -> None:
    rows = duckdb.execute("SELECT * FROM read_parquet(?)", [str(nasty_graph / "papers.parquet")]).fetchall()
    names = ("corpusid", "title", "title_key", "authors", "publicationdate", "venue", "arxiv_id")
    found = [row["p"] for row in nasty_server.run("MATCH (p:Paper) RETURN properties(p) AS p ORDER BY p.corpusid")]
    for properties in found:
        properties["publicationdate"] = properties["publicationdate"].to_native()
    expected = [{k: v for k, v in zip(names, row, strict=True) if v not in (None, [])} for row in sorted(rows)]
    assert found == expected
    edges = duckdb.execute(
        "SELECT citing, cited, isinfluential FROM read_parquet(?) ORDER BY ALL",
        [str(nasty_graph / "citations.parquet")],
    )
    text = "MATCH (a)-[c:CITES]->(b) RETURN a.corpusid AS a, b.corpusid AS b, c.isinfluential AS i ORDER BY a, b"
    assert [tuple(row.values()) for row in nasty_server.run(text)] == edges.fetchall()


def test_stores_agree_on_a_larger_graph(server: Running, tmp_path: Path, graph_writer: GraphWriter) -> None:
    draw = Stream("stores", 7)
    papers = [{"corpusid": n * 7 - 900, "title": f"T {n % 250}", "authors": ["A"] if n % 9 else []} for n in range(300)]
    ids = [row["corpusid"] for row in papers]
    pairs = {(draw.choice(ids), draw.choice(ids[:40])) for _ in range(900)}
    edges = sorted((one, other) for one, other in pairs if one != other)
    graph_writer(tmp_path / "graph", papers, edges)
    build_store(tmp_path / "graph", tmp_path / "store")
    build_store(tmp_path / "graph", server.address)
    with open_store(server.address) as far, open_store(tmp_path / "store") as near:
        assert [list(map(int, column)) for column in far.edges()] == [list(map(int, column)) for column in near.edges()]
        assert [c.tolist() for c in far.usable_papers()] == [c.tolist() for c in near.usable_papers()]
        some = [ids[place] for place in draw.without_repeats(len(ids))]
        for direction in ("cites", "cited_by"):
            assert far.neighbours(some, direction) == near.neighbours(some, direction)
        assert far.papers(some) == near.papers(some)


def test_named_queries_of_the_citation_graph_agree(nasty_server: Running, nasty_store: str) -> None:
    given = {"id": 1, "words": "quoted"}
    with open_store(nasty_server.address) as far, open_store(nasty_store) as near:
        for name in ("neighbours", "paper", "hubs", "degree-histogram", "mutual-citations", "published", "titles"):
            takes = {parameter.name for parameter in named_queries()[name].parameters}
            values = {key: value for key, value in given.items() if key in takes}
            one, other = far.query(name, values), near.query(name, values)
            assert one.columns == other.columns
            assert one.rows == other.rows, name
            assert one.rows, name


def test_unknown_ids(nasty_server: Running) -> None:
    with open_store(nasty_server.address) as store:
        assert store.neighbours([12345], "cites") == [[]]
        with pytest.raises(StoreError, match=r"there is no paper 12345$"):
            store.papers([1, 12345])
        for large in (2**63, -(2**63) - 1):
            with pytest.raises(StoreError):
                store.papers([large])
        assert store.papers([]) == store.neighbours([], "cites") == []


# --- a person's own statements


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (p:Paper) SET p.title = 'x'",
        "MATCH (n) DETACH DELETE n",
        "MATCH (p:Paper {corpusid: 1}) CREATE (p)-[:CITES]->(p)",
        "UNWIND [1, 2] AS n MERGE (:Paper {corpusid: n + 100})",
        "MATCH (p:Paper) CALL (p) { SET p.title = 'x' } IN TRANSACTIONS",
        "CALL { CREATE (:Paper {corpusid: 5000}) }",
        "WITH 1 AS x FOREACH (n IN [1] | CREATE (:Paper {corpusid: 5000}))",
        "MATCH (p:Paper) REMOVE p.title",
        "PROFILE MATCH (n) DETACH DELETE n",
        "CREATE (:Paper {corpusid: 5000})",
        "DROP CONSTRAINT gniah_paper",
        "LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row",
        "MATCH (p:Paper) LOAD CSV FROM 'http://127.0.0.1:1/' AS row RETURN row",
        "CALL db.createLabel('X')",
        "CALL `db`.`createLabel`('X')",
        "CALL db . createLabel('X')",
        "CALL dbms.setConfigValue('a', 'b')",
        "CALL dbms.listConfig()",
        "CALL gds.graph.project('x', '*', '*')",
        "CALL gds.wcc.write('x', {writeProperty: 'y'})",
        "CALL gds.graph.drop('x')",
        "RETURN 1; MATCH (n) DETACH DELETE n",
        "STOP DATABASE neo4j",
        "ALTER USER neo4j SET PASSWORD 'x'",
        "SHOW USERS",
        "CALL",
    ],
)
def test_what_would_change_or_reach_beyond_the_graph_is_refused(nasty_server: Running, statement: str) -> None:
    before = everything(nasty_server)
    with open_store(nasty_server.address) as store, pytest.raises(StoreError):
        store.cypher(statement)
    assert everything(nasty_server) == before


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("MATCH (p:Paper {corpusid: 1}) RETURN size(p.authors)", ((2,),)),
        ("MATCH (p:Paper {corpusid: 4}) RETURN p.publicationdate", ((datetime.date(2026, 5, 31),),)),
        ("RETURN 'CALL db.createLabel() ; DELETE'", (("CALL db.createLabel() ; DELETE",),)),
        ("MATCH (p:Paper) CALL (p) { RETURN 1 AS one } RETURN sum(one);", ((9,),)),
        ("CALL db.labels() YIELD label WHERE label = 'Paper' RETURN label", (("Paper",),)),
        ("CALL gds.graph.list() YIELD graphName RETURN count(*)", ((0,),)),
        ("MATCH (p:Paper {corpusid: 9}) RETURN p {.corpusid, .title}", (({"corpusid": 9, "title": "Alone"},),)),
        ("MATCH (a {corpusid: 7})-[c]->(b) RETURN c, [b.corpusid]", (({"isinfluential": False}, [2**62]),)),
        ("MATCH p = (a {corpusid: 5})-[c]->(b) RETURN [n IN nodes(p) | n.corpusid]", (([5, 6],),)),
        ("RETURN duration('P1D'), point({x: 1, y: 2}).x, null, 1.5", ((str, 1.0, None, 1.5),)),
    ],
)
def test_reading_statements_give_plain_values(
    nasty_server: Running, statement: str, rows: tuple[tuple[object, ...], ...]
) -> None:
    with open_store(nasty_server.address) as store:
        found = store.cypher(statement).rows
    expected = tuple(
        tuple(a if b is str else b for a, b in zip(*pair, strict=True)) for pair in zip(found, rows, strict=True)
    )
    assert found == expected


def test_a_path_is_the_list_of_its_nodes(nasty_server: Running) -> None:
    with open_store(nasty_server.address) as store:
        path = store.cypher("MATCH p = (:Paper {corpusid: 5})-[:CITES]->(:Paper) RETURN p").rows[0][0]
    assert [node["corpusid"] for node in path] == [5, 6]


def test_a_parameter_is_a_value_whatever_it_holds(nasty_server: Running) -> None:
    before = everything(nasty_server)
    with open_store(nasty_server.address) as store:
        for text in ("' OR 1=1 //", "`}) DETACH DELETE n //", '$id {x} \\u0027 "', "MATCH (n) DETACH DELETE n"):
            assert store.cypher("RETURN $text", {"text": text}).rows == ((text,),)
            assert store.query("titles", {"words": text}).rows == ()
    assert everything(nasty_server) == before


@pytest.mark.parametrize("statement", ["MATCH (p:Paper RETURN p", "RETURN nothing", "MATCH (p) RETURN 1 / 0"])
def test_a_statement_that_fails_is_a_store_error_of_one_line(nasty_server: Running, statement: str) -> None:
    with open_store(nasty_server.address) as store, pytest.raises(StoreError) as caught:
        store.cypher(statement)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 600


# --- importing


def test_importing_again_changes_nothing(nasty_server: Running, nasty_graph: Path) -> None:
    before = everything(nasty_server)
    done = load("import", nasty_graph, "--store", nasty_server.address)
    assert (done.returncode, done.stderr.count("nothing to do")) == (0, 1)
    held = store_holds(nasty_server.address, Manifest.read(nasty_graph, "gniah/graph/1"))
    assert held is not None
    assert held.content["counts"] == {"papers": 9, "citations": 10}
    done = load("import", nasty_graph, "--store", nasty_server.address, "--force")
    assert done.returncode == 0, done.stderr
    assert everything(nasty_server) == before


def test_another_graph_is_replaced_only_when_forced(
    nasty_server: Running, tmp_path: Path, graph_writer: GraphWriter
) -> None:
    graph_writer(tmp_path / "graph", [{"corpusid": 1, "title": "Only one"}], [])
    before = everything(nasty_server)
    with pytest.raises(UsageFault, match="holds another graph"):
        build_store(tmp_path / "graph", nasty_server.address)
    assert everything(nasty_server) == before
    nasty_server.run("CREATE (:Note {text: 'of the user'})")
    build_store(tmp_path / "graph", nasty_server.address, force=True)
    with open_store(nasty_server.address) as store:
        assert store.counts() == {"papers": 1, "citations": 0}
    assert nasty_server.run("MATCH (n:Note) RETURN n.text AS text") == [{"text": "of the user"}]


@pytest.mark.parametrize("force", [False, True])
def test_papers_that_gniah_did_not_write_are_never_touched(server: Running, nasty_graph: Path, force: bool) -> None:
    server.run("CREATE (:Paper {name: 'of the user'})")
    with pytest.raises(UsageFault, match="did not write"):
        build_store(nasty_graph, server.address, force=force)
    assert server.run("MATCH (n) RETURN n.name AS name") == [{"name": "of the user"}]


def test_an_empty_graph_can_be_imported(server: Running, tmp_path: Path, graph_writer: GraphWriter) -> None:
    graph_writer(tmp_path / "graph", [], [])
    build_store(tmp_path / "graph", server.address)
    with open_store(server.address) as store:
        assert store.counts() == {"papers": 0, "citations": 0}
        assert [len(column) for column in (*store.edges(), *store.usable_papers())] == [0, 0, 0, 0]


@pytest.mark.parametrize("edges", [[(1, 3)], [(3, 1)]])
def test_a_dangling_citation_is_bad_input_and_leaves_no_store(
    server: Running, tmp_path: Path, graph_writer: GraphWriter, edges: list[tuple[int, int]]
) -> None:
    graph_writer(tmp_path / "graph", [{"corpusid": n, "title": f"T {n}"} for n in (1, 2)], edges)
    with pytest.raises(InputError, match=r"citations\.parquet: 1 of rows 1 to 1 have an end that is no paper"):
        build_store(tmp_path / "graph", server.address)
    with pytest.raises(StoreError, match="was not finished"):
        open_store(server.address)


@pytest.mark.parametrize("name", ["papers.parquet", "citations.parquet"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_damaged_files_are_bad_input(
    server: Running, tmp_path: Path, nasty_graph: Path, name: str, damage: str
) -> None:
    graph = tmp_path / "graph"
    graph.mkdir()
    for path in nasty_graph.iterdir():
        (graph / path.name).write_bytes(path.read_bytes())
    if damage == "cut":
        (graph / name).write_bytes((graph / name).read_bytes()[:100])
    else:
        (graph / name).unlink()
    with pytest.raises(InputError, match=name):
        build_store(graph, server.address)
    build_store(nasty_graph, server.address)  # the same graph, whole: it goes on
    with open_store(server.address) as store:
        assert store.counts() == {"papers": 9, "citations": 10}


def test_fewer_rows_than_counted_are_told(server: Running, tmp_path: Path, graph_writer: GraphWriter) -> None:
    graph_writer(tmp_path / "graph", [{"corpusid": 1, "title": "T"}], [], counts={"papers": 2, "citations": 0})
    with pytest.raises(StoreError, match="holds 1 papers and 0 citations after the import, and the manifest"):
        build_store(tmp_path / "graph", server.address)


def test_a_second_importer_is_refused(server: Running, nasty_graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = bolt_import._rows

    def overtaken(*given: Any) -> Iterator[Any]:
        for batch in rows(*given):
            server.run("MATCH (g:GniahGraph) SET g.papers_done = 3")
            yield batch

    monkeypatch.setattr(bolt_import, "_rows", overtaken)
    with pytest.raises(BusyError, match="another process imports"):
        build_store(nasty_graph, server.address)


def test_a_batch_that_is_sent_twice_changes_nothing(
    server: Running, nasty_graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = bolt_import._write

    def twice(*given: Any) -> None:
        write(*given)
        write(*given)

    monkeypatch.setattr(bolt_import, "_write", twice)
    build_store(nasty_graph, server.address)
    with open_store(server.address) as store:
        assert store.counts() == {"papers": 9, "citations": 10}


@pytest.fixture(scope="module")
def wide_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60,000 papers and as many citations: some seconds of importing."""
    folder = tmp_path_factory.mktemp("wide") / "graph"
    folder.mkdir()
    duckdb.execute(
        "COPY (SELECT range AS corpusid, 'T ' || range AS title, 't ' || range AS title_key, ['A'] AS authors, "
        "DATE '2026-04-01' AS publicationdate, NULL::VARCHAR AS venue, NULL::VARCHAR AS arxiv_id FROM range(60000)) "
        f"TO '{folder}/papers.parquet'"
    )
    duckdb.execute(
        "COPY (SELECT range AS citing, range // 2 AS cited, range % 3 = 0 AS isinfluential, [range] AS citationids "
        f"FROM range(1, 60000)) TO '{folder}/citations.parquet'"
    )
    Manifest("gniah/graph/1", {"counts": {"papers": 60000, "citations": 59999}, "cutoff": "2026-04-01"}).write(folder)
    return folder


def await_rows(running: Running, process: subprocess.Popen[str], least: int) -> int:
    """Wait until an import has written so many papers."""
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        rows = running.run("MATCH (g:GniahGraph) RETURN g.papers_done AS done, g.state AS state")
        if rows and rows[0]["done"] >= least:
            assert rows[0]["state"] == "importing"
            return int(rows[0]["done"])
        assert process.poll() is None, "the import ended before it could be stopped"
    raise AssertionError("the import did not begin")


def is_the_wide_graph(address: str) -> bool:
    with open_store(address) as store:
        citing, cited = store.edges()
        return (
            store.counts() == {"papers": 60000, "citations": 59999}
            and citing.tolist() == list(range(1, 60000))
            and cited.tolist() == [one // 2 for one in range(1, 60000)]
        )


@pytest.mark.slow
def test_a_killed_import_goes_on_where_it_was(server: Running, wide_graph: Path) -> None:
    words = [sys.executable, "-c", "from gniah.loader.cli import main; main()"]
    process = subprocess.Popen([*words, "import", str(wide_graph), "--store", server.address], text=True)
    done = await_rows(server, process, 10_000)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(StoreError, match=r"was not finished") as caught:
        open_store(server.address)
    assert "goes on from there" in str(caught.value.remedy)
    went_in: list[int] = []
    build_store(wide_graph, server.address, advance=went_in.append)
    assert went_in[0] >= done
    assert sum(went_in) == 60000 + 59999
    assert is_the_wide_graph(server.address)


@pytest.mark.slow
def test_a_server_that_dies_during_an_import_is_told_and_the_next_call_completes(
    server: Running, wide_graph: Path
) -> None:
    words = [sys.executable, "-c", "from gniah.loader.cli import main; main()"]
    process = subprocess.Popen(
        [*words, "import", str(wide_graph), "--store", server.address], stderr=subprocess.PIPE, text=True
    )
    await_rows(server, process, 5_000)
    pid = server.server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    said = process.communicate(timeout=180)[1].strip().splitlines()
    assert process.returncode == 5, said
    assert server.address in said[-2]
    assert "no Neo4j answers" in said[-2]
    assert "run the same command again" in said[-1]
    server.restart()
    done = load("import", wide_graph, "--store", server.address)
    assert done.returncode == 0, done.stderr
    assert is_the_wide_graph(server.address)


# --- what goes wrong before the first question


def test_a_wrong_password_is_told_and_not_repeated(nasty_server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD", "hunter2")
    with pytest.raises(StoreError, match="does not take this password for the user neo4j") as caught:
        open_store(nasty_server.address)
    assert "GNIAH_NEO4J_PASSWORD" in str(caught.value.remedy)
    done = load("stats", "--store", nasty_server.address)
    assert done.returncode == 5
    assert "hunter2" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2


def test_nobody_at_the_address(server: Running) -> None:
    done = load("stats", "--store", UNUSED)
    assert done.returncode == 5
    assert f"{UNUSED}: no Neo4j answers over Bolt here" in done.stderr
    assert "gniah-load neo4j start" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2


def test_a_name_that_no_machine_has(server: Running) -> None:
    done = load("stats", "--store", "bolt://no-such-host.invalid:7687")
    assert done.returncode == 5
    assert "no-such-host.invalid" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2


def test_something_else_that_listens(server: Running) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(4):
                try:
                    caller, _address = listening.accept()
                except OSError:
                    return
                with caller:
                    caller.recv(1024)
                    caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(StoreError) as caught:
            open_store(f"bolt://127.0.0.1:{listening.getsockname()[1]}")
    assert "\n" not in caught.value.message


def test_a_database_that_is_not_there(nasty_server: Running) -> None:
    with pytest.raises(StoreError, match="there is no such database"):
        open_store(f"{nasty_server.address}/elsewhere")
    with open_store(f"{nasty_server.address}/neo4j") as store:
        assert store.counts()["papers"] == 9


def test_a_database_without_a_graph(server: Running) -> None:
    with pytest.raises(StoreError, match="holds no citation graph of gniah") as caught:
        open_store(server.address)
    assert f"gniah-load import GRAPH --store {server.address}" in str(caught.value.remedy)


def test_a_graph_of_a_newer_gniah(nasty_server: Running) -> None:
    nasty_server.run("MATCH (g:GniahGraph) SET g.schema = 'gniah/neo4j-graph/2'")
    with pytest.raises(GniahError, match="newer version of gniah"):
        open_store(nasty_server.address)


def test_without_a_password_the_variables_are_named(nasty_server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD_FILE")
    done = load("stats", "--store", nasty_server.address)
    assert done.returncode == 2
    assert "GNIAH_NEO4J_PASSWORD_FILE" in done.stderr
