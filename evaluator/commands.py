"""The commands of `gniah-eval`: options in, files and tables out."""

from __future__ import annotations

from pathlib import Path

import click

from gniah.evaluator.lists import count_range_of
from gniah.evaluator.pool import held_responses
from gniah.evaluator.readings import READINGS
from gniah.evaluator.results import model_json, write_scores
from gniah.evaluator.running_commands import checked_range
from gniah.evaluator.scoring import READING, CountRange, Scores, score
from gniah.evaluator.tables import counts_table, differences, task_table, troubles, variable_table
from gniah.records.command_line import GIVEN_PATH, emit, emit_json, say
from gniah.records.errors import CheckFailed, UsageFault
from gniah.records.examples import examples_path, read_examples

_COUNT_RANGE = click.option(
    "--count-range",
    nargs=2,
    type=click.IntRange(min=0),
    metavar="MIN MAX",
    help="Smallest and largest right answer of a task answered by a number. [default: what the settings of the lists "
    "beside EXAMPLES allow, else the family's own]",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output instead of tables.")


@click.command("score")
@click.argument("examples", type=GIVEN_PATH)
@click.argument("run", type=GIVEN_PATH)
@click.option("--model", "models", multiple=True, metavar="NAME", help="Score this model only. Repeatable.")
@click.option(
    "--reading",
    type=click.Choice(READINGS),
    default=READING,
    show_default=True,
    help="Which rules read the answers of the tables. The files hold both.",
)
@_COUNT_RANGE
@_JSON
def score_command(
    examples: Path,
    run: Path,
    models: tuple[str, ...],
    reading: str,
    count_range: CountRange | None,
    as_json: bool,
) -> None:
    """Score the answers in RUN against EXAMPLES, and write a file for each model under RUN/eval.

    The files are RUN/eval/reasoning_effort=<effort>/model=<name>.json. Nothing is asked again, and equal input
    gives equal files.

    Every answer is read twice: by the rules of the dataset card, and by ours, which forgive more. Accuracy is told
    with Wilson 95 % intervals and with what uniform guessing would reach. A status with a star is left out of the
    denominator. Ends with exit code 1 when there are errors or responses without their example.

    \b
    Example:
      gniah-eval score BENCH RUN
    """
    path = examples_path(examples)
    with held_responses(run, say) as responses:
        chosen = (response for response in responses if not models or response.model in models)
        scores = score(read_examples(path), chosen, checked_range(count_range) or count_range_of(path), spill=run)
        missing = sorted(set(models) - {model.model for model in scores.models})
        if missing:
            raise UsageFault(
                f"{run}: holds no response of {', '.join(missing)}", remedy="check the names after --model"
            )
        paths = write_scores(run, scores)
    if as_json:
        emit_json({"sound": scores.sound, "models": [model_json(model, scores) for model in scores.models]})
    else:
        emit(_tables(scores, reading))
    for line in troubles(scores):
        say(line)
    for written in paths:
        say(f"written: {written}")
    _fail_unless_sound(run, scores)


@click.command("export")
@click.argument("results", type=GIVEN_PATH)
@click.option("--out", type=GIVEN_PATH, required=True, metavar="FILE.parquet", help="The file to write.")
def export_command(results: Path, out: Path) -> None:
    """Write all scored responses below RESULTS into one Parquet file, a row each.

    RESULTS is a folder with score files: a run, several runs, or the published layout. docs/scoring.md lists the
    columns.

    \b
    Example:
      gniah-eval export RUN --out responses.parquet
    """
    from gniah.evaluator.exporting import export

    exported = export(results, out)
    for line in exported.not_understood:
        say(line)
    say(f"written: {out}: {exported.rows} rows")


def _tables(scores: Scores, reading: str) -> str:
    tables = (task_table(scores, reading), variable_table(scores, reading), counts_table(scores, reading))
    lines = "\n".join(differences(scores))
    return "\n\n".join([text for text in (*tables, lines) if text])


def _fail_unless_sound(run: Path, scores: Scores) -> None:
    if scores.sound:
        return
    errors = sum(len(model.errors) for model in scores.models)
    unknown = sum(len(model.unknown) for model in scores.models)
    raise CheckFailed(
        f"{run}: {errors} responses are errors, {unknown} belong to examples that are not there",
        remedy="repeat gniah-eval run for failed requests; score against the examples that were asked",
    )
