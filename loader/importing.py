"""`gniah-load import`: the Parquet files into a graph store."""

from __future__ import annotations

from pathlib import Path

import click

from gniah.records.command_line import emit, emit_json, say, table


@click.command("import")
@click.argument("graph", type=click.Path(path_type=Path))
@click.option("--store", required=True, help="Where the store will be: a folder.")
@click.option("--force", is_flag=True, help="Build it again even when it holds this very graph.")
@click.option("--json", "as_json", is_flag=True, help="Write the counts as JSON.")
def import_command(graph: Path, store: str, force: bool, as_json: bool) -> None:
    """Build a graph store from GRAPH, the folder that gniah-load filter wrote.

    \b
    Example:
      gniah-load import graph --store store
    """
    from gniah.cypher import build_store
    from gniah.cypher.store import GRAPH_SCHEMA, store_holds
    from gniah.records.manifests import Manifest

    source = Manifest.read(graph, GRAPH_SCHEMA)
    manifest = None if force else store_holds(store, source)
    if manifest is not None:
        say(f"{store}: holds this graph already; nothing to do")
    else:
        manifest = build_store(graph, store)
        say(f"{store}: built in {manifest.run['seconds']} s")
    counts = manifest.content["counts"]
    if as_json:
        emit_json({"store": store, "graph": source.digest, **counts})
    else:
        emit(table(("what", "count"), ((name, f"{count:,}") for name, count in counts.items())))
