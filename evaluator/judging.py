"""How one response counts, under both readings. Nothing here touches a disk.

Under a reading every response has one status. They are tried in this order, and the first that fits stands:

1. `error`: the request failed, the response was made from other prompts than the example's, or the scorer
   could not cope with it. Left out of the denominator, listed, and a reason to fail.
2. `prompt-cut`: the provider counted clearly fewer prompt tokens than were sent (`gniah.records.responses.PROMPT_CUT`
   says how many), so the model did not see the question as it is. Left out of the denominator.
3. `correct` or `wrong`: an answer could be read, even when the output limit was reached after it.
4. `refused`: the provider says that its filter or the model declined.
5. `length`: the output limit was reached without a readable answer, or without any text at all.
6. `empty`: there is no text outside closed thinking blocks.
7. `unreadable`: all the rest. It counts as wrong, and equals no answer, whatever the right one is.

The two readings part in the third only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gniah.evaluator.extraction import Visible, visible
from gniah.evaluator.readings import Reading, Readings
from gniah.records.examples import Example
from gniah.records.responses import Response, is_cut

STATUSES = ("correct", "wrong", "unreadable", "empty", "refused", "length", "prompt-cut", "error")
NOT_COUNTED = frozenset({"prompt-cut", "error"})
# The words of the providers, in lower case.
REFUSED = frozenset({"blocklist", "content_filter", "prohibited_content", "recitation", "refusal", "safety", "spii"})
LENGTH = frozenset({"length", "max_output_tokens", "max_tokens", "model_context_window_exceeded", "model_length"})
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a response counts under one reading: `value` was read, `reason` says why nothing was."""

    status: str
    value: str | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as an object of a score file."""
        return {"status": self.status, "value": self.value, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How a response counts under each reading."""

    card: Verdict
    ours: Verdict


class Reader(Protocol):
    """The part of a family's scorer that reads answers."""

    def read(self, example: Example, text: str) -> Readings:
        """Return what a response's visible text answers."""
        ...


def assess(example: Example, response: Response, reader: Reader, gold: str, prompts: str, sent: int) -> Verdicts:
    """Return how one response to an example counts.

    `prompts` is the hash of the example's own prompts, `sent` the least of its token counts, 0 when unknown.
    """
    if response.error is not None:
        return _both(Verdict("error", reason=f"the request failed: {str(response.error)[:_LONGEST_REASON]}"))
    if response.prompt_sha256 != prompts:
        return _both(Verdict("error", reason="made from other prompts than this example's"))
    if is_cut(response.usage, sent):
        reason = f"the provider counted {response.usage['prompt_tokens']} prompt tokens, at least {sent} were sent"
        return _both(Verdict("prompt-cut", reason=reason))
    shown = visible(response.text)
    try:
        readings = reader.read(example, shown.text)
    except Exception as error:  # noqa: BLE001  (one odd response must not end the scoring of all others)
        said = str(error)[:_LONGEST_REASON]
        return _both(Verdict("error", reason=f"the scorer failed: {type(error).__name__}: {said}"))
    card = _verdict(readings.card, response.finish_reason, shown, gold)
    if readings.ours is readings.card:
        return Verdicts(card, card)
    return Verdicts(card, _verdict(readings.ours, response.finish_reason, shown, gold))


def _both(verdict: Verdict) -> Verdicts:
    return Verdicts(verdict, verdict)


def _verdict(reading: Reading, finish_reason: object, shown: Visible, gold: str) -> Verdict:
    if reading.value is not None:
        return Verdict("correct" if reading.value == gold else "wrong", reading.value)
    finish = finish_reason.casefold() if isinstance(finish_reason, str) else None
    if finish in REFUSED:
        return Verdict("refused", reason=f"the provider ended it with {finish}")
    if finish in LENGTH:
        return Verdict("length", reason=f"the output limit was reached: {reading.reason}")
    if shown.blank and not shown.unclosed:
        return Verdict("empty", reason="there is no text")
    return Verdict("unreadable", reason="the thinking block was not closed" if shown.unclosed else reading.reason)
