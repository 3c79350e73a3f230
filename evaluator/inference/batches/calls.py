"""Calls to a provider's batch interface: tried again while that costs nothing, never without an end.

A batch is neither failed nor lost because a call about it failed. Bodies are streamed both ways. No key is in any
message. LiteLLM's own calls for files and batches hold a whole file in memory on its way up and down, try again by
themselves, and cannot create a batch in Anthropic's shape; so these go by httpx, which LiteLLM brings.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx
import orjson

from gniah.evaluator.inference.attempts import Patience
from gniah.evaluator.inference.batches.translation import Route
from gniah.evaluator.inference.failures import (
    CONNECTION,
    CUT_SHORT,
    FREE,
    INVALID,
    STALLED,
    TIME_LIMIT,
    TOO_LARGE,
    Failure,
    by_status,
    error_message,
    without_secrets,
)
from gniah.evaluator.inference.wire import CONNECT_SECONDS, MOST_BYTES
from gniah.records.files import machine_trouble, whole_file
from gniah.records.manifests import package_version

# What is met by another call: nothing is paid for by asking again how things stand.
_AGAIN = FREE | {CUT_SHORT, STALLED, TIME_LIMIT, INVALID}
# A file of some hundred megabytes over a slow line.
_LONGEST_TRANSFER = 6 * 3600.0
_CHUNK = 1 << 20
_START = 500

T = TypeVar("T")


class Calls:
    """Calls of one provider's interface. It is an async context manager."""

    def __init__(self, route: Route, patience: Patience) -> None:
        self.address = route.address
        self.patience = patience
        self._secrets = route.secrets
        # Commands that fail together come back one by one.
        self._name = f"{route.address} {os.getpid()} {time.time_ns()}"
        timeout = httpx.Timeout(patience.idle_limit, connect=CONNECT_SECONDS, pool=None)
        headers = {**route.headers, "user-agent": f"gniah/{package_version()}", "accept-encoding": "identity"}
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout)

    async def __aenter__(self) -> Calls:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, place: str, parameters: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        """Return the JSON object at a place, after as many attempts as it takes. Raises Failure."""
        return await self.again(lambda: self.once("GET", place, params=dict(parameters or {})))

    async def again(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that costs nothing until it succeeds or another attempt makes no sense. Raises Failure."""
        attempts = 0
        while True:
            try:
                return await call()
            except Failure as failure:
                attempts += 1
                if failure.kind not in _AGAIN or attempts >= self.patience.attempts:
                    raise
                if failure.wait is not None and failure.wait > self.patience.longest_wait:
                    raise
                await self.pause(attempts, failure.wait)

    async def pause(self, attempts: int, asked: float | None = None) -> None:
        """Wait before another attempt: what the provider asks for, and a random time that grows with the attempts."""
        await asyncio.sleep((asked or 0.0) + self.patience.drawn_wait(self._name, attempts))

    async def once(self, method: str, place: str, **more: Any) -> dict[str, Any]:
        """Make one call and return the JSON object it gives. Raises Failure.

        Of kind `connection` it is when the call did not get through; where it may have, the kind is another one.
        """
        async with self._open(method, place, self.patience.time_limit, **more) as response:
            body = await _body(response)
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise self._failure(INVALID, f"no JSON object: {_words(body)}")
        return value

    async def upload(self, place: str, path: Path, purpose: str) -> dict[str, Any]:
        """Send a file as a form, once. Raises Failure."""
        with machine_trouble(path), path.open("rb") as stream:
            form = {"files": {"file": (f"{path.stem}.jsonl", stream, "application/jsonl")}}
            return await self.once("POST", place, data={"purpose": purpose}, **form)

    async def send_file(self, place: str, path: Path) -> dict[str, Any]:
        """Send a file as the JSON body of a call, once. Raises Failure."""
        with machine_trouble(path):
            size = path.stat().st_size
        headers = {"content-type": "application/json", "content-length": str(size)}
        return await self.once("POST", place, content=_pieces(path), headers=headers)

    async def download(self, place: str, path: Path) -> None:
        """Write what stands at a place into a file, which appears when all of it came. Raises Failure."""
        async with self._open("GET", place, _LONGEST_TRANSFER) as response:
            with whole_file(path) as stream:
                async for piece in response.aiter_bytes(_CHUNK):
                    stream.write(piece)

    async def first_line(self, place: str) -> bytes:
        """Return the first line of what stands at a place. Raises Failure."""
        found = bytearray()
        async with self._open("GET", place, self.patience.time_limit) as response:
            async for piece in response.aiter_bytes(_CHUNK):
                found += piece
                if b"\n" in found or len(found) > MOST_BYTES:
                    break
        return bytes(found).partition(b"\n")[0]

    @contextlib.asynccontextmanager
    async def _open(self, method: str, place: str, seconds: float, **more: Any) -> AsyncIterator[httpx.Response]:
        """Make a call and give its answer, whose body is still to be read."""
        begun = False
        seconds = _LONGEST_TRANSFER if "files" in more or "content" in more else seconds
        try:
            async with asyncio.timeout(seconds):
                async with self._client.stream(method, f"{self.address}{place}", **more) as response:
                    begun = True
                    if not response.is_success:
                        body = await _body(response)
                        words = self._masked(_error_words(body))
                        raise by_status(response.status_code, words, dict(response.headers))
                    yield response
        except TimeoutError as error:
            raise self._failure(TIME_LIMIT, f"no whole answer within {seconds:g} s") from error
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise self._failure(CONNECTION, f"{type(error).__name__}: {error}") from error
        except httpx.TimeoutException as error:
            raise self._failure(STALLED, f"nothing came for {self.patience.idle_limit:g} s") from error
        except httpx.HTTPError as error:
            what = "the answer broke off" if begun else "the connection broke"
            raise self._failure(CUT_SHORT, f"{what}: {type(error).__name__}: {error}") from error
        except httpx.InvalidURL as error:
            raise self._failure(INVALID, f"{type(error).__name__}: {error}") from error

    def _failure(self, kind: str, words: str) -> Failure:
        return Failure(kind, self._masked(words))

    def _masked(self, words: str) -> str:
        return without_secrets(words, self._secrets)


async def _body(response: httpx.Response) -> bytes:
    found = bytearray()
    async for piece in response.aiter_bytes(_CHUNK):
        found += piece
        if len(found) > MOST_BYTES:
            raise Failure(TOO_LARGE, f"an answer of more than {MOST_BYTES >> 20} MB")
    return bytes(found)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with machine_trouble(path), path.open("rb") as stream:
        while piece := stream.read(_CHUNK):
            yield piece


def _words(body: bytes) -> str:
    return " ".join(body[:_START].decode("utf-8", "replace").split()) or "an empty body"


def _error_words(body: bytes) -> str:
    try:
        return error_message(orjson.loads(body)) or _words(body)
    except orjson.JSONDecodeError:
        return _words(body)
