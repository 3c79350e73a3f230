"""The two readings of a response: the published rules (`card`), and ours.

Both are made of every response. Tables and figures are filled from the published one unless ours is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

CARD, OURS = "card", "ours"
READINGS = (CARD, OURS)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: a value in the form of `Scorer.gold`, or None with the reason."""

    value: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """What each of the two sets of rules read in one response."""

    card: Reading
    ours: Reading
