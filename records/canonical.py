"""Canonical JSON: one spelling for one value, so that a hash of it names the value.

The form is RFC 8785 without fractions: keys sorted by their UTF-16 code units, no white space, the shortest
escapes, integers of at most 53 bits. A fraction is written as a decimal string by whoever owns it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

LARGEST_INTEGER = 2**53 - 1


def canonical_json(value: object) -> bytes:
    """Return the RFC 8785 form of a value made of None, bool, int, str, sequences and string-keyed mappings.

    Raises TypeError for anything else (floats among it) and ValueError for an integer beyond 53 bits or a
    string with a lone surrogate.
    """
    parts: list[str] = []
    _write(value, parts)
    try:
        return "".join(parts).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"a lone surrogate has no canonical form: {error}") from None


def digest(value: object) -> str:
    """Return the SHA-256, in hexadecimal, of the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _write(value: object, parts: list[str]) -> None:
    if value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise ValueError(f"{value} does not fit in 53 bits: write it as a string")
        parts.append(str(value))
    elif isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif isinstance(value, Mapping):
        _write_mapping(value, parts)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        parts.append("[")
        for position, item in enumerate(value):
            if position:
                parts.append(",")
            _write(item, parts)
        parts.append("]")
    else:
        raise TypeError(f"{type(value).__name__} has no canonical JSON form: {value!r}")


def _write_mapping(value: Mapping[object, object], parts: list[str]) -> None:
    keys = []
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"canonical JSON keys are strings, not {type(key).__name__}: {key!r}")
        keys.append(key)
    keys.sort(key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    parts.append("{")
    for position, key in enumerate(keys):
        if position:
            parts.append(",")
        parts.append(json.dumps(key, ensure_ascii=False) + ":")
        _write(value[key], parts)
    parts.append("}")
