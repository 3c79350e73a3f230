"""Responses go to disk as they come, in a thread of their own."""

from __future__ import annotations

import asyncio

from gniah.evaluator.pool import InferencePool
from gniah.records.responses import Response


class Keeper:
    """Writes responses into a pool in a thread; those that come while it writes are written and flushed together."""

    def __init__(self, pool: InferencePool) -> None:
        self.pool = pool
        self._waiting: list[tuple[Response, asyncio.Future[None]]] = []
        self._there = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Keeper:
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        self._there.set()
        if self._task is not None:
            await self._task

    async def keep(self, response: Response) -> None:
        """Return when a response is on disk. Raises what the disk raises."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((response, future))
        self._there.set()
        await asyncio.shield(future)

    async def _work(self) -> None:
        while not (self._closing and not self._waiting):
            await self._there.wait()
            self._there.clear()
            taken, self._waiting = self._waiting, []
            if not taken:
                continue
            try:
                await asyncio.to_thread(self.pool.append_all, [response for response, _ in taken])
            except Exception as error:  # noqa: BLE001  (who waits for it raises it)
                for _, future in taken:
                    if not future.done():
                        future.set_exception(error)
                        future.exception()  # who waited may have been cancelled, and nobody else is to hear of it
            else:
                for _, future in taken:
                    if not future.done():
                        future.set_result(None)
