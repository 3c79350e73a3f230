"""Passages that a Lucene index stores: what Anserini keeps of the rows that it indexed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gniah.loader.corpora.rows import Columns
from gniah.loader.corpora.sources import Item
from gniah.records.errors import InputError, UsageFault
from gniah.records.lucene import LuceneFolder, row_of


class LuceneSource:
    """The passages of a Lucene index, in the order of their names, since that of an index is chance.

    Raises UsageFault when another column is to hold names, InputError when there is no index that can be read,
    MissingDependency without pyserini or a Java for it.
    """

    in_order = False

    def __init__(self, folder: Path, columns: Columns) -> None:
        if columns.name:
            raise UsageFault("passages of a Lucene index have names already", remedy="leave out --id-column")
        self._column = columns.text
        self._index = LuceneFolder(folder)

    def items(self) -> Iterator[Item]:
        """Yield the passages. Raises InputError, naming the document, for one whose text is not stored."""
        for _, name, raw in self._index.stored():
            yield Item(name, self._text(name, raw).encode("utf-8"))

    def places(self, name: str) -> list[str]:
        """Return every document of this name, by reading all of them again."""
        return [f"{self._index.folder}: document {slot}" for slot, found, _ in self._index.stored() if found == name]

    def origin(self) -> tuple[str | None, str | None]:
        """Return what is known of passages of Wikipedia."""
        return "Wikipedia", "CC BY-SA"

    def _text(self, name: str, raw: str | None) -> str:
        where = f"{self._index.folder}: document {name[:80]!r}"
        if raw is None:
            raise InputError(
                f"{where}: the index does not store what it was made from",
                remedy="make the corpus of the passages themselves, and give this index to gniah-gen index --index",
            )
        row = row_of(raw)
        text = None if row is None else row.get(self._column)
        if not isinstance(text, str):
            there = "no JSON object" if row is None else f"no text under {self._column!r} but {', '.join(sorted(row))}"
            raise InputError(f"{where}: there is {there}", remedy="name the column of texts with --text-column")
        return text
