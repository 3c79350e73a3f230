"""A pool's examples as a graph, through the command: in a server and in a folder, again, in parts, and gone again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from neo4j_fixtures import Running
from programs import Finished, Rfc, program_of

from gniah.cypher.published import RELATIONS
from gniah.generator.graphniah.publishing import published
from gniah.records.errors import InputError
from gniah.records.files import json_line
from gniah.records.graphniah.pool import PoolRecord, read_pool

Call = Callable[..., Finished]


@pytest.fixture(scope="module")
def records(rfc: Rfc) -> list[PoolRecord]:
    return list(read_pool(rfc.bench / "pool.jsonl"))


@pytest.fixture
def server(empty_neo4j: Running, rfc: Rfc, gniah: Call, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with the RFC graph, whose password the environment names."""
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
    done = gniah("import", rfc.graph, "--store", empty_neo4j.address)
    assert done.code == 0, done.err
    return empty_neo4j


def write_pool(path: Path, records: Sequence[PoolRecord]) -> Path:
    path.write_bytes(b"".join(json_line(record.to_json()) for record in records))
    return path


def dump(running: Running) -> tuple[Counter[str], Counter[str]]:
    key = "coalesce({0}.corpusid, {0}.key, {0}.qid, {0}.name)"
    nodes = running.run("MATCH (n) RETURN labels(n) AS l, properties(n) AS p")
    edges = running.run(
        f"MATCH (a)-[r]->(b) RETURN {key.format('a')} AS a, type(r) AS t, {key.format('b')} AS b, properties(r) AS p"
    )
    return (
        Counter(repr((row["l"], sorted(row["p"].items()))) for row in nodes),
        Counter(repr((row["a"], row["t"], row["b"], sorted(row["p"].items()))) for row in edges),
    )


def published_in(running: Running) -> dict[str, int]:
    """How many citations each published example shows."""
    rows = running.run(
        "MATCH (e:Example) OPTIONAL MATCH ()-[r:IN_TEXT {qid: e.qid}]->() RETURN e.qid AS qid, count(r) AS n"
    )
    return {row["qid"]: row["n"] for row in rows}


def citations_of(records: Sequence[PoolRecord]) -> dict[str, int]:
    return {record.qid: sum(len(component.edges) for component in record.components) for record in records}


# --- what of a record is published


def test_a_true_path_leads_from_source_to_target(records: list[PoolRecord]) -> None:
    answers = set()
    for record in records:
        example = published(record)
        k = record.config["question_depth"]
        answers.add((example.task, example.answer if example.task == "yes-no" else "", bool(example.true_path)))
        if example.true_path:
            assert example.true_path == record.components[0].backbone[k - 1 : 2 * k - 1]
            assert (example.true_path[0], example.true_path[-1]) == (record.source, record.target)
            steps = example.rows()["ON_TRUE_PATH"]
            edges = set(record.components[0].edges)
            assert [((one, other) if cites else (other, one)) in edges for one, other, _, _, cites in steps] == [
                True
            ] * (k - 1)
    assert answers == {
        ("yes-no", "YES", True),
        ("yes-no", "NO", False),
        ("multiple-choice", "", True),
        ("counting", "", False),
    }


def test_every_paper_and_citation_of_a_record_is_published(records: list[PoolRecord]) -> None:
    for record in records:
        rows = published(record).rows()
        assert [row[1] for row in rows["CONTAINS"]] == [
            paper for component in record.components for paper in component.papers
        ]
        assert [row[:2] for row in rows["IN_TEXT"]] == [
            edge for component in record.components for edge in component.edges
        ]
        backbone = [row[1] for row in rows["CONTAINS"] if row[3]]
        assert backbone == [paper for component in record.components for paper in component.backbone]
        assert {row[2]: row[1] for row in rows["HAS_OPTION"]} == dict(record.option_papers)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, "7", True, 1.5])
