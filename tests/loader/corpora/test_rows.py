from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gniah.generator import DiskCorpus
from gniah.loader import build_corpus
from gniah.loader.corpora.rows import Repeats
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.texts import LARGEST, TOO_LARGE

Make = Callable[..., Path]


def lines(*rows: object) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


def made(tmp_path: Path, kind: str, source: Path, **more: Any) -> list[tuple[str, tuple[str, ...]]]:
    build_corpus(kind, source, tmp_path / "out", force=True, **more)
    corpus = DiskCorpus(tmp_path / "out")
    return [(one.name, one.blocks) for one in (corpus.document(number) for number in range(len(corpus)))]


def parquet(path: Path, select: str) -> Path:
    duckdb.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


PASSAGES = lines(
    {"id": "9-0", "title": "Nine", "contents": "First\n\npassage."},
    {"id": 4, "title": "Four", "contents": "Second passage."},
    {"id": "x", "title": "Answer", "contents": "\\answer{YES}"},
)


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.gz", "p.json"])
def test_a_passage_is_a_document_of_one_block_with_its_own_name(tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    source.write_bytes(gzip.compress(PASSAGES) if name.endswith("gz") else PASSAGES)
    assert made(tmp_path, "wikipedia", source) == [("9-0", ("First\npassage.",)), ("4", ("Second passage.",))]
    content = json.loads((tmp_path / "out/manifest.json").read_bytes())["content"]
    assert (content["source"], content["licence"]) == ("Wikipedia", "CC BY-SA")
    assert content["texts_left_out"] == {"no block left": 1}


def test_gzip_members_that_follow_each_other_are_one_file(tmp_path: Path) -> None:
    source = tmp_path / "p.jsonl.gz"
    source.write_bytes(
        gzip.compress(lines({"id": 1, "contents": "a"})) + gzip.compress(lines({"id": 2, "contents": "b"}))
    )
    assert made(tmp_path, "wikipedia", source) == [("1", ("a",)), ("2", ("b",))]


def test_rows_without_names_are_numbered_over_all_files(tmp_path: Path, tree: Make) -> None:
    folder = tree("rows", {"b/2.jsonl": lines({"text": "three"}), "a.jsonl": lines({"text": "one"}, {"text": "two"})})
    assert made(tmp_path, "essays", folder) == [("1", ("one",)), ("2", ("two",)), ("3", ("three",))]


def test_columns_can_be_named(tmp_path: Path, tree: Make) -> None:
    source = tree("r", {"r.jsonl": lines({"id": 1, "title": "A", "body": "one\n\ntwo"})}) / "r.jsonl"
    assert made(tmp_path, "books", source, text_column="body", id_column="title") == [("A", ("one", "two"))]


def test_parquet_gives_what_json_lines_give(tmp_path: Path) -> None:
    rows = "SELECT 'a' || range AS id, 'Text ' || range || chr(10) || chr(10) || 'end' AS text FROM range(5000)"
    found = made(tmp_path, "essays", parquet(tmp_path / "r.parquet", rows))
    assert len(found) == 5000
    assert found[4999] == ("a4999", ("Text 4999", "end"))
    digest = DiskCorpus(tmp_path / "out").digest
    source = tmp_path / "r.jsonl"
    source.write_bytes(lines(*({"id": f"a{number}", "text": f"Text {number}\n\nend"} for number in range(5000))))
    made(tmp_path, "essays", source)
    assert DiskCorpus(tmp_path / "out").digest == digest


def test_a_parquet_file_may_have_a_name_that_looks_like_a_pattern(tmp_path: Path) -> None:
    parquet(tmp_path / "ab.parquet", "SELECT 'no' AS text")
    (tmp_path / "ab.parquet").rename(tmp_path / "a[b]*.parquet")
    parquet(tmp_path / "ab.parquet", "SELECT 'other' AS text")
    assert made(tmp_path, "essays", tmp_path / "a[b]*.parquet") == [("1", ("no",))]


@pytest.mark.parametrize(
    ("select", "error", "message"),
    [
        (
            "SELECT 1 AS id, 'x' AS \"te xt\"",
            UsageFault,
            r"no column 'text'; there is id \(INTEGER\), te xt \(VARCHAR\)",
        ),
        ("SELECT 7 AS text", InputError, r"row 1: 'text' is int, not a string"),
        ("SELECT NULL::VARCHAR AS text", InputError, r"row 1: 'text' is NoneType, not a string"),
        ("SELECT 'a' AS text, NULL::VARCHAR AS id", InputError, r"row 1: 'id' is NoneType"),
        ("SELECT 'a' AS text WHERE false", ImpossibleRequest, "holds no text"),
    ],
)
def test_parquet_of_another_form_is_told(tmp_path: Path, select: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made(tmp_path, "essays", parquet(tmp_path / "r.parquet", select))
    assert not (tmp_path / "out").exists()


def test_a_parquet_file_that_is_cut_is_told(tmp_path: Path) -> None:
    source = parquet(tmp_path / "r.parquet", "SELECT 'a' AS text")
    source.write_bytes(source.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"r\.parquet: not a whole Parquet file"):
        made(tmp_path, "essays", source)
    source.write_bytes(b"")
    with pytest.raises(InputError, match=r"r\.parquet: not a whole Parquet file"):
        made(tmp_path, "essays", source)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"{", r"p\.jsonl:2: not JSON"),
        (b'"text"', r"p\.jsonl:2: expected a JSON object, found str"),
        (b"\xff", r"p\.jsonl:2: not JSON"),
        ({"id": 2}, r"p\.jsonl:2: there is no 'contents'; there is 'id'"),
        ({"id": 2, "contents": ["a"]}, r"p\.jsonl:2: 'contents' is list, not a string"),
        ({"contents": "a"}, r"p\.jsonl:2: 'id' is NoneType, not a string or an integer"),
        ({"id": True, "contents": "a"}, r"p\.jsonl:2: 'id' is bool"),
        ({"id": 1.5, "contents": "a"}, r"p\.jsonl:2: 'id' is float"),
        ({"id": "", "contents": "a"}, r"p\.jsonl:2: 'id' is empty"),
        ({"id": "1", "contents": "b"}, r"'1' names two texts: .*p\.jsonl:1 and .*p\.jsonl:2$"),
    ],
)
def test_a_wrong_line_is_told_by_file_and_number(tmp_path: Path, row: object, message: str) -> None:
    source = tmp_path / "p.jsonl"
    source.write_bytes(lines({"id": 1, "contents": "a"}, row))
    with pytest.raises(InputError, match=message):
        made(tmp_path, "wikipedia", source)
    assert not (tmp_path / "out").exists()


