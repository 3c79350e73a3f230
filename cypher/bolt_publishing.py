"""Examples in a Neo4j server: written beside its citation graph, compared, audited, and removed again.

One transaction writes or removes some examples whole, and holds the node of the graph while it does, so several
processes take turns. What is there is compared with what should be there row by row, never trusted. An audit writes
the examples in a transaction of its own, asks there, and lets go of all of it: it leaves nothing, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from gniah.cypher.bolt import COMPLETE, DIALECT
from gniah.cypher.connection import Connection, plain
from gniah.cypher.published import KEYS, MISSING, NODES, PAPER, RELATIONS, PublishedExample, Relation, Rows, joined_rows
from gniah.cypher.queries import AUDIT, named_queries
from gniah.cypher.store import Table
from gniah.records.errors import InputError, StoreError

if TYPE_CHECKING:
    import neo4j

_Result = TypeVar("_Result")

SCHEMA: Mapping[str, str] = {
    "gniah_example": "CREATE CONSTRAINT gniah_example IF NOT EXISTS FOR (e:Example) REQUIRE e.qid IS UNIQUE",
    "gniah_component": "CREATE CONSTRAINT gniah_component IF NOT EXISTS FOR (c:Component) REQUIRE c.key IS UNIQUE",
    "gniah_missing_paper": (
        "CREATE CONSTRAINT gniah_missing_paper IF NOT EXISTS FOR (m:MissingPaper) REQUIRE m.corpusid IS UNIQUE"
    ),
    "gniah_in_text": "CREATE INDEX gniah_in_text IF NOT EXISTS FOR ()-[r:IN_TEXT]-() ON (r.qid)",
    "gniah_true_path": "CREATE INDEX gniah_true_path IF NOT EXISTS FOR ()-[r:ON_TRUE_PATH]-() ON (r.qid)",
}
# What audits begin with, and what takes its place when only some examples are asked about.
ALL_EXAMPLES = "MATCH (e:Example)"
_THESE_EXAMPLES = "UNWIND $qids AS asked MATCH (e:Example {qid: asked})"

# Setting a property takes the lock of the node until the transaction ends.
_HOLD = "MATCH (g:GniahGraph {name: 'graph'}) SET g.held = true REMOVE g.held RETURN g.digest, g.state"
_KNOWN = "UNWIND $ids AS id MATCH (p:Paper {corpusid: id}) RETURN id"
_ADD_MISSING = "UNWIND $ids AS id CREATE (:MissingPaper {corpusid: id})"

_COMPONENTS = "MATCH (c:Component) WHERE c.key STARTS WITH qid + '/' AND c.qid = qid"
_REMOVE = (
    "UNWIND $qids AS qid MATCH ()-[r:IN_TEXT {qid: qid}]->() DELETE r",
    "UNWIND $qids AS qid MATCH ()-[r:ON_TRUE_PATH {qid: qid}]->() DELETE r",
    f"UNWIND $qids AS qid {_COMPONENTS} DETACH DELETE c",
)
_REMOVE_EXAMPLES = "UNWIND $qids AS qid MATCH (e:Example {qid: qid}) DETACH DELETE e"
_REMOVE_UNUSED = "MATCH (m:MissingPaper) WHERE NOT EXISTS { (m)--() } DELETE m"
_OF_EXAMPLE = "UNWIND $qids AS qid MATCH (e:Example {qid: qid})"
_HELD: Mapping[str, str] = {
    "Example": f"{_OF_EXAMPLE} RETURN qid, properties(e)",
    "Component": f"UNWIND $qids AS qid {_COMPONENTS} RETURN qid, properties(c)",
    "HAS_COMPONENT": f"{_OF_EXAMPLE}-[:HAS_COMPONENT]->(c:Component) RETURN qid, [qid, c.key]",
    "HAS_OPTION": f"{_OF_EXAMPLE}-[r:HAS_OPTION]->(p) RETURN qid, [qid, p.corpusid, r.label]",
    "HAS_SOURCE": f"{_OF_EXAMPLE}-[:HAS_SOURCE]->(p) RETURN qid, [qid, p.corpusid]",
    "HAS_TARGET": f"{_OF_EXAMPLE}-[:HAS_TARGET]->(p) RETURN qid, [qid, p.corpusid]",
    "CONTAINS": (
        f"{_OF_EXAMPLE}-[:HAS_COMPONENT]->(c:Component)-[r:CONTAINS]->(p) "
        "RETURN qid, [c.key, p.corpusid, r.step, r.backbone]"
    ),
    "IN_TEXT": (
        "UNWIND $qids AS qid MATCH (p)-[r:IN_TEXT {qid: qid}]->(q) "
        "RETURN qid, [p.corpusid, q.corpusid, qid, r.component]"
    ),
    "ON_TRUE_PATH": (
        "UNWIND $qids AS qid MATCH (p)-[r:ON_TRUE_PATH {qid: qid}]->(q) "
        "RETURN qid, [p.corpusid, q.corpusid, qid, r.step, r.cites]"
    ),
}


class ServerGraph:
    """The published examples beside the citation graph of a server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._prepared = False

    def _prepare(self) -> None:
        """Create what constraints and indexes are not there yet. They stay: they hold no example."""
        if self._prepared:
            return

        def work(transaction: neo4j.ManagedTransaction) -> None:
            there = {record[0] for record in transaction.run("SHOW INDEXES YIELD name")}
            for name, statement in SCHEMA.items():
                if name not in there:
                    transaction.run(statement).consume()

        self._transact(work)
        self._connection.command("CALL db.awaitIndexes(300)")
        self._prepared = True

    def publish(self, examples: Sequence[PublishedExample], graph: str) -> int:
        """Write examples that are not there just so, in one transaction; return how many were written.

        `graph` is the digest of the graph they were made from. Raises InputError when the server holds another one.
        """

        def work(transaction: neo4j.ManagedTransaction) -> int:
            self._hold(transaction, graph)
            return len(_bring_up(transaction, examples))

        self._prepare()
        return self._transact(work)

    def remove(self, qids: Sequence[str]) -> int:
        """Remove all that was written for these examples, in one transaction; return how many were there."""

        def work(transaction: neo4j.ManagedTransaction) -> int:
            self._hold(transaction, None)
            return _remove(transaction, qids)

        return self._transact(work)

    def audit(self, examples: Sequence[PublishedExample], graph: str) -> list[tuple[str, Table]]:
        """Return what each audit answers about these examples, by name; what had to be written for it is taken back.

        Raises InputError when the server holds another graph, StoreError when what was written is not found again.
        """

        def work(transaction: neo4j.ManagedTransaction) -> None:
            self._hold(transaction, graph)
            _bring_up(transaction, examples)
            raise _TakenBackError(_answers(transaction, [example.qid for example in examples]))

        self._prepare()
        try:
            self._transact(work)
        except _TakenBackError as done:
            return done.answers
        raise AssertionError("an audit's transaction was committed")

    def _transact(self, work: Callable[[neo4j.ManagedTransaction], _Result]) -> _Result:
        def guarded(transaction: neo4j.ManagedTransaction) -> _Result:
            with self._forbidden():
                return work(transaction)

        result: _Result = self._connection.transact(guarded)
        return result

    @contextmanager
    def _forbidden(self) -> Iterator[None]:
        """Say so when the user may not write."""
        from neo4j.exceptions import Neo4jError

        try:
            yield
        except Neo4jError as error:
            code = error.code or ""
            if "Forbidden" not in code and "ReadOnly" not in code:
                raise
            raise StoreError(
                f"{self._connection.address}: this user may not write here, and examples are published or audited "
                f"by writing them: {str(error.message).splitlines()[0]}",
                remedy="name a user who may write in GNIAH_NEO4J_USER, or use a folder as the store",
            ) from None

    def _hold(self, transaction: neo4j.ManagedTransaction, graph: str | None) -> None:
        """Keep other processes of ours waiting until the transaction ends, and see that the graph is the right one."""
        found = transaction.run(_HOLD).single()
        if graph is not None and (found is None or found.values() != [graph, COMPLETE]):
            raise InputError(
                f"{self._connection.address}: does not hold the graph that these examples were made from",
                remedy="import that graph, or give the server that holds it",
            )


