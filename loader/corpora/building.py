"""Making a corpus: a source is read once, its texts are cleaned, and a folder appears whole or not at all."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gniah.loader.corpora.rows import JSON_LINES, PARQUET, Columns, Repeats, RowSource, row_files
from gniah.loader.corpora.sources import FolderSource, Item, Source, TarSource
from gniah.records.corpora import (
    CORPUS_SCHEMA,
    COUNTS_FOLDER,
    DATA_FILES,
    INDEX_FOLDER,
    KINDS,
    LUCENE_FOLDER,
    CorpusFiles,
    CorpusWriter,
    StoredDocument,
    is_corpus,
    packed,
)
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.files import locked_place, machine_trouble, whole_folder
from gniah.records.lucene import is_lucene_index
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock
from gniah.records.texts import CLEANING_RULES, SELECTION_RULES, SUFFIXES, cleaned, text_files
from gniah.records.workers import Workers

TEXT_COLUMNS = {"essays": "text", "books": "text", "wikipedia": "contents"}
UNKNOWN = "unknown"
_BATCH_BYTES = 4 << 20
_BATCH_ITEMS = 4096
_UNSORTED = "unsorted"
_CHOOSE = "choose another folder with --out"


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


@dataclass
class _Outcome:
    """What came of a batch: documents, and why others and single blocks were left out."""

    documents: list[StoredDocument] = field(default_factory=list)
    texts: Counter[str] = field(default_factory=Counter)
    blocks: Counter[str] = field(default_factory=Counter)
    framed: int = 0


def build_corpus(
    kind: str,
    source: Path,
    out: Path,
    *,
    source_name: str | None = None,
    licence: str | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    jobs: int = 1,
    force: bool = False,
    advance: Callable[[int], None] = _ignore,
) -> Manifest:
    """Make the corpus `out` of one of `KINDS` from a folder, an archive or a file of rows; return its manifest.

    `source_name` and `licence` are noted; without them, what the source says of itself, or "unknown". `advance` is told
    how many texts were read. The same source gives the same bytes for any `jobs`. Raises UsageFault when the words do
    not fit together or `out` holds something that may not be replaced, InputError when the source is damaged or names
    a text twice, ImpossibleRequest when it holds no text, EnvironmentFault when the disk is full.
    """
    if kind not in KINDS:
        raise UsageFault(f"there is no corpus of kind {kind!r}", remedy=f"use one of {', '.join(KINDS)}")
    clock = RunClock()
    opened = _open_source(source, kind, Columns(text_column or TEXT_COLUMNS.get(kind, ""), id_column))
    if kind == "code" and (text_column or id_column):
        raise UsageFault("code is read from files, which have no columns")
    with locked_place(out):
        _check_replaceable(out, force)
        with whole_folder(out) as folder:
            total, facts = _write(folder, opened, kind, jobs, advance)
            if not total.written:
                raise _nothing(source, kind, total)
            name, terms = opened.origin()
            if total.framed == total.written:
                name, terms = name or "Project Gutenberg", terms or "Project Gutenberg License"
            content = {
                "kind": kind,
                "source": source_name or name or UNKNOWN,
                "licence": licence or terms or UNKNOWN,
                "rules": {"cleaning": CLEANING_RULES, "selection": SELECTION_RULES},
                **facts,
                "texts_left_out": dict(sorted(total.texts.items())),
                "blocks_left_out": dict(sorted(total.blocks.items())),
            }
            manifest = Manifest(CORPUS_SCHEMA, content, clock.run("numpy", source=str(source)))
            manifest.write(folder)
    return manifest


@dataclass
class _Total(_Outcome):
    """What came of a whole source; documents are counted, not kept."""

    written: int = 0


def _open_source(path: Path, kind: str, columns: Columns) -> Source:
    with machine_trouble(path):
        if not path.exists():
            raise InputError(f"{path}: no such file or folder", remedy="check the path given to --from")
        is_folder = path.is_dir()
    if is_folder:
        return _open_folder(path, kind, columns)
    if kind == "code":
        return TarSource(path, kind)
    if path.name.endswith((*JSON_LINES, *PARQUET)):
        return RowSource([path], kind, columns)
    if kind == "wikipedia":
        raise UsageFault(
            f"{path}: passages come in {', '.join((*JSON_LINES, *PARQUET))}",
            remedy="give such a file, or a folder",
        )
    return TarSource(path, kind)


def _open_folder(folder: Path, kind: str, columns: Columns) -> Source:
    if kind == "code":
        return FolderSource(folder, kind)
    if kind == "wikipedia" and is_lucene_index(folder):
        from gniah.loader.corpora.lucene_rows import LuceneSource

        return LuceneSource(folder, columns)
    rows = row_files(folder, kind)
    texts = kind in SUFFIXES and next(text_files(folder, kind), None) is not None
    if rows and texts:
        raise UsageFault(
            f"{folder}: holds files of rows ({rows[0].name!r}) beside texts", remedy="give a folder of one of them"
        )
    if rows:
        return RowSource(rows, kind, columns)
    if kind == "wikipedia":
        raise InputError(
            f"{folder}: there is no file of rows here ({', '.join((*JSON_LINES, *PARQUET))})",
            remedy="give passages with id, title and contents, one a line",
        )
    return FolderSource(folder, kind)


def _check_replaceable(out: Path, force: bool) -> None:
    with machine_trouble(out):
        if not out.exists():
            return
        if not out.is_dir():
            raise UsageFault(f"{out}: a file has this name", remedy=_CHOOSE)
        ours = {MANIFEST_NAME, COUNTS_FOLDER, *DATA_FILES}
        for index in (INDEX_FOLDER, LUCENE_FOLDER):
            ours |= {index, f".{index}.lock"}
        foreign = sorted(entry.name for entry in out.iterdir() if entry.name not in ours)
        empty = not any(out.iterdir())
    if foreign or not (empty or is_corpus(out)):
        what = f" ({foreign[0]!r})" if foreign else ""
        raise UsageFault(f"{out}: holds something else than a corpus{what}, and is never overwritten", remedy=_CHOOSE)
    if not empty and not force:
        raise UsageFault(f"{out}: holds a corpus already", remedy=f"add --force to replace it, or {_CHOOSE}")


def _write(
    folder: Path, source: Source, kind: str, jobs: int, advance: Callable[[int], None]
) -> tuple[_Total, dict[str, Any]]:
    """Write the data files into a folder; return what came of the source, and the facts for the manifest."""
    total = _Total()
    place = folder
    if not source.in_order:
        place = folder / _UNSORTED
        place.mkdir()
    repeats = Repeats()
    with CorpusWriter(place, kind) as writer:
        for outcome in _outcomes(source.items(), kind, jobs, advance):
            total.texts += outcome.texts
            total.blocks += outcome.blocks
            total.framed += outcome.framed
            total.written += len(outcome.documents)
            for document in outcome.documents:
                repeats.add(document.name)
                writer.add(document)
        facts = writer.finish()
    if not total.written:
        return total, facts
    files = CorpusFiles(place)
    _refuse_repeats(files, repeats, source)
    if not source.in_order:
        facts = _in_order(files, folder, kind, source)
        del files  # a file that is mapped cannot be removed everywhere
        for name in DATA_FILES:
            (place / name).unlink()
        place.rmdir()
    return total, facts


def _in_order(files: CorpusFiles, folder: Path, kind: str, source: Source) -> dict[str, Any]:
    """Write the documents again in the order of their names, without the folder that holds them all."""
    top = source.top() if isinstance(source, TarSource) else ""
    names = [files.name(number).removeprefix(top) for number in range(len(files))]
    with CorpusWriter(folder, kind) as writer:
        for number in sorted(range(len(names)), key=names.__getitem__):
            writer.add(files.stored(number, names[number]))
        return writer.finish()


def _refuse_repeats(files: CorpusFiles, repeats: Repeats, source: Source) -> None:
    """Raise InputError when two documents have one name, and say where both stand."""
    for number in repeats.candidates():
        name = files.name(number)
        places = source.places(name)
        same = sum(files.name(other) == name for other in range(number + 1))
        if same > 1:
            where = " and ".join(places[:2]) if len(places) > 1 else f"{places[0]} (twice)"
            raise InputError(f"{name!r} names two texts: {where}", remedy="give every text a name of its own")


def _outcomes(items: Iterable[Item], kind: str, jobs: int, advance: Callable[[int], None]) -> Iterator[_Outcome]:
    """Yield what comes of each batch, in order; with several jobs a few batches are under way at once."""
    if jobs <= 1:
        for batch in _batches(items):
            yield _cleaned(kind, batch)
            advance(len(batch))
        return
    with Workers(jobs, kept="nothing is kept of a corpus that is not whole") as workers:
        waiting: deque[tuple[Future[_Outcome], int]] = deque()
        for batch in _batches(items):
            waiting.append((workers.submit(_cleaned, kind, batch), len(batch)))
            if len(waiting) > 2 * jobs:
                future, count = waiting.popleft()
                yield future.result()
                advance(count)
        for future, count in waiting:
            yield future.result()
            advance(count)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.content)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_ITEMS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _cleaned(kind: str, batch: list[Item]) -> _Outcome:
    outcome = _Outcome()
    for item in batch:
        found = item.content if isinstance(item.content, str) else cleaned(item.content, kind)
        if isinstance(found, str):
            outcome.texts[found] += 1
            continue
        left_out = found.left_out.total()
        outcome.documents.append(packed(item.name, found.sha256, found.blocks, left_out))
        outcome.blocks += found.left_out
        outcome.framed += found.framed
    return outcome


def _nothing(source: Path, kind: str, total: _Total) -> ImpossibleRequest:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(total.texts.items()))
    wanted = f" in files that end in {', '.join(SUFFIXES[kind])}" if kind in SUFFIXES else ""
    return ImpossibleRequest(
        f"{source}: holds no text of kind {kind}{wanted}" + (f"; left out: {reasons}" if reasons else ""),
        remedy="give another source",
    )
