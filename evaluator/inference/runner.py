"""Asking models over a network: many requests at once, every answer on disk before its place is taken by the next.

Each model has a pace of its own. Repeats of one prompt follow its first answer, so that providers find it in their
caches. A first interruption lets what is under way end and sends nothing more; a second one ends everything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from decimal import Decimal

from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.attempts import Patience
from gniah.evaluator.inference.budget import Budget
from gniah.evaluator.inference.interrupts import on_interrupt
from gniah.evaluator.inference.keeper import Keeper
from gniah.evaluator.inference.limits import Quota
from gniah.evaluator.inference.model_run import ModelRun, Notice, Tally, Work
from gniah.evaluator.inference.transport import LiteLLMTransport, Transport
from gniah.evaluator.pool import InferencePool


def ask_models(
    works: Sequence[Work],
    pool: InferencePool,
    *,
    max_cost: Decimal | None = None,
    notice: Notice = lambda _: None,
    watch: Callable[[Sequence[Tally]], None] = lambda _: None,
) -> list[Tally]:
    """Ask models over a network, all at once, until nothing is left; return what became of each one's requests.

    Their selections must be open. `max_cost` is what the whole pool may cost in US dollars, earlier runs included;
    `notice` is told what a user should hear, `watch` is called after each response. Failures are responses too, and
    raise nothing. Raises Interrupted after an interruption, EnvironmentFault when the disk is full, MissingDependency
    without LiteLLM.
    """
    if all(one.left(pool.done) == 0 for one in works):  # LiteLLM takes seconds to import
        return [Tally.of_finished(one) for one in works]

    async def work() -> list[Tally]:
        transport = LiteLLMTransport(sum(one.model.file.limits.concurrency for one in works))
        return await run_models(works, pool, transport, max_cost=max_cost, notice=notice, watch=watch)

    return asyncio.run(work())


def patience_of(model: AskedModel, attempts: int | None = None) -> Patience:
    """Return how long requests of a model are pursued, by its limits; `attempts` of one that fails without cost."""
    limits = model.file.limits
    more = {} if attempts is None else {"attempts": attempts}
    return Patience(time_limit=limits.time_limit_seconds, idle_limit=limits.idle_limit_seconds, **more)


class Interrupted(Exception):
    """A run was interrupted. What was answered is kept."""


async def run_models(
    works: Sequence[Work],
    pool: InferencePool,
    transport: Transport,
    *,
    max_cost: Decimal | None = None,
    notice: Notice = lambda _: None,
    watch: Callable[[Sequence[Tally]], None] = lambda _: None,
) -> list[Tally]:
    """Ask all models at once and append every response to the pool; return what became of them.

    `max_cost` is what the whole pool may cost in US dollars, earlier runs included. `watch` is called after each
    response. Raises Interrupted after an interruption, and what the disk raises.
    """
    keeper = Keeper(pool)
    budget = Budget(max_cost, pool.spent)
    quotas: dict[tuple[str, str | None], Quota] = {}
    runs = []
    for work in works:
        file = work.model.file
        limits = (file.limits.requests_per_minute, file.limits.tokens_per_minute)
        quota = quotas.setdefault((file.litellm, file.base_address), Quota(*limits))
        runs.append(ModelRun(work, keeper, transport, budget, quota, notice))
    tallies = [run.tally for run in runs]
    for run in runs:
        run.watch = lambda: watch(tallies)
    interrupts = 0

    async def stop() -> None:
        await budget.stop()
        for run in runs:
            await run.stop()

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(run.run())

    main = asyncio.ensure_future(all_of_them())
    stops: set[asyncio.Task[None]] = set()

    def interrupted() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts == 1:
            running = sum(run.running for run in runs)
            notice(f"stopping: {running} requests are under way and will be kept; interrupt again to give them up")
            stops.add(asyncio.ensure_future(stop()))
        else:
            main.cancel()

    try:
        async with _kept(keeper, interrupted):
            try:
                await main
            except asyncio.CancelledError:
                if not interrupts:
                    raise
            except BaseExceptionGroup as group:
                raise _first(group) from group
    finally:
        await transport.close()
    if interrupts:
        raise Interrupted
    return tallies


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first plain exception in a group."""
    one: BaseException = group
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    return one


@contextlib.asynccontextmanager
async def _kept(keeper: Keeper, interrupted: Callable[[], None]) -> AsyncIterator[None]:
    """Have responses kept, and interruptions told, until the last response is on disk."""
    with on_interrupt(interrupted):
        async with keeper:
            yield
