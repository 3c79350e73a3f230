"""The commands `gniah-load neo4j start`, `status`, `stop` and `logs`."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gniah.loader.neo4j.releases import DEFAULT_RELEASE, RELEASES
from gniah.records.command_line import GIVEN_PATH, Progress, emit, emit_json, printable, say, table
from gniah.records.errors import InputError

if TYPE_CHECKING:
    from gniah.loader.neo4j.server import Server, Status

_home = click.option(
    "--home",
    type=GIVEN_PATH,
    envvar="GNIAH_NEO4J_HOME",
    help="The server's folder: data, logs, password. The default is gniah/neo4j in your folder for data.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Write the server's state as JSON.")
_port = click.IntRange(1, 65535)


def _amount(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return an amount of memory that Java and Neo4j both understand."""
    if not re.fullmatch(r"[1-9]\d{0,8}[kmg]", value.lower()):
        raise click.BadParameter(f"{value!r} is no amount of memory, such as 512m or 4g", ctx, param)
    return value.lower()


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
@click.option(
    "--release",
    type=click.Choice(list(RELEASES)),
    help=f"Which Neo4j; the default is {DEFAULT_RELEASE}, or the one whose data stand in the folder.",
)
@click.option("--bolt-port", type=_port, help="The port of Bolt; the default is the last one, else any free one.")
@click.option("--http-port", type=_port, help="The port of the Browser; likewise.")
@click.option("--heap", callback=_amount, default="2g", show_default=True, help="Memory for queries and algorithms.")
@click.option("--page-cache", callback=_amount, default="512m", show_default=True, help="Memory for pages of the data.")
@click.option("--browser", is_flag=True, help="Serve the Neo4j Browser too.")
@click.option("--java", type=GIVEN_PATH, help="A Java, or its home; the default is JAVA_HOME, the PATH, /usr/lib/jvm.")
@click.option(
    "--wait", type=click.FloatRange(min=1), default=180, show_default=True, help="Seconds that it may take to answer."
)
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


def _show(status: Status, as_json: bool) -> None:
    value = status.as_json()
    if as_json:
        emit_json(value)
    else:
        rows = [(name.replace("_", " "), shown) for name, shown in value.items() if shown is not None]
        emit(table(("server", ""), rows))
