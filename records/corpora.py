"""The file format of a corpus: a folder of documents and their blocks that is read in place, whatever its size.

| file | holds |
|---|---|
| `texts.bin` | the UTF-8 of all blocks, one right behind the other |
| `blocks.bin` | where each block begins in it, and at last where the last one ends: little-endian unsigned 64-bit |
| `names.bin` | the UTF-8 of all documents' names, one right behind the other |
| `documents.bin` | for each document 56 bytes, see `DOCUMENT`, and at last one record of the ends |
| `manifest.json` | kind, source, licence, counts, rules, and the SHA-256 of each of these files |
| `counts/DIGEST.bin` | a cache: the tokens of each block under one tokenizer, little-endian unsigned 32-bit |
| `index/` | of passages: the index by which they are found, with a manifest of its own |
| `index-pyserini/` | of passages: the same by Lucene |
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from gniah.records.canonical import canonical_json
from gniah.records.errors import InputError
from gniah.records.files import machine_trouble
from gniah.records.manifests import MANIFEST_NAME, Manifest
from gniah.records.texts import CLEANING_RULES

CORPUS_SCHEMA = "gniah/corpus/1"
KINDS = ("code", "essays", "books", "wikipedia")
TEXTS, BLOCKS, NAMES, DOCUMENTS = DATA_FILES = ("texts.bin", "blocks.bin", "names.bin", "documents.bin")
COUNTS_FOLDER = "counts"
INDEX_FOLDER = "index"
LUCENE_FOLDER = "index-pyserini"
# A document: its first block, where its name begins, how many of its blocks were left out, the hash of its text.
DOCUMENT = np.dtype([("block", "<u8"), ("name", "<u8"), ("left_out", "<u8"), ("sha256", "V32")])
_RECORD = struct.Struct("<QQQ32s")
OFFSET = np.dtype("<u8")
COUNT = np.dtype("<u4")
_ITEM_SIZES = {TEXTS: 1, NAMES: 1, BLOCKS: OFFSET.itemsize, DOCUMENTS: DOCUMENT.itemsize}
_AT_ONCE = 1 << 20
_KEPT_BYTES = 32 << 20
# What a system maps at once around a byte that is asked for.
_PAGES = 64 << 10
MAKE_AGAIN = "make the corpus again with gniah-load corpus"

Offsets = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document on its way into a corpus: `text` is the UTF-8 of its blocks, `lengths` the bytes of each."""

    name: str
    sha256: str
    text: bytes
    lengths: array[int]
    left_out: int


