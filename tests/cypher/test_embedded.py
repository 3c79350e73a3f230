from __future__ import annotations

import datetime
import hashlib
import json
import os
import random  # noqa: TID251  (when to kill is no draw of a data set)
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gniah.cypher import build_store, open_store
from gniah.cypher.embedded import engine_version
from gniah.cypher.store import Direction, store_holds
from gniah.records.errors import BusyError, EnvironmentFault, InputError, StoreError, UsageFault
from gniah.records.files import locked_place
from gniah.records.manifests import Manifest
from gniah.records.papers import Paper

LARGE = 2**62


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def tree_digest(folder: str) -> str:
    result = hashlib.sha256()
    for path in sorted(Path(folder).iterdir()):
        result.update(path.name.encode() + path.read_bytes())
    return result.hexdigest()


# --- what the protocol gives


def test_counts(nasty_store: str) -> None:
    with open_store(nasty_store) as store:
        assert store.counts() == {"papers": 9, "citations": 10}
        assert store.address == nasty_store


def test_manifest_is_that_of_the_graph(nasty_store: str, nasty_graph: Path) -> None:
    written = Manifest.read(nasty_graph, "gniah/graph/1")
    with open_store(nasty_store) as store:
        assert store.manifest.schema == "gniah/graph/1"
        assert store.manifest.content == written.content
        assert store.manifest.digest == written.digest


def test_neighbours_are_sorted_in_both_directions_and_in_the_order_asked(nasty_store: str) -> None:
    with open_store(nasty_store) as store:
        assert store.neighbours([3, 1, 9, LARGE, 3], "cites") == [[1, 2, 4], [2], [], [1], [1, 2, 4]]
        assert store.neighbours([1, 3, 9, LARGE, 6], "cited_by") == [[2, 3, 4, LARGE], [4], [], [7], [5]]
        assert store.neighbours([], "cites") == []


def test_mutual_citations_stand_in_both_directions(nasty_store: str) -> None:
    with open_store(nasty_store) as store:
        for direction in ("cites", "cited_by"):
            found = store.neighbours([1, 2], direction)  # type: ignore[arg-type]
            assert 2 in found[0]
            assert 1 in found[1]


def test_an_unknown_id_has_no_neighbours_and_no_paper(nasty_store: str) -> None:
    with open_store(nasty_store) as store:
        assert store.neighbours([8, -1, 0], "cites") == [[], [], []]
        for identifier in (8, -1, 0):
            with pytest.raises(StoreError, match=f"there is no paper {identifier}$"):
                store.papers([1, identifier])


@pytest.mark.parametrize("identifier", [2**63, -(2**63) - 1, 10**30])
def test_an_id_that_is_no_int64_is_a_store_error(nasty_store: str, identifier: int) -> None:
    with open_store(nasty_store) as store:
        with pytest.raises(StoreError, match=f"paper {identifier}: "):
            store.papers([identifier])
        with pytest.raises(StoreError, match=f"paper {identifier}: "):
            store.neighbours([identifier], "cites")
        assert store.neighbours([1], "cites") == [[2]]


def test_papers_have_every_value_as_it_was_written(nasty_store: str, nasty_papers: tuple[dict[str, Any], ...]) -> None:
    from gniah.records.titles import normalised_title

    expected = [
        Paper(
            row["corpusid"],
            row["title"],
            normalised_title(row["title"]),
            tuple(row["authors"]),
            datetime.date.fromisoformat(row.get("date", "2026-04-01")),
            row.get("venue"),
            row.get("arxiv_id"),
        )
        for row in nasty_papers
    ]
    with open_store(nasty_store) as store:
        assert store.papers([paper.corpusid for paper in expected]) == expected
        assert store.papers([9, 1, 9]) == [expected[8], expected[0], expected[8]]
        assert store.papers([]) == []


def test_edges_are_sorted_and_equal_the_parquet_file(
    nasty_store: str, nasty_graph: Path, nasty_edges: tuple[tuple[int, int], ...], tmp_path: Path
) -> None:
    copy = tmp_path / "citations.parquet"
    shutil.copy(nasty_graph / "citations.parquet", copy)
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT citing, cited FROM read_parquet(?) ORDER BY citing, cited", [str(copy)]
        ).fetchall()
    with open_store(nasty_store) as store:
        citing, cited = store.edges()
    assert (citing.dtype, cited.dtype) == (np.int64, np.int64)
    assert list(zip(citing.tolist(), cited.tolist(), strict=True)) == rows == sorted(nasty_edges)


