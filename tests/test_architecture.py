"""The rooms and the arrows between them, as docs/architecture.md draws them, read from the source."""

from __future__ import annotations

import ast
import configparser
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Each room, and the rooms it may import beside itself.
ALLOWED: Mapping[str, frozenset[str]] = {
    "records": frozenset(),
    "cypher": frozenset({"records"}),
    "loader": frozenset({"records", "cypher"}),
    "generator": frozenset({"records", "cypher"}),
    "evaluator": frozenset({"records"}),
}
FAMILIES = ("graphniah",)
LONGEST = 450


def modules() -> dict[str, Path]:
    """Return every module of ours by its installed name."""
    found = {}
    for room in ALLOWED:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(("gniah", *(part for part in parts if part != "__init__")))] = path
    return found


MODULES = modules()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(name: str, tree: ast.Module, known: Mapping[str, Path] = MODULES) -> Iterator[str]:
    """Yield what a module imports, late imports included; a name that is a module of ours in full."""
    path = known[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join((*above, *([node.module] if node.module else [])))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in known else base


IMPORTS = {name: sorted(set(imports(name, tree_of(path)))) for name, path in MODULES.items()}
EAGER = {
    name: {
        target
        for node in tree_of(path).body
        for target in imports(name, ast.Module(body=[node], type_ignores=[]))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    for name, path in MODULES.items()
}


def wrong_arrows(found: Mapping[str, list[str]]) -> list[str]:
    wrong = []
    for name, targets in found.items():
        room = name.split(".")[1]
        for target in targets:
            if target.split(".")[0] != "gniah":
                continue
            other = target.partition(".")[2].partition(".")[0]
            if other != room and other not in ALLOWED[room]:
                wrong.append(f"{name} -> {target}")
    return wrong


def test_every_room_has_modules() -> None:
    assert {name.split(".")[1] for name in MODULES} == set(ALLOWED)
    assert len(MODULES) > 50


def test_no_arrow_leaves_the_table() -> None:
    assert wrong_arrows(IMPORTS) == []


def test_a_wrong_arrow_would_be_seen() -> None:
    known = {"gniah.records.x": Path("records/x.py"), "gniah.cypher": Path("cypher/__init__.py")}
    for source in (
        "import gniah.cypher",
        "from gniah import cypher",
        "from gniah.cypher import open_store",
        "from ..cypher import open_store",
        "from .. import cypher",
        "def f():\n    from gniah.cypher.store import Table",
    ):
        found = {"gniah.records.x": list(imports("gniah.records.x", ast.parse(source), known))}
        assert len(wrong_arrows(found)) == 1, source


def test_the_table_is_that_of_the_architecture_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `gniah\.(\w+)` \| ([^|]+) \|", page, re.MULTILINE)
    assert {room: frozenset(re.findall(r"records|cypher", uses)) for room, uses in rows} == ALLOWED


def test_no_module_is_imported_in_a_circle() -> None:
    # A package's module runs before its inner ones, so importing one of them imports the package too.
    graph = {
        name: {target for target in targets if target in MODULES} | ({name.rpartition(".")[0]} & set(MODULES))
        for name, targets in EAGER.items()
    }
    for name, targets in graph.items():
        if MODULES[name].name == "__init__.py":
            graph[name] = targets - {name}
    within_packages = {
        # An inner module may name its package's other modules; the package's own module may import its inner ones.
        name: {target for target in targets if not name.startswith(f"{target}.")}
        for name, targets in graph.items()
    }
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way, name))
        if name not in done:
            for target in sorted(within_packages[name]):
                visit(target, (*way, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


def test_no_module_imports_its_own_package_by_name() -> None:
    wrong = [
        f"{name} -> {target}"
        for name, targets in IMPORTS.items()
        for target in targets
        if name.startswith(f"{target}.") and target.count(".") == 1 and not _families_entry(name, target)
    ]
    assert wrong == []


def _families_entry(name: str, target: str) -> bool:
    return target.rpartition(".")[2] in FAMILIES


def test_rooms_are_never_imported_by_their_bare_names() -> None:
    python = [*MODULES.values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    wrong = []
    for path in python:
        for node in ast.walk(tree_of(path)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            wrong += [f"{path.relative_to(ROOT)}: {found}" for found in names if found.split(".")[0] in ALLOWED]
    assert wrong == []


SHARED = {name: path for name, path in MODULES.items() if not set(name.split(".")) & set(FAMILIES)}


def code_words(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every token that is no comment and no docstring, with its line."""
    text = path.read_text(encoding="utf-8")
    spoken = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT and token.start[0] not in spoken:
            yield token.start[0], token.string


@pytest.mark.parametrize("name", SHARED)
def test_shared_code_names_no_family(name: str) -> None:
    named = [
        f"line {line}: {word}" for line, word in code_words(SHARED[name]) if any(f in word.casefold() for f in FAMILIES)
    ]
    assert named == []
    assert [target for target in IMPORTS[name] if set(target.split(".")) & set(FAMILIES)] == []


def test_the_halves_of_a_family_do_not_know_each_other() -> None:
    for name, targets in IMPORTS.items():
        if name.startswith("gniah.generator"):
            assert not [target for target in targets if target.startswith("gniah.evaluator")]
        if name.startswith("gniah.evaluator"):
            assert not [target for target in targets if target.startswith(("gniah.generator", "gniah.cypher"))]


def importers_of(package: str) -> list[str]:
    return sorted(name for name, targets in IMPORTS.items() if any(t.split(".")[0] == package for t in targets))


def test_only_one_module_knows_the_engine() -> None:
    assert importers_of("ladybug") == ["gniah.cypher.embedded"]
    users = [name for name, targets in IMPORTS.items() if "gniah.cypher.embedded" in targets]
    own = ("copying", "exploration", "pool_graph", "published_database", "published_folder", "store")
    assert sorted(users) == [f"gniah.cypher.{name}" for name in own]


def test_only_streams_draw_at_random() -> None:
    assert importers_of("random") == ["gniah.records.streams"]
    for package in ("secrets", "uuid"):
        # Names of temporary files, and the password of a server: nothing that an example is made of.
        assert set(importers_of(package)) <= {"gniah.records.files", "gniah.loader.neo4j.homes"}
    for name, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        assert "np.random" not in text, name
        assert "numpy.random" not in text, name


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_not_too_long(name: str) -> None:
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) < LONGEST


def setup() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / "setup.cfg", encoding="utf-8")
    return found


def lines(value: str) -> list[str]:
    return [line.strip() for line in value.splitlines() if line.strip()]


def test_the_packages_of_setup_cfg_are_the_folders_with_modules() -> None:
    listed = lines(setup()["options"]["packages"])
    modules_of_all = [path for room in ALLOWED for path in (ROOT / room).rglob("*.py")]
    folders = {".".join(("gniah", *path.parent.relative_to(ROOT).parts)) for path in modules_of_all}
    assert len(listed) == len(set(listed))
    assert set(listed) == folders
    for package in listed:
        assert (ROOT.joinpath(*package.split(".")[1:]) / "__init__.py").is_file()


def test_every_room_says_that_it_is_typed_and_where_it_is() -> None:
    directories = dict(line.replace(" ", "").split("=") for line in lines(setup()["options"]["package_dir"]))
    assert directories == {f"gniah.{room}": room for room in ALLOWED}
    for room in ALLOWED:
        assert (ROOT / room / "py.typed").is_file()
        assert "py.typed" in lines(setup()["options.package_data"][f"gniah.{room}"])


def test_every_data_file_of_a_room_is_listed() -> None:
    data = setup()["options.package_data"]
    missed = []
    for package in lines(setup()["options"]["packages"]):
        folder = ROOT.joinpath(*package.split(".")[1:])
        listed = {path for pattern in lines(data.get(package, "")) for path in folder.glob(pattern)}
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix not in {".py", ".pyc"} and "__pycache__" not in path.parts:
                owner = next(p for p in (path.parent, *path.parents) if (p / "__init__.py").is_file())
                if owner == folder and path not in listed:
                    missed.append(str(path.relative_to(ROOT)))
    assert missed == []


def test_entry_points_name_what_is_there() -> None:
    points = setup()["options.entry_points"]
    for group in points.values():
        for line in lines(group):
            module, _, attribute = line.partition("=")[2].strip().partition(":")
            tree = tree_of(MODULES[module])
            defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} | {
                target.id
                for node in tree.body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            assert attribute in defined, line
