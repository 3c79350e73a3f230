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
from gniah.records.files import machine_trouble, read_json, remove_leftovers, write_json
from gniah.records.manifests import Manifest, RunClock

MARKER_SCHEMA = "gniah/bulk-import/1"
OFF_HEAP = "2g"

_WORK = "bulk"
_AGAIN = "run gniah-load filter again"
_ONCE_MORE = "give the same command once more"
_BAD_ROWS = re.compile(
    r"missing node|Invalid relationship|defined more than once|multiple lines|Multi-line|error in input", re.IGNORECASE
)
_IMPORTED = re.compile(r"^IMPORT DONE.*^Imported:\s*(\d+) nodes\s+(\d+) relationships\s+(\d+) properties", re.M | re.S)
# Questions that are answered from the rows: the counts that Neo4j keeps are not proof of them.
COUNTS = {
    "papers": "MATCH (p:Paper) WHERE p.corpusid >= 0 RETURN count(p.title)",
    "citations": "MATCH (:Paper)-[c:CITES]->() RETURN count(c.isinfluential)",
}
# A server that was killed after this statement finds the state as it is to be.
_FINISH = (
    "MATCH (g:GniahGraph {name: 'graph', digest: $digest}) WHERE g.state IN [$before, $after] "
    "SET g.state = $after RETURN count(g)"
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
    it holds, with `force` only. An import that fails leaves an empty database, what a killed one left is replaced, and
    one that had come to its last step goes on there. `off_heap` is what the importer may take beside the heap of
    `settings`. `report` is told what happens, `advance` how many rows were written for the importer.

    Raises InputError for a graph that is damaged, UsageFault for a database that holds something else, BusyError
    while the server runs, EnvironmentFault for a full disk or too little memory, StoreError.
    """
    clock = RunClock()
    source = Manifest.read(graph, GRAPH_SCHEMA)
    counts = graph_counted(source, graph)
    home = server.home
    with server.held(settings or Settings()) as held:
        if force or not _is_imported(home, source):
            if home.has_graph and not force and not home.import_marker.is_file():
                report("the server starts for a moment, to see what the database holds")
                with held.running() as status, _connected(home, status) as connection:
                    if holds_graph(connection, source, counts, str(home.folder)):
                        report(f"{home.folder}: holds this graph already; nothing to do")
                        return _store_manifest(connection.version, source, counts)
            with _work_folder(home) as work:
                report("writing files for Neo4j's importer")
                files = write_import_files(graph, work, advance=advance)
                report(f"importing {files.papers:,} papers and {files.citations:,} citations")
                with _begun(home, source):
                    _run_importer(held, files, off_heap, graph)
            _mark(home, source, imported=True)
        report("the server starts for a moment, for constraints and counts")
        version = _finish(held, source, counts, graph)
    run = clock.run("duckdb", "neo4j", graph=str(graph))
    report(f"{home.folder}: imported in {run['seconds']} s")
    return Manifest(STORE_SCHEMA, _store_manifest(version, source, counts).content, run)


def _mark(home: Home, source: Manifest, *, imported: bool) -> None:
    write_json(home.import_marker, {"schema": MARKER_SCHEMA, "graph": source.digest, "imported": imported})


def _is_imported(home: Home, source: Manifest) -> bool:
    """Say whether Neo4j's importer has done its work for this graph, and only the last step is left."""
    if not home.import_marker.is_file():
        return False
    try:
        found = read_json(home.import_marker)
    except InputError:
        return False
    return found.get("imported") is True and found.get("graph") == source.digest


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
def _begun(home: Home, source: Manifest) -> Iterator[None]:
    """Mark the database as half imported for the length of a block and after it; a block that fails leaves it empty."""
    before = home.import_marker.is_file()
    _mark(home, source, imported=False)
    try:
        yield
    except BusyError:  # somebody else is at work on it, and the importer has touched nothing
        if not before:
            home.import_marker.unlink()
        raise
    except BaseException:
        _discard(home)
        raise


def _discard(home: Home) -> None:
    home.remove_graph()
    home.import_marker.unlink()


def _run_importer(held: Held, files: ImportFiles, off_heap: str, graph: Path) -> None:
    overwrite = held.server.home.has_graph
    words = [*files.words(overwrite=overwrite), f"--max-off-heap-memory={off_heap}", "--verbose"]
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


def holds_graph(connection: Connection, source: Manifest, counts: Mapping[str, int], where: str) -> bool:
    """Say whether a database holds a graph, whole, or nothing at all. Raises UsageFault when it holds anything else."""
    node = graph_node(connection) or {}
    if node.get("digest") == source.digest and node.get("state") == COMPLETE and _counts(connection) == counts:
        return True
    if connection.run("MATCH (n) RETURN 1 LIMIT 1").rows:
        what = f"the graph {str(node['digest'])[:12]}" if "digest" in node else "what is no graph of gniah"
        if node.get("digest") == source.digest:
            what += ", which is this one, and not the whole of it"
        raise UsageFault(
            f"{where}: the database holds {what}",
            remedy="add --force to replace all that it holds, or give another --home",
        )
    return False


def _counts(connection: Connection) -> dict[str, int]:
    return {name: connection.run(text).rows[0][0] for name, text in COUNTS.items()}


class _NotTheGraph(StoreError):
    """The database does not hold what was imported."""


def _finish(held: Held, source: Manifest, counts: Mapping[str, int], graph: Path) -> str:
    """Make the constraints, compare the counts, and write down that the graph is whole; return Neo4j's version."""
    home = held.server.home
    try:
        with held.running() as status, _connected(home, status) as connection:
            for statement in CONSTRAINTS:
                connection.command(statement)
            connection.command("CALL db.awaitIndexes(3600)")
            _compare(connection, counts, graph)
            states = {"digest": source.digest, "before": IMPORTING, "after": COMPLETE}
            done = connection.change(_FINISH, states).rows
            if done != ((1,),):
                raise _NotTheGraph("the database does not say which graph it holds", remedy=_ONCE_MORE)
            version = connection.version
    except _NotTheGraph:
        _discard(home)
        raise
    home.import_marker.unlink()
    return version


def _compare(connection: Connection, counts: Mapping[str, int], graph: Path) -> None:
    found = _counts(connection)
    if found != counts:
        raise _NotTheGraph(
            f"the database holds {found['papers']} papers and {found['citations']} citations after the import, and the "
            f"manifest of {graph} says {counts['papers']} and {counts['citations']}",
            remedy=_ONCE_MORE,
        )


def _store_manifest(version: str, source: Manifest, counts: Mapping[str, int]) -> Manifest:
    """Return the manifest of the store, as an import over Bolt gives it too."""
    content = {
        "engine": f"neo4j {version}",
        "counts": dict(counts),
        "graph": {"schema": source.schema, "digest": source.digest, "content": source.content},
    }
    return Manifest(STORE_SCHEMA, content)
