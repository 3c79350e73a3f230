"""The batch interfaces of OpenAI and Anthropic: one set of words for both.

What a provider sends is untrusted: its names of batches and files are checked before they become part of an address,
and results are fetched from the address that the key belongs to, whatever address the provider names.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from gniah.evaluator.inference.batches.calls import Calls
from gniah.evaluator.inference.batches.journal import Batch
from gniah.evaluator.inference.batches.translation import ANTHROPIC
from gniah.evaluator.inference.failures import INVALID, Failure

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_:-]|\.(?!\.)){0,199}", re.ASCII)
# How far the clocks of two machines may be apart when a batch is looked for among those of a time.
_SLACK = datetime.timedelta(hours=24)
_PAGE, _MOST_PAGES = 100, 1000
_OURS = "gniah_batch"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a batch stands, in the provider's words.

    `results` name what can be downloaded once it has ended, each with the place where it is. `failed` says why the
    batch as a whole was refused; then none of its requests was answered. `lines` is the least number of results.
    """

    state: str
    ended: bool
    counts: Mapping[str, int] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    failed: str | None = None
    lines: int = 0


@dataclass(frozen=True, slots=True)
class Sought:
    """What became of a batch whose submission was cut off: its name at the provider, or None when it is not there.

    `unsure` are batches there that may be it.
    """

    provider_id: str | None = None
    unsure: tuple[str, ...] = ()


class Interface(Protocol):
    """A provider's batch interface. All calls raise Failure."""

    async def upload(self, batch: Batch, path: Path) -> str | None:
        """Send the file of a batch, where that is a step of its own; return its name there. It costs nothing."""
        ...

    async def create(self, batch: Batch, path: Path) -> tuple[str, str]:
        """Submit a batch, once; return its name there and its state."""
        ...

    async def seek(self, batch: Batch, known: frozenset[str]) -> Sought:
        """Look for a batch that may have been submitted; `known` are other batches' names there."""
        ...

    async def look(self, batch: Batch) -> Standing:
        """Ask how a batch stands."""
        ...

    async def cancel(self, batch: Batch) -> str:
        """Ask for an end of a batch; what is answered already stays. Return its state."""
        ...


def interface(shape: str, calls: Calls) -> Interface:
    """Return the interface of a shape."""
    return _Anthropic(calls) if shape == ANTHROPIC else _OpenAI(calls)


class _OpenAI:
    """Files and batches: a file is uploaded, and a batch is made of it that carries our name in its metadata."""

    _ENDED = frozenset({"completed", "failed", "expired", "cancelled"})

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def upload(self, batch: Batch, path: Path) -> str | None:
        value = await self._calls.again(lambda: self._calls.upload("/files", path, "batch"))
        return _name(value.get("id"), "file")

    async def create(self, batch: Batch, path: Path) -> tuple[str, str]:
        wanted = {
            "input_file_id": batch.file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {_OURS: batch.id},
        }
        value = await self._calls.once("POST", "/batches", json=wanted)
        return _name(value.get("id"), "batch"), _word(value.get("status"))

    async def seek(self, batch: Batch, known: frozenset[str]) -> Sought:
        async for one in _since(self._calls, "/batches", "after", batch):
            metadata = one.get("metadata")
            if isinstance(metadata, Mapping) and metadata.get(_OURS) == batch.id:
                return Sought(_name(one.get("id"), "batch"))
        return Sought()

    async def look(self, batch: Batch) -> Standing:
        value = await self._calls.get(f"/batches/{batch.provider_id}")
        state = _word(value.get("status"))
        counts = _counts(value.get("request_counts"))
        results = {
            name: f"/files/{_name(value[field], 'file')}/content"
            for name, field in (("answers", "output_file_id"), ("errors", "error_file_id"))
            if value.get(field)
        }
        failed = _refusal(value.get("errors")) if state == "failed" else None
        lines = counts.get("total" if state == "completed" else "completed", 0)
        return Standing(state, state in self._ENDED, counts, results, failed, lines)

    async def cancel(self, batch: Batch) -> str:
        value = await self._calls.again(lambda: self._calls.once("POST", f"/batches/{batch.provider_id}/cancel"))
        return _word(value.get("status"))


