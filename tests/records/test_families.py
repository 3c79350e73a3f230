from __future__ import annotations

from importlib import metadata

import pytest

from gniah.records.errors import InputError
from gniah.records.families import Family, Task, families, family_of, load
from gniah.records.graphniah import FAMILY


def test_the_entry_point_is_found() -> None:
    assert families()["graphniah"] is FAMILY
    points = metadata.entry_points(group="gniah.families")
    assert {point.name: point.value for point in points}["graphniah"] == "gniah.records.graphniah:FAMILY"


@pytest.mark.parametrize(
    ("question_type", "name"),
    [
        ("reachability-yesno", "yes-no"),
        ("reachability-multiple", "multiple-choice"),
        ("reachability-counting", "counting"),
    ],
)
def test_a_question_type_names_its_family_and_task(question_type: str, name: str) -> None:
    family, task = family_of(question_type)
    assert (family.name, task.name) == ("graphniah", name)


def test_an_unknown_question_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no installed family knows the question type 'needle'") as caught:
        family_of("needle")
    assert "reachability-counting, reachability-multiple, reachability-yesno" in caught.value.message


def test_a_family_without_the_task_says_so() -> None:
    family = Family("x", (Task("one", "t1", "A1"),), "m:solve", "m:SCORER")
    assert family.task_of("t1") == Task("one", "t1", "A1")
    assert family.task_of("t2") is None


def test_every_reference_of_every_family_can_be_loaded() -> None:
    for family in families().values():
        assert callable(load(family.text_solver))
        assert load(family.scorer) is not None
        for spec in family.commands.values():
            assert callable(load(spec.reference))
            assert spec.summary
