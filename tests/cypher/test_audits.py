"""Audits on pools made by hand, on each store: a sound one gives nothing, each audit finds what is planted for it."""

from __future__ import annotations

import datetime
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from neo4j_fixtures import Running

from gniah.cypher import GraphStore, build_store, named_queries, named_query, open_store
from gniah.cypher.addresses import ServerAddress, parse_address
from gniah.cypher.bolt import BoltStore
from gniah.cypher.bolt_publishing import ALL_EXAMPLES, ServerGraph
from gniah.cypher.connection import plain
from gniah.cypher.queries import AUDIT
from gniah.generator.graphniah.auditing import audit_on_server, audit_records
from gniah.generator.graphniah.growth import Neighbourhoods
from gniah.generator.graphniah.publishing import published
from gniah.records.files import json_line
from gniah.records.graphniah.pool import ComponentRecord, PoolRecord
from gniah.records.graphniah.settings import Settings
from gniah.records.manifests import Manifest
from gniah.records.papers import Paper
from gniah.records.streams import Stream

# Four components of six papers, b ... b + 5. With k = 2 a backbone has four papers: s is its second, t its third.
BASES = (100, 200, 300, 400)
EARLY, TWIN, OUTSIDE, UNKNOWN = 901, 902, 903, 999


def component_edges(base: int) -> tuple[tuple[int, int], ...]:
    return (
        (base, base + 1),
        (base + 2, base + 1),
        (base + 2, base + 3),
        (base + 4, base),
        (base + 3, base + 5),
    )


# The store holds more than the examples show: a chord, citations between components, and papers to plant.
EDGES = (
    *(edge for base in (*BASES, 500) for edge in component_edges(base)),
    (100, 102),
    (104, 204),
    (501, 101),
    (103, OUTSIDE),
    (OUTSIDE, 103),
    (103, EARLY),
    (103, TWIN),
    (103, 205),
    (203, 205),
)


@pytest.fixture(scope="module")
def audit_graph(tmp_path_factory: pytest.TempPathFactory, graph_writer: Callable[..., Manifest]) -> Path:
    place = tmp_path_factory.mktemp("audit")
    papers: list[dict[str, Any]] = [
        {"corpusid": base + place, "title": f"Paper {base + place}"} for base in (*BASES, 500) for place in range(6)
    ]
    papers += [
        {"corpusid": EARLY, "title": "Early", "date": "2026-03-31"},
        {"corpusid": TWIN, "title": "PAPER: 104!"},
        {"corpusid": OUTSIDE, "title": "Outside"},
    ]
    graph_writer(place / "graph", papers, sorted(set(EDGES)))
    return place / "graph"


@pytest.fixture(scope="module")
def audit_store(audit_graph: Path) -> Iterator[GraphStore]:
    place = str(audit_graph.with_name("store"))
    build_store(audit_graph, place)
    with open_store(place) as store:
        yield store


def component(base: int, role: str = "other") -> ComponentRecord:
    papers = tuple(range(base, base + 6))
    return ComponentRecord(role, papers[:4], papers, component_edges(base))


def record(kind: str, answer: str, components: Sequence[ComponentRecord], **more: Any) -> PoolRecord:
    settings = Settings(
        question_type=f"reachability-{kind}",
        question_depth=2,
        component_node_count=6,
        distractor_type="code",
        context_length=200_000,
        label=None if kind == "counting" else answer,
        index=0,
        seed=1,
        alpha="0.1",
        cutoff_date="2026-04-01",
        templates="plain",
    )
    values: dict[str, Any] = {
        "qid": f"{kind}-{answer}",
        "config": settings.config(),
        "inputs": {},
        "question_type": settings.question_type,
        "question": "?",
        "answer": answer,
        "source": 101,
        "target": None,
        "option_papers": {},
        "components": tuple(components),
        "needles": (),
        "distractors": (),
        "context": (),
        "token_counts": {},
        "prompt_sha256": "",
        "stopped": "full",
        "building": {},
    }
    return PoolRecord(**(values | more))


SOURCE, OTHER = component(100, "source"), component(200)
# A distractor component that was cut: it is neither whole nor of the size of the settings.
CUT = ComponentRecord("distractor", (300, 301), (300, 301), ((300, 301),))
YES = record("yesno", "YES", (SOURCE, OTHER, CUT), target=102)
NO = record("yesno", "NO", (SOURCE, OTHER), target=202)
COUNTING = record("counting", "5", (SOURCE, OTHER))
CHOICE = record(
    "multiple",
    "C",
    (SOURCE, OTHER, component(300), component(400)),
    target=102,
    option_papers={"A": 202, "B": 302, "C": 102, "D": 402},
)


def with_component(base: PoolRecord, number: int, **change: Any) -> PoolRecord:
    components = list(base.components)
    components[number] = replace(components[number], **change)
    return replace(base, components=tuple(components))


