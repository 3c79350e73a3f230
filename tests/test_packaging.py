"""The wheel: built from a clean copy of the tree, installed elsewhere, imported, and checked for types.

An editable install hides what a wheel lacks, and mypy does not see `gniah.*` through it at all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
ROOMS = ("records", "cypher", "loader", "generator", "evaluator")


@dataclass(frozen=True)
class Installed:
    """A wheel, the environment it is installed in, and its packages' folder there."""

    wheel: Path
    python: Path
    site: Path

    def run(self, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python, apart from the folder and the settings of whoever calls."""
        return subprocess.run(
            [str(self.python), "-I", *map(str, words)], cwd=cwd, capture_output=True, encoding="utf-8", check=False
        )


def run(words: Sequence[object], **more: object) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, encoding="utf-8", check=False, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def tracked() -> list[str]:
    listed = run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree without anything that git ignores."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("a clean copy is made from a git checkout")
    place = tmp_path_factory.mktemp("tree")
    for name in tracked():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    return place


@pytest.fixture(scope="module")
def installed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own, which sees the packages that we depend on, and not our checkout."""
    place = tmp_path_factory.mktemp("installed")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place / "dist", tree], cwd=place)
    wheel = next((place / "dist").glob("gniah-*.whl"))
    venv.create(place / "venv", with_pip=False, symlinks=True)
    python = place / "venv" / "bin" / "python"
    site = Path(run([python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel])
    # Named in a .pth, the folder is searched after the wheel, and .pth files in it (an editable install) are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return Installed(wheel, python, site)


def test_the_wheel_holds_every_module_and_data_file_and_no_test(installed: Installed, tree: Path) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {
        f"gniah/{path.relative_to(tree).as_posix()}"
        for room in ROOMS
        for path in (tree / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == expected
    assert {f"gniah/{room}/py.typed" for room in ROOMS} <= held
    assert "gniah/cypher/audit/titles-alike.cypher" in held
    assert "gniah/cypher/explore/published.ladybug.cypher" in held
    assert "gniah/generator/graphniah/templates/plain.json" in held
    assert [name for name in held if name.startswith("gniah/loader/data/rfc/") and name.endswith(".gz")]
    assert not [name for name in held if "test" in name.split("/")[1] or name.endswith(".pyc")]
    assert "gniah/__init__.py" not in held


def test_the_wheel_carries_its_licence_and_its_programs(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = {name.partition(".dist-info/")[2] for name in wheel.namelist()}
        points = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        text = wheel.read(points).decode()
    assert {"licenses/LICENSE", "licenses/THIRD_PARTY_NOTICES.md", "METADATA"} <= names
    for line in ("gniah-load = gniah.loader.cli:main", "graphniah = gniah.records.graphniah:FAMILY"):
        assert line in text


IMPORT_ALL = """
import importlib, pkgutil, sys
names = []
for room in sys.argv[2:]:
    package = importlib.import_module(f"gniah.{room}")
    names.append(package.__name__)
    names += [found.name for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    file = importlib.import_module(name).__file__
    assert file.startswith(sys.argv[1]), file
print(len(names))
"""


def test_every_module_of_the_wheel_can_be_imported(installed: Installed, tree: Path, tmp_path: Path) -> None:
    done = installed.run("-c", IMPORT_ALL, installed.site, *ROOMS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == sum(1 for room in ROOMS for _ in (tree / room).rglob("*.py"))


def test_the_installed_package_finds_its_data(installed: Installed, tmp_path: Path) -> None:
    code = (
        "from gniah.cypher import named_queries; from gniah.records.families import families; "
        "print(len(named_queries('audit')), len(named_queries()), list(families()))"
    )
    done = installed.run("-c", code, cwd=tmp_path)
    audits = sum(1 for path in (ROOT / "cypher" / "audit").glob("*.cypher") if path.name.count(".") == 1)
    explored = sum(1 for path in (ROOT / "cypher" / "explore").glob("*.cypher") if path.name.count(".") == 1)
    assert (done.stdout, done.stderr) == (f"{audits} {explored} ['graphniah']\n", "")


@pytest.mark.parametrize("program", ["gniah-load", "gniah-gen", "gniah-eval"])
def test_the_installed_programs_run(installed: Installed, tmp_path: Path, program: str) -> None:
    path = installed.python.with_name(program)
    version = installed.wheel.name.split("-")[1]
    assert run([path, "--version"], cwd=tmp_path) == f"{program}, version {version}\n"
    assert "Commands:" in run([path, "--help"], cwd=tmp_path)


def type_check(installed: Installed, tree: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(tree / "pyproject.toml"),
            "--strict",
            "--python-executable",
            str(installed.python),
            "--cache-dir",
            str(installed.site.parent / "mypy-cache"),
            *(word for room in ROOMS for word in ("-p", f"gniah.{room}")),
        ],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


PLANTED = """

def planted() -> int:
    from gniah.cypher import open_store

    return open_store(7).counts()
"""


def test_the_installed_package_is_clean_in_its_types_and_a_planted_error_between_packages_is_found(
    installed: Installed, tree: Path, tmp_path: Path
) -> None:
    clean = type_check(installed, tree, tmp_path)
    modules = sum(1 for room in ROOMS for _ in (tree / room).rglob("*.py"))
    assert clean.returncode == 0, clean.stdout + clean.stderr
    checked = re.fullmatch(r"Success: no issues found in (\d+) source files\n", clean.stdout)
    assert checked is not None, clean.stdout
    assert int(checked[1]) >= modules
    victim = installed.site / "gniah" / "generator" / "graphniah" / "auditing.py"
    whole = victim.read_text(encoding="utf-8")
    try:
        planted = whole + PLANTED
        victim.write_text(planted, encoding="utf-8")
        found = type_check(installed, tree, tmp_path)
    finally:
        victim.write_text(whole, encoding="utf-8")
    assert found.returncode == 1
    last = len(planted.splitlines())
    errors = [line for line in found.stdout.splitlines() if f"auditing.py:{last}: error: " in line]
    assert [line.rpartition("  [")[2].rstrip("]") for line in errors] == ["return-value", "arg-type"]
    assert found.stdout.splitlines()[-1].startswith("Found 2 errors in 1 file")