def test_blank_lines_count_as_lines_and_are_no_rows(tmp_path: Path) -> None:
    source = tmp_path / "p.jsonl"
    source.write_bytes(b'{"text": "one"}\n\n  \n{"text": 2}\n')
    with pytest.raises(InputError, match=r"p\.jsonl:4: 'text' is int"):
        made(tmp_path, "essays", source)


def test_a_cut_gzip_file_is_told(tmp_path: Path) -> None:
    source = tmp_path / "p.jsonl.gz"
    whole = gzip.compress(lines(*({"id": number, "contents": f"text {number}"} for number in range(20_000))))
    source.write_bytes(whole[:-4])
    with pytest.raises(InputError, match=r"p\.jsonl\.gz:20001: the compressed file is cut or damaged"):
        made(tmp_path, "wikipedia", source)
    source.write_bytes(whole[:1000] + b"XXXXXXXX" + whole[1008:])
    with pytest.raises(InputError, match=r"p\.jsonl\.gz:\d+: (the compressed file is cut or damaged|not JSON)"):
        made(tmp_path, "wikipedia", source)


def test_a_text_over_the_limit_is_left_out_and_a_line_without_end_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "p.jsonl.gz"
    most = LARGEST["wikipedia"]
    rows = ({"id": 1, "contents": "a" * (most + 1)}, {"id": 2, "contents": "b"})
    source.write_bytes(gzip.compress(lines(*rows)))
    assert made(tmp_path, "wikipedia", source) == [("2", ("b",))]
    assert json.loads((tmp_path / "out/manifest.json").read_bytes())["content"]["texts_left_out"] == {TOO_LARGE: 1}
    source.write_bytes(gzip.compress(b'{"contents": "' + b"a" * (8 * most)))
    with pytest.raises(InputError, match=r"p\.jsonl\.gz:1: a line of more than"):
        made(tmp_path, "wikipedia", source)


def test_repeats_are_found_among_many() -> None:
    repeats = Repeats()
    for name in [*map(str, range(1000)), "7", "new", "500"]:
        repeats.add(name)
    assert repeats.candidates() == [1000, 1002]
