"""`gniah-gen index`: makes the index by which passages are found."""

from __future__ import annotations

from pathlib import Path

import click

from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json


@click.command("index", epilog="Example: gniah-gen index corpora/wikipedia")
@click.argument("corpus", type=GIVEN_PATH)
@click.option(
    "--back-end",
    type=click.Choice(("tantivy", "pyserini")),
    help="The library that searches: tantivy, or Lucene by pyserini. [default: tantivy, or pyserini with --index]",
)
@click.option(
    "--index",
    "lucene_index",
    type=GIVEN_PATH,
    help="A Lucene index of the same passages, which is searched where it stands.",
)
@click.option("--force", is_flag=True, help="Make it again when it is there already.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
def index_command(corpus: Path, back_end: str | None, lucene_index: Path | None, force: bool, as_json: bool) -> None:
    """Make the index by which passages are found with BM25.

    CORPUS is what gniah-load corpus wikipedia made; the index is put into it, in a folder of its own for each back end.
    One that is there and fits is read to its last byte and left alone.
    """
    from gniah.generator.retrieval.back_ends import FOLDERS
    from gniah.generator.retrieval.index_files import build_index

    with Progress("passages indexed") as progress:
        manifest = build_index(
            corpus, back_end=back_end, lucene_index=lucene_index, force=force, advance=progress.advance
        )
    content = manifest.content
    place = corpus / FOLDERS[content["back_end"]]
    if as_json:
        emit_json({"index": str(place), "digest": manifest.digest, **content})
    else:
        emit(f"{place}: {content['documents']:,} passages, {content['words']:,} words")
