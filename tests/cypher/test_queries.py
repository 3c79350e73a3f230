from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest

import gniah.cypher
from gniah.cypher import named_queries, named_query, open_store
from gniah.cypher.published import NODES, RELATIONS
from gniah.cypher.queries import AUDIT, EXPLORE, PICTURES, browser_text, browser_texts
from gniah.records.errors import StoreError, UsageFault

DAY = datetime.date(2026, 4, 1)
LARGE = 2**62
TITLES = {
    1: "It's \"quoted\" {braces} `ticks` $id ${x} \\n \\' end",
    2: "MATCH (n) DETACH DELETE n; // RETURN 1 /* x */",
    3: "שלום עולם العربية",
    4: "🙂 👩‍👩‍👧 𝔘nicode 論文",
    6: "…—!",
}

# Hand-checked answers on the small store: query, parameters, columns, rows.
ANSWERS: dict[str, list[tuple[dict[str, Any], tuple[str, ...], list[tuple[Any, ...]]]]] = {
    "degree-histogram": [
        ({}, ("in_degree", "papers"), [(1, 4), (2, 1), (4, 1)]),
        ({"limit": 1}, ("in_degree", "papers"), [(1, 4)]),
    ],
    "hubs": [
        (
            {"limit": "3"},
            ("corpusid", "title", "cited_by"),
            [(1, TITLES[1], 4), (2, TITLES[2], 2), (3, TITLES[3], 1)],
        ),
    ],
    "mutual-citations": [
        (
            {},
            ("one", "other", "one_title", "other_title"),
            [(1, 2, TITLES[1], TITLES[2]), (3, 4, TITLES[3], TITLES[4])],
        ),
    ],
    "neighbours": [
        (
            {"id": 3},
            ("direction", "corpusid", "title", "publicationdate"),
            [
                ("cites", 1, TITLES[1], DAY),
                ("cites", 2, TITLES[2], DAY),
                ("cites", 4, TITLES[4], datetime.date(2026, 5, 31)),
                ("cited_by", 4, TITLES[4], datetime.date(2026, 5, 31)),
            ],
        ),
        (
            {"id": "3", "limit": "1"},
            ("direction", "corpusid", "title", "publicationdate"),
            [
                ("cites", 1, TITLES[1], DAY),
                ("cited_by", 4, TITLES[4], datetime.date(2026, 5, 31)),
            ],
        ),
        ({"id": 8}, ("direction", "corpusid", "title", "publicationdate"), []),
    ],
    "paper": [
        (
            {"id": 3},
            ("corpusid", "title", "authors", "publicationdate", "venue", "arxiv_id", "cites", "cited_by"),
            [(3, TITLES[3], ["א", "ب"], datetime.date(2026, 5, 9), None, "2605.00003", 3, 1)],
        ),
        (
            {"id": 9},
            ("corpusid", "title", "authors", "publicationdate", "venue", "arxiv_id", "cites", "cited_by"),
            [(9, "Alone", ["A. Author"], DAY, None, None, 0, 0)],
        ),
    ],
    "published": [
        ({}, ("year", "month", "papers"), [(2026, 4, 5), (2026, 5, 2), (2026, 12, 1), (2027, 1, 1)]),
    ],
    "titles": [
        ({"words": "quoted braces"}, ("corpusid", "title", "publicationdate"), [(1, TITLES[1], DAY)]),
        ({"words": "שלום"}, ("corpusid", "title", "publicationdate"), [(3, TITLES[3], datetime.date(2026, 5, 9))]),
        ({"words": "nowhere"}, ("corpusid", "title", "publicationdate"), []),
    ],
}


