"""What a person's own statement may do to a store: read the graph, and nothing beside it.

The engine's read-only mode keeps the graph from changes. It still lets a statement write a file (`PROFILE COPY … TO`),
read one (`… LOAD FROM`), run every statement of several before the last is refused, and crash the process by calling
an internal table function. So a statement is looked at before the engine sees it.
"""

from __future__ import annotations

import re

from gniah.records.errors import StoreError

# Functions of CALL that describe the database.
DESCRIBING = frozenset(
    {
        "bm_info",
        "current_setting",
        "db_version",
        "show_connection",
        "show_functions",
        "show_indexes",
        "show_tables",
        "stats_info",
        "storage_info",
        "table_info",
    }
)

_QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|/\*.*?\*/|//[^\r\n]*""",
    re.DOTALL,
)
_READING = re.compile(r"\s*(MATCH|OPTIONAL|UNWIND|WITH|RETURN|CALL|EXPLAIN|PROFILE)\b", re.IGNORECASE)
# A digit may stand right before a keyword: the engine reads `1LOAD` as two words.
_OUTSIDE = re.compile(r"(?<![A-Za-z_])(COPY|LOAD|ATTACH|INSTALL|EXPORT|IMPORT)(?![A-Za-z0-9_])", re.IGNORECASE)
_CALL = re.compile(r"(?<![A-Za-z_])CALL(?![A-Za-z0-9_])(?:\s*([A-Za-z0-9_]+)\s*\()?", re.IGNORECASE)


def check_reading(text: str) -> None:
    """Refuse a statement that is more than one, would change something, or reaches beyond the graph.

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
    for call in _CALL.finditer(bare):
        if (call[1] or "").lower() not in DESCRIBING:
            raise StoreError(
                f"CALL of {call[1] or 'a setting'} is not run here",
                remedy=f"functions that may be called: {', '.join(sorted(DESCRIBING))}",
            )


def _blank(found: re.Match[str]) -> str:
    """Return what stands for a quoted text or a comment: nothing that could be a word."""
    return " " if found[0].startswith("/") else "''"
