"""Text corpora for distractors: documents, split into blocks at blank lines (SPEC Step 4)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gniah.records.corpora import (
    COUNT,
    COUNTS_FOLDER,
    CorpusFiles,
    digest_of,
    is_corpus,
    read_corpus_manifest,
)
from gniah.records.errors import EnvironmentFault, ImpossibleRequest, InputError, UsageFault
from gniah.records.files import whole_file
from gniah.records.texts import CLEANING_RULES, SUFFIXES, clean_blocks, cleaned, read_text, text_files

Counts = npt.NDArray[np.uint32]


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


def open_corpus(folder: Path, kind: str) -> Corpus:
    """Open a folder as a corpus of a kind: one that gniah-load corpus made, or else a plain folder of texts.

    Raises UsageFault when it is a corpus of another kind, and what `DiskCorpus` and `FolderCorpus` raise.
    """
    if not is_corpus(folder):
        return FolderCorpus(folder, kind)
    corpus = DiskCorpus(folder)
    if corpus.kind != kind:
        raise UsageFault(
            f"{folder}: a corpus of kind {corpus.kind}, not {kind}",
            remedy=f"give it as --corpus {corpus.kind}={folder}",
        )
    return corpus


class DiskCorpus:
    """A corpus that gniah-load corpus made, read in place: its size costs no memory, and each document is at hand.

    Another process that is given it opens the folder itself. Raises InputError when the folder is no corpus, is damaged
    as far as its sizes show, is of a newer version, or was made by other cleaning rules; `gniah-load corpus check`
    reads every byte.
    """

    def __init__(self, folder: Path) -> None:
        content = read_corpus_manifest(folder).content
        self.folder = folder
        self.kind = str(content.get("kind"))
        self._digest = str(content.get("digest"))
        rules = content.get("rules")
        found = rules.get("cleaning") if isinstance(rules, dict) else None
        if found != CLEANING_RULES:
            raise InputError(
                f"{folder}: made by the cleaning rules {found}, and this version has {CLEANING_RULES}",
                remedy="make the corpus again with gniah-load corpus",
            )
        self._files = CorpusFiles(folder)
        self._counts: dict[str, Counts] = {}

    @property
    def digest(self) -> str:
        """Return the hash of all names, texts and rules; that of the folder which it was made from is the same."""
        return self._digest

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._files)

    @property
    def block_count(self) -> int:
        """Return the number of blocks of all documents."""
        return self._files.blocks

    def document(self, number: int) -> Document:
        """Return one document. Raises InputError when the files are damaged there."""
        sha256, left_out = self._files.facts(number)
        blocks = self._files.texts(self._files.block_range(number))
        return Document(self._files.name(number), sha256, tuple(blocks), left_out)

    def block_range(self, number: int) -> range:
        """Return the numbers that the blocks of a document have in the whole corpus, as `counts` has them."""
        return self._files.block_range(number)

    def counts(self, tokenizer_digest: str) -> Counts | None:
        """Return the number of tokens of each block and the empty line behind it, or None before they were counted.

        The array has `block_count` numbers, and is mapped into memory.
        """
        kept = self._counts.get(tokenizer_digest)
        if kept is None:
            path = self._counts_path(tokenizer_digest)
            try:
                mapped = np.memmap(path, COUNT, "r")
            except (OSError, ValueError):  # not there, may not be read, empty or cut
                return None
            if len(mapped) != self.block_count:
                return None
            kept = self._counts[tokenizer_digest] = mapped.view(np.ndarray)
        return kept

    def write_counts(self, tokenizer_digest: str, counts: Counts) -> None:
        """Keep the number of tokens of each block beside the corpus; where nothing can be written, in memory.

        Several processes may do so at once. Raises ValueError when there is not one number for each block.
        """
        if counts.shape != (self.block_count,):
            raise ValueError(f"{counts.shape} counts for {self.block_count} blocks")
        stored = counts.astype(COUNT)
        path = self._counts_path(tokenizer_digest)
        try:
            with whole_file(path) as stream:
                stream.write(stored.tobytes())
        except EnvironmentFault:  # a read-only or full disk, no permission
            self._counts[tokenizer_digest] = stored

    def _counts_path(self, tokenizer_digest: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", tokenizer_digest):
            raise ValueError(f"no digest of a tokenizer: {tokenizer_digest!r}")
        return self.folder / COUNTS_FOLDER / f"{tokenizer_digest}.bin"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process opens the same corpus; counts that could not be written go with it."""
        unwritten = {key: value for key, value in self._counts.items() if value.flags.owndata}
        return _opened_again, (self.folder, self._digest, unwritten)


def _opened_again(folder: Path, digest: str, counts: dict[str, Counts]) -> DiskCorpus:
    corpus = DiskCorpus(folder)
    if corpus.digest != digest:
        raise InputError(f"{folder}: replaced by another corpus while it was in use", remedy="start again")
    corpus._counts.update(counts)
    return corpus


class FolderCorpus:
    """The text files below a folder, by their relative names in the order of those names.

    Files are read when they are drawn. Which are left out, and how a text becomes blocks, is as in a corpus that
    `gniah-load corpus` makes of the same folder; `skipped` counts the former by reason.
    Raises InputError when the folder is missing, ImpossibleRequest when it holds no text.
    """

    def __init__(self, folder: Path, kind: str = "code") -> None:
        if not folder.is_dir():
            raise InputError(
                f"{folder}: no such folder", remedy=f"give a folder of texts for {kind}, or what gniah-load corpus made"
            )
        self.folder = folder
        self.kind = kind
        self._entries: list[tuple[str, str]] = []
        self.skipped: Counter[str] = Counter()
        for name, path in sorted(text_files(folder, kind)):
            raw = read_text(name, path, kind)
            found = cleaned(raw, kind) if isinstance(raw, bytes) else raw
            if isinstance(found, str):
                self.skipped[found] += 1
            else:
                self._entries.append((name, found.sha256))
        if not self._entries:
            raise ImpossibleRequest(
                f"{folder}: holds no text file that ends in {', '.join(SUFFIXES[kind])}", remedy="give another folder"
            )
        self._digest = digest_of(kind, self._entries)
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
        path = self.folder / name
        raw = read_text(name, path, self.kind)
        if not isinstance(raw, bytes) or hashlib.sha256(raw).hexdigest() != sha256:
            raise InputError(f"{path}: changed while it was in use", remedy="give a folder that nobody writes to")
        found = cleaned(raw, self.kind)
        assert not isinstance(found, str)  # the same bytes as before
        return Document(name, sha256, found.blocks, found.left_out.total())


__all__ = [
    "Corpus",
    "Counts",
    "DiskCorpus",
    "Document",
    "FolderCorpus",
    "clean_blocks",
    "open_corpus",
]