def test_usable_papers_leave_out_those_without_authors_or_without_a_normalised_title(nasty_store: str) -> None:
    with open_store(nasty_store) as store:
        usable, titles = store.usable_papers()
    assert (usable.dtype, titles.dtype) == (np.int64, np.int64)
    assert usable.tolist() == [1, 2, 3, 4, 9, LARGE]


def test_usable_papers_are_those_of_the_records_and_equal_titles_have_equal_numbers(
    nasty_store: str, nasty_papers: tuple[dict[str, Any], ...]
) -> None:
    with open_store(nasty_store) as store:
        papers = sorted(store.papers([row["corpusid"] for row in nasty_papers]), key=lambda paper: paper.corpusid)
        ids, titles = store.usable_papers()
    usable = [paper for paper in papers if paper.usable]
    assert ids.tolist() == [paper.corpusid for paper in usable]
    least: dict[str, int] = {}
    assert titles.tolist() == [least.setdefault(paper.title_key, paper.corpusid) for paper in usable]


def test_an_empty_graph_is_a_store(tmp_path: Path, graph_writer: Callable[..., Manifest]) -> None:
    graph_writer(tmp_path / "graph", [], [])
    build_store(tmp_path / "graph", str(tmp_path / "store"))
    with open_store(str(tmp_path / "store")) as store:
        assert store.counts() == {"papers": 0, "citations": 0}
        assert [part.tolist() for part in store.edges()] == [[], []]
        assert [part.tolist() for part in store.usable_papers()] == [[], []]
        assert store.neighbours([1], "cites") == [[]]


# --- against a plain graph


def compare(store: Any, ids: list[int], edges: set[tuple[int, int]]) -> None:
    cites: dict[int, list[int]] = {identifier: [] for identifier in ids}
    cited_by: dict[int, list[int]] = {identifier: [] for identifier in ids}
    for one, other in sorted(edges):
        cites[one].append(other)
        cited_by[other].append(one)
    expected: dict[Direction, dict[int, list[int]]] = {"cites": cites, "cited_by": cited_by}
    for direction, lists in expected.items():
        assert store.neighbours(ids, direction) == [sorted(lists[identifier]) for identifier in ids]
    assert store.counts() == {"papers": len(ids), "citations": len(edges)}
    citing, cited = store.edges()
    assert list(zip(citing.tolist(), cited.tolist(), strict=True)) == sorted(edges)
    mutual = [(one, other) for one, other in sorted(edges) if one < other and (other, one) in edges]
    assert [row[:2] for row in store.query("mutual-citations", {"limit": 10**6}).rows] == mutual
    degrees = Counter(other for _, other in edges)
    hubs = sorted(degrees.items(), key=lambda item: (-item[1], item[0]))
    assert [(row[0], row[2]) for row in store.query("hubs", {"limit": 10**6}).rows] == hubs


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=14),
    chosen=st.sets(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=60),
)
def test_agrees_with_a_plain_graph(
    tmp_path_factory: pytest.TempPathFactory,
    graph_writer: Callable[..., Manifest],
    ids: list[int],
    chosen: set[tuple[int, int]],
) -> None:
    edges = {(ids[a % len(ids)], ids[b % len(ids)]) for a, b in chosen if a % len(ids) != b % len(ids)}
    place = tmp_path_factory.mktemp("plain")
    graph_writer(place / "graph", [{"corpusid": number, "title": f"T {number}"} for number in ids], sorted(edges))
    build_store(place / "graph", str(place / "store"))
    with open_store(str(place / "store")) as store:
        compare(store, ids, edges)


