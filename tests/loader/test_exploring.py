from __future__ import annotations

import csv
import datetime
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gniah.cypher import named_queries
from gniah.cypher.queries import browser_text, browser_texts
from gniah.cypher.store import Table
from gniah.loader.exploring import show

Make = Callable[..., dict[str, Any]]


def load(*words: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", "from gniah.loader.cli import main; main()", *map(str, words)],
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    import gzip

    place = tmp_path_factory.mktemp("exploring")
    papers = [
        {
            "corpusid": number,
            "externalids": {},
            "title": title,
            "authors": [{"authorId": "7", "name": "A. Author"}, {"authorId": "8", "name": 'B "C"'}],
            "venue": "",
            "publicationdate": "2026-04-01",
        }
        for number, title in ((1, 'One, "two"\x1b[31m'), (2, "論文 二"), (3, "Three"))
    ]
    edges = [{"citingcorpusid": one, "citedcorpusid": other} for one, other in ((1, 2), (2, 1), (3, 1))]
    for name, rows in (("papers.gz", papers), ("citations.gz", edges)):
        (place / name).write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))
    for words in (
        ("filter", "--papers", place / "papers.gz", "--citations", place / "citations.gz", "--out", place / "graph"),
        ("import", place / "graph", "--store", place / "store"),
    ):
        done = load(*words)
        assert done.returncode == 0, done.stderr
    return str(place / "store")


def test_stats_as_json(store: str) -> None:
    done = load("stats", "--store", store, "--format", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    values = {row["what"]: row["value"] for row in json.loads(done.stdout)}
    assert len(values.pop("graph")) == 64
    assert values == {
        "papers": 3,
        "citations": 3,
        "papers with usable metadata": 3,
        "papers without a citation": 0,
        "mutual citations (pairs)": 1,
        "connected components (of two papers and more)": 1,
        "largest component": 3,
        "most citations of one paper": 2,
        "most references of one paper": 1,
        "cutoff date": "2026-04-01",
    }


def test_query_without_a_name_lists_all_of_them(store: str) -> None:
    done = load("query", "--store", store, "--format", "json")
    assert done.returncode == 0
    assert [row["query"] for row in json.loads(done.stdout)] == list(named_queries())


def test_queries_and_texts_are_listed_and_printed_without_a_store() -> None:
    done = load("query", "--format", "json")
    assert [row["query"] for row in json.loads(done.stdout)] == list(named_queries())
    done = load("query", "--text", "--format", "json")
    assert [row["text"] for row in json.loads(done.stdout)] == list(browser_texts())
    for name in ("hubs", "browser/example", "audit/titles-alike", "style"):
        done = load("query", name, "--text")
        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, browser_text(name), b"")
    done = load("query", "nothing", "--text")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"there is no text 'nothing'" in done.stderr


def test_a_query_about_examples_where_none_are_says_how_to_publish_some(store: str) -> None:
    words = ("query", "true-path", "--store", store, "--param", "qid=x")
    done = load(*words)
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[0].split() == [
        *("qid", "step", "from_id", "from_title", "how", "to_id", "to_title")
    ]
    assert len(done.stdout.splitlines()) == 2
    assert b"no example is published here; gniah-gen publish-graph writes those of a pool" in done.stderr
    assert load(*words, "--format", "json").stdout == b"[]\n"


@pytest.mark.parametrize("words", ["' OR 1=1 //", "\\' OR true //", "`$words", "{x}", "') RETURN 1 //"])
def test_a_parameter_is_a_value_and_never_a_part_of_the_query(store: str, words: str) -> None:
    for name, key in (("titles", "words"), ("example", "qid")):
        done = load("query", name, "--store", store, "--param", f"{key}={words}", "--format", "json")
        assert (done.returncode, json.loads(done.stdout)) == (0, [])


def test_query_as_table_csv_and_json(store: str) -> None:
    words = ("query", "neighbours", "--store", store, "--param", "id=2")
    assert load(*words).stdout.decode().splitlines() == [
        "direction  corpusid  title           publicationdate",
        "---------  --------  --------------  ---------------",
        'cites             1  One, "two"[31m       2026-04-01',
        'cited_by          1  One, "two"[31m       2026-04-01',
    ]
    text = load(*words, "--format", "csv").stdout
    assert text.endswith(b"\r\n")
    assert list(csv.reader(io.StringIO(text.decode(), newline=""))) == [
        ["direction", "corpusid", "title", "publicationdate"],
        ["cites", "1", 'One, "two"[31m', "2026-04-01"],
        ["cited_by", "1", 'One, "two"[31m', "2026-04-01"],
    ]
    assert json.loads(load(*words, "--format", "json").stdout)[0] == {
        "direction": "cites",
        "corpusid": 1,
        "title": 'One, "two"[31m',
        "publicationdate": "2026-04-01",
    }


