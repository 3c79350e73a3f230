"""The commands of `gniah-eval` that compare runs, and that say how many examples a comparison needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gniah.evaluator.comparison import MCNEMAR, Comparison, Difference, compare
from gniah.evaluator.outcomes import Outcomes, read_outcomes, score_file
from gniah.evaluator.readings import CARD, READINGS
from gniah.evaluator.results import percentage
from gniah.evaluator.statistics import (
    expected_discordance,
    paired_difference,
    paired_examples,
    unpaired_difference,
    unpaired_examples,
)
from gniah.evaluator.statistics.clusters import RESAMPLES
from gniah.records.command_line import GIVEN_PATH, emit, emit_json, printable, say, table
from gniah.records.errors import ImpossibleRequest, UsageFault

T = TypeVar("T")

_JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output instead of tables.")
_READING = click.Choice(READINGS)
_HEADINGS = ("n", "A %", "B %", "B - A", "95% from", "to", "gained", "lost", "p", "p Holm")
_METHODS = {
    MCNEMAR: "p: exact McNemar test; interval: Newcombe (1998), method 10",
    "sign-flip": f"p: sign-flip test over clusters; interval: bootstrap over clusters, {RESAMPLES:,} resamples",
}


@click.command("compare")
@click.argument("a", type=GIVEN_PATH)
@click.argument("b", type=GIVEN_PATH)
@click.option("--reading-a", type=_READING, default=CARD, show_default=True, help="The reading of A's answers.")
@click.option("--reading-b", type=_READING, default=CARD, show_default=True, help="The reading of B's answers.")
@click.option("--intersect", is_flag=True, help="Compare what is counted in both, and leave out the rest.")
@click.option(
    "--pair-variants", is_flag=True, help="Pair an example with the one made from it, such as that with option E."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@_JSON
def compare_command(
    a: Path,
    b: Path,
    reading_a: str,
    reading_b: str,
    intersect: bool,
    pair_variants: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Compare the answers in two score files, A and B, example by example.

    A and B are files that gniah-eval score wrote, or folders that hold one such file each: two models, two efforts,
    or one file under two readings. Only answers in the denominator are compared, so errors and cut prompts are
    not. Examples that are counted on one side only are refused.

    gained: right in B only; lost: right in A only. p Holm is adjusted over all rows but the first.

    \b
    Example:
      gniah-eval compare one/eval two/eval
      gniah-eval compare one/eval one/eval --reading-b ours
    """
    first, second = read_outcomes(score_file(a), reading_a), read_outcomes(score_file(b), reading_b)
    found = compare(first, second, intersect=intersect, pair_variants=pair_variants, seed=seed)
    if as_json:
        emit_json(comparison_json(found))
    else:
        emit(comparison_text(found))
    for side, only in (("A", found.first_only), ("B", found.second_only)):
        if only:
            say(f"left out: {len(only)} examples that are counted in {side} only")


