"""Which requests go into one batch, and the file that carries them.

Requests stand in the order of the examples, repeats of one prompt next to each other, so that a provider that caches
beginnings finds them. The file is written request by request: however long prompts are, one is in memory at a time.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.batches.journal import JOURNAL_NAME, Asked, Batch, Journal, custom_id, now
from gniah.evaluator.inference.batches.translation import ANTHROPIC, OPENAI, Route, Translator
from gniah.evaluator.inference.model_fields import BATCH_TIER
from gniah.evaluator.inference.model_files import ModelFile, PriceRow
from gniah.evaluator.inference.model_run import Unit
from gniah.evaluator.selection import Selection
from gniah.records.errors import CheckFailed, InputError
from gniah.records.files import json_line, whole_file


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How many requests and bytes one batch has at most."""

    requests: int
    bytes: int


# As the providers document them, a megabyte taken as a million bytes.
PROVIDER_LIMITS: Mapping[str, BatchLimits] = {
    OPENAI: BatchLimits(50_000, 200_000_000),
    ANTHROPIC: BatchLimits(100_000, 256_000_000),
}
_BETWEEN = {OPENAI: (b"", b"", b""), ANTHROPIC: (b'{"requests":[', b",", b"]}")}


def by_batch(model: AskedModel) -> AskedModel:
    """Return a model as it is asked by batches: billed at the batch tier, and not streamed."""
    return dataclasses.replace(model, file=dataclasses.replace(model.file, tiers=(BATCH_TIER,), stream=False))


async def plan(
    journal: Journal,
    translator: Translator,
    route: Route,
    model: AskedModel,
    selection: Selection,
    units: deque[Unit],
    *,
    limits: BatchLimits,
    room: Decimal | None,
    shared_prefix: bool,
) -> Batch | None:
    """Take requests from the front of `units` into one batch, write its file and note it as planned.

    `room` is what the batch may cost at most, in US dollars. Returns None when that is too little for the first
    request. Raises CheckFailed when one request alone is larger than a batch can be.
    """
    writer = _Writer(journal.new_id(), route.shape, limits)
    path = journal.input_path(writer.id)
    body, of = b"", ""
    with whole_file(path) as stream:
        while units:
            unit = units[0]
            most = model.most(unit.one.most_tokens)
            if room is not None and most is not None and writer.most + most > room:
                break
            if unit.one.qid != of or model.seed is not None:
                example = selection.read(unit.one)
                outgoing = model.outgoing(example, unit.repeat, shared_prefix=shared_prefix)
                body, of = (await translator.request(outgoing)).body, unit.one.qid
            piece = writer.take(unit, body, most)
            if piece is None:
                break
            stream.write(piece)
            units.popleft()
        stream.write(writer.end())
    if not writer.requests:
        path.unlink()
        return None
    batch = Batch(
        id=writer.id,
        at=now(),
        shape=route.shape,
        address=route.address,
        model=model_json(model),
        requests=tuple(writer.requests),
        bytes=writer.bytes,
        sha256=writer.sha256.hexdigest(),
    )
    journal.plan(batch)
    return batch


class _Writer:
    """Makes the file of a batch, piece by piece."""

    def __init__(self, batch: str, shape: str, limits: BatchLimits) -> None:
        self.id = batch
        self.requests: list[Asked] = []
        self.most = Decimal(0)
        self.bytes = 0
        self.sha256 = hashlib.sha256()
        self._shape, self._limits = shape, limits

    def take(self, unit: Unit, body: bytes, most: Decimal | None) -> bytes | None:
        """Return the bytes of one more request, or None when the batch is full."""
        name = custom_id(unit.key, self.id)
        start, between, end = _BETWEEN[self._shape]
        piece = (between if self.requests else start) + _request(self._shape, name, body)
        if len(self.requests) == self._limits.requests or self.bytes + len(piece) + len(end) > self._limits.bytes:
            if self.requests:
                return None
            raise CheckFailed(
                f"the request for {unit.one.qid} has {len(piece):,} bytes, and a batch takes {self._limits.bytes:,}",
                remedy="leave that example out, or ask it with gniah-eval run",
            )
        self.requests.append(
            Asked(
                custom_id=name,
                key=unit.key,
                qid=unit.one.qid,
                repeat=unit.repeat,
                prompt_sha256=unit.one.prompt_sha256,
                counted_tokens=unit.one.least_tokens or None,
                most=most,
            )
        )
        self.most += most or 0
        return self._count(piece)

    def end(self) -> bytes:
        """Return what stands behind the last request."""
        return self._count(_BETWEEN[self._shape][2])

    def _count(self, piece: bytes) -> bytes:
        self.bytes += len(piece)
        self.sha256.update(piece)
        return piece


def _request(shape: str, name: str, body: bytes) -> bytes:
    """Return one request as it stands in a batch; the body is byte for byte that of a live one."""
    if shape == ANTHROPIC:
        return b'{"custom_id":"' + name.encode("ascii") + b'","params":' + body + b"}"
    head = json_line({"custom_id": name, "method": "POST", "url": "/v1/chat/completions"}).rstrip(b"}\n")
    return head + b',"body":' + body + b"}\n"


def model_json(model: AskedModel) -> dict[str, Any]:
    """Return all of a model that collecting its answers takes."""
    file = model.file
    return {
        "name": file.name,
        "litellm": file.litellm,
        "base_address": file.base_address,
        "key_variable": file.key_variable,
        "max_output_tokens": file.max_output_tokens,
        "parameters": dict(file.parameters),
        "extra_body": dict(file.extra_body),
        "seed": model.seed,
        "uncached_input": file.uncached_input,
        "reported_cost": file.reported_cost,
        "prices_from": file.prices_from,
        "prices": [
            {
                "above": row.above,
                **{name: _string(getattr(row, name)) for name in ("input", "cached", "cache_write", "output")},
            }
            for row in file.prices
            if row.tier == BATCH_TIER
        ],
    }


def model_from_json(value: Mapping[str, Any]) -> AskedModel:
    """Return a model as `model_json` wrote it. Raises InputError for what is none."""
    try:
        rows = tuple(
            PriceRow(
                BATCH_TIER,
                one["above"],
                *(_amount(one[name]) for name in ("input", "cached", "cache_write", "output")),
            )
            for one in value["prices"]
        )
        names = ("name", "litellm", "base_address", "key_variable", "max_output_tokens", "parameters", "extra_body")
        more = {name: value[name] for name in (*names, "uncached_input", "reported_cost", "prices_from")}
        return AskedModel(ModelFile(**more, tiers=(BATCH_TIER,), stream=False, prices=rows), value["seed"])
    except (KeyError, TypeError, ArithmeticError) as error:
        raise InputError(
            f"{JOURNAL_NAME}: a batch of no model: {type(error).__name__} {error}",
            remedy="restore the file from a copy; without it, batches at the provider cannot be collected",
        ) from None


def _string(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:f}"


def _amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