class _TakenBackError(Exception):
    """Ends a transaction without a trace, and carries out what was found in it."""

    def __init__(self, answers: list[tuple[str, Table]]) -> None:
        super().__init__()
        self.answers = answers


def _answers(transaction: neo4j.ManagedTransaction, qids: Sequence[str]) -> list[tuple[str, Table]]:
    answers = []
    for name, query in named_queries(AUDIT).items():
        text = query.text(DIALECT).replace(ALL_EXAMPLES, _THESE_EXAMPLES, 1)
        result = transaction.run(text, {"qids": qids})
        columns = tuple(result.keys())
        answers.append((name, Table(columns, tuple(tuple(map(plain, record.values())) for record in result))))
    return answers


def _bring_up(transaction: neo4j.ManagedTransaction, examples: Sequence[PublishedExample]) -> list[PublishedExample]:
    """Write the examples that are not there just so, and return them. Raises StoreError unless all are there then."""
    written = _differing(transaction, examples)
    if written:
        _remove(transaction, [example.qid for example in written])
        _write(transaction, written)
        lost = _differing(transaction, written)
        if lost:
            raise StoreError(
                f"example {lost[0].qid}: the server does not give back what was written",
                remedy="this is a defect of gniah or of Neo4j; please report it with the pool",
            )
    return written


