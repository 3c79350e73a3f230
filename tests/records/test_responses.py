from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gniah.records.errors import InputError
from gniah.records.files import json_line
from gniah.records.responses import Request, Response, prompt_sha256, read_responses


def response(**more: Any) -> Response:
    values: dict[str, Any] = {
        "key": "k",
        "qid": "q",
        "model": "m",
        "repeat": 0,
        "prompt_sha256": "p",
        "text": "\\answer{YES}\u2028",
    }
    return Response(**(values | more))


def test_round_trip_of_a_sparse_and_of_a_full_response(tmp_path: Path) -> None:
    written = [
        response(),
        response(
            finish_reason=None,
            reasoning="hm",
            usage={"prompt_tokens": 4},
            parameters={"temperature": 0.5},
            base_address="http://localhost",
            error="timeout",
            seconds=1.5,
            repeat=3,
        ),
    ]
    path = tmp_path / "inference_pool.jsonl"
    path.write_bytes(b"".join(json_line(item.to_json()) for item in written))
    assert list(read_responses(path)) == written
    assert [item.complete for item in written] == [True, False]


@pytest.mark.parametrize("name", ["key", "qid", "model", "repeat", "prompt_sha256", "text"])
def test_a_missing_field_is_named_with_file_and_line(tmp_path: Path, name: str) -> None:
    value = response().to_json()
    del value[name]
    path = tmp_path / "pool.jsonl"
    path.write_bytes(json_line(response().to_json()) * 2 + json_line(value))
    with pytest.raises(InputError, match=re.escape(f"{path}:3: a response lacks {name}")):
        list(read_responses(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "text must be a string"),
        ({"repeat": "0"}, "repeat must be an integer"),
        ({"repeat": True}, "repeat must be an integer"),
        ({"schema": "gniah/response/3"}, "written by a newer version of gniah"),
        ({"schema": "gniah/pool/1"}, "expected the schema 'gniah/response/2'"),
        ({"schema": None}, "expected the schema 'gniah/response/2'"),
    ],
)
def test_a_wrong_field_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^f:1: {message}"):
        Response.from_json(response().to_json() | change, "f:1")


def request(**more: Any) -> Request:
    values: dict[str, Any] = {"qid": "q", "model": "m", "system_prompt": "s", "user_prompt": "u"}
    return Request(**(values | more))


def test_the_key_depends_on_all_that_is_sent_and_not_on_the_qid() -> None:
    others = [
        request(model="n"),
        request(system_prompt="t"),
        request(user_prompt="v"),
        request(system_prompt="su", user_prompt=""),
        request(base_address="http://localhost"),
        request(parameters={"temperature": 0}),
        request(parameters={"temperature": 0.5}),
        request(parameters={"reasoning_effort": "low"}),
        request(repeat=1),
    ]
    assert len({request().key, *(other.key for other in others)}) == 1 + len(others)
    assert request(qid="r").key == request().key


def test_the_key_does_not_depend_on_the_order_of_parameters() -> None:
    assert request(parameters={"a": 1, "b": [0.5]}).key == request(parameters={"b": [0.5], "a": 1}).key


def test_the_prompt_hash_knows_where_one_prompt_ends() -> None:
    assert prompt_sha256("ab", "c") != prompt_sha256("a", "bc")
    assert request().prompt_sha256 == prompt_sha256("s", "u")