class _Anthropic:
    """Message batches: all requests go in one call, and nothing but their own names tells whose a batch is."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def upload(self, batch: Batch, path: Path) -> str | None:
        return None

    async def create(self, batch: Batch, path: Path) -> tuple[str, str]:
        value = await self._calls.send_file("/messages/batches", path)
        return _name(value.get("id"), "batch"), _word(value.get("processing_status"))

    async def seek(self, batch: Batch, known: frozenset[str]) -> Sought:
        """Look among the batches made since with as many requests. Their requests' names show when they have ended."""
        unsure = []
        async for one in _since(self._calls, "/messages/batches", "after_id", batch):
            name = _name(one.get("id"), "batch")
            if name in known or sum(_counts(one.get("request_counts")).values()) != len(batch.requests):
                continue
            if one.get("processing_status") != "ended":
                unsure.append(name)
            elif await self._is(name, batch):
                return Sought(name)
        return Sought(unsure=tuple(unsure))

    async def _is(self, name: str, batch: Batch) -> bool:
        line = await self._calls.again(lambda: self._calls.first_line(f"/messages/batches/{name}/results"))
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise Failure(INVALID, f"the results of {name} cannot be read") from None
        found = value.get("custom_id") if isinstance(value, Mapping) else None
        return any(asked.custom_id == found for asked in batch.requests)

    async def look(self, batch: Batch) -> Standing:
        value = await self._calls.get(f"/messages/batches/{batch.provider_id}")
        state = _word(value.get("processing_status"))
        counts = _counts(value.get("request_counts"))
        ended = state == "ended"
        results = {"answers": f"/messages/batches/{batch.provider_id}/results"} if ended else {}
        return Standing(state, ended, counts, results, None, sum(counts.values()))

    async def cancel(self, batch: Batch) -> str:
        place = f"/messages/batches/{batch.provider_id}/cancel"
        value = await self._calls.again(lambda: self._calls.once("POST", place))
        return _word(value.get("processing_status"))


async def _since(calls: Calls, place: str, cursor: str, batch: Batch) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the batches there that may have been made since a batch was about to be submitted.

    The lists begin with the youngest, so the first page of nothing but older ones is the last. Raises Failure.
    """
    moment = _moment(batch.submitting_at) or datetime.datetime.now(datetime.UTC)
    since = moment - _SLACK
    after: dict[str, str | int] = {}
    for _ in range(_MOST_PAGES):
        page = await calls.get(place, {"limit": _PAGE, **after})
        data = page.get("data")
        if not isinstance(data, list):
            raise Failure(INVALID, f"{place}: no list of batches")
        found = [one for one in data if isinstance(one, Mapping)]
        young = [one for one in found if (_moment(one.get("created_at")) or since) >= since]
        for one in young:
            yield one
        if not page.get("has_more") or not young:
            return
        after = {cursor: _name(found[-1].get("id"), "batch")}
    raise Failure(INVALID, f"{place}: more than {_MOST_PAGES} pages")


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise Failure(INVALID, f"the provider named no {what}: {str(value)[:100]!r}")
    return value


def _word(value: object) -> str:
    return value[:40] if isinstance(value, str) else "unknown"


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {}
    return {
        str(name)[:40]: count
        for name, count in value.items()
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= 10**9
    }


def _refusal(errors: object) -> str:
    """Return why a batch was refused as a whole."""
    data = errors.get("data") if isinstance(errors, Mapping) else None
    words = []
    for one in (data if isinstance(data, list) else [])[:3]:
        if isinstance(one, Mapping):
            line = f"line {one['line']}: " if one.get("line") is not None else ""
            code = f" ({one['code']})" if one.get("code") else ""
            words.append(f"{line}{one.get('message')}{code}"[:500])
    return "; ".join(words) or "the provider does not say why"


def _moment(value: object) -> datetime.datetime | None:
    """Return a moment that is written as text or in seconds since 1970, None when it is neither."""
    try:
        if isinstance(value, int | float):
            return datetime.datetime.fromtimestamp(value, datetime.UTC)
        found = datetime.datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return found if found is None or found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)
