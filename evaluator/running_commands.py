"""`gniah-eval run`: which models are asked what, within which limits."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from gniah.evaluator.lists import count_range_of
from gniah.evaluator.models import OFFLINE, Model, ModelSettings, open_model
from gniah.evaluator.pool import InferencePool, open_pool, whole_responses
from gniah.evaluator.runs import OFFLINE_SYNC_EVERY, RunCounts, run_model
from gniah.evaluator.scoring import CountRange
from gniah.evaluator.selection import Chosen, Selection, Wanted, select
from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, say, table
from gniah.records.errors import CheckFailed, UsageFault
from gniah.records.parameters import Names, Range, Typed
from gniah.records.responses import Response, request_key

if TYPE_CHECKING:
    from gniah.evaluator.inference.asked_model import AskedModel
    from gniah.evaluator.inference.model_run import Tally
    from gniah.evaluator.inference.preview import Preview

Command = TypeVar("Command", bound=Callable[..., Any])


class _Amount(Typed[Decimal]):
    """An amount of US dollars, exact."""

    name = "USD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Return the amount."""
        try:
            amount = Decimal(str(value))
        except ArithmeticError:
            amount = Decimal(-1)
        if not amount.is_finite() or amount < 0:
            self.fail(f"{value!r} is not an amount of US dollars such as 12.50", param, ctx)
        return amount


class Changes(NamedTuple):
    """What the command line says of every model that is asked over a network; None leaves it to the model's file."""

    base_address: str | None
    key_variable: str | None
    efforts: tuple[str, ...]
    parameters: Mapping[str, Any]
    tiers: tuple[str, ...] | None
    stream: bool | None
    limits: Mapping[str, int | None]
    seed: int | None


# What is asked of which models, for each command that asks them.
_CHOICE: tuple[Callable[[Any], Any], ...] = (
    click.argument("examples", type=GIVEN_PATH),
    click.option(
        "--model",
        "models",
        multiple=True,
        required=True,
        metavar="MODEL",
        help=f"A model. Offline: {', '.join(OFFLINE)}. Over a network: a name of gniah-eval models, a model file, or "
        "LiteLLM's name, such as openai/gpt-5.6-luna. Repeatable.",
    ),
    click.option(
        "--out", type=GIVEN_PATH, required=True, metavar="RUN", help="Run folder; a stopped run goes on in it."
    ),
    click.option(
        "--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Ask each example N times."
    ),
    click.option("--limit", type=click.IntRange(min=1), help="Ask the first N examples only."),
    click.option("--experiment", help="Ask the examples of this list, in the order of its slots."),
    click.option("--list-length", type=click.IntRange(min=1), help="The context length of that list."),
    click.option("--slots", type=Range(), help="Ask these slots of a list only, from 0, both ends included."),
    click.option("--preview", is_flag=True, help="Say what would be sent, cost and take, and send nothing."),
    click.option(
        "--max-cost", type=_Amount(), help="What RUN may cost in all: no request that could exceed it is sent."
    ),
    click.option(
        "--too-long",
        type=click.Choice(("fail", "skip", "send")),
        default="fail",
        show_default=True,
        help="What to do when examples exceed a model's window, room for its output included.",
    ),
    click.option(
        "--base-address", metavar="URL", help="An OpenAI-compatible server, such as http://127.0.0.1:8080/v1."
    ),
    click.option("--key-variable", metavar="NAME", help="The environment variable that holds the key."),
    click.option(
        "--effort", "efforts", multiple=True, help="Reasoning effort. Repeatable: each is a model of its own."
    ),
    click.option("--parameter", "parameters", multiple=True, metavar="NAME=JSON", help="A request field. Repeatable."),
    click.option(
        "--request-seed", type=int, help="Send a seed with each request, one for each repeat, drawn from this."
    ),
)


def choosing(command: Command) -> Command:
    """Give a command the argument and the options that say what is asked of which models."""
    for option in reversed(_CHOICE):
        command = option(command)
    return command


