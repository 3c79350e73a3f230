"""A pool's examples as a graph to walk through: beside the citation graph of a server, or in a folder of their own."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gniah.cypher.addresses import ServerAddress, parse_address
from gniah.cypher.bolt import BoltStore
from gniah.cypher.bolt_publishing import ServerGraph
from gniah.cypher.published import PublishedComponent, PublishedExample
from gniah.cypher.published_folder import publish_into, remove_from
from gniah.cypher.store import GraphStore, open_store
from gniah.generator.graphniah.experiments import task_name
from gniah.records.errors import InputError, UsageFault
from gniah.records.graphniah.pool import ComponentRecord, PoolRecord, read_pool
from gniah.records.graphniah.settings import Settings

# What one transaction holds at most.
BATCH_EXAMPLES = 100
BATCH_PAPERS = 8_000


@dataclass(frozen=True, slots=True)
class Publication:
    """What `publish_pool` did: where, how many examples the pool has, and how many were written or removed."""

    target: str
    examples: int
    changed: int


def publish_pool(
    pool: Path,
    store: str | Path,
    target: str | Path | None = None,
    *,
    remove: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> Publication:
    """Write the examples of a pool file as a graph, or remove them again; what is there already is left as it is.

    `store` is what the pool was made from. `target` is a server that holds the same graph, or a folder of its own that
    gets a database with the papers of the examples; by default it is the store, if that is a server. `advance` is told
    of examples that are done. Raises UsageFault for a target that cannot be written to, InputError for a pool
    without examples or of another graph, StoreError.
    """
    place = parse_address(store if target is None else target)
    if isinstance(place, ServerAddress):
        done = _in_server(pool, place, remove, advance)
    elif target is None:
        raise UsageFault(
            f"{store}: a store in a folder is never written to",
            remedy="add --to: a folder for the examples, or a server that holds the same graph",
        )
    else:
        done = _in_folder(pool, store, place, remove, advance)
    if not done.examples:
        raise InputError(f"{pool}: holds no example", remedy="build some with gniah-gen examples")
    return done


def published(record: PoolRecord) -> PublishedExample:
    """Return what a graph shows of an example. Raises InputError when it claims what no graph can hold."""
    settings = Settings.from_config(record.config, record.qid)
    example = PublishedExample(
        qid=record.qid,
        task=task_name(record.question_type),
        answer=record.answer,
        k=settings.question_depth,
        size=settings.component_node_count,
        components=settings.components,
        cutoff_date=datetime.date.fromisoformat(settings.cutoff_date),
        source=record.source,
        target=record.target,
        options=tuple(sorted(record.option_papers.items())),
        parts=tuple(_component(component) for component in record.components),
        true_path=_true_path(record, settings),
    )
    for number in (example.k, example.size, *example.papers()):
        if type(number) is not int or not -(2**63) <= number < 2**63:
            raise InputError(f"{record.qid}: {number!r} is no number of a paper", remedy="build the pool again")
    return example


def check_form(record: PoolRecord, seen: set[str]) -> None:
    """Raise InputError for what no query could judge: a qid that comes twice, a backbone beside its component."""
    if record.qid in seen:
        raise InputError(f"{record.qid}: stands in the pool more than once", remedy="build the pool again")
    seen.add(record.qid)
    for component in record.task_components:
        if component.papers[: len(component.backbone)] != component.backbone:
            raise InputError(
                f"{record.qid}: a component does not begin with its backbone", remedy="build the pool again"
            )


def fitting(records: Iterable[PoolRecord], store: GraphStore, where: str) -> Iterator[PoolRecord]:
    """Yield the records. Raises InputError, naming `where`, at one made from another graph than the store holds."""
    digest = store.manifest.digest
    for record in records:
        if record.inputs.get("graph") != digest:
            raise InputError(
                f"{where}: example {record.qid} was made from another graph than {store.address} holds",
                remedy="give --store the store it was made from",
            )
        yield record


def batches(records: Iterable[PoolRecord]) -> Iterator[list[PoolRecord]]:
    """Yield the records in order, as many at once as hold 8,000 papers, and 100 at most."""
    batch: list[PoolRecord] = []
    papers = 0
    for record in records:
        own = sum(len(component.papers) for component in record.components)
        if batch and (len(batch) >= BATCH_EXAMPLES or papers + own > BATCH_PAPERS):
            yield batch
            batch, papers = [], 0
        batch.append(record)
        papers += own
    if batch:
        yield batch


def _distinct(records: Iterable[PoolRecord]) -> Iterator[PoolRecord]:
    seen: set[str] = set()
    for record in records:
        check_form(record, seen)
        yield record


def _in_server(pool: Path, place: ServerAddress, remove: bool, advance: Callable[[int], None]) -> Publication:
    examples = changed = 0
    with BoltStore(place) as store:
        server, digest = ServerGraph(store.connection), store.manifest.digest
        records = _distinct(read_pool(pool))
        for batch in batches(records if remove else fitting(records, store, str(pool))):
            if remove:
                changed += server.remove([record.qid for record in batch])
            else:
                changed += server.publish([published(record) for record in batch], digest)
            examples += len(batch)
            advance(len(batch))
    return Publication(str(place), examples, changed)


def _in_folder(
    pool: Path, store: str | Path, folder: Path, remove: bool, advance: Callable[[int], None]
) -> Publication:
    examples = 0

    def counted() -> Iterator[PoolRecord]:
        nonlocal examples
        for record in _distinct(read_pool(pool)):
            yield record
            examples += 1
            advance(1)

    with open_store(store) as graph:
        if remove:
            changed = remove_from(folder, (record.qid for record in counted()), graph)
        else:
            changed = publish_into(folder, map(published, fitting(counted(), graph, str(pool))), graph)
    return Publication(str(folder), examples, changed)


def _component(component: ComponentRecord) -> PublishedComponent:
    return PublishedComponent(component.role, len(component.backbone), component.papers, component.edges)


def _true_path(record: PoolRecord, settings: Settings) -> tuple[int, ...]:
    k = settings.question_depth
    for component in record.components:
        path = component.papers[k - 1 : 2 * k - 1]
        if component.role == "source" and len(path) == k and (path[0], path[-1]) == (record.source, record.target):
            return path
    return ()