def with_edges(base: PoolRecord, number: int, *, less: Sequence[Any] = (), more: Sequence[Any] = ()) -> PoolRecord:
    edges = [edge for edge in base.components[number].edges if edge not in less]
    assert len(edges) == len(base.components[number].edges) - len(less)
    return with_component(base, number, edges=(*edges, *more))


def grown_as(base: PoolRecord, paper: int) -> PoolRecord:
    """Let another paper stand in the place of the last grown paper of the first component."""
    papers = (*base.components[0].papers[:5], paper)
    return with_component(base, 0, papers=papers, edges=(*component_edges(100)[:4], (103, paper)))


# What is planted, the rows of the audit it is planted for, and the other audits that see it too.
PLANTED: dict[str, list[tuple[str, PoolRecord, list[dict[str, Any]], set[str]]]] = {
    "components-share-a-paper": [
        (
            "the last paper of one stands in the other as well",
            grown_as(YES, 205),
            [{"qid": "yesno-YES", "corpusid": 205, "one": 0, "other": 1}],
            set(),
        ),
    ],
    "component-size": [
        (
            "one paper less",
            with_component(NO, 1, papers=OTHER.papers[:5], edges=OTHER.edges[:4]),
            [{"qid": "yesno-NO", "component": 1, "papers": 5, "size": 6}],
            set(),
        ),
        (
            "one paper more",
            with_component(NO, 0, papers=(*SOURCE.papers, OUTSIDE), edges=(*SOURCE.edges, (103, OUTSIDE))),
            [{"qid": "yesno-NO", "component": 0, "papers": 7, "size": 6}],
            set(),
        ),
        (
            "a paper counted twice",
            with_component(COUNTING, 0, papers=(*SOURCE.papers[:5], 104), edges=SOURCE.edges[:4]),
            [{"qid": "counting-5", "component": 0, "papers": 5, "size": 6}],
            {"count-against-component", "component-is-no-tree"},
        ),
    ],
    "component-is-no-tree": [
        (
            "a cycle by a chord of the store",
            with_edges(YES, 0, more=[(100, 102)]),
            [{"qid": "yesno-YES", "component": 0, "corpusid": 102, "links": 2}],
            set(),
        ),
        (
            "a grown paper without its citation",
            with_edges(CHOICE, 2, less=[(304, 300)]),
            [{"qid": "multiple-C", "component": 2, "corpusid": 304, "links": 0}],
            set(),
        ),
        (
            "a citation that is shown twice",
            with_edges(COUNTING, 0, more=[(104, 100)]),
            [{"qid": "counting-5", "component": 0, "corpusid": 104, "links": 2}],
            set(),
        ),
    ],
    "citation-between-components": [
        (
            "two grown papers",
            with_edges(NO, 0, more=[(104, 204)]),
            [{"qid": "yesno-NO", "citing": 104, "cited": 204}],
            set(),
        ),
    ],
    "citation-outside-components": [
        (
            "it cites one that belongs nowhere",
            with_edges(YES, 0, more=[(103, OUTSIDE)]),
            [{"qid": "yesno-YES", "citing": 103, "cited": OUTSIDE}],
            set(),
        ),
        (
            "it is cited by one that belongs nowhere",
            with_edges(YES, 0, more=[(OUTSIDE, 103)]),
            [{"qid": "yesno-YES", "citing": OUTSIDE, "cited": 103}],
            set(),
        ),
    ],
    "backbone-is-broken": [
        (
            "the last step of the path is missing",
            with_edges(NO, 1, less=[(202, 203)]),
            [{"qid": "yesno-NO", "component": 1, "step": 2, "links": 0}],
            {"component-is-no-tree"},
        ),
        (
            "a step hangs elsewhere, and the component is a tree all the same",
            with_edges(YES, 0, less=[(102, 101)], more=[(100, 102)]),
            [{"qid": "yesno-YES", "component": 0, "step": 1, "links": 0}],
            set(),
        ),
    ],
    "source-off-the-path": [
        (
            "the first paper of the backbone",
            replace(YES, source=100),
            [{"qid": "yesno-YES", "source": 100}],
            set(),
        ),
        (
            "the right place of the other component",
            replace(COUNTING, source=201),
            [{"qid": "counting-5", "source": 201}],
            set(),
        ),
        (
            "no component is the source's",
            with_component(COUNTING, 0, role="other"),
            [{"qid": "counting-5", "source": 101}],
            {"source-components"},
        ),
    ],
    "source-components": [
        (
            "two components claim the source",
            replace(NO, components=(NO.components[0], replace(NO.components[1], role="source"))),
            [{"qid": "yesno-NO", "found": 2}],
            {"label-against-placement"},
        ),
    ],
    "target-against-answer": [
        (
            "the target is that of another option",
            replace(CHOICE, target=202),
            [{"qid": "multiple-C", "answer": "C", "target": 202, "corpusid": 102}],
            set(),
        ),
        (
            "there is no target",
            replace(CHOICE, target=None),
            [{"qid": "multiple-C", "answer": "C", "target": -1, "corpusid": 102}],
            set(),
        ),
    ],
    "target-off-the-path": [
        ("the last paper of the backbone", replace(YES, target=103), [{"qid": "yesno-YES", "target": 103}], set()),
        ("a grown paper elsewhere", replace(NO, target=204), [{"qid": "yesno-NO", "target": 204}], set()),
        ("a paper of nowhere", replace(NO, target=OUTSIDE), [{"qid": "yesno-NO", "target": OUTSIDE}], set()),
    ],
    "label-against-placement": [
        (
            "YES, and the target stands in the other component",
            replace(YES, target=202),
            [{"qid": "yesno-YES", "answer": "YES", "reachable": 0}],
            set(),
        ),
        (
            "NO, and the target stands in the source's component",
            replace(NO, target=102),
            [{"qid": "yesno-NO", "answer": "NO", "reachable": 1}],
            set(),
        ),
        (
            "neither YES nor NO",
            replace(NO, answer="MAYBE"),
            [{"qid": "yesno-NO", "answer": "MAYBE", "reachable": 0}],
            set(),
        ),
    ],
    "options-against-placement": [
        (
            "the answer names another option",
            replace(CHOICE, answer="B"),
            [
                {"qid": "multiple-C", "label": "B", "corpusid": 302, "reachable": 0},
                {"qid": "multiple-C", "label": "C", "corpusid": 102, "reachable": 1},
            ],
            {"target-against-answer"},
        ),
        (
            "a second option is reachable",
            replace(CHOICE, option_papers=dict(CHOICE.option_papers) | {"A": 103}),
            [{"qid": "multiple-C", "label": "A", "corpusid": 103, "reachable": 1}],
            {"options-off-the-path"},
        ),
    ],
    "options-off-the-path": [
        (
            "an option is a grown paper",
            replace(CHOICE, option_papers=dict(CHOICE.option_papers) | {"A": 204}),
            [{"qid": "multiple-C", "label": "A", "corpusid": 204}],
            set(),
        ),
        (
            "an option is a paper of nowhere",
            replace(CHOICE, option_papers=dict(CHOICE.option_papers) | {"D": OUTSIDE}),
            [{"qid": "multiple-C", "label": "D", "corpusid": OUTSIDE}],
            set(),
        ),
    ],
    "options-missing": [
        (
            "three options",
            replace(CHOICE, option_papers={"A": 202, "B": 302, "C": 102}),
            [{"qid": "multiple-C", "offered": 3, "letters": 3, "marked": 1}],
            set(),
        ),
        (
            "no options",
            replace(CHOICE, option_papers={}),
            [{"qid": "multiple-C", "offered": 0, "letters": 0, "marked": 0}],
            set(),
        ),
        (
            "one paper under two letters",
            replace(CHOICE, option_papers={"A": 202, "B": 202, "C": 102, "D": 402}),
            [{"qid": "multiple-C", "offered": 3, "letters": 4, "marked": 1}],
            set(),
        ),
        (
            "the answer is no option",
            replace(CHOICE, answer="E"),
            [{"qid": "multiple-C", "offered": 4, "letters": 4, "marked": 0}],
            {"options-against-placement"},
        ),
    ],
    "count-against-component": [
        (
            "s was counted",
            replace(COUNTING, answer="6"),
            [{"qid": "counting-5", "answer": "6", "reachable": 5}],
            set(),
        ),
        (
            "another spelling of the number",
            replace(COUNTING, answer="05"),
            [{"qid": "counting-5", "answer": "05", "reachable": 5}],
            set(),
        ),
    ],
    "published-before-cutoff": [
        (
            "the day before",
            grown_as(YES, EARLY),
            [{"qid": "yesno-YES", "corpusid": EARLY, "publicationdate": "2026-03-31"}],
            set(),
        ),
        (
            "a paper that the store does not know has no date",
            grown_as(YES, UNKNOWN),
            [{"qid": "yesno-YES", "corpusid": UNKNOWN, "publicationdate": None}],
            {"citation-not-in-store"},
        ),
    ],
    "citation-not-in-store": [
        (
            "the store holds the other direction only",
            with_edges(YES, 0, less=[(100, 101)], more=[(101, 100)]),
            [{"qid": "yesno-YES", "citing": 101, "cited": 100}],
            set(),
        ),
        (
            "the store holds neither direction",
            with_edges(YES, 0, less=[(104, 100)], more=[(104, 101)]),
            [{"qid": "yesno-YES", "citing": 104, "cited": 101}],
            set(),
        ),
        (
            "a paper cites itself",
            with_edges(YES, 0, more=[(104, 104)]),
            [{"qid": "yesno-YES", "citing": 104, "cited": 104}],
            set(),
        ),
        (
            "in a distractor component",
            with_component(YES, 2, edges=((301, 300),)),
            [{"qid": "yesno-YES", "citing": 301, "cited": 300}],
            set(),
        ),
    ],
    "titles-alike": [
        (
            "titles that differ in letter case and punctuation",
            grown_as(YES, TWIN),
            [{"qid": "yesno-YES", "title_key": "paper 104", "papers": 2}],
            set(),
        ),
    ],
    "backbones-cite-each-other": [
        (
            "in the store, though not in the text",
            replace(NO, components=(SOURCE, component(500)), target=502),
            [{"qid": "yesno-NO", "citing": 501, "cited": 101}],
            set(),
        ),
    ],
    "component-count": [
        (
            "two for multiple-choice",
            replace(CHOICE, components=CHOICE.components[:3]),
            [{"qid": "multiple-C", "found": 3, "needed": 4}],
            {"options-off-the-path"},
        ),
        (
            "three for counting",
            replace(COUNTING, components=(SOURCE, OTHER, component(300))),
            [{"qid": "counting-5", "found": 3, "needed": 2}],
            set(),
        ),
        (
            "a distractor does not count",
            with_component(YES, 1, role="distractor"),
            [{"qid": "yesno-YES", "found": 1, "needed": 2}],
            set(),
        ),
    ],
}