@click.command("run")
@choosing
@click.option("--tiers", type=Names(), help="Service tiers in the order they are tried, such as flex,default.")
@click.option("--stream/--no-stream", default=None, help="Whether answers are streamed.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests at once, for each model.")
@click.option("--requests-per-minute", type=click.IntRange(min=1), help="For each model.")
@click.option("--tokens-per-minute", type=click.IntRange(min=1), help="Prompt tokens, for each model.")
@click.option("--time-limit", type=click.IntRange(min=1), metavar="SECONDS", help="For one request, by the clock.")
@click.option("--idle-limit", type=click.IntRange(min=1), metavar="SECONDS", help="Between two pieces of a stream.")
@click.option("--attempts", type=click.IntRange(min=1), default=10, show_default=True, help="For one request.")
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
    with selection, open_pool(out, say, OFFLINE_SYNC_EVERY, _claims(offline, asked)) as pool:
        if pool.done:
            say(f"{out}: going on; {len(pool.done)} answers are there already")
        counts = [_run_here(model, selection, pool, repeats) for model in offline]
        tallies = _run_beside_batches(asked, selections, out, pool, repeats, attempts, max_cost) if asked else []
    _report(out, counts, tallies, as_json)


def asked_models(word: str, changes: Changes) -> list[AskedModel]:
    """Return the models that a word stands for, one for each effort. Raises UsageFault for a word that is none."""
    from gniah.evaluator.inference import model_fields as fields
    from gniah.evaluator.inference.asked_model import AskedModel, changed
    from gniah.evaluator.inference.model_files import ModelFile, find_model, from_words, shipped_models

    address = changes.base_address and from_words("--base-address", changes.base_address, fields.as_address)
    variable = changes.key_variable and from_words("--key-variable", changes.key_variable, fields.as_variable)
    tiers = None if changes.tiers is None else from_words("--tiers", list(changes.tiers), fields.as_tiers)
    given = from_words("--parameter ", changes.parameters, fields.as_parameters)
    file = find_model(word)
    if file is None and (address is not None or "/" in word):
        provider = "" if address is None or word.startswith("openai/") else "openai/"
        name = from_words("--model", word, fields.as_name)
        file = ModelFile(name=name, litellm=f"{provider}{word}", base_address=address)
    if file is None:
        known = ", ".join((*OFFLINE, *shipped_models()))
        raise UsageFault(
            f"there is no model {word!r}; known are {known}",
            remedy="choose one of these, give a model file, a name with LiteLLM's provider such as openai/NAME, or "
            "--base-address",
        )
    found = []
    for effort in changes.efforts or (None,):
        more = {} if effort is None else {"reasoning_effort": effort}
        one = changed(
            file,
            parameters={**given, **more},
            limits=changes.limits,
            base_address=address,
            key_variable=variable,
            tiers=tiers,
            stream=changes.stream,
        )
        found.append(AskedModel(one, changes.seed))
    return found


def refuse_twins(asked: Sequence[AskedModel]) -> None:
    """Check that no model is given twice. Raises UsageFault."""
    claims = [model.claim for model in asked]
    for model, claim in zip(asked, claims, strict=True):
        if claims.count(claim) > 1:
            raise UsageFault(f"{model.label} is given twice with the same parameters", remedy="give it once")


def _claims(offline: Sequence[Model], asked: Sequence[AskedModel]) -> list[str]:
    from gniah.records.canonical import digest

    return [*(digest(model.name)[:16] for model in offline), *(model.claim for model in asked)]


