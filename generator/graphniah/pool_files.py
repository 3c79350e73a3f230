"""The two files of a pool of paths, in the layout of the dataset card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gniah.generator.graphniah.compatibility import CompatibilityIndex
from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.files import read_json, write_json
from gniah.records.manifests import Manifest, check_schema

PATHS_SCHEMA = "gniah/sampled-paths/1"
GROUPS_SCHEMA = "gniah/disjoint-path-groups/1"
SEARCH_SCHEMA = "gniah/path-search/1"
PATHS_NAME = "sampled_paths.json"
GROUPS_NAME = "disjoint_path_groups.json"


def path_length(question_depth: int) -> int:
    """Return how many papers a backbone has: 3k - 2."""
    return 3 * question_depth - 2


def pool_folder(out: Path, cutoff: str, question_depth: int) -> Path:
    """Return where the pool of a depth lies below an output folder."""
    return out / f"data.{cutoff}" / f"hops={path_length(question_depth)}" / "papers-only"


@dataclass(frozen=True)
class PathPool:
    """The sampled paths of one depth, and which of them can stand together."""

    question_depth: int
    graph: str
    cutoff: str
    seed: int
    paths: tuple[tuple[int, ...], ...]
    index: CompatibilityIndex

    @cached_property
    def digest(self) -> str:
        """Return the hash of all that examples take from the pool."""
        return digest({"graph": self.graph, "question_depth": self.question_depth, "paths": self.paths})

    def write(self, folder: Path, manifest: Manifest) -> None:
        """Write both files, then the manifest, whose presence says that the folder is complete."""
        write_json(
            folder / PATHS_NAME,
            {
                "schema": PATHS_SCHEMA,
                "digest": self.digest,
                "graph": self.graph,
                "cutoff_date": self.cutoff,
                "question_depth": self.question_depth,
                "path_length": path_length(self.question_depth),
                "seed": self.seed,
                "paths": [list(path) for path in self.paths],
            },
        )
        write_json(
            folder / GROUPS_NAME,
            {
                "schema": GROUPS_SCHEMA,
                "paths": self.digest,
                "largest_group_found": list(self.index.largest_group_found()),
                "compatible": self.index.rows_hex(),
            },
        )
        manifest.write(folder)

    @classmethod
    def read(cls, folder: Path) -> PathPool:
        """Read a pool. Raises InputError when it is incomplete or its files do not belong together."""
        path = folder / PATHS_NAME
        if not path.is_file():
            raise InputError(f"{path}: no such file", remedy="sample the paths of this depth with gniah-gen paths")
        value = read_json(path)
        check_schema(value.get("schema"), PATHS_SCHEMA, str(path))
        groups = read_json(folder / GROUPS_NAME)
        check_schema(groups.get("schema"), GROUPS_SCHEMA, str(folder / GROUPS_NAME))
        try:
            paths = tuple(_checked(item, value["path_length"]) for item in value["paths"])
            pool = cls(
                value["question_depth"],
                value["graph"],
                value["cutoff_date"],
                value["seed"],
                paths,
                CompatibilityIndex.from_hex(groups["compatible"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: not a whole pool of paths: {error!r}", remedy="sample the paths again") from None
        if not pool.digest == value["digest"] == groups["paths"]:
            raise InputError(
                f"{folder}: the files were changed or do not belong together", remedy="sample the paths again"
            )
        return pool


def _checked(path: Sequence[Any], length: int) -> tuple[int, ...]:
    if len(path) != length or not all(type(identifier) is int for identifier in path):
        raise ValueError(f"a path needs {length} ids")
    return tuple(path)