def violations(store: GraphStore, records: Sequence[PoolRecord]) -> list[dict[str, Any]]:
    return [violation.to_json() for violation in audit_records(records, Neighbourhoods(store))]


def test_a_sound_pool_gives_no_violation(audit_store: GraphStore) -> None:
    assert violations(audit_store, [YES, NO, COUNTING, CHOICE]) == []


def all_together() -> list[PoolRecord]:
    """One pool of all planted cases, each with a qid of its own, and of sound examples."""
    planted = [
        replace(case[1], qid=f"{name}: {number}")
        for name, cases in PLANTED.items()
        for number, case in enumerate(cases)
    ]
    return [YES, NO, *planted, COUNTING, CHOICE]


@pytest.fixture(scope="module")
def found_together(audit_store: GraphStore) -> list[dict[str, Any]]:
    """What all audits find in that pool."""
    return violations(audit_store, all_together())


@pytest.mark.parametrize("name", named_queries(AUDIT))
def test_an_audit_finds_what_is_planted_for_it(found_together: list[dict[str, Any]], name: str) -> None:
    assert PLANTED.get(name), "an audit without a planted case"
    for number, (what, _, rows, others) in enumerate(PLANTED[name]):
        qid = f"{name}: {number}"
        found = [row for row in found_together if row["qid"] == qid]
        mine = [{key: value for key, value in row.items() if key != "audit"} for row in found if row["audit"] == name]
        assert mine == [row | {"qid": qid} for row in rows], what
        assert {row["audit"] for row in found} - {name} == others, what


