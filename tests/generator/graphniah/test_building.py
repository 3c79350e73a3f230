from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from gniah.cypher.store import GraphStore
from gniah.generator.corpora import FolderCorpus
from gniah.generator.graphniah import building
from gniah.generator.graphniah.building import Built, ExampleBuilder, Materials
from gniah.generator.graphniah.experiments import ListSettings, slots
from gniah.generator.graphniah.pool_files import PathPool
from gniah.generator.graphniah.prompts import TemplateSet
from gniah.generator.tokenizers import TiktokenTokenizer, request_counts
from gniah.generator.verification import verify
from gniah.records.errors import ImpossibleRequest
from gniah.records.files import json_line
from gniah.records.graphniah.settings import Settings
from gniah.records.streams import Stream

MakeList = Callable[..., ListSettings]
MakeStore = Callable[..., GraphStore]

GOLDEN = "1dd5c1fe5384eb4cbe156f11be199b14afdf15168492eb5c83391770603997f6"
"""The bytes of ten examples. When they change, GENERATOR_VERSION has to change with them."""


@pytest.fixture(scope="module")
def built(toy_materials: Materials, list_of: MakeList) -> list[Built]:
    builder = ExampleBuilder(toy_materials)
    return [builder.build(slot) for slot in slots(list_of(count=30))]


def one(list_of: MakeList, **changed: Any) -> Settings:
    """The settings of a single example."""
    values: dict[str, Any] = {
        "count": 1,
        "tasks": ("yes-no",),
        "depths": (2,),
        "distractor_types": ("code",),
        **changed,
    }
    return slots(list_of(**values))[0]


def written(results: list[Built]) -> bytes:
    return b"".join(json_line(result.example.to_json()) + json_line(result.record.to_json()) for result in results)


def test_the_bytes_of_ten_small_examples_are_those_of_this_generator_version(built: list[Built]) -> None:
    assert building.GENERATOR_VERSION == "gniah.graphniah:1"
    assert hashlib.sha256(written(built[:10])).hexdigest() == GOLDEN


def test_an_example_does_not_depend_on_what_was_built_before(
    toy_materials: Materials, list_of: MakeList, built: list[Built]
) -> None:
    builder = ExampleBuilder(toy_materials)
    again = [builder.build(slot) for slot in reversed(slots(list_of(count=30)))]
    assert written(again[::-1]) == written(built)


def test_every_kind_of_example_is_among_them(built: list[Built]) -> None:
    kinds = {(result.example.task, result.record.config["distractor_type"]) for result in built}
    assert len(kinds) == 6
    assert {result.example.answer for result in built} >= {"YES", "NO", "A", "B", "C", "D"}


def test_every_example_is_answered_by_its_text(built: list[Built]) -> None:
    for result in built:
        assert verify(result.example).right


def test_components_are_trees_of_the_size_asked_for_that_share_nothing(
    toy_materials: Materials, built: list[Built]
) -> None:
    for result in built:
        record = result.record
        needed = 4 if record.question_type == "reachability-multiple" else 2
        assert [component.role for component in record.task_components] == ["source", *["other"] * (needed - 1)]
        everyone = [paper for component in record.components for paper in component.papers]
        titles = {one.title_key for one in toy_materials.store.papers(everyone)}
        assert len(everyone) == len(set(everyone)) == len(titles)
        for component in record.task_components:
            tree = nx.Graph(component.edges)
            assert nx.is_tree(tree)
            assert set(tree) == set(component.papers)
            assert len(component.papers) == record.config["component_node_count"]
            assert component.papers[: len(component.backbone)] == component.backbone
            assert len(component.backbone) == 3 * record.config["question_depth"] - 2
        for component in record.components:
            if component.role == "distractor":
                assert {end for edge in component.edges for end in edge} == set(component.papers)
                assert nx.is_forest(nx.Graph(component.edges))
            for citing, cited in component.edges:
                assert cited in toy_materials.store.neighbours((citing,), "cites")[0]