def order_free(name: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """UNION ALL promises no order between its halves."""
    return sorted(rows, key=repr) if name == "neighbours" else rows


@pytest.mark.parametrize("name", [name for name, query in named_queries().items() if not query.needs_examples])
def test_a_shipped_query_gives_hand_checked_rows(nasty_store: str, name: str) -> None:
    assert name in ANSWERS, "a query without a hand-checked answer"
    with open_store(nasty_store) as store:
        for parameters, columns, rows in ANSWERS[name]:
            table = store.query(name, parameters)
            assert table.columns == columns
            assert order_free(name, list(table.rows)) == order_free(name, rows)


def test_an_unknown_query_is_refused_with_the_known_ones(nasty_store: str) -> None:
    with (
        open_store(nasty_store) as store,
        pytest.raises(UsageFault, match="there is no query 'nothing'; known are ") as e,
    ):
        store.query("nothing")
    assert all(name in e.value.message for name in ANSWERS)


@pytest.mark.parametrize("name", ["../audit/titles-alike", "titles-alike", "", "paper.cypher"])
def test_only_explore_queries_are_run_on_a_store(nasty_store: str, name: str) -> None:
    with open_store(nasty_store) as store, pytest.raises(UsageFault, match="there is no query"):
        store.query(name)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("neighbours", {}, r"query neighbours needs the parameter id \(the corpusid of the paper\)"),
        ("neighbours", {"id": 1, "depth": 2}, "query neighbours has no parameter 'depth'; it takes id, limit"),
        ("published", {"id": 1}, "query published has no parameter 'id'; it takes no parameters"),
        ("neighbours", {"id": "x"}, "query neighbours: --param id takes an integer, not 'x'"),
        ("neighbours", {"id": "1 OR 1=1"}, "--param id takes an integer"),
        ("neighbours", {"id": ""}, "--param id takes an integer"),
        ("neighbours", {"id": "1.5"}, "--param id takes an integer"),
        ("neighbours", {"id": True}, "--param id takes an integer"),
        ("neighbours", {"id": "١"}, "--param id takes an integer"),
        ("neighbours", {"id": "1" * 20}, "--param id takes an integer"),
        ("neighbours", {"id": "1\n"}, "--param id takes an integer"),
        ("hubs", {"limit": "many"}, "--param limit takes an integer"),
    ],
)
def test_parameters_are_checked(nasty_store: str, name: str, given: dict[str, Any], message: str) -> None:
    with open_store(nasty_store) as store, pytest.raises(UsageFault, match=message):
        store.query(name, given)


def test_a_limit_under_zero_is_refused_by_the_engine(nasty_store: str) -> None:
    with open_store(nasty_store) as store, pytest.raises(StoreError, match="non-negative integer"):
        store.query("hubs", {"limit": "-1"})


def test_every_int64_may_be_a_parameter(nasty_store: str) -> None:
    with open_store(nasty_store) as store:
        assert store.query("paper", {"id": str(LARGE)}).rows[0][1] == "A large id"
        assert store.query("paper", {"id": -(2**63)}).rows == ()
        for beyond in (2**63, -(2**63) - 1):
            with pytest.raises(UsageFault, match="--param id takes an integer"):
                store.query("paper", {"id": beyond})


def test_defaults_and_meanings_are_read_from_the_file() -> None:
    parameters = named_query("neighbours").parameters
    assert [(p.name, p.kind, p.default, p.meaning) for p in parameters] == [
        ("id", "INT", None, "the corpusid of the paper"),
        ("limit", "INT", 50, "how many rows at most"),
    ]
    assert named_query("neighbours").bind({"id": "7"}) == {"id": 7, "limit": 50}
    assert named_query("titles").bind({"words": 7}) == {"words": "7", "limit": 20}


def test_a_query_says_whether_it_asks_about_published_examples() -> None:
    for folder in (EXPLORE, AUDIT):
        for query in named_queries(folder).values():
            asks = re.search(r":(Example|Component|IN_TEXT|ON_TRUE_PATH)\b", query.text("neo4j")) is not None
            assert query.needs_examples == (asks and folder == EXPLORE), query.name
            assert "needs published" not in query.summary