def test_agrees_with_a_plain_graph_of_some_thousand_papers(
    tmp_path: Path, graph_writer: Callable[..., Manifest]
) -> None:
    from gniah.records.streams import Stream

    stream = Stream("test", "large")
    ids = sorted({stream.below(2**40) for _ in range(2500)})
    edges = {(stream.choice(ids), ids[min(stream.below(len(ids)), stream.below(len(ids)))]) for _ in range(6000)}
    edges = {(one, other) for one, other in edges if one != other}
    with duckdb.connect() as connection:
        graph_writer(
            tmp_path / "graph",
            [{"corpusid": 0, "title": "x"}],
            [],
            counts={"papers": len(ids), "citations": len(edges)},
        )
        connection.execute("CREATE TABLE ids AS SELECT unnest(?::BIGINT[]) AS corpusid", [ids]).fetchall()
        connection.sql(
            "SELECT corpusid, 'T' AS title, 't' AS title_key, ['A'] AS authors, DATE '2026-04-01' AS publicationdate, "
            "NULL::VARCHAR AS venue, NULL::VARCHAR AS arxiv_id FROM ids"
        ).write_parquet(str(tmp_path / "graph" / "papers.parquet"))
        connection.execute(
            "CREATE TABLE edges AS SELECT unnest(?::BIGINT[]) AS citing, unnest(?::BIGINT[]) AS cited",
            [[one for one, _ in sorted(edges)], [other for _, other in sorted(edges)]],
        ).fetchall()
        connection.sql("SELECT citing, cited, false AS isinfluential FROM edges").write_parquet(
            str(tmp_path / "graph" / "citations.parquet")
        )
    build_store(tmp_path / "graph", str(tmp_path / "store"))
    with open_store(str(tmp_path / "store")) as store:
        compare(store, ids, edges)


# --- several readers


# A process of its own cannot import a test module, so what every reader does is a text.
READ_ALL = """
import json, sys
from gniah.cypher import open_store
from gniah.records.canonical import digest

with open_store(sys.argv[1]) as store:
    ids = [int(word) for word in sys.argv[2:]]
    for _ in range(20):
        value = [
            store.neighbours(ids, "cites"),
            store.neighbours(ids, "cited_by"),
            [str(paper) for paper in store.papers(ids)],
            [part.tolist() for part in store.edges()],
        ]
print(digest([json.dumps(part) for part in value]))
"""