def test_the_backbones_of_task_components_have_no_citation_between_them(
    toy_materials: Materials, built: list[Built]
) -> None:
    for result in built:
        home = {paper: n for n, component in enumerate(result.record.components) for paper in component.backbone}
        for citing, number in home.items():
            for cited in toy_materials.store.neighbours((citing,), "cites")[0]:
                assert home.get(cited, number) == number


def test_answers_follow_from_where_the_target_was_taken(toy_materials: Materials, built: list[Built]) -> None:
    for result in built:
        record, example = result.record, result.example
        first = record.task_components[0]
        k = record.config["question_depth"]
        targets = [component.backbone[2 * k - 2] for component in record.task_components]
        assert record.source == first.backbone[k - 1]
        if example.task == "counting":
            assert (record.target, example.answer) == (None, str(record.config["component_node_count"] - 1))
        elif example.task == "yes-no":
            assert record.target == targets[0 if example.answer == "YES" else 1]
            assert example.answer == record.config["answer_condition"]
        else:
            assert record.target == targets[0] == record.option_papers[example.answer]
            assert sorted(record.option_papers) == list("ABCD")
            assert set(record.option_papers.values()) == set(targets)
            assert example.options is not None
            shown = {option.label: option.text for option in example.options}
            papers = toy_materials.store.papers([record.option_papers[letter] for letter in "ABCD"])
            assert [shown[letter] for letter in "ABCD"] == [paper.title for paper in papers]


def test_the_pool_says_how_full_a_prompt_is_and_what_was_cut(built: list[Built]) -> None:
    for result in built:
        record, texts = result.record, [needle.text for needle in result.record.needles]
        assert record.unused == {label: 3000 - count for label, count in result.example.token_counts.items()}
        shown = Counter(number for number, _ in record.context)
        assert shown.pop(-1) == len(texts)
        if record.stopped != "full":
            assert record.cut is None
            continue
        assert record.cut is not None
        number, kept, blocks = record.cut
        assert number == len(record.distractors) - 1
        assert kept == shown[number] < blocks
    assert {result.record.stopped for result in built} >= {"full", "near"}


def test_no_byte_depends_on_the_recount(toy_materials: Materials, list_of: MakeList, built: list[Built]) -> None:
    builder = ExampleBuilder(toy_materials, recount=False)
    assert written([builder.build(slot) for slot in slots(list_of(count=30))]) == written(built)


def test_counts_are_those_of_the_final_prompts(toy_materials: Materials, built: list[Built]) -> None:
    for result in built:
        example = result.example
        counts = request_counts(toy_materials.tokenizers, example.system_prompt, example.user_prompt)
        assert example.token_counts == result.record.token_counts == counts
        assert max(counts.values()) <= example.config["context_length"]
        if result.record.stopped == "near":
            assert max(counts.values()) >= example.config["context_length"] - 100


def test_the_context_can_be_put_together_from_the_pool_record(toy_materials: Materials, built: list[Built]) -> None:
    for result in built:
        record = result.record
        if record.config["distractor_type"] != "code":
            continue
        corpus = toy_materials.corpora["code"]
        documents = {corpus.document(n).name: corpus.document(n) for n in range(len(corpus))}
        texts = [
            record.needles[block].text
            if distractor < 0
            else documents[record.distractors[distractor]["document"]].blocks[block]
            for distractor, block in record.context
        ]
        assert "\n\n# Context\n\n" + "\n\n".join(texts) + "\n\n# Response Format\n\n" in result.example.user_prompt
        kept = Counter(distractor for distractor, _ in record.context if distractor >= 0)
        assert [kept[n] for n in range(len(record.distractors))] == [one["kept"] for one in record.distractors]


def test_needles_stand_in_the_order_of_their_first_numbers(built: list[Built]) -> None:
    for result in built:
        stream = Stream(result.record.qid, "order")
        numbers = [stream.bits(64) for _ in result.record.needles]
        shown = [block for distractor, block in result.record.context if distractor < 0]
        assert shown == sorted(range(len(numbers)), key=numbers.__getitem__)


