from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from gniah.evaluator.inference import failures
from gniah.evaluator.inference.attempts import Asker, Patience, Pursuit, Tiers
from gniah.evaluator.inference.failures import Failure
from gniah.evaluator.inference.limits import Pace
from gniah.evaluator.inference.transport import Outgoing, Reply

QUICK = Patience(attempts=4, paid_attempts=2, backoff=0.0, longest_wait=10.0)


def reply(text: str = r"\answer{YES}", reasoning: str | None = None, tokens: int = 5) -> Reply:
    return Reply(text, reasoning, "stop", {"completion_tokens": tokens}, {}, {}, "2026-11-30", 1.0, 0.5)


class Played:
    """A transport that plays what it is given, and notes the tiers it was asked at."""

    def __init__(self, *ends: Reply | Failure) -> None:
        self.ends = list(ends)
        self.tiers: list[str | None] = []

    async def send(self, outgoing: Outgoing, time_limit: float, idle_limit: float) -> Reply:
        self.tiers.append(outgoing.tier)
        await asyncio.sleep(0)
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(end, Failure):
            raise end
        return end

    async def close(self) -> None:
        pass


def ask(
    transport: Played,
    tiers: Tiers | None = None,
    patience: Patience = QUICK,
    said: list[str] | None = None,
    keys: tuple[str, ...] = (),
    times: int = 1,
) -> list[Pursuit]:
    async def work() -> list[Pursuit]:
        notes = [] if said is None else said
        asker = Asker(transport, Pace(4), tiers or Tiers(), patience, notes.append, keys)
        return [await asker.ask(Outgoing("m", "s", "u"), 10, "name") for _ in range(times)]

    return asyncio.run(asyncio.wait_for(work(), 20))


def kinds(pursuit: Pursuit) -> Sequence[str]:
    return [attempt["kind"] for attempt in pursuit.failed]


def fail(kind: str, count: int = 1) -> Iterable[Failure]:
    return [Failure(kind, f"number {number}") for number in range(count)]


@pytest.mark.parametrize("kind", sorted(failures.FREE - {failures.NO_CAPACITY}))
def test_what_is_free_is_tried_again_up_to_the_end(kind: str) -> None:
    (pursuit,) = ask(transport := Played(*fail(kind, 3), reply()))
    assert pursuit.reply is not None and kinds(pursuit) == [kind] * 3
    assert pursuit.perhaps_paid == 0
    (pursuit,) = ask(transport := Played(*fail(kind)))
    assert pursuit.failure is not None and pursuit.failure.kind == kind
    assert len(transport.tiers) == 4


@pytest.mark.parametrize("kind", sorted(failures.PERHAPS_PAID - {failures.TOO_LARGE, failures.NO_ANSWER}))
def test_what_may_have_been_paid_is_tried_seldom(kind: str) -> None:
    (pursuit,) = ask(transport := Played(*fail(kind)))
    assert pursuit.failure is not None and len(transport.tiers) == 2
    assert pursuit.perhaps_paid == 2


@pytest.mark.parametrize("kind", sorted(failures.LAST | failures.ENDS_A_MODEL))
def test_what_would_end_alike_is_not_tried_again(kind: str) -> None:
    (pursuit,) = ask(transport := Played(*fail(kind)))
    assert pursuit.failure is not None and pursuit.failure.kind == kind and len(transport.tiers) == 1


def test_an_answer_of_nothing_is_asked_again_and_kept_when_it_stays() -> None:
    nothing = reply("", None, 0)
    (pursuit,) = ask(Played(nothing, reply()))
    assert pursuit.reply is not None and pursuit.reply.text and kinds(pursuit) == [failures.NO_ANSWER]
    (pursuit,) = ask(Played(nothing))
    assert pursuit.reply is nothing and pursuit.failure is None and kinds(pursuit) == [failures.NO_ANSWER]


@pytest.mark.parametrize("kept", [reply("", "only thought"), reply("", None, 7)])
def test_an_empty_answer_with_thought_or_tokens_is_an_answer(kept: Reply) -> None:
    (pursuit,) = ask(Played(kept))
    assert pursuit.reply is kept and not pursuit.failed