def test_the_store_may_come_from_the_environment(store: str) -> None:
    assert load("query", "hubs", GNIAH_STORE=store).returncode == 0
    assert load("query", "hubs", GNIAH_LOAD_QUERY_STORE=store).returncode == 0
    assert load("query", "hubs").returncode == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("query", "nothing"), "there is no query 'nothing'"),
        (("query", "paper"), "needs the parameter id"),
        (("query", "paper", "--param", "id"), "--param takes NAME=VALUE, not 'id'"),
        (("query", "paper", "--param", "id=x"), "--param id takes an integer, not 'x'"),
        (("query", "paper", "--param", "id=1", "--param", "x=1"), "has no parameter 'x'"),
        (("stats", "--format", "xml"), "xml"),
    ],
)
def test_wrong_use_is_2(store: str, words: tuple[str, ...], message: str) -> None:
    done = load(*words, "--store", store)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()


def test_a_value_may_hold_an_equals_sign(store: str) -> None:
    done = load("query", "titles", "--store", store, "--param", "words=a=b", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (p:Paper) DELETE p",
        "CREATE (p:Paper {corpusid: 5})",
        "PROFILE COPY Paper TO 'x.csv'",
        "RETURN 1; RETURN 2",
        "MATCH",
    ],
)
def test_cypher_that_writes_or_fails_is_5(store: str, statement: str) -> None:
    done = load("cypher", statement, "--store", store)
    assert (done.returncode, done.stdout) == (5, b"")
    assert b"Traceback" not in done.stderr


def test_cypher_reads(store: str) -> None:
    statement = "MATCH (p:Paper) RETURN p.corpusid AS id, p.authors AS authors ORDER BY id LIMIT 1"
    done = load("cypher", statement, "--store", store)
    assert done.stdout.decode().splitlines() == ["id  authors", "--  ----------------", ' 1  A. Author, B "C"']


def test_a_missing_store_is_5(tmp_path: Path) -> None:
    for words in (("stats",), ("query", "hubs"), ("cypher", "RETURN 1")):
        done = load(*words, "--store", tmp_path / "none")
        assert (done.returncode, done.stdout) == (5, b"")
        assert b"there is no graph store here" in done.stderr


ODD = Table(
    ("none", "list", "map", "date", "text", "number"),
    (
        (None, ["a", None, 1], {"k": [datetime.date(2026, 4, 1)]}, datetime.date(2026, 4, 1), 'a "b", c\r\nd', 1.5),
        (None, [], {}, datetime.timedelta(days=1), "", float("inf")),
        (True, [[1], [2]], {"k": float("nan")}, None, "é\x1b", float("-inf")),
    ),
)


def test_json_of_odd_values_can_be_read_by_any_program(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    show(ODD, "json")
    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == [
        {
            "none": None,
            "list": ["a", None, 1],
            "map": {"k": ["2026-04-01"]},
            "date": "2026-04-01",
            "text": 'a "b", c\r\nd',
            "number": 1.5,
        },
        {"none": None, "list": [], "map": {}, "date": "1 day, 0:00:00", "text": "", "number": "inf"},
        {"none": True, "list": [[1], [2]], "map": {"k": "nan"}, "date": None, "text": "é\x1b", "number": "-inf"},
    ]


def test_csv_of_odd_values_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    show(ODD, "csv")
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert rows[0] == list(ODD.columns)
    assert rows[1] == ["", "a, , 1", '{"k": ["2026-04-01"]}', "2026-04-01", 'a "b", c\r\nd', "1.5"]
    assert rows[2] == ["", "", "{}", "1 day, 0:00:00", "", "inf"]


def test_a_table_of_odd_values_has_one_line_a_row_and_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show(ODD, "table")
    text = capsys.readouterr().out
    assert len(text.splitlines()) == 5
    assert "\x1b" not in text
    assert "\\u001b" in text


def test_an_answer_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    empty = Table(("a", "b"), ())
    for form, text in (("table", "a  b\n-  -\n"), ("csv", "a,b\r\n"), ("json", "[]\n")):
        show(empty, form)
        assert capsys.readouterr().out == text