def test_a_violation_is_told_of_its_own_example_only(found_together: list[dict[str, Any]]) -> None:
    planted = {f"{name}: {number}" for name, cases in PLANTED.items() for number in range(len(cases))}
    assert {row["qid"] for row in found_together} == planted


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_case_is_found_when_it_stands_alone(audit_store: GraphStore, name: str) -> None:
    _, planted, rows, others = PLANTED[name][0]
    found = violations(audit_store, [planted])
    assert [row for row in found if row["audit"] == name] == [{"audit": name} | row for row in rows]
    assert {row["audit"] for row in found} == others | {name}


def test_every_planted_case_belongs_to_an_audit() -> None:
    assert set(PLANTED) == set(named_queries(AUDIT))


# --- through the command


def audit(*words: object) -> subprocess.CompletedProcess[str]:
    code = "from gniah.generator.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "audit", *map(str, words)], capture_output=True, encoding="utf-8", check=False
    )


def write_pool(path: Path, records: Sequence[PoolRecord], store: GraphStore, **inputs: str) -> None:
    digest = {"graph": store.manifest.digest} | inputs
    path.write_bytes(b"".join(json_line(replace(item, inputs=digest).to_json()) for item in records))


def test_the_command_ends_well_on_a_sound_pool(audit_store: GraphStore, tmp_path: Path) -> None:
    write_pool(tmp_path / "pool.jsonl", [YES, NO, COUNTING, CHOICE], audit_store)
    done = audit(tmp_path, "--store", audit_store.address, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"examples": 4, "violations": []}


def test_the_command_names_the_example_of_a_violation_and_fails(audit_store: GraphStore, tmp_path: Path) -> None:
    write_pool(tmp_path / "pool.jsonl", [YES, replace(NO, target=102), COUNTING], audit_store)
    done = audit(tmp_path / "pool.jsonl", "--store", audit_store.address)
    assert done.returncode == 1
    assert "audit: label-against-placement, qid: yesno-NO, answer: NO, reachable: 1" in done.stderr
    assert "1 violations in 1 examples" in done.stderr
    assert "3 examples audited" in done.stdout
    counts = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()[2:-1]}
    assert counts == {name: "1" if name == "label-against-placement" else "0" for name in named_queries(AUDIT)}


