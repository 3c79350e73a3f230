"""Collecting answers: results are downloaded whole, every answer is in the pool and on disk, then the batch is done.

A network that fails says nothing about a batch, nor about the model. A request that was not answered in its batch is a
failure in the pool, and is asked again by the next submission.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from gniah.evaluator.inference.attempts import Patience
from gniah.evaluator.inference.batches.calls import Calls
from gniah.evaluator.inference.batches.fetching import fetch
from gniah.evaluator.inference.batches.interfaces import Interface, Sought, Standing, interface
from gniah.evaluator.inference.batches.journal import (
    COLLECTED,
    DROPPED,
    PLANNED,
    SEEN,
    SUBMITTED,
    SUBMITTING,
    UPLOADED,
    Batch,
    Journal,
    open_journal,
    read_batches,
)
from gniah.evaluator.inference.batches.keeping import Kept, keep
from gniah.evaluator.inference.batches.planning import model_from_json
from gniah.evaluator.inference.batches.submission import SETTLE_SECONDS, check_address, seek, unsure_words
from gniah.evaluator.inference.batches.translation import Route, Translator
from gniah.evaluator.inference.failures import ENDS_A_MODEL, MODEL, Failure
from gniah.records.errors import CheckFailed, UsageFault

Notice = Callable[[str], None]
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


@dataclass(slots=True)
class Outcome:
    """What one look at a batch came to. `trouble` says why nothing is known; `hopeless` that waiting does not mend it.

    `kept` is what was collected now.
    """

    batch: Batch
    trouble: str | None = None
    hopeless: bool = False
    kept: Kept | None = None


@dataclass(slots=True)
class Collector:
    """Looks at the batches of a run folder. It is an async context manager."""

    folder: Path
    translator: Translator
    notice: Notice
    patience: Patience = field(default_factory=lambda: Patience(attempts=5))
    settle: float = SETTLE_SECONDS
    _reached: dict[str, tuple[Route, Calls]] = field(default_factory=dict)

    async def __aenter__(self) -> Collector:
        return self

    async def __aexit__(self, *_: object) -> None:
        for calls in [calls for _route, calls in self._reached.values()]:
            await calls.__aexit__()

    async def collect(self, wait: float = 0.0) -> list[Outcome]:
        """Collect what has ended, and go on looking for so many seconds while something has not.

        Returns the last outcome of each batch that was open. Raises BusyError while another process is at work on the
        batches or holds the pool, and what the disk raises.
        """
        begun, found = time.monotonic(), dict[str, Outcome]()
        while True:
            with open_journal(self.folder, self.notice) as journal:
                for batch in journal.open_batches():
                    if batch.id not in found or not found[batch.id].hopeless:
                        found[batch.id] = await self._collect(journal, batch)
            passed = time.monotonic() - begun
            if passed >= wait or not any(one.batch.open and not one.hopeless for one in found.values()):
                return list(found.values())
            pause = min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, passed / 10))
            await asyncio.sleep(min(pause, wait - passed))

    async def look(self) -> list[Outcome]:
        """Ask how all open batches stand; nothing is written."""
        found = []
        for batch in read_batches(self.folder).values():
            outcome = Outcome(batch)
            if batch.step == SUBMITTED:
                try:
                    to, _ = await self._reach(batch)
                    standing = await to.look(batch)
                    batch.state, batch.counts = standing.state, standing.counts
                except (Failure, CheckFailed, UsageFault) as error:
                    outcome.trouble = str(error)
            found.append(outcome)
        return found

    async def cancel(self, only: frozenset[str], *, let_go: bool) -> list[Outcome]:
        """Cancel open batches, all or those of these names (ours, or their beginnings).

        With `let_go` the provider is not asked: the batches are given up, whatever becomes of them there.
        """
        found = []
        with open_journal(self.folder, self.notice) as journal:
            for batch in journal.open_batches():
                if only and not any(batch.id.startswith(name) for name in only):
                    continue
                if let_go:
                    journal.note(batch, DROPPED, reason="let go by hand", let_go=True)
                    self._remove(journal, batch)
                    found.append(Outcome(batch))
                else:
                    found.append(await self._guarded(batch, self._cancel(journal, batch)))
        return found

    async def _collect(self, journal: Journal, batch: Batch) -> Outcome:
        return await self._guarded(batch, self._look_and_keep(journal, batch))

    async def _guarded(self, batch: Batch, work: Awaitable[Outcome]) -> Outcome:
        try:
            return await work
        except Failure as failure:
            words = f"could not be asked about: {failure}"
            if failure.kind == MODEL:
                words += "; the provider does not know it: is it the key of another project, or long ago?"
            return Outcome(batch, words, failure.kind in ENDS_A_MODEL)
        except (CheckFailed, UsageFault) as error:
            return Outcome(batch, f"{error.message} ({error.remedy})", hopeless=True)

    async def _look_and_keep(self, journal: Journal, batch: Batch) -> Outcome:
        if batch.step in (PLANNED, UPLOADED):
            return Outcome(batch, "is not submitted: give gniah-eval batch submit again, or cancel it", hopeless=True)
        to, calls = await self._reach(batch)
        if batch.step == SUBMITTING:
            outcome = await self._find(journal, batch, to)
            if outcome is not None:
                return outcome
        standing = await to.look(batch)
        if (standing.state, standing.counts) != (batch.state, batch.counts):
            journal.note(batch, SEEN, state=standing.state, counts=standing.counts)
        if not standing.ended:
            return Outcome(batch)
        if standing.failed is not None and not standing.results:
            journal.note(batch, DROPPED, state=standing.state, reason=standing.failed)
            return Outcome(batch)
        return Outcome(batch, kept=await self._keep(journal, batch, standing, calls))

    async def _find(self, journal: Journal, batch: Batch, to: Interface) -> Outcome | None:
        """Find a batch whose submission was cut off; return None when it is there, else what is known."""
        sought = await seek(batch, to, journal.batches, self.settle)
        if sought.unsure:
            return Outcome(batch, unsure_words(batch, sought))
        if sought == Sought():
            journal.note(batch, DROPPED, reason="it never reached the provider")
            self._remove(journal, batch)
            return Outcome(batch)
        journal.note(batch, SUBMITTED, provider_id=sought.provider_id, state="")
        self._remove(journal, batch)
        return None

    async def _keep(self, journal: Journal, batch: Batch, standing: Standing, calls: Calls) -> Kept:
        paths = await fetch(journal, batch, standing, calls, self.notice)
        kept = await keep(self.folder, batch, standing.state, paths, self.translator, self.notice)
        journal.note(
            batch,
            COLLECTED,
            state=standing.state,
            counts=standing.counts,
            answered=kept.answered,
            failed=sum(kept.failed.values()),
            cut=kept.cut,
            cost=f"{kept.cost:f}",
            unpriced=kept.unpriced,
            strange=sum(kept.strange.values()),
        )
        if kept.strange:
            self.notice(f"the results of batch {batch.short} are kept in {paths[0].parent}")
        else:
            for path in paths:
                path.unlink(missing_ok=True)
        return kept

    async def _cancel(self, journal: Journal, batch: Batch) -> Outcome:
        if batch.step in (PLANNED, UPLOADED):
            journal.note(batch, DROPPED, reason="taken back before it was submitted")
            self._remove(journal, batch)
            return Outcome(batch)
        to, _ = await self._reach(batch)
        if batch.step == SUBMITTING:
            outcome = await self._find(journal, batch, to)
            if outcome is not None:
                return outcome
        standing = await to.look(batch)
        if standing.ended:
            journal.note(batch, SEEN, state=standing.state, counts=standing.counts)
        else:
            journal.note(batch, SEEN, state=await to.cancel(batch))
        return Outcome(batch)

    def _remove(self, journal: Journal, batch: Batch) -> None:
        journal.input_path(batch.id).unlink(missing_ok=True)

    async def _reach(self, batch: Batch) -> tuple[Interface, Calls]:
        """Return the interface that a batch is at. Raises CheckFailed when its model's settings lead elsewhere now."""
        model = model_from_json(batch.model)
        if model.claim not in self._reached:
            route = await self.translator.route(model)
            self._reached[model.claim] = route, Calls(route, self.patience)
        route, calls = self._reached[model.claim]
        check_address(batch, route)
        return interface(route.shape, calls), calls
