"""What went over the wire: LiteLLM's answers are put beside what the provider itself sent.

LiteLLM is the transport, and it smooths things over: it names the model that was asked for instead of the one that
answered, counts tokens itself where a provider gave no usage, turns end reasons that it does not know into "stop", and
a body that is no stream into an empty answer. So the HTTP client that it is given looks at each request and each answer
as they pass. Nothing is changed, and messages are not kept.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import re
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import orjson

from gniah.evaluator.inference.connections import Connections
from gniah.evaluator.inference.failures import TOO_LARGE, Failure, error_message, error_status

# No model's answer is longer; a stream that goes on beyond it is broken off.
MOST_BYTES = 64 << 20
_MESSAGES = frozenset({"messages", "contents", "system", "systemInstruction", "system_instruction", "input", "prompt"})
# What makes an event worth a look: an end reason that is one, token counts, an error. Most have a piece of text only.
_WORTH_A_LOOK = re.compile(
    rb'"(?:native_)?(?:finish_?reason|stop_reason)"\s*:\s*"|"usage\w*"\s*:\s*\{|"error"', re.IGNORECASE
)
_LONGEST = 200
_START = 500
CONNECT_SECONDS = 30.0


class Exchange:
    """One request and its answer, as they pass. Times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.sent: dict[str, Any] | None = None
        self.sent_at: float | None = None
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.received = 0
        self.events = 0
        self.usage: dict[str, Any] = {}
        self.served: dict[str, Any] = {}
        self.error: Any = None
        self.start = b""
        self.readable = True
        self._rest = bytearray()
        self._stream = False

    def begin(self, content: bytes) -> None:
        """Take note of a request that is about to be sent; what an earlier one of the same attempt left goes."""
        self._clear()
        self.sent = _fields(content)
        self.sent_at = time.monotonic()

    def answered(self, status: int, headers: httpx.Headers) -> None:
        """Take note of the head of an answer."""
        self.status = status
        self.headers = dict(headers)
        self._stream = headers.get("content-type", "").startswith("text/event-stream")
        self.readable = headers.get("content-encoding", "identity") == "identity"

    def feed(self, data: bytes) -> None:
        """Take note of a piece of the body. Raises Failure when there are too many."""
        self.received += len(data)
        if self.received > MOST_BYTES:
            raise Failure(TOO_LARGE, f"the answer has more than {MOST_BYTES >> 20} MB")
        if not self.readable:
            return
        if len(self.start) < _START:
            self.start += data[: _START - len(self.start)]
        self._rest += data
        if self._stream and b"\n" in data:
            *lines, rest = self._rest.split(b"\n")
            self._rest = rest
            for line in lines:
                self._line(bytes(line))

    def end(self) -> None:
        """Take note of the end of the body."""
        if self.readable and self._rest:
            rest, self._rest = bytes(self._rest), bytearray()
            if self._stream:
                self._line(rest)
            else:
                self._note(rest)

    @property
    def message(self) -> str:
        """The words of the error that the provider sent, else the beginning of what it sent."""
        return error_message(self.error) or " ".join(self.start.decode("utf-8", "replace").split())

    @property
    def error_status(self) -> int | None:
        """The status of an error: the one inside a body of its own goes before that of the answer."""
        return error_status(self.error) or self.status

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        self.events += 1
        if self.events == 1 or _WORTH_A_LOOK.search(data):
            self._note(data)

    def _note(self, data: bytes) -> None:
        value = _parsed(data)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                self._take(one)

    def _take(self, event: dict[str, Any]) -> None:
        self.events = self.events or 1
        if error_message(event) is not None:
            self.error = event
        message = event.get("message")
        inner = message if isinstance(message, dict) else {}
        for name, found in (
            ("id", event.get("id") or event.get("responseId") or inner.get("id")),
            ("model", event.get("model") or event.get("modelVersion") or inner.get("model")),
            ("provider", event.get("provider")),
            ("system_fingerprint", event.get("system_fingerprint")),
            ("service_tier", _tier(event)),
            ("finish_reason", _finish(event)),
            ("native_finish_reason", _choice(event).get("native_finish_reason")),
        ):
            if isinstance(found, str) and found:
                self.served[name] = found[:_LONGEST]
        usage = event.get("usage") or event.get("usageMetadata") or inner.get("usage")
        if isinstance(usage, dict):
            self.usage.update({name: value for name, value in usage.items() if value is not None})


