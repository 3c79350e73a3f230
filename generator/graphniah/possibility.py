"""What a list asks for that its graph cannot give, found before the first example is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gniah.generator.graphniah.experiments import task_name
from gniah.generator.graphniah.pool_files import PathPool
from gniah.records.errors import ImpossibleRequest
from gniah.records.graphniah.settings import Settings


@dataclass(frozen=True, slots=True)
class Impossible:
    """One cell of a list that cannot be had: which, why, and the nearest setting that can."""

    cell: str
    reason: str
    remedy: str


def why_impossible(settings: Settings, pools: Mapping[int, PathPool]) -> Impossible | None:
    """Return why an example with these settings cannot exist, or None when nothing speaks against it."""
    depth, needed = settings.question_depth, settings.components
    if settings.component_node_count < settings.backbone_length:
        return Impossible(
            f"depth {depth}, size under {settings.backbone_length}",
            f"a component of depth {depth} has at least {settings.backbone_length} papers",
            f"use sizes of {settings.backbone_length} or more, or smaller depths",
        )
    pool = pools[depth]
    if not pool.index.has_group(needed):
        together = len(pool.index.largest_group_found())
        return Impossible(
            f"{task_name(settings.question_type)}, depth {depth}",
            f"{needed} paths must stand together, and of the {len(pool.paths)} paths of depth {depth} no more than "
            f"{together} do",
            "leave this depth or task out, sample more paths, or use a larger graph",
        )
    return None


class Possibility:
    """Answers for a whole list, each kind of cell once."""

    def __init__(self, pools: Mapping[int, PathPool]) -> None:
        self._pools = pools
        self._known: dict[tuple[str, int, bool], Impossible | None] = {}

    def of(self, settings: Settings) -> Impossible | None:
        """Return why a slot cannot be built, or None."""
        too_small = settings.component_node_count < settings.backbone_length
        cell = (settings.question_type, settings.question_depth, too_small)
        if cell not in self._known:
            self._known[cell] = why_impossible(settings, self._pools)
        return self._known[cell]


def refuse(found: Iterable[Impossible]) -> None:
    """Raise ImpossibleRequest that names every impossible cell, when there is one."""
    cells = list(dict.fromkeys(found))
    if not cells:
        return
    lines = [f"{cell.cell}: {cell.reason}" for cell in cells]
    raise ImpossibleRequest(
        "this graph cannot give all that is asked for:\n  " + "\n  ".join(lines),
        remedy=f"{cells[0].remedy}; or add --skip-impossible",
    )
