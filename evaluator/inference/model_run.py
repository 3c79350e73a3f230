"""One model's part of a run: which request is next, what becomes of it, and when to stop asking."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any

from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.attempts import Asker, Patience, Pursuit, Tiers, failure_fields
from gniah.evaluator.inference.budget import Budget
from gniah.evaluator.inference.failures import ENDS_A_MODEL, REFUSED, TOO_LONG, Failure
from gniah.evaluator.inference.keeper import Keeper
from gniah.evaluator.inference.limits import Pace, Quota
from gniah.evaluator.inference.transport import Outgoing, Transport
from gniah.evaluator.selection import Chosen, Selection
from gniah.records.responses import Call, Response

Notice = Callable[[str], None]
# So many requests of one model that fail in a row, after all their attempts, end its part of the run.
_FAILED_IN_A_ROW = 10
# So many first requests that are refused, or whose prompts arrive cut, are no accident.
_REFUSED_AT_FIRST = 5
_CUT_AT_FIRST = 3
# Fields that go out under another name than they are asked for.
_OTHER_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_completion_tokens",
    "output_config": "reasoning_effort",
    "reasoning": "reasoning_effort",
    "stop_sequences": "stop",
    "thinking": "reasoning_effort",
}


@dataclass(slots=True)
class Tally:
    """What became of one model's requests in one run. `cost` is in US dollars, of what was asked now.

    `unpriced` answers have an unknown cost. `perhaps` is the most that failed attempts may have cost. `ended` says
    why the model was not asked to the end.
    """

    model: str
    total: int = 0
    already: int = 0
    answered: int = 0
    cut: int = 0
    failed: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    perhaps: Decimal = Decimal(0)
    kinds: dict[str, int] = field(default_factory=dict)
    ended: str | None = None
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of_finished(cls, work: Work) -> Tally:
        """Return the tally of a run that finds every answer there."""
        total = len(work.selection.chosen) * work.repeats
        return cls(work.model.label, total=total, already=total)

    def to_json(self) -> dict[str, Any]:
        """Return the tally as an object."""
        left_out = ("began",)
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left_out}
        return {**found, "cost": f"{self.cost:f}", "perhaps": f"{self.perhaps:f}", "not_asked": self.left}

    @property
    def left(self) -> int:
        """How many requests have no answer yet and have not failed."""
        return self.total - self.already - self.answered - self.cut - self.failed

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at the rate so far, or None before the first."""
        done = self.answered + self.cut + self.failed
        return None if not done else (time.monotonic() - self.began) / done * self.left


@dataclass(frozen=True, slots=True)
class Work:
    """What one model is asked: which examples, how often each, and how long a request is pursued."""

    model: AskedModel
    selection: Selection
    repeats: int = 1
    patience: Patience | None = None

    def key(self, one: Chosen, repeat: int) -> str:
        """Return the key of a request."""
        return self.model.request_key(one.prompt_sha256, repeat)

    def left(self, done: Container[str]) -> int:
        """Return how many requests have no answer among the keys that are done."""
        return sum(self.key(one, number) not in done for one in self.selection.chosen for number in range(self.repeats))


@dataclass(frozen=True, slots=True)
class Unit:
    """One request that is to be made."""

    one: Chosen
    repeat: int
    key: str


