"""Connections are used again, never two requests on one, never one that broke, and not more than asked for stay."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from gniah.evaluator.inference.connections import Connections


class Server:
    """Answers each request with the number of its connection; a path may ask for more time, or for half an answer."""

    def __init__(self) -> None:
        self.connections = 0
        self.open = 0
        self.slow = asyncio.Event()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        try:
            while first := await reader.readline():
                await reader.readuntil(b"\r\n\r\n")
                if b"/slow" in first:
                    await self.slow.wait()
                body = str(number).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(body) + 9 * (b"/half" in first)))
                writer.write(body)
                await writer.drain()
                if b"/half" in first:
                    break
        finally:
            self.open -= 1
            writer.close()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[tuple[Server, str]]:
    server = Server()
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    try:
        yield server, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


def in_loop(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await work()

    asyncio.run(limited())


def client(most: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=Connections(most, ssl.create_default_context()), timeout=None)


async def number(asking: httpx.AsyncClient, address: str) -> int:
    return int((await asking.get(address)).text)


def test_requests_one_after_the_other_share_a_connection() -> None:
    async def work() -> None:
        async with serving() as (_, address), client(2) as asking:
            assert [await number(asking, address) for _ in range(5)] == [1] * 5

    in_loop(work)


def test_requests_at_once_have_one_each_and_no_more_than_asked_for_stay() -> None:
    async def work() -> None:
        async with serving() as (server, address), client(3) as asking:
            eight = [asyncio.create_task(number(asking, f"{address}/slow")) for _ in range(8)]
            while server.connections < 8:
                await asyncio.sleep(0.01)
            server.slow.set()
            assert sorted(await asyncio.gather(*eight)) == list(range(1, 9))
            while server.open != 3:
                await asyncio.sleep(0.01)
            server.slow.clear()
            eight = [asyncio.create_task(number(asking, f"{address}/slow")) for _ in range(8)]
            while server.connections < 13:
                await asyncio.sleep(0.01)
            server.slow.set()
            again = sorted(await asyncio.gather(*eight))
            assert len(set(again)) == 8 and again[3:] == list(range(9, 14))

    in_loop(work)


def test_two_servers_do_not_share_a_connection() -> None:
    async def work() -> None:
        async with serving() as (one, first), serving() as (other, second), client(4) as asking:
            for _ in range(3):
                assert await number(asking, first) == await number(asking, second) == 1
            assert one.connections == other.connections == 1

    in_loop(work)


def test_a_connection_whose_answer_broke_off_is_not_used_again() -> None:
    async def work() -> None:
        async with serving() as (_, address), client(4) as asking:
            assert await number(asking, address) == 1
            with pytest.raises(httpx.RemoteProtocolError):
                await asking.get(f"{address}/half")
            assert await number(asking, address) == 2

    in_loop(work)


@pytest.mark.parametrize("begun", [False, True])
def test_a_request_that_was_given_up_leaves_no_trace(begun: bool) -> None:
    async def work() -> None:
        async with serving() as (server, address), client(4) as asking:
            assert await number(asking, address) == 1
            given_up = asyncio.create_task(number(asking, f"{address}/slow"))
            await asyncio.sleep(0.2 if begun else 0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            server.slow.set()
            assert [await number(asking, address) for _ in range(3)] == [await number(asking, address)] * 3

    in_loop(work)


def test_a_stream_left_half_read_is_closed() -> None:
    async def work() -> None:
        async with serving() as (server, address), client(4) as asking:
            async with asking.stream("GET", address) as response:
                assert response.status_code == 200
            assert await number(asking, address) == 2
            while server.open != 1:
                await asyncio.sleep(0.01)

    in_loop(work)


def test_closing_closes_all() -> None:
    async def work() -> None:
        async with serving() as (server, address):
            async with client(4) as asking:
                await asyncio.gather(*(number(asking, address) for _ in range(4)))
            while server.open:
                await asyncio.sleep(0.01)

    in_loop(work)
