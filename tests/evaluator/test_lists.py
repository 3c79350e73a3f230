"""The range of right answers, from the settings of the lists beside a file of examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gniah.evaluator.lists import count_range_of


def put(folder: Path, name: str, settings: object) -> None:
    path = folder / f"cutoff_date=2026-04-01/hops=10/context_length=200k/seed=1/alpha=0.1/vary={name}"
    path.mkdir(parents=True)
    text = settings if isinstance(settings, str) else json.dumps({"schema": "gniah/experiment/1", "list": settings})
    (path / "experiment.jsonl.settings.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], None),
        ([{"component_node_counts": [100, 250]}], (99, 249)),
        ([{"component_node_counts": [20, 30], "varied_sizes": []}], (19, 29)),
        ([{"component_node_counts": [30, 40], "varied_sizes": [10, 60]}], (9, 59)),
        ([{"component_node_counts": [20, 30]}, {"component_node_counts": [50, 60]}], (19, 59)),
        ([{"component_node_counts": ["20", 30]}], None),
        ([{"name": "says no sizes"}, {"component_node_counts": [5, 5]}], (4, 4)),
        (["not JSON", {"component_node_counts": [5, 6]}], (4, 5)),
        ([[1, 2]], None),
    ],
)
def test_the_range_covers_every_list_that_says_its_sizes(
    lists: list[Any], expected: tuple[int, int] | None, tmp_path: Path
) -> None:
    for number, settings in enumerate(lists):
        put(tmp_path, f"list-{number}", settings)
    assert count_range_of(tmp_path / "examples.jsonl") == expected


def test_lists_of_another_folder_are_not_looked_at(tmp_path: Path) -> None:
    put(tmp_path, "here", {"component_node_counts": [20, 30]})
    assert count_range_of(tmp_path / "elsewhere" / "examples.jsonl") is None
