"""A small real benchmark, made once by the commands that a user would type."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gniah.loader.shipped import rfc_shards

# Makes the programs importable whatever the import mode, under one name.
if "programs" not in sys.modules:
    spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["programs"] = module
    spec.loader.exec_module(module)

from programs import Finished, Rfc, call_program


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
