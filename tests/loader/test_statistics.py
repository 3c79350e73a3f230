from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gniah.cypher import GraphStore
from gniah.loader.statistics import graph_statistics
from gniah.records.manifests import Manifest


class PlainStore:
    """A graph in memory with as much of the store protocol as statistics ask for."""

    def __init__(self, ids: Sequence[int], edges: Sequence[tuple[int, int]], usable: Sequence[int]) -> None:
        self._ids, self._edges, self._usable = ids, sorted(edges), usable
        self.manifest = Manifest("gniah/graph/1", {"cutoff": "2026-04-01"})

    def counts(self) -> dict[str, int]:
        return {"papers": len(self._ids), "citations": len(self._edges)}

    def edges(self) -> tuple[Any, Any]:
        return (
            np.array([one for one, _ in self._edges], dtype=np.int64),
            np.array([other for _, other in self._edges], dtype=np.int64),
        )

    def usable_papers(self) -> tuple[Any, Any]:
        ids = np.array(sorted(self._usable), dtype=np.int64)
        return ids, ids


def statistics(ids: Sequence[int], edges: Sequence[tuple[int, int]], usable: Sequence[int] = ()) -> Mapping[str, Any]:
    return graph_statistics(cast(GraphStore, PlainStore(ids, edges, usable)))


def reference(ids: Sequence[int], edges: Sequence[tuple[int, int]]) -> dict[str, int]:
    """The same numbers, slowly."""
    group = {identifier: {identifier} for edge in edges for identifier in edge}
    for one, other in edges:
        joined = group[one] | group[other]
        for identifier in joined:
            group[identifier] = joined
    groups = {min(members): len(members) for members in group.values()}
    citations = Counter(other for _, other in edges)
    references = Counter(one for one, _ in edges)
    return {
        "papers": len(ids),
        "citations": len(edges),
        "papers without a citation": len(set(ids) - set(group)),
        "mutual citations (pairs)": sum(1 for one, other in edges if one < other and (other, one) in edges),
        "connected components (of two papers and more)": len(groups),
        "largest component": max(groups.values(), default=0),
        "most citations of one paper": max(citations.values(), default=0),
        "most references of one paper": max(references.values(), default=0),
    }


def test_hand_checked_numbers() -> None:
    values = statistics([1, 2, 3, 4, 5, 6, 7], [(1, 2), (2, 1), (3, 1), (4, 1), (5, 6)], usable=[1, 2])
    assert values == {
        "papers": 7,
        "citations": 5,
        "papers with usable metadata": 2,
        "papers without a citation": 1,
        "mutual citations (pairs)": 1,
        "connected components (of two papers and more)": 2,
        "largest component": 4,
        "most citations of one paper": 3,
        "most references of one paper": 1,
        "cutoff date": "2026-04-01",
        "graph": Manifest("gniah/graph/1", {"cutoff": "2026-04-01"}).digest,
    }


def test_a_graph_without_citations_has_noughts() -> None:
    values = statistics([1, 2], [])
    assert {name: values[name] for name in reference([1, 2], [])} == reference([1, 2], [])


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=12),
    st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
)
def test_agrees_with_a_slow_reference(ids: list[int], chosen: set[tuple[int, int]]) -> None:
    edges = sorted({(ids[a % len(ids)], ids[b % len(ids)]) for a, b in chosen if a % len(ids) != b % len(ids)})
    values = statistics(ids, edges)
    expected = reference(ids, edges)
    assert {name: values[name] for name in expected} == expected
    assert all(type(value) in {int, str} for value in values.values())
