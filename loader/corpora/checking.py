"""Corpora that are there: which ones, and whether every byte of one is what its manifest says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gniah.records.corpora import (
    COUNT,
    COUNTS_FOLDER,
    DATA_FILES,
    CorpusFiles,
    digest_of,
    documents_of,
    is_corpus,
    read_corpus_manifest,
)
from gniah.records.errors import InputError
from gniah.records.files import machine_trouble, sha256_file
from gniah.records.texts import CLEANING_RULES


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


def corpora_in(given: Sequence[Path]) -> list[Path]:
    """Return the corpora among folders: each that is one, and of the others the corpora right below them.

    Raises InputError for a path that is no folder, or a folder without a corpus.
    """
    found = []
    for folder in given:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder", remedy="give a corpus, or a folder of them")
        if is_corpus(folder):
            found.append(folder)
            continue
        with machine_trouble(folder):
            below = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".") and is_corpus(entry)]
        if not below:
            raise InputError(f"{folder}: no corpus, and there is none in it", remedy="make one with gniah-load corpus")
        found += below
    return found


def check_corpus(folder: Path, *, advance: Callable[[int], None] = _ignore) -> list[str]:
    """Read all of a corpus again, and return what is wrong with it, an empty list when nothing is.

    Every file is hashed, the hashes and names of the documents are hashed to the digest that a qid names, the offsets
    must ascend, and every text must be UTF-8. `advance` is told how many files were read. Raises InputError when there
    is no manifest that could be checked against.
    """
    manifest = read_corpus_manifest(folder)
    faults = []
    for name in DATA_FILES:
        if sha256_file(folder / name) != manifest.content["files"][name]["sha256"]:
            faults.append(f"{name}: its bytes are not those that were written")
        advance(1)
    try:
        files = CorpusFiles(folder)
        faults += _wrong_numbers(files, manifest.content)
        faults += _wrong_texts(files)
        if digest_of(manifest.content["kind"], documents_of(files)) != manifest.content["digest"]:
            faults.append("documents.bin, names.bin: the documents have another digest than the manifest says")
    except InputError as error:
        faults.append(error.message.removeprefix(f"{folder}: "))
    return [*faults, *_wrong_counts(folder, manifest.content)]


def _wrong_numbers(files: CorpusFiles, content: Mapping[str, Any]) -> Iterator[str]:
    counts = content["counts"]
    for what, found in (("documents", len(files)), ("blocks", files.blocks), ("bytes", int(files.offsets[-1]))):
        if found != counts[what]:
            yield f"{found:,} {what}, and the manifest says {counts[what]:,}"
    if content["rules"]["cleaning"] != CLEANING_RULES:
        yield f"made by the cleaning rules {content['rules']['cleaning']}, and these are {CLEANING_RULES}"
    start = 0
    for number in range(len(files)):
        blocks = files.block_range(number)
        if blocks.start != start:
            yield f"document {number} begins at block {blocks.start}, not {start}"
        start = blocks.stop


def _wrong_texts(files: CorpusFiles) -> Iterator[str]:
    for number in range(len(files)):
        for block in files.texts(files.block_range(number)):
            if not block.strip():
                yield f"document {number} has a blank block"


def _wrong_counts(folder: Path, content: Mapping[str, Any]) -> Iterator[str]:
    for path in sorted((folder / COUNTS_FOLDER).glob("*.bin")):
        size, wanted = path.stat().st_size, content["counts"]["blocks"] * COUNT.itemsize
        if size != wanted:
            yield f"{COUNTS_FOLDER}/{path.name}: {size:,} bytes, and {wanted:,} are needed; it can be removed"
