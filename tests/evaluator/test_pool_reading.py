"""The quick reader gives what the careful one gives, and its errors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from evaluator_toys import example, response
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gniah.evaluator.pool_reading import quick_responses
from gniah.records.errors import InputError
from gniah.records.responses import Response, read_responses

GOOD = json.dumps(response(example()).to_json()).encode() + b"\n"


def outcome(responses: Iterable[Response]) -> list[Response | str]:
    found: list[Response | str] = []
    try:
        found += responses
    except InputError as error:
        found.append(error.message)
    return found


def line(**changes: Any) -> bytes:
    return json.dumps({**response(example()).to_json(), **changes}).encode() + b"\n"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
LINES = st.one_of(
    st.builds(line, text=st.text(max_size=20), usage=values, parameters=values, repeat=st.integers(0, 3), error=values),
    st.sampled_from(
        [
            GOOD,
            line(seconds=float("nan")),
            line(text="\ud83d"),
            line(text=None),
            line(schema="gniah/response/99"),
            b"[]\n",
            b"3\n",
            b"\n",
            b"{\n",
            b"\xff\n",
            b'{"a": 1} \n',
            GOOD[:-1] + b"\r\n",
        ]
    ),
)


@given(st.lists(LINES, max_size=5), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_reads_what_the_careful_reader_reads(tmp_path: Path, lines: list[bytes], cut: bool) -> None:
    path = tmp_path / "pool.jsonl"
    path.write_bytes(b"".join(lines)[: -1 if cut else None])
    # A value that is not equal to itself (NaN) is compared as text.
    assert list(map(repr, outcome(quick_responses(path)))) == list(map(repr, outcome(read_responses(path))))


def test_an_odd_line_does_not_hide_those_before_and_after_it(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    path.write_bytes(GOOD + line(text="\ud83d") + GOOD)
    assert [one.text for one in quick_responses(path)] == [r"\answer{YES}", "\ud83d", r"\answer{YES}"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(quick_responses(tmp_path / "nowhere"))
