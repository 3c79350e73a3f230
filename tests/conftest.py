"""A small real benchmark, made once by the commands that a user would type."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gniah.loader.shipped import rfc_shards

# Makes the modules beside this one importable whatever the import mode, each under one name.
for _name in ("programs", "places", "neo4j_fixtures", "spark_fixtures", "tasks_for_spark", "tokenizer_files"):
    if _name not in sys.modules:
        _spec = importlib.util.spec_from_file_location(_name, Path(__file__).with_name(f"{_name}.py"))
        assert _spec is not None and _spec.loader is not None
        _module = importlib.util.module_from_spec(_spec)
        sys.modules[_name] = _module
        _spec.loader.exec_module(_module)

from neo4j_fixtures import empty_neo4j, neo4j_server  # noqa: E402
from programs import Finished, Rfc, call_program  # noqa: E402
from spark_fixtures import spark_cluster, spark_needs, spark_session  # noqa: E402

__all__ = ["empty_neo4j", "neo4j_server", "spark_cluster", "spark_needs", "spark_session"]


@pytest.fixture(scope="session")
def gniah() -> Callable[..., Finished]:
    """Run a command of any of the three programs in a process of its own."""
    return call_program


@pytest.fixture(scope="session")
def rfc(tmp_path_factory: pytest.TempPathFactory) -> Rfc:
    """Return a real benchmark of eight examples, and all that it was made from."""
    folder = tmp_path_factory.mktemp("rfc")
    shards = rfc_shards()
    made = Rfc(
        *(folder / name for name in ("graph", "store", "paths", "bench", "run")),
        Path(__file__).parent / "data" / "code",
        shards.cutoff.isoformat(),
    )
    steps: Sequence[Sequence[str | Path]] = (
        [
            *("filter", "--papers", shards.papers, "--citations", shards.citations),
            *("--cutoff", made.cutoff, "--out", made.graph),
        ],
        ("import", made.graph, "--store", made.store),
        ("paths", "--store", made.store, "--out", made.paths, "--depths", "2,3", "--count", "100"),
        made.example_words(made.bench),
        ("run", made.bench, "--model", "text-solver", "--model", "random", "--out", made.run),
    )
    for words in steps:
        done = call_program(*words)
        assert done.code == 0, done.err
    return made
