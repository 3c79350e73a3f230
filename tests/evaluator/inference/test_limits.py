from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.evaluator.inference import limits
from gniah.evaluator.inference.limits import MINUTE, Pace, Quota, Window

Uses = list[tuple[float, int]]


def earliest(uses: Uses, limit: int, amount: int, now: float) -> float:
    """Say plainly when an amount may be used: try every moment at which something falls out of the last minute."""

    def used(moment: float) -> int:
        return sum(part for at, part in uses if at + MINUTE > moment)

    moments = sorted({now, *(at + MINUTE for at, _ in uses if at + MINUTE > now)})
    return next(one for one in moments if used(one) + amount <= limit or used(one) == 0)


@given(
    st.integers(1, 100),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 130)), min_size=1, max_size=25),
)
def test_a_window_says_when_as_the_plain_rule_does_and_is_never_exceeded(
    limit: int, wishes: list[tuple[int, int]]
) -> None:
    window, now, uses = Window(limit), 0.0, []
    for pause, amount in wishes:
        now += pause
        wait = window.wait(amount, now)
        assert now + wait == earliest(uses, limit, amount, now)
        now += wait
        assert window.wait(amount, now) == 0
        window.use(amount, now)
        uses.append((now, amount))
    for at, amount in uses:
        within = sum(part for other, part in uses if at - MINUTE < other <= at)
        assert within <= limit or within == amount


def test_no_limit_never_waits() -> None:
    window = Window(None)
    window.use(10**12, 0.0)
    assert window.wait(10**12, 0.0) == 0


class Clock:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def timed(clock: Clock, pace: Pace) -> Pace:
    async def rest(seconds: float) -> bool:
        clock.now += seconds
        await asyncio.sleep(0)
        return not pace._stopped.is_set()

    pace.rest = rest  # type: ignore[method-assign]
    return pace


def test_turns_keep_both_limits_and_come_in_order() -> None:
    async def work() -> None:
        clock = Clock()
        pace = timed(clock, Pace(8, Quota(3, 1000), clock))
        turns = []

        async def one(number: int, tokens: int) -> None:
            assert await pace.turn(tokens)
            turns.append((number, clock.now))

        await asyncio.gather(*(one(number, tokens) for number, tokens in enumerate([400, 400, 400, 10, 10, 2500, 1])))
        assert turns == [(0, 0), (1, 0), (2, 60), (3, 60), (4, 60), (5, 120), (6, 180)]

    run(work())


def test_a_pause_holds_all_back() -> None:
    async def work() -> None:
        clock = Clock()
        pace = timed(clock, Pace(8, clock=clock))
        await pace.slow_down(30.0)
        assert pace.pause == 30
        assert await pace.turn(1)
        assert clock.now == 30

    run(work())


def test_overload_halves_what_runs_and_successes_bring_it_back() -> None:
    async def work() -> None:
        clock = Clock()
        pace = Pace(8, clock=clock)
        allowed = []
        for _ in range(3):
            await pace.slow_down(None)
            allowed.append(pace.allowed)
            clock.now += limits._HALVED_AT_MOST_EVERY
        assert allowed == [4, 2, 1]
        await pace.slow_down(None)
        assert pace.allowed == 1
        successes = 0
        while pace.allowed < 8:
            await pace.went_well()
            successes += 1
        assert successes <= sum(range(1, 8)) + 7
        await pace.went_well()
        assert pace.allowed == 8

    run(work())


def test_a_storm_halves_once() -> None:
    async def work() -> None:
        clock = Clock()
        pace = Pace(64, clock=clock)
        for _ in range(64):
            await pace.slow_down(None)
        assert pace.allowed == 32

    run(work())


def test_no_more_run_than_are_allowed() -> None:
    async def work() -> None:
        pace = Pace(3)
        running = most = 0

        async def one() -> None:
            nonlocal running, most
            assert await pace.enter()
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            await pace.leave()

        await asyncio.gather(*(one() for _ in range(20)))
        assert most == 3

    run(work())


@pytest.mark.parametrize("waiting", ["enter", "turn", "rest"])
def test_stopping_ends_every_wait(waiting: str) -> None:
    async def work() -> None:
        pace = Pace(1, Quota(1))
        assert await pace.enter()
        assert await pace.turn(1)
        calls = {"enter": pace.enter, "turn": lambda: pace.turn(1), "rest": lambda: pace.rest(60)}
        tasks = [asyncio.ensure_future(calls[waiting]()) for _ in range(3)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in tasks)
        await pace.stop()
        assert await asyncio.gather(*tasks) == [False] * 3

    run(work())
