"""A graph's Parquet files into a running Neo4j server: batches over Bolt, each one transaction that says how far it is.

The constraint comes first, rows go in sorted order, one transaction after the other, so nothing can deadlock; a
batch and the note of it are one transaction, so a stopped import goes on where it was; and since batches MERGE, one
that is sent twice, its answer having been lost, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gniah.cypher.addresses import ServerAddress, credentials
from gniah.cypher.bolt import COMPLETE, SERVER_GRAPH_SCHEMA, graph_counts, graph_node
from gniah.cypher.connection import Connection, connect
from gniah.cypher.store import GRAPH_SCHEMA, STORE_SCHEMA
from gniah.records.canonical import canonical_json
from gniah.records.errors import BusyError, InputError, StoreError, UsageFault
from gniah.records.files import machine_trouble
from gniah.records.manifests import Manifest, RunClock

if TYPE_CHECKING:
    import neo4j

IMPORTING = "importing"
REMOVING = "removing"
_FORCE = "add --force to replace it, or give another server or database"

CONSTRAINTS = (
    "CREATE CONSTRAINT gniah_paper IF NOT EXISTS FOR (p:Paper) REQUIRE p.corpusid IS UNIQUE",
    "CREATE CONSTRAINT gniah_graph IF NOT EXISTS FOR (g:GniahGraph) REQUIRE g.name IS UNIQUE",
)
_BEGIN = (
    "MERGE (g:GniahGraph {name: 'graph'}) ON CREATE SET g.papers_done = 0, g.citations_done = 0 "
    "SET g.schema = $schema, g.digest = $digest, g.manifest = $manifest, g.papers = $papers, "
    "g.citations = $citations, g.state = $state"
)
# All labels that gniah writes; what else stands in a database is not ours to remove.
_OURS = ("Example", "Component", "MissingPaper", "Paper")


@dataclass(frozen=True, slots=True)
class _Part:
    """One kind of rows: how they are read, how a batch is written, and which property counts those that are in."""

    name: str
    select: str
    write: str
    batch: int

    @property
    def done(self) -> str:
        return f"{self.name}_done"


_PARTS = (
    _Part(
        "papers",
        "SELECT corpusid, title, title_key, authors, publicationdate, venue, arxiv_id "
        "FROM read_parquet(?) ORDER BY corpusid OFFSET ?",
        "UNWIND $rows AS row MERGE (p:Paper {corpusid: row[0]}) "
        "SET p.title = row[1], p.title_key = row[2], p.authors = row[3], p.publicationdate = row[4], "
        "p.venue = row[5], p.arxiv_id = row[6] RETURN count(p)",
        5_000,
    ),
    _Part(
        "citations",
        "SELECT citing, cited, isinfluential FROM read_parquet(?) ORDER BY citing, cited OFFSET ?",
        "UNWIND $rows AS row MATCH (a:Paper {corpusid: row[0]}) MATCH (b:Paper {corpusid: row[1]}) "
        "MERGE (a)-[c:CITES]->(b) SET c.isinfluential = row[2] RETURN count(c)",
        20_000,
    ),
)


def import_over_bolt(
    graph: Path, address: ServerAddress, *, force: bool = False, advance: Callable[[int], None] = lambda _: None
) -> Manifest:
    """Import the folder that `gniah-load filter` wrote into a server; return the store's manifest.

    An import of this graph that was stopped goes on. `advance` is told how many rows went in. Raises UsageFault when
    the database holds another graph (unless `force`, which removes it, with the examples that were published on it)
    or papers that are not gniah's; InputError when the files do not hold what their manifest counts; StoreError.
    """
    clock = RunClock()
    source = Manifest.read(graph, GRAPH_SCHEMA)
    with connect(address, credentials()) as connection:
        _make_room(connection, source, force)
        for statement in CONSTRAINTS:
            connection.command(statement)
        connection.command("CALL db.awaitIndexes(300)")
        counts = _expected(source, graph)
        marker = {"schema": SERVER_GRAPH_SCHEMA, "digest": source.digest, "manifest": spelled(source), **counts}
        connection.change(_BEGIN, {**marker, "state": IMPORTING})
        for part in _PARTS:
            _copy(connection, part, graph / f"{part.name}.parquet", source.digest, advance)
        _compare(connection, counts, graph)
        connection.change(
            "MATCH (g:GniahGraph {name: 'graph', digest: $digest}) SET g.state = $state",
            {"digest": source.digest, "state": COMPLETE},
        )
        return _store_manifest(connection, source, counts, clock.run("neo4j", graph=str(graph)))


def held_over_bolt(address: ServerAddress, graph: Manifest) -> Manifest | None:
    """Return the manifest of a server's store when it holds this very graph, whole, else None."""
    with connect(address, credentials()) as connection:
        found = graph_node(connection)
        if found is None or found.get("digest") != graph.digest or found.get("state") != COMPLETE:
            return None
        counts = graph_counts(connection)
        if any(counts[name] != found.get(name) for name in counts):
            return None
        return _store_manifest(connection, graph, counts, {})


