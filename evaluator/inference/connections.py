"""Connections that are kept open from one request to the next.

The pool of httpcore looks through all of its connections at each request: where 64 are open, that costs more processor
time than the request itself. Here a request takes a free connection to its origin, and gives it back after its answer.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

_GiveBack = Callable[[bool], Awaitable[None]]


class Connections(httpx.AsyncBaseTransport):
    """HTTP as httpx does it, each request on a connection of its own. At most `most` stay open between requests.

    How many run at once is the caller's to say. A connection whose exchange broke is not used again.
    """

    def __init__(self, most: int, tls: ssl.SSLContext, proxy: str | None = None) -> None:
        self._most, self._tls, self._proxy = most, tls, proxy
        self._open: set[httpx.AsyncHTTPTransport] = set()
        self._free: dict[tuple[str, bytes], list[httpx.AsyncHTTPTransport]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its connection is free again when the stream of its answer is closed."""
        origin = (request.url.scheme, request.url.netloc)
        free = self._free.get(origin)
        connection = free.pop() if free else self._another()

        async def give_back(whole: bool) -> None:
            if whole and len(self._open) <= self._most:
                self._free.setdefault(origin, []).append(connection)
            else:
                self._open.discard(connection)
                await connection.aclose()

        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            await give_back(False)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Body(response.stream, give_back)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        self._free.clear()
        while self._open:
            await self._open.pop().aclose()

    def _another(self) -> httpx.AsyncHTTPTransport:
        one = httpx.AsyncHTTPTransport(verify=self._tls, limits=httpx.Limits(max_connections=1), proxy=self._proxy)
        self._open.add(one)
        return one


class _Body(httpx.AsyncByteStream):
    """A body that tells once, when it is closed, whether its connection is as good as before."""

    def __init__(self, inner: httpx.AsyncByteStream, give_back: _GiveBack) -> None:
        self._inner = inner
        self._give_back: _GiveBack | None = give_back
        self._whole = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._inner:
                yield data
        except BaseException:
            self._whole = False
            raise

    async def aclose(self) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is None:
            return
        try:
            await self._inner.aclose()
        except BaseException:
            self._whole = False
            raise
        finally:
            await give_back(self._whole)
