"""GraphNIAH's registration: its tasks, and where its parts are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.families import CommandSpec, Family, Task
from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.records.graphniah.pool import ComponentRecord, Needle, PoolRecord, find_record, pool_path, read_pool
    from gniah.records.graphniah.settings import Settings
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "pool": ("ComponentRecord", "Needle", "PoolRecord", "find_record", "pool_path", "read_pool"),
            "settings": ("Settings",),
        },
    )

YES_NO = Task("yes-no", "reachability-yesno", "REACHABILITY_YESNO")
MULTIPLE_CHOICE = Task("multiple-choice", "reachability-multiple", "REACHABILITY_MULTIPLE")
COUNTING = Task("counting", "reachability-counting", "REACHABILITY_COUNTING")

_COMMANDS = "gniah.generator.graphniah.commands"
_GRAPH_COMMANDS = "gniah.generator.graphniah.graph_commands"

FAMILY = Family(
    name="graphniah",
    tasks=(YES_NO, MULTIPLE_CHOICE, COUNTING),
    text_solver="gniah.generator.graphniah.text_solver:solve",
    scorer="gniah.evaluator.graphniah.scoring:SCORER",
    commands={
        "paths": CommandSpec(f"{_COMMANDS}:paths", "Prune the graph and sample a pool of citation paths."),
        "examples": CommandSpec(f"{_COMMANDS}:examples", "Build examples and write the published files."),
        "merge": CommandSpec(f"{_COMMANDS}:merge", "Join the parts that several machines built."),
        "none-variants": CommandSpec(
            f"{_COMMANDS}:none_variants", "Append a fifth option to multiple-choice examples."
        ),
        "audit": CommandSpec(f"{_GRAPH_COMMANDS}:audit", "Prove a pool sound by Cypher queries."),
        "publish-graph": CommandSpec(
            f"{_GRAPH_COMMANDS}:publish_graph", "Write a pool's examples as a graph to walk through."
        ),
        "show": CommandSpec(f"{_COMMANDS}:show", "Print one example and its proof; draw its subgraph."),
        "quickstart": CommandSpec(f"{_COMMANDS}:quickstart", "The whole job on a small graph that ships with gniah."),
    },
)

__all__ = [
    "COUNTING",
    "FAMILY",
    "MULTIPLE_CHOICE",
    "YES_NO",
    "ComponentRecord",
    "Needle",
    "PoolRecord",
    "Settings",
    "find_record",
    "pool_path",
    "read_pool",
]