def comparison_text(found: Comparison) -> str:
    """Return a comparison as text for people."""
    overall = found.overall
    labels = [printable(side.label).replace("\n", " ") for side in (found.first, found.second)]
    lines = [f"A: {labels[0]}", f"B: {labels[1]}", ""]
    if overall.table is not None:
        both = overall.table
        counts = [("A right", both.both, both.lost), ("A wrong", both.gained, both.neither)]
        lines += [table(("", "B right", "B wrong"), counts, title="Examples"), ""]
    rows = [("all", "", *_cells(overall), "–")]
    rows += [(row.variable, row.value, *_cells(row.difference), _p(row.p_holm)) for row in found.rows]
    lines.append(table(("variable", "value", *_HEADINGS), rows, title="B compared with A, in percentage points"))
    lines += [f"{variable}: too many values for a table" for variable in found.skipped]
    methods = [row.method for row in (overall, *(row.difference for row in found.rows))]
    lines += [_METHODS[method] for method in dict.fromkeys(methods)]
    return "\n".join(lines)


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison as an object for programs; rates in per cent, to four places."""
    return {
        "a": _side_json(found.first),
        "b": _side_json(found.second),
        "a_only": list(found.first_only),
        "b_only": list(found.second_only),
        "overall": _difference_json(found.overall),
        "rows": [
            {"variable": row.variable, "value": row.value, **_difference_json(row.difference), "p_holm": row.p_holm}
            for row in found.rows
        ],
        "skipped": list(found.skipped),
    }


def _side_json(side: Outcomes) -> dict[str, str]:
    return {"model": side.model, "reasoning_effort": side.reasoning_effort, "reading": side.reading}


def _difference_json(found: Difference) -> dict[str, Any]:
    return {
        "examples": found.examples,
        "clusters": found.clusters,
        "a": percentage(found.first),
        "b": percentage(found.second),
        "difference": percentage(found.second - found.first),
        "interval_95": None if found.interval is None else [percentage(bound) for bound in found.interval],
        "gained": found.gained,
        "lost": found.lost,
        "p": found.p,
        "method": found.method,
    }


def _cells(found: Difference) -> tuple[str, ...]:
    low, high = ("–", "–") if found.interval is None else (f"{100 * bound:+.2f}" for bound in found.interval)
    rates = (f"{100 * float(rate):.2f}" for rate in (found.first, found.second))
    difference = f"{100 * float(found.second - found.first):+.2f}"
    return (str(found.examples), *rates, difference, low, high, str(found.gained), str(found.lost), _p(found.p))


def _p(p: float) -> str:
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


_PERCENT = click.FloatRange(0, 100)
_INNER = click.FloatRange(0, 100, min_open=True, max_open=True)


@click.command("power")
@click.option("--rate", type=_PERCENT, required=True, metavar="PERCENT", help="Accuracy of the first model.")
@click.option("--difference", type=click.FloatRange(-100, 100), metavar="POINTS", help="How much better the second is.")
@click.option("--examples", type=click.IntRange(1, 10**6), metavar="N", help="Examples there are: what do they show?")
@click.option(
    "--discordance",
    type=_PERCENT,
    metavar="PERCENT",
    help="Share of examples that exactly one of the two gets right: (gained + lost) / n of gniah-eval compare on a "
    "pilot run. [default: that of two models whose answers do not depend on each other]",
)
@click.option("--power", type=_INNER, default=80, show_default=True, metavar="PERCENT", help="Chance to see it.")
@click.option("--level", type=_INNER, default=5, show_default=True, metavar="PERCENT", help="Level of the test.")
@_JSON
def power_command(
    rate: float,
    difference: float | None,
    examples: int | None,
    discordance: float | None,
    power: float,
    level: float,
    as_json: bool,
) -> None:
    """Say how many examples show a difference between two models, or which difference N examples show.

    Give --difference or --examples. "paired": both models answer the same examples, and the exact McNemar test
    compares them. "unpaired": each has examples of its own, as many as are shown, and Fisher's exact test does.

    \b
    Example:
      gniah-eval power --rate 50 --difference 5
      gniah-eval power --rate 50 --examples 500
    """
    if (difference is None) == (examples is None):
        raise UsageFault("give either --difference or --examples")
    first, chance, limit = rate / 100, power / 100, level / 100
    given = None if discordance is None else discordance / 100
    if difference is not None:
        change = difference / 100
        differ = _understood(lambda: expected_discordance(first, change, given))
        paired = _understood(lambda: paired_examples(change, differ, chance, limit))
        unpaired = _understood(lambda: unpaired_examples(first, change, chance, limit))
        _tell_examples(difference, 100 * differ, paired, unpaired, as_json)
    elif examples is not None:
        seen = _understood(lambda: paired_difference(examples, first, given, chance, limit))
        alone = _understood(lambda: unpaired_difference(examples, first, chance, limit))
        if seen is None and alone is None:
            raise ImpossibleRequest(
                f"{examples} examples show no difference upwards from {rate:g} %", remedy="use more examples"
            )
        share = None if seen is None else 100 * expected_discordance(first, seen, given)
        _tell_differences(examples, share, seen, alone, as_json)


def _tell_examples(difference: float, discordance: float, paired: int, unpaired: int, as_json: bool) -> None:
    if as_json:
        emit_json(
            {"difference": difference, "discordance": percentage(discordance / 100), "paired": paired}
            | {"unpaired_each": unpaired}
        )
        return
    rows = [
        ("paired", f"{discordance:.1f} % of pairs differ", f"{paired:,}"),
        ("unpaired", "examples of its own for each", f"{unpaired:,}"),
    ]
    title = f"Examples that show a difference of {difference:+g} points"
    emit(table(("design", "assumption", "examples"), rows, title=title))


def _tell_differences(
    examples: int, discordance: float | None, paired: float | None, unpaired: float | None, as_json: bool
) -> None:
    found = {"paired": _points(paired), "unpaired": _points(unpaired)}
    if as_json:
        emit_json({"examples": examples, "discordance": discordance and round(discordance, 4), **found})
        return
    assumption = "no difference is seen" if discordance is None else f"{discordance:.1f} % of pairs differ"
    shown = {design: "–" if points is None else f"{points:.2f}" for design, points in found.items()}
    rows = [
        ("paired", assumption, shown["paired"]),
        ("unpaired", f"{examples:,} examples of its own for each", shown["unpaired"]),
    ]
    title = f"Smallest difference upwards that {examples:,} examples show, in points"
    emit(table(("design", "assumption", "difference"), rows, title=title))


def _points(difference: float | None) -> float | None:
    """Return a difference in percentage points, rounded up, so that it is seen."""
    return None if difference is None else math.ceil(difference * 10_000) / 100


def _understood(answer: Callable[[], T]) -> T:
    try:
        return answer()
    except ValueError as error:
        raise UsageFault(str(error), remedy="look at --rate, --difference and --discordance together") from None
