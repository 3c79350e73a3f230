"""Prompts filled with further components: many of them on one pool, and what is said when it cannot give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import networkx as nx
import pytest

from gniah.cypher.store import GraphStore
from gniah.generator.graphniah.bit_rows import members
from gniah.generator.graphniah.building import ExampleBuilder, Materials
from gniah.generator.graphniah.citation_graph import CitationGraph
from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.generator.graphniah.paths import PathLimits, search_paths
from gniah.generator.graphniah.plans import make_plan
from gniah.generator.graphniah.pool_files import PathPool, path_length
from gniah.generator.graphniah.possibility import Impossible, impossible_slots
from gniah.generator.graphniah.pruning import prune
from gniah.generator.graphniah.trials import components_that_fit, reach_of_components, try_needles
from gniah.generator.verification import verify
from gniah.records.errors import ImpossibleRequest
from gniah.records.graphniah.settings import Settings
from gniah.records.streams import Stream

MakeList = Callable[..., ListSettings]
MakeStore = Callable[..., GraphStore]
MakePool = Callable[..., PathPool]

DEPTH = 4
SIZE = 20
LENGTH = 60_000


def wide_graph(papers: int) -> list[tuple[int, int]]:
    """Citations of a graph with few hubs: each paper cites two older ones, any of them alike."""
    stream = Stream("wide graph")
    return [(paper, 1 + stream.below(paper - 1)) for paper in range(2, papers + 1) for _ in range(2)]


def sampled_pool(store: GraphStore, count: int) -> PathPool:
    """A pool of paths as `gniah-gen paths` samples them."""
    ids, titles = store.usable_papers()
    graph = CitationGraph.from_citations(ids, *store.edges())
    found = search_paths(prune(graph, path_length(DEPTH)), "pool", PathLimits(wanted=count)).paths
    index = CompatibilityIndex.build(found, dict(zip(ids.tolist(), titles.tolist(), strict=True)), graph)
    return PathPool(DEPTH, store.manifest.digest, "2010-01-01", 1, found, index)


@pytest.fixture(scope="module")
def wide(toy_materials: Materials, store_of: MakeStore) -> Materials:
    store = store_of(wide_graph(12_000))
    return replace(toy_materials, store=store, pools={DEPTH: sampled_pool(store, 1_000)})


def wanting(list_of: MakeList, **changed: Any) -> Settings:
    values: dict[str, Any] = {
        "count": 1,
        "tasks": ("yes-no",),
        "depths": (DEPTH,),
        "sizes": (SIZE, SIZE),
        "distractor_types": ("disjoint-component",),
        "context_length": LENGTH,
        **changed,
    }
    return slots(list_of(**values))[0]


def test_a_long_prompt_holds_more_than_sixty_components_that_share_nothing(wide: Materials, list_of: MakeList) -> None:
    settings = wanting(list_of)
    assert impossible_slots([settings], wide) == {}
    built = ExampleBuilder(wide).build(settings)
    record = built.record
    assert record.stopped in ("near", "full")
    assert len(record.components) > 60
    papers = list(chain.from_iterable(component.papers for component in record.components))
    titles = Counter(one.title_key for one in wide.store.papers(papers))
    assert len(papers) == len(set(papers)) == len(titles)
    # Backbones are apart by citation too. What a cut component shows of its own may not be a whole path.
    whole = record.components[:-1]
    for one, other in combinations(whole, 2):
        known = set(chain.from_iterable(wide.store.neighbours(one.backbone, "cites")))
        known.update(chain.from_iterable(wide.store.neighbours(one.backbone, "cited_by")))
        assert not known.intersection(other.backbone)
    for component in whole:
        assert len(component.papers) == SIZE
        assert nx.is_tree(nx.Graph(component.edges))
    assert verify(built.example).right


def test_the_last_component_is_drawn_by_the_rule_of_the_first(wide: Materials, list_of: MakeList) -> None:
    """Draw the further paths of an example again, by the rule as it is written."""
    settings = wanting(list_of)
    record = ExampleBuilder(wide).build(settings).record
    assert record.building["attempts"] == 1
    pool = wide.pools[DEPTH]
    place = {frozenset(path): number for number, path in enumerate(pool.paths)}
    stood = [place[frozenset(component.backbone)] for component in record.components[:-1]]
    task, further = stood[:2], stood[2:]
    compatible = set(members(pool.index.compatible_with(task)))
    drawn, number = [], 0
    while len(drawn) < len(further):
        stream = Stream(record.qid, "distractors", 0, number)
        number += 1
        pick = stream.choice(sorted(compatible))
        compatible.discard(pick)
        if pick == further[len(drawn)]:
            drawn.append(pick)
            compatible &= set(members(pool.index.rows[pick]))
    refused = number - len(drawn)
    counted = sum(record.building["restarts"].values())
    # What was refused before the component that stands cut in the prompt is counted with the rest.
    assert 0 < refused <= counted


def test_a_component_that_is_stuck_is_replaced_alone(
    toy_materials: Materials, list_of: MakeList, store_of: MakeStore, pool_of: MakePool
) -> None:
    edges, paths = [], []
    for start in range(0, 400, 10):
        paths.append(tuple(range(start + 1, start + 5)))
        edges += [(start + n, start + n + 1) for n in (1, 2, 3)]
        # Every fourth island has no fifth paper.
        edges += [(start + 1, start + 5)] if start // 10 % 4 else []
    store = store_of(edges)
    materials = replace(toy_materials, store=store, pools={2: pool_of(store, 2, paths)})
    stuck = 0
    for index in range(10):
        settings = wanting(list_of, depths=(2,), sizes=(5, 5), context_length=5_000)
        record = ExampleBuilder(materials).build(replace(settings, index=index)).record
        stuck += record.building["restarts"].get("additional component stuck", 0)
        for component in record.components[:-1]:
            start = min(component.papers) - 1
            assert sorted(component.papers) == list(range(start + 1, start + 6))
    assert stuck > 10


# --- when the pool cannot carry it -------------------------------------------------------------------------------


def refusal(settings: Settings, materials: Materials) -> Impossible:
    found = impossible_slots([settings], materials)
    assert list(found) == [settings]
    return found[settings]


def test_too_few_paths_are_told_before_anything_is_built(wide: Materials, list_of: MakeList) -> None:
    settings = wanting(list_of)
    few = replace(wide, pools={DEPTH: sampled_pool(wide.store, 60)})
    found = refusal(settings, few)
    assert "to reach 60,000 tokens, and drawing from the pool of 60 paths brings at most about" in found.reason
    assert "more paths (gniah-gen paths --count)" in found.remedy
    reached = int(found.remedy.split()[2])
    assert impossible_slots([wanting(list_of, context_length=reached // 2)], few) == {}
    with pytest.raises(ImpossibleRequest, match="60 paths brings at most about"):
        make_plan(replace(list_of(), count=1, tasks=("yes-no",), depths=(DEPTH,), sizes=(SIZE, SIZE),
                          distractor_types=("disjoint-component",), context_length=LENGTH), few)  # fmt: skip


@pytest.fixture(scope="module")
def crowded(toy_materials: Materials, store_of: MakeStore, pool_of: MakePool) -> Materials:
    """Forty paths in a ring that can all stand together; each grows only into the two beside it."""
    edges, paths = [], []
    for start in range(0, 400, 10):
        paths.append(tuple(range(start + 1, start + 5)))
        edges += [(start + n, start + n + 1) for n in (1, 2, 3)]
        edges += [(start + 5, start + 1), (start + 5, (start + 10) % 400 + 1)]
    store = store_of(edges)
    return replace(toy_materials, store=store, pools={2: pool_of(store, 2, paths)})


def test_paths_that_grown_components_take_are_told_before_anything_is_built(
    crowded: Materials, list_of: MakeList
) -> None:
    settings = wanting(list_of, depths=(2,), sizes=(8, 8), context_length=9_000)
    builder = ExampleBuilder(crowded)
    trial = try_needles(builder, settings)
    assert trial is not None
    # The paths alone say yes: nothing but growth brings them into each other's way.
    assert components_that_fit(crowded.pools[2], 2) == 40
    reach = reach_of_components(builder, settings)
    assert reach is not None
    assert 2 <= reach.components < 20
    found = refusal(settings, crowded)
    assert f"the pool of 40 paths carries {reach.components} (about" in found.reason
    assert "hold papers that were taken by then, or cannot grow" in found.reason
    with pytest.raises(ImpossibleRequest, match="ran out") as caught:
        builder.build(settings)
    assert "gniah-gen paths --count" in str(caught.value.remedy)


def test_what_is_carried_is_about_what_a_whole_count_says(wide: Materials, list_of: MakeList) -> None:
    settings = wanting(list_of)
    builder = ExampleBuilder(wide)
    found = builder.begin(settings).components_alone(0)
    assert found is not None
    record = builder.build(settings).record
    assert found[0] == pytest.approx(len(record.components), abs=2)
    assert found[1] == pytest.approx(max(record.token_counts.values()), rel=0.03)


def test_sizes_are_refused_up_to_the_last_that_cannot_be_filled(wide: Materials, list_of: MakeList) -> None:
    few = replace(wide, pools={DEPTH: sampled_pool(wide.store, 60)})
    settings = list_of(
        count=40, tasks=("yes-no",), depths=(DEPTH,), sizes=(10, 90), distractor_types=("disjoint-component",),
        context_length=LENGTH,
    )  # fmt: skip
    planned = slots(settings)
    found = impossible_slots(planned, few)
    refused = {slot.component_node_count for slot in found}
    left = {slot.component_node_count for slot in planned if slot not in found}
    assert refused and left
    assert max(refused) < min(left)
    assert {trouble.cell for trouble in found.values()} == {
        f"yes-no, depth 4, sizes of {max(refused)} and less, disjoint-component"
    }
    builder = ExampleBuilder(few)
    largest = max((slot for slot in planned if slot not in found), key=lambda slot: slot.component_node_count)
    assert builder.build(largest).record.stopped in ("near", "full")
    smallest = min(found, key=lambda slot: slot.component_node_count)
    with pytest.raises(ImpossibleRequest, match="ran out"):
        builder.build(smallest)