def test_the_command_refuses_a_pool_of_another_graph(audit_store: GraphStore, tmp_path: Path) -> None:
    write_pool(tmp_path / "pool.jsonl", [YES], audit_store, graph="0" * 64)
    done = audit(tmp_path, "--store", audit_store.address)
    assert (done.returncode, done.stdout) == (3, "")
    assert "example yesno-YES was made from another graph than" in done.stderr
    assert "give --store the store it was made from" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": {}}, "the config lacks question_format"),
        ({"config": []}, "pool.jsonl:1: config has a wrong type: []"),
        ({"question_type": "needle"}, "pool.jsonl:1: 'needle' is no question type of graphniah"),
        ({"source": "101"}, "pool.jsonl:1: source has a wrong type: '101'"),
        ({"schema": "gniah/pool/2"}, "pool.jsonl:1: written by a newer version of gniah"),
    ],
)
def test_the_command_refuses_a_pool_it_cannot_read(
    audit_store: GraphStore, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    value = replace(YES, inputs={"graph": audit_store.manifest.digest}).to_json() | change
    (tmp_path / "pool.jsonl").write_bytes(json_line(value))
    done = audit(tmp_path, "--store", audit_store.address)
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr


def test_the_command_refuses_a_cut_and_an_empty_pool(audit_store: GraphStore, tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    write_pool(path, [YES, NO], audit_store)
    path.write_bytes(path.read_bytes()[:-10])
    done = audit(tmp_path, "--store", audit_store.address)
    assert done.returncode == 3
    assert "pool.jsonl:2: the last line has no newline: the file was cut" in done.stderr
    path.write_bytes(b"")
    done = audit(tmp_path, "--store", audit_store.address)
    assert done.returncode == 3
    assert "holds no example" in done.stderr


# --- on a server


@pytest.fixture(scope="module")
def audit_server(
    neo4j_server: Running, audit_store: GraphStore, audit_graph: Path
) -> Iterator[tuple[Running, BoltStore]]:
    """A server with the same graph, and its store; the environment names its password."""
    neo4j_server.empty()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
        patch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(neo4j_server.password_file))
        build_store(audit_graph, neo4j_server.address)
        place = parse_address(neo4j_server.address)
        assert isinstance(place, ServerAddress)
        with BoltStore(place) as store:
            yield neo4j_server, store
    neo4j_server.empty()


def far_violations(store: BoltStore, records: Sequence[PoolRecord]) -> list[dict[str, Any]]:
    found = audit_on_server(records, ServerGraph(store.connection), store.manifest.digest)
    return [violation.to_json() for violation in found]


def everything(server: Running) -> list[Any]:
    nodes = server.run("MATCH (n) RETURN labels(n) AS l, properties(n) AS p, elementId(n) AS i ORDER BY i")
    return nodes + server.run("MATCH ()-[r]->() RETURN type(r) AS t, properties(r) AS p, elementId(r) AS i ORDER BY i")


@pytest.mark.neo4j
def test_a_server_finds_the_same_rows_in_the_same_order(
    audit_server: tuple[Running, BoltStore], found_together: list[dict[str, Any]]
) -> None:
    server, store = audit_server
    before = everything(server)
    assert far_violations(store, [YES, NO, COUNTING, CHOICE]) == []
    assert far_violations(store, all_together()) == found_together
    assert {row["audit"] for row in found_together} == set(named_queries(AUDIT))
    assert everything(server) == before, "an audit leaves nothing"


@pytest.mark.neo4j
@pytest.mark.parametrize("name", PLANTED)
def test_a_server_finds_a_planted_case_that_stands_alone(
    audit_server: tuple[Running, BoltStore], audit_store: GraphStore, name: str
) -> None:
    for _, planted, _, _ in PLANTED[name]:
        found = far_violations(audit_server[1], [planted])
        assert name in {row["audit"] for row in found}
        assert found == violations(audit_store, [planted])


def damaged(base: PoolRecord, stream: Stream) -> PoolRecord:
    """Damage an example in a few places, each a slip that no rule forbids to a file."""
    ids = [*range(100, 106), *range(200, 206), 300, 301, 302, 402, 501, EARLY, TWIN, OUTSIDE, UNKNOWN, -1]
    made = base
    for _ in range(1 + stream.below(4)):
        components = [*made.components]
        at = stream.below(len(components))
        here = components[at]
        edges, papers = [*here.edges], [*here.papers]
        kind = stream.below(12)
        if kind == 0 and edges:
            edges.pop(stream.below(len(edges)))
        elif kind == 1 and edges:
            edges.append(stream.choice(edges))
        elif kind == 2 and edges:
            place = stream.below(len(edges))
            edges[place] = edges[place][::-1]
        elif kind == 3:
            edges.append((stream.choice(ids), stream.choice(ids)))
        elif kind == 4:
            papers.append(stream.choice(ids))
        elif kind == 5 and len(papers) > len(here.backbone):
            papers.pop()
        elif kind == 6:
            here = replace(here, role=stream.choice(("source", "other", "distractor")))
        elif kind == 7:
            made = replace(made, source=stream.choice(ids))
        elif kind == 8:
            made = replace(made, target=stream.choice((*ids, None)))
        elif kind == 9:
            made = replace(made, answer=stream.choice(("YES", "NO", "A", "C", "E", "5", "6", "05", "")))
        elif kind == 10:
            made = replace(made, option_papers=dict(made.option_papers) | {stream.choice("ABCDE"): stream.choice(ids)})
        elif kind == 11 and len(components) > 1:
            other = stream.below(len(components))
            edges += components[other].edges[:2]
        if here.role != "distractor" and tuple(papers[: len(here.backbone)]) != here.backbone:
            continue
        components[at] = replace(here, papers=tuple(papers), edges=tuple(edges))
        made = replace(made, components=tuple(components))
    return made


@pytest.mark.neo4j
@pytest.mark.parametrize("seed", range(3))
def test_both_stores_find_the_same_in_damaged_examples(
    audit_server: tuple[Running, BoltStore], audit_store: GraphStore, seed: int
) -> None:
    stream = Stream("damaged", seed)
    pool = [
        replace(damaged(base, stream), qid=f"{base.qid} {number}")
        for number in range(40)
        for base in (YES, NO, COUNTING, CHOICE)
    ]
    far = far_violations(audit_server[1], pool)
    near = violations(audit_store, pool)
    assert sorted(map(repr, far)) == sorted(map(repr, near)), "types of values too"
    assert len({row["audit"] for row in far}) >= 18
    assert len({row["qid"] for row in far}) > 100


# What is changed in a sound published graph, and what the audit that is pasted there, without parameters, finds.
SPOILT: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "backbone-is-broken": (
        "MATCH (:Paper {corpusid: 102})-[r:IN_TEXT {qid: 'yesno-YES'}]->(:Paper {corpusid: 101}) DELETE r",
        [{"qid": "yesno-YES", "component": 0, "step": 1, "links": 0}],
    ),
    "backbones-cite-each-other": (
        "MATCH (a:Paper {corpusid: 203}), (b:Paper {corpusid: 100}) CREATE (a)-[:CITES]->(b)",
        [
            *({"qid": qid, "citing": 203, "cited": 100} for qid in ("counting-5", "multiple-C", "yesno-NO")),
            {"qid": "yesno-YES", "citing": 203, "cited": 100},
        ],
    ),
    "citation-between-components": (
        "MATCH (a:Paper {corpusid: 104}), (b:Paper {corpusid: 204}) CREATE (a)-[:IN_TEXT {qid: 'yesno-NO'}]->(b)",
        [{"qid": "yesno-NO", "citing": 104, "cited": 204}],
    ),
    "citation-not-in-store": (
        "MATCH (:Paper {corpusid: 301})<-[r:CITES]-(:Paper {corpusid: 300}) DELETE r",
        [{"qid": qid, "citing": 300, "cited": 301} for qid in ("multiple-C", "yesno-YES")],
    ),
    "citation-outside-components": (
        "MATCH (a:Paper {corpusid: 104}), (b:Paper {corpusid: 402}) CREATE (b)-[:IN_TEXT {qid: 'yesno-NO'}]->(a)",
        [{"qid": "yesno-NO", "citing": 402, "cited": 104}],
    ),
    "component-count": (
        "MATCH (c:Component {key: 'multiple-C/3'}) DETACH DELETE c",
        [{"qid": "multiple-C", "found": 3, "needed": 4}],
    ),
    "component-is-no-tree": (
        "MATCH (a:Paper {corpusid: 100}), (b:Paper {corpusid: 102}) CREATE (a)-[:IN_TEXT {qid: 'yesno-NO'}]->(b)",
        [{"qid": "yesno-NO", "component": 0, "corpusid": 102, "links": 2}],
    ),
    "component-size": (
        "MATCH (:Component {key: 'counting-5/1'})-[r:CONTAINS {step: 5}]->() DELETE r",
        [{"qid": "counting-5", "component": 1, "papers": 5, "size": 6}],
    ),
    "components-share-a-paper": (
        "MATCH (c:Component {key: 'counting-5/1'}), (p:Paper {corpusid: 104}) CREATE (c)-[:CONTAINS {step: 6}]->(p)",
        [{"qid": "counting-5", "corpusid": 104, "one": 0, "other": 1}],
    ),
    "count-against-component": (
        "MATCH (e:Example {qid: 'counting-5'}) SET e.answer = '6'",
        [{"qid": "counting-5", "answer": "6", "reachable": 5}],
    ),
    "label-against-placement": (
        "MATCH (e:Example {qid: 'yesno-NO'}) SET e.target = 102",
        [{"qid": "yesno-NO", "answer": "NO", "reachable": 1}],
    ),
    "options-against-placement": (
        "MATCH (:Example {qid: 'multiple-C'})-[o:HAS_OPTION {label: 'C'}]->() SET o.label = 'E'",
        [{"qid": "multiple-C", "label": "E", "corpusid": 102, "reachable": 1}],
    ),
    "options-missing": (
        "MATCH (:Example {qid: 'multiple-C'})-[o:HAS_OPTION {label: 'A'}]->() DELETE o",
        [{"qid": "multiple-C", "offered": 3, "letters": 3, "marked": 1}],
    ),
    "options-off-the-path": (
        "MATCH (c:Component {key: 'multiple-C/1'})-[r:CONTAINS {step: 2}]->() SET r.step = 7",
        [{"qid": "multiple-C", "label": "A", "corpusid": 202}],
    ),
    "published-before-cutoff": (
        "MATCH (p:Paper {corpusid: 405}) SET p.publicationdate = date('2026-03-31')",
        [{"qid": "multiple-C", "corpusid": 405, "publicationdate": datetime.date(2026, 3, 31)}],
    ),
    "source-components": (
        "MATCH (c:Component {key: 'yesno-NO/1'}) SET c.role = 'source'",
        [{"qid": "yesno-NO", "found": 2}],
    ),
    "source-off-the-path": (
        "MATCH (e:Example {qid: 'counting-5'}) SET e.source = 100",
        [{"qid": "counting-5", "source": 100}],
    ),
    "target-against-answer": (
        "MATCH (e:Example {qid: 'multiple-C'}) REMOVE e.target",
        [{"qid": "multiple-C", "answer": "C", "target": -1, "corpusid": 102}],
    ),
    "target-off-the-path": (
        "MATCH (e:Example {qid: 'yesno-NO'}) SET e.target = 203",
        [{"qid": "yesno-NO", "target": 203}],
    ),
    "titles-alike": (
        "MATCH (p:Paper {corpusid: 405}) SET p.title_key = 'paper 100'",
        [{"qid": "multiple-C", "title_key": "paper 100", "papers": 2}],
    ),
}


