"""The index of a corpus of passages by tantivy."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval.analysis import load_analyser, load_tantivy, tantivy_version
from gniah.generator.retrieval.back_ends import TANTIVY, damaged, text_of
from gniah.records.corpora import INDEX_FOLDER
from gniah.records.errors import EnvironmentFault
from gniah.records.files import machine_trouble
from gniah.records.manifests import MANIFEST_NAME

WORDS, NUMBER = "words", "number"
_HEAP_BYTES = 256 << 20
_AT_ONCE = 1000


class TantivyFiles:
    """The index folder of tantivy: its own files, flat beside the manifest."""

    name = TANTIVY
    libraries: tuple[str, ...] = ("tantivy",)

    def identity(self) -> dict[str, Any]:
        """Return its version. Raises MissingDependency without tantivy."""
        return {"version": tantivy_version()}

    def write(
        self, folder: Path, passages: DiskCorpus, advance: Callable[[int], None]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Index all passages; return counts and the hash of their words."""
        return _write(folder, passages, advance), {}

    def files(self, folder: Path, run: dict[str, Any]) -> list[tuple[str, Path]]:
        """Return tantivy's files by name; its locks are none."""
        left_out = (MANIFEST_NAME, ".lock")
        with machine_trouble(folder):
            return [(entry.name, entry) for entry in sorted(folder.iterdir()) if not entry.name.endswith(left_out)]


def open_searcher(corpus: Path, documents: int) -> tuple[Any, Any]:
    """Return the schema and the searcher of an index, mapped into memory. Raises InputError when it is damaged."""
    place = corpus / INDEX_FOLDER
    tantivy = load_tantivy()
    try:
        index = tantivy.Index.open(str(place))
        searcher = _searcher(index)
    except ValueError:  # where nothing can be written, tantivy cannot lock; then it is opened through links
        try:
            with _linked(place) as links:
                index = tantivy.Index.open(str(links))
                searcher = _searcher(index)
        except ValueError as error:
            raise damaged(place, str(error)) from error
    if searcher.num_docs != documents:
        raise damaged(place, f"it has {searcher.num_docs:,} passages, and should have {documents:,}")
    return index.schema, searcher


def _searcher(index: Any) -> Any:
    index.config_reader("manual", 0)
    return index.searcher()


@contextlib.contextmanager
def _linked(folder: Path) -> Iterator[Path]:
    """Give a folder of links to the files of another one; what is open stays open when it goes."""
    with tempfile.TemporaryDirectory(prefix="gniah-index-") as name:
        links = Path(name)
        with machine_trouble(folder):
            for entry in folder.iterdir():
                if not entry.name.endswith(".lock"):
                    (links / entry.name).symlink_to(entry.resolve())
        yield links


def _write(folder: Path, passages: DiskCorpus, advance: Callable[[int], None]) -> dict[str, Any]:
    """Index all passages, and return counts and the hash of their words. One thread, in their order."""
    tantivy = load_tantivy()
    analyse = load_analyser()
    schema = (
        tantivy.SchemaBuilder()
        .add_text_field(WORDS, tokenizer_name="whitespace", index_option="freq")
        .add_unsigned_field(NUMBER, fast=True)
        .build()
    )
    total, hashed = 0, hashlib.sha256()
    try:
        index = tantivy.Index(schema, path=str(folder))
        index.register_tokenizer("whitespace", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        for number in range(len(passages)):
            words = analyse(text_of(passages, number))
            joined = " ".join(words)
            total += len(words)
            hashed.update(joined.encode("utf-8") + b"\n")
            document = tantivy.Document()
            document.add_text(WORDS, joined)
            document.add_unsigned(NUMBER, number)
            writer.add_document(document)
            if not (number + 1) % _AT_ONCE:
                advance(_AT_ONCE)
        writer.commit()
        writer.wait_merging_threads()
    except ValueError as error:  # so tantivy says that the disk is full, too
        raise EnvironmentFault(
            f"{folder.parent / INDEX_FOLDER}: tantivy could not write the index: {error}",
            remedy="look whether the disk is full, and whether you may write there",
        ) from error
    advance(len(passages) % _AT_ONCE)
    return {"documents": len(passages), "words": total, "words_sha256": hashed.hexdigest()}
