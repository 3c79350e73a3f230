"""Results become responses of the pool: the same records as those of a live run, each once, however often they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.batches.journal import Asked, Batch
from gniah.evaluator.inference.batches.planning import model_from_json
from gniah.evaluator.inference.batches.results import CANCELED, EXPIRED, NO_RESULT, Line, read_lines
from gniah.evaluator.inference.batches.translation import Translator, blank_example
from gniah.evaluator.inference.failures import NO_ANSWER, Failure
from gniah.evaluator.inference.model_fields import BATCH_TIER
from gniah.evaluator.inference.prices import cost, read_usage
from gniah.evaluator.inference.transport import Reply
from gniah.evaluator.pool import InferencePool, open_pool, whole_responses
from gniah.records.responses import Call, Response

Notice = Callable[[str], None]
# So many responses are written and flushed together.
_TOGETHER = 64
_SHOWN = 5
_STATES = {"expired": EXPIRED, "cancelled": CANCELED, "canceled": CANCELED}


@dataclass(slots=True)
class Kept:
    """What the results of a batch came to. `cost` is in US dollars; `unpriced` answers have an unknown one.

    `strange` says what in the results belongs to no request of the batch, comes twice, or cannot be read.
    """

    answered: int = 0
    cut: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    perhaps: Decimal = Decimal(0)
    strange: Counter[str] = field(default_factory=Counter)

    def add(self, response: Response) -> None:
        """Count one response."""
        if response.error is not None:
            self.failed[response.error_kind or "unnamed"] += 1
        elif response.prompt_cut:
            self.cut += 1
        else:
            self.answered += 1
        if response.call is not None:
            self.cost += Decimal(response.call.cost or 0)
            self.perhaps += Decimal(response.call.perhaps_cost or 0)
            self.unpriced += response.error is None and response.call.cost is None


async def keep(
    folder: Path, batch: Batch, state: str, paths: Iterable[Path], translator: Translator, notice: Notice
) -> Kept:
    """Append the results of an ended batch to the pool of a run folder, flushed to the disk.

    A request without a result becomes a failure: by the batch's `state`, expired, canceled, or without a word. What
    an earlier attempt at this appended already is not appended again. Raises BusyError while another process holds
    the pool, and what the disk raises.
    """
    kept, seen = Kept(), set[str]()
    maker = _Maker(batch, translator)
    with open_pool(folder, notice) as pool:
        for response in _earlier(folder, batch):
            seen.add(response.key)
            kept.add(response)
        earlier = frozenset(seen)
        waiting: list[Response] = []
        for line in _lines(batch, paths):
            asked = None if line is None else maker.asked.get(line.custom_id)
            if line is None or asked is None:
                kept.strange[_strange(line)] += 1
            elif asked.key in earlier:
                seen.add(asked.key)
            elif asked.key in seen:
                kept.strange["a second result for one request"] += 1
            else:
                seen.add(asked.key)
                waiting.append(await maker.response(asked, line))
                if len(waiting) == _TOGETHER:
                    _append(pool, kept, waiting)
        for asked in batch.requests:
            if asked.key not in seen:
                kind = _STATES.get(state, NO_RESULT)
                failure = Failure(kind, f"the batch ended ({state}) without a result for this request")
                waiting.append(maker.failed(asked, failure))
        _append(pool, kept, waiting)
    for words, count in sorted(kept.strange.items()):
        notice(f"batch {batch.short}: {words}" + (f" ({count:,} times)" if count > 1 else ""))
    return kept


def _append(pool: InferencePool, kept: Kept, responses: list[Response]) -> None:
    pool.append_all(responses)
    for response in responses:
        kept.add(response)
    responses.clear()


def _earlier(folder: Path, batch: Batch) -> Iterator[Response]:
    """Yield the responses of a batch that the pool has already."""
    for response in whole_responses(folder):
        call = response.call
        if call is not None and call.tier == BATCH_TIER and call.served.get("batch") == batch.provider_id:
            yield response


def _lines(batch: Batch, paths: Iterable[Path]) -> Iterator[Line | None]:
    for path in paths:
        yield from read_lines(batch.shape, path)


def _strange(line: Line | None) -> str:
    return "a line that is no result" if line is None else f"a result for {line.custom_id[:80]}, which was not asked"


class _Maker:
    """Makes responses of results."""

    def __init__(self, batch: Batch, translator: Translator) -> None:
        self.batch = batch
        self.asked = {asked.custom_id: asked for asked in batch.requests}
        self._model: AskedModel = model_from_json(batch.model)
        self._translator = translator

    async def response(self, asked: Asked, line: Line) -> Response:
        """Return the response of a result: an answer, or the failure that it tells of."""
        if line.failure is not None:
            return self.failed(asked, line.failure)
        outgoing = self._model.outgoing(blank_example(), asked.repeat, shared_prefix=False)
        try:
            reply = await self._translator.reply(outgoing, line.status, line.body)
        except Failure as failure:
            return self.failed(asked, failure)
        if reply.blank:
            blank = Failure(NO_ANSWER, "a whole answer of no text, no thought and no tokens")
            return self.failed(asked, blank, reply)
        return self._answered(asked, reply)

    def _answered(self, asked: Asked, reply: Reply) -> Response:
        price = cost(self._model.file, read_usage(reply.usage), BATCH_TIER, batch=True)
        perhaps = asked.most if price is None else None
        call = self._call(asked, reply, None if price is None else f"{price:f}", perhaps)
        return Response(
            **self._request(asked),
            text=reply.text,
            reasoning=reply.reasoning,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            call=call,
        )

    def failed(self, asked: Asked, failure: Failure, reply: Reply | None = None) -> Response:
        """Return the response that tells of a request without an answer."""
        perhaps = asked.most if failure.perhaps_paid or failure.kind == NO_RESULT else None
        return Response(
            **self._request(asked),
            text="",
            finish_reason=None,
            error=failure.message,
            error_kind=failure.kind,
            call=self._call(asked, reply, None, perhaps),
        )

    def _request(self, asked: Asked) -> dict[str, Any]:
        return {
            "key": asked.key,
            "qid": asked.qid,
            "model": self._model.name,
            "repeat": asked.repeat,
            "prompt_sha256": asked.prompt_sha256,
            "parameters": self._model.parameters,
            "base_address": self._model.base_address,
        }

    def _call(self, asked: Asked, reply: Reply | None, price: str | None, perhaps: Decimal | None) -> Call:
        served = {} if reply is None else dict(reply.served)
        return Call(
            at=self.batch.submitted_at,
            tier=BATCH_TIER,
            sent=None if reply is None else reply.sent,
            served={**served, "batch": self.batch.provider_id},
            counted_tokens=asked.counted_tokens,
            cost=price,
            perhaps_cost=f"{perhaps:f}" if perhaps else None,
        )
