from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import chisquare

from gniah.generator.graphniah.experiments import ListSettings, slots, task_name, varied_value, written_length
from gniah.records.errors import UsageFault
from gniah.records.graphniah.settings import Settings

MakeList = Callable[..., ListSettings]

UNLIKELY = 1e-4
YES_NO, MULTIPLE, COUNTING = "reachability-yesno", "reachability-multiple", "reachability-counting"


def groups(labels: list[str | None], size: int) -> list[list[str | None]]:
    return [sorted(labels[start : start + size], key=str) for start in range(0, len(labels) - size + 1, size)]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"vary": "question-depth", "depths": (4, 8, 2)}, [4, 8, 2] * 4),
        ({"vary": "node-count", "varied_sizes": (20, 10)}, [20, 10] * 6),
        ({"vary": "question-format"}, ["yes-no", "multiple-choice", "counting"] * 4),
        ({"vary": "distractor-type"}, ["code", "disjoint-component"] * 6),
        ({}, [None] * 12),
    ],
)
def test_values_take_turns(list_of: MakeList, changed: dict[str, Any], expected: list[Any]) -> None:
    settings = list_of(**changed)
    assert [varied_value(slot, settings.vary) for slot in slots(settings)] == expected


@pytest.mark.parametrize("vary", [None, "question-depth", "question-format", "distractor-type"])
def test_labels_are_balanced_in_order_within_each_value(list_of: MakeList, vary: str | None) -> None:
    settings = list_of(count=400, vary=vary)
    by_cell: dict[tuple[str, Any], list[str | None]] = {}
    for slot in slots(settings):
        by_cell.setdefault((slot.question_type, varied_value(slot, vary)), []).append(slot.label)
    pairs = 0
    for (question_type, _), labels in by_cell.items():
        if question_type == COUNTING:
            assert set(labels) == {None}
            continue
        whole = ["NO", "YES"] if question_type == YES_NO else ["A", "B", "C", "D"]
        for group in groups(labels, len(whole)):
            assert group == whole
            pairs += 1
        assert len(set(map(tuple, zip(*[iter(labels)] * len(whole), strict=False)))) > 1
    assert pairs > 20


def test_both_orders_of_a_pair_are_equally_likely(list_of: MakeList) -> None:
    labels = [slot.label for slot in slots(list_of(count=4000, tasks=("yes-no",)))]
    assert chisquare(list(Counter(labels[::2]).values())).pvalue > UNLIKELY
    letters = [slot.label for slot in slots(list_of(count=4000, tasks=("multiple-choice",)))]
    for place in range(4):
        assert chisquare(list(Counter(letters[place::4]).values())).pvalue > UNLIKELY


def test_the_index_numbers_equal_settings_from_zero(list_of: MakeList) -> None:
    found = slots(list_of(count=300, sizes=(7, 8), depths=(2,)))
    assert len(set(found)) == 300
    numbers: dict[Settings, list[int]] = {}
    for slot in found:
        numbers.setdefault(replace(slot, index=0), []).append(slot.index)
    assert len(numbers) < 300
    for given in numbers.values():
        assert given == list(range(len(given)))


def test_free_variables_are_uniform_and_independent(list_of: MakeList) -> None:
    found = slots(list_of(count=6000, depths=(2, 3, 4), sizes=(10, 14)))
    assert {slot.component_node_count for slot in found} == set(range(10, 15))
    for counts in (
        Counter(slot.question_type for slot in found),
        Counter(slot.question_depth for slot in found),
        Counter(slot.component_node_count for slot in found),
        Counter(slot.distractor_type for slot in found),
    ):
        assert chisquare(list(counts.values())).pvalue > UNLIKELY
    cells = Counter(
        (slot.question_type, slot.question_depth, slot.component_node_count, slot.distractor_type) for slot in found
    )
    assert len(cells) == 3 * 3 * 5 * 2
    assert chisquare(list(cells.values())).pvalue > UNLIKELY