def fitting(selection: Selection, model: AskedModel, too_long: str) -> Selection:
    """Return the examples that a model is asked: those that fit into its window, unless all are to be sent.

    Raises UsageFault where none may exceed it and one does.
    """
    from gniah.evaluator.inference.preview import exceeds, prompt_length

    if too_long == "send":
        return selection
    fits: list[Chosen] = []
    exceeding: list[Chosen] = []
    for one in selection.chosen:
        length, _ = prompt_length(model.file, one.token_counts)
        (exceeding if length is not None and exceeds(model.file, length) else fits).append(one)
    if exceeding and too_long == "fail":
        raise UsageFault(
            f"{model.label}: {len(exceeding)} of {len(selection.chosen)} examples exceed its window, with room for "
            f"{model.file.output_limit or 0:,} tokens of output; the first is {exceeding[0].qid}",
            remedy="leave them out with --too-long skip, send them with --too-long send, or lower the output limit "
            "with --parameter max_tokens=N",
        )
    if exceeding:
        say(f"{model.label}: {len(exceeding)} examples exceed its window and are left out")
    return selection.only(fits)


def check_prices(asked: Sequence[AskedModel], max_cost: Decimal | None) -> None:
    """Check that a limit can be kept: the most that a request can cost is known. Raises UsageFault."""
    if max_cost is None:
        return
    for model in asked:
        if model.most(1) is None:
            raise UsageFault(
                f"{model.label}: the most that a request can cost is unknown, so --max-cost could not be kept",
                remedy="write its prices and its longest output into a model file (gniah-eval models shows some), or "
                "leave out --max-cost",
            )


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
            request_key(model.name, model.base_address, model.parameters, one.prompt_sha256, repeat)
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
    import asyncio

    from gniah.evaluator.inference.attempts import Patience
    from gniah.evaluator.inference.board import Board
    from gniah.evaluator.inference.model_run import Work
    from gniah.evaluator.inference.runner import Interrupted, run_models
    from gniah.evaluator.inference.transport import LiteLLMTransport

    works = []
    for model, selection in zip(asked, selections, strict=True):
        limits = model.file.limits
        patience = Patience(
            attempts=attempts, time_limit=limits.time_limit_seconds, idle_limit=limits.idle_limit_seconds
        )
        works.append(Work(model, selection, repeats, patience))
    connections = sum(model.file.limits.concurrency for model in asked)

    async def all_of_them() -> list[Tally]:
        with Board() as board:
            transport = LiteLLMTransport(connections)
            return await run_models(works, pool, transport, max_cost=max_cost, notice=board.say, watch=board.show)

    try:
        return asyncio.run(all_of_them())
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


def preview_of(selection: Selection, asked: Sequence[AskedModel], out: Path, repeats: int, as_json: bool) -> None:
    """Print what a run would do. Nothing is sent, and nothing is written."""
    from gniah.evaluator.inference.preview_tables import preview_json, preview_table

    if not asked:
        raise UsageFault("--preview is for models that are asked over a network", remedy="leave it out")
    found = [_previewed(selection, model, out, repeats) for model in asked]
    if as_json:
        emit_json({"models": [preview_json(one) for one in found]})
    else:
        emit("\n\n".join(map(preview_table, found)))


def _previewed(selection: Selection, model: AskedModel, out: Path, repeats: int) -> Preview:
    from gniah.evaluator.inference.preview import Prompt, average, preview
    from gniah.evaluator.inference.prices import read_usage

    mine: dict[str, tuple[int | None, float | None]] = {}

    def take(response: Response) -> None:
        if response.complete and response.model == model.name:
            mine[response.key] = (read_usage(response.usage).completion_tokens, response.seconds)

    for response in whole_responses(out):
        take(response)
    keys = {
        one.qid: [
            request_key(model.name, model.base_address, model.parameters, one.prompt_sha256, repeat)
            for repeat in range(repeats)
        ]
        for one in selection.chosen
    }
    prompts = (Prompt(one.qid, one.token_counts) for one in selection.chosen)
    return preview(
        model.file,
        prompts,
        lambda qid: sum(key in mine for key in keys[qid]),
        repeats,
        observed=average(mine.values()),
    )


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


def request_fields(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the request fields that were given as NAME=JSON. Raises UsageFault for a word that is none."""
    found = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not (name and sign):
            raise UsageFault(f"--parameter {word!r}: expected NAME=JSON, such as temperature=0.5")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found
