"""The same bytes on the oldest and the newest Python: one small benchmark built on each, from shards to examples."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from gniah.loader.shipped import rfc_shards

ROOT = Path(__file__).resolve().parents[1]
# gniah runs on newer ones, but there quicktok-v1 has no wheels and the ranks of o200k_base need a network.
OLDEST, NEWEST = (3, 11), (3, 13)
COMPARED = ("examples.jsonl", "pool.jsonl", "pool.index.jsonl")


@cache
def pythons() -> dict[tuple[int, int], Path]:
    """Return the interpreters of this machine that can make environments, by version: on the PATH, or of pyenv."""
    versions = [(3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[tuple[int, int], Path] = {}
    for version in versions:
        name = f"python{version[0]}.{version[1]}"
        on_path = shutil.which(name)
        for candidate in [*([Path(on_path)] if on_path else []), *sorted(pyenv.glob(f"*/bin/{name}"))]:
            probe = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
            asked = subprocess.run([candidate, "-I", "-c", probe], capture_output=True, text=True, check=False)
            if asked.returncode == 0 and asked.stdout.split() == [str(part) for part in version]:
                found[version] = candidate
                break
    return found


def other_python() -> Path | None:
    """Return the interpreter that is farthest from the running one, or None when there is no other."""
    here = sys.version_info[:2]
    others = {version: path for version, path in pythons().items() if version != here}
    return others[max(others, key=lambda version: (abs(version[1] - here[1]), version))] if others else None


@pytest.mark.slow
def test_another_python_builds_the_same_bytes(tmp_path: Path) -> None:
    other = other_python()
    if other is None:
        pytest.skip("there is no second Python of 3.11 to 3.13 on this machine")
    environment = tmp_path / "venv"
    subprocess.run([other, "-m", "venv", environment], check=True)
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", ".venv*", "build", "*.egg-info", ".*_cache"))
    installed = subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--constraint",
         ROOT / ".ci" / "constraints.txt", source],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if installed.returncode and "CI" not in os.environ:
        pytest.skip(f"gniah could not be installed for {other}: {installed.stderr[-500:]}")
    assert installed.returncode == 0, installed.stderr
    corpus = tmp_path / "corpus"
    shutil.copytree(ROOT / "generator", corpus, ignore=shutil.ignore_patterns("__pycache__"))
    here = built_by(Path(sys.executable).parent, tmp_path / "here", corpus)
    there = built_by(environment / "bin", tmp_path / "there", corpus)
    assert here == there


def built_by(scripts: Path, folder: Path, corpus: Path) -> dict[str, str]:
    """Build a small benchmark with the programs in a folder; return the hashes of its files."""
    folder.mkdir()
    shards = rfc_shards()
    store, paths, bench = folder / "store", folder / "paths", folder / "bench"
    steps: list[list[str | Path]] = [
        ["gniah-load", "filter", "--papers", shards.papers, "--citations", shards.citations,
         "--cutoff", shards.cutoff.isoformat(), "--out", folder / "graph"],
        ["gniah-load", "import", folder / "graph", "--store", store],
        ["gniah-gen", "paths", "--store", store, "--out", paths, "--depths", "2,4", "--count", "500"],
        ["gniah-gen", "examples", "--store", store, "--paths", paths, "--out", bench, "--count", "10",
         "--context-length", "8000", "--depths", "2,4", "--sizes", "12-20", "--corpus", f"code={corpus}"],
    ]  # fmt: skip
    for program, *words in steps:
        done = subprocess.run(
            [scripts / program, *words], capture_output=True, text=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
    lists = sorted(bench.rglob("experiment.jsonl"))
    assert lists
    files = [*(bench / name for name in COMPARED), *lists]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
