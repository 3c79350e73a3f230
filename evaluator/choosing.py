"""What is asked of which models: the options that commands share, and what their words stand for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from gniah.evaluator.models import OFFLINE
from gniah.evaluator.pool import whole_responses
from gniah.evaluator.selection import Chosen, Selection
from gniah.records.command_line import GIVEN_PATH, emit, emit_json, say
from gniah.records.errors import UsageFault
from gniah.records.parameters import Range, Typed
from gniah.records.responses import Response

if TYPE_CHECKING:
    from gniah.evaluator.inference.asked_model import AskedModel
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
        litellm = from_words("--model", f"{provider}{word}", fields.as_litellm)
        file = ModelFile(name=word, litellm=litellm, base_address=address)
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


def check_keys(asked: Sequence[AskedModel]) -> None:
    """Raise UsageFault when the variable that holds a model's key is not set."""
    for model in asked:
        _ = model.key


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
        one.qid: [model.request_key(one.prompt_sha256, repeat) for repeat in range(repeats)] for one in selection.chosen
    }
    prompts = (Prompt(one.qid, one.token_counts) for one in selection.chosen)
    found = preview(
        model.file,
        prompts,
        lambda qid: sum(key in mine for key in keys[qid]),
        repeats,
        observed=average(mine.values()),
    )
    return dataclasses.replace(found, model=model.label)


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
