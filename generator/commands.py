"""`gniah-gen verify`: the one command here that serves every family."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, say, table
from gniah.records.errors import CheckFailed, ImpossibleRequest


@click.command("verify")
@click.argument("examples", type=GIVEN_PATH)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many processes.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
def verify_command(examples: Path, jobs: int, as_json: bool) -> None:
    """Answer every example again from its prompts alone, and compare.

    EXAMPLES is an examples.jsonl or the folder that holds it. The exit status is 1 when an answer differs.

    \b
    Example:
      gniah-gen verify bench
    """
    from gniah.generator.verification import open_journal, verify_all
    from gniah.records.examples import examples_path, read_examples

    path = examples_path(examples)
    asked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    wrong = []
    with open_journal(path) as journal, Progress("examples verified") as progress:
        if journal:
            say(f"{path}: going on; {len(journal)} examples are verified already")
        for verdict in verify_all(read_examples(path), jobs=jobs, journal=journal):
            asked[verdict.task] += 1
            right[verdict.task] += verdict.right
            if not verdict.right:
                wrong.append(verdict)
                found = verdict.found if verdict.found is not None else f"no answer: {verdict.reason}"
                say(f"{verdict.qid}: {verdict.task}: the text says {found}, the example {verdict.answer}")
            progress.advance()
    total = sum(asked.values())
    if not total:
        raise ImpossibleRequest(f"{examples}: holds no example", remedy="build some with gniah-gen examples")
    if as_json:
        rows = [{"qid": v.qid, "task": v.task, "answer": v.answer, "found": v.found, "reason": v.reason} for v in wrong]
        emit_json({"examples": total, "right": sum(right.values()), "wrong": rows})
    else:
        emit(table(("task", "examples", "right"), ((task, asked[task], right[task]) for task in sorted(asked))))
        emit(f"{sum(right.values())} of {total} right")
    if wrong:
        raise CheckFailed(
            f"{len(wrong)} of {total} examples are not answered by their own text",
            remedy="do not use these examples; the lines above name them",
        )
