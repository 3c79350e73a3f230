"""The Neo4j store: a server behind the store protocol, reached over Bolt.

    (:Paper {corpusid, title, title_key, authors, publicationdate, venue, arxiv_id})
    (:Paper)-[:CITES {isinfluential}]->(:Paper)
    (:GniahGraph {name: 'graph', digest, manifest, …, state})     which graph this is, and whether it is whole

A property that is unknown is absent; so is an empty list of authors. A question costs a round trip of milliseconds
whatever its size, so many ids go into one statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gniah.cypher.addresses import ServerAddress, credentials
from gniah.cypher.connection import Connection
from gniah.cypher.queries import EXPLORE, named_query
from gniah.cypher.reading import check_reading
from gniah.cypher.store import GRAPH_SCHEMA, Direction, IdArray, Table
from gniah.records.errors import StoreError
from gniah.records.manifests import Manifest, check_schema
from gniah.records.papers import Paper

DIALECT = "neo4j"
SERVER_GRAPH_SCHEMA = "gniah/neo4j-graph/1"
COMPLETE = "complete"

# Ids in one statement.
_BATCH = 5_000
_NEIGHBOURS = {
    "cites": "UNWIND $ids AS id MATCH (:Paper {corpusid: id})-[:CITES]->(q:Paper) RETURN id, collect(q.corpusid)",
    "cited_by": "UNWIND $ids AS id MATCH (:Paper {corpusid: id})<-[:CITES]-(q:Paper) RETURN id, collect(q.corpusid)",
}
_PAPERS = (
    "UNWIND $ids AS id MATCH (p:Paper {corpusid: id}) "
    "RETURN id, p.title, p.title_key, p.authors, p.publicationdate, p.venue, p.arxiv_id"
)
_EDGES = "MATCH (a:Paper)-[:CITES]->(b:Paper) RETURN a.corpusid AS citing, collect(b.corpusid) AS cited"
# Titles are compared where they are: a million of them would be slow on their way.
_USABLE = (
    "MATCH (p:Paper) WHERE p.title_key <> '' AND size(p.authors) > 0 "
    "WITH p.title_key AS title, collect(p.corpusid) AS ids RETURN ids"
)
# Answered from the rows: the numbers that Neo4j keeps can be wrong after a bulk import that was cut short.
_COUNTS = {
    "papers": "MATCH (p:Paper) WHERE p.corpusid IS NOT NULL RETURN count(p.title)",
    "citations": "MATCH (:Paper)-[c:CITES]->(:Paper) RETURN count(c.isinfluential)",
}
GRAPH_NODE = "MATCH (g:GniahGraph {name: 'graph'}) RETURN properties(g)"


class BoltStore:
    """A citation graph in a Neo4j server, open for reading. See `gniah.cypher.store.GraphStore`."""

    batch = 256

    def __init__(self, address: ServerAddress) -> None:
        self.connection = Connection(address, credentials())
        try:
            self._manifest = graph_manifest(self.connection)
        except BaseException:
            self.connection.close()
            raise

    @property
    def address(self) -> str:
        """Return the address, without secrets."""
        return str(self.connection.address)

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the graph that was imported."""
        return self._manifest

    def neighbours(self, ids: Sequence[int], direction: Direction) -> list[list[int]]:
        """Return for each id the sorted ids that it cites or that cite it; one round trip for 5,000 ids."""
        text = _NEIGHBOURS[direction]
        found: dict[int, list[int]] = {}
        for some in _batches(ids):
            for identifier, others in self.connection.stream(text, {"ids": some}):
                found[identifier] = sorted(others)
        return [list(found.get(identifier, ())) for identifier in ids]

    def papers(self, ids: Sequence[int]) -> list[Paper]:
        """Return the paper of each id. Raises StoreError for an id that is not there."""
        found: dict[int, Paper] = {}
        for some in _batches(ids):
            for identifier, title, key, authors, date, venue, arxiv_id in self.connection.stream(
                _PAPERS, {"ids": some}
            ):
                found[identifier] = Paper(
                    identifier, title, key, tuple(authors or ()), date.to_native(), venue, arxiv_id
                )
        for identifier in ids:
            if identifier not in found:
                raise StoreError(f"{self.address}: there is no paper {identifier}")
        return [found[identifier] for identifier in ids]

    def edges(self) -> tuple[IdArray, IdArray]:
        """Return all citations as two sorted arrays."""
        citing: list[IdArray] = []
        cited: list[IdArray] = []
        for one, others in self.connection.stream(_EDGES):
            citing.append(np.full(len(others), one, np.int64))
            cited.append(np.array(others, np.int64))
        first, second = _joined(citing), _joined(cited)
        order = np.lexsort((second, first))
        return first[order], second[order]

    def usable_papers(self) -> tuple[IdArray, IdArray]:
        """Return the sorted ids of the papers with usable metadata, and for each the least id with its title."""
        ids: list[IdArray] = []
        titles: list[IdArray] = []
        for (alike,) in self.connection.stream(_USABLE):
            ids.append(np.array(alike, np.int64))
            titles.append(np.full(len(alike), min(alike), np.int64))
        papers, names = _joined(ids), _joined(titles)
        order = np.argsort(papers)
        return papers[order], names[order]

    def counts(self) -> dict[str, int]:
        """Return the number of papers and citations."""
        return graph_counts(self.connection)

    def query(self, name: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a named query of `cypher/explore`."""
        query = named_query(name, EXPLORE)
        return self.connection.run(query.text(DIALECT), query.bind(parameters or {}))

    def cypher(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a reading statement. The server refuses writing ones too: the session is open for reading."""
        check_reading(text, DIALECT)
        return self.connection.run(text, parameters)

    def close(self) -> None:
        """Let go of the store."""
        self.connection.close()

    def __enter__(self) -> BoltStore:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def graph_node(connection: Connection) -> dict[str, Any] | None:
    """Return the properties of the node that says which graph a database holds, None where there is none.

    Raises StoreError, InputError when it was written by a newer gniah.
    """
    rows = connection.run(GRAPH_NODE).rows
    if not rows:
        return None
    found: dict[str, Any] = rows[0][0]
    check_schema(found.get("schema"), SERVER_GRAPH_SCHEMA, str(connection.address))
    return found


def graph_manifest(connection: Connection) -> Manifest:
    """Return the manifest of the graph in a database. Raises StoreError when there is none, or not a whole one."""
    found = graph_node(connection)
    if found is None:
        raise StoreError(
            f"{connection.address}: this database holds no citation graph of gniah",
            remedy=f"import one with gniah-load import GRAPH --store {connection.address}",
        )
    if found.get("state") != COMPLETE:
        raise StoreError(
            f"{connection.address}: the import of this graph was not finished",
            remedy="run the same gniah-load import again; it goes on from there",
        )
    value = json.loads(found["manifest"])
    return Manifest(str(value["schema"]), value["content"])


def graph_counts(connection: Connection) -> dict[str, int]:
    """Return the number of papers and citations in a database."""
    return {name: connection.run(text).rows[0][0] for name, text in _COUNTS.items()}


def _batches(ids: Sequence[int]) -> Iterator[list[int]]:
    distinct = list(dict.fromkeys(ids))
    for start in range(0, len(distinct), _BATCH):
        yield distinct[start : start + _BATCH]


def _joined(parts: list[IdArray]) -> IdArray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


__all__ = ["COMPLETE", "DIALECT", "GRAPH_SCHEMA", "SERVER_GRAPH_SCHEMA", "BoltStore", "graph_counts", "graph_node"]