def test_what_no_graph_can_hold_is_refused(records: list[PoolRecord], number: Any) -> None:
    for change in ({"source": number}, {"target": number}, {"option_papers": {"A": number}}):
        with pytest.raises(InputError, match="is no number of a paper"):
            published(replace(records[0], **change))


# --- in a folder


def test_the_command_fills_a_folder_that_queries_read(
    rfc: Rfc, records: list[PoolRecord], gniah: Call, tmp_path: Path
) -> None:
    folder = tmp_path / "published"
    words = ("publish-graph", rfc.bench, "--store", rfc.store, "--to", folder)
    done = gniah(*words)
    assert (done.code, done.err) == (0, "")
    assert [line.split()[-1] for line in done.out.splitlines()[2:]] == ["8", "8", "0"]
    done = gniah(*words, "--json")
    assert json.loads(done.out) == {"target": str(folder), "examples": 8, "written": 0}
    shown = gniah("query", "published-examples", "--store", folder, "--format", "json")
    assert [(row["qid"], row["answer"], row["papers"]) for row in json.loads(shown.out)] == sorted(
        (record.qid, record.answer, sum(len(component.papers) for component in record.components)) for record in records
    )
    own = gniah("cypher", "MATCH (m:MissingPaper) RETURN count(m) AS n", "--store", folder, "--format", "json")
    assert json.loads(own.out) == [{"n": 0}]
    for other in (("stats",), ("audit", rfc.bench), ("show", rfc.bench, records[0].qid)):
        refused = gniah(*other, "--store", folder)
        assert (refused.code, refused.out) == (5, "")
        assert "holds published examples, and of the citation graph only what they use" in refused.err
    done = gniah(*words, "--remove", "--json")
    assert json.loads(done.out) == {"target": str(folder), "examples": 8, "removed": 8}
    assert not folder.exists()


def test_wrong_use_is_told(rfc: Rfc, records: list[PoolRecord], gniah: Call, tmp_path: Path) -> None:
    done = gniah("publish-graph", rfc.bench, "--store", rfc.store)
    assert (done.code, done.out) == (2, "")
    assert "a store in a folder is never written to" in done.err
    assert "add --to" in done.err
    for place in (rfc.store, rfc.graph, rfc.bench):
        done = gniah("publish-graph", rfc.bench, "--store", rfc.store, "--to", place)
        assert (done.code, done.out) == (2, "")
        assert "holds something else than published examples" in done.err
    other = write_pool(tmp_path / "other.jsonl", [replace(records[0], inputs={"graph": "0" * 64})])
    twice = write_pool(tmp_path / "twice.jsonl", [records[0], records[1], records[0]])
    empty = write_pool(tmp_path / "empty.jsonl", [])
    for pool, message in (
        (other, "was made from another graph than"),
        (twice, "stands in the pool more than once"),
        (empty, "holds no example"),
    ):
        done = gniah("publish-graph", pool, "--store", rfc.store, "--to", tmp_path / "out")
        assert (done.code, done.out) == (3, "")
        assert message in done.err
    done = gniah("publish-graph", rfc.bench, "--store", rfc.store, "--to", "http://localhost")
    assert (done.code, done.out) == (2, "")
    assert not (tmp_path / "out").exists()


# --- in a server


