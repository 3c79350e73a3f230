"""The commands `gniah-load corpus code`, `essays`, `books`, `wikipedia`, `list` and `check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, say, table
from gniah.records.errors import CheckFailed

_Command = TypeVar("_Command", bound=Callable[..., Any])
_json = click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")


def _building(command: _Command) -> _Command:
    """Add the options that every kind has."""
    for option in reversed(
        (
            click.option("--from", "source", type=GIVEN_PATH, required=True, help="Where the texts are."),
            click.option("--out", type=GIVEN_PATH, required=True, help="The folder to make."),
            click.option("--source", "source_name", help="What the texts are called, for the manifest."),
            click.option("--licence", help="The terms of the texts, for the manifest."),
            click.option("--force", is_flag=True, help="Replace another corpus that stands in the folder."),
            click.option(
                "--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many processes clean texts."
            ),
            _json,
        )
    ):
        command = option(command)
    return command


def _columns(default: str) -> Callable[[_Command], _Command]:
    def add(command: _Command) -> _Command:
        command = click.option("--id-column", help="The column of names; without one of `id`, rows are numbered.")(
            command
        )
        return click.option(
            "--text-column", default=default, show_default=True, help="The column of texts, where texts are rows."
        )(command)

    return add


@click.group("corpus", epilog="Example: gniah-load corpus code --from /usr/src/linux-source-6.1.tar.xz --out linux")
def corpus_group() -> None:
    """Turn texts into a corpus of distractors, once: a folder that is read in place, whatever its size.

    It appears whole or not at all, and gniah-gen examples takes it as --corpus KIND=FOLDER.
    """


@corpus_group.command("code", epilog="Example: gniah-load corpus code --from linux-6.1.tar.xz --out linux")
@_building
def code(**given: Any) -> None:
    """Source files of a folder or a tar archive.

    Their names end in .c, .h, .S, .rs or .py; an archive is read without unpacking it. Left out and counted are
    generated code, binary files, what is not UTF-8, links, and files over 1 MiB.
    """
    _build("code", **given)


@corpus_group.command("essays", epilog="Example: gniah-load corpus essays --from essays.jsonl --out essays")
@_building
@_columns("text")
def essays(**given: Any) -> None:
    """Essays out of files or rows.

    The .txt and .md files of a folder or a tar archive, or rows of JSON lines or Parquet.
    """
    _build("essays", **given)


@corpus_group.command("books", epilog="Example: gniah-load corpus books --from pg19 --out books")
@_building
@_columns("text")
def books(**given: Any) -> None:
    """Whole books out of files or rows.

    The .txt files of a folder or a tar archive, or rows of JSON lines or Parquet, as PG-19 has them. Project
    Gutenberg's header and licence are left out.
    """
    _build("books", **given)


@corpus_group.command("wikipedia", epilog="Example: gniah-load corpus wikipedia --from passages.jsonl.gz --out wiki")
@_building
@_columns("contents")
def wikipedia(**given: Any) -> None:
    """Passages of Wikipedia out of rows, one block each.

    Rows with id, title and contents, in JSON lines, perhaps gzipped, or Parquet; or the folder of a Lucene index that
    stores them, as pyserini's prebuilt ones do, which needs the extra pyserini.
    """
    _build("wikipedia", **given)


def _build(kind: str, *, source: Path, out: Path, as_json: bool, **more: Any) -> None:
    from gniah.loader.corpora.building import build_corpus

    with Progress("texts read") as progress:
        manifest = build_corpus(kind, source, out, advance=progress.advance, **more)
    say(f"{out}: made in {manifest.run['seconds']} s")
    content = manifest.content
    if as_json:
        emit_json({"out": str(out), **content})
        return
    rows = [(name, f"{count:,}") for name, count in content["counts"].items()]
    for what in ("texts", "blocks"):
        left_out = content[f"{what}_left_out"]
        rows += [(f"{what} left out: {reason}", f"{count:,}") for reason, count in left_out.items()]
    emit(table(("", "count"), rows, title=f"{kind} from {content['source']}, licence {content['licence']}"))


@corpus_group.command("list", epilog="Example: gniah-load corpus list corpora")
@click.argument("folders", nargs=-1, required=True, type=GIVEN_PATH)
@_json
def list_corpora(folders: tuple[Path, ...], as_json: bool) -> None:
    """List corpora.

    They are those of FOLDERS that are one, and the ones right below the others.
    """
    from gniah.loader.corpora.checking import corpora_in
    from gniah.records.corpora import read_corpus_manifest

    found = [(folder, read_corpus_manifest(folder).content) for folder in corpora_in(folders)]
    if as_json:
        emit_json([{"folder": str(folder), **content} for folder, content in found])
        return
    rows = [
        (
            folder,
            content["kind"],
            *(f"{content['counts'][name]:,}" for name in ("documents", "blocks")),
            f"{content['counts']['bytes'] / 1e6:,.1f}",
            content["source"],
            content["licence"],
            content["digest"][:12],
        )
        for folder, content in found
    ]
    emit(table(("corpus", "kind", "documents", "blocks", "MB", "source", "licence", "digest"), rows))


@corpus_group.command("check", epilog="Example: gniah-load corpus check linux")
@click.argument("folders", nargs=-1, required=True, type=GIVEN_PATH)
def check(folders: tuple[Path, ...]) -> None:
    """Read all of each corpus again.

    The command ends with 1, naming what is wrong, when a byte is not as it was written.
    """
    from gniah.loader.corpora.checking import check_corpus, corpora_in

    wrong = 0
    for folder in corpora_in(folders):
        with Progress(f"{folder}: files read") as progress:
            faults = check_corpus(folder, advance=progress.advance)
        for fault in faults:
            say(f"{folder}: {fault}")
        found = f"{len(faults)} fault{'s' * (len(faults) > 1)}" if faults else "whole"
        emit(f"{folder}: {found}")
        wrong += bool(faults)
    if wrong:
        raise CheckFailed(
            f"{wrong} damaged {'corpus' if wrong == 1 else 'corpora'}", remedy="make it again with gniah-load corpus"
        )
