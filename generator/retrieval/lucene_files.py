"""The index of a corpus of passages by Lucene: one that is made here, or a given one of the same passages.

| file | holds |
|---|---|
| `lucene/` | the index as Anserini makes it, which pyserini can search too; not there when one was given |
| `numbers.bin` | for each document of Lucene, in its order, the number of the passage: little-endian unsigned 32-bit |
| `manifest.json` | versions, settings and counts; where a given index stands, what its files hash to |
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval.back_ends import LUCENE, text_of
from gniah.generator.retrieval.bm25 import K1, B
from gniah.generator.retrieval.lucene_matching import check_alike, match, others, without_document
from gniah.records.corpora import LUCENE_FOLDER
from gniah.records.errors import EnvironmentFault, InputError
from gniah.records.files import machine_trouble, whole_file
from gniah.records.lucene import (
    ANALYSIS,
    CONTENTS,
    ID,
    LuceneFolder,
    is_lucene_index,
    java_class,
    java_exception,
    lucene_versions,
    running_java,
)

NUMBERS = "numbers.bin"
MADE_HERE = "lucene"
_AT_ONCE = 1000
_THREADS = 2
_BUFFER_MB = 256.0
_LONGEST_NAME = 32766
_ANOTHER = "give another index, or fetch it again"
_INDEX_FILE = re.compile(r"(_|segments_).*", re.DOTALL)

Advance = Callable[[int], None]


class LuceneFiles:
    """The index folder of Lucene; `given` is the index that is to be searched where it stands."""

    name = LUCENE
    libraries: tuple[str, ...] = ("pyserini", "pyjnius")

    def __init__(self, given: Path | None = None) -> None:
        self._given = given.absolute() if given else None

    def identity(self) -> dict[str, Any]:
        """Return versions, analysis and the constants of BM25. Raises MissingDependency without pyserini or Java."""
        return {**lucene_versions(), "analysis": ANALYSIS, "k1": str(K1), "b": str(B)}

    def write(self, folder: Path, passages: DiskCorpus, advance: Advance) -> tuple[dict[str, Any], dict[str, Any]]:
        """Index all passages, or compare a given index with them; return counts, and what is true of this index alone.

        Raises InputError when the given index is damaged or of other passages.
        """
        place = self._given or folder / MADE_HERE
        if not self._given:
            _make(place, passages, advance)
        with contextlib.closing(LuceneFolder(place, _ANOTHER)) as index:
            numbers = match(index, passages, advance if self._given else lambda _: None)
            lacking = next(without_document(numbers, passages), None)
            if lacking is not None:
                what = f"it has no document {lacking[:80]!r}"
                raise others(index, what) if self._given else _unwritten(place, what)
            if self._given:
                check_alike(index, passages, numbers)
        with whole_file(folder / NUMBERS) as stream:
            stream.write(numbers.tobytes())
        more = {"java": running_java(), "commit": index.commit}
        if self._given:
            more["lucene_index"] = str(self._given)
        return {"documents": index.documents, "words": index.words}, more

    def files(self, folder: Path, run: dict[str, Any]) -> list[tuple[str, Path]]:
        """Return Lucene's files by name, and the numbers. Raises InputError when the given index is gone."""
        place = place_of(folder, run)
        with machine_trouble(place):
            found = [entry for entry in sorted(place.iterdir()) if _INDEX_FILE.fullmatch(entry.name)]
        return [(NUMBERS, folder / NUMBERS), *((f"{MADE_HERE}/{entry.name}", entry) for entry in found)]


def place_of(folder: Path, run: dict[str, Any]) -> Path:
    """Return where Lucene's own files are. Raises InputError when a given index is not there any more."""
    given = run.get("lucene_index")
    if given is None:
        return folder / MADE_HERE
    if not Path(given).is_dir():
        raise InputError(
            f"{folder}: the Lucene index {given} is not there any more",
            remedy=f"gniah-gen index {folder.parent} --index FOLDER --force, where it is now",
        )
    return Path(given)


def _make(place: Path, passages: DiskCorpus, advance: Advance) -> None:
    """Index all passages with Anserini, by their names, without storing their texts. It does not say what it left out.

    Raises InputError for a name that Lucene cannot take, EnvironmentFault when the index cannot be written.
    """
    with _writing(place):
        writer = java_class("io.anserini.index.SimpleIndexer", private=True)(str(place.absolute()), _THREADS)
        # Anserini keeps 2 GB in memory before it writes, which is more than Java has here.
        writer.writer.getConfig().setRAMBufferSizeMB(_BUFFER_MB)
        try:
            for begin in range(0, len(passages), _AT_ONCE):
                numbers = range(begin, min(begin + _AT_ONCE, len(passages)))
                writer.addRawDocuments([_row(passages, number) for number in numbers])
                advance(len(numbers))
        except Exception:
            writer.close()
            raise
        writer.close()  # after an interrupt not, since it would finish the index first
    (place / "write.lock").unlink(missing_ok=True)
    if not is_lucene_index(place):
        raise _unwritten(place, "it wrote none")


def _row(passages: DiskCorpus, number: int) -> str:
    name = passages.document(number).name
    if len(name.encode("utf-8")) > _LONGEST_NAME:
        raise InputError(
            f"{passages.folder}: Lucene takes names of {_LONGEST_NAME:,} bytes at most, not {name[:40]!r}…",
            remedy="make the corpus with shorter names",
        )
    return json.dumps({ID: name, CONTENTS: text_of(passages, number)})


@contextlib.contextmanager
def _writing(place: Path) -> Iterator[None]:
    thrown: Any = java_exception()
    try:
        yield
    except thrown as error:
        raise _unwritten(place, str(error.innermessage or error.classname).splitlines()[0]) from None


def _unwritten(place: Path, what: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"{place.parent.with_name(LUCENE_FOLDER)}: Lucene could not write the index: {what}",
        remedy="look whether the disk is full, and whether you may write there",
    )