@pytest.fixture(scope="module")
def published_server(audit_server: tuple[Running, BoltStore]) -> Iterator[Running]:
    server, store = audit_server
    graph, sound = ServerGraph(store.connection), [published(made) for made in (YES, NO, COUNTING, CHOICE)]
    graph.publish(sound, store.manifest.digest)
    yield server
    graph.remove([example.qid for example in sound])


@pytest.mark.neo4j
@pytest.mark.parametrize("name", named_queries(AUDIT))
def test_an_audit_as_it_is_pasted_finds_what_was_changed_in_a_published_graph(
    published_server: Running, name: str
) -> None:
    change, rows = SPOILT[name]
    text = named_query(name, AUDIT).text("neo4j")
    with published_server.driver() as driver, driver.session() as session, session.begin_transaction() as transaction:
        assert [dict(record) for record in transaction.run(text)] == []
        transaction.run(change).consume()
        found = [{key: plain(value) for key, value in record.items()} for record in transaction.run(text)]
        transaction.rollback()
    assert found == rows


@pytest.mark.neo4j
def test_an_audit_judges_the_pool_and_leaves_what_was_published(
    published_server: Running, audit_server: tuple[Running, BoltStore]
) -> None:
    before = everything(published_server)
    assert far_violations(audit_server[1], [YES, NO, COUNTING]) == []
    assert everything(published_server) == before
    # Of the same qid, and another than what stands there.
    found = far_violations(audit_server[1], [replace(NO, target=102), COUNTING])
    assert [(row["audit"], row["qid"]) for row in found] == [("label-against-placement", "yesno-NO")]
    assert everything(published_server) == before
    published_server.run("MATCH (e:Example {qid: 'multiple-C'}) SET e.answer = 'B'")
    assert far_violations(audit_server[1], [YES]) == [], "only examples of the pool are told of"
    published_server.run("MATCH (e:Example {qid: 'multiple-C'}) SET e.answer = 'C'")
    assert everything(published_server) == before


