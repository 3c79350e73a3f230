"""What a run may cost: no request is sent whose dearest end could lead over the limit."""

from __future__ import annotations

import asyncio
from decimal import Decimal


class Budget:
    """US dollars that a run folder may cost in all, with what earlier runs spent there.

    Before each request the most that it can cost is set aside, and what it did cost takes that place afterwards. So
    spending never passes the limit, however many requests run at once. Attempts that failed but may have been charged
    count as if they were.
    """

    def __init__(self, limit: Decimal | None, spent: Decimal = Decimal(0)) -> None:
        self.limit = limit
        self.spent = spent
        self._aside = Decimal(0)
        self._changed = asyncio.Condition()
        self._stopped = False

    async def set_aside(self, amount: Decimal) -> bool:
        """Set an amount aside, when others that run may leave room after waiting for them; return whether it fits."""
        if self.limit is None:
            return True
        async with self._changed:
            while self.spent + self._aside + amount > self.limit and not self._stopped:
                if not self._aside:
                    return False
                await self._changed.wait()
            if self._stopped:
                return False
            self._aside += amount
            return True

    async def settle(self, aside: Decimal, spent: Decimal) -> None:
        """Put what a request cost in the place of what was set aside for it."""
        async with self._changed:
            self.spent += spent
            if self.limit is not None:
                self._aside -= aside
            self._changed.notify_all()

    async def stop(self) -> None:
        """Let nobody wait for room any more."""
        async with self._changed:
            self._stopped = True
            self._changed.notify_all()
