"""`gniah-eval pool` and `gniah-eval lists`: what a run folder holds, and what a benchmark does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from gniah.records.command_line import GIVEN_PATH, emit, emit_json, say, table
from gniah.records.errors import CheckFailed

_SHOWN = 20
_JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output instead of tables.")


@click.group("pool")
def pool_group() -> None:
    """Look after the responses in a run folder.

    \b
    Example:
      gniah-eval pool check RUN
    """


@pool_group.command("check")
@click.argument("run", type=GIVEN_PATH)
@_JSON
def check_command(run: Path, as_json: bool) -> None:
    """Read every line of RUN/inference_pool*.jsonl, and say what there is of each model and what it cost.

    Nothing is changed, and a run may be at work. Ends with exit code 1 when a line is damaged.

    \b
    Example:
      gniah-eval pool check RUN
    """
    from gniah.evaluator.pool_keeping import check_pool

    report = check_pool(run)
    if as_json:
        emit_json(report.to_json())
    else:
        headings = ("model", "effort", "answers", "prompt cut", "failed", "further answers", "USD", "perhaps more")
        rows = [
            (
                one.model,
                one.effort,
                one.complete,
                one.cut,
                sum(one.failed.values()),
                one.duplicates,
                f"{one.cost:.4f}" + (f" and {one.unpriced} unknown" if one.unpriced else ""),
                f"{one.perhaps:.4f}",
            )
            for one in report.models
        ]
        emit(table(headings, rows))
    for one in report.models:
        if one.failed:
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(one.failed.items()))
            say(f"{one.model} ({one.effort}): failed: {kinds}")
    if report.cut_bytes:
        say(f"{run}: {report.cut_bytes} bytes at the end of a file are no whole line: being written, or cut by a crash")
    for line in report.wrong[:_SHOWN]:
        say(line)
    if report.wrong:
        raise CheckFailed(
            f"{run}: {len(report.wrong)} of {report.lines} lines are damaged",
            remedy="restore them from a copy, or remove them: their requests are made again",
        )


@pool_group.command("compact")
@click.argument("run", type=GIVEN_PATH)
def compact_command(run: Path) -> None:
    """Put all files of a pool together into one, with one line for each request.

    Kept are the first complete answer, or the last failure where there is none. What the others cost stays told.

    \b
    Example:
      gniah-eval pool compact RUN
    """
    from gniah.evaluator.pool_keeping import compact

    before, after = compact(run, say)
    emit(f"{run}: {after:,} of {before:,} lines are left")


@pool_group.command("export")
@click.argument("run", type=GIVEN_PATH)
@click.argument("bench", type=GIVEN_PATH)
def export_command(run: Path, bench: Path) -> None:
    """Write the responses in RUN beside each list of BENCH, in the layout of the published archive.

    The files are vary=<list>/inference/reasoning_effort=<effort>/model=<model>.json; docs/data-model.md has their
    fields.

    \b
    Example:
      gniah-eval pool export RUN BENCH
    """
    from gniah.evaluator.pool_keeping import export_lists

    written = export_lists(run, bench, say)
    for path in written:
        say(f"written: {path}")
    emit(f"{len(written)} files written")


@click.command("lists")
@click.argument("examples", type=GIVEN_PATH)
@_JSON
def lists_command(examples: Path, as_json: bool) -> None:
    """Name the lists that the examples of EXAMPLES belong to, for --experiment, --list-length and --slots of run.

    \b
    Example:
      gniah-eval lists BENCH
    """
    from gniah.records.examples import examples_path, read_examples

    slots: Counter[tuple[str, int]] = Counter()
    last: dict[tuple[str, int], int] = {}
    total = 0
    for example in read_examples(examples_path(examples)):
        total += 1
        for use in example.experiments:
            name, length, slot = use.get("name"), use.get("context_length"), use.get("slot")
            if isinstance(name, str) and isinstance(length, int) and isinstance(slot, int):
                slots[name, length] += 1
                last[name, length] = max(last.get((name, length), 0), slot)
    rows = [(name, length, count, f"0-{last[name, length]}") for (name, length), count in sorted(slots.items())]
    if as_json:
        emit_json(
            [
                {"experiment": name, "context_length": length, "slots": count, "last_slot": last[name, length]}
                for (name, length), count in sorted(slots.items())
            ]
        )
    else:
        emit(table(("experiment", "context length", "entries", "slots"), rows))
    say(f"{total:,} examples")
