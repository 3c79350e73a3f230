"""The commands of `gniah-gen` that put a pool beside its citation graph: to look at it, and to prove it sound."""

from __future__ import annotations

from pathlib import Path

import click

from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, say, table

_STORE = click.option("--store", required=True, envvar="GNIAH_STORE", help="The graph store: a folder or a server.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")


@click.command("audit")
@click.argument("pool", type=GIVEN_PATH)
@_STORE
@_JSON
def audit(pool: Path, store: str, as_json: bool) -> None:
    """Prove by Cypher queries that the examples of a pool are what they claim to be.

    POOL is a pool.jsonl or the folder that holds it. The exit status is 1 on any violation.

    \b
    Example:
      gniah-gen audit bench --store store
    """
    from gniah.cypher import open_store
    from gniah.generator.graphniah import audit_pool
    from gniah.records.errors import CheckFailed
    from gniah.records.graphniah import pool_path

    with open_store(store) as graph:
        report = audit_pool(pool_path(pool), graph)
    if as_json:
        emit_json({"examples": report.examples, "violations": [row.to_json() for row in report.violations]})
    else:
        emit(table(("audit", "violations", "what it finds"), report.rows()))
        emit(f"{report.examples} examples audited")
    for row in report.violations[:50]:
        say(", ".join(f"{name}: {value}" for name, value in row.to_json().items()))
    if not report.sound:
        raise CheckFailed(
            f"{len(report.violations)} violations in {len({row.qid for row in report.violations})} examples",
            remedy="do not use these examples; the lines above name them",
        )


@click.command("publish-graph")
@click.argument("pool", type=GIVEN_PATH)
@_STORE
@click.option(
    "--to", "target", help="Where the examples go: a server with the same graph, or a folder. By default the store."
)
@click.option("--remove", is_flag=True, help="Remove the examples of POOL again.")
@_JSON
def publish_graph(pool: Path, store: str, target: str | None, remove: bool, as_json: bool) -> None:
    """Write the examples of a pool as a graph, to walk through with gniah-load query or in the Neo4j Browser.

    POOL is a pool.jsonl or the folder that holds it. In a server they stand beside the papers and citations, which stay
    as they are; a store in a folder is never written to, so a folder of their own must be given. What is there already
    is left alone, and a stopped call is finished by the same call again.

    \b
    Examples:
      gniah-gen publish-graph bench --store bolt://127.0.0.1:7687
      gniah-gen publish-graph bench --store store --to published
    """
    from gniah.generator.graphniah import publish_pool
    from gniah.records.graphniah import pool_path

    with Progress("examples removed" if remove else "examples published") as progress:
        done = publish_pool(pool_path(pool), store, target, remove=remove, advance=progress.advance)
    changed, rest = ("removed", "not there") if remove else ("written", "there already")
    if as_json:
        emit_json({"target": done.target, "examples": done.examples, changed: done.changed})
        return
    rows = [("examples in the pool", done.examples), (changed, done.changed), (rest, done.examples - done.changed)]
    emit(table(("what", "count"), rows))