def spelled(graph: Manifest) -> str:
    """Return a graph's manifest, without its run, as the server keeps it."""
    return canonical_json({"schema": graph.schema, "content": graph.content}).decode("utf-8")


def _store_manifest(
    connection: Connection, graph: Manifest, counts: Mapping[str, int], run: Mapping[str, Any]
) -> Manifest:
    content = {
        "engine": f"neo4j {connection.version}",
        "counts": dict(counts),
        "graph": {"schema": graph.schema, "digest": graph.digest, "content": graph.content},
    }
    return Manifest(STORE_SCHEMA, content, run)


def _make_room(connection: Connection, source: Manifest, force: bool) -> None:
    """See that the database holds nothing of ours, or the beginning of this very import."""
    found = graph_node(connection)
    if found is None:
        if connection.run("MATCH (p:Paper) RETURN 1 LIMIT 1").rows:
            raise UsageFault(
                f"{connection.address}: holds Paper nodes that gniah did not write, and they are never overwritten",
                remedy="give another server or database",
            )
        return
    resumable = found.get("digest") == source.digest and found.get("state") == IMPORTING
    if resumable and not force:
        return
    if not force:
        raise UsageFault(f"{connection.address}: {_what(found)}", remedy=_FORCE)
    connection.change("MATCH (g:GniahGraph {name: 'graph'}) SET g.state = $state", {"state": REMOVING})
    for label in _OURS:
        connection.command(f"MATCH (n:{label}) CALL (n) {{ DETACH DELETE n }} IN TRANSACTIONS OF 10000 ROWS")
    connection.change("MATCH (g:GniahGraph) DELETE g")


def _what(found: Mapping[str, Any]) -> str:
    state = found.get("state")
    if state == REMOVING:
        return "the removal of its graph was not finished"
    part = "" if state == COMPLETE else "the beginning of "
    return f"holds {part}another graph ({str(found.get('digest'))[:12]})"


def _expected(source: Manifest, graph: Path) -> dict[str, int]:
    counts = source.content.get("counts") or {}
    try:
        return {part.name: int(counts[part.name]) for part in _PARTS}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{graph}: the manifest has no counts", remedy="run gniah-load filter again") from None


def _copy(connection: Connection, part: _Part, path: Path, digest: str, advance: Callable[[int], None]) -> None:
    found = graph_node(connection) or {}
    before = int(found.get(part.done) or 0)
    advance(before)
    for rows in _rows(path, part, before):
        _write(connection, part, rows, before, digest, path)
        before += len(rows)
        advance(len(rows))


def _write(
    connection: Connection, part: _Part, rows: Sequence[Sequence[Any]], before: int, digest: str, path: Path
) -> None:
    after = before + len(rows)

    def work(transaction: neo4j.ManagedTransaction) -> int:
        # A batch whose commit was made and its answer lost comes again with the note already changed.
        noted = transaction.run(
            "MATCH (g:GniahGraph {name: 'graph', digest: $digest, state: $state}) "
            f"WHERE g.{part.done} IN [$before, $after] SET g.{part.done} = $after RETURN count(g)",
            {"digest": digest, "state": IMPORTING, "before": before, "after": after},
        ).single(strict=True)[0]
        if not noted:
            raise BusyError(
                f"{connection.address}: another process imports into this database", remedy="wait for it to end"
            )
        return int(transaction.run(part.write, {"rows": rows}).single(strict=True)[0])

    written = connection.transact(work)
    if written != len(rows):
        raise InputError(
            f"{path}: {len(rows) - written} of rows {before + 1:,} to {after:,} have an end that is no paper",
            remedy="run gniah-load filter again",
        )


def _rows(path: Path, part: _Part, offset: int) -> Iterator[list[list[Any]]]:
    """Yield batches of rows in order; an empty list of authors is no property. Raises InputError for a bad file."""
    import duckdb

    if not path.is_file():
        raise InputError(f"{path}: no such file", remedy="run gniah-load filter again")
    with machine_trouble(path), duckdb.connect() as database:
        try:
            answer = database.execute(part.select, [str(path), offset])
            while batch := answer.fetchmany(part.batch):
                yield [[None if value == [] else value for value in row] for row in batch]
        except duckdb.Error as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}", remedy="run gniah-load filter again") from None


def _compare(connection: Connection, counts: Mapping[str, int], graph: Path) -> None:
    found = graph_counts(connection)
    if found != dict(counts):
        raise StoreError(
            f"{connection.address}: holds {found['papers']} papers and {found['citations']} citations after the "
            f"import, and the manifest of {graph} says {counts['papers']} and {counts['citations']}",
            remedy="run gniah-load filter again, then gniah-load import --force",
        )


__all__ = ["CONSTRAINTS", "IMPORTING", "held_over_bolt", "import_over_bolt", "spelled"]
