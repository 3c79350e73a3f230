"""The store protocol, and how an address becomes a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gniah.cypher.addresses import ServerAddress, parse_address
from gniah.records.manifests import Manifest
from gniah.records.papers import Paper

Direction = Literal["cites", "cited_by"]
IdArray = NDArray[np.int64]

GRAPH_SCHEMA = "gniah/graph/1"
STORE_SCHEMA = "gniah/store/1"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a query's answer."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def dicts(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a mapping from column to value."""
        for row in self.rows:
            yield dict(zip(self.columns, row, strict=True))


class GraphStore(Protocol):
    """A citation graph, open for reading. Every implementation gives the same values in the same order."""

    batch: int
    """How many ids are best asked for at once: 1 where a question costs nothing but its answer."""

    @property
    def address(self) -> str:
        """The address it was opened by, without secrets."""

    @property
    def manifest(self) -> Manifest:
        """The manifest of the graph that was imported (schema `gniah/graph/1`)."""

    def neighbours(self, ids: Sequence[int], direction: Direction) -> list[list[int]]:
        """Return for each id, in the order given, the sorted ids that it cites or that cite it."""

    def papers(self, ids: Sequence[int]) -> list[Paper]:
        """Return the paper of each id, in the order given. Raises StoreError for an id that is not there."""

    def edges(self) -> tuple[IdArray, IdArray]:
        """Return all citations as two arrays, citing and cited, sorted by both."""

    def usable_papers(self) -> tuple[IdArray, IdArray]:
        """Return the sorted ids of the papers with usable metadata (GraphNIAH A.2.1), and for each its title.

        A title is given as the least id of a usable paper that has it, normalised: so two papers have equal titles
        exactly when these numbers are equal, and a million titles fit into eight megabytes.
        """

    def counts(self) -> dict[str, int]:
        """Return the number of `papers` and `citations`."""

    def query(self, name: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a named query. Raises UsageFault for an unknown name or parameter, StoreError when it fails."""

    def cypher(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        """Run a reading statement. Raises StoreError when it fails or would write."""

    def close(self) -> None:
        """Let go of the store."""

    def __enter__(self) -> GraphStore:
        """Return itself."""

    def __exit__(self, *_: object) -> None:
        """Close it."""


def open_store(address: str | Path, *, memory_mb: int = 512) -> GraphStore:
    """Open a store for reading by its address: a folder, or a server as `bolt://HOST:PORT` or `neo4j://HOST:PORT`.

    `memory_mb` is the embedded store's buffer. A server's password comes from the environment or from the file it names
    (`gniah.cypher.addresses`). Raises StoreError when there is none, or one that does not fit.
    """
    place = parse_address(address)
    if isinstance(place, ServerAddress):
        from gniah.cypher.bolt import BoltStore

        return BoltStore(place)
    from gniah.cypher.embedded import EmbeddedStore

    return EmbeddedStore(place, memory_mb=memory_mb)


def build_store(
    graph: Path, address: str | Path, *, force: bool = False, advance: Callable[[int], None] = lambda _: None
) -> Manifest:
    """Build the store at an address from a folder that `gniah-load filter` wrote; return the store's manifest.

    A folder appears whole or not at all, and one that stands there already is replaced. On a server, an import that
    was stopped goes on, and another graph is replaced only with `force`. `advance` is told of rows that went in.
    """
    place = parse_address(address)
    if isinstance(place, ServerAddress):
        from gniah.cypher.bolt_import import import_over_bolt

        return import_over_bolt(graph, place, force=force, advance=advance)
    from gniah.cypher.embedded import build

    return build(graph, place)


def store_holds(address: str | Path, graph: Manifest) -> Manifest | None:
    """Return the manifest of a store that was built from this very graph by this engine, else None."""
    place = parse_address(address)
    if isinstance(place, ServerAddress):
        from gniah.cypher.bolt_import import held_over_bolt

        return held_over_bolt(place, graph)
    from gniah.cypher.embedded import holds

    return holds(place, graph)