@pytest.mark.neo4j
def test_two_pools_that_share_examples_come_and_go(
    server: Running, rfc: Rfc, records: list[PoolRecord], gniah: Call, tmp_path: Path
) -> None:
    first, second = write_pool(tmp_path / "1.jsonl", records[:5]), write_pool(tmp_path / "2.jsonl", records[3:])
    before = dump(server)
    for pool, written in ((first, 5), (second, 3), (first, 0), (second, 0)):
        done = gniah("publish-graph", pool, "--store", server.address, "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out) == {"target": server.address, "examples": 5, "written": written}
    both = dump(server)
    assert published_in(server) == citations_of(records)
    edges = Counter(repr_.split(", ")[1].strip("'") for repr_ in (both[1] - before[1]).elements())
    assert edges == {
        relation.name: sum(len(published(record).rows()[relation.name]) for record in records)
        for relation in RELATIONS
        if any(published(record).rows()[relation.name] for record in records)
    }
    for pool, removed in ((first, 5), (first, 0), (second, 3)):
        done = gniah("publish-graph", pool, "--store", server.address, "--remove", "--json")
        assert json.loads(done.out) == {"target": server.address, "examples": 5, "removed": removed}
    assert dump(server) == before
    # From the folder that the pool was made from, into the server that holds the same graph.
    done = gniah("publish-graph", rfc.bench, "--store", rfc.store, "--to", server.address)
    assert done.code == 0, done.err
    assert dump(server) == both


@pytest.mark.neo4j
def test_a_server_with_another_graph_is_refused(
    server: Running, records: list[PoolRecord], gniah: Call, tmp_path: Path
) -> None:
    before = dump(server)
    pool = write_pool(tmp_path / "pool.jsonl", [records[0], replace(records[1], inputs={"graph": "0" * 64})])
    done = gniah("publish-graph", pool, "--store", server.address)
    assert (done.code, done.out) == (3, "")
    assert "was made from another graph than" in done.err
    assert dump(server) == before
    server.run("MATCH (g:GniahGraph) DELETE g")
    done = gniah("publish-graph", pool, "--store", server.address)
    assert (done.code, done.out) == (5, "")
    assert "holds no citation graph of gniah" in done.err


@pytest.mark.neo4j
@pytest.mark.slow
def test_a_call_that_is_killed_leaves_whole_examples_and_the_next_one_completes(
    server: Running, records: list[PoolRecord], gniah: Call, tmp_path: Path
) -> None:
    many = [replace(record, qid=f"{record.qid}-{number}") for number in range(100) for record in records]
    pool = write_pool(tmp_path / "pool.jsonl", many)
    citations, before = citations_of(many), dump(server)
    for words in (("--store", server.address), ("--store", server.address, "--remove")):
        start = published_in(server)
        process = subprocess.Popen(
            program_of(("publish-graph", pool, *words)), stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        limit = time.monotonic() + 120
        while published_in(server) == start:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < limit
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(1)  # the server ends what the process had begun
        left = published_in(server)
        assert 0 < len(left) < len(many), "it was killed in between"
        assert left == {qid: citations[qid] for qid in left}, "what is there is whole"
        done = gniah("publish-graph", pool, *words, "--json")
        assert done.code == 0, done.err
        changed = len(left) if "--remove" in words else len(many) - len(left)
        assert json.loads(done.out)["removed" if "--remove" in words else "written"] == changed
        assert published_in(server) == ({} if "--remove" in words else citations)
    assert dump(server) == before


@pytest.mark.neo4j
@pytest.mark.slow
def test_an_audit_that_is_killed_leaves_nothing(
    server: Running, records: list[PoolRecord], gniah: Call, tmp_path: Path
) -> None:
    many = [replace(record, qid=f"{record.qid}-{number}") for number in range(50) for record in records]
    pool = write_pool(tmp_path / "pool.jsonl", many)
    before = dump(server)
    at_work = "SHOW TRANSACTIONS YIELD currentQuery WHERE NOT currentQuery STARTS WITH 'SHOW'"
    limit = time.monotonic() + 120
    for mark in ("CREATE (a)-[:IN_TEXT", "RETURN e.qid AS qid"):
        process = subprocess.Popen(program_of(("audit", pool, "--store", server.address)), stdout=subprocess.PIPE)
        while not any(mark in row["currentQuery"] for row in server.run(at_work)):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < limit
        process.kill()
        process.communicate()
        while server.run(at_work):
            assert time.monotonic() < limit
            time.sleep(0.1)
    assert dump(server) == before
    done = gniah("audit", pool, "--store", server.address)
    assert done.code == 0, done.err
    assert f"{len(many)} examples audited" in done.out
    assert dump(server) == before
