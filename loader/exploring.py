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
from gniah.records.command_line import emit, table
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
@_STORE
@click.option("--param", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the query.")
@_FORMAT
def query_command(name: str | None, store: str, parameters: tuple[str, ...], form: str) -> None:
    """Run a named query; without NAME, list them.

    \b
    Example:
      gniah-load query neighbours --store store --param id=42
    """
    from gniah.cypher import named_queries, open_store

    if name is None:
        rows = [
            (query.name, ", ".join(parameter.name for parameter in query.parameters), query.summary)
            for query in named_queries().values()
        ]
        show(Table(("query", "parameters", "what it answers"), tuple(rows)), form)
        return
    given: dict[str, Any] = {}
    for text in parameters:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageFault(f"--param takes NAME=VALUE, not {text!r}")
        given[key] = value
    with open_store(store) as graph:
        show(graph.query(name, given), form)


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
    from gniah.cypher import open_store

    with open_store(store) as graph:
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
