"""The embedded store: LadybugDB behind the store protocol. No other module knows the engine.

The database is a cache of the Parquet files. It is built once, by COPY, beside its place, counted, checkpointed, closed
and renamed, and from then on only opened read-only. Traps of the engine that shape this module: `UNWIND` followed by
a match scans the whole table, so look-ups are single statements in a loop; file names cannot be parameters; threads
of one process do not scale, so each connection has one.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gniah.cypher.published import is_published
from gniah.cypher.queries import AUDIT, EXPLORE, named_query
from gniah.cypher.reading import check_reading
from gniah.cypher.store import GRAPH_SCHEMA, STORE_SCHEMA, Direction, IdArray, Table
from gniah.records.errors import GniahError, InputError, MissingDependency, StoreError, UsageFault
from gniah.records.files import environment_fault, locked_place, machine_trouble, sha256_file, whole_folder
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock
from gniah.records.papers import Paper

DIALECT = "ladybug"
DATABASE_NAME = "graph.lbug"

_BUILD_MEMORY = 1 << 30
_REBUILD = "build the store again with gniah-load import --force"
_PAPER_COLUMNS = "corpusid, title, title_key, authors, publicationdate, venue, arxiv_id"
_SCHEMA = (
    "CREATE NODE TABLE Paper(corpusid INT64, title STRING, title_key STRING, authors STRING[], "
    "publicationdate DATE, venue STRING, arxiv_id STRING, PRIMARY KEY(corpusid))",
    "CREATE REL TABLE CITES(FROM Paper TO Paper, isinfluential BOOL)",
)
_NEIGHBOURS = {
    "cites": "MATCH (p:Paper {corpusid: $id})-[:CITES]->(q:Paper) RETURN q.corpusid",
    "cited_by": "MATCH (p:Paper {corpusid: $id})<-[:CITES]-(q:Paper) RETURN q.corpusid",
}
_PAPER = (
    "MATCH (p:Paper) WHERE p.corpusid = $id "
    "RETURN p.title, p.title_key, p.authors, p.publicationdate, p.venue, p.arxiv_id"
)
_EDGES = "MATCH (a:Paper)-[:CITES]->(b:Paper) RETURN a.corpusid AS citing, b.corpusid AS cited"
_USABLE = (
    "MATCH (p:Paper) WHERE p.title_key <> '' AND size(p.authors) > 0 "
    "RETURN p.corpusid AS corpusid, p.title_key AS title_key"
)
# Strings would cost a gigabyte in Python: titles become the least id that has them while still in DuckDB.
_SAME_TITLE = "SELECT corpusid, min(corpusid) OVER (PARTITION BY title_key) AS title FROM read_parquet(?)"


def engine_version() -> str:
    """Return the engine's name and version, as a store's manifest records it."""
    return f"ladybug {_engine().version}"


def _engine() -> Any:
    try:
        import ladybug
    except ImportError as error:  # a broken installation: the engine is part of the core
        raise MissingDependency(
            f"the embedded store needs the package ladybug: {error}", remedy="pip install --force-reinstall gniah"
        ) from None
    return ladybug


class Session:
    """One database with one connection. Wraps the engine's exceptions and turns answers into tables."""

    def __init__(self, path: Path, *, read_only: bool, memory: int) -> None:
        engine = _engine()
        self._path = path
        try:
            self._database = engine.Database(str(path), read_only=read_only, buffer_pool_size=memory)
            self._connection = engine.Connection(self._database, num_threads=1)
        except RuntimeError as error:
            raise StoreError(f"{path}: {_first_line(error)}", remedy=_REBUILD) from None
        self._prepared: dict[str, Any] = {}

    def run(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run one statement and return all of its rows. Raises StoreError."""
        try:
            result = self._connection.execute(text, dict(parameters or {}))
            if isinstance(result, list):
                raise StoreError("one statement at a time", remedy="leave out the semicolon between statements")
            return Table(tuple(result.get_column_names()), tuple(tuple(row) for row in result.get_all()))
        except RuntimeError as error:
            raise self._trouble(error) from None

    def _trouble(self, error: RuntimeError) -> GniahError:
        """Say what the engine's exception means: most of them a refused statement, some of them a full disk."""
        for number in (errno.ENOSPC, errno.EDQUOT):
            if os.strerror(number) in str(error):
                return environment_fault(OSError(number, os.strerror(number)), self._path)
        return StoreError(_first_line(error))

    def look_up(self, text: str, identifier: int) -> list[list[Any]]:
        """Run a statement that takes one `$id`, prepared once. Raises StoreError."""
        try:
            statement = self._prepared.get(text)
            if statement is None:
                with warnings.catch_warnings():
                    # The engine would rather have one call, which parses anew and takes 1.7 times as long.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    statement = self._connection.prepare(text)
                self._prepared[text] = statement
            rows: list[list[Any]] = self._connection.execute(statement, {"id": identifier}).get_all()
        except RuntimeError as error:
            raise StoreError(f"paper {identifier}: {_first_line(error)}") from None
        return rows

    def close(self) -> None:
        """Close connection and database."""
        self._prepared.clear()
        self._connection.close()
        self._database.close()


class EmbeddedStore:
    """A built store, open for reading. See `gniah.cypher.store.GraphStore`."""

    batch = 1

    def __init__(self, folder: Path, *, memory_mb: int = 512) -> None:
        self._folder = folder
        self._manifest = read_store_manifest(folder)
        built_by = self._manifest.content.get("engine")
        if built_by != engine_version():
            raise StoreError(
                f"{folder}: built by {built_by}, and this is {engine_version()}, whose file format may differ",
                remedy="build it again with gniah-load import; it takes seconds",
            )
        _refuse_cut(folder, self._manifest)
        with machine_trouble(folder):
            self._session = Session(folder / DATABASE_NAME, read_only=True, memory=memory_mb << 20)

    @property
    def address(self) -> str:
        """Return the folder."""
        return str(self._folder)

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the graph that was imported."""
        graph = self._manifest.content["graph"]
        return Manifest(str(graph["schema"]), graph["content"])

    def neighbours(self, ids: Sequence[int], direction: Direction) -> list[list[int]]:
        """Return for each id the sorted ids that it cites or that cite it."""
        text = _NEIGHBOURS[direction]
        look_up = self._session.look_up
        return [sorted([row[0] for row in look_up(text, identifier)]) for identifier in ids]

    def papers(self, ids: Sequence[int]) -> list[Paper]:
        """Return the paper of each id. Raises StoreError for an id that is not there."""
        found = []
        for identifier in ids:
            rows = self._session.look_up(_PAPER, identifier)
            if not rows:
                raise StoreError(f"{self._folder}: there is no paper {identifier}")
            title, title_key, authors, date, venue, arxiv_id = rows[0]
            found.append(Paper(identifier, title, title_key, tuple(authors or ()), date, venue, arxiv_id))
        return found

    def edges(self) -> tuple[IdArray, IdArray]:
        """Return all citations as two sorted arrays."""
        columns = self._export(_EDGES)
        citing, cited = columns["citing"], columns["cited"]
        order = np.lexsort((cited, citing))
        return citing[order], cited[order]

    def usable_papers(self) -> tuple[IdArray, IdArray]:
        """Return the sorted ids of the papers with usable metadata, and for each the least id with its title."""
        columns = self._export(_USABLE, _SAME_TITLE)
        order = np.argsort(columns["corpusid"])
        return columns["corpusid"][order], columns["title"][order]

    def counts(self) -> dict[str, int]:
        """Return the number of papers and citations."""
        return count_graph(self._session)

    def query(self, name: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a named query of `cypher/explore`."""
        query = named_query(name, EXPLORE)
        if query.needs_examples:
            raise StoreError(
                f"{self._folder}: query {name} asks about published examples, and a store in a folder holds none",
                remedy="publish a pool with gniah-gen publish-graph, and ask where it was published",
            )
        return self._session.run(query.text(DIALECT), query.bind(parameters or {}))

    def cypher(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a reading statement; the database is open read-only, and files are out of its reach."""
        check_reading(text, DIALECT)
        return self._session.run(text, parameters)

    def close(self) -> None:
        """Let go of the store."""
        self._session.close()

    def __enter__(self) -> EmbeddedStore:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _export(self, text: str, reading: str = "SELECT * FROM read_parquet(?)") -> dict[str, IdArray]:
        """Run a statement whose answer is large, through a file that the engine writes and DuckDB reads.

        `reading` is what DuckDB makes of the rows: columns of integers.
        """
        import duckdb

        with tempfile.TemporaryDirectory(prefix="gniah-") as place, machine_trouble(Path(place)):
            path = Path(place) / "rows.parquet"
            self._session.run(f"COPY ({text}) TO {literal(path)}")
            with duckdb.connect() as connection:
                rows = connection.execute(reading, [str(path)]).fetchnumpy()
        return {name: np.ascontiguousarray(column, dtype=np.int64) for name, column in rows.items()}


def count_graph(session: Session) -> dict[str, int]:
    """Return the number of papers and citations of an open database."""
    papers = session.run("MATCH (p:Paper) RETURN count(*)").rows[0][0]
    citations = session.run("MATCH (:Paper)-[c:CITES]->(:Paper) RETURN count(*)").rows[0][0]
    return {"papers": papers, "citations": citations}


def build(graph: Path, folder: Path) -> Manifest:
    """Build a store in `folder` from the Parquet files in `graph`; return the store's manifest.

    Raises InputError when the Parquet files are missing or do not hold what their manifest counts.
    """
    clock = RunClock()
    source = Manifest.read(graph, GRAPH_SCHEMA)
    for name in ("papers.parquet", "citations.parquet"):
        if not (graph / name).is_file():
            raise InputError(f"{graph / name}: no such file", remedy="run gniah-load filter again")
    _refuse_other_content(folder)
    with locked_place(folder), whole_folder(folder) as part:
        counts = _copy_in(graph, part / DATABASE_NAME)
        _compare(counts, source, graph)
        content = {
            "engine": engine_version(),
            "counts": counts,
            "graph": {"schema": source.schema, "digest": source.digest, "content": source.content},
        }
        database = part / DATABASE_NAME
        written = {"bytes": database.stat().st_size, "sha256": sha256_file(database)}
        manifest = Manifest(STORE_SCHEMA, content, clock.run("ladybug", graph=str(graph), database=written))
        manifest.write(part)
    return manifest


def _refuse_other_content(folder: Path) -> None:
    with machine_trouble(folder):
        if not folder.exists():
            return
        ours = folder.is_dir() and all(
            entry.name == MANIFEST_NAME or entry.name.startswith(DATABASE_NAME) for entry in folder.iterdir()
        )
        if not ours:
            raise UsageFault(f"{folder}: holds something that is not a store", remedy="choose another folder")


def _copy_in(graph: Path, database: Path) -> dict[str, int]:
    session = Session(database, read_only=False, memory=_BUILD_MEMORY)
    try:
        for statement in _SCHEMA:
            session.run(statement)
        papers, citations = (
            literal(graph / "papers.parquet", read=True),
            literal(graph / "citations.parquet", read=True),
        )
        try:
            session.run(f"COPY Paper FROM (LOAD FROM {papers} RETURN {_PAPER_COLUMNS})")
            session.run(f"COPY CITES FROM (LOAD FROM {citations} RETURN citing, cited, isinfluential)")
        except StoreError as error:
            raise InputError(f"{graph}: {error.message}", remedy="run gniah-load filter again") from None
        session.run("CHECKPOINT")
        return count_graph(session)
    finally:
        session.close()


def _compare(counts: Mapping[str, int], source: Manifest, graph: Path) -> None:
    expected = source.content.get("counts") or {}
    wanted = {name: expected.get(name) for name in ("papers", "citations")}
    if dict(counts) != wanted:
        raise InputError(
            f"{graph}: the Parquet files hold {counts['papers']} papers and {counts['citations']} citations, the "
            f"manifest says {wanted['papers']} and {wanted['citations']}",
            remedy="run gniah-load filter again",
        )


def read_store_manifest(folder: Path) -> Manifest:
    """Return the manifest of a built store. Raises StoreError when the folder holds none."""
    if not (folder / DATABASE_NAME).exists():
        raise StoreError(
            f"{folder}: there is no graph store here", remedy="build one with gniah-load import, or check --store"
        )
    if is_published(folder):
        raise StoreError(
            f"{folder}: holds published examples, and of the citation graph only what they use",
            remedy="give the store that gniah-load import built; gniah-load query and cypher read this one",
        )
    return Manifest.read(folder, STORE_SCHEMA)


def _refuse_cut(folder: Path, manifest: Manifest) -> None:
    """Refuse a database file of another length than was written: the engine opens some of them without a word."""
    path = folder / DATABASE_NAME
    with machine_trouble(path):
        found = path.stat().st_size
    written = (manifest.run.get("database") or {}).get("bytes", found)
    if found != written:
        raise StoreError(f"{path}: has {found} bytes, and {written} were written", remedy=_REBUILD)


def holds(folder: Path, graph: Manifest) -> Manifest | None:
    """Return a store's manifest when it holds this graph, whole, built by this version of the engine."""
    if not (folder / DATABASE_NAME).exists():
        return None
    try:
        manifest = read_store_manifest(folder)
        written = manifest.run.get("database") or {}
        if "sha256" in written and sha256_file(folder / DATABASE_NAME) != written["sha256"]:
            return None
    except GniahError:
        return None
    same = manifest.content["graph"]["digest"] == graph.digest and manifest.content["engine"] == engine_version()
    return manifest if same else None


def literal(path: Path, *, read: bool = False) -> str:
    """Return a file name as a string literal of the dialect: COPY takes none as a parameter.

    A name that is read is taken for a pattern, so its wildcards are quoted.
    """
    text = str(path.absolute())
    if read:
        text = re.sub(r"[*?\[]", lambda found: f"[{found[0]}]", text)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__


__all__ = ["AUDIT", "DIALECT", "EmbeddedStore", "Session", "build", "engine_version", "read_store_manifest"]