def test_a_tier_without_room_is_left_for_the_next_one_and_tried_first_by_the_next_request() -> None:
    full = Failure(failures.NO_CAPACITY, "no room")
    transport = Played(full, reply(), full, reply())
    pursuits = ask(transport, Tiers(("flex", "default")), times=2)
    assert transport.tiers == ["flex", "default", "flex", "default"]
    assert [pursuit.tier for pursuit in pursuits] == ["default"] * 2


def test_the_last_tier_without_room_is_waited_for() -> None:
    transport = Played(*fail(failures.NO_CAPACITY, 3), reply())
    (pursuit,) = ask(transport, Tiers(("flex", "default")))
    assert transport.tiers == ["flex", "default", "default", "default"] and pursuit.reply is not None
    transport = Played(*fail(failures.NO_CAPACITY))
    (pursuit,) = ask(transport, Tiers(("flex",)))
    assert transport.tiers == ["flex"] * 4 and pursuit.failure is not None


def test_a_tier_that_is_not_offered_is_said_once_and_never_asked_for_again() -> None:
    said: list[str] = []
    transport = Played(Failure(failures.TIER, "flex is not for this model"), reply())
    ask(transport, Tiers(("flex", "default")), said=said, times=3)
    assert transport.tiers == ["flex", "default", "default", "default"]
    assert len(said) == 1 and "flex" in said[0]


def test_when_every_tier_is_refused_none_is_sent() -> None:
    transport = Played(*fail(failures.TIER, 2), reply())
    (pursuit,) = ask(transport, Tiers(("flex", "default")))
    assert transport.tiers == ["flex", "default", None] and pursuit.reply is not None


def test_a_wait_beyond_patience_ends_it() -> None:
    (pursuit,) = ask(transport := Played(Failure(failures.RATE_LIMIT, "slow", wait=86400.0)))
    assert pursuit.failure is not None and pursuit.failure.wait == 86400 and len(transport.tiers) == 1


def test_the_asked_wait_is_waited_for() -> None:
    async def work() -> None:
        pace = Pace(4)
        waits: list[float] = []

        async def rest(seconds: float) -> bool:
            waits.append(seconds)
            pace._paused_until = float("-inf")
            return True

        pace.rest = rest  # type: ignore[method-assign]
        transport = Played(Failure(failures.RATE_LIMIT, "slow", wait=7.0), reply())
        asker = Asker(transport, pace, Tiers(), Patience(backoff=1.0), lambda _: None)
        await asker.ask(Outgoing("m", "s", "u"), 10, "name")
        assert 7.0 <= waits[0] <= 7.0 + 0.7 + 1.0

    asyncio.run(asyncio.wait_for(work(), 20))


def test_waits_grow_and_end() -> None:
    patience = Patience(backoff=1.0, longest_backoff=30.0)
    for attempts, longest in ((1, 1), (2, 2), (4, 8), (6, 30), (1000, 30)):
        drawn = [patience.drawn_wait(f"request {number}", attempts) for number in range(300)]
        assert min(drawn) >= 0 and longest / 2 < max(drawn) <= longest
        assert len(set(drawn)) > 290


def test_a_key_in_a_message_is_taken_out() -> None:
    failure = Failure(failures.KEY, "Incorrect API key provided: sk-very-secret.")
    (pursuit,) = ask(Played(failure), keys=("sk-very-secret",))
    assert "sk-very-secret" not in str(pursuit) and "[key]" in str(pursuit.failure)


def test_a_stop_lets_nothing_more_go() -> None:
    async def work() -> None:
        pace = Pace(4)
        transport = Played(*fail(failures.SERVER))
        asker = Asker(transport, pace, Tiers(), Patience(backoff=1000.0, longest_backoff=1000.0), lambda _: None)
        task = asyncio.ensure_future(asker.ask(Outgoing("m", "s", "u"), 10, "name"))
        await asyncio.sleep(0.05)
        await pace.stop()
        pursuit = await task
        assert pursuit.failure is not None and len(transport.tiers) == 1
        fresh = await asker.ask(Outgoing("m", "s", "u"), 10, "name")
        assert fresh.reply is None and fresh.failure is None and len(transport.tiers) == 1

    asyncio.run(asyncio.wait_for(work(), 20))