@pytest.mark.neo4j
def test_an_audit_begins_with_all_examples_so_that_some_can_be_asked_about() -> None:
    for name, query in named_queries(AUDIT).items():
        assert query.text("neo4j").split("\n")[0] == ALL_EXAMPLES, name
        assert "$" not in query.text("neo4j")


@pytest.mark.neo4j
def test_the_command_says_the_same_of_a_server(
    audit_server: tuple[Running, BoltStore], audit_store: GraphStore, tmp_path: Path
) -> None:
    server, _ = audit_server
    write_pool(
        tmp_path / "pool.jsonl", [YES, replace(NO, target=102), COUNTING, grown_as(CHOICE, UNKNOWN)], audit_store
    )
    before = everything(server)
    for words in ((), ("--json",)):
        near = audit(tmp_path, "--store", audit_store.address, *words)
        far = audit(tmp_path, "--store", server.address, *words)
        assert (far.returncode, far.stdout, far.stderr) == (near.returncode, near.stdout, near.stderr)
        assert near.returncode == 1
    assert everything(server) == before
    write_pool(tmp_path / "pool.jsonl", [YES], audit_store, graph="0" * 64)
    done = audit(tmp_path, "--store", server.address)
    assert (done.returncode, done.stdout) == (3, "")
    assert "example yesno-YES was made from another graph than" in done.stderr


