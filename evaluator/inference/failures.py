"""What can go wrong with one attempt, by kind, and what each kind means for what comes next.

A failure of the network or of a provider is never a model's answer. Kinds say whether another attempt is worth
making, whether it may have been paid for, and whether every further request would meet the same.
"""

from __future__ import annotations

import datetime
import email.utils
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Nothing was answered and nothing is charged: another attempt costs nothing.
RATE_LIMIT = "rate-limit"  # 429: too many requests or tokens in some time
NO_CAPACITY = "no-capacity"  # the service tier has no room now
SERVER = "server-error"  # 5xx and the like
CONNECTION = "connection"  # no connection, or it broke before an answer began
# The request reached the provider, and part of an answer may have been made and charged.
TIME_LIMIT = "time-limit"  # no whole answer within the wall-clock limit
STALLED = "stalled"  # a stream gave nothing for the idle limit
CUT_SHORT = "cut-short"  # an answer broke off before its end
INVALID = "invalid-answer"  # what came is no answer: not JSON, no choices, an error in the place of text
NO_ANSWER = "no-answer"  # a whole answer of no text, no thought and no tokens
TOO_LARGE = "too-large"  # more bytes than any model's answer has
# Another attempt of this request would end alike.
REFUSED = "request-refused"  # 400, 413, 422: this request
TOO_LONG = "context-window"  # the provider says that the prompt is longer than it takes
OVER_QUOTA = "over-quota"  # one request is more than a whole minute's quota
# Every further request of this model would end alike.
TIER = "tier-refused"  # the service tier is not offered for this model
KEY = "not-allowed"  # 401, 403: the key
MODEL = "no-such-model"  # 404
MONEY = "no-credit"  # 402, or a quota that does not come back by waiting
OUR_OWN = "not-sent"  # the request could not be put together for this provider

FREE = frozenset({RATE_LIMIT, NO_CAPACITY, SERVER, CONNECTION})
PERHAPS_PAID = frozenset({TIME_LIMIT, STALLED, CUT_SHORT, INVALID, NO_ANSWER, TOO_LARGE})
ENDS_A_MODEL = frozenset({KEY, MODEL, MONEY, OUR_OWN})
LAST = frozenset({REFUSED, TOO_LONG, OVER_QUOTA, TOO_LARGE})

_LONGEST_MESSAGE = 1000
_SHORTEST_SECRET = 3

_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|size)|maximum.{0,20}(tokens|length)|too long|too many (input )?tokens|"
    r"exceeds? the (maximum|context|limit)|input token count|prompt is too",
    re.IGNORECASE,
)
_TIER = re.compile(r"service.?tier|flex", re.IGNORECASE)
_NO_ROOM = re.compile(
    r"resource.?unavailable|no (available )?capacity|capacity|overloaded|unavailable|high demand", re.IGNORECASE
)
_OVER_QUOTA = re.compile(r"request too large|tokens per min.{0,80}requested [0-9,]+", re.IGNORECASE | re.DOTALL)
_MONEY = re.compile(
    r"insufficient.{0,10}(quota|credit|balance|fund)|exceeded your current quota|billing|"
    r"credit.{0,20}(balance|low|exhaust)",
    re.IGNORECASE,
)


@dataclass(eq=False)
class Failure(Exception):
    """One attempt that gave no answer. `wait` are the seconds that the provider asked to wait, if it did."""

    kind: str
    message: str
    wait: float | None = None

    def __post_init__(self) -> None:
        self.message = self.message[:_LONGEST_MESSAGE]
        super().__init__(f"{self.kind}: {self.message}")

    @property
    def perhaps_paid(self) -> bool:
        """Whether the provider may charge for it."""
        return self.kind in PERHAPS_PAID


def by_status(status: int, message: str, headers: Mapping[str, str], *, tier: str | None = None) -> Failure:
    """Return what an HTTP status and the words that came with it mean; `tier` is the service tier asked for."""
    wait = asked_wait(headers, message)
    return Failure(_kind(status, message, tier), f"HTTP {status}: {message}", wait)


def _kind(status: int, message: str, tier: str | None) -> str:
    if status == 402 or (status in (400, 403, 429) and _MONEY.search(message)):
        return MONEY
    if status == 429:
        if _OVER_QUOTA.search(message):
            return OVER_QUOTA
        return NO_CAPACITY if tier is not None and _NO_ROOM.search(message) else RATE_LIMIT
    if status in (401, 403):
        return KEY
    if status == 404:
        return MODEL
    if status in (400, 413, 422):
        if tier is not None and _TIER.search(message):
            return TIER
        return TOO_LONG if status == 413 or _TOO_LONG.search(message) else REFUSED
    if status in (503, 529) and tier is not None:
        return NO_CAPACITY
    if status in (408, 409, 425) or status >= 500:
        return SERVER
    return REFUSED if 400 <= status < 500 else INVALID


_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"([0-9]{1,9}(?:\.[0-9]{1,9})?)s"')


def asked_wait(headers: Mapping[str, str], message: str = "", now: float | None = None) -> float | None:
    """Return the seconds that an answer asks to wait, or None.

    Read are `retry-after-ms`, `retry-after` as seconds or as a date of HTTP (RFC 9110, 10.2.3), and the `retryDelay`
    that Google puts into an error's body. `now` is the time of day, for tests.
    """
    found = {name.lower(): value.strip() for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(found.get(name))
        if seconds is not None:
            return seconds * unit
    date = found.get("retry-after")
    if date:
        try:
            moment = email.utils.parsedate_to_datetime(date)
        except (TypeError, ValueError, OverflowError):
            moment = None
        if moment is not None:
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=datetime.UTC)
            return max(0.0, moment.timestamp() - (time.time() if now is None else now))
    delay = _RETRY_DELAY.search(message)
    return None if delay is None else float(delay[1])


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", text, re.ASCII):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def without_secrets(message: str, secrets: Iterable[str]) -> str:
    """Return a message with keys taken out. What is too short to be one is left."""
    for secret in secrets:
        if len(secret) > _SHORTEST_SECRET:
            message = message.replace(secret, "[key]")
    return message


def error_message(value: Any) -> str | None:
    """Return the words of an error in a provider's JSON, in any of the usual shapes, or None when there is none."""
    error = value.get("error") if isinstance(value, Mapping) else None
    if error in (None, "", {}, []):
        return None
    if isinstance(error, Mapping):
        words = [
            str(error[name]) for name in ("message", "type", "code", "status") if error.get(name) not in (None, "")
        ]
        metadata = error.get("metadata")
        if isinstance(metadata, Mapping) and metadata.get("raw"):
            words.append(str(metadata["raw"]))
        return ", ".join(words) or str(error)
    return str(error)


def error_status(value: Any) -> int | None:
    """Return the HTTP status that an error inside a stream or a body names, or None."""
    error = value.get("error") if isinstance(value, Mapping) else None
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(code, str) and re.fullmatch(r"[1-5][0-9]{2}", code, re.ASCII):
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 100 <= code < 600 else None
