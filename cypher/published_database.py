"""A database of the embedded engine with published examples, and with the papers of a store that they name.

(:Paper {…})-[:CITES]->(:Paper)     as in a store, the papers of the examples only
the rest                            as in `gniah.cypher.published`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from gniah.cypher.copying import copy_lines, node_table, relation_table, write_lines
from gniah.cypher.embedded import Session
from gniah.cypher.published import KEYS, MISSING, NODES, PAPER, RELATIONS, PublishedExample
from gniah.cypher.store import GraphStore
from gniah.records.errors import StoreError

_MEMORY = 1 << 30
# Ids in one question to a store that is far away.
_BATCH = 1_000

_NODES: Mapping[str, Mapping[str, str]] = {
    **NODES,
    PAPER: {
        "corpusid": "INT64",
        "title": "STRING",
        "title_key": "STRING",
        "authors": "STRING[]",
        "publicationdate": "DATE",
        "venue": "STRING",
        "arxiv_id": "STRING",
    },
    MISSING: {"corpusid": "INT64"},
}
_CITES = "CITES"

Ends = tuple[str, str] | None


def create_tables(session: Session) -> None:
    """Create the tables of a published graph, empty."""
    for name, columns in _NODES.items():
        session.run(node_table(name, columns))
    for relation in RELATIONS:
        pairs = [(start, end) for start in _labels(relation.start) for end in _labels(relation.end)]
        session.run(relation_table(relation.name, pairs, relation.columns))
    session.run(relation_table(_CITES, [(PAPER, PAPER)], {}))


def build_published(
    database: Path, examples: Callable[[], Iterable[PublishedExample]], store: GraphStore, place: Path
) -> dict[str, int]:
    """Build a database of examples; return how many rows each table has. `place` is an empty folder for rows.

    `examples` gives them from the beginning each time it is called. Raises StoreError unless all rows are there then.
    """
    with ExitStack() as stack:
        files = _RowFiles(place, stack)
        _write_rows(files, examples, store)
    session = Session(database, read_only=False, memory=_MEMORY)
    try:
        create_tables(session)
        files.copy(session)
        _compare(session, files.counts)
        session.run("CHECKPOINT")
    finally:
        session.close()
    return dict(sorted(files.counts.items()))


class _RowFiles:
    """The rows of each table, by the labels of their ends, in files of a folder."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.counts = dict.fromkeys((*_NODES, *(relation.name for relation in RELATIONS), _CITES), 0)
        self._place = place
        self._stack = stack
        self._files: dict[tuple[str, Ends], tuple[IO[str], Path]] = {}

    def add(self, table: str, rows: Iterable[Sequence[Any]], ends: Ends = None) -> None:
        """Add rows to the file of a table."""
        if (table, ends) not in self._files:
            path = self._place / f"{'-'.join((table, *(ends or ())))}.jsonl"
            opened = self._stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            self._files[table, ends] = opened, path
        stream, _ = self._files[table, ends]
        self.counts[table] += write_lines(stream, _columns(table, ends), rows)

    def copy(self, session: Session) -> None:
        """Copy all files, nodes before relationships."""
        for (table, ends), (_, path) in sorted(self._files.items(), key=lambda item: (item[0][1] is not None, item[0])):
            copy_lines(session, table, _columns(table, ends), path, ends)


def _labels(label: str) -> tuple[str, ...]:
    """Return the labels that an end may have: every paper may be missing."""
    return (PAPER, MISSING) if label == PAPER else (label,)


def _columns(table: str, ends: Ends) -> dict[str, str]:
    if ends is None:
        return dict(_NODES[table])
    start, end = (_NODES[label][KEYS[label]] for label in ends)
    own = next((relation.columns for relation in RELATIONS if relation.name == table), {})
    return {"start_key": start, "end_key": end, **own}


def _write_rows(files: _RowFiles, examples: Callable[[], Iterable[PublishedExample]], store: GraphStore) -> None:
    named = sorted(set().union(*(example.papers() for example in examples())))
    known = known_papers(store, named)
    missing = set(named) - set(known)
    files.add(MISSING, ((paper,) for paper in sorted(missing)))
    files.add(PAPER, _paper_rows(store, known))
    files.add(_CITES, _citation_rows(store, known), (PAPER, PAPER))
    for example in examples():
        rows = example.rows()
        for name in NODES:
            files.add(name, rows[name])
        for relation in RELATIONS:
            for row in rows[relation.name]:
                start = MISSING if relation.start == PAPER and row[0] in missing else relation.start
                end = MISSING if relation.end == PAPER and row[1] in missing else relation.end
                files.add(relation.name, (row,), (start, end))


def known_papers(store: GraphStore, ids: Sequence[int]) -> list[int]:
    """Return those of some sorted ids that a store has, sorted."""
    if store.batch == 1:
        one = "MATCH (p:Paper) WHERE p.corpusid = $id RETURN p.corpusid"
        return [paper for paper in ids if store.cypher(one, {"id": paper}).rows]
    some = "MATCH (p:Paper) WHERE p.corpusid IN $ids RETURN p.corpusid"
    return sorted(row[0] for part in _parts(ids) for row in store.cypher(some, {"ids": part}).rows)


def _paper_rows(store: GraphStore, ids: Sequence[int]) -> Iterator[Sequence[Any]]:
    for part in _parts(ids):
        for paper in store.papers(part):
            yield tuple(getattr(paper, column) for column in _NODES[PAPER])


def _citation_rows(store: GraphStore, ids: Sequence[int]) -> Iterator[Sequence[Any]]:
    inside = set(ids)
    for part in _parts(ids):
        for citing, found in zip(part, store.neighbours(part, "cites"), strict=True):
            yield from ((citing, cited) for cited in found if cited in inside)


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), _BATCH):
        yield ids[start : start + _BATCH]


def _compare(session: Session, counts: Mapping[str, int]) -> None:
    """Raise StoreError unless every table holds as many rows as were given."""
    for name, count in counts.items():
        pattern = f"(:{name})" if name in _NODES else f"()-[:{name}]->()"
        found = session.run(f"MATCH {pattern} RETURN count(*)").rows[0][0]
        if found != count:
            raise StoreError(f"the published graph holds {found} of {count} rows of {name}")
