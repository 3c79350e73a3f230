from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.records.canonical import LARGEST_INTEGER, canonical_json, digest


def reference(value: Any) -> str:
    """A slow, obvious RFC 8785 for values without fractions."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return f"{value:d}"
    if isinstance(value, str):
        return '"' + "".join(escaped(character) for character in value) + '"'
    if isinstance(value, dict):
        names = sorted(value, key=code_units)
        return "{" + ",".join(reference(name) + ":" + reference(value[name]) for name in names) + "}"
    return "[" + ",".join(reference(item) for item in value) + "]"


def escaped(character: str) -> str:
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    if character in short:
        return short[character]
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 else character


def code_units(name: str) -> list[int]:
    units = []
    for character in name:
        point = ord(character)
        if point < 0x10000:
            units.append(point)
        else:
            units += [0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF)]
    return units


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


@given(VALUES)
def test_agrees_with_a_slow_reference_and_reads_back(value: Any) -> None:
    written = canonical_json(value)
    assert written == reference(value).encode("utf-8")
    assert json.loads(written) == value


def test_sorts_keys_by_utf16_code_units_as_in_rfc_8785_section_3_2_3() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    written = canonical_json(dict.fromkeys(names, 0))
    assert list(json.loads(written)) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_puts_an_astral_key_before_a_private_use_key_though_its_code_point_is_larger() -> None:
    assert canonical_json({"\ue000": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ue000":1}'.encode()


def test_escapes_as_in_rfc_8785_section_3_2_2() -> None:
    assert canonical_json("\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/") == (
        '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()
    )
    assert (
        canonical_json("\b\t\n\f\r\x00\x1f\x7f\x85\u2028") == '"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\x85\u2028"'.encode()
    )


def test_writes_literals_and_nests_without_white_space() -> None:
    assert canonical_json([None, True, False, {"b": [], "a": {}}, (1, -2)]) == (
        b'[null,true,false,{"a":{},"b":[]},[1,-2]]'
    )


def test_takes_any_mapping() -> None:
    assert canonical_json(MappingProxyType({"b": 1, "a": 2})) == b'{"a":2,"b":1}'


@pytest.mark.parametrize("value", [0.1, 1.0, float("nan"), [1, {"a": 2.5}], b"x", bytearray(b"x"), {1, 2}, object()])
def test_refuses_floats_bytes_and_other_kinds(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.parametrize("key", [1, None, True, 0.5, b"a"])
def test_refuses_keys_that_are_no_strings(key: object) -> None:
    with pytest.raises(TypeError, match="canonical JSON keys are strings"):
        canonical_json({key: 1})


def test_refuses_integers_beyond_53_bits() -> None:
    assert canonical_json([2**53 - 1, -(2**53 - 1)]) == b"[9007199254740991,-9007199254740991]"
    for value in (2**53, -(2**53), 10**30):
        with pytest.raises(ValueError, match="does not fit in 53 bits"):
            canonical_json([value])


@pytest.mark.parametrize("value", ["\ud800", "a\udfff", {"\ud83d": 1}, ["\ude00\ud83d"]])
def test_refuses_lone_surrogates(value: object) -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        canonical_json(value)


def test_digest_is_the_sha256_of_the_form() -> None:
    assert digest({"b": [1, None, True], "a": "é"}) == (
        hashlib.sha256('{"a":"é","b":[1,null,true]}'.encode()).hexdigest()
    )
    assert digest([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"


def test_digest_does_not_depend_on_the_order_in_which_keys_were_added() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_digest_is_the_same_under_any_hash_seed(hash_seed: str) -> None:
    code = "from gniah.records.canonical import digest; print(digest({'b': [1, None, True], 'a': 'é'}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        encoding="utf-8",
        env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"},
        check=True,
    )
    assert done.stdout == "f5327588d116d2e7d05b8bdb3b2e4206bf3a739b14becbeb6c588ef347651ad5\n"
