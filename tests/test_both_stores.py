"""The whole job on a real Neo4j and on the embedded store: the same files, byte for byte."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from neo4j_fixtures import Running
from programs import Finished, Rfc, program_of

Call = Callable[..., Finished]
pytestmark = pytest.mark.neo4j

PATHS = ("--depths", "2,3", "--count", "100")


@pytest.fixture
def server(empty_neo4j: Running, rfc: Rfc, gniah: Call, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with the RFC graph, whose password the environment names."""
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
    done = gniah("import", rfc.graph, "--store", empty_neo4j.address)
    assert done.code == 0, done.err
    return empty_neo4j


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file by its relative name; of manifests what does not tell of time and machine."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.name == "manifest.json":
                value = json.loads(content)
                content = json.dumps({name: value[name] for name in ("schema", "digest", "content")}).encode()
            found[str(path.relative_to(folder))] = content
    return found


def test_paths_and_examples_are_the_same_bytes_on_both_stores(
    server: Running, rfc: Rfc, gniah: Call, tmp_path: Path
) -> None:
    done = gniah("paths", "--store", server.address, "--out", tmp_path / "paths", *PATHS)
    assert done.code == 0, done.err
    ours = files_below(tmp_path / "paths")
    assert {Path(name).name for name in ours} >= {"sampled_paths.json", "disjoint_path_groups.json", "manifest.json"}
    assert ours == files_below(rfc.paths)
    kinds = ("--distractors", "code,disjoint-component")
    near = gniah(*rfc.example_words(tmp_path / "near", *kinds))
    assert near.code == 0, near.err
    for jobs in ("1", "2"):
        out = tmp_path / f"far with {jobs}"
        far = gniah(*rfc.example_words(out, *kinds, "--store", server.address, "--jobs", jobs))
        assert far.code == 0, far.err
        assert "questions to the store an example" in far.err
        found = files_below(out)
        assert {"pool.jsonl", "examples.jsonl"} <= set(found)
        assert found == files_below(tmp_path / "near")


def test_the_other_commands_work_on_a_server(server: Running, rfc: Rfc, gniah: Call) -> None:
    qid = json.loads((rfc.bench / "examples.jsonl").read_text("utf-8").splitlines()[0])["qid"]
    for words in (("stats",), ("show", rfc.bench, qid), ("query", "hubs", "--format", "json"), ("audit", rfc.bench)):
        far = gniah(*words, "--store", server.address)
        near = gniah(*words, "--store", rfc.store)
        assert (far.code, far.out) == (near.code, near.out), (words, far.err)
        assert far.out


@pytest.mark.slow
def test_a_server_that_dies_while_examples_are_built_is_told_and_the_next_call_completes(
    server: Running, rfc: Rfc, gniah: Call, tmp_path: Path
) -> None:
    words = rfc.example_words(tmp_path / "far", "--store", server.address, "--count", "120", "--jobs", "2")
    process = subprocess.Popen(program_of(words), stderr=subprocess.PIPE, text=True, encoding="utf-8")
    work = tmp_path / "far"
    limit = time.monotonic() + 120
    while len(list(work.rglob("*.json"))) < 10:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.05)
    pid = server.server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    said = process.communicate(timeout=180)[1].strip().splitlines()
    assert process.returncode == 5, said
    assert any(f"{server.address}: no Neo4j answers" in line for line in said)
    assert "Traceback" not in "".join(said)
    server.restart()
    finished = len(list(work.rglob("*.json")))
    done = gniah(*words)
    assert done.code == 0, done.err
    assert "are finished already" in done.err
    assert finished >= 10
    near = gniah(*rfc.example_words(tmp_path / "near", "--count", "120"))
    assert near.code == 0, near.err
    assert files_below(tmp_path / "far") == files_below(tmp_path / "near")
