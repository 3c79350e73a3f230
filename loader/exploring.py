"""`gniah-load stats`, `query` and `cypher`: a look into a store, never a change to it."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import sys
from typing import Any

import click

from gniah.cypher.store import Table
from gniah.records.command_line import emit, say, table
from gniah.records.errors import UsageFault

_STORE = click.option("--store", required=True, envvar="GNIAH_STORE", help="The store: a folder or a server.")
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How rows are written.",
)


@click.command("stats")
@_STORE
@_FORMAT
def stats_command(store: str, form: str) -> None:
    """Count what a store holds: papers, citations, components, degrees.

    \b
    Example:
      gniah-load stats --store store
    """
    from gniah.cypher import open_store
    from gniah.loader.statistics import graph_statistics

    with open_store(store) as graph:
        show(Table(("what", "value"), tuple(graph_statistics(graph).items())), form)


@click.command("query")
@click.argument("name", required=False)
@click.option(
    "--store", envvar="GNIAH_STORE", help="The store: a folder or a server; or a folder of published examples."
)
@click.option("--param", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the query.")
@click.option("--text", is_flag=True, help="Print the query itself, as it is pasted into the Neo4j Browser.")
@_FORMAT
def query_command(name: str | None, store: str | None, parameters: tuple[str, ...], text: bool, form: str) -> None:
    """Run a named query; without NAME, list them.

    With --text, NAME may also be a picture for the Neo4j Browser (browser/NAME), an audit (audit/NAME), or style, the
    Browser's style sheet; without NAME, those are listed.

    \b
    Examples:
      gniah-load query neighbours --store store --param id=42
      gniah-load query browser/example --text
      gniah-load query style --text > style.grass
    """
    from gniah.cypher import answer, named_queries, open_to_explore
    from gniah.cypher.queries import browser_text, browser_texts

    if text:
        if name is None:
            show(Table(("text", "what it is"), tuple(browser_texts().items())), form)
        else:
            emit(browser_text(name).rstrip("\n"))
        return
    if name is None:
        rows = [
            (query.name, ", ".join(parameter.name for parameter in query.parameters), query.summary)
            for query in named_queries().values()
        ]
        show(Table(("query", "parameters", "what it answers"), tuple(rows)), form)
        return
    if store is None:
        raise UsageFault("a query needs a store", remedy="add --store: a folder, or bolt://HOST:PORT")
    with open_to_explore(store) as graph:
        found = answer(graph, name, _given(parameters))
    show(found.table, form)
    if found.unpublished:
        say(f"{store}: no example is published here; gniah-gen publish-graph writes those of a pool")


def _given(parameters: tuple[str, ...]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for text in parameters:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageFault(f"--param takes NAME=VALUE, not {text!r}")
        given[key] = value
    return given


@click.command("cypher")
@click.argument("statement")
@_STORE
@_FORMAT
def cypher_command(statement: str, store: str, form: str) -> None:
    """Run one reading statement in the store's own dialect of Cypher.

    \b
    Example:
      gniah-load cypher "MATCH (p:Paper) RETURN p.title LIMIT 5" --store store
    """
    from gniah.cypher import open_to_explore

    with open_to_explore(store) as graph:
        show(graph.cypher(statement), form)


def show(result: Table, form: str) -> None:
    """Write a table to standard output as aligned text, CSV (RFC 4180) or a JSON list of objects."""
    if form == "json":
        rows = [{name: _plain(value) for name, value in row.items()} for row in result.dicts()]
        emit(json.dumps(rows, ensure_ascii=False, indent=1))
    elif form == "csv":
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(result.columns)
        writer.writerows([_cell(value) for value in row] for row in result.rows)
        sys.stdout.write(text.getvalue())
    else:
        emit(table(result.columns, ([_cell(value) for value in row] for row in result.rows)))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(_cell(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(_plain(value), ensure_ascii=False)
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.date | datetime.timedelta):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    return value if isinstance(value, bool | int | float | str | None) else str(value)
