"""A graph into the database of a stopped server, at once: by files and Neo4j's own importer.

The result is the graph that `gniah-load import --store bolt://…` makes row by row, and the last step is the same: the
constraints, the counts, and only then the word that the graph is whole. Until then a marker stands in the home, and a
server that is not started for this import refuses to start.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gniah.cypher.addresses import Credentials, ServerAddress
from gniah.cypher.bolt import COMPLETE, graph_node
from gniah.cypher.bolt_import import CONSTRAINTS, IMPORTING
from gniah.cypher.connection import Connection, connect
from gniah.cypher.store import GRAPH_SCHEMA, STORE_SCHEMA
from gniah.loader.neo4j.bulk_files import ImportFiles, graph_counted, write_import_files
from gniah.loader.neo4j.homes import USER, Home
from gniah.loader.neo4j.server import Held, Server, Settings, Status
from gniah.records.errors import BusyError, InputError, StoreError, UsageFault
from gniah.records.files import machine_trouble, remove_leftovers, write_json
from gniah.records.manifests import Manifest, RunClock

MARKER_SCHEMA = "gniah/bulk-import/1"
OFF_HEAP = "2g"

_WORK = "bulk"
_AGAIN = "run gniah-load filter again"
_BAD_ROWS = re.compile(
    r"missing node|Invalid relationship|defined more than once|multiple lines|Multi-line|error in input", re.IGNORECASE
)
_IMPORTED = re.compile(r"^IMPORT DONE.*^Imported:\s*(\d+) nodes\s+(\d+) relationships\s+(\d+) properties", re.M | re.S)
# Questions that are answered from the rows: the counts that Neo4j keeps are not proof of them.
_COUNTS = {
    "papers": "MATCH (p:Paper) WHERE p.corpusid >= 0 RETURN count(p.title)",
    "citations": "MATCH (:Paper)-[c:CITES]->(:Paper) RETURN count(c.isinfluential)",
}
_FINISH = (
    "MATCH (g:GniahGraph {name: 'graph', digest: $digest, state: $before}) SET g.state = $after RETURN count(g) AS done"
)


def import_in_bulk(
    graph: Path,
    server: Server,
    settings: Settings | None = None,
    *,
    off_heap: str = OFF_HEAP,
    force: bool = False,
    report: Callable[[str], None] = lambda _: None,
    advance: Callable[[int], None] = lambda _: None,
) -> Manifest:
    """Import the folder that `gniah-load filter` wrote into a stopped server; return the store's manifest.

    The server stays stopped. A database that holds this very graph is left as it is, another one is replaced, all that
    it holds, with `force` only; what an import that was killed left there is always replaced, and one that fails leaves
    an empty database. `off_heap` is what the importer may take beside the heap of `settings`. `report` is told what
    happens, `advance` how many rows were written for the importer.

    Raises InputError for a graph that is damaged, UsageFault for a database that holds something else, BusyError
    while the server runs, EnvironmentFault for a full disk or too little memory, StoreError.
    """
    clock = RunClock()
    source = Manifest.read(graph, GRAPH_SCHEMA)
    counts = graph_counted(source, graph)
    with server.held(settings or Settings()) as held, _work_folder(server.home) as work:
        if server.home.has_graph and not force and not server.home.import_marker.is_file():
            report("the server starts for a moment, to see what the database holds")
            with held.running() as status, _connected(server.home, status) as connection:
                if holds_graph(connection, source, counts):
                    report(f"{server.home.folder}: holds this graph already; nothing to do")
                    return _store_manifest(connection.version, source, counts)
        report("writing files for Neo4j's importer")
        files = write_import_files(graph, work, advance=advance)
        with _unfinished(server.home, source):
            _run_importer(held, files, off_heap, graph, report)
            report("the server starts for a moment, for constraints and counts")
            with held.running() as status, _connected(server.home, status) as connection:
                _finish(connection, source, counts, graph)
                version = connection.version
    run = clock.run("duckdb", "neo4j", graph=str(graph))
    report(f"{server.home.folder}: imported in {run['seconds']} s")
    return Manifest(STORE_SCHEMA, _store_manifest(version, source, counts).content, run)


@contextlib.contextmanager
def _work_folder(home: Home) -> Iterator[Path]:
    """Give a place for the files, without what a killed import left there, and leave nothing."""
    place = home.folder / _WORK
    with machine_trouble(place):
        remove_leftovers(place)
        shutil.rmtree(place, ignore_errors=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _unfinished(home: Home, source: Manifest) -> Iterator[None]:
    """Mark the database as half imported for the length of a block; one that fails leaves it empty."""
    write_json(home.import_marker, {"schema": MARKER_SCHEMA, "graph": source.digest})
    try:
        yield
    except BusyError:  # somebody else is at work on it
        raise
    except BaseException:
        home.remove_graph()
        home.import_marker.unlink()
        raise
    home.import_marker.unlink()


def _run_importer(held: Held, files: ImportFiles, off_heap: str, graph: Path, report: Callable[[str], None]) -> None:
    overwrite = held.server.home.has_graph
    words = [*files.words(overwrite=overwrite), f"--max-off-heap-memory={off_heap}", "--verbose"]
    report(f"importing {files.papers:,} papers and {files.citations:,} citations")
    try:
        said = held.tool.run(*words, heap=held.settings.memory.heap, folder=files.folder)
    except StoreError as error:
        if _BAD_ROWS.search(error.message):
            raise InputError(f"{graph}: {error.message}", remedy=_AGAIN) from None
        raise
    found = imported(said) or {}
    for name, count in files.expected.items():
        if found.get(name) != count:
            raise StoreError(f"neo4j-admin imported {found.get(name, 'no')} {name}, and it was given {count}")


def imported(said: str) -> dict[str, int] | None:
    """Return what the importer says at its end that it imported, None when it does not say so."""
    match = _IMPORTED.search(said)
    if match is None:
        return None
    return dict(zip(("nodes", "relationships", "properties"), map(int, match.groups()), strict=True))


@contextlib.contextmanager
def _connected(home: Home, status: Status) -> Iterator[Connection]:
    assert status.address is not None  # it runs
    with connect(ServerAddress(status.address, None), Credentials(USER, home.password())) as connection:
        yield connection


def holds_graph(connection: Connection, source: Manifest, counts: Mapping[str, int]) -> bool:
    """Say whether a database holds a graph, whole, or nothing at all. Raises UsageFault when it holds anything else."""
    node = graph_node(connection) or {}
    if node.get("digest") == source.digest and node.get("state") == COMPLETE and _counts(connection) == counts:
        return True
    if connection.run("MATCH (n) RETURN 1 LIMIT 1").rows:
        what = f"the graph {str(node['digest'])[:12]}" if "digest" in node else "what is no graph of gniah"
        raise UsageFault(
            f"{connection.address}: the database holds {what}{_state(node, source)}",
            remedy="add --force to replace all that it holds, or give another --home",
        )
    return False


def _state(node: Mapping[str, object], source: Manifest) -> str:
    return ", which is this one, and not the whole of it" if node.get("digest") == source.digest else ""


def _counts(connection: Connection) -> dict[str, int]:
    return {name: connection.run(text).rows[0][0] for name, text in _COUNTS.items()}


def _finish(connection: Connection, source: Manifest, counts: Mapping[str, int], graph: Path) -> None:
    """Make the constraints, compare the counts, and write down that the graph is whole."""
    for statement in CONSTRAINTS:
        connection.command(statement)
    connection.command("CALL db.awaitIndexes(3600)")
    found = _counts(connection)
    if found != counts:
        raise StoreError(
            f"the database holds {found['papers']} papers and {found['citations']} citations after the import, and the "
            f"manifest of {graph} says {counts['papers']} and {counts['citations']}",
            remedy="give the same command again",
        )
    states = {"digest": source.digest, "before": IMPORTING, "after": COMPLETE}
    if connection.change(_FINISH, states).rows != ((1,),):
        raise StoreError("the database does not say which graph it holds", remedy="give the same command again")


def _store_manifest(version: str, source: Manifest, counts: Mapping[str, int]) -> Manifest:
    """Return the manifest of the store, as an import over Bolt gives it too."""
    content = {
        "engine": f"neo4j {version}",
        "counts": dict(counts),
        "graph": {"schema": source.schema, "digest": source.digest, "content": source.content},
    }
    return Manifest(STORE_SCHEMA, content)