def _parsed(data: bytes) -> object:
    """Return the value of JSON, None when it is none. What orjson refuses, such as a lone surrogate, json may read."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(data)
    return None


def _fields(content: bytes) -> dict[str, Any] | None:
    """Return the fields of a request's body without its messages, or None when it is no JSON object."""
    value = _parsed(content)
    if not isinstance(value, dict):
        return None
    return {name: item for name, item in value.items() if name not in _MESSAGES}


def _choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("choices", "candidates"):
        found = event.get(name)
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return found[0]
    return {}


def _finish(event: Mapping[str, Any]) -> object:
    choice, delta = _choice(event), event.get("delta")
    inner = delta.get("stop_reason") if isinstance(delta, dict) else None
    blocked = event.get("promptFeedback")
    block = blocked.get("blockReason") if isinstance(blocked, dict) else None
    return choice.get("finish_reason") or choice.get("finishReason") or event.get("stop_reason") or inner or block


def _tier(event: Mapping[str, Any]) -> object:
    found = event.get("service_tier")
    for name in ("usage", "usageMetadata"):
        usage = event.get(name)
        if isinstance(usage, dict):
            found = found or usage.get("service_tier") or usage.get("serviceTier") or usage.get("trafficType")
    return found


_WATCHED: contextvars.ContextVar[Exchange | None] = contextvars.ContextVar("gniah_exchange", default=None)


def watch() -> Exchange:
    """Return the record of what this task sends and gets from now on."""
    exchange = Exchange()
    _WATCHED.set(exchange)
    return exchange


class WatchedTransport(httpx.AsyncBaseTransport):
    """HTTP as httpx does it, with each task's exchange noted. Proxies are those of the environment.

    Where a `network` is given, everything goes there.
    """

    def __init__(self, connections: int, network: httpx.AsyncBaseTransport | None = None) -> None:
        self._network = network
        tls = httpx.create_ssl_context()
        self._direct = Connections(connections, tls)
        self._proxies = {
            scheme: Connections(connections, tls, address)
            for scheme, address in urllib.request.getproxies().items()
            if scheme in ("http", "https", "all") and address.startswith("http")
        }

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on its way, and look at it and at its answer."""
        exchange = _WATCHED.get()
        if exchange is None:
            return await self._inner(request).handle_async_request(request)
        request.headers["accept-encoding"] = "identity"
        # Without an end to waits for a connection a dead address would take the whole time limit, which is ours.
        request.extensions["timeout"] = {"connect": CONNECT_SECONDS, "read": None, "write": None, "pool": None}
        exchange.begin(await request.aread())
        response = await self._inner(request).handle_async_request(request)
        exchange.answered(response.status_code, response.headers)
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _WatchedStream(response.stream, exchange)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in (self._direct, *self._proxies.values()):
            await transport.aclose()

    def _inner(self, request: httpx.Request) -> httpx.AsyncBaseTransport:
        if self._network is not None:
            return self._network
        if not self._proxies or urllib.request.proxy_bypass(request.url.host):
            return self._direct
        return self._proxies.get(request.url.scheme) or self._proxies.get("all") or self._direct


class _WatchedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, exchange: Exchange) -> None:
        self._inner = inner
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._inner:
            self._exchange.feed(data)
            yield data
        self._exchange.end()

    async def aclose(self) -> None:
        await self._inner.aclose()