# --- at the size of real pools, where joins are large


class LargeStore:
    """A store in memory, which audits ask for papers and citations only."""

    batch = 1

    def __init__(self, citations: set[tuple[int, int]], papers: int) -> None:
        self._cites: dict[int, list[int]] = {}
        for citing, cited in sorted(citations):
            self._cites.setdefault(citing, []).append(cited)
        self._papers = papers

    def neighbours(self, ids: Sequence[int], direction: str) -> list[list[int]]:
        return [self._cites.get(identifier, []) if direction == "cites" else [] for identifier in ids]

    def papers(self, ids: Sequence[int]) -> list[Paper]:
        day = datetime.date(2026, 5, 1)
        return [Paper(one, f"Paper {one}", f"paper {one % self._papers}", ("A. B",), day) for one in ids]


def large_records(count: int, stream: Stream) -> Iterator[PoolRecord]:
    """Yield examples of two components of 250 papers; a few hubs stand in most of them."""
    for number in range(count):
        drawn = [place + 1 for place in itertools.islice(stream.without_repeats(4_000), 500)]
        drawn[0], drawn[250] = 5_000, 5_001  # hubs, which all examples share
        components = []
        for begin, role in ((0, "source"), (250, "other")):
            papers = drawn[begin : begin + 250]
            edges = []
            for step in range(1, 250):
                parent = papers[step - 1 if step < 4 else stream.choice((0, stream.below(step)))]
                edges.append((papers[step], parent) if stream.coin() else (parent, papers[step]))
            components.append(ComponentRecord(role, tuple(papers[:4]), tuple(papers), tuple(edges)))
        made = record("counting", "249", components, qid=f"large-{number}", source=components[0].papers[1])
        yield replace(made, config={**made.config, "component_node_count": 250})


def tampered(made: PoolRecord, stream: Stream) -> PoolRecord:
    """Lose, repeat or turn a few citations of an example."""
    components = []
    for component in made.components:
        edges = list(component.edges)
        for _ in range(stream.below(3)):
            place = stream.below(len(edges))
            kind = stream.below(3)
            if kind == 0:
                edges.pop(place)
            elif kind == 1:
                edges.append(edges[place])
            else:
                edges[place] = edges[place][::-1]
        components.append(replace(component, edges=tuple(edges)))
    return replace(made, components=tuple(components))


def plainly_found(records: Sequence[PoolRecord], citations: set[tuple[int, int]]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {"component-is-no-tree": [], "citation-not-in-store": []}
    for made in records:
        for number, component in enumerate(made.components):
            steps = {paper: step for step, paper in enumerate(component.papers)}
            for paper, step in steps.items():
                links = sum(
                    paper in edge and steps[edge[0] if edge[1] == paper else edge[1]] < step for edge in component.edges
                )
                if step and links != 1:
                    found["component-is-no-tree"].append((made.qid, number, paper, links))
            lost = [edge for edge in component.edges if edge not in citations]
            found["citation-not-in-store"] += [(made.qid, *edge) for edge in lost]
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_audits_of_large_examples_find_what_a_plain_check_finds(seed: int) -> None:
    stream = Stream("large pool", seed)
    sound = list(large_records(16, stream))
    citations = {edge for made in sound for component in made.components for edge in component.edges}
    pool = [tampered(made, stream) for made in sound]
    found = list(audit_records(pool, Neighbourhoods(cast(GraphStore, LargeStore(citations, 10_000)))))
    by_audit = {
        name: sorted((one.qid, *one.details.values()) for one in found if one.audit == name)
        for name in ("component-is-no-tree", "citation-not-in-store")
    }
    expected = plainly_found(pool, citations)
    assert by_audit == expected
    assert all(expected.values())
    clean = audit_records(sound, Neighbourhoods(cast(GraphStore, LargeStore(citations, 10_000))))
    assert {one.audit for one in clean} <= {"backbones-cite-each-other"}