class ModelRun:
    """One model's part of a run."""

    def __init__(
        self, work: Work, keeper: Keeper, transport: Transport, budget: Budget, quota: Quota, notice: Notice
    ) -> None:
        model, limits = work.model, work.model.file.limits
        self.model = model
        self.tally = Tally(model.label, total=len(work.selection.chosen) * work.repeats)
        self.watch: Callable[[], None] = lambda: None
        self._work, self._keeper, self._budget = work, keeper, budget
        self._notice = notice
        self._pace = Pace(limits.concurrency, quota)
        self._patience = work.patience or Patience(
            time_limit=limits.time_limit_seconds, idle_limit=limits.idle_limit_seconds
        )
        key = model.key
        keys = (key,) if key else ()
        tiers = Tiers(model.file.tiers)
        self._asker = Asker(transport, self._pace, tiers, self._patience, self._say, keys)
        self._followers: deque[Unit] = deque()
        self._waiting: dict[str, list[Unit]] = {}
        self._in_a_row = 0
        self._looked = self._stopped = False
        # So many requests are in memory; how many of them run is the pace's to say.
        self._room = asyncio.Semaphore(limits.concurrency)
        self._units = self._first_units()

    @property
    def running(self) -> int:
        """How many attempts are under way."""
        return self._pace.running

    def _say(self, text: str) -> None:
        self._notice(f"{self.model.label}: {text}")

    async def stop(self) -> None:
        """Send nothing more."""
        self._stopped = True
        await self._pace.stop()

    async def run(self) -> None:
        """Ask until nothing is left, or until it makes no sense."""
        pending: set[asyncio.Task[None]] = set()
        try:
            while await self._room.acquire() and self.tally.ended is None and not self._stopped:
                unit = self._next()
                while unit is None and pending:  # the first answer to a prompt lets its repeats follow
                    done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                    _raise_from(done)
                    unit = self._next()
                if unit is None:
                    break
                task = asyncio.create_task(self._make(unit))
                pending.add(task)
                done = {one for one in pending if one.done()}
                pending -= done
                _raise_from(done)
            if pending:
                done, pending = await asyncio.wait(pending)
                _raise_from(done)
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    def _first_units(self) -> Iterator[Unit]:
        """Yield of each example the first repeat that has no answer; the others follow it."""
        done = self._keeper.pool.done
        for one in self._work.selection.chosen:
            left = []
            for repeat in range(self._work.repeats):
                key = self._work.key(one, repeat)
                if key in done:
                    self.tally.already += 1
                else:
                    left.append(Unit(one, repeat, key))
            if len(left) > 1:
                self._waiting[one.qid] = left[1:]
            if left:
                yield left[0]

    def _next(self) -> Unit | None:
        if self._followers:
            return self._followers.popleft()
        return next(self._units, None)

    async def _make(self, unit: Unit) -> None:
        try:
            await self._ask(unit)
        finally:
            self._followers.extend(self._waiting.pop(unit.one.qid, ()))
            self._room.release()

    async def _ask(self, unit: Unit) -> None:
        tokens = unit.one.most_tokens
        most = self.model.most(tokens) or Decimal(0)
        if not await self._budget.set_aside(most):
            if self._stopped:
                return
            await self._end(f"the next request could cost {most} USD, and {self._budget.spent} of the limit are spent")
            return
        spent = Decimal(0)
        try:
            example = self._work.selection.read(unit.one)
            outgoing = self.model.outgoing(example, unit.repeat, shared_prefix=self._work.repeats > 1)
            pursuit = await self._asker.ask(outgoing, tokens, unit.key)
            self._tell_unsent(outgoing, pursuit)
            cost = self._cost(pursuit)
            perhaps = most * (pursuit.perhaps_paid + (pursuit.reply is not None and cost is None))
            spent = perhaps + (cost or 0)
            response = self._response(unit, pursuit, cost, perhaps)
            if response is None:
                return
            await self._keeper.keep(response)
        finally:
            await self._budget.settle(most, spent)
        await self._count(response, pursuit.failure, cost, perhaps)
        self.watch()

    def _tell_unsent(self, outgoing: Outgoing, pursuit: Pursuit) -> None:
        """Say once which fields were asked for and did not go out, where a request has the shape that shows it."""
        sent = None if pursuit.reply is None else pursuit.reply.sent
        if self._looked or sent is None or "model" not in sent:
            return
        self._looked = True
        names = {*sent, *(_OTHER_NAMES.get(name, name) for name in sent)}
        missing = sorted(set(outgoing.fields) - names - {"extra_body"})
        if missing:
            self._say(f"asked for and not sent: {', '.join(missing)}; 'sent' in the pool has what went out")

    def _cost(self, pursuit: Pursuit) -> Decimal | None:
        """Return what an answer cost, or None when there is none or that is not known."""
        if pursuit.reply is None:
            return None
        tier = served_tier(pursuit.reply.served.get("service_tier"), pursuit.tier)
        return self.model.cost(pursuit.reply.usage, tier)

    def _response(self, unit: Unit, pursuit: Pursuit, cost: Decimal | None, perhaps: Decimal) -> Response | None:
        """Return what is kept of a request: its answer, or its failure; None when it was given up before either."""
        reply = pursuit.reply
        if reply is None and pursuit.failure is None:
            return None
        failed = pursuit.failed if reply is not None else pursuit.failed[:-1]
        call = Call(
            at=None if reply is None else reply.at,
            tier=pursuit.tier,
            sent=None if reply is None else reply.sent,
            served={} if reply is None else reply.served,
            failed=tuple(failed),
            first_token_seconds=None if reply is None else reply.first_token_seconds,
            waited_seconds=round(pursuit.waited, 3),
            counted_tokens=unit.one.least_tokens or None,
            cost=None if cost is None else f"{cost:f}",
            perhaps_cost=f"{perhaps:f}" if perhaps else None,
        )
        return Response(
            key=unit.key,
            qid=unit.one.qid,
            model=self.model.name,
            repeat=unit.repeat,
            prompt_sha256=unit.one.prompt_sha256,
            text="" if reply is None else reply.text,
            reasoning=None if reply is None else reply.reasoning,
            finish_reason=None if reply is None else reply.finish_reason,
            usage={} if reply is None else reply.usage,
            parameters=self.model.parameters,
            base_address=self.model.base_address,
            seconds=None if reply is None else reply.seconds,
            call=call,
            **failure_fields(pursuit),
        )

    async def _count(self, response: Response, failure: Failure | None, cost: Decimal | None, perhaps: Decimal) -> None:
        """Add a response to the tally, and end this model's part when going on makes no sense."""
        tally = self.tally
        tally.perhaps += perhaps
        if response.error is None:
            tally.cost += cost or 0
            tally.unpriced += cost is None
        if failure is not None:
            tally.failed += 1
            tally.kinds[failure.kind] = tally.kinds.get(failure.kind, 0) + 1
            self._in_a_row += 1
            await self._end_after(failure)
        elif response.prompt_cut:
            tally.cut += 1
            if tally.cut >= _CUT_AT_FIRST and not tally.answered:
                await self._end(
                    "the provider counted far fewer prompt tokens than were sent, so it cuts prompts: "
                    "give it a longer context window, or ask another one"
                )
        else:
            tally.answered += 1
            self._in_a_row = 0

    async def _end_after(self, failure: Failure) -> None:
        if failure.kind in ENDS_A_MODEL:
            await self._end(str(failure))
        elif failure.wait is not None and failure.wait > self._patience.longest_wait:
            await self._end(f"the provider asks to wait for {failure.wait:,.0f} s: {failure.message}")
        elif failure.kind in (REFUSED, TOO_LONG) and not self.tally.answered and self._in_a_row >= _REFUSED_AT_FIRST:
            await self._end(f"the first {self._in_a_row} requests were all refused: {failure.message}")
        elif self._in_a_row >= _FAILED_IN_A_ROW:
            await self._end(f"{self._in_a_row} requests in a row failed: {failure}")

    async def _end(self, reason: str) -> None:
        if self.tally.ended is None:
            self.tally.ended = reason
            self._say(f"not asked any more: {reason}")
            await self._pace.stop()


def served_tier(told: object, asked: str | None) -> str | None:
    """Return the tier that served a request: what the provider says, in its words, else what was asked for."""
    if isinstance(told, str) and told:
        words = told.casefold()
        return next((name for name in ("flex", "priority", "batch") if name in words), words)
    return asked


def _raise_from(tasks: set[asyncio.Task[None]]) -> None:
    """Raise what the first of some finished tasks that failed raised; the others have been looked at too."""
    failures = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if failures:
        raise failures[0]
