"""The commands `gniah-load neo4j start`, `status`, `stop`, `logs`, `import` and `files`."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gniah.cypher.addresses import PASSWORD_FILE_VARIABLE
from gniah.loader.neo4j.releases import DEFAULT_RELEASE, RELEASES
from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, printable, say, table
from gniah.records.errors import InputError, StoreError

if TYPE_CHECKING:
    from gniah.loader.neo4j.server import Server, Status

_home = click.option(
    "--home",
    type=GIVEN_PATH,
    envvar="GNIAH_NEO4J_HOME",
    help="The server's folder: data, logs, password. The default is gniah/neo4j in your folder for data.",
)
_release = click.option(
    "--release",
    type=click.Choice(list(RELEASES)),
    help=f"Which Neo4j; the default is {DEFAULT_RELEASE}, or the one whose data stand in the folder.",
)
_java = click.option(
    "--java", type=GIVEN_PATH, help="A Java, or its home; the default is JAVA_HOME, the PATH, /usr/lib/jvm."
)
_wait = click.option(
    "--wait", type=click.FloatRange(min=1), default=180, show_default=True, help="Seconds that it may take to answer."
)
_json = click.option("--json", "as_json", is_flag=True, help="Write the server's state as JSON.")
_counts_as_json = click.option("--json", "as_json", is_flag=True, help="Write the counts as JSON.")
_port = click.IntRange(1, 65535)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _amount(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return an amount of memory that Java and Neo4j both understand."""
    if not re.fullmatch(r"[1-9]\d{0,8}[kmg]", value.lower()):
        raise click.BadParameter(f"{value!r} is no amount of memory, such as 512m or 4g", ctx, param)
    return value.lower()


def _memory(name: str, default: str, use: str) -> Callable[[_Command], _Command]:
    return click.option(name, callback=_amount, default=default, show_default=True, help=f"Memory for {use}.")


def _server(home: Path | None, **more: Any) -> Server:
    from gniah.loader.neo4j.homes import default_home
    from gniah.loader.neo4j.server import Server

    return Server(home or default_home(), report=say, **more)


@click.group("neo4j", epilog="Example: gniah-load neo4j start --browser")
def neo4j_group() -> None:
    """Run a Neo4j server with Graph Data Science on this machine, without Docker.

    The server's jars are fetched by Maven the first time and kept in your cache. It listens on 127.0.0.1 only, keeps
    its data in a folder of its own, and runs until it is stopped.
    """


@neo4j_group.command("start", epilog="Example: gniah-load neo4j start --heap 4g --page-cache 1g")
@_home
@_release
@click.option("--bolt-port", type=_port, help="The port of Bolt; the default is the last one, else any free one.")
@click.option("--http-port", type=_port, help="The port of the Browser; likewise.")
@_memory("--heap", "2g", "queries and algorithms")
@_memory("--page-cache", "512m", "pages of the data")
@click.option("--browser", is_flag=True, help="Serve the Neo4j Browser too.")
@_java
@_wait
@_json
def start_command(
    home: Path | None,
    release: str | None,
    bolt_port: int | None,
    http_port: int | None,
    heap: str,
    page_cache: str,
    browser: bool,
    java: Path | None,
    wait: float,
    as_json: bool,
) -> None:
    """Start the server and wait until it answers. One that runs already is left alone."""
    from gniah.loader.neo4j.homes import Memory
    from gniah.loader.neo4j.server import Settings

    settings = Settings(release, bolt_port, http_port, browser, Memory(heap, page_cache), java, wait)
    with Progress("files fetched") as progress:
        status = _server(home, advance=progress.advance).start(settings)
    _show(status, as_json)


@neo4j_group.command("status", epilog="Example: gniah-load neo4j status --json")
@_home
@_json
@click.pass_context
def status_command(ctx: click.Context, home: Path | None, as_json: bool) -> None:
    """Say whether the server runs and where; the exit code is 1 when it does not answer."""
    status = _server(home).status()
    _show(status, as_json)
    if status.state != "running":
        ctx.exit(1)


@neo4j_group.command("env", epilog='Example: eval "$(gniah-load neo4j env)"')
@_home
def env_command(home: Path | None) -> None:
    """Print what tells a shell, and so the other commands, which store is meant and where its password is."""
    status = _server(home).status()
    if status.address is None:
        raise StoreError(f"{status.home}: no server runs here", remedy="gniah-load neo4j start")
    for name, value in (("GNIAH_STORE", status.address), (PASSWORD_FILE_VARIABLE, status.as_json()["password_file"])):
        emit(f"export {name}={shlex.quote(value)}")


