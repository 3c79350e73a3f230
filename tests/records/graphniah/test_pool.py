from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gniah.records.errors import InputError
from gniah.records.files import json_line
from gniah.records.graphniah.pool import ComponentRecord, Needle, PoolRecord, find_record, pool_path, read_pool


def record(qid: str = "ab12", **more: Any) -> PoolRecord:
    values: dict[str, Any] = {
        "qid": qid,
        "config": {"alpha": "0.1"},
        "inputs": {"graph": "g"},
        "question_type": "reachability-yesno",
        "question": "q?",
        "answer": "YES",
        "source": 2,
        "target": 3,
        "option_papers": {},
        "components": (
            ComponentRecord("source", (1, 2, 3), (1, 2, 3, 4), ((1, 2), (3, 2), (4, 1))),
            ComponentRecord("other", (5, 6), (5, 6), ((5, 6),)),
            ComponentRecord("distractor", (7,), (7,), ()),
        ),
        "needles": (Needle(0, 1, "Title: é\u2028.\n"),),
        "distractors": ({"name": "x", "blocks": 3, "kept": 1},),
        "context": ((-1, 0), (0, 2)),
        "token_counts": {"o200k_base": 10},
        "prompt_sha256": "p",
        "stopped": "full",
        "building": {"attempts": 1},
    }
    return PoolRecord(**(values | more))


def write(folder: Path, records: list[PoolRecord]) -> Path:
    offset = 0
    with (folder / "pool.jsonl").open("wb") as pool, (folder / "pool.index.jsonl").open("wb") as index:
        for item in records:
            line = json_line(item.to_json())
            pool.write(line)
            index.write(json_line({"qid": item.qid, "offset": offset, "length": len(line)}))
            offset += len(line)
    return folder / "pool.jsonl"


def test_round_trip(tmp_path: Path) -> None:
    written = [record(), record("cd", target=None, option_papers={"A": 3}, context=(), needles=())]
    assert list(read_pool(write(tmp_path, written))) == written


def test_task_components_leave_out_distractors() -> None:
    assert [component.role for component in record().task_components] == ["source", "other"]


@pytest.mark.parametrize("name", [name for name in record().to_json() if name != "schema"])
def test_a_missing_field_is_named_with_file_and_line(tmp_path: Path, name: str) -> None:
    value = record().to_json()
    del value[name]
    path = tmp_path / "pool.jsonl"
    path.write_bytes(json_line(record().to_json()) + json_line(value))
    with pytest.raises(InputError, match=re.escape(f"{path}:2: not a whole pool record: KeyError('{name}')")):
        list(read_pool(path))


@pytest.mark.parametrize(
    "change",
    [
        {"components": ["x"]},
        {"components": [{"role": "source", "backbone": 1, "papers": [], "edges": []}]},
        {"components": [{"role": "source", "backbone": [], "papers": [], "edges": [[1, 2, 3]]}]},
        {"components": None},
        {"context": [[1]]},
        {"needles": [{"component": 0}]},
        {"config": []},
        {"inputs": None},
        {"qid": 7},
        {"source": "2"},
        {"source": True},
        {"target": "3"},
        {"answer": 4},
        {"option_papers": [1]},
        {"schema": "gniah/pool/2"},
        {"schema": "gniah/response/1"},
    ],
)
def test_a_wrong_field_is_an_input_error(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^f:4: "):
        PoolRecord.from_json(record().to_json() | change, "f:4")


def test_a_record_is_found_by_its_qid_and_by_the_beginning_of_it(tmp_path: Path) -> None:
    records = [record("ab12", answer="é" * 40), record("ab34"), record("cd")]
    path = write(tmp_path, records)
    assert find_record(path, "ab34") == records[1]
    assert find_record(path, "ab1") == records[0]
    assert find_record(path, "c") == records[2]


def test_no_record_or_several_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, [record("ab12"), record("ab34")])
    with pytest.raises(InputError, match="2 examples have a qid that begins with 'ab'") as several:
        find_record(path, "ab")
    assert several.value.remedy == "give more of the qid"
    with pytest.raises(InputError, match="no examples have a qid that begins with 'x'"):
        find_record(path, "x")


@pytest.mark.parametrize(
    "entry",
    [
        {"qid": "ab", "offset": 3, "length": 10},
        {"qid": "ab", "offset": 0, "length": 10},
        {"qid": "ab", "offset": 10**6, "length": 10},
        {"qid": "ab", "offset": "x", "length": 10},
        {"qid": "ab", "length": 10},
        {"qid": "ab"},
    ],
)
def test_an_index_that_does_not_fit_its_pool_is_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = write(tmp_path, [record("ab")])
    (tmp_path / "pool.index.jsonl").write_bytes(json_line(entry))
    with pytest.raises(InputError, match=r"pool\.index\.jsonl: does not fit pool\.jsonl"):
        find_record(path, "ab")


def test_an_index_that_points_at_another_example_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [record("ab"), record("cd")])
    write(tmp_path, [record("cd"), record("ab")])
    index = (tmp_path / "pool.index.jsonl").read_bytes()
    write(tmp_path, [record("ab"), record("cd")])
    (tmp_path / "pool.index.jsonl").write_bytes(index)
    with pytest.raises(InputError, match="does not fit"):
        find_record(path, "ab")


def test_a_missing_index_and_a_missing_pool_are_input_errors(tmp_path: Path) -> None:
    path = write(tmp_path, [record("ab")])
    (tmp_path / "pool.index.jsonl").unlink()
    with pytest.raises(InputError, match="no such file"):
        find_record(path, "ab")
    with pytest.raises(InputError, match="no such file"):
        pool_path(tmp_path / "other")
    assert pool_path(tmp_path) == path
