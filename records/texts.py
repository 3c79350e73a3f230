"""Texts for distractors: which files are texts, and how a text becomes blocks (SPEC Step 4)."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gniah.records.files import environment_fault, machine_trouble

# What counts as a text of each kind, by the ends of file names.
SUFFIXES = {
    "code": (".S", ".c", ".h", ".py", ".rs"),
    "essays": (".md", ".txt"),
    "books": (".txt",),
}
# How a text becomes blocks. The digest of a corpus covers this number.
CLEANING_RULES = 1
# Which texts are left out. A digest covers what these rules do, since it covers which documents there are.
SELECTION_RULES = 1
# The most bytes of one text. A source file of more is nearly always a table; no whole book comes near the other.
LARGEST = {"code": 1 << 20, "essays": 64 << 20, "books": 64 << 20, "wikipedia": 1 << 20}
LONGEST_CODE_LINE = 2000
_HEAD_LINES = 20

BINARY = "holds a NUL byte"
NOT_UTF8 = "not UTF-8"
TOO_LARGE = "too large"
GENERATED = "generated code"
LONG_LINE = "a very long line"
NO_BLOCK = "no block left"
ODD_NAME = "name not UTF-8"
LINK = "link"
ANSWER = "holds an answer"
LIKE_A_PAPER = "reads as a paper"

# Folders below a source tree that are not its own text.
NOT_SOURCES = frozenset({"__pycache__", "site-packages", "dist-packages", "node_modules", ".git"})
_FRAMED = frozenset({"essays", "books"})
_ANSWER = "\\answer{"
_PAPER = re.compile(r"^\s*Title:", re.MULTILINE | re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_GENERATED = re.compile(
    rb"auto[- ]?generated|automatically[- ]generated|generated automatically|machine[- ]generated|@generated"
    rb"|generated code|do not edit|do not modify *(?:[^\w ]|$)|^[^\w\n]*(?-i:Generated) (?:by|from)\b",
    re.IGNORECASE | re.MULTILINE,
)
_GUTENBERG_START = re.compile(r"^[* ]*START OF (?:THE|THIS) PROJECT GUTENBERG EBOOK\b.*$", re.MULTILINE | re.IGNORECASE)
_GUTENBERG_END = re.compile(
    r"^[* ]*END OF (?:THE|THIS) PROJECT GUTENBERG EBOOK\b|^End of (?:the )?Project Gutenberg.s\b",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text as blocks: the hash of what it was, why blocks were left out, whether Gutenberg's frame was round it."""

    sha256: str
    blocks: tuple[str, ...]
    left_out: Counter[str]
    framed: bool


def cleaned(raw: bytes, kind: str) -> Cleaned | str:
    """Return the blocks of one text of a kind, or the reason why it is left out as a whole.

    A passage of `wikipedia` is one block. The rules are listed in docs/corpora.md.
    """
    reason = _why_left_out(raw, kind)
    if reason is not None:
        return reason
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return NOT_UTF8
    body = without_gutenberg_frame(text) if kind in _FRAMED else text
    lines = _unified(body)
    if kind == "wikipedia":
        lines = _BLANK_LINES.sub("\n", lines)
    blocks, left_out = _kept(lines)
    if not blocks:
        return NO_BLOCK
    return Cleaned(hashlib.sha256(raw).hexdigest(), tuple(blocks), left_out, body is not text)


def clean_blocks(text: str) -> tuple[list[str], int]:
    """Return the blocks of a text, and how many were left out.

    A byte-order mark and carriage returns go; a line of white space is a blank line; blocks lie between blank
    lines. A block that could be read as a paper (a line that begins with `Title:`) or that holds an answer is left
    out.
    """
    blocks, left_out = _kept(_unified(text))
    return blocks, left_out.total()


def without_gutenberg_frame(text: str) -> str:
    """Return a book without Project Gutenberg's header and licence, or the text as it is when it has none.

    The book lies between the line that announces its start and the one that announces its end.
    """
    start = _GUTENBERG_START.search(text)
    begin = start.end() if start else 0
    end = _GUTENBERG_END.search(text, begin)
    return text[begin : end.start()] if end else text[begin:] if start else text


def is_text_name(name: str, kind: str) -> bool:
    """Whether a file of this relative name could be a text of a kind: by its end, and by the folders it lies in."""
    path = PurePosixPath(name)
    return path.suffix in SUFFIXES[kind] and NOT_SOURCES.isdisjoint(path.parts)


def text_files(folder: Path, kind: str) -> Iterator[tuple[str, Path]]:
    """Yield (relative name, path) of the files below a folder that could be texts of a kind, links among them.

    The order is that of the file system. Raises EnvironmentFault for a folder that may not be read.
    """
    for name, path in files_below(folder):
        if is_text_name(name, kind) and (path.is_symlink() or path.is_file()):
            yield name, path


def files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (relative name, path) of all that is no folder below a folder; links to folders are not followed.

    Raises EnvironmentFault for a folder that may not be read, which `rglob` would pass over in silence.
    """

    def refuse(error: OSError) -> None:
        raise environment_fault(error, folder) from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if name not in NOT_SOURCES]
        for name in names:
            path = Path(place, name)
            yield path.relative_to(folder).as_posix(), path


def read_text(name: str, path: Path, kind: str) -> bytes | str:
    """Return the bytes of a file that `text_files` gave, or the reason why it is left out unread."""
    if not has_utf8_form(name):
        return ODD_NAME
    with machine_trouble(path):
        if path.is_symlink():
            return LINK
        with path.open("rb") as stream:
            raw = stream.read(LARGEST[kind] + 1)
    return TOO_LARGE if len(raw) > LARGEST[kind] else raw


def has_utf8_form(name: str) -> bool:
    """Whether a file's name can be written down: bytes that are not UTF-8 come as lone surrogates."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _why_left_out(raw: bytes, kind: str) -> str | None:
    """Return why a text is left out as a whole, but for one that is not UTF-8."""
    if len(raw) > LARGEST[kind]:
        return TOO_LARGE
    if b"\0" in raw:
        return BINARY
    if kind == "code":
        if _GENERATED.search(b"\n".join(raw.split(b"\n", _HEAD_LINES)[:_HEAD_LINES])):
            return GENERATED
        if max(map(len, raw.split(b"\n"))) > LONGEST_CODE_LINE:
            return LONG_LINE
    return None


def _unified(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _kept(text: str) -> tuple[list[str], Counter[str]]:
    """Return the blocks between blank lines that are kept, and how many are not, by reason."""
    blocks = [block.strip("\n") for block in _BLANK_LINES.split(f"\n{text}\n")]
    blocks = [block for block in blocks if block]
    left_out: Counter[str] = Counter()
    # Looking through the whole text first is much quicker; `lower` and the pattern agree on these three letters.
    if _ANSWER not in text and "tle:" not in text.lower():
        return blocks, left_out
    kept = []
    for block in blocks:
        if _ANSWER in block:
            left_out[ANSWER] += 1
        elif _PAPER.search(block):
            left_out[LIKE_A_PAPER] += 1
        else:
            kept.append(block)
    return kept, left_out