@neo4j_group.command("stop", epilog="Example: gniah-load neo4j stop")
@_home
@click.option(
    "--wait", type=click.FloatRange(min=1), default=60, show_default=True, help="Seconds before it is killed."
)
@_json
def stop_command(home: Path | None, wait: float, as_json: bool) -> None:
    """Stop the server. Its data stay."""
    server = _server(home)
    say("stopped" if server.stop(wait) else f"no server of {server.home.folder} was running")
    if as_json:
        emit_json(server.status().as_json())


@neo4j_group.command("logs", epilog="Example: gniah-load neo4j logs --lines 100 --log debug")
@_home
@click.option(
    "--log",
    "name",
    type=click.Choice(["neo4j", "debug", "console"]),
    default="neo4j",
    show_default=True,
    help="Which log; console is what the process itself wrote.",
)
@click.option("--lines", type=click.IntRange(min=1), default=50, show_default=True, help="How many lines of its end.")
def logs_command(home: Path | None, name: str, lines: int) -> None:
    """Show the end of one of the server's logs."""
    path = _server(home).home.log(name)
    if not path.is_file():
        raise InputError(f"{path}: there is no such log", remedy="gniah-load neo4j start, or another --home")
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in deque(stream, maxlen=lines):
            emit(printable(line.rstrip("\n")))


@neo4j_group.command("import", epilog="Example: gniah-load neo4j import graph --heap 4g")
@click.argument("graph", type=GIVEN_PATH)
@_home
@_release
@_memory("--heap", "2g", "the importer, and for the server while the graph is checked")
@_memory("--off-heap", "2g", "the importer beside its heap; it grows with the graph")
@_memory("--page-cache", "512m", "pages of the data while the graph is checked")
@click.option("--force", is_flag=True, help="Replace all that the database holds.")
@_java
@_wait
@_counts_as_json
def import_command(
    graph: Path,
    home: Path | None,
    release: str | None,
    heap: str,
    off_heap: str,
    page_cache: str,
    force: bool,
    java: Path | None,
    wait: float,
    as_json: bool,
) -> None:
    """Import GRAPH, the folder that gniah-load filter wrote, into the stopped server's empty database.

    Neo4j's own importer does it at once, which is for large graphs; gniah-load import does it over Bolt. The server is
    started for the constraints and the counts, and is stopped again.
    """
    from gniah.loader.neo4j.bulk import import_in_bulk
    from gniah.loader.neo4j.homes import Memory
    from gniah.loader.neo4j.server import Settings

    settings = Settings(release, memory=Memory(heap, page_cache), java=java, patience=wait)
    with Progress("rows written") as progress:
        server = _server(home)
        manifest = import_in_bulk(
            graph, server, settings, off_heap=off_heap, force=force, report=say, advance=progress.advance
        )
    counts = manifest.content["counts"]
    if as_json:
        emit_json({"home": str(server.home.folder), "graph": manifest.content["graph"]["digest"], **counts})
    else:
        emit(table(("what", "count"), ((name, f"{count:,}") for name, count in counts.items())))
    say(f"next: gniah-load neo4j start{'' if home is None else f' --home {shlex.quote(str(home))}'}")


@neo4j_group.command("files", epilog="Example: gniah-load neo4j files graph --out import-files")
@click.argument("graph", type=GIVEN_PATH)
@click.option("--out", type=GIVEN_PATH, required=True, help="The folder to make.")
@click.option("--force", is_flag=True, help="Replace files of another graph that stand in the folder.")
@_counts_as_json
def files_command(graph: Path, out: Path, force: bool, as_json: bool) -> None:
    """Write GRAPH as files for the importer of a Neo4j server of your own, and print the command that imports them.

    The command is for an empty or missing database that is stopped.
    """
    from gniah.loader.neo4j.bulk_files import make_import_files

    with Progress("rows written") as progress:
        files = make_import_files(graph, out, force=force, report=say, advance=progress.advance)
    words = ["neo4j-admin", *files.words()]
    if as_json:
        emit_json({"out": str(out), "papers": files.papers, "citations": files.citations, "words": words})
    else:
        emit(f"cd {shlex.quote(str(files.folder))} && {shlex.join(words)}")
    say(f"then start it, and: gniah-load import {shlex.quote(str(graph))} --store bolt://HOST:PORT")
    say("  which makes the constraints, compares the counts, and says that the graph is whole")


def _show(status: Status, as_json: bool) -> None:
    value = status.as_json()
    if as_json:
        emit_json(value)
    else:
        rows = [(name.replace("_", " "), shown) for name, shown in value.items() if shown is not None]
        emit(table(("server", ""), rows))
