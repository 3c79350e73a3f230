"""`gniah-eval batch`: the same requests by a provider's batch interface, into the same pool."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
from collections.abc import Callable, Coroutine, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gniah.evaluator.choosing import (
    Changes,
    asked_models,
    check_prices,
    choosing,
    fitting,
    preview_of,
    refuse_twins,
    request_fields,
)
from gniah.evaluator.models import OFFLINE
from gniah.records.command_line import GIVEN_PATH, emit, emit_json, say, table
from gniah.records.errors import CheckFailed, InputError, UsageFault

if TYPE_CHECKING:
    from gniah.evaluator.inference.batches.collection import Collector, Outcome
    from gniah.evaluator.inference.batches.journal import Batch
    from gniah.evaluator.inference.batches.submission import Guard, Handed
    from gniah.evaluator.inference.model_run import Work
    from gniah.evaluator.selection import Selection

T = TypeVar("T")
_JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output instead of tables.")


@click.group("batch")
def batch_group() -> None:
    """Ask models by their provider's batch interface: answers within a day, at a lower price, in the same pool.

    \b
    Example:
      gniah-eval batch submit BENCH --model gpt-5.6-luna --out RUN --preview
      gniah-eval batch submit BENCH --model gpt-5.6-luna --out RUN
      gniah-eval batch collect RUN --wait 86400
    """


@batch_group.command("submit")
@choosing
@click.option("--batch-requests", type=click.IntRange(min=1), help="Requests in one batch, at most.")
@_JSON
def submit_command(
    examples: Path,
    models: tuple[str, ...],
    out: Path,
    repeats: int,
    limit: int | None,
    experiment: str | None,
    list_length: int | None,
    slots: tuple[int, int] | None,
    preview: bool,
    max_cost: Decimal | None,
    too_long: str,
    base_address: str | None,
    key_variable: str | None,
    efforts: tuple[str, ...],
    parameters: tuple[str, ...],
    request_seed: int | None,
    batch_requests: int | None,
    as_json: bool,
) -> None:
    """Submit what has no answer in RUN yet and is in no batch; what is asked is chosen as for `gniah-eval run`.

    Each batch is noted in RUN/batches.jsonl before it is submitted, so that nothing is submitted twice, however this
    ends. Requests that failed in an earlier batch are submitted again.

    \b
    Example:
      gniah-eval batch submit BENCH --model gpt-5.6-luna --out RUN
    """
    from gniah.evaluator.inference.batches.planning import by_batch
    from gniah.evaluator.inference.model_run import Work
    from gniah.evaluator.selection import Wanted, select

    here = [word for word in models if word in OFFLINE and base_address is None]
    if here:
        raise UsageFault(f"{here[0]} is asked over no network", remedy="ask it with gniah-eval run")
    changes = Changes(
        base_address=base_address,
        key_variable=key_variable,
        efforts=efforts,
        parameters=request_fields(parameters),
        tiers=None,
        stream=None,
        limits={},
        seed=request_seed,
    )
    asked = [by_batch(model) for word in dict.fromkeys(models) for model in asked_models(word, changes)]
    refuse_twins(asked)
    selection = select(examples, Wanted(experiment, list_length, slots, limit))
    if preview:
        preview_of(selection, asked, out, repeats, as_json)
        return
    works = [Work(model, fitting(selection, model, too_long), repeats) for model in asked]
    check_prices(asked, max_cost)
    _report_handed(out, _submit(selection, works, out, max_cost, batch_requests), as_json)


@batch_group.command("status")
@click.argument("run", type=GIVEN_PATH)
@_JSON
def status_command(run: Path, as_json: bool) -> None:
    """Ask how the batches of RUN stand, and say what they cost so far. Nothing is changed.

    \b
    Example:
      gniah-eval batch status RUN
    """
    _check_there(run)
    outcomes = _with_collector(run, lambda collector: collector.look())
    _emit_batches(run, [one.batch for one in outcomes], as_json)
    _tell(outcomes)
    if any(one.trouble is not None for one in outcomes):
        raise CheckFailed(f"{run}: not all batches could be asked about", remedy="look at the lines above, then repeat")


@batch_group.command("collect")
@click.argument("run", type=GIVEN_PATH)
@click.option("--wait", type=click.FloatRange(min=0), default=0.0, metavar="SECONDS", help="Go on until all ended.")
@_JSON
def collect_command(run: Path, wait: float, as_json: bool) -> None:
    """Append the answers of batches that ended to RUN/inference_pool.jsonl.

    Ends with exit code 1 when requests failed or a batch has not ended. Interrupt it whenever you like: the same
    command goes on from there.

    \b
    Example:
      gniah-eval batch collect RUN
      gniah-eval batch collect RUN --wait 86400
    """
    _check_there(run)
    outcomes = _with_collector(run, lambda collector: collector.collect(wait))
    _emit_batches(run, [one.batch for one in outcomes], as_json)
    _tell(outcomes)
    what = _unfinished(outcomes)
    if what:
        raise CheckFailed(
            f"{run}: {'; '.join(what)}",
            remedy="give the same command again for batches that have not ended, and gniah-eval batch submit for "
            "requests that failed",
        )


@batch_group.command("cancel")
@click.argument("run", type=GIVEN_PATH)
@click.option(
    "--batch", "only", multiple=True, metavar="NAME", help="This batch, by the start of its name. Repeatable."
)
@click.option(
    "--let-go",
    is_flag=True,
    help="Give batches up without asking the provider: what they answered is lost, and their requests may be asked, "
    "and paid, again.",
)
@_JSON
def cancel_command(run: Path, only: tuple[str, ...], let_go: bool, as_json: bool) -> None:
    """Ask the provider to end the batches of RUN. What is answered already is still to be collected.

    \b
    Example:
      gniah-eval batch cancel RUN
      gniah-eval batch collect RUN --wait 600
    """
    if let_go and not only:
        raise UsageFault("--let-go is for single batches", remedy="name them with --batch")
    _check_there(run)
    outcomes = _with_collector(run, lambda collector: collector.cancel(frozenset(only), let_go=let_go))
    missing = [name for name in only if not any(one.batch.id.startswith(name) for one in outcomes)]
    if missing:
        raise UsageFault(f"no open batch is called {missing[0]!r}", remedy="gniah-eval batch status RUN names them")
    _emit_batches(run, [one.batch for one in outcomes], as_json)
    _tell(outcomes)
    if any(one.trouble is not None for one in outcomes):
        raise CheckFailed(f"{run}: not all batches could be canceled", remedy="look at the lines above, then repeat")


def _submit(
    selection: Selection, works: Sequence[Work], out: Path, max_cost: Decimal | None, batch_requests: int | None
) -> list[Handed]:
    from gniah.evaluator.inference.batches.journal import open_journal
    from gniah.evaluator.inference.batches.submission import Guard, Submitter
    from gniah.evaluator.inference.batches.translation import Translator
    from gniah.evaluator.pool import open_pool

    guard = Guard()

    async def all_of_them() -> list[Handed]:
        async with Translator() as translator:
            submitter = Submitter(journal, pool, translator, say)
            submitter.max_cost, submitter.batch_requests, submitter.guard = max_cost, batch_requests, guard
            return await submitter.submit(works)

    claims = [work.model.claim for work in works]
    with selection, open_pool(out, say, claims=claims) as pool, open_journal(out, say) as journal:
        return _run(all_of_them(), guard)


def _with_collector(run: Path, work: Callable[[Collector], Coroutine[Any, Any, list[Outcome]]]) -> list[Outcome]:
    from gniah.evaluator.inference.batches.collection import Collector
    from gniah.evaluator.inference.batches.submission import Guard
    from gniah.evaluator.inference.batches.translation import Translator

    async def all_of_it() -> list[Outcome]:
        async with Translator() as translator, Collector(run, translator, say) as collector:
            return await work(collector)

    return _run(all_of_it(), Guard())


def _run(work: Coroutine[Any, Any, T], guard: Guard) -> T:
    from gniah.evaluator.inference.interrupts import on_interrupt

    async def main() -> T:
        task = asyncio.current_task()

        def end() -> None:
            """End the work; while a batch is being submitted, when that is noted, or at the next interruption."""
            if guard.held and not guard.stop:
                guard.stop = True
                say("stopping when the batch that is being submitted is noted; interrupt again to end at once")
            elif task is not None:
                task.cancel()

        with on_interrupt(end):
            return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _check_there(run: Path) -> None:
    from gniah.evaluator.inference.batches.journal import JOURNAL_NAME

    if not (run / JOURNAL_NAME).is_file():
        raise InputError(
            f"{run / JOURNAL_NAME}: no such file", remedy="give the folder that gniah-eval batch submit wrote"
        )


def _report_handed(out: Path, handed: Sequence[Handed], as_json: bool) -> None:
    if as_json:
        rows = [
            {**dataclasses.asdict(dataclasses.replace(one, batches=[])), "batches": [b.id for b in one.batches]}
            for one in handed
        ]
        emit_json({"run": str(out), "models": rows})
    else:
        headings = ("model", "there already", "in batches", "submitted", "new batches", "not submitted")
        rows_ = [(one.model, one.already, one.waiting, one.submitted, len(one.batches), one.left) for one in handed]
        emit(table(headings, rows_))
    ended = [
        f"{one.model}: {one.ended}" + (f"; {one.left} requests are not submitted" if one.left else "")
        for one in handed
        if one.ended
    ]
    if ended:
        raise CheckFailed(f"{out}: {'; '.join(ended)}", remedy="mend what it names, then give the same command again")


def _emit_batches(run: Path, batches: Sequence[Batch], as_json: bool) -> None:
    if as_json:
        emit_json({"run": str(run), "batches": [_batch_json(batch) for batch in batches]})
        return
    if not batches:
        say(f"{run}: no batch is open")
        return
    headings = ("batch", "model", "requests", "state", "at the provider", "age", "answered", "failed", "cost")
    rows = [
        (
            batch.short,
            batch.model["name"],
            len(batch.requests),
            _state(batch),
            ", ".join(f"{count:,} {name}" for name, count in batch.counts.items() if count) or "-",
            _age(batch),
            batch.answered + batch.cut,
            batch.failed,
            _cost(batch),
        )
        for batch in batches
    ]
    emit(table(headings, rows))


def _batch_json(batch: Batch) -> dict[str, Any]:
    names = ("id", "at", "shape", "address", "provider_id", "submitted_at", "step", "state", "reason", "bytes")
    return {
        **{name: getattr(batch, name) for name in names},
        "model": batch.model["name"],
        "parameters": batch.model["parameters"],
        "requests": len(batch.requests),
        "counts": dict(batch.counts),
        "answered": batch.answered,
        "failed": batch.failed,
        "prompt_cut": batch.cut,
        "cost": f"{batch.cost:f}",
        "unpriced": batch.unpriced,
        "most": None if batch.most is None else f"{batch.most:f}",
    }


def _state(batch: Batch) -> str:
    from gniah.evaluator.inference.batches.journal import PLANNED, SUBMITTING, UPLOADED

    words = {PLANNED: "not submitted", UPLOADED: "not submitted", SUBMITTING: "perhaps submitted"}
    if batch.step in words:
        return words[batch.step]
    return (batch.state or batch.step) if batch.open else batch.step


def _age(batch: Batch) -> str:
    from gniah.evaluator.inference.board import time_words

    passed = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(batch.at)
    return time_words(passed.total_seconds())


def _cost(batch: Batch) -> str:
    from gniah.evaluator.inference.preview_tables import dollars

    if batch.open or batch.let_go:
        return "unknown" if batch.most is None else f"at most {dollars(batch.most)}"
    if batch.unpriced:
        return f"{dollars(batch.cost)} and {batch.unpriced:,} unknown" if batch.cost else "unknown"
    return dollars(batch.cost)


def _tell(outcomes: Iterable[Outcome]) -> None:
    """Say what a table has no room for: why something is not known, was given up, or failed."""
    for one in outcomes:
        name = f"batch {one.batch.short} of {one.batch.model['name']}"
        if one.trouble is not None:
            say(f"{name}: {one.trouble}")
        elif one.batch.reason is not None:
            say(f"{name} ended without an answer: {one.batch.reason}")
        if one.kept is not None and one.kept.failed:
            say(f"{name}: failed: {', '.join(f'{kind} {count}' for kind, count in sorted(one.kept.failed.items()))}")


def _unfinished(outcomes: Sequence[Outcome]) -> list[str]:
    """Return in words what is not as it should be after collecting."""
    from gniah.evaluator.inference.batches.journal import DROPPED

    kept = [one.kept for one in outcomes if one.kept is not None]
    numbers = (
        (sum(sum(one.failed.values()) for one in kept), "requests failed"),
        (sum(one.cut for one in kept), "prompts arrived cut"),
        (sum(sum(one.strange.values()) for one in kept), "results belong to no request"),
        (sum(one.batch.step == DROPPED for one in outcomes), "batches ended without an answer"),
        (sum(one.batch.open for one in outcomes), "batches have not ended"),
    )
    return [f"{number} {words}" for number, words in numbers if number]
