from __future__ import annotations

import asyncio
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.evaluator.inference.budget import Budget

CENTS = st.integers(0, 300).map(lambda cents: Decimal(cents) / 100)


@settings(deadline=None)
@given(CENTS, CENTS, st.lists(st.tuples(CENTS, st.integers(0, 100)), max_size=12))
def test_spending_never_passes_the_limit_and_stops_only_when_the_next_would_not_fit(
    limit: Decimal, spent: Decimal, requests: list[tuple[Decimal, int]]
) -> None:
    async def work() -> None:
        budget = Budget(limit, spent)

        async def one(most: Decimal, part: int) -> bool:
            if not await budget.set_aside(most):
                return False
            await asyncio.sleep(0)
            await budget.settle(most, most * part / 100)
            assert budget.spent <= limit
            return True

        made = await asyncio.gather(*(one(most, part) for most, part in requests))
        after = budget.spent
        for (most, _), was_made in zip(requests, made, strict=True):
            assert was_made or after + most > limit

    asyncio.run(asyncio.wait_for(work(), 20))


def test_without_a_limit_everything_fits_and_is_counted() -> None:
    async def work() -> None:
        budget = Budget(None, Decimal(3))
        assert await budget.set_aside(Decimal(10**9))
        await budget.settle(Decimal(10**9), Decimal(5))
        assert budget.spent == 8

    asyncio.run(work())


def test_stopping_ends_the_wait_for_room() -> None:
    async def work() -> None:
        budget = Budget(Decimal(1))
        assert await budget.set_aside(Decimal(1))
        waiting = asyncio.ensure_future(budget.set_aside(Decimal(1)))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await budget.stop()
        assert not await waiting

    asyncio.run(asyncio.wait_for(work(), 20))
