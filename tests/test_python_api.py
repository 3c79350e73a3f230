"""The page on the Python API is true: its examples run and print what it shows, and it lists every public name."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "python-api.md"
PACKAGES = (
    "gniah.records",
    "gniah.records.graphniah",
    "gniah.cypher",
    "gniah.loader",
    "gniah.generator",
    "gniah.generator.graphniah",
    "gniah.evaluator",
)
HEAVY = ("click", "duckdb", "ladybug", "numpy", "orjson", "rich", "rustworkx", "scipy", "tiktoken", "tokenizers")
# What has no docstring to give: names of types.
ALIASES = frozenset({"Direction", "IdArray"})


def fences() -> list[tuple[int, str, str]]:
    """Return line, language and text of each fenced block of the page."""
    found = []
    page = PAGE.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        found.append((page.count("\n", 0, match.start()) + 2, match[1], match[2]))
    return found


def examples() -> Iterator[tuple[int, str, str]]:
    """Yield line, code and output of each example: the output is the text block right behind it, if there is one."""
    blocks = fences()
    for (line, language, code), (_, after, shown) in zip(blocks, [*blocks[1:], (0, "", "")], strict=True):
        if language == "python":
            yield line, code, shown if after == "text" else ""


def test_the_examples_of_the_page_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    told = []
    for line, code, shown in examples():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # The lines before it are kept blank, so that a traceback names the line of the page.
            exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)
        told.append((line, printed.getvalue()))
        assert told[-1] == (line, shown)
    assert len(told) >= 10
    assert capfd.readouterr() == ("", ""), "a library says nothing by itself"


def test_the_page_has_examples_and_their_outputs_only() -> None:
    languages = [language for _, language, _ in fences()]
    assert set(languages) == {"python", "text"}
    assert languages[0] == "python"
    assert ("text", "text") not in list(pairwise(languages))


def listed() -> dict[str, list[str]]:
    """Return the names in the page's tables, by package."""
    found: dict[str, list[str]] = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n### ")[1:]:
        package, _, text = section.partition("\n")
        rows = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
        found[package] = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    return found


def test_the_page_lists_every_public_name_once() -> None:
    assert {package: sorted(names) for package, names in listed().items()} == {
        package: sorted(importlib.import_module(package).__all__) for package in PACKAGES
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_says_what_it_is(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        assert not isinstance(value, ModuleType), f"{name} is a module of {package} too"
        if name not in ALIASES:
            assert (value.__doc__ or "").strip(), name
            # What a dataclass without a docstring gets instead.
            assert not value.__doc__.startswith(f"{name}("), name


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_and_python_find_a_name_in_the_same_place(package: str) -> None:
    path = importlib.import_module(package).__file__
    assert path is not None
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(branch.test) == "TYPE_CHECKING"
    checked = {
        (str(node.module).removeprefix(f"{package}."), alias.name)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (call,) = (node for node in ast.walk(branch) if isinstance(node, ast.Call))
    found = {(module, name) for module, names in ast.literal_eval(call.args[1]).items() for name in names}
    assert found == checked


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        importlib.import_module(package).nonsense  # noqa: B018
    with pytest.raises(ImportError):
        exec(f"from {package} import nonsense")


def test_importing_all_packages_imports_no_library() -> None:
    code = f"import sys, {', '.join(PACKAGES)}; print(sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"
