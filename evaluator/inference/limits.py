"""How fast one model is asked.

Limits are requests and tokens in any minute, pauses that the provider asks for, and how many requests run at once,
which follows what the provider bears.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable

MINUTE = 60.0
_HALVED_AT_MOST_EVERY = 5.0

Clock = Callable[[], float]


class Window:
    """An amount that may be used within any sixty seconds.

    What is more than all of it may be used when nothing was for a whole minute: nobody can do better.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._used: deque[tuple[float, int]] = deque()
        self._sum = 0

    def wait(self, amount: int, now: float) -> float:
        """Return the seconds until so much may be used."""
        if self.limit is None:
            return 0.0
        self._forget(now)
        used, until = self._sum, now
        for moment, part in self._used:
            if used + amount <= self.limit:
                break
            used -= part
            until = moment + MINUTE
        return until - now

    def use(self, amount: int, now: float) -> None:
        """Take note that so much is used."""
        if self.limit is not None:
            self._used.append((now, amount))
            self._sum += amount

    def _forget(self, now: float) -> None:
        while self._used and self._used[0][0] <= now - MINUTE:
            self._sum -= self._used.popleft()[1]


class Quota:
    """Requests and prompt tokens in any minute. One model's are shared by all that ask it, at whatever effort."""

    def __init__(self, requests_per_minute: int | None = None, tokens_per_minute: int | None = None) -> None:
        self._requests, self._tokens = Window(requests_per_minute), Window(tokens_per_minute)

    def wait(self, tokens: int, now: float) -> float:
        """Return the seconds until one more attempt with so many tokens may be sent."""
        return max(self._requests.wait(1, now), self._tokens.wait(tokens, now))

    def use(self, tokens: int, now: float) -> None:
        """Take note that one is sent."""
        self._requests.use(1, now)
        self._tokens.use(tokens, now)


class Pace:
    """When the next attempt of a model's requests may go, and how many may run.

    At most `concurrency` run at once. After a sign of overload half as many do, and after each success a little more
    again: one more for as many successes as may run.
    """

    def __init__(self, concurrency: int, quota: Quota | None = None, clock: Clock = time.monotonic) -> None:
        self._most = max(1, concurrency)
        self._allowed = float(self._most)
        self._running = 0
        self._quota = quota or Quota()
        self._clock = clock
        self._paused_until = self._halved_at = float("-inf")
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()
        self._stopped = asyncio.Event()

    @property
    def allowed(self) -> int:
        """How many requests may run at once now."""
        return max(1, int(self._allowed))

    @property
    def running(self) -> int:
        """How many attempts run now."""
        return self._running

    @property
    def pause(self) -> float:
        """For how many more seconds nothing is sent because the provider asked for it."""
        return max(0.0, self._paused_until - self._clock())

    async def stop(self) -> None:
        """Let nothing more go: all waits end, and say so."""
        self._stopped.set()
        async with self._changed:
            self._changed.notify_all()

    async def rest(self, seconds: float) -> bool:
        """Wait so long; return whether requests may still go."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)
        return not self._stopped.is_set()

    async def enter(self) -> bool:
        """Wait until one more attempt may run, and count it; return False when none may go any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._running < self.allowed or self._stopped.is_set())
            if self._stopped.is_set():
                return False
            self._running += 1
            return True

    async def leave(self) -> None:
        """Take note that an attempt ended."""
        async with self._changed:
            self._running -= 1
            self._changed.notify_all()

    async def turn(self, tokens: int) -> bool:
        """Wait until an attempt with so many prompt tokens may be sent, first come first served, and count it.

        Returns False when nothing may go any more.
        """
        async with self._turn:
            while not self._stopped.is_set():
                now = self._clock()
                wait = max(self.pause, self._quota.wait(tokens, now))
                if wait <= 0:
                    self._quota.use(tokens, now)
                    return True
                await self.rest(wait)
            return False

    async def slow_down(self, wait: float | None) -> None:
        """Take note of a sign of overload, and of the seconds that the provider asked to wait."""
        now = self._clock()
        if wait is not None:
            self._paused_until = max(self._paused_until, now + wait)
        if now - self._halved_at >= _HALVED_AT_MOST_EVERY:
            self._halved_at = now
            self._allowed = max(1.0, self.allowed / 2)

    async def went_well(self) -> None:
        """Take note of a success."""
        if self._allowed < self._most:
            async with self._changed:
                self._allowed = min(float(self._most), self._allowed + 1 / self.allowed)
                self._changed.notify_all()
