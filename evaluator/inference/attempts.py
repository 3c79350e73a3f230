"""One request until it is answered, or until another attempt makes no sense.

What costs nothing is tried again often, what may have been charged seldom. A tier without room is left for the next
one at once; a tier that a provider does not offer is not tried again by any request.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gniah.evaluator.inference.failures import (
    ENDS_A_MODEL,
    LAST,
    NO_ANSWER,
    NO_CAPACITY,
    RATE_LIMIT,
    SERVER,
    TIER,
    Failure,
    without_secrets,
)
from gniah.evaluator.inference.limits import Pace
from gniah.evaluator.inference.transport import Outgoing, Reply, Transport
from gniah.records.streams import Stream

Notice = Callable[[str], None]
_PARTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one request is pursued. Times are in seconds.

    `attempts` are made of one that fails without cost, `paid_attempts` of one that may have been charged. Before the
    next there is a random wait of up to `backoff`, then twice that and so on up to `longest_backoff`, or what the
    provider asks for; it is not waited for longer than `longest_wait` at a time.
    """

    attempts: int = 20
    paid_attempts: int = 3
    backoff: float = 1.0
    longest_backoff: float = 60.0
    longest_wait: float = 3600.0
    time_limit: float = 1800.0
    idle_limit: float = 300.0

    def drawn_wait(self, name: str, attempts: int) -> float:
        """Return a random wait that grows with the attempts, drawn from a name: who fails together comes back apart."""
        longest: float = min(self.longest_backoff, self.backoff * 2 ** (attempts - 1))
        return longest * Stream(name, "backoff", attempts).below(_PARTS) / _PARTS


@dataclass(slots=True)
class Tiers:
    """The service tiers that a model is asked at, in their order; those that were refused are left out from then on."""

    names: tuple[str, ...] = ()
    refused: set[str] = field(default_factory=set)

    def offered(self) -> list[str | None]:
        """Return the tiers to try; None stands for a request without one."""
        return [name for name in self.names if name not in self.refused] or [None]


@dataclass(slots=True)
class Pursuit:
    """What became of one request: a reply, or the failure of its last attempt. `failed` are those before."""

    reply: Reply | None = None
    failure: Failure | None = None
    tier: str | None = None
    failed: list[dict[str, Any]] = field(default_factory=list)
    waited: float = 0.0

    @property
    def perhaps_paid(self) -> int:
        """How many attempts without an answer may have been charged."""
        return sum(bool(attempt["perhaps_paid"]) for attempt in self.failed)


class Asker:
    """Asks one model. `notice` is told what a user should hear once."""

    def __init__(
        self,
        transport: Transport,
        pace: Pace,
        tiers: Tiers,
        patience: Patience,
        notice: Notice,
        keys: tuple[str, ...] = (),
    ) -> None:
        self._transport = transport
        self._pace = pace
        self._tiers = tiers
        self._patience = patience
        self._notice = notice
        self._keys = keys

    async def ask(self, outgoing: Outgoing, tokens: int, name: str) -> Pursuit:
        """Pursue a request; `tokens` are those of its prompt. Nothing but a cancellation is raised.

        Waits are drawn from `name`, the request's own, so that requests which fail together come back one by one.

        When the pace is stopped, what is under way goes on, and nothing more is sent; so there may be neither a reply
        nor a failure.
        """
        pursuit, begun = Pursuit(), time.monotonic()
        tiers = self._tiers.offered()
        free = paid = 0
        while True:
            pursuit.tier = tiers[0]
            if not (await self._pace.enter() and await self._pace.turn(tokens)):
                return pursuit
            sent = time.monotonic()
            pursuit.waited = sent - begun
            try:
                reply = await self._send(dataclasses.replace(outgoing, tier=pursuit.tier))
                if not reply.blank or paid + 1 >= self._patience.paid_attempts:
                    pursuit.reply, pursuit.failure = reply, None
                    await self._pace.went_well()
                    return pursuit
                failure = Failure(NO_ANSWER, "a whole answer of no text, no thought and no tokens")
            except Failure as caught:
                failure = Failure(caught.kind, without_secrets(caught.message, self._keys), caught.wait)
            pursuit.failure = failure
            pursuit.failed.append(_attempt(failure, pursuit.tier, time.monotonic() - sent))
            free, paid = free + (not failure.perhaps_paid), paid + failure.perhaps_paid
            left = self._tiers_left(tiers, failure)
            if left != tiers:
                tiers = left
            elif not await self._another(failure, free, paid, name):
                return pursuit

    async def _send(self, outgoing: Outgoing) -> Reply:
        """Make one attempt, for which there is room, and give the room back."""
        try:
            return await self._transport.send(outgoing, self._patience.time_limit, self._patience.idle_limit)
        finally:
            await self._pace.leave()

    def _tiers_left(self, tiers: list[str | None], failure: Failure) -> list[str | None]:
        """Return the tiers to go on with: without the first one, where that has no room or is not offered.

        The last one stays when it has no room; when it is not offered, a request without a tier is left.
        """
        if failure.kind == NO_CAPACITY:
            return tiers[1:] or tiers
        if failure.kind == TIER and tiers[0] is not None:
            if tiers[0] not in self._tiers.refused:
                self._tiers.refused.add(tiers[0])
                self._notice(f"the service tier {tiers[0]} was refused, and is not asked for again: {failure.message}")
            return tiers[1:] or [None]
        return tiers

    async def _another(self, failure: Failure, free: int, paid: int, name: str) -> bool:
        """Return whether another attempt is to be made, after waiting for it."""
        patience = self._patience
        if failure.kind in LAST or failure.kind in ENDS_A_MODEL:
            return False
        if failure.wait is not None and failure.wait > patience.longest_wait:
            return False
        if failure.kind in (RATE_LIMIT, NO_CAPACITY, SERVER):
            await self._pace.slow_down(failure.wait)
        if free >= patience.attempts or paid >= patience.paid_attempts:
            return False
        drawn = patience.drawn_wait(name, free + paid)
        if failure.wait is not None:
            drawn = failure.wait + min(drawn, 0.1 * failure.wait + patience.backoff)
        return await self._pace.rest(drawn)


def _attempt(failure: Failure, tier: str | None, seconds: float) -> dict[str, Any]:
    return {
        "kind": failure.kind,
        "message": failure.message,
        "tier": tier,
        "seconds": round(seconds, 3),
        "perhaps_paid": failure.perhaps_paid,
    }


def failure_fields(pursuit: Pursuit) -> Mapping[str, str | None]:
    """Return `error` and `error_kind` of the response that tells of a request without an answer."""
    failure = pursuit.failure
    return {} if failure is None else {"error": failure.message, "error_kind": failure.kind}
