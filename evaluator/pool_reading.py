"""Reading a pool of responses quickly: the same responses and the same errors as `read_responses`, in less time."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

from gniah.records.files import machine_trouble
from gniah.records.responses import Response, read_responses


def quick_responses(path: Path, end: int | None = None) -> Iterator[Response]:
    """Yield the responses of a pool file, up to an offset behind a line. Raises InputError with file and line.

    The first line that orjson refuses, such as one with NaN or a lone surrogate, is left to `read_responses`, and so
    is all that follows. An integer beyond 64 bits, which no pool has a use for, is read as a fraction.
    """
    read, left = 0, sys.maxsize if end is None else end
    with machine_trouble(path), path.open("rb") as stream:
        for line in stream:
            left -= len(line)
            if left < 0:
                return
            value = _quickly(line)
            if value is None:
                break
            read += 1
            yield Response.from_json(value, f"{path}:{read}")
        else:
            return
    yield from itertools.islice(read_responses(path, end), read, None)


def _quickly(line: bytes) -> dict[str, object] | None:
    """Return the object of a line, or None for a line that needs a closer look."""
    if not line.endswith(b"\n"):
        return None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
