"""The settings of one GraphNIAH example: what its `config` publishes, and what its qid is made from."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gniah.records.errors import InputError, UsageFault

# How a distractor type is called on the command line and in tables, and in files.
DISTRACTOR_TYPES = ("code", "essays", "books", "wikipedia", "disjoint-component")
_IN_FILES = {"disjoint-component": "disjoint-tree"}
_IN_TABLES = {name: shown for shown, name in _IN_FILES.items()}

# By which queries passages of Wikipedia are found: the titles of the example's papers.
QUERIED_TYPE, DISTRACTOR_QUERIES = "wikipedia", "paper-titles"
NONE_OPTION = "None of these targets is reachable from the source."


def distractor_in_files(shown: str) -> str:
    """Return the name of a distractor type in files: disjoint-component is disjoint-tree there."""
    return _IN_FILES.get(shown, shown)


def distractor_in_tables(stored: str) -> str:
    """Return the name of a distractor type on the command line, in tables and in prose."""
    return _IN_TABLES.get(stored, stored)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one example. `label` is the planned answer of yes-no and multiple-choice, else None.

    `alpha` is a decimal string, as it stands in files. `distractor_type` is the name in files.
    """

    question_type: str
    question_depth: int
    component_node_count: int
    distractor_type: str
    context_length: int
    label: str | None
    index: int
    seed: int
    alpha: str
    cutoff_date: str
    templates: str

    @property
    def components(self) -> int:
        """How many components the task needs."""
        return 4 if self.question_type == "reachability-multiple" else 2

    @property
    def backbone_length(self) -> int:
        """How many papers a backbone has: 3k - 2."""
        return 3 * self.question_depth - 2

    def config(self) -> dict[str, Any]:
        """Return the settings as the `config` of an example."""
        value: dict[str, Any] = {
            "question_depth": self.question_depth,
            "component_node_count": self.component_node_count,
            "question_format": self.question_type,
            "distractor_type": self.distractor_type,
            "context_length": self.context_length,
            "none_option": 0,
            "alpha": self.alpha,
            "cutoff_date": self.cutoff_date,
            "traversal_mode": "undirected",
            "needle_type": "paper",
            "needle_order": "random",
            "template_set": self.templates,
            "seed": self.seed,
            "index": self.index,
        }
        if self.question_type == "reachability-multiple":
            value["num_options"] = 4
        if self.label is not None:
            value["answer_condition"] = self.label
        if self.distractor_type == QUERIED_TYPE:
            value["distractor_queries"] = DISTRACTOR_QUERIES
        return value

    @classmethod
    def from_config(cls, config: Mapping[str, Any], where: str) -> Settings:
        """Read settings back from a `config` that this version wrote, or one without `distractor_queries`.

        Raises InputError.
        """
        try:
            settings = cls(
                question_type=config["question_format"],
                question_depth=config["question_depth"],
                component_node_count=config["component_node_count"],
                distractor_type=config["distractor_type"],
                context_length=config["context_length"],
                label=config.get("answer_condition"),
                index=config["index"],
                seed=config["seed"],
                alpha=config["alpha"],
                cutoff_date=config["cutoff_date"],
                templates=config["template_set"],
            )
        except KeyError as error:
            raise InputError(f"{where}: the config lacks {error.args[0]}") from None
        queries = config.get("distractor_queries", DISTRACTOR_QUERIES)
        if queries != DISTRACTOR_QUERIES:
            raise InputError(f"{where}: the config has distractor_queries {queries!r}, which this version cannot make")
        for name, kind in _KINDS.items():
            found = getattr(settings, name)
            if not isinstance(found, kind) or isinstance(found, bool):
                raise InputError(f"{where}: the config has {name} {found!r}, which is no {kind.__name__}")
        try:
            datetime.date.fromisoformat(settings.cutoff_date)
        except ValueError:
            raise InputError(f"{where}: the config has cutoff_date {settings.cutoff_date!r}, which is no day") from None
        return settings


_KINDS: Mapping[str, type] = {
    "question_type": str,
    "question_depth": int,
    "component_node_count": int,
    "distractor_type": str,
    "context_length": int,
    "index": int,
    "seed": int,
    "alpha": str,
    "cutoff_date": str,
    "templates": str,
}


def alpha_fraction(text: str) -> Fraction:
    """Return the concentration parameter as an exact fraction.

    Raises UsageFault unless the text is a decimal over 0 with at most six digits after the point.
    """
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII) or not Fraction(text):
        raise UsageFault(f"alpha must be a decimal over 0 such as 0.1, not {text!r}")
    return Fraction(text)


def decimal_text(value: Fraction) -> str:
    """Return the shortest decimal spelling of a fraction whose denominator divides a power of ten."""
    text = f"{value.numerator * 10**6 // value.denominator:07d}"
    whole, rest = text[:-6], text[-6:].rstrip("0")
    return f"{whole}.{rest}" if rest else whole
