"""Published examples in a server and in a folder: the same graph in both, whole, and gone again without a trace."""

from __future__ import annotations

import datetime
import hashlib
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from neo4j_fixtures import Running

from gniah.cypher import GraphStore, answer, build_store, named_queries, open_store, open_to_explore
from gniah.cypher.addresses import ServerAddress, parse_address
from gniah.cypher.bolt import BoltStore
from gniah.cypher.bolt_publishing import SCHEMA, ServerGraph
from gniah.cypher.published import NODES, RELATIONS, PublishedComponent, PublishedExample, is_published
from gniah.cypher.published_folder import publish_into, remove_from
from gniah.cypher.queries import PICTURES, named_query
from gniah.records.errors import BusyError, InputError, StoreError, UsageFault
from gniah.records.files import locked_place

Rows = Counter[tuple[Any, ...]]

# Two examples on the graph of awkward titles. k = 2: the true path has two papers. 77 is in no graph.
DAY = datetime.date(2026, 4, 1)
NASTY_QID = 'it\'s {a} "qid" `x` $id}) DETACH DELETE (n) // \\ 論文'
PLAIN = PublishedExample(
    qid="plain",
    task="yes-no",
    answer="YES",
    k=2,
    size=4,
    components=2,
    cutoff_date=DAY,
    source=2,
    target=1,
    options=(),
    parts=(
        PublishedComponent("source", 4, (3, 2, 1, 2**62), ((3, 2), (1, 2), (2**62, 1))),
        PublishedComponent("other", 2, (5, 6), ((5, 6),)),
    ),
    true_path=(2, 1),
)
NASTY = PublishedExample(
    qid=NASTY_QID,
    task="multiple-choice",
    answer="A",
    k=2,
    size=2,
    components=4,
    cutoff_date=DAY,
    source=1,
    target=3,
    options=(("A", 3), ("B' OR 1=1", 77)),
    parts=(
        PublishedComponent("source", 2, (4, 3, 3), ((4, 3), (3, 4), (4, 3))),
        PublishedComponent("distractor", 1, (77, 1), ((1, 77), (77, 77))),
    ),
    true_path=(),
)
BOTH = (PLAIN, NASTY)


