"""Handing requests in: each batch is noted before it is submitted, and once more when the provider has named it.

Where the answer to a submission is lost, by a crash or on the way, the batch is looked for at the provider before
anything is submitted again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from gniah.evaluator.inference.attempts import Patience
from gniah.evaluator.inference.batches.calls import Calls
from gniah.evaluator.inference.batches.interfaces import Interface, Sought, interface
from gniah.evaluator.inference.batches.journal import (
    DROPPED,
    SUBMITTED,
    SUBMITTING,
    UPLOADED,
    Batch,
    Journal,
    aside_of,
)
from gniah.evaluator.inference.batches.planning import PROVIDER_LIMITS, BatchLimits, model_from_json, plan
from gniah.evaluator.inference.batches.translation import Route, Translator
from gniah.evaluator.inference.failures import (
    CUT_SHORT,
    FREE,
    INVALID,
    SERVER,
    STALLED,
    TIME_LIMIT,
    TOO_LARGE,
    Failure,
)
from gniah.evaluator.inference.model_run import Unit, Work
from gniah.evaluator.pool import InferencePool
from gniah.records.errors import CheckFailed
from gniah.records.files import sha256_file

Notice = Callable[[str], None]
# After these the provider may have taken the batch, though it did not say so; a call that did not get through is
# none of them.
_PERHAPS_TAKEN = frozenset({SERVER, CUT_SHORT, STALLED, TIME_LIMIT, INVALID, TOO_LARGE})
# A batch that arrived just before a connection broke may take a while to be listed.
SETTLE_SECONDS = 20.0


class NotSubmitted(Exception):
    """A batch was not submitted, or nobody knows whether it was; the message says why."""


@dataclass(slots=True)
class Handed:
    """What became of one model's requests. `waiting` were in batches already; `ended` says why some are `left`."""

    model: str
    total: int = 0
    already: int = 0
    waiting: int = 0
    batches: list[Batch] = field(default_factory=list)
    left: int = 0
    ended: str | None = None

    @property
    def submitted(self) -> int:
        """Return how many requests were submitted."""
        return sum(len(batch.requests) for batch in self.batches)


class Guard:
    """Keeps a first interruption from falling between a submission and its note."""

    def __init__(self) -> None:
        self.held = False
        self.stop = False

    def __enter__(self) -> None:
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False


