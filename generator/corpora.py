"""Text corpora for distractors: documents, split into blocks at blank lines (SPEC Step 4)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from gniah.records.canonical import digest
from gniah.records.errors import ImpossibleRequest, InputError
from gniah.records.files import machine_trouble

# What counts as a text of each kind, by the ends of file names.
SUFFIXES = {
    "code": (".S", ".c", ".h", ".py", ".rs"),
    "essays": (".md", ".txt"),
    "books": (".txt",),
}
CLEANING_RULES = 1
# Folders below a source tree that are not its own text.
NOT_SOURCES = frozenset({"__pycache__", "site-packages", "dist-packages", "node_modules", ".git"})
_ANSWER = "\\answer{"
_GUTENBERG_START = re.compile(r"^[* ]*START OF (?:THE|THIS) PROJECT GUTENBERG EBOOK\b.*$", re.MULTILINE | re.IGNORECASE)
_GUTENBERG_END = re.compile(
    r"^[* ]*END OF (?:THE|THIS) PROJECT GUTENBERG EBOOK\b|^End of (?:the )?Project Gutenberg.s\b",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its name within the corpus, its blocks in order, and how many blocks were left out and why."""

    name: str
    sha256: str
    blocks: tuple[str, ...]
    left_out: int


class Corpus(Protocol):
    """A numbered collection of documents whose text never changes while it is open."""

    @property
    def digest(self) -> str:
        """The hash of all texts and of the cleaning rules, which the qid covers."""

    def __len__(self) -> int:
        """Return the number of documents."""

    def document(self, number: int) -> Document:
        """Return one document."""


class FolderCorpus:
    """The text files below a folder, by their relative names in the order of those names.

    Files are read when they are drawn. A file that is not UTF-8, or holds a NUL byte, is no text and is left out.
    Raises InputError when the folder is missing, ImpossibleRequest when it holds no text.
    """

    def __init__(self, folder: Path, kind: str = "code") -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder", remedy=f"give a folder of texts for {kind}")
        suffixes = SUFFIXES[kind]
        self.folder = folder
        self.kind = kind
        self._entries: list[tuple[str, str]] = []
        self.skipped: Counter[str] = Counter()
        for name, path in sorted(_files(folder, suffixes)):
            text = _read_text(path) if _has_utf8_form(name) else None
            if text is None:
                self.skipped["not text"] += 1
            elif not self._blocks(text)[0]:
                self.skipped["no block left"] += 1
            else:
                self._entries.append((name, _sha256(text)))
        if not self._entries:
            raise ImpossibleRequest(
                f"{folder}: holds no text file that ends in {', '.join(suffixes)}", remedy="give another folder"
            )
        documents = [list(entry) for entry in self._entries]
        self._digest = digest({"rules": CLEANING_RULES, "kind": kind, "documents": documents})
        self._document = lru_cache(maxsize=256)(self._load)

    @property
    def digest(self) -> str:
        """Return the hash of all names, texts and rules."""
        return self._digest

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._entries)

    def document(self, number: int) -> Document:
        """Return one document. Raises InputError when its file has changed since the corpus was opened."""
        return self._document(number)

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs, without the documents that were read here."""
        return {name: value for name, value in vars(self).items() if name != "_document"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a corpus from another process; its files are not read again until they are drawn."""
        vars(self).update(state)
        self._document = lru_cache(maxsize=256)(self._load)

    def _load(self, number: int) -> Document:
        name, sha256 = self._entries[number]
        text = _read_text(self.folder / name)
        if text is None or _sha256(text) != sha256:
            raise InputError(
                f"{self.folder / name}: changed while it was in use", remedy="give a folder that nobody writes to"
            )
        blocks, left_out = self._blocks(text)
        return Document(name, sha256, tuple(blocks), left_out)

    def _blocks(self, text: str) -> tuple[list[str], int]:
        return clean_blocks(without_gutenberg_frame(text) if self.kind != "code" else text)


def without_gutenberg_frame(text: str) -> str:
    """Return a book without Project Gutenberg's header and licence, or the text as it is when it has none.

    The book lies between the line that announces its start and the one that announces its end.
    """
    start = _GUTENBERG_START.search(text)
    begin = start.end() if start else 0
    end = _GUTENBERG_END.search(text, begin)
    return text[begin : end.start() if end else len(text)]


def clean_blocks(text: str) -> tuple[list[str], int]:
    """Return the blocks of a text, and how many were left out.

    A byte-order mark and carriage returns go; a line of white space is a blank line; blocks lie between blank
    lines. A block that could be read as a paper (a line that begins with `Title:`) or that holds an answer is left
    out.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks: list[str] = []
    left_out = 0
    for block in _paragraphs(lines):
        if _ANSWER in block or re.search(r"^\s*Title:", block, re.MULTILINE | re.IGNORECASE):
            left_out += 1
        else:
            blocks.append(block)
    return blocks, left_out


def _paragraphs(lines: list[str]) -> Iterator[str]:
    gathered: list[str] = []
    for line in lines:
        if line.strip():
            gathered.append(line)
        elif gathered:
            yield "\n".join(gathered)
            gathered = []
    if gathered:
        yield "\n".join(gathered)


def _files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield (relative name, path) of the files below a folder, links and cache folders left out."""
    with machine_trouble(folder):
        for path in folder.rglob("*"):
            relative = path.relative_to(folder)
            if path.suffix not in suffixes or NOT_SOURCES.intersection(relative.parts):
                continue
            if path.is_file() and not path.is_symlink():
                yield relative.as_posix(), path


def _has_utf8_form(name: str) -> bool:
    """Whether a file's name can be written down: bytes that are not UTF-8 come as lone surrogates."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _read_text(path: Path) -> str | None:
    with machine_trouble(path):
        raw = path.read_bytes()
    if b"\0" in raw:
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
