"""`gniah-eval run`: which models are asked what, within which limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gniah.evaluator.choosing import (
    Changes,
    asked_models,
    check_keys,
    check_prices,
    choosing,
    fitting,
    preview_of,
    refuse_twins,
    request_fields,
)
from gniah.evaluator.lists import count_range_of
from gniah.evaluator.models import OFFLINE, Model, ModelSettings, open_model
from gniah.evaluator.pool import InferencePool, open_pool
from gniah.evaluator.runs import OFFLINE_SYNC_EVERY, RunCounts, run_model
from gniah.evaluator.scoring import CountRange
from gniah.evaluator.selection import Selection, Wanted, select
from gniah.records.command_line import Progress, emit, emit_json, say, table
from gniah.records.errors import CheckFailed, UsageFault
from gniah.records.parameters import Names

if TYPE_CHECKING:
    from gniah.evaluator.inference.asked_model import AskedModel
    from gniah.evaluator.inference.model_run import Tally


@click.command("run")
@choosing
@click.option("--tiers", type=Names(), help="Service tiers in the order they are tried, such as flex,default.")
@click.option("--stream/--no-stream", default=None, help="Whether answers are streamed.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests at once, for each model.")
@click.option("--requests-per-minute", type=click.IntRange(min=1), help="For each model.")
@click.option("--tokens-per-minute", type=click.IntRange(min=1), help="Prompt tokens, for each model.")
@click.option("--time-limit", type=click.IntRange(min=1), metavar="SECONDS", help="For one request, by the clock.")
@click.option("--idle-limit", type=click.IntRange(min=1), metavar="SECONDS", help="Between two pieces of a stream.")
@click.option("--attempts", type=click.IntRange(min=1), default=20, show_default=True, help="For one request.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random model.")
@click.option(
    "--constant-answer",
    "constant_answers",
    multiple=True,
    metavar="TASK=ANSWER",
    help="What the constant model answers to a task. Repeatable.",
)
@click.option(
    "--count-range",
    nargs=2,
    type=click.IntRange(min=0),
    metavar="MIN MAX",
    help="Smallest and largest right answer of a task answered by a number, for the random model. [default: what the "
    "settings of the lists beside EXAMPLES allow, else the family's own]",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output instead of tables.")
def run_command(
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
    tiers: tuple[str, ...] | None,
    stream: bool | None,
    concurrency: int | None,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
    time_limit: int | None,
    idle_limit: int | None,
    attempts: int,
    request_seed: int | None,
    seed: int,
    constant_answers: tuple[str, ...],
    count_range: CountRange | None,
    as_json: bool,
) -> None:
    """Ask models every example of EXAMPLES and append their answers to RUN/inference_pool.jsonl.

    EXAMPLES is an examples.jsonl, a folder that holds one, or an experiment.jsonl in such a folder. What RUN has
    already is not asked again; requests that failed are. Interrupt once to let what is under way end, twice to give
    it up; the same command goes on from there.

    \b
    Example:
      gniah-eval run BENCH --model text-solver --model random --out RUN
      gniah-eval run BENCH --model gpt-5.6-luna --limit 100 --out RUN --preview
      gniah-eval run BENCH --model my-model --base-address http://127.0.0.1:8080/v1 --out RUN
    """
    changes = Changes(
        base_address=base_address,
        key_variable=key_variable,
        efforts=efforts,
        parameters=request_fields(parameters),
        tiers=tiers,
        stream=stream,
        limits={
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "time_limit_seconds": time_limit,
            "idle_limit_seconds": idle_limit,
        },
        seed=request_seed,
    )
    words = tuple(dict.fromkeys(models))
    here = [word for word in words if word in OFFLINE and base_address is None]
    asked = [model for word in words if word not in here for model in asked_models(word, changes)]
    refuse_twins(asked)
    selection = select(examples, Wanted(experiment, list_length, slots, limit))
    settings = ModelSettings(
        seed, constants(constant_answers), checked_range(count_range) or count_range_of(selection.path)
    )
    offline = [open_model(word, settings) for word in here]
    if preview:
        preview_of(selection, asked, out, repeats, as_json)
        return
    selections = [fitting(selection, model, too_long) for model in asked]
    check_prices(asked, max_cost)
    check_keys(asked)
    with selection, open_pool(out, say, OFFLINE_SYNC_EVERY, _claims(offline, asked)) as pool:
        if pool.done:
            say(f"{out}: going on; {len(pool.done)} answers are there already")
        counts = [_run_here(model, selection, pool, repeats) for model in offline]
        tallies = _run_beside_batches(asked, selections, out, pool, repeats, attempts, max_cost) if asked else []
    _report(out, counts, tallies, as_json)


def _claims(offline: Sequence[Model], asked: Sequence[AskedModel]) -> list[str]:
    from gniah.records.canonical import digest

    return [*(digest(model.name)[:16] for model in offline), *(model.claim for model in asked)]


def _run_here(model: Model, selection: Selection, pool: InferencePool, repeats: int) -> RunCounts:
    with Progress(model.name) as progress:
        chosen = map(selection.read, selection.chosen)
        return run_model(model, chosen, pool, repeats=repeats, advance=progress.advance)


def _run_beside_batches(
    asked: Sequence[AskedModel],
    selections: Sequence[Selection],
    out: Path,
    pool: InferencePool,
    repeats: int,
    attempts: int,
    max_cost: Decimal | None,
) -> list[Tally]:
    """Ask what is in no batch that has not ended. Those requests are left, and what they may cost is set aside."""
    from gniah.evaluator.inference.batches.journal import aside_of, read_batches

    batches = read_batches(out).values()
    waiting = {asked.key for batch in batches if batch.open for asked in batch.requests} - pool.done
    pool.spent += aside_of(batches)
    pool.done |= waiting
    tallies = _run_asked(asked, selections, pool, repeats, attempts, max_cost)
    for model, selection, tally in zip(asked, selections, tallies, strict=True):
        keys = (
            model.request_key(one.prompt_sha256, repeat)
            for one in (selection.chosen if waiting else ())
            for repeat in range(repeats)
        )
        left = sum(key in waiting for key in keys)
        tally.already = max(0, tally.already - left)
        if left and tally.ended is None:
            tally.ended = f"{left} requests are in batches; gniah-eval batch collect {out} fetches their answers"
    return tallies


def _run_asked(
    asked: Sequence[AskedModel],
    selections: Sequence[Selection],
    pool: InferencePool,
    repeats: int,
    attempts: int,
    max_cost: Decimal | None,
) -> list[Tally]:
    from gniah.evaluator.inference.board import Board
    from gniah.evaluator.inference.model_run import Work
    from gniah.evaluator.inference.runner import Interrupted, ask_models, patience_of

    works = [
        Work(model, selection, repeats, patience_of(model, attempts))
        for model, selection in zip(asked, selections, strict=True)
    ]
    try:
        with Board() as board:
            return ask_models(works, pool, max_cost=max_cost, notice=board.say, watch=board.show)
    except Interrupted:
        raise KeyboardInterrupt from None


def _report(out: Path, counts: Sequence[RunCounts], tallies: Sequence[Tally], as_json: bool) -> None:
    from_here = [dataclasses.asdict(count) for count in counts]
    if as_json:
        emit_json({"pool": str(out), "models": [*from_here, *(tally.to_json() for tally in tallies)]})
    else:
        emit(_counts_table(counts, tallies))
    for tally in tallies:
        if tally.kinds:
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(tally.kinds.items()))
            say(f"{tally.model}: failed: {kinds}")
    failed = sum(count.failed for count in counts) + sum(tally.failed for tally in tallies)
    ended = [tally for tally in tallies if tally.ended is not None]
    cut = sum(tally.cut for tally in tallies)
    if failed or ended or cut:
        what = [f"{failed} requests failed"] if failed else []
        what += [f"{cut} prompts arrived cut"] if cut else []
        what += [f"{tally.model} was not asked to the end: {tally.ended}" for tally in ended]
        raise CheckFailed(
            f"{out}: {'; '.join(what)}",
            remedy="look at 'error' in the pool (gniah-eval pool check), then give the same command again",
        )


def _counts_table(counts: Sequence[RunCounts], tallies: Sequence[Tally]) -> str:
    if not tallies:
        rows = [(count.model, count.answered, count.already, count.failed) for count in counts]
        return table(("model", "answered", "there already", "failed"), rows)
    from gniah.evaluator.inference.board import cost_words

    all_rows: list[tuple[object, ...]] = [
        (count.model, count.answered, count.already, count.failed, 0, 0, "") for count in counts
    ]
    all_rows += [
        (tally.model, tally.answered, tally.already, tally.failed, tally.cut, tally.left, cost_words(tally))
        for tally in tallies
    ]
    return table(("model", "answered", "there already", "failed", "prompt cut", "not asked", "cost"), all_rows)


def checked_range(count_range: CountRange | None) -> CountRange | None:
    """Return a range of right answers. Raises UsageFault when its ends are swapped."""
    if count_range is not None and count_range[0] > count_range[1]:
        raise UsageFault(f"--count-range {count_range[0]} {count_range[1]}: the smallest comes first")
    return count_range


def constants(words: tuple[str, ...]) -> dict[str, str]:
    """Return what the constant model is told to answer. Raises UsageFault for a word that is no TASK=ANSWER."""
    answers = {}
    for word in words:
        task, sign, answer = word.partition("=")
        if not (task and sign and answer):
            raise UsageFault(f"--constant-answer {word!r}: expected TASK=ANSWER, such as yes-no=NO")
        answers[task] = answer
    return answers