def start_reader(address: str) -> subprocess.Popen[str]:
    ids = [str(identifier) for identifier in (1, 2, 3, 4, 5, 6, 7, 9, LARGE)]
    return subprocess.Popen(
        [sys.executable, "-c", READ_ALL, address, *ids], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def test_several_processes_read_at_once_and_agree(nasty_store: str) -> None:
    readers = [start_reader(nasty_store) for _ in range(3)]
    said = [reader.communicate(timeout=120)[0] for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0, 0]
    assert len(set(said)) == 1
    assert len(said[0].strip()) == 64


def test_reading_changes_no_file(nasty_store: str) -> None:
    before = tree_digest(nasty_store)
    assert start_reader(nasty_store).wait(timeout=120) == 0
    with open_store(nasty_store) as store:
        store.cypher("MATCH (p:Paper) RETURN count(*)")
    assert tree_digest(nasty_store) == before


# --- statements of one's own


def test_a_reading_statement_gives_columns_and_rows(nasty_store: str) -> None:
    with open_store(nasty_store) as store:
        table = store.cypher("MATCH (p:Paper) WHERE p.corpusid < 3 RETURN p.corpusid AS id, p.venue ORDER BY id")
        assert (table.columns, table.rows) == (("id", "p.venue"), ((1, None), (2, "V'")))
        assert list(table.dicts()) == [{"id": 1, "p.venue": None}, {"id": 2, "p.venue": "V'"}]


def test_a_parameter_is_a_value_whatever_it_holds(nasty_store: str) -> None:
    before = tree_digest(nasty_store)
    with open_store(nasty_store) as store:
        for text in (
            "' OR 1 = 1 //",
            '" }) DETACH DELETE p //',
            "x'; COPY (MATCH (p:Paper) RETURN p.title) TO 'out.csv'; //",
            "$id` {} \\' \\",
            "\x00",
        ):
            assert store.cypher("MATCH (p:Paper) WHERE p.title = $text RETURN p.corpusid", {"text": text}).rows == ()
            assert store.cypher("RETURN $text AS text", {"text": text}).rows == ((text,),)
            assert store.query("titles", {"words": text}).rows == ()
        title = store.papers([1])[0].title
        assert store.cypher("MATCH (p:Paper) WHERE p.title = $t RETURN p.corpusid", {"t": title}).rows == ((1,),)
        assert store.counts() == {"papers": 9, "citations": 10}
    assert tree_digest(nasty_store) == before


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (p:Paper) SET p.title = 'x'",
        "MATCH (p:Paper) DETACH DELETE p",
        "MATCH (a:Paper {corpusid: 1}), (b:Paper {corpusid: 9}) CREATE (a)-[:CITES]->(b)",
        "MATCH (p:Paper {corpusid: 1}) REMOVE p.title",
        "MATCH (p:Paper) MERGE (q:Paper {corpusid: 77})",
        "UNWIND [77] AS x CREATE (p:Paper {corpusid: x}) RETURN p",
        "WITH 77 AS x CREATE (p:Paper {corpusid: x})",
        "CREATE (p:Paper {corpusid: 77})",
        "MERGE (p:Paper {corpusid: 77})",
        "DROP TABLE CITES",
        "ALTER TABLE Paper DROP title",
        "CHECKPOINT",
        "BEGIN TRANSACTION",
    ],
)
def test_a_write_is_refused(nasty_store: str, statement: str) -> None:
    before = tree_digest(nasty_store)
    with open_store(nasty_store) as store:
        with pytest.raises(StoreError):
            store.cypher(statement)
        assert store.counts() == {"papers": 9, "citations": 10}
    assert tree_digest(nasty_store) == before


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (MATCH (p:Paper) RETURN p.corpusid) TO 'OUT'",
        "PROFILE COPY (MATCH (p:Paper) RETURN p.corpusid) TO 'OUT'",
        "EXPLAIN COPY (MATCH (p:Paper) RETURN p.corpusid) TO 'OUT'",
        "profile/**/copy (MATCH (p:Paper) RETURN p.corpusid) to 'OUT'",
        "MATCH (p:Paper) RETURN p.corpusid; COPY (MATCH (p:Paper) RETURN p.corpusid) TO 'OUT'",
        "RETURN '\\';' AS a; COPY (MATCH (p:Paper) RETURN p.corpusid) TO 'OUT'",
        "// harmless\nCOPY (MATCH (p:Paper) RETURN p.corpusid) TO 'OUT'",
        "PROFILE COPY Paper FROM 'IN'",
        "LOAD FROM 'IN' (file_format='csv') RETURN *",
        "load from 'IN' (file_format='csv') return *",
        "WITH 1 AS x LOAD FROM 'IN' (file_format='csv') RETURN *",
        "MATCH (p:Paper) WHERE p.corpusid = 1LOAD FROM 'IN' (file_format='csv') RETURN *",
        "MATCH (p:Paper)LOAD FROM 'IN' (file_format='csv') RETURN *",
        "RETURN 1 UNION ALL LOAD FROM 'IN' (file_format='csv') RETURN count(*)",
        "WITH 1 AS x /* ' */ LOAD FROM 'IN' (file_format='csv') RETURN * // '",
        "LOAD EXTENSION 'IN'",
        "INSTALL json",
        "ATTACH 'IN' AS other (dbtype lbug)",
        "EXPORT DATABASE 'OUT'",
        "IMPORT DATABASE 'IN'",
        "PROFILE EXPORT DATABASE 'OUT'",
        "PROFILE INSTALL json",
        "PROFILE ATTACH 'IN' AS other (dbtype lbug)",
        "CALL read_csv_serial('IN') RETURN *",
        "CALL READ_PARQUET('IN') RETURN *",
        "CALL `read_parquet`('IN') RETURN *",
        "CALL project_graph_cypher('g', 'COPY (RETURN 1) TO \"OUT\"')",
        "CALL home_directory='IN'",
        "CALL threads = 4",
        "RETURN 1; RETURN 2",
        "",
        " ;",
    ],
)
def test_a_statement_that_reaches_beyond_the_graph_is_refused_before_the_engine_sees_it(
    nasty_store: str, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "in.csv").write_text("secret\n", encoding="utf-8")
    text = statement.replace("OUT", str(tmp_path / "out.csv")).replace("IN'", f"{tmp_path / 'in.csv'}'")
    with open_store(nasty_store) as store:
        with pytest.raises(StoreError) as caught:
            store.cypher(text)
        assert store.counts() == {"papers": 9, "citations": 10}
    assert "secret" not in str(caught.value)
    assert names(tmp_path) == ["in.csv"]


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("RETURN 'copy; LOAD FROM' AS `load`", (("copy; LOAD FROM",),)),
        ('RETURN "it\'s; // no comment" AS a;', (("it's; // no comment",),)),
        ("// a comment with COPY; and 'a quote\nRETURN 1 AS a", ((1,),)),
        ("/* LOAD FROM 'x' */ RETURN 1 AS a", ((1,),)),
        ("optional match (p:Paper {corpusid: 8}) return p.title", ((None,),)),
        ("UNWIND [3, 1] AS x RETURN x ORDER BY x", ((1,), (3,))),
        ("CALL db_version() RETURN *", (("0.22.0",),)),
        ("CALL show_tables() RETURN name ORDER BY name", (("CITES",), ("Paper",))),
        ("MATCH (p:Paper {corpusid: 1}) RETURN COUNT { MATCH (p)<-[:CITES]-(:Paper) } AS n", ((4,),)),
    ],
)
def test_quoted_words_comments_and_describing_calls_are_let_through(
    nasty_store: str, statement: str, rows: tuple[tuple[object, ...], ...]
) -> None:
    with open_store(nasty_store) as store:
        assert store.cypher(statement).rows == rows


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("MATCH (p:Paper RETURN p", "Parser exception"),
        ("MATCH (p:Person) RETURN p", "Person"),
        ("RETURN 1 / 0", "Divide by zero"),
        ("MATCH (p:Paper) RETURN nothing", "nothing is not in scope"),
    ],
)
def test_a_statement_that_fails_is_a_store_error_of_one_line(nasty_store: str, statement: str, message: str) -> None:
    with open_store(nasty_store) as store, pytest.raises(StoreError, match=message) as caught:
        store.cypher(statement)
    assert "\n" not in caught.value.message


