"""Any graph that can be looked at: a store, or a folder of published examples. Named queries on it, and statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gniah.cypher.addresses import ServerAddress, parse_address
from gniah.cypher.embedded import DATABASE_NAME, DIALECT, EmbeddedStore, Session, engine_version
from gniah.cypher.published import PUBLISHED_SCHEMA, is_published
from gniah.cypher.published_database import create_tables
from gniah.cypher.queries import EXPLORE, NamedQuery, named_query
from gniah.cypher.reading import check_reading
from gniah.cypher.store import Table, open_store
from gniah.records.errors import StoreError
from gniah.records.files import machine_trouble
from gniah.records.manifests import Manifest

_MEMORY = 512 << 20
_ANY_EXAMPLE = "MATCH (e:Example) RETURN e.qid LIMIT 1"


class Explorable(Protocol):
    """What answers questions, whatever else it can."""

    def query(self, name: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a named query. Raises UsageFault for an unknown name or parameter, StoreError when it fails."""

    def cypher(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a reading statement. Raises StoreError when it fails or would write."""

    def __enter__(self) -> Explorable:
        """Return itself."""

    def __exit__(self, *_: object) -> None:
        """Close it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a named query gives. `unpublished`: it asks for published examples, and there is none at all."""

    table: Table
    unpublished: bool


class PublishedFolder:
    """A folder of published examples, open for reading."""

    def __init__(self, folder: Path) -> None:
        manifest = Manifest.read(folder, PUBLISHED_SCHEMA)
        if manifest.content.get("engine") != engine_version():
            raise StoreError(
                f"{folder}: built by {manifest.content.get('engine')}, and this is {engine_version()}, whose file "
                "format may differ",
                remedy="publish a pool into it again with gniah-gen publish-graph",
            )
        with machine_trouble(folder):
            self._session = Session(folder / DATABASE_NAME, read_only=True, memory=_MEMORY)

    def query(self, name: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a named query of `cypher/explore`."""
        query = named_query(name, EXPLORE)
        return self._session.run(query.text(DIALECT), query.bind(parameters or {}))

    def cypher(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a reading statement."""
        check_reading(text, DIALECT)
        return self._session.run(text, parameters)

    def __enter__(self) -> PublishedFolder:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._session.close()


def open_to_explore(address: str | Path) -> Explorable:
    """Open a store or a folder of published examples for questions. Raises StoreError, InputError."""
    place = parse_address(address)
    if not isinstance(place, ServerAddress) and is_published(place):
        return PublishedFolder(place)
    return open_store(address)


def answer(graph: Explorable, name: str, parameters: Mapping[str, Any] | None = None) -> Answer:
    """Run a named query; one that asks for published examples has no rows where none are.

    Raises UsageFault for an unknown name or parameter, StoreError when it fails.
    """
    query = named_query(name, EXPLORE)
    if not query.needs_examples:
        return Answer(graph.query(name, parameters), False)
    if isinstance(graph, EmbeddedStore):
        return Answer(_without_examples(query, parameters or {}), True)
    table = graph.query(name, parameters)
    return Answer(table, not table.rows and not graph.cypher(_ANY_EXAMPLE).rows)


def _without_examples(query: NamedQuery, parameters: Mapping[str, Any]) -> Table:
    """Return a query's answer on a graph of nothing: its columns."""
    session = Session(Path(":memory:"), read_only=False, memory=64 << 20)
    try:
        create_tables(session)
        return session.run(query.text(DIALECT), query.bind(parameters))
    finally:
        session.close()
