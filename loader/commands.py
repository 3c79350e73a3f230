"""The command `gniah-load filter`."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, say, table
from gniah.records.manifests import Manifest

DEFAULT_CUTOFF = "2026-04-01"

_MEANINGS = {
    "papers": "papers kept",
    "papers_usable": "  of them with an author and a title of letters or digits",
    "paper_rows": "rows in the papers shards",
    "papers_without_date": "  without a date",
    "papers_with_bad_date": "  with a date that is no YYYY-MM-DD of the calendar",
    "papers_before_cutoff": "  before the cutoff",
    "papers_without_title": "  with an empty title",
    "papers_with_mathml": "  with MathML in the title",
    "papers_repeated": "  repeats of a corpusid",
    "papers_year_differs": "  eligible, and stating another year than the date",
    "citations": "citations kept",
    "citation_rows": "rows in the citations shards",
    "citations_null_citing": "  without a citing id",
    "citations_null_cited": "  without a cited id",
    "citations_self": "  of a paper by itself",
    "citations_dangling": "  with an end that is not kept",
    "citations_repeated": "  repeats of a citation",
}


def _day(ctx: click.Context, param: click.Parameter, value: str) -> datetime.date:
    """Return the day that was given; a callback, so that a date of a TOML file will do as well."""
    from gniah.loader.eligibility import parse_date

    found = parse_date(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no day of the form YYYY-MM-DD", ctx, param)
    return found


@click.command(
    "filter",
    epilog="Example: gniah-load filter --papers s2ag/papers --citations s2ag/citations --out graph",
)
@click.option(
    "--papers",
    type=GIVEN_PATH,
    multiple=True,
    required=True,
    help="A shard of papers, or a folder of them (*.gz); may be repeated.",
)
@click.option(
    "--citations",
    type=GIVEN_PATH,
    multiple=True,
    required=True,
    help="A shard of citations, or a folder of them (*.gz); may be repeated.",
)
@click.option(
    "--cutoff",
    callback=_day,
    default=DEFAULT_CUTOFF,
    show_default=True,
    metavar="YYYY-MM-DD",
    help="Keep papers published on this day or later.",
)
@click.option(
    "--out",
    type=GIVEN_PATH,
    required=True,
    help="The folder to make: papers.parquet, citations.parquet, manifest.json.",
)
@click.option("--force", is_flag=True, help="Replace another graph that stands in the folder.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many processes read shards."
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def filter_command(
    papers: tuple[Path, ...],
    citations: tuple[Path, ...],
    cutoff: datetime.date,
    out: Path,
    force: bool,
    jobs: int,
    as_json: bool,
) -> None:
    """Make Parquet files of the eligible papers and the citations among them.

    A paper is eligible when it has a full date on or after the cutoff, and a title without MathML. The folder
    appears whole or not at all; one that already holds this very graph is left as it is. When the command was
    stopped, the same command goes on from there.
    """
    from gniah.loader.filtering import filter_graph

    with Progress("rows read") as progress:
        manifest = filter_graph(
            papers, citations, out, cutoff=cutoff, force=force, jobs=jobs, report=say, advance=progress.advance
        )
    _print_counts(manifest, out, as_json)


def _print_counts(manifest: Manifest, out: Path, as_json: bool) -> None:
    content = manifest.content
    if as_json:
        emit_json(
            {
                "out": str(out),
                "digest": manifest.digest,
                "cutoff": content["cutoff"],
                "counts": content["counts"],
            }
        )
        return
    rows = [(_MEANINGS.get(name, name), f"{count:,}") for name, count in content["counts"].items()]
    emit(table(("", "count"), rows, title=f"graph of papers since {content['cutoff']}"))
    if not content["counts"]["citations"]:
        say("warning: no citation connects two of these papers")
