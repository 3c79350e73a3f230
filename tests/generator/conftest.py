"""A toy graph for what needs no database, and one real store of RFCs for what does."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gniah.cypher.store import GRAPH_SCHEMA, Direction, GraphStore, IdArray, Table
from gniah.generator.corpora import FolderCorpus
from gniah.generator.graphniah.building import Materials
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.generator.graphniah.experiments import ListSettings
from gniah.generator.graphniah.pool_files import PathPool, path_length
from gniah.generator.graphniah.production import Sources
from gniah.generator.graphniah.prompts import load_templates
from gniah.generator.tokenizers import load_tokenizers
from gniah.records.errors import StoreError, UsageFault
from gniah.records.manifests import Manifest
from gniah.records.papers import Paper
from gniah.records.streams import Stream
from gniah.records.titles import normalised_title

Citations = Iterable[tuple[int, int]]

CODE = Path(__file__).parents[1] / "data" / "code"
CUTOFF = "2010-01-01"


class ToyStore:
    """A citation graph in two dictionaries, behind the protocol of every store."""

    address = "toy"
    batch = 1

    def __init__(self, papers: Iterable[Paper], citations: Citations, name: str = "toy") -> None:
        self._papers = {paper.corpusid: paper for paper in papers}
        self._pairs = sorted(set(citations))
        self._lists: dict[str, dict[int, list[int]]] = {"cites": {}, "cited_by": {}}
        for citing, cited in self._pairs:
            self._lists["cites"].setdefault(citing, []).append(cited)
            self._lists["cited_by"].setdefault(cited, []).append(citing)
        self.manifest = Manifest(GRAPH_SCHEMA, {"cutoff": CUTOFF, "name": name})

    def neighbours(self, ids: Sequence[int], direction: Direction) -> list[list[int]]:
        return [sorted(self._lists[direction].get(identifier, [])) for identifier in ids]

    def papers(self, ids: Sequence[int]) -> list[Paper]:
        try:
            return [self._papers[identifier] for identifier in ids]
        except KeyError as error:
            raise StoreError(f"no paper {error.args[0]}") from None

    def edges(self) -> tuple[IdArray, IdArray]:
        pairs = np.array(self._pairs, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def usable_papers(self) -> tuple[IdArray, IdArray]:
        ids = np.array(sorted(one.corpusid for one in self._papers.values() if one.usable), np.int64)
        least: dict[str, int] = {}
        numbers = [least.setdefault(self._papers[identifier].title_key, identifier) for identifier in ids.tolist()]
        return ids, np.array(numbers, np.int64)

    def counts(self) -> dict[str, int]:
        return {"papers": len(self._papers), "citations": len(self._pairs)}

    def query(self, name: str, parameters: Mapping[str, Any] | None = None) -> Table:
        raise UsageFault(f"a toy has no query {name}")

    def cypher(self, text: str, parameters: Mapping[str, Any] | None = None) -> Table:
        raise StoreError(f"a toy knows no Cypher: {text}")

    def close(self) -> None:
        pass

    def __enter__(self) -> ToyStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_paper(corpusid: int = 1, title: str | None = None, **changed: Any) -> Paper:
    """Return a paper with a title of its own, dated and published in a journal, but for what is given."""
    title = f"Study number {corpusid}" if title is None else title
    values: dict[str, Any] = {
        "authors": (f"Ann Author{corpusid}",),
        "publicationdate": datetime.date(2026, 4, 1),
        "venue": "Journal of Toys",
        **changed,
    }
    return Paper(corpusid, title, normalised_title(title), **values)


@pytest.fixture(scope="session")
def paper() -> Callable[..., Paper]:
    """Make a paper: `paper(7, "Title", authors=(…), venue=None)`."""
    return make_paper


@pytest.fixture(scope="session")
def store_of() -> Callable[..., GraphStore]:
    """Make a store from citations, with a paper of its own title for each end unless papers are given."""

    def make(citations: Citations, papers: Iterable[Paper] = (), name: str = "toy") -> GraphStore:
        citations = list(citations)
        known = {one.corpusid: one for one in papers}
        for identifier in sorted({end for pair in citations for end in pair}):
            known.setdefault(identifier, make_paper(identifier))
        return ToyStore(known.values(), citations, name)

    return make


_SUBJECTS = (
    *("Rivers", "Bridges", "Lattices", "Proteins", "Markets"),
    *("Glaciers", "Kernels", "Dialects", "Orbits", "Enzymes"),
)
_WAYS = (
    "{s} under strain, part {n}",
    "Are {s} stable? A survey {n}",
    'On "{s}" {n}',
    "{s}. With remarks. No {n}",
    "\\answer{{YES}} for {s} {n}",
)


def _toy_papers(count: int) -> list[Paper]:
    papers = []
    for number in range(1, count + 1):
        subject, way = _SUBJECTS[number % 10], _WAYS[number % 7 % 5]
        authors = tuple(f"Q. R{number}x{place}" for place in range(1 + number % 3))
        venue: str | None = ("Annals of Toys", "arXiv.org", None)[number % 3]
        papers.append(
            make_paper(
                number,
                way.format(s=subject, n=number),
                authors=authors,
                venue=venue,
                publicationdate=datetime.date(2026, 4 + number % 8, 1 + number % 28),
                arxiv_id=f"2604.{number:05d}" if number % 4 == 0 else None,
            )
        )
    return papers


def _toy_citations(count: int) -> list[tuple[int, int]]:
    pairs = set()
    for number in range(2, count + 1):
        pairs.add((number, number // 2))
        pairs.add((number, number - 1 - number * 7 % min(number - 1, 9)))
        if number % 5 == 0:
            pairs.add((number // 2, number))
    return sorted(pair for pair in pairs if pair[0] != pair[1])


@cache
def _toy_store() -> ToyStore:
    return ToyStore(_toy_papers(400), _toy_citations(400))


def _toy_paths(store: GraphStore, depth: int, wanted: int) -> list[tuple[int, ...]]:
    """Return some simple paths, by random walks that begin again when they meet themselves."""
    stream = Stream("toy paths", depth)
    papers = store.counts()["papers"]
    found: dict[tuple[int, ...], None] = {}
    while len(found) < wanted:
        path = [1 + stream.below(papers)]
        while len(path) < path_length(depth):
            beside = {*store.neighbours(path[-1:], "cites")[0], *store.neighbours(path[-1:], "cited_by")[0]}
            path.append(stream.choice(sorted(beside)))
        if len(set(path)) == len(path):
            found[tuple(path if path[0] < path[-1] else path[::-1])] = None
    return list(found)


@pytest.fixture(scope="session")
def pool_of() -> Callable[..., PathPool]:
    """Make the pool of a depth from paths over a store."""

    def make(store: GraphStore, depth: int, paths: Sequence[Sequence[int]]) -> PathPool:
        ids = sorted({identifier for path in paths for identifier in path})
        titles = {one.corpusid: one.title_key for one in store.papers(ids)}
        index = CompatibilityIndex.build(
            paths, titles, lambda one: {*store.neighbours((one,), "cites")[0], *store.neighbours((one,), "cited_by")[0]}
        )
        return PathPool(depth, store.manifest.digest, CUTOFF, 1, tuple(map(tuple, paths)), index)

    return make


@pytest.fixture(scope="session")
def toy_materials(pool_of: Callable[..., PathPool]) -> Materials:
    """Return all that examples of depth 2 and 3 are made from, on a toy graph of 400 papers."""
    store = _toy_store()
    return Materials(
        store,
        {depth: pool_of(store, depth, _toy_paths(store, depth, 60)) for depth in (2, 3)},
        {"code": FolderCorpus(CODE)},
        load_tokenizers(["tiktoken:o200k_base"]),
        load_templates("plain"),
    )


@pytest.fixture(scope="session")
def list_of() -> Callable[..., ListSettings]:
    """Make the settings of a list of small examples, but for what is given."""

    def make(**changed: Any) -> ListSettings:
        values: dict[str, Any] = {
            "name": "toys",
            "count": 12,
            "tasks": ("yes-no", "multiple-choice", "counting"),
            "depths": (2, 3),
            "sizes": (7, 9),
            "distractor_types": ("code", "disjoint-component"),
            "context_length": 3000,
            "seed": 1,
            "alpha": "0.1",
            "cutoff_date": CUTOFF,
            "templates": "plain",
            **changed,
        }
        return ListSettings(**values)

    return make


@pytest.fixture(scope="session")
def code_folder() -> Path:
    """Return the folder of source files that stands with the tests."""
    return CODE


@pytest.fixture(scope="session")
def rfc_sources(rfc: Any) -> Sources:
    """Return a real store of RFCs with pools of depth 2 and 3."""
    return Sources(str(rfc.store), rfc.paths, {"code": CODE}, ("tiktoken:o200k_base",), "plain", rfc.cutoff, (2, 3))