@pytest.fixture
def server(empty_neo4j: Running, nasty_graph: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with the graph of awkward titles, whose password the environment names."""
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
    build_store(nasty_graph, empty_neo4j.address)
    return empty_neo4j


@pytest.fixture
def far(server: Running) -> Iterator[BoltStore]:
    place = parse_address(server.address)
    assert isinstance(place, ServerAddress)
    with BoltStore(place) as store:
        yield store


@pytest.fixture
def near(nasty_store: str) -> Iterator[GraphStore]:
    with open_store(nasty_store) as store:
        yield store


def dump(running: Running) -> tuple[Rows, Rows]:
    """All nodes and all relationships of a server, with all that they hold."""
    key = "coalesce({0}.corpusid, {0}.key, {0}.qid, {0}.name)"
    nodes = running.run("MATCH (n) RETURN labels(n) AS l, properties(n) AS p")
    edges = running.run(
        f"MATCH (a)-[r]->(b) RETURN {key.format('a')} AS a, type(r) AS t, {key.format('b')} AS b, properties(r) AS p"
    )
    return (
        Counter((*row["l"], repr(sorted(row["p"].items()))) for row in nodes),
        Counter((row["a"], row["t"], row["b"], repr(sorted(row["p"].items()))) for row in edges),
    )


def digest_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


# --- an example as rows


def test_an_example_is_these_rows() -> None:
    rows = PLAIN.rows()
    assert set(rows) == {*NODES, *(relation.name for relation in RELATIONS)}
    assert rows == {
        "Example": [("plain", "yes-no", "YES", 2, 4, 2, DAY, 2, 1)],
        "Component": [("plain/0", "plain", 0, "source"), ("plain/1", "plain", 1, "other")],
        "HAS_COMPONENT": [("plain", "plain/0"), ("plain", "plain/1")],
        "HAS_OPTION": [],
        "HAS_SOURCE": [("plain", 2)],
        "HAS_TARGET": [("plain", 1)],
        "CONTAINS": [
            *(("plain/0", 3, 0, True), ("plain/0", 2, 1, True), ("plain/0", 1, 2, True), ("plain/0", 2**62, 3, True)),
            *(("plain/1", 5, 0, True), ("plain/1", 6, 1, True)),
        ],
        "IN_TEXT": [(3, 2, "plain", 0), (1, 2, "plain", 0), (2**62, 1, "plain", 0), (5, 6, "plain", 1)],
        "ON_TRUE_PATH": [(2, 1, "plain", 1, False)],
    }
    assert PLAIN.papers() == {1, 2, 3, 5, 6, 2**62}
    assert NASTY.papers() == {1, 3, 4, 77}


@pytest.mark.parametrize("example", BOTH)
def test_an_example_reads_back_from_json(example: PublishedExample) -> None:
    assert PublishedExample.from_json(example.to_json()) == example


def test_what_is_unknown_is_absent() -> None:
    rows = replace(PLAIN, target=None, true_path=()).rows()
    assert rows["Example"][0][-1] is None
    assert rows["HAS_TARGET"] == rows["ON_TRUE_PATH"] == []


# --- in a server


@pytest.mark.neo4j
def test_a_server_holds_what_was_published_beside_its_graph(server: Running, far: BoltStore) -> None:
    before = dump(server)
    assert ServerGraph(far.connection).publish(BOTH, far.manifest.digest) == 2
    nodes, edges = dump(server)
    added_nodes, added_edges = nodes - before[0], edges - before[1]
    assert (before[0] - nodes, before[1] - edges) == (Counter(), Counter())
    kinds = Counter(row[0] for row in added_nodes.elements())
    assert kinds == {"Example": 2, "Component": 4, "MissingPaper": 1}
    assert Counter(row[1] for row in added_edges.elements()) == {
        relation.name: len(PLAIN.rows()[relation.name]) + len(NASTY.rows()[relation.name]) for relation in RELATIONS
    }
    shown = f"[('component', 0), ('qid', {NASTY_QID!r})]"
    assert added_edges[(4, "IN_TEXT", 3, shown)] == 2, "as often as the text shows it"
    assert (4, "CITES", 3, "[('isinfluential', False)]") in edges
    example = server.run("MATCH (e:Example {qid: $qid}) RETURN properties(e) AS p", qid="plain")[0]["p"]
    assert example["cutoff_date"].to_native() == DAY
    assert (example["source"], example["target"]) == (2, 1)


@pytest.mark.neo4j
def test_publishing_again_writes_nothing_and_removing_leaves_the_graph_as_it_was(
    server: Running, far: BoltStore
) -> None:
    graph, digest = ServerGraph(far.connection), far.manifest.digest
    before = dump(server)
    graph.publish(BOTH, digest)
    published = dump(server)
    ids = server.run("MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN elementId(n) AS n, elementId(r) AS r ORDER BY n, r")
    assert graph.publish(BOTH, digest) == 0
    assert dump(server) == published
    same = server.run("MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN elementId(n) AS n, elementId(r) AS r ORDER BY n, r")
    assert same == ids
    assert graph.remove(["plain", "nobody's"]) == 1
    assert dump(server)[0] - before[0] == Counter(
        {row: count for row, count in published[0].items() if "plain" not in row[1] and row not in before[0]}
    )
    assert graph.remove([NASTY_QID]) == 1
    assert graph.remove([NASTY_QID]) == 0
    assert dump(server) == before


@pytest.mark.neo4j
def test_a_missing_paper_stays_until_its_last_use_goes(server: Running, far: BoltStore) -> None:
    graph, digest = ServerGraph(far.connection), far.manifest.digest
    other = replace(NASTY, qid="other")
    graph.publish([NASTY, other], digest)
    count = "MATCH (m:MissingPaper) RETURN count(m) AS n"
    assert server.run(count) == [{"n": 1}]
    graph.remove([NASTY_QID])
    assert server.run(count) == [{"n": 1}]
    graph.remove(["other"])
    assert server.run(count) == [{"n": 0}]


SPOILT = (
    "MATCH (e:Example {qid: 'plain'}) SET e.answer = 'NO'",
    "MATCH (e:Example {qid: 'plain'}) REMOVE e.target",
    "MATCH (e:Example {qid: 'plain'}) SET e.note = 'mine'",
    "MATCH (e:Example {qid: 'plain'}) DETACH DELETE e",
    "MATCH (c:Component {key: 'plain/1'}) DETACH DELETE c",
    "MATCH (c:Component {key: 'plain/1'}) SET c.role = 'source'",
    "CREATE (:Component {key: 'plain/7', qid: 'plain', index: 7, role: 'other'})",
    "MATCH ()-[r:HAS_COMPONENT]->(:Component {key: 'plain/1'}) DELETE r",
    "MATCH (:Component {key: 'plain/0'})-[r:CONTAINS {step: 3}]->() SET r.step = 4",
    "MATCH (:Component {key: 'plain/0'})-[r:CONTAINS {step: 3}]->() DELETE r",
    "MATCH (c:Component {key: 'plain/0'}), (p:Paper {corpusid: 9}) CREATE (c)-[:CONTAINS {step: 4}]->(p)",
    "MATCH ()-[r:IN_TEXT {qid: 'plain'}]->(:Paper {corpusid: 6}) DELETE r",
    "MATCH (a:Paper {corpusid: 5}), (b:Paper {corpusid: 6}) CREATE (b)-[:IN_TEXT {qid: 'plain', component: 1}]->(a)",
    "MATCH ()-[r:IN_TEXT {qid: 'plain'}]->(:Paper {corpusid: 6}) SET r.component = 0",
    "MATCH ()-[r:ON_TRUE_PATH {qid: 'plain'}]->() DELETE r",
    "MATCH (:Example {qid: 'plain'})-[r:HAS_TARGET]->() DELETE r",
    "MATCH (e:Example {qid: 'plain'}), (p:Paper {corpusid: 9}) CREATE (e)-[:HAS_OPTION {label: 'A'}]->(p)",
)


@pytest.mark.neo4j
def test_an_example_that_another_hand_changed_is_written_again(server: Running, far: BoltStore) -> None:
    graph, digest = ServerGraph(far.connection), far.manifest.digest
    graph.publish(BOTH, digest)
    published = dump(server)
    for statement in SPOILT:
        server.run(statement)
        assert dump(server) != published, statement
        assert graph.publish(BOTH, digest) == 1, statement
        assert dump(server) == published, statement
    changed = replace(PLAIN, answer="NO", parts=PLAIN.parts[:1])
    assert graph.publish([changed, NASTY], digest) == 1
    assert graph.publish([changed], digest) == 0
    assert graph.publish([PLAIN], digest) == 1
    assert dump(server) == published


@pytest.mark.neo4j
def test_another_graph_and_one_that_is_not_whole_are_refused(server: Running, far: BoltStore) -> None:
    graph = ServerGraph(far.connection)
    before = dump(server)
    with pytest.raises(InputError, match="does not hold the graph that these examples were made from"):
        graph.publish(BOTH, "0" * 64)
    with pytest.raises(InputError, match="does not hold the graph"):
        graph.audit(BOTH, "0" * 64)
    assert dump(server) == before
    server.run("MATCH (g:GniahGraph) SET g.state = 'importing'")
    with pytest.raises(InputError, match="does not hold the graph"):
        graph.publish(BOTH, far.manifest.digest)


@pytest.mark.neo4j
def test_constraints_keep_examples_apart_and_are_made_once(server: Running, far: BoltStore) -> None:
    for _ in range(2):
        ServerGraph(far.connection).publish(BOTH, far.manifest.digest)
    names = {row["name"] for row in server.run("SHOW INDEXES YIELD name")}
    assert set(SCHEMA) <= names
    constraints = {row["name"] for row in server.run("SHOW CONSTRAINTS YIELD name")}
    assert constraints >= {"gniah_example", "gniah_component", "gniah_missing_paper"}


@pytest.mark.neo4j
def test_publishers_at_the_same_time_take_turns(server: Running, far: BoltStore) -> None:
    digest = far.manifest.digest
    pool = [replace(PLAIN, qid=f"plain {number}") for number in range(8)]
    failures: list[BaseException] = []

    def work(part: Sequence[PublishedExample]) -> None:
        try:
            with BoltStore(far.connection.address) as store:
                for example in part:
                    ServerGraph(store.connection).publish([example], digest)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in (pool, pool[::-1], pool[4:] + pool[:4])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ServerGraph(far.connection).publish(pool, digest) == 0, "each is there, once and whole"
    assert server.run("MATCH (e:Example) RETURN count(e) AS n") == [{"n": 8}]


@pytest.mark.neo4j
def test_who_may_not_write_is_told(far: BoltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from neo4j.exceptions import ClientError

    class Refusal(ClientError):
        code = "Neo.ClientError.Security.Forbidden"
        message = "Create node with labels 'Example' is not allowed"

    def refuse(*_: object) -> None:
        raise Refusal

    monkeypatch.setattr("gniah.cypher.bolt_publishing._bring_up", refuse)
    graph = ServerGraph(far.connection)
    for call in (graph.publish, graph.audit):
        with pytest.raises(StoreError, match="this user may not write here") as caught:
            call(BOTH, far.manifest.digest)
        assert "GNIAH_NEO4J_USER" in str(caught.value.remedy)


# --- in a folder


def test_a_folder_gets_a_database_and_its_lines(near: GraphStore, tmp_path: Path) -> None:
    folder = tmp_path / "it's {published} 論文"
    assert publish_into(folder, BOTH, near) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["examples.jsonl", "graph.lbug", "manifest.json"]
    assert is_published(folder)
    with open_to_explore(folder) as graph:
        papers = graph.cypher("MATCH (p:Paper) RETURN p.corpusid ORDER BY p.corpusid").rows
        assert papers == ((1,), (2,), (3,), (4,), (5,), (6,), (2**62,))
        assert graph.cypher("MATCH (m:MissingPaper) RETURN m.corpusid").rows == ((77,),)
        assert graph.cypher("MATCH (:Paper)-[c:CITES]->(:Paper) RETURN count(c)").rows == ((9,),)
        paper = graph.query("paper", {"id": 3}).rows[0]
        assert paper[2:6] == (["א", "ب"], datetime.date(2026, 5, 9), None, "2605.00003")


@pytest.mark.neo4j
def test_a_folder_and_a_server_hold_the_same_examples(
    server: Running, far: BoltStore, near: GraphStore, tmp_path: Path
) -> None:
    ServerGraph(far.connection).publish(BOTH, far.manifest.digest)
    publish_into(tmp_path / "near", BOTH, near)
    publish_into(tmp_path / "far", BOTH, far)
    counted = {}
    for place in ("near", "far"):
        with open_to_explore(tmp_path / place) as graph, open_to_explore(server.address) as other:
            for relation in RELATIONS:
                columns = "".join(f", r.{column}" for column in relation.columns)
                keys = [
                    {"Example": "{0}.qid", "Component": "{0}.key", "Paper": "{0}.corpusid"}[label].format(end)
                    for label, end in ((relation.start, "a"), (relation.end, "b"))
                ]
                text = f"MATCH (a)-[r:{relation.name}]->(b) RETURN {', '.join(keys)}{columns}"
                found = Counter(graph.cypher(text).rows)
                assert found == Counter(other.cypher(text).rows), relation.name
                assert found == Counter(row for example in BOTH for row in example.rows()[relation.name])
                counted[relation.name] = len(found)
    assert all(counted.values())


def test_publishing_the_same_again_touches_no_file(near: GraphStore, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    publish_into(folder, BOTH, near)
    before, times = digest_of(folder), [path.stat().st_mtime_ns for path in sorted(folder.iterdir())]
    assert publish_into(folder, BOTH, near) == 0
    assert publish_into(folder, [NASTY], near) == 0
    assert digest_of(folder) == before
    assert [path.stat().st_mtime_ns for path in sorted(folder.iterdir())] == times


def test_another_pool_is_added_and_what_changed_is_replaced(near: GraphStore, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    assert publish_into(folder, [PLAIN], near) == 1
    assert publish_into(folder, [replace(PLAIN, answer="NO"), NASTY], near) == 2
    with open_to_explore(folder) as graph:
        rows = graph.query("published-examples").rows
        assert [(row[0], row[2]) for row in rows] == sorted([(NASTY_QID, "A"), ("plain", "NO")])
    lines = (folder / "examples.jsonl").read_bytes()
    shutil.rmtree(folder)
    publish_into(folder, [NASTY], near)
    publish_into(folder, [replace(PLAIN, answer="NO")], near)
    assert (folder / "examples.jsonl").read_bytes() == lines, "whatever came first"


def test_removing_takes_out_these_and_the_folder_goes_with_the_last(near: GraphStore, tmp_path: Path) -> None:
    folder, alone = tmp_path / "published", tmp_path / "alone"
    publish_into(folder, BOTH, near)
    publish_into(alone, [PLAIN], near)
    assert remove_from(folder, ["nobody's"], near) == 0
    assert remove_from(folder, [NASTY_QID, "nobody's"], near) == 1
    assert (folder / "examples.jsonl").read_bytes() == (alone / "examples.jsonl").read_bytes()
    with open_to_explore(folder) as graph:
        assert graph.cypher("MATCH (m:MissingPaper) RETURN count(m)").rows == ((0,),)
    assert remove_from(folder, ["plain"], near) == 1
    assert not folder.exists()
    assert remove_from(folder, ["plain"], near) == 0


def test_a_store_is_never_written_to(near: GraphStore, nasty_store: str, tmp_path: Path) -> None:
    before = digest_of(Path(nasty_store))
    for work in (lambda: publish_into(Path(nasty_store), BOTH, near), lambda: remove_from(Path(nasty_store), [], near)):
        with pytest.raises(UsageFault, match="holds something else than published examples"):
            work()
    assert digest_of(Path(nasty_store)) == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageFault, match="holds something else"):
        publish_into(other, BOTH, near)
    assert (other / "thesis.txt").read_text(encoding="utf-8") == "dear"


def test_an_empty_folder_is_filled(near: GraphStore, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert publish_into(tmp_path / "empty", BOTH, near) == 2


def test_examples_of_another_graph_do_not_mix(
    near: GraphStore, tmp_path: Path, graph_writer: Callable[..., Any]
) -> None:
    graph_writer(tmp_path / "graph", [{"corpusid": 1, "title": "One"}], [])
    build_store(tmp_path / "graph", str(tmp_path / "store"))
    publish_into(tmp_path / "published", BOTH, near)
    with open_store(str(tmp_path / "store")) as other:
        for work in (publish_into, remove_from):
            with pytest.raises(UsageFault, match="holds examples of another graph"):
                work(tmp_path / "published", [], other)  # type: ignore[operator]


def test_a_folder_that_another_hand_changed_is_told_or_made_again(near: GraphStore, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    publish_into(folder, BOTH, near)
    (folder / "graph.lbug").write_bytes((folder / "graph.lbug").read_bytes()[:-4096])
    assert publish_into(folder, BOTH, near) == 0
    with open_to_explore(folder) as graph:
        assert len(graph.query("published-examples").rows) == 2
    (folder / "graph.lbug").unlink()
    assert publish_into(folder, [], near) == 0
    with open_to_explore(folder) as graph:
        assert len(graph.query("published-examples").rows) == 2
    lines = (folder / "examples.jsonl").read_bytes()
    (folder / "examples.jsonl").write_bytes(lines.replace(b"YES", b"NO!"))
    with pytest.raises(InputError, match="is not what was written there"):
        publish_into(folder, BOTH, near)


def test_a_folder_that_is_being_written_is_busy(near: GraphStore, tmp_path: Path) -> None:
    with locked_place(tmp_path / "published"), pytest.raises(BusyError):
        publish_into(tmp_path / "published", BOTH, near)


def test_a_call_that_breaks_off_leaves_the_old_folder(
    near: GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "published"
    publish_into(folder, [PLAIN], near)
    before = digest_of(folder)
    monkeypatch.setattr("gniah.cypher.published_database._compare", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        publish_into(folder, BOTH, near)
    assert digest_of(folder) == before
    assert {path.name for path in tmp_path.iterdir()} == {"published", ".published.lock"}
    monkeypatch.undo()
    assert publish_into(folder, BOTH, near) == 1


def test_rows_that_the_engine_loses_are_told(near: GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gniah.cypher import published_database

    copy = published_database.copy_lines

    def lossy(session: Any, table: str, *rest: Any) -> None:
        if table != "IN_TEXT":
            copy(session, table, *rest)

    monkeypatch.setattr(published_database, "copy_lines", lossy)
    with pytest.raises(StoreError, match="the published graph holds 0 of 9 rows of IN_TEXT"):
        publish_into(tmp_path / "published", BOTH, near)
    assert not (tmp_path / "published").exists()


def test_no_other_command_takes_a_folder_of_examples_for_a_store(near: GraphStore, tmp_path: Path) -> None:
    publish_into(tmp_path / "published", BOTH, near)
    with pytest.raises(StoreError, match="holds published examples, and of the citation graph only what they use"):
        open_store(tmp_path / "published")


# --- questions about them

TITLES = {
    1: "It's \"quoted\" {braces} `ticks` $id ${x} \\n \\' end",
    2: "MATCH (n) DETACH DELETE n; // RETURN 1 /* x */",
    3: "שלום עולם العربية",
    4: "🙂 👩‍👩‍👧 𝔘nicode 論文",
    5: "A title, folded | with; commas\u2028and separators",
    6: "…—!",
    2**62: "A large id",
}

# Hand-checked answers: query, parameters, columns, rows.
ANSWERS: dict[str, list[tuple[dict[str, Any], tuple[str, ...], list[tuple[Any, ...]]]]] = {
    "published-examples": [
        (
            {},
            ("qid", "task", "answer", "k", "size", "papers"),
            [(NASTY_QID, "multiple-choice", "A", 2, 2, 5), ("plain", "yes-no", "YES", 2, 4, 6)],
        ),
        (
            {"limit": 1},
            ("qid", "task", "answer", "k", "size", "papers"),
            [(NASTY_QID, "multiple-choice", "A", 2, 2, 5)],
        ),
    ],
    "example": [
        (
            {"qid": "pla"},
            (
                *("qid", "task", "answer", "k", "size", "cutoff_date", "source", "target"),
                *("components", "papers", "citations"),
            ),
            [("plain", "yes-no", "YES", 2, 4, DAY, 2, 1, 2, 6, 4)],
        ),
    ],
    "example-papers": [
        (
            {"qid": NASTY_QID},
            ("qid", "component", "role", "step", "backbone", "corpusid", "title"),
            [
                (NASTY_QID, 0, "source", 0, True, 4, TITLES[4]),
                (NASTY_QID, 0, "source", 1, True, 3, TITLES[3]),
                (NASTY_QID, 0, "source", 2, False, 3, TITLES[3]),
                (NASTY_QID, 1, "distractor", 0, True, 77, None),
                (NASTY_QID, 1, "distractor", 1, False, 1, TITLES[1]),
            ],
        ),
    ],
    "subgraph": [
        (
            {"qid": "plain"},
            ("qid", "component", "citing", "citing_title", "cited", "cited_title"),
            [
                ("plain", 0, 1, TITLES[1], 2, TITLES[2]),
                ("plain", 0, 3, TITLES[3], 2, TITLES[2]),
                ("plain", 0, 2**62, TITLES[2**62], 1, TITLES[1]),
                ("plain", 1, 5, TITLES[5], 6, TITLES[6]),
            ],
        ),
        (
            {"qid": NASTY_QID[:9]},
            ("qid", "component", "citing", "citing_title", "cited", "cited_title"),
            [
                (NASTY_QID, 0, 3, TITLES[3], 4, TITLES[4]),
                (NASTY_QID, 0, 4, TITLES[4], 3, TITLES[3]),
                (NASTY_QID, 0, 4, TITLES[4], 3, TITLES[3]),
                (NASTY_QID, 1, 1, TITLES[1], 77, None),
                (NASTY_QID, 1, 77, None, 77, None),
            ],
        ),
    ],
    "true-path": [
        (
            {"qid": "plain"},
            ("qid", "step", "from_id", "from_title", "how", "to_id", "to_title"),
            [("plain", 1, 2, TITLES[2], "is cited by", 1, TITLES[1])],
        ),
        (
            {"qid": NASTY_QID},
            ("qid", "step", "from_id", "from_title", "how", "to_id", "to_title"),
            [],
        ),
    ],
    "most-used-papers": [
        (
            {"limit": 3},
            ("corpusid", "title", "examples"),
            [(1, TITLES[1], 2), (3, TITLES[3], 2), (2, TITLES[2], 1)],
        ),
    ],
    "shared-papers": [
        ({"qid": "plain"}, ("one", "other", "papers"), [("plain", NASTY_QID, 2)]),
        ({"qid": ""}, ("one", "other", "papers"), [(NASTY_QID, "plain", 2), ("plain", NASTY_QID, 2)]),
    ],
}

ABOUT_EXAMPLES = [name for name, query in named_queries().items() if query.needs_examples]
INJECTIONS = (
    "' OR 1=1 //",
    "' OR 1=1 RETURN 1 //",
    "\\' OR true //",
    "'}) DETACH DELETE e //",
    "`) MATCH (n) DETACH DELETE n //",
    "$qid",
    "\u0000",
)


def hand_checked(graph: Any, name: str) -> None:
    for parameters, columns, rows in ANSWERS[name]:
        found = answer(graph, name, parameters)
        assert found.table.columns == columns
        assert list(found.table.rows) == rows
        assert not found.unpublished


def injected(graph: Any, before: Callable[[], object]) -> None:
    state = before()
    for name in ABOUT_EXAMPLES:
        for parameter in named_query(name).parameters:
            for text in INJECTIONS:
                given = ANSWERS[name][0][0] | {parameter.name: text}
                if parameter.kind == "STRING":
                    assert answer(graph, name, given).table.rows == (), (name, text)
                else:
                    with pytest.raises(UsageFault, match="takes an integer"):
                        answer(graph, name, given)
    assert before() == state


def test_every_query_about_examples_has_a_hand_checked_answer() -> None:
    assert set(ANSWERS) == set(ABOUT_EXAMPLES)


def test_queries_on_a_folder_give_hand_checked_rows(near: GraphStore, tmp_path: Path) -> None:
    publish_into(tmp_path / "published", BOTH, near)
    with open_to_explore(tmp_path / "published") as graph:
        for name in ABOUT_EXAMPLES:
            hand_checked(graph, name)
        injected(graph, lambda: digest_of(tmp_path / "published"))


@pytest.mark.neo4j
def test_queries_on_a_server_give_the_same_rows(server: Running, far: BoltStore) -> None:
    ServerGraph(far.connection).publish(BOTH, far.manifest.digest)
    with open_to_explore(server.address) as graph:
        for name in ABOUT_EXAMPLES:
            hand_checked(graph, name)
        injected(graph, lambda: dump(server))


@pytest.mark.parametrize("name", ABOUT_EXAMPLES)
def test_a_store_without_examples_answers_with_an_empty_table_and_says_so(near: GraphStore, name: str) -> None:
    parameters, columns, _ = ANSWERS[name][0]
    found = answer(near, name, parameters)
    assert (found.table.columns, found.table.rows, found.unpublished) == (columns, (), True)
    with pytest.raises(UsageFault, match="has no parameter 'x'"):
        answer(near, name, {**parameters, "x": 1})
    with pytest.raises(StoreError, match="asks about published examples, and a store in a folder holds none"):
        near.query(name, parameters)


@pytest.mark.neo4j
def test_so_does_a_server(server: Running, far: BoltStore) -> None:
    for name in ABOUT_EXAMPLES:
        parameters, columns, _ = ANSWERS[name][0]
        found = answer(far, name, parameters)
        assert (found.table.columns, found.table.rows, found.unpublished) == (columns, (), True)
    ServerGraph(far.connection).publish(BOTH, far.manifest.digest)
    assert answer(far, "example", {"qid": "nobody's"}).unpublished is False


@pytest.mark.neo4j
def test_pictures_give_paths(server: Running, far: BoltStore) -> None:
    ServerGraph(far.connection).publish(BOTH, far.manifest.digest)
    given: dict[str, dict[str, Any]] = {
        "components": {"qid": "plain"},
        "example": {"qid": "plain"},
        "neighbours": {"id": 1, "limit": 100},
        "shared-papers": {"one": "plain", "other": NASTY_QID, "limit": 100},
        "true-path": {"qid": "plain"},
    }
    nodes: dict[str, set[Any]] = {}
    assert set(given) == set(named_queries(PICTURES))
    with server.driver() as driver, driver.session() as session:
        for name, parameters in given.items():
            query = named_query(name, PICTURES)
            assert query.bind(parameters) == parameters
            nodes[name] = {
                next(node[key] for key in ("corpusid", "key", "qid") if key in node)
                for (path,) in session.run(query.text("neo4j"), parameters)
                for node in path.nodes
            }
    assert nodes == {
        "components": {"plain", "plain/0", "plain/1", 1, 2, 3, 5, 6, 2**62},
        "example": {"plain", 1, 2, 3, 5, 6, 2**62},
        "neighbours": {1, 2, 3, 4, 2**62},
        "shared-papers": {"plain", "plain/0", NASTY_QID, f"{NASTY_QID}/0", f"{NASTY_QID}/1", 1, 3},
        "true-path": {"plain", 1, 2},
    }