def test_slots_carry_the_settings_of_the_list(list_of: MakeList) -> None:
    for slot in slots(list_of(seed=7, alpha="2.5", context_length=1234)):
        assert (slot.seed, slot.alpha, slot.context_length) == (7, "2.5", 1234)
        assert (slot.cutoff_date, slot.templates) == ("2010-01-01", "plain")
        assert slot.distractor_type in ("code", "disjoint-tree")


def test_a_longer_list_is_another_list_and_so_are_a_new_name_and_seed(list_of: MakeList) -> None:
    first = slots(list_of())
    assert slots(list_of()) == first
    for changed in ({"name": "other"}, {"seed": 2}, {"count": 13}, {"alpha": "0.2"}):
        other = slots(list_of(**changed))
        drawn = [
            [(s.question_type, s.question_depth, s.component_node_count) for s in some[:12]] for some in (first, other)
        ]
        assert drawn[0] != drawn[1]


def test_lists_share_examples_through_equal_settings_with_equal_index(list_of: MakeList) -> None:
    few = {"sizes": (7, 7), "depths": (2,), "tasks": ("counting",), "distractor_types": ("code",), "count": 5}
    assert slots(list_of(**few)) == slots(list_of(**few, name="other"))


def test_the_path_is_that_of_the_dataset_card(list_of: MakeList) -> None:
    assert list_of(depths=(8, 4), context_length=200_000, name="node-count").path == (
        "cutoff_date=2010-01-01/hops=10-22/context_length=200k/seed=1/alpha=0.1/vary=node-count/experiment.jsonl"
    )
    assert (written_length(922_000), written_length(2500)) == ("922k", "2500")


def test_tasks_have_their_public_names() -> None:
    assert [task_name(kind) for kind in (YES_NO, MULTIPLE, COUNTING)] == ["yes-no", "multiple-choice", "counting"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "a b"}, "--name takes letters, digits, dots, dashes and underscores, not 'a b'"),
        ({"name": "../x"}, "--name takes"),
        ({"name": ""}, "--name takes"),
        ({"tasks": ()}, "at least one task is needed; known are yes-no, multiple-choice, counting"),
        ({"tasks": ("yesno",)}, "there is no task 'yesno'; known are"),
        ({"tasks": ("counting", "counting")}, "a task is given twice: counting, counting"),
        ({"distractor_types": ("disjoint-tree",)}, "there is no distractor type 'disjoint-tree'; known are code"),
        ({"vary": "alpha"}, "there is no variable 'alpha'; known are question-depth"),
        ({"count": 0}, "--count must be at least 1, not 0"),
        ({"context_length": 0}, "--context-length must be at least 1, not 0"),
        ({"sizes": (0, 3)}, "--sizes must be at least 1, not 0"),
        ({"sizes": (9, 8)}, "--sizes 9-8 runs backwards"),
        ({"depths": (4, 1)}, "--depths must be at least 2, not 1"),
        ({"depths": ()}, "at least one question depth is needed"),
        ({"vary": "node-count"}, "--vary node-count needs the sizes that take turns"),
        ({"vary": "node-count", "varied_sizes": (8, 0)}, "--varied-sizes must be at least 1, not 0"),
        ({"alpha": "0.10"}, "write alpha in its shortest form, 0.1"),
        ({"alpha": "01"}, "write alpha in its shortest form, 1"),
        ({"alpha": "0"}, "alpha must be a decimal over 0 such as 0.1, not '0'"),
        ({"alpha": "-1"}, "alpha must be a decimal over 0"),
        ({"alpha": "1e-3"}, "alpha must be a decimal over 0"),
        ({"alpha": "0.0000001"}, "alpha must be a decimal over 0"),
        ({"alpha": "nan"}, "alpha must be a decimal over 0"),
    ],
)
def test_settings_that_make_no_list_are_refused(list_of: MakeList, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageFault, match=message.replace("(", r"\(")):
        list_of(**changed)