@dataclass(slots=True)
class Submitter:
    """Submits batches into one journal. `max_cost` is what the whole pool may cost, in US dollars."""

    journal: Journal
    pool: InferencePool
    translator: Translator
    notice: Notice
    patience: Patience = field(default_factory=Patience)
    max_cost: Decimal | None = None
    batch_requests: int | None = None
    settle: float = SETTLE_SECONDS
    guard: Guard = field(default_factory=Guard)

    async def submit(self, works: Sequence[Work]) -> list[Handed]:
        """Submit all that has no answer and is in no batch. Raises what the disk raises, UsageFault and CheckFailed."""
        routes = [await self.translator.route(work.model) for work in works]
        return [await self._of(work, route) for work, route in zip(works, routes, strict=True)]

    async def _of(self, work: Work, route: Route) -> Handed:
        model = work.model
        handed = Handed(model.label, total=len(work.selection.chosen) * work.repeats)
        async with Calls(route, self.patience) as calls:
            to = interface(route.shape, calls)
            try:
                for batch in self.journal.open_batches():
                    if batch.step != SUBMITTED and model_from_json(batch.model).claim == model.claim:
                        await self._hand_in(batch, to, calls, route, handed)
                units = self._units(work, handed)
                while units:
                    batch = await self._plan(work, route, units)
                    await self._hand_in(batch, to, calls, route, handed)
            except NotSubmitted as why:
                handed.ended = str(why)
        handed.left = len(self._units(work, handed))
        return handed

    def _units(self, work: Work, handed: Handed) -> deque[Unit]:
        """Return the requests that have no answer and are in no batch, in order; count the others."""
        found = deque[Unit]()
        mine = {batch.id for batch in handed.batches}
        waiting = {
            asked.key for batch in self.journal.open_batches() if batch.id not in mine for asked in batch.requests
        }
        now = {asked.key for batch in handed.batches for asked in batch.requests}
        handed.already = handed.waiting = 0
        for one in work.selection.chosen:
            for repeat in range(work.repeats):
                key = work.key(one, repeat)
                if key in self.pool.done:
                    handed.already += 1
                elif key in waiting:
                    handed.waiting += 1
                elif key not in now:
                    found.append(Unit(one, repeat, key))
        return found

    async def _plan(self, work: Work, route: Route, units: deque[Unit]) -> Batch:
        limits = PROVIDER_LIMITS[route.shape]
        if self.batch_requests is not None:
            limits = BatchLimits(min(limits.requests, self.batch_requests), limits.bytes)
        spent = self.pool.spent + aside_of(self.journal.batches.values())
        room = None if self.max_cost is None else self.max_cost - spent
        batch = await plan(
            self.journal,
            self.translator,
            route,
            work.model,
            work.selection,
            units,
            limits=limits,
            room=room,
            shared_prefix=work.repeats > 1,
        )
        if batch is None:
            raise NotSubmitted(
                f"the next request could cost {work.model.most(units[0].one.most_tokens)} USD, and {spent} of the "
                "limit are spent or set aside for batches"
            )
        return batch

    async def _hand_in(self, batch: Batch, to: Interface, calls: Calls, route: Route, handed: Handed) -> None:
        """Submit a batch, or find that it was. Raises NotSubmitted."""
        check_address(batch, route)
        path = self.journal.input_path(batch.id)
        if batch.step == SUBMITTING and await self._found(batch, to):
            handed.batches.append(batch)
            return
        if not path.exists() or sha256_file(path) != batch.sha256:
            self._drop(batch, "its file was lost before it was submitted")
            return
        limit = self.max_cost
        if limit is not None and self.pool.spent + aside_of(self.journal.batches.values()) > limit:
            self._drop(batch, "it could cost more than is left of the limit")
            return
        if batch.file_id is None:
            try:
                file_id = await to.upload(batch, path)
            except Failure as failure:
                raise self._drop(batch, str(failure)) from failure
            if file_id is not None:
                self.journal.note(batch, UPLOADED, file_id=file_id)
        with self.guard:
            await self._create(batch, to, calls)
        handed.batches.append(batch)
        self.notice(f"{handed.model}: batch {batch.short} with {len(batch.requests):,} requests is submitted")
        if self.guard.stop:
            raise asyncio.CancelledError

    async def _create(self, batch: Batch, to: Interface, calls: Calls) -> None:
        attempts = 0
        while True:
            self.journal.note(batch, SUBMITTING)
            try:
                provider_id, state = await to.create(batch, self.journal.input_path(batch.id))
            except Failure as failure:
                if failure.kind in _PERHAPS_TAKEN and await self._found(batch, to):
                    return
                attempts += 1
                again = failure.kind in FREE | _PERHAPS_TAKEN and attempts < self.patience.attempts
                if not again or (failure.wait or 0) > self.patience.longest_wait:
                    raise self._drop(batch, str(failure)) from failure
                await calls.pause(attempts, failure.wait)
            else:
                self._submitted(batch, provider_id, state)
                return

    async def _found(self, batch: Batch, to: Interface) -> bool:
        """Whether a batch whose submission was cut off is at the provider. Raises NotSubmitted when nobody knows."""
        try:
            sought = await seek(batch, to, self.journal.batches, self.settle)
        except Failure as failure:
            raise NotSubmitted(f"whether batch {batch.short} was submitted is not known yet: {failure}") from failure
        if sought.unsure:
            raise NotSubmitted(unsure_words(batch, sought))
        if sought.provider_id is None:
            return False
        self._submitted(batch, sought.provider_id, "")
        self.notice(f"batch {batch.short} had been submitted: it is {sought.provider_id} at the provider")
        return True

    def _submitted(self, batch: Batch, provider_id: str, state: str) -> None:
        self.journal.note(batch, SUBMITTED, provider_id=provider_id, state=state)
        self.journal.input_path(batch.id).unlink(missing_ok=True)

    def _drop(self, batch: Batch, reason: str) -> NotSubmitted:
        self.journal.note(batch, DROPPED, reason=reason)
        self.journal.input_path(batch.id).unlink(missing_ok=True)
        return NotSubmitted(reason)


async def seek(batch: Batch, to: Interface, batches: Mapping[str, Batch], settle: float) -> Sought:
    """Look for a batch that may have been submitted, and once more after `settle` seconds. Raises Failure."""
    known = frozenset(one.provider_id for one in batches.values() if one.provider_id is not None)
    sought = await to.seek(batch, known)
    if sought == Sought():
        await asyncio.sleep(settle)
        sought = await to.seek(batch, known)
    return sought


def unsure_words(batch: Batch, sought: Sought) -> str:
    """Say that nobody knows yet whether a batch was submitted, and how that will be found out."""
    return (
        f"whether batch {batch.short} was submitted shows when {', '.join(sought.unsure)} at the provider ended: until "
        "then its requests are not asked again"
    )


def check_address(batch: Batch, route: Route) -> None:
    """Check that a model's key belongs where a batch is. Raises CheckFailed."""
    if (batch.shape, batch.address) != (route.shape, route.address):
        raise CheckFailed(
            f"batch {batch.short} is at {batch.address}, and its model is asked at {route.address} now",
            remedy="set the provider's address in the environment as it was when the batch was submitted",
        )