FOLDER = Path(gniah.cypher.__file__).parent


@pytest.mark.parametrize("folder", [EXPLORE, AUDIT, PICTURES])
def test_every_query_says_in_one_sentence_what_it_answers(folder: str) -> None:
    files = [path.name for path in (FOLDER / folder).glob("*.cypher")]
    plain = sorted(name.removesuffix(".cypher") for name in files if name.count(".") == 1)
    assert plain == list(named_queries(folder))
    for query in named_queries(folder).values():
        assert query.summary.endswith(".")
        assert len(query.summary) > 20
        assert query.text("neo4j").split()[0] in {"MATCH", "OPTIONAL"}
        for text in query.texts.values():
            assert "//" not in text


@pytest.mark.parametrize("folder", [EXPLORE, AUDIT])
def test_a_dialects_file_stands_beside_the_plain_one_and_holds_the_statement_only(folder: str) -> None:
    for path in (FOLDER / folder).glob("*.*.cypher"):
        name, dialect, _ = path.name.split(".")
        assert dialect == "ladybug"
        assert (path.parent / f"{name}.cypher").is_file()
        assert not path.read_text(encoding="utf-8").startswith("//")
        query = named_query(name, folder)
        assert query.text("ladybug") != query.text("neo4j")


@pytest.mark.parametrize("folder", [EXPLORE, AUDIT, PICTURES])
def test_every_parameter_of_a_statement_is_declared(folder: str) -> None:
    for query in named_queries(folder).values():
        for text in query.texts.values():
            assert set(re.findall(r"\$(\w+)", text)) == {parameter.name for parameter in query.parameters}


# --- what is pasted into the Neo4j Browser


def test_every_text_for_the_browser_has_a_name_and_is_the_file() -> None:
    texts = browser_texts()
    counted = [*named_queries(), *named_queries(PICTURES), *named_queries(AUDIT), "style"]
    assert len(texts) == len(counted)
    assert all(summary.endswith(".") for summary in texts.values())
    for name in texts:
        text = browser_text(name)
        assert text.startswith("node {" if name == "style" else "// ")
    assert browser_text("browser/true-path") == (FOLDER / "explore/browser/true-path.cypher").read_text("utf-8")
    assert browser_text("audit/titles-alike") == (FOLDER / "audit/titles-alike.cypher").read_text("utf-8")
    assert browser_text("hubs") == (FOLDER / "explore/hubs.cypher").read_text("utf-8")


@pytest.mark.parametrize("name", ["", "nothing", "audit", "audit/", "audit/../bolt", "../audit/titles-alike", "x/hubs"])
def test_no_other_file_is_a_text_for_the_browser(name: str) -> None:
    with pytest.raises(UsageFault, match="there is no text"):
        browser_text(name)


def test_the_style_sheet_knows_what_is_published_and_every_property_it_shows() -> None:
    style = browser_text("style")
    blocks = dict(re.findall(r"^([a-z]+(?:\.[A-Za-z_]+)?) \{\n((?:  [a-z-]+: [^\n]+;\n)+)\}$", style, re.MULTILINE))
    assert len(blocks) == style.count("{\n") == style.count("\n}")
    assert {name.partition(".")[2] for name in blocks if name.startswith("node.")} == {
        *NODES,
        *("Paper", "MissingPaper", "GniahGraph"),
    }
    columns: dict[str, set[str]] = {relation.name: set(relation.columns) for relation in RELATIONS}
    assert {name.partition(".")[2] for name in blocks if name.startswith("relationship.")} == {*columns, "CITES"}
    known = columns | {name: set(found) for name, found in NODES.items()}
    known |= {"Paper": {"title"}, "MissingPaper": {"corpusid"}, "GniahGraph": {"name"}, "CITES": set()}
    for name, block in blocks.items():
        assert set(re.findall(r'caption: "\{(\w+)\}"', block)) <= known.get(name.partition(".")[2], set()), name