def _differing(transaction: neo4j.ManagedTransaction, examples: Sequence[PublishedExample]) -> list[PublishedExample]:
    """Return the examples of which the server holds not exactly their rows."""
    qids = [example.qid for example in examples]
    held: dict[str, Rows] = {qid: {name: [] for name in _HELD} for qid in qids}
    for name, text in _HELD.items():
        for qid, found in transaction.run(text, {"qids": qids}):
            held[qid][name].append(_row(name, plain(found)))
    return [example for example in examples if _sorted(example.rows()) != _sorted(held[example.qid])]


def _row(name: str, found: Any) -> tuple[Any, ...]:
    """Return what the server holds as a row of a table; a node with properties of another hand is no row of ours."""
    if name not in NODES:
        return tuple(found)
    if not found.keys() <= NODES[name].keys():
        return ()
    return tuple(found.get(column) for column in NODES[name])


def _sorted(rows: Rows) -> Rows:
    return {name: sorted(some, key=repr) for name, some in rows.items()}


def _remove(transaction: neo4j.ManagedTransaction, qids: Sequence[str]) -> int:
    for statement in _REMOVE:
        transaction.run(statement, {"qids": qids}).consume()
    removed = transaction.run(_REMOVE_EXAMPLES, {"qids": qids}).consume().counters.nodes_deleted
    transaction.run(_REMOVE_UNUSED).consume()
    return removed


def _write(transaction: neo4j.ManagedTransaction, examples: Sequence[PublishedExample]) -> None:
    rows = joined_rows(examples)
    ids = sorted(set().union(*(example.papers() for example in examples)))
    missing = set(ids) - {record[0] for record in transaction.run(_KNOWN, {"ids": ids})}
    held = {record[0] for record in transaction.run(_KNOWN.replace(PAPER, MISSING), {"ids": sorted(missing)})}
    transaction.run(_ADD_MISSING, {"ids": sorted(missing - held)}).consume()
    for name, columns in NODES.items():
        nodes = [dict(zip(columns, row, strict=True)) for row in rows[name]]
        transaction.run(f"UNWIND $rows AS row CREATE (n:{name}) SET n = row", {"rows": nodes}).consume()
    for relation in RELATIONS:
        for labels, some in _by_labels(relation, rows[relation.name], missing).items():
            transaction.run(_creation(relation, *labels), {"rows": some}).consume()


def _by_labels(
    relation: Relation, rows: Sequence[Sequence[Any]], missing: set[int]
) -> dict[tuple[str, str], list[Sequence[Any]]]:
    """Return rows of a relationship by the labels of their ends."""
    found: dict[tuple[str, str], list[Sequence[Any]]] = {}
    for row in rows:
        labels = [
            MISSING if label == PAPER and key in missing else label
            for label, key in ((relation.start, row[0]), (relation.end, row[1]))
        ]
        found.setdefault((labels[0], labels[1]), []).append(row)
    return found


def _creation(relation: Relation, start: str, end: str) -> str:
    properties = ", ".join(f"{column}: row[{number}]" for number, column in enumerate(relation.columns, start=2))
    return (
        f"UNWIND $rows AS row MATCH (a:{start} {{{KEYS[start]}: row[0]}}) MATCH (b:{end} {{{KEYS[end]}: row[1]}}) "
        f"CREATE (a)-[:{relation.name} {{{properties}}}]->(b)"
    )