# --- opening what is not right


def copy_of(store: str, place: Path) -> Path:
    return Path(shutil.copytree(store, place))


def test_a_missing_store_is_told_with_the_way_to_build_it(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("missing", "empty"):
        with pytest.raises(StoreError, match=f"{place}: there is no graph store here") as caught:
            open_store(str(tmp_path / place))
        assert caught.value.remedy is not None
        assert "gniah-load import" in caught.value.remedy
    assert names(tmp_path) == ["empty"]


def test_a_store_of_another_engine_version_is_refused_with_the_remedy(nasty_store: str, tmp_path: Path) -> None:
    folder = copy_of(nasty_store, tmp_path / "old")
    manifest = Manifest.read(folder, "gniah/store/1")
    Manifest(manifest.schema, dict(manifest.content) | {"engine": "ladybug 0.21.0"}, manifest.run).write(folder)
    with pytest.raises(StoreError) as caught:
        open_store(str(folder))
    assert caught.value.message == (
        f"{folder}: built by ladybug 0.21.0, and this is {engine_version()}, whose file format may differ"
    )
    assert caught.value.remedy == "build it again with gniah-load import; it takes seconds"


def test_a_store_whose_manifest_was_changed_or_lost_is_refused(nasty_store: str, tmp_path: Path) -> None:
    folder = copy_of(nasty_store, tmp_path / "changed")
    value = json.loads((folder / "manifest.json").read_bytes())
    value["content"]["counts"]["papers"] = 10
    (folder / "manifest.json").write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(InputError, match="the content was changed"):
        open_store(str(folder))
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"there is no manifest\.json here"):
        open_store(str(folder))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "cut to a page": lambda raw: raw[:4096],
    "cut to half": lambda raw: raw[: len(raw) // 2],
    "cut by a byte": lambda raw: raw[:-1],
    "longer": lambda raw: raw + b"\0",
    "another kind": lambda raw: b"PAR1" + raw[4:],
    "zeros": lambda raw: b"\0" * len(raw),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_refused_with_a_remedy_that_mends_it(
    nasty_store: str, nasty_graph: Path, tmp_path: Path, damage: str
) -> None:
    folder = copy_of(nasty_store, tmp_path / "store")
    database = folder / "graph.lbug"
    database.write_bytes(DAMAGES[damage](database.read_bytes()))
    with pytest.raises(StoreError, match=r"graph\.lbug: ") as caught:
        open_store(str(folder))
    assert caught.value.remedy == "build the store again with gniah-load import --force"
    assert store_holds(str(folder), Manifest.read(nasty_graph, "gniah/graph/1")) is None


def test_a_database_whose_bytes_were_changed_is_not_taken_for_finished(
    nasty_store: str, nasty_graph: Path, tmp_path: Path
) -> None:
    source = Manifest.read(nasty_graph, "gniah/graph/1")
    folder = copy_of(nasty_store, tmp_path / "store")
    assert store_holds(str(folder), source) is not None
    raw = bytearray((folder / "graph.lbug").read_bytes())
    raw[len(raw) // 2] ^= 1
    (folder / "graph.lbug").write_bytes(raw)
    assert store_holds(str(folder), source) is None


# --- building


def test_a_store_holds_the_graph_it_was_built_from_and_no_other(nasty_store: str, nasty_graph: Path) -> None:
    source = Manifest.read(nasty_graph, "gniah/graph/1")
    held = store_holds(nasty_store, source)
    assert held is not None
    assert held.content["engine"] == engine_version()
    assert held.content["graph"]["digest"] == source.digest
    other = Manifest(source.schema, dict(source.content) | {"cutoff": "2026-04-02"})
    assert store_holds(nasty_store, other) is None
    assert store_holds(nasty_store + "-missing", source) is None


def test_two_builds_have_one_digest(nasty_store: str, nasty_graph: Path, tmp_path: Path) -> None:
    manifest = build_store(nasty_graph, str(tmp_path / "again"))
    assert manifest.digest == Manifest.read(Path(nasty_store), "gniah/store/1").digest
    assert names(tmp_path / "again") == ["graph.lbug", "manifest.json"]


def test_a_build_replaces_an_older_store(
    nasty_store: str, tmp_path: Path, graph_writer: Callable[..., Manifest]
) -> None:
    folder = copy_of(nasty_store, tmp_path / "store")
    graph_writer(tmp_path / "graph", [{"corpusid": 1, "title": "One"}, {"corpusid": 2, "title": "Two"}], [(1, 2)])
    build_store(tmp_path / "graph", str(folder))
    with open_store(str(folder)) as store:
        assert store.counts() == {"papers": 2, "citations": 1}
    assert names(tmp_path) == [".store.lock", "graph", "store"]


def test_a_store_that_is_being_read_can_be_replaced(nasty_graph: Path, tmp_path: Path) -> None:
    address = str(tmp_path / "store")
    build_store(nasty_graph, address)
    with open_store(address) as store:
        build_store(nasty_graph, address)
        assert store.neighbours([3], "cites") == [[1, 2, 4]]


@pytest.mark.parametrize("wrong", [{"papers": 3, "citations": 1}, {"papers": 2, "citations": 2}, {"papers": 2}, {}])
def test_parquet_that_does_not_match_its_manifest_is_refused(
    tmp_path: Path, graph_writer: Callable[..., Manifest], wrong: dict[str, int]
) -> None:
    papers = [{"corpusid": 1, "title": "One"}, {"corpusid": 2, "title": "Two"}]
    graph_writer(tmp_path / "graph", papers, [(1, 2)], counts=wrong)
    with pytest.raises(InputError, match="the Parquet files hold 2 papers and 1 citations, the manifest says"):
        build_store(tmp_path / "graph", str(tmp_path / "store"))
    assert names(tmp_path) == [".store.lock", "graph"]


@pytest.mark.parametrize("name", ["papers.parquet", "citations.parquet", "manifest.json"])
def test_a_graph_without_one_of_its_files_is_refused(
    tmp_path: Path, graph_writer: Callable[..., Manifest], name: str
) -> None:
    graph_writer(tmp_path / "graph", [{"corpusid": 1, "title": "One"}], [])
    (tmp_path / "graph" / name).unlink()
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        build_store(tmp_path / "graph", str(tmp_path / "store"))
    assert names(tmp_path) == ["graph"]


@pytest.mark.parametrize("name", ["papers.parquet", "citations.parquet"])
def test_a_cut_parquet_file_is_bad_input_and_leaves_nothing(
    tmp_path: Path, graph_writer: Callable[..., Manifest], name: str
) -> None:
    graph_writer(tmp_path / "graph", [{"corpusid": 1, "title": "One"}, {"corpusid": 2, "title": "Two"}], [(1, 2)])
    path = tmp_path / "graph" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError) as caught:
        build_store(tmp_path / "graph", str(tmp_path / "store"))
    assert str(tmp_path / "graph") in caught.value.message
    assert caught.value.remedy == "run gniah-load filter again"
    assert names(tmp_path) == [".store.lock", "graph"]


@pytest.mark.parametrize("edges", [[(1, 3)], [(3, 1)]])
def test_a_dangling_citation_is_bad_input(
    tmp_path: Path, graph_writer: Callable[..., Manifest], edges: list[tuple[int, int]]
) -> None:
    graph_writer(tmp_path / "graph", [{"corpusid": 1, "title": "One"}], edges)
    with pytest.raises(InputError):
        build_store(tmp_path / "graph", str(tmp_path / "store"))


def test_a_full_disk_while_building_is_told_and_leaves_nothing(nasty_graph: Path, tmp_path: Path) -> None:
    place = tmp_path / "tiny"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    try:
        with pytest.raises(EnvironmentFault, match="the disk is full"):
            build_store(nasty_graph, str(place / "store"))
        assert names(place) == [".store.lock"]
    finally:
        subprocess.run(["umount", str(place)], check=False)


def test_a_folder_that_holds_something_else_is_never_replaced(nasty_graph: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageFault, match="holds something that is not a store"):
        build_store(nasty_graph, str(tmp_path / "thesis"))
    (tmp_path / "file").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageFault, match="holds something that is not a store"):
        build_store(nasty_graph, str(tmp_path / "file"))
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "graph.lbug").write_bytes(b"")
    (tmp_path / "mixed" / "notes.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageFault, match="holds something that is not a store"):
        build_store(nasty_graph, str(tmp_path / "mixed"))
    assert (tmp_path / "thesis" / "chapter.txt").read_text(encoding="utf-8") == "precious"
    assert (tmp_path / "file").read_text(encoding="utf-8") == "precious"
    assert (tmp_path / "mixed" / "notes.txt").read_text(encoding="utf-8") == "precious"


def test_an_empty_folder_may_become_a_store(nasty_graph: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    build_store(nasty_graph, str(tmp_path / "store"))
    assert names(tmp_path / "store") == ["graph.lbug", "manifest.json"]


def test_a_second_builder_is_refused(nasty_graph: Path, tmp_path: Path) -> None:
    with locked_place(tmp_path / "store"), pytest.raises(BusyError, match="another process is writing here"):
        build_store(nasty_graph, str(tmp_path / "store"))


BUILDER = """
import sys
from pathlib import Path
from gniah.cypher import build_store
build_store(Path(sys.argv[1]), sys.argv[2])
"""


def kill_while_building(graph: Path, store: Path, after: float) -> bool:
    """Kill a builder some seconds after its work in progress appears; return whether it was still at work."""
    with subprocess.Popen([sys.executable, "-c", BUILDER, str(graph), str(store)]) as builder:
        while builder.poll() is None and not any(store.parent.glob(f".{store.name}.*.part")):
            time.sleep(0.002)
        time.sleep(after)
        running = builder.poll() is None
        if running:
            os.kill(builder.pid, signal.SIGKILL)
        builder.wait()
    return running


def test_a_killed_build_leaves_nothing_under_its_name_and_the_next_one_works(nasty_graph: Path, tmp_path: Path) -> None:
    chance = random.Random(1)
    killed = 0
    for number in range(6):
        place = tmp_path / str(number)
        place.mkdir()
        if kill_while_building(nasty_graph, place / "store", chance.uniform(0.0, 0.05)):
            killed += 1
            if (place / "store").exists():  # it was renamed just before
                continue
            assert any(place.glob(".store.*.part"))
        build_store(nasty_graph, str(place / "store"))
        with open_store(str(place / "store")) as store:
            assert store.counts() == {"papers": 9, "citations": 10}
        assert names(place) == [".store.lock", "store"]
    assert killed


def test_a_killed_rebuild_leaves_the_old_store_in_use(nasty_store: str, nasty_graph: Path, tmp_path: Path) -> None:
    folder = copy_of(nasty_store, tmp_path / "store")
    for after in (0.0, 0.01, 0.03):
        kill_while_building(nasty_graph, folder, after)
        with open_store(str(folder)) as store:
            assert store.counts() == {"papers": 9, "citations": 10}
