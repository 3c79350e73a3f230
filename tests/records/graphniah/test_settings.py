from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.records.errors import InputError, UsageFault
from gniah.records.graphniah.settings import (
    Settings,
    alpha_fraction,
    decimal_text,
    distractor_in_files,
    distractor_in_tables,
)


def settings(**more: Any) -> Settings:
    values: dict[str, Any] = {
        "question_type": "reachability-yesno",
        "question_depth": 4,
        "component_node_count": 100,
        "distractor_type": "disjoint-tree",
        "context_length": 200_000,
        "label": "YES",
        "index": 0,
        "seed": 1,
        "alpha": "0.1",
        "cutoff_date": "2026-04-01",
        "templates": "plain",
    }
    return Settings(**(values | more))


@pytest.mark.parametrize(
    "written",
    [
        settings(),
        settings(question_type="reachability-multiple", label="C"),
        settings(question_type="reachability-counting", label=None),
        settings(distractor_type="wikipedia"),
    ],
)
def test_round_trip_through_the_config(written: Settings) -> None:
    assert Settings.from_config(written.config(), "here") == written


def test_the_config_says_by_which_queries_passages_are_found() -> None:
    plain, passages = (settings(distractor_type=name).config() for name in ("code", "wikipedia"))
    assert passages == plain | {"distractor_type": "wikipedia", "distractor_queries": "paper-titles"}
    del passages["distractor_queries"]
    assert Settings.from_config(passages, "here") == settings(distractor_type="wikipedia")
    with pytest.raises(InputError, match="here: the config has distractor_queries 'abstracts'"):
        Settings.from_config(passages | {"distractor_queries": "abstracts"}, "here")


def test_the_config_of_each_task() -> None:
    common = {
        "question_depth": 4,
        "component_node_count": 100,
        "distractor_type": "disjoint-tree",
        "context_length": 200_000,
        "none_option": 0,
        "alpha": "0.1",
        "cutoff_date": "2026-04-01",
        "traversal_mode": "undirected",
        "needle_type": "paper",
        "needle_order": "random",
        "template_set": "plain",
        "seed": 1,
        "index": 0,
    }
    assert settings().config() == common | {"question_format": "reachability-yesno", "answer_condition": "YES"}
    assert settings(question_type="reachability-counting", label=None).config() == (
        common | {"question_format": "reachability-counting"}
    )
    assert settings(question_type="reachability-multiple", label="B").config() == (
        common | {"question_format": "reachability-multiple", "num_options": 4, "answer_condition": "B"}
    )


def test_components_and_lengths() -> None:
    assert [settings(question_depth=k).backbone_length for k in (2, 4, 8, 16, 32)] == [4, 10, 22, 46, 94]
    assert settings().components == settings(question_type="reachability-counting").components == 2
    assert settings(question_type="reachability-multiple").components == 4


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in settings().config()
        if name not in {"none_option", "traversal_mode", "needle_type", "needle_order", "answer_condition"}
    ],
)
def test_a_config_without_a_setting_is_refused(name: str) -> None:
    config = settings().config()
    del config[name]
    with pytest.raises(InputError, match=f"^here: the config lacks {name}$"):
        Settings.from_config(config, "here")


@pytest.mark.parametrize(
    ("name", "value"), [("question_depth", "4"), ("seed", None), ("alpha", 1), ("cutoff_date", None), ("index", True)]
)
def test_a_config_with_a_wrong_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^here: the config has {name} "):
        Settings.from_config(settings().config() | {name: value}, "here")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1", Fraction(1, 10)), ("1", Fraction(1)), ("10", Fraction(10)), ("0.000001", Fraction(1, 10**6))],
)
def test_alpha_is_an_exact_fraction(text: str, value: Fraction) -> None:
    assert alpha_fraction(text) == value


@pytest.mark.parametrize(
    "text", ["0", "0.0", "-1", ".5", "1.", "1e3", "0.0000001", "", "nan", "1/2", " 1", "1\n", "0,1", "٠.١"]
)
def test_other_spellings_of_alpha_are_refused(text: str) -> None:
    with pytest.raises(UsageFault, match="alpha must be a decimal over 0"):
        alpha_fraction(text)


@given(st.integers(1, 10**9))
def test_the_shortest_decimal_reads_back(millionths: int) -> None:
    value = Fraction(millionths, 10**6)
    text = decimal_text(value)
    assert Fraction(text) == value
    assert not text.endswith((".", ".0"))
    assert "." not in text or not text.endswith("0")


def test_the_two_names_of_a_distractor_type() -> None:
    assert distractor_in_files("disjoint-component") == "disjoint-tree"
    assert distractor_in_tables("disjoint-tree") == "disjoint-component"
    assert distractor_in_files("code") == distractor_in_tables("code") == "code"
