"""`gniah-gen index`: makes the index by which passages are found."""

from __future__ import annotations

from pathlib import Path

import click

from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json


@click.command("index", epilog="Example: gniah-gen index corpora/wikipedia")
@click.argument("corpus", type=GIVEN_PATH)
@click.option("--force", is_flag=True, help="Make it again when it is there already.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
def index_command(corpus: Path, force: bool, as_json: bool) -> None:
    """Make the index by which passages are found with BM25.

    CORPUS is what gniah-load corpus wikipedia made; the index is put into it, in a folder of its own. One that is there
    and fits is read to its last byte and left alone.
    """
    from gniah.generator.retrieval.index_files import build_index
    from gniah.records.corpora import INDEX_FOLDER

    with Progress("passages indexed") as progress:
        manifest = build_index(corpus, force=force, advance=progress.advance)
    if as_json:
        emit_json({"index": str(corpus / INDEX_FOLDER), "digest": manifest.digest, **manifest.content})
    else:
        content = manifest.content
        emit(f"{corpus / INDEX_FOLDER}: {content['documents']:,} passages, {content['words']:,} words")
