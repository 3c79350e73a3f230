"""Named queries: one `.cypher` file each, with its purpose and its parameters declared in its first comments.

    // What it answers, in one or more lines.
    // param id INT: what the value means
    // param limit INT = 20: a parameter with a default
    // needs published examples
    MATCH …

Where a dialect parts from Neo4j's, `NAME.<dialect>.cypher` stands beside `NAME.cypher` and holds the statement only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gniah.records.errors import UsageFault

QueryFolder = str
EXPLORE: QueryFolder = "explore"
AUDIT: QueryFolder = "audit"
PICTURES: QueryFolder = "explore/browser"
_STYLE = "style"
_STYLE_FILE = "explore/style.grass"

_NEEDS_EXAMPLES = "// needs published examples"
_PARAMETER = re.compile(r"//\s*param\s+(\w+)\s+(INT|STRING)\s*(?:=\s*([^:]*?)\s*)?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a named query. `default` is None when it must be given."""

    name: str
    kind: str
    default: int | str | None
    meaning: str

    def value_of(self, given: object, query: str) -> int | str:
        """Return a given value in the parameter's type. Raises UsageFault when it does not fit."""
        if self.kind == "STRING":
            return str(given)
        text = str(given)
        integer = not isinstance(given, bool) and re.fullmatch(r"-?\d{1,19}", text, re.ASCII)
        if not integer or not -(2**63) <= int(text) < 2**63:
            raise UsageFault(f"query {query}: --param {self.name} takes an integer, not {text!r}")
        return int(text)


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query with a name: what it answers, what it takes, and its text for each dialect."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    texts: Mapping[str, str]
    needs_examples: bool = False
    """Whether it asks about examples that were published, and not about the citation graph alone."""

    def text(self, dialect: str) -> str:
        """Return the statement for a dialect; the plain file serves all that have none of their own."""
        return self.texts.get(dialect) or self.texts[""]

    def bind(self, given: Mapping[str, Any]) -> dict[str, int | str]:
        """Return a value for every parameter. Raises UsageFault for one that is unknown, missing or of a wrong type."""
        known = {parameter.name for parameter in self.parameters}
        unknown = sorted(set(given) - known)
        if unknown:
            takes = ", ".join(sorted(known)) or "no parameters"
            raise UsageFault(f"query {self.name} has no parameter {unknown[0]!r}; it takes {takes}")
        bound: dict[str, int | str] = {}
        for parameter in self.parameters:
            value = given.get(parameter.name, parameter.default)
            if value is None:
                raise UsageFault(
                    f"query {self.name} needs the parameter {parameter.name} ({parameter.meaning})",
                    remedy=f"add --param {parameter.name}=VALUE",
                )
            bound[parameter.name] = parameter.value_of(value, self.name)
        return bound


@cache
def named_queries(folder: QueryFolder = EXPLORE) -> Mapping[str, NamedQuery]:
    """Return the queries of a folder by name, in the order of the names."""
    place = Path(__file__).parent / folder
    texts: dict[str, dict[str, str]] = {}
    for path in sorted(place.glob("*.cypher")):
        name, _, dialect = path.name.removesuffix(".cypher").partition(".")
        texts.setdefault(name, {})[dialect] = path.read_text(encoding="utf-8")
    return {name: _parse(name, found) for name, found in sorted(texts.items())}


def named_query(name: str, folder: QueryFolder = EXPLORE) -> NamedQuery:
    """Return one query. Raises UsageFault that lists the known ones."""
    found = named_queries(folder)
    if name not in found:
        raise UsageFault(f"there is no query {name!r}; known are {', '.join(found)}")
    return found[name]


def browser_texts() -> dict[str, str]:
    """Return what can be pasted into the Neo4j Browser, by name, and in a sentence each."""
    found = {name: query.summary for name, query in named_queries(EXPLORE).items()}
    found |= {f"browser/{name}": query.summary for name, query in named_queries(PICTURES).items()}
    found |= {f"audit/{name}": query.summary for name, query in named_queries(AUDIT).items()}
    return found | {_STYLE: "The colours of the Neo4j Browser: drop it there as the file style.grass."}


def browser_text(name: str) -> str:
    """Return one of them: a query with its comments, for Neo4j, or the style sheet. Raises UsageFault."""
    if name not in browser_texts():
        raise UsageFault(
            f"there is no text {name!r}", remedy="gniah-load query --text lists them; names of queries, browser/NAME, …"
        )
    folder, _, plain = name.rpartition("/")
    place = {"": EXPLORE, "browser": PICTURES, "audit": AUDIT}[folder]
    path = _STYLE_FILE if name == _STYLE else f"{place}/{plain}.cypher"
    return (Path(__file__).parent / path).read_text(encoding="utf-8")


def _parse(name: str, texts: Mapping[str, str]) -> NamedQuery:
    summary: list[str] = []
    parameters: list[Parameter] = []
    needs_examples = False
    for line in texts[""].splitlines():
        if not line.startswith("//"):
            break
        if line == _NEEDS_EXAMPLES:
            needs_examples = True
            continue
        match = _PARAMETER.match(line)
        if match is None:
            summary.append(line.removeprefix("//").strip())
            continue
        default: int | str | None = match[3]
        if default is not None and match[2] == "INT":
            default = int(default)
        parameters.append(Parameter(match[1], match[2], default, match[4]))
    statements = {dialect: _statement(text) for dialect, text in texts.items()}
    return NamedQuery(name, " ".join(summary), tuple(parameters), statements, needs_examples)


def _statement(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("//")).strip()
