"""The README is true: its commands run as printed, its output is what they print, and its links lead somewhere."""

from __future__ import annotations

import configparser
import datetime
import gzip
import json
import os
import random  # noqa: TID251  (a toy graph, made here alone)
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gniah.loader.neo4j.server import Server

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
# Read by these tests, and not run here: `make test` is what runs them.
NOT_AGAIN = "make test"


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of the README in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Return the README's commands, each on one line."""
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_it_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 130


def test_one_command_runs_the_job_and_one_the_tests() -> None:
    assert blocks("sh")[0].splitlines() == ["make demo", NOT_AGAIN]


def test_ci_runs_the_command_that_is_not_run_here() -> None:
    assert re.search(rf"^step \w+ {NOT_AGAIN}\b", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", "THIRD_PARTY_NOTICES.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
)
def test_links_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    missing = [target for target in targets if not ((ROOT / page).parent / target.partition("#")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize("command", [line for line in commands() if line.startswith("gniah-")])
def test_options_exist(command: str) -> None:
    words = command.split()
    scripts = Path(sys.executable).parent
    named = words[1:3] if words[1] == "neo4j" else words[1:2]
    shown = subprocess.run(
        [scripts / words[0], *named, "--help"], capture_output=True, text=True, encoding="utf-8", check=True
    ).stdout
    assert [word for word in words if word.startswith("--") and not re.search(rf"{word}\b", shown)] == []


def test_one_version_everywhere() -> None:
    version = settings()["metadata"]["version"]
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_extras_in_the_readme_exist() -> None:
    named = set(re.findall(r"`\.?\[(\w+)\]`", README.read_text(encoding="utf-8")))
    assert named <= set(settings()["options.extras_require"])


def test_lint_checks_the_types_of_every_package() -> None:
    named = re.search(r"^PACKAGES = (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert named is not None
    packages = settings()["options"]["packages"].split()
    assert sorted(named[1].split()) == sorted(package for package in packages if package.count(".") == 1)


def test_a_machine_without_a_fitting_python_is_told_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    done = subprocess.run(
        ["make", "demo", f"PYTHON={old}"], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "no Python of 3.11 or newer" in done.stderr
    assert "give make PYTHON=/path/to/python" in done.stderr


@pytest.mark.slow
@pytest.mark.neo4j
def test_its_commands_run_and_print_what_it_shows(tmp_path: Path) -> None:
    fresh = tmp_path / "a fresh copy"
    copy_of_the_checkout(fresh)
    write_shards(fresh / "s2ag")
    (fresh / "linux").mkdir()
    for source in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        shutil.copy(source, fresh / "linux")
    script = "\n".join(["set -eu", *(block for block in blocks("sh"))]).replace(f"\n{NOT_AGAIN}\n", "\n")
    done = subprocess.run(
        ["bash", "-c", script], cwd=fresh, env=environment() | {"XDG_DATA_HOME": str(tmp_path / "data")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    Server(tmp_path / "data" / "gniah" / "neo4j").stop()
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    printed = done.stdout.splitlines()
    missing = [line for block in blocks("text") for line in block.splitlines() if line not in printed]
    assert missing == [], "the README shows what its commands do not print"


def environment() -> dict[str, str]:
    """Return the environment of a newcomer: this Python first, and nothing of the environment the tests run in."""
    ours = re.compile("VIRTUAL_ENV|PYTHON.*|TIKTOKEN_CACHE_DIR|DATA_GYM_CACHE_DIR|M(AKE)?FLAGS|GNIAH_.*")
    kept = {name: value for name, value in os.environ.items() if not ours.fullmatch(name)}
    return kept | {"PATH": os.pathsep.join([str(Path(sys.base_prefix) / "bin"), os.environ["PATH"]])}


def copy_of_the_checkout(target: Path) -> None:
    """Copy what a clone of this checkout would have, with what is not committed yet."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout.decode("utf-8")
        names: Iterable[str] = filter(None, listed.split("\0"))
    else:
        names = (str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if ".venv" not in str(path))
    for name in names:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def write_shards(folder: Path, papers: int = 40_000) -> None:
    """Write shards of a citation graph as large as the README's job needs: long paths, and room for many of them."""
    draw = random.Random(1)
    kinds = ("adaptive", "sparse", "causal", "robust", "neural", "spectral", "modular")
    things = ("graphs", "kernels", "polymers", "proteins", "markets", "languages", "robots")
    jobs = ("estimation", "control", "discovery", "synthesis", "retrieval", "scheduling", "imaging")
    names = ("Abe", "Brandt", "Costa", "Diaz", "Eriksen", "Fischer", "Garcia", "Haddad", "Ito", "Jansen")
    first = datetime.date(2026, 4, 1)

    def paper(number: int) -> dict[str, Any]:
        kind, thing, job, other = kinds[number % 7], things[number // 7 % 7], jobs[number // 49 % 7], things[number % 5]
        return {
            "corpusid": 10**6 + number,
            "externalids": {"ArXiv": f"2604.{number:05d}"} if number % 3 else None,
            "title": f"{kind} {thing} for the {job} of {other} in practice and theory, part {number}",
            "authors": [{"authorId": None, "name": f"{chr(65 + i)}. {draw.choice(names)}"} for i in range(5)],
            "venue": None if number % 3 else "Journal of Toys",
            "publicationdate": str(first + datetime.timedelta(number * 180 // papers)),
        }

    def citations() -> Iterable[dict[str, Any]]:
        for citing in range(1, papers):
            for cited in sorted({max(0, citing - draw.randint(1, 150)) for _ in range(draw.randint(1, 3))}):
                yield {"citingcorpusid": 10**6 + citing, "citedcorpusid": 10**6 + cited, "isinfluential": False}

    for name, rows in (("papers", map(paper, range(papers))), ("citations", citations())):
        (folder / name).mkdir(parents=True)
        with gzip.open(folder / name / f"{name}-000.gz", "wt", encoding="utf-8", newline="\n") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
