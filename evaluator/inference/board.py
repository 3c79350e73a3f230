"""How far a run has come, a line for each model: on a terminal they renew themselves, elsewhere they are said."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType

from gniah.evaluator.inference.model_run import Tally
from gniah.records.command_line import on_terminal, printable, say

_ON_TERMINAL, _ELSEWHERE = 0.5, 30.0


class Board:
    """Shows tallies. It is a context manager, and clears its lines at the end."""

    def __init__(self) -> None:
        self._terminal = on_terminal()
        self._shown = 0
        self._last = time.monotonic()

    def show(self, tallies: Sequence[Tally]) -> None:
        """Show how far each model has come, unless that was shown a moment ago."""
        now = time.monotonic()
        if now - self._last < (_ON_TERMINAL if self._terminal else _ELSEWHERE):
            return
        self._last = now
        lines = [printable(progress_line(tally)) for tally in tallies]
        if not self._terminal:
            for line in lines:
                say(line)
            return
        self._clear()
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
        self._shown = len(lines)

    def say(self, text: str) -> None:
        """Say something beside the lines."""
        self._clear()
        say(text)

    def _clear(self) -> None:
        if self._shown:
            sys.stderr.write(f"\x1b[{self._shown}F\x1b[J")
            sys.stderr.flush()
            self._shown = 0

    def __enter__(self) -> Board:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        self._clear()


def progress_line(tally: Tally) -> str:
    """Return one model's progress in a line: how many of all, cost so far, failures, time left."""
    done = tally.total - tally.left
    parts = [f"{tally.model}: {done:,} of {tally.total:,}", cost_words(tally)]
    if tally.failed:
        parts.append(f"{tally.failed:,} failed")
    if tally.cut:
        parts.append(f"{tally.cut:,} cut")
    left = tally.seconds_left
    if tally.ended is not None:
        parts.append("ended")
    elif left is not None:
        parts.append(f"{time_words(left)} left")
    return ", ".join(parts)


def cost_words(tally: Tally) -> str:
    """Return what a model's answers cost, in words that do not take the unknown for nothing."""
    priced = tally.answered + tally.cut - tally.unpriced
    words = f"${tally.cost:.2f}" if priced or not tally.unpriced else "cost unknown"
    if priced and tally.unpriced:
        words += f" and {tally.unpriced:,} of unknown cost"
    if tally.perhaps:
        words += f", perhaps ${tally.perhaps:.2f} more"
    return words


def time_words(seconds: float) -> str:
    """Return a time in words: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