# --- the qid ----------------------------------------------------------------------------------------------------


def test_the_qid_covers_every_setting(toy_materials: Materials, list_of: MakeList) -> None:
    base = one(list_of)
    changed = [
        replace(base, question_type="reachability-counting"),
        replace(base, question_depth=3),
        replace(base, component_node_count=base.component_node_count + 1),
        replace(base, distractor_type="disjoint-tree"),
        replace(base, context_length=3001),
        replace(base, label="YES" if base.label == "NO" else "NO"),
        replace(base, label=None),
        replace(base, index=1),
        replace(base, seed=2),
        replace(base, alpha="0.2"),
        replace(base, cutoff_date="2011-01-01"),
        replace(base, templates="other"),
    ]
    assert len({toy_materials.qid(settings) for settings in (base, *changed)}) == 1 + len(changed)
    assert toy_materials.qid(replace(base)) == toy_materials.qid(base)


def test_the_qid_covers_every_input(
    toy_materials: Materials,
    list_of: MakeList,
    store_of: MakeStore,
    pool_of: Callable[..., PathPool],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    base = one(list_of)
    (tmp_path / "other.c").write_bytes(b"int other;\n")
    pool = toy_materials.pools[2]
    renamed = TiktokenTokenizer("o200k_base", "another label")
    texts: TemplateSet = replace(toy_materials.templates, option="{label}: {title}")
    changed = [
        replace(toy_materials, store=store_of([(1, 2)], name="another graph")),
        replace(toy_materials, pools={**toy_materials.pools, 2: replace(pool, paths=pool.paths[:-1])}),
        replace(toy_materials, corpora={"code": FolderCorpus(tmp_path)}),
        replace(toy_materials, tokenizers=(renamed,)),
        replace(toy_materials, tokenizers=(*toy_materials.tokenizers, renamed)),
        replace(toy_materials, templates=texts),
    ]
    qids = {materials.qid(base) for materials in (toy_materials, *changed)}
    assert len(qids) == 1 + len(changed)
    # Another depth's pool, and a corpus that is not drawn from, are no inputs of this example.
    components = replace(base, distractor_type="disjoint-tree")
    assert changed[2].qid(components) == toy_materials.qid(components)
    deeper = replace(toy_materials, pools={**toy_materials.pools, 3: replace(toy_materials.pools[3], paths=())})
    assert deeper.qid(base) == toy_materials.qid(base)
    monkeypatch.setattr(sys.modules[Materials.__module__], "GENERATOR_VERSION", "gniah.graphniah:2")
    assert toy_materials.qid(base) not in qids


# --- what does not work out -------------------------------------------------------------------------------------


def islands(toy_materials: Materials, store: GraphStore, pool: PathPool) -> Materials:
    return replace(toy_materials, store=store, pools={2: pool})


def test_an_example_that_is_always_stuck_is_given_up_after_a_hundred_attempts(
    toy_materials: Materials, list_of: MakeList, store_of: MakeStore, pool_of: Callable[..., PathPool]
) -> None:
    store = store_of([(1, 2), (2, 3), (3, 4), (11, 12), (12, 13), (13, 14)])
    materials = islands(toy_materials, store, pool_of(store, 2, [(1, 2, 3, 4), (11, 12, 13, 14)]))
    settings = one(list_of, sizes=(5, 5))
    with pytest.raises(ImpossibleRequest, match=r"in 100 attempts \(.*depth 2, size 5, .*stuck 100 times"):
        ExampleBuilder(materials).build(settings)
    built = ExampleBuilder(materials).build(replace(settings, component_node_count=4))
    assert built.record.building == {"attempts": 1, "restarts": {}, "refused": {}}


def test_a_stuck_example_starts_again_with_other_paths(
    toy_materials: Materials, list_of: MakeList, store_of: MakeStore, pool_of: Callable[..., PathPool]
) -> None:
    edges = []
    paths = []
    for start in range(0, 60, 10):
        paths.append((start + 1, start + 2, start + 3, start + 4))
        edges += [(start + n, start + n + 1) for n in (1, 2, 3)]
        # Only the last two islands have a fifth paper.
        edges += [(start + 1, start + 5)] if start >= 40 else []
    store = store_of(edges)
    materials = islands(toy_materials, store, pool_of(store, 2, paths))
    built = ExampleBuilder(materials).build(one(list_of, sizes=(5, 5)))
    assert {component.papers[4] for component in built.record.task_components} == {45, 55}
    attempts = built.record.building["attempts"]
    assert attempts > 1
    assert built.record.building["restarts"] == {"stuck": attempts - 1}
    assert verify(built.example).right


def test_backbones_that_could_be_confused_are_drawn_again(
    toy_materials: Materials,
    list_of: MakeList,
    store_of: MakeStore,
    pool_of: Callable[..., PathPool],
    paper: Callable[..., Any],
) -> None:
    # The line of 1 may be read as the title of 11; their normalised titles differ, so the pool allows the pair.
    papers = [paper(1, "Rivers", venue="Deep"), paper(11, "Rivers. Deep")]
    store = store_of([(s + n, s + n + 1) for s in (0, 10, 20) for n in (1, 2, 3)], papers)
    pool = pool_of(store, 2, [tuple(range(s + 1, s + 5)) for s in (0, 10, 20)])
    assert pool.index.compatible(0, 1)
    materials = islands(toy_materials, store, pool)
    restarts: Counter[str] = Counter()
    for index in range(20):
        built = ExampleBuilder(materials).build(replace(one(list_of, sizes=(4, 4)), index=index))
        restarts.update(built.record.building["restarts"])
        assert {1, 11} - {p for component in built.record.task_components for p in component.papers}
    assert set(restarts) == {"confusable"}


def test_needles_that_do_not_fit_are_told_with_the_least_length_that_would(
    toy_materials: Materials, list_of: MakeList
) -> None:
    settings = one(list_of, context_length=700)
    with pytest.raises(ImpossibleRequest, match=r"do not fit into 700 tokens .*the least of 20 tries was") as caught:
        ExampleBuilder(toy_materials).build(settings)
    assert caught.value.remedy is not None
    least = int(caught.value.remedy.split()[2])
    assert least > 700
    assert f"{least:,}" in caught.value.message
    # The qid, and so every draw, is another at another length; some example of about that length can be had.
    fitted = ExampleBuilder(toy_materials).build(replace(settings, context_length=least + 200))
    assert max(fitted.record.token_counts.values()) <= least + 200


def test_a_corpus_that_runs_out_leaves_the_prompt_short_and_says_so(
    toy_materials: Materials, list_of: MakeList
) -> None:
    settings = one(list_of, context_length=50_000)
    built = ExampleBuilder(toy_materials).build(settings)
    assert built.record.stopped == "exhausted"
    assert sorted(one["document"] for one in built.record.distractors) == [
        "deep/words.c",
        "ring.c",
        "ring.h",
        "sieve.py",
    ]
    assert all(one["kept"] == one["blocks"] for one in built.record.distractors)
    left_out = {one["document"]: one["left_out"] for one in built.record.distractors}
    assert left_out == {"deep/words.c": 1, "ring.c": 0, "ring.h": 0, "sieve.py": 0}
    with pytest.raises(ImpossibleRequest, match=r"the code distractors ran out at [\d,]+ of 50,000 tokens"):
        ExampleBuilder(toy_materials, strict_fill=True).build(settings)


def test_components_that_run_out_are_an_error(toy_materials: Materials, list_of: MakeList) -> None:
    settings = one(list_of, context_length=500_000, distractor_types=("disjoint-component",))
    with pytest.raises(ImpossibleRequest, match=r"the disjoint-component distractors ran out at [\d,]+ of 500,000"):
        ExampleBuilder(toy_materials).build(settings)
