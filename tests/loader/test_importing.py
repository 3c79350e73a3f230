from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gniah.cypher import open_store
from gniah.records.manifests import Manifest

Make = Callable[..., dict[str, Any]]


def load(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from gniah.loader.cli import main; main()", *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )


@pytest.fixture
def graph(shard: Callable[..., Path], paper: Make, tmp_path: Path) -> Path:
    shard("p/0.gz", [paper(1), paper(2, title='It\'s "two" {x}'), paper(3, authors=[]), paper(4)])
    shard(
        "c/0.gz",
        [
            {"citingcorpusid": 1, "citedcorpusid": 2, "isinfluential": True},
            {"citingcorpusid": 2, "citedcorpusid": 1},
            {"citingcorpusid": 3, "citedcorpusid": 1},
            {"citingcorpusid": 3, "citedcorpusid": 99},
        ],
    )
    folder = tmp_path / "it's a graph"
    done = load("filter", "--papers", tmp_path / "p", "--citations", tmp_path / "c", "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_import_builds_a_store_of_what_filter_wrote(graph: Path, tmp_path: Path) -> None:
    done = load("import", graph, "--store", tmp_path / "store")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["what       count", "---------  -----", "papers         4", "citations      3"]
    assert done.stderr.startswith(f"{tmp_path / 'store'}: built in ")
    with open_store(str(tmp_path / "store")) as store:
        assert store.neighbours([1, 2, 3, 4], "cites") == [[2], [1], [1], []]
        assert store.usable_papers()[0].tolist() == [1, 2, 4]
        assert store.papers([2])[0].title == 'It\'s "two" {x}'
        assert store.manifest.digest == Manifest.read(graph, "gniah/graph/1").digest


def test_a_store_that_holds_the_graph_is_used_again_unless_forced(graph: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    load("import", graph, "--store", store)
    first = (store / "manifest.json").read_bytes()
    again = load("import", graph, "--store", store, "--json")
    assert again.returncode == 0
    assert again.stderr == f"{store}: holds this graph already; nothing to do\n"
    digest = Manifest.read(graph, "gniah/graph/1").digest
    assert json.loads(again.stdout) == {"store": str(store), "graph": digest, "papers": 4, "citations": 3}
    assert (store / "manifest.json").read_bytes() == first
    forced = load("import", graph, "--store", store, "--force")
    assert forced.stderr.startswith(f"{store}: built in ")
    assert (store / "manifest.json").read_bytes() != first


def test_a_damaged_store_is_built_again_without_force(graph: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    load("import", graph, "--store", store)
    (store / "graph.lbug").write_bytes((store / "graph.lbug").read_bytes()[:8192])
    broken = load("stats", "--store", store)
    assert (broken.returncode, broken.stdout) == (5, "")
    assert "to mend it: build the store again with gniah-load import --force" in broken.stderr
    assert load("import", graph, "--store", store).returncode == 0
    assert load("stats", "--store", store).returncode == 0


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (lambda graph: (graph / "papers.parquet").unlink(), 3, "papers.parquet: no such file"),
        (lambda graph: (graph / "manifest.json").unlink(), 3, "there is no manifest.json here"),
        (lambda graph: (graph / "citations.parquet").write_bytes(b"PAR1"), 3, "run gniah-load filter again"),
        (lambda graph: shutil.copy(graph / "citations.parquet", graph / "papers.parquet"), 3, "run gniah-load filter"),
    ],
)
def test_a_damaged_graph_is_bad_input_and_leaves_no_store(
    graph: Path, tmp_path: Path, damage: Callable[[Path], object], code: int, message: str
) -> None:
    damage(graph)
    done = load("import", graph, "--store", tmp_path / "store")
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not (tmp_path / "store").exists()


def test_import_never_replaces_something_else(graph: Path, tmp_path: Path) -> None:
    for words in ((), ("--force",)):
        done = load("import", graph, "--store", graph, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "holds something that is not a store" in done.stderr
    assert (graph / "papers.parquet").is_file()


@pytest.mark.parametrize("address", ["ftp://localhost", "bolt://user:secret@localhost"])
def test_an_address_that_names_no_store_is_wrong_use(graph: Path, address: str) -> None:
    done = load("import", graph, "--store", address)
    assert done.returncode == 2
    assert "to mend it: " in done.stderr
    assert "secret" not in done.stderr
