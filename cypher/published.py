"""A pool's examples as a graph that a person can walk through: the tables of it, and an example as their rows.

    (:Example {qid, task, answer, k, size, components, cutoff_date, source, target})
    (:Example)-[:HAS_COMPONENT]->(:Component {key, qid, index, role})-[:CONTAINS {step, backbone}]->(:Paper)
    (:Example)-[:HAS_OPTION {label}]->(:Paper), and -[:HAS_SOURCE]-> and -[:HAS_TARGET]->
    (:Paper)-[:IN_TEXT {qid, component}]->(:Paper)         a citation that the text of an example shows
    (:Paper)-[:ON_TRUE_PATH {qid, step, cites}]->(:Paper)  a step of the true path, from the source to the target

Papers are those of the citation graph. One that the graph does not have is a `MissingPaper {corpusid}` in their place.
The step of `CONTAINS` counts from 0: the backbone first, then the order of growth. The steps of a true path count
from 1. What is unknown is absent.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from gniah.records.manifests import MANIFEST_NAME

PUBLISHED_SCHEMA = "gniah/published-graph/1"
"""The manifest of a folder of published examples."""

PAPER = "Paper"
MISSING = "MissingPaper"

Rows = dict[str, list[tuple[Any, ...]]]
"""Rows by table; columns in the order of the table, those of a relationship behind the keys of its two ends."""

NODES: Mapping[str, Mapping[str, str]] = {
    "Example": {
        "qid": "STRING",
        "task": "STRING",
        "answer": "STRING",
        "k": "INT64",
        "size": "INT64",
        "components": "INT64",
        "cutoff_date": "DATE",
        "source": "INT64",
        "target": "INT64",
    },
    "Component": {"key": "STRING", "qid": "STRING", "index": "INT64", "role": "STRING"},
}
"""Columns and types of the nodes, the key first."""

KEYS: Mapping[str, str] = {"Example": "qid", "Component": "key", PAPER: "corpusid", MISSING: "corpusid"}


@dataclass(frozen=True, slots=True)
class Relation:
    """A type of relationships: the labels of its ends (a paper may be missing everywhere), its columns and types."""

    name: str
    start: str
    end: str
    columns: Mapping[str, str]


RELATIONS = (
    Relation("HAS_COMPONENT", "Example", "Component", {}),
    Relation("HAS_OPTION", "Example", PAPER, {"label": "STRING"}),
    Relation("HAS_SOURCE", "Example", PAPER, {}),
    Relation("HAS_TARGET", "Example", PAPER, {}),
    Relation("CONTAINS", "Component", PAPER, {"step": "INT64", "backbone": "BOOL"}),
    Relation("IN_TEXT", PAPER, PAPER, {"qid": "STRING", "component": "INT64"}),
    Relation("ON_TRUE_PATH", PAPER, PAPER, {"qid": "STRING", "step": "INT64", "cites": "BOOL"}),
)


@dataclass(frozen=True, slots=True)
class PublishedComponent:
    """A component: `papers` in the order of their steps, the first `backbone` of them its backbone.

    `citations` are (citing, cited), as often as the text shows each.
    """

    role: str
    backbone: int
    papers: tuple[int, ...]
    citations: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PublishedExample:
    """What a graph shows of one example. `components` is how many the task needs, `parts` are all that are there.

    `target` is None where there is none. `true_path` are the papers from source to target, () where none leads there.
    """

    qid: str
    task: str
    answer: str
    k: int
    size: int
    components: int
    cutoff_date: datetime.date
    source: int
    target: int | None
    options: tuple[tuple[str, int], ...]
    parts: tuple[PublishedComponent, ...]
    true_path: tuple[int, ...]

    def papers(self) -> set[int]:
        """Return the ids of all papers that it names."""
        named = {self.source, *(paper for _, paper in self.options), *self.true_path}
        if self.target is not None:
            named.add(self.target)
        for part in self.parts:
            named.update(part.papers)
            named.update(paper for citation in part.citations for paper in citation)
        return named

    def rows(self) -> Rows:
        """Return the example as rows of every table."""
        rows: Rows = {name: [] for name in (*NODES, *(relation.name for relation in RELATIONS))}
        rows["Example"] = [tuple(getattr(self, column) for column in NODES["Example"])]
        rows["HAS_OPTION"] = [(self.qid, paper, label) for label, paper in self.options]
        rows["HAS_SOURCE"] = [(self.qid, self.source)]
        rows["HAS_TARGET"] = [] if self.target is None else [(self.qid, self.target)]
        for index, part in enumerate(self.parts):
            key = f"{self.qid}/{index}"
            rows["Component"].append((key, self.qid, index, part.role))
            rows["HAS_COMPONENT"].append((self.qid, key))
            rows["CONTAINS"] += [(key, paper, step, step < part.backbone) for step, paper in enumerate(part.papers)]
            rows["IN_TEXT"] += [(citing, cited, self.qid, index) for citing, cited in part.citations]
        shown = {citation for part in self.parts for citation in part.citations}
        rows["ON_TRUE_PATH"] = [
            (one, other, self.qid, step, (one, other) in shown)
            for step, (one, other) in enumerate(pairwise(self.true_path), start=1)
        ]
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return the example as one object."""
        return {
            "qid": self.qid,
            "task": self.task,
            "answer": self.answer,
            "k": self.k,
            "size": self.size,
            "components": self.components,
            "cutoff_date": self.cutoff_date.isoformat(),
            "source": self.source,
            "target": self.target,
            "options": dict(self.options),
            "parts": [
                {
                    "role": part.role,
                    "backbone": part.backbone,
                    "papers": list(part.papers),
                    "citations": [list(citation) for citation in part.citations],
                }
                for part in self.parts
            ],
            "true_path": list(self.true_path),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PublishedExample:
        """Read what `to_json` gave. Raises KeyError, TypeError or ValueError for anything else."""
        plain = {name: value[name] for name in ("qid", "task", "answer", "k", "size", "components", "source", "target")}
        return cls(
            **plain,
            cutoff_date=datetime.date.fromisoformat(value["cutoff_date"]),
            options=tuple(value["options"].items()),
            parts=tuple(
                PublishedComponent(
                    part["role"],
                    part["backbone"],
                    tuple(part["papers"]),
                    tuple((citing, cited) for citing, cited in part["citations"]),
                )
                for part in value["parts"]
            ),
            true_path=tuple(value["true_path"]),
        )


def joined_rows(examples: Iterable[PublishedExample]) -> Rows:
    """Return the rows of several examples, by table."""
    joined: Rows = {name: [] for name in (*NODES, *(relation.name for relation in RELATIONS))}
    for example in examples:
        for name, rows in example.rows().items():
            joined[name] += rows
    return joined


def is_published(folder: Path) -> bool:
    """Whether a folder says that it holds published examples."""
    try:
        value = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    schema = value.get("schema") if isinstance(value, dict) else None
    return isinstance(schema, str) and schema.rpartition("/")[0] == PUBLISHED_SCHEMA.rpartition("/")[0]
