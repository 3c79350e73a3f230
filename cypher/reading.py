"""What a person's own statement may do to a store: read the graph, and nothing beside it.

The engine's read-only mode keeps the graph from changes. It still lets a statement write a file (`PROFILE COPY … TO`),
read one (`… LOAD FROM`), run every statement of several before the last is refused, and crash the process by calling
an internal table function. So a statement is looked at before the engine sees it.
"""

from __future__ import annotations

import re

from gniah.records.errors import StoreError

# What each dialect lets a person call: functions and procedures that describe the database, and those of Graph Data
# Science that answer and keep nothing.
_DESCRIBING = {
    "ladybug": (
        re.compile(
            "bm_info|current_setting|db_version|show_connection|show_functions|show_indexes|show_tables|stats_info"
            "|storage_info|table_info"
        ),
        "those that show tables, indexes, functions, settings and statistics",
    ),
    "neo4j": (
        re.compile(
            r"db\.(labels|relationshiptypes|propertykeys|info|ping|schema\.[a-z]+)|dbms\.components"
            r"|gds\.(list|version|graph\.(list|exists))|gds\.[a-z0-9.]+\.(stream|stats)"
        ),
        "db.labels, db.relationshipTypes, db.propertyKeys, db.schema.…, gds.….stream and gds.….stats",
    ),
}

_QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|/\*.*?\*/|//[^\r\n]*""",
    re.DOTALL,
)
_READING = re.compile(r"\s*(MATCH|OPTIONAL|UNWIND|WITH|RETURN|CALL|EXPLAIN|PROFILE)\b", re.IGNORECASE)
# A digit may stand right before a keyword: the engine reads `1LOAD` as two words.
_OUTSIDE = re.compile(r"(?<![A-Za-z_])(COPY|LOAD|ATTACH|INSTALL|EXPORT|IMPORT)(?![A-Za-z0-9_])", re.IGNORECASE)
_CALL = {
    "ladybug": re.compile(r"(?<![A-Za-z_])CALL(?![A-Za-z0-9_])(?:\s*([A-Za-z0-9_]+)\s*\()?", re.IGNORECASE),
    # A procedure needs no parentheses here. A brace or a parenthesis begins a subquery, looked at with the rest.
    "neo4j": re.compile(
        r"(?<![A-Za-z_])CALL(?![A-Za-z0-9_])(?!\s*[({])(?:\s*([A-Za-z0-9_.]+)(?![A-Za-z0-9_.]|\s*\.))?", re.IGNORECASE
    ),
}


def check_reading(text: str, dialect: str) -> None:
    """Refuse a statement of a dialect that is more than one, would change something, or reaches beyond the graph.

    Raises StoreError.
    """
    bare = _QUOTED.sub(_blank, text).strip().removesuffix(";")
    if ";" in bare:
        raise StoreError("one statement at a time", remedy="leave out the semicolon between statements")
    if not _READING.match(bare):
        raise StoreError(
            "only statements that read are run here",
            remedy="begin with MATCH, OPTIONAL MATCH, UNWIND, WITH, RETURN or CALL",
        )
    outside = _OUTSIDE.search(bare)
    if outside is not None:
        raise StoreError(
            f"{outside[1].upper()} reaches beyond the graph, and only statements that read the graph are run here",
            remedy="put a name that is spelled so in backticks",
        )
    describing, named = _DESCRIBING[dialect]
    for call in _CALL[dialect].finditer(bare):
        if not describing.fullmatch((call[1] or "").lower()):
            raise StoreError(f"CALL of {call[1] or 'a setting'} is not run here", remedy=f"what may be called: {named}")


def _blank(found: re.Match[str]) -> str:
    """Return what stands for a quoted text or a comment: nothing that could be a word."""
    return " " if found[0].startswith("/") else "''"
