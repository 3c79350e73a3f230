"""`gniah-load import`: the Parquet files into a graph store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, say, table
from gniah.records.manifests import Manifest


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


def import_graph(
    graph: Path,
    store: str | Path,
    *,
    force: bool = False,
    report: Callable[[str], None] = _ignore,
    advance: Callable[[int], None] = _ignore,
) -> Manifest:
    """Build a store from the folder that `filter_graph` wrote, unless it holds this very graph; return its manifest.

    `force` builds it in any case. `report` is told what happens, and `advance` how many rows went into a server. Raises
    InputError when the folder is no graph, UsageFault when the store's place holds something else.
    """
    from gniah.cypher.store import GRAPH_SCHEMA, build_store, store_holds

    manifest = None if force else store_holds(store, Manifest.read(graph, GRAPH_SCHEMA))
    if manifest is not None:
        report(f"{store}: holds this graph already; nothing to do")
        return manifest
    manifest = build_store(graph, store, force=force, advance=advance)
    report(f"{store}: built in {manifest.run['seconds']} s")
    return manifest


@click.command("import")
@click.argument("graph", type=GIVEN_PATH)
@click.option("--store", required=True, help="Where the store will be: a folder, or a server (bolt://, neo4j://).")
@click.option("--force", is_flag=True, help="Build it again even when it holds this very graph.")
@click.option("--json", "as_json", is_flag=True, help="Write the counts as JSON.")
def import_command(graph: Path, store: str, force: bool, as_json: bool) -> None:
    """Build a graph store from GRAPH, the folder that gniah-load filter wrote.

    \b
    Examples:
      gniah-load import graph --store store
      gniah-load import graph --store bolt://127.0.0.1:7687

    A server's password is taken from GNIAH_NEO4J_PASSWORD, or from the file that GNIAH_NEO4J_PASSWORD_FILE names.
    """
    with Progress("rows imported") as progress:
        manifest = import_graph(graph, store, force=force, report=say, advance=progress.advance)
    counts = manifest.content["counts"]
    if as_json:
        emit_json({"store": store, "graph": manifest.content["graph"]["digest"], **counts})
    else:
        emit(table(("what", "count"), ((name, f"{count:,}") for name, count in counts.items())))