class CorpusDigest:
    """The digest of a corpus, by which a qid names it, fed one document at a time.

    It is that of `{"documents": [[name, sha256], …], "kind": kind, "rules": CLEANING_RULES}`: of names and texts in
    their order, the kind and the rules, and of nothing else. So a folder and a corpus made from it have the same.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._hash = hashlib.sha256(b'{"documents":[')
        self._empty = True

    def add(self, name: str, sha256: str) -> None:
        """Take the next document."""
        if not self._empty:
            self._hash.update(b",")
        self._empty = False
        self._hash.update(b"[" + canonical_json(name) + b"," + canonical_json(sha256) + b"]")

    def hexdigest(self) -> str:
        """Return the digest of the documents so far, in hexadecimal."""
        whole = self._hash.copy()
        whole.update(b'],"kind":' + canonical_json(self._kind) + b',"rules":' + canonical_json(CLEANING_RULES) + b"}")
        return whole.hexdigest()


class CorpusWriter:
    """Writes the data files of a corpus into a folder that is there, document by document. A context manager."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.documents = self.blocks = 0
        self._digest = CorpusDigest(kind)
        self._sizes = dict.fromkeys(DATA_FILES, 0)
        self._waiting = {name: bytearray() for name in DATA_FILES}
        self._hashes = {name: hashlib.sha256() for name in DATA_FILES}
        self._stack = contextlib.ExitStack()
        self._streams: dict[str, IO[bytes]] = {}
        for name in DATA_FILES:
            self._streams[name] = self._stack.enter_context((folder / name).open("wb", buffering=0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, document: StoredDocument) -> None:
        """Write the next document."""
        self._record(document.left_out, bytes.fromhex(document.sha256))
        begins = array("Q", accumulate(document.lengths[:-1], initial=self._sizes[TEXTS]))
        self._write(BLOCKS, _little(begins))
        self._write(TEXTS, document.text)
        self._write(NAMES, document.name.encode("utf-8"))
        self._digest.add(document.name, document.sha256)
        self.documents += 1
        self.blocks += len(document.lengths)

    def finish(self) -> dict[str, Any]:
        """Write the ends, flush all to disk, and return `digest`, `counts` and `files` of the manifest."""
        self._record(0, bytes(32))
        self._write(BLOCKS, _little(array("Q", [self._sizes[TEXTS]])))
        for name, stream in self._streams.items():
            self._flush(name)
            os.fsync(stream.fileno())
        return {
            "digest": self._digest.hexdigest(),
            "counts": {"documents": self.documents, "blocks": self.blocks, "bytes": self._sizes[TEXTS]},
            "files": {
                name: {"bytes": self._sizes[name], "sha256": self._hashes[name].hexdigest()} for name in DATA_FILES
            },
        }

    def _record(self, left_out: int, sha256: bytes) -> None:
        self._write(DOCUMENTS, _RECORD.pack(self.blocks, self._sizes[NAMES], left_out, sha256))

    def _write(self, name: str, data: bytes) -> None:
        waiting = self._waiting[name]
        waiting += data
        self._sizes[name] += len(data)
        if len(waiting) >= _AT_ONCE:
            self._flush(name)

    def _flush(self, name: str) -> None:
        data = memoryview(bytes(self._waiting[name]))
        self._waiting[name].clear()
        self._hashes[name].update(data)
        while data:  # a disk that is nearly full may take a part
            data = data[self._streams[name].write(data) :]


class CorpusFiles:
    """The data files of a corpus, mapped into memory: a document is found at once, and unread text costs nothing.

    What was read is given back to the system after a while, so that memory stays flat however much is read. Nothing is
    checked but that the sizes of the files fit together. Raises InputError when they do not.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._maps = {name: self._mapped(name, size) for name, size in _ITEM_SIZES.items()}
        self._texts, self._names = self._maps[TEXTS], self._maps[NAMES]
        self.offsets: Offsets = np.frombuffer(self._maps[BLOCKS], OFFSET)
        self._records: npt.NDArray[Any] = np.frombuffer(self._maps[DOCUMENTS], DOCUMENT)
        self._read = 0
        last = self._records[-1]
        ends = (int(last["block"]), int(last["name"]), int(self.offsets[-1]))
        if ends != (self.blocks, len(self._names), len(self._texts)):
            raise self.damaged(f"the ends {ends} do not fit the sizes of the files")

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._records) - 1

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self.offsets) - 1

    def name(self, number: int) -> str:
        """Return the name of a document. Raises InputError when the files are damaged."""
        self._count(_PAGES)
        start, end = (int(self._records[place]["name"]) for place in (number, number + 1))
        return self._decoded(self._names, start, end)

    def facts(self, number: int) -> tuple[str, int]:
        """Return the SHA-256 of a document's text in hexadecimal, and how many of its blocks were left out."""
        self._count(_PAGES)
        record = self._records[number]
        return record["sha256"].tobytes().hex(), int(record["left_out"])

    def block_range(self, number: int) -> range:
        """Return the numbers of a document's blocks. Raises InputError when the files are damaged."""
        self._count(_PAGES)
        start, end = (int(self._records[place]["block"]) for place in (number, number + 1))
        if not 0 <= start < end <= self.blocks:
            raise self.damaged(f"document {number} has blocks {start} to {end}")
        return range(start, end)

    def texts(self, blocks: range) -> list[str]:
        """Return the texts of consecutive blocks. Raises InputError when the files are damaged."""
        offsets = self.offsets[blocks.start : blocks.stop + 1].tolist()
        self._count(2 * _PAGES)
        return [self._decoded(self._texts, start, end) for start, end in pairwise(offsets)]

    def stored(self, number: int, name: str | None = None) -> StoredDocument:
        """Return a document as a writer takes it, under another name when one is given."""
        blocks = self.block_range(number)
        offsets = self.offsets[blocks.start : blocks.stop + 1]
        start, end = int(offsets[0]), int(offsets[-1])
        text = self._texts[start:end]
        self._count(end - start + 2 * _PAGES)
        sha256, left_out = self.facts(number)
        lengths = array("Q", np.diff(offsets).tolist())
        return StoredDocument(self.name(number) if name is None else name, sha256, text, lengths, left_out)

    def damaged(self, what: str) -> InputError:
        """Return the error that says so."""
        return InputError(f"{self.folder}: damaged: {what}", remedy=f"{MAKE_AGAIN}; check says more")

    def _decoded(self, data: mmap.mmap, start: int, end: int) -> str:
        if not 0 <= start < end <= len(data):
            raise self.damaged(f"a text from byte {start} to {end}")
        self._count(end - start)
        try:
            return data[start:end].decode("utf-8")
        except UnicodeDecodeError:
            raise self.damaged(f"the text from byte {start} to {end} is not UTF-8") from None

    def _count(self, size: int) -> None:
        """Count what was read, with the pages that come along, and let go of all pages now and then."""
        self._read += size
        if self._read > _KEPT_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            self._read = 0
            for one in self._maps.values():
                one.madvise(mmap.MADV_DONTNEED)

    def _mapped(self, name: str, item_size: int) -> mmap.mmap:
        path = self.folder / name
        with machine_trouble(path), path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if not size or size % item_size:
                raise self.damaged(f"{name} has {size:,} bytes, not a multiple of {item_size}")
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def is_corpus(folder: Path) -> bool:
    """Whether a folder is a corpus, perhaps a damaged one or of a newer version, and no plain folder of texts."""
    try:
        value = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    schema = value.get("schema") if isinstance(value, dict) else None
    return isinstance(schema, str) and schema.startswith(CORPUS_SCHEMA.rpartition("/")[0] + "/")


def read_corpus_manifest(folder: Path) -> Manifest:
    """Return the manifest of a corpus whose data files have the sizes that it names.

    Raises InputError when there is none, it was changed, is of a newer version, or a file is missing or cut.
    """
    manifest = Manifest.read(folder, CORPUS_SCHEMA)
    files = manifest.content.get("files")
    for name in DATA_FILES:
        try:
            wanted = int(files[name]["bytes"]) if isinstance(files, dict) else None
        except (KeyError, TypeError, ValueError):
            wanted = None
        if wanted is None:
            raise InputError(f"{folder / MANIFEST_NAME}: says nothing of {name}", remedy=MAKE_AGAIN)
        with machine_trouble(folder / name):
            size = (folder / name).stat().st_size
        if size != wanted:
            raise InputError(f"{folder / name}: has {size:,} bytes, and should have {wanted:,}", remedy=MAKE_AGAIN)
    return manifest


def digest_of(kind: str, documents: Iterable[tuple[str, str]]) -> str:
    """Return the digest of a corpus of these names and hashes of texts."""
    whole = CorpusDigest(kind)
    for name, sha256 in documents:
        whole.add(name, sha256)
    return whole.hexdigest()


def documents_of(files: CorpusFiles) -> Iterator[tuple[str, str]]:
    """Yield name and SHA-256 of each document."""
    for number in range(len(files)):
        yield files.name(number), files.facts(number)[0]


def packed(name: str, sha256: str, blocks: Sequence[str], left_out: int) -> StoredDocument:
    """Return a document as a writer takes it."""
    raw = [block.encode("utf-8") for block in blocks]
    return StoredDocument(name, sha256, b"".join(raw), array("Q", map(len, raw)), left_out)
