"""Whole batch jobs on toy examples, in this process: what is submitted, collected and left in the pool."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any

from evaluator_toys import mixed, write_examples
from inference_batch_provider import ANTHROPIC, BatchProvider

from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.attempts import Patience
from gniah.evaluator.inference.batches.collection import Collector, Outcome
from gniah.evaluator.inference.batches.journal import Batch, open_journal, read_batches
from gniah.evaluator.inference.batches.planning import by_batch
from gniah.evaluator.inference.batches.submission import Handed, Submitter
from gniah.evaluator.inference.batches.translation import Translator
from gniah.evaluator.inference.model_files import ModelFile, PriceRow
from gniah.evaluator.inference.model_run import Work
from gniah.evaluator.pool import open_pool, whole_responses
from gniah.evaluator.selection import Wanted, select
from gniah.records.responses import Response

KEY = "sk-loopback-secret-0123"
QUICK = Patience(attempts=4, backoff=0.01, longest_backoff=0.02, time_limit=20.0, idle_limit=5.0)
BATCH_PRICE = PriceRow("batch", 0, Decimal(1000), None, None, Decimal(10000))


def model(provider: BatchProvider, shape: str, *, seed: int | None = None, **fields: Any) -> AskedModel:
    """Return a toy model at a provider. A prompt of 1000 tokens and an answer of 20 cost 1.2 dollars by batch."""
    address = provider.address if shape == ANTHROPIC else f"{provider.address}/v1"
    more = {
        "name": f"toy-{shape}",
        "litellm": f"{shape}/toy",
        "base_address": address,
        "key_variable": "TOY_KEY",
        "parameters": {"max_tokens": 100},
        "prices": (BATCH_PRICE,),
        "stream": False,
        **fields,
    }
    return AskedModel(ModelFile(**more), seed)


class Job:
    """A run folder and the examples that are asked into it. `said` is what a user was told."""

    def __init__(self, folder: Path, *models: AskedModel, count: int = 4, repeats: int = 1) -> None:
        self.run = folder / "run"
        self.models = models
        self.repeats = repeats
        self.said: list[str] = []
        examples = [dataclasses.replace(one, token_counts={"t": 900}) for one in mixed(count)]
        self.bench = write_examples(folder / f"bench-{count}", examples)

    def submit(self, **fields: Any) -> list[Handed]:
        with (
            select(self.bench, Wanted()) as selection,
            open_pool(self.run, self.said.append, claims=[one.claim for one in self.models]) as pool,
            open_journal(self.run, self.said.append) as journal,
        ):
            works = [Work(by_batch(one), selection, self.repeats) for one in self.models]

            async def work() -> list[Handed]:
                async with Translator() as translator:
                    more = {"patience": QUICK, "settle": 0.0, **fields}
                    return await Submitter(journal, pool, translator, self.said.append, **more).submit(works)

            return asyncio.run(asyncio.wait_for(work(), 60))

    def collect(self, wait: float = 0.0) -> list[Outcome]:
        return self._with(lambda collector: collector.collect(wait))

    def look(self) -> list[Outcome]:
        return self._with(lambda collector: collector.look())

    def cancel(self, *only: str, let_go: bool = False) -> list[Outcome]:
        return self._with(lambda collector: collector.cancel(frozenset(only), let_go=let_go))

    def _with(self, call: Callable[[Collector], Coroutine[Any, Any, list[Outcome]]]) -> list[Outcome]:
        async def work() -> list[Outcome]:
            async with (
                Translator() as translator,
                Collector(self.run, translator, self.said.append, QUICK, 0.0) as collector,
            ):
                return await call(collector)

        return asyncio.run(asyncio.wait_for(work(), 60))

    @property
    def responses(self) -> list[Response]:
        return list(whole_responses(self.run))

    @property
    def answers(self) -> list[Response]:
        return [one for one in self.responses if one.complete]

    @property
    def failures(self) -> list[Response]:
        return [one for one in self.responses if one.error is not None]

    @property
    def batches(self) -> list[Batch]:
        return list(read_batches(self.run).values())

    def told(self, words: str) -> bool:
        return any(words in line for line in self.said)

    def on_disk(self) -> bytes:
        """Return all bytes of all files of the run folder."""
        found = b""
        for path in self.run.rglob("*"):
            with contextlib.suppress(IsADirectoryError):
                found += path.read_bytes()
        return found
