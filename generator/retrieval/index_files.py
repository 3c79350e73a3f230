"""The index of a corpus of passages: a folder beside its data files, made once, which may be removed and made again."""

from __future__ import annotations

import contextlib
import hashlib
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval.analysis import load_analyser, load_tantivy, tantivy_version
from gniah.records.corpora import INDEX_FOLDER
from gniah.records.errors import EnvironmentFault, ImpossibleRequest, InputError, UsageFault
from gniah.records.files import locked_place, machine_trouble, sha256_file, whole_folder
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock

INDEX_SCHEMA = "gniah/passage-index/1"
KIND = "wikipedia"
# Analysis, formula and the order of equal scores. What changes a ranking needs a new number.
RANKING_RULES = 1
WORDS, NUMBER = "words", "number"
_HEAP_BYTES = 256 << 20
_AT_ONCE = 1000


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


def build_index(corpus: Path, *, force: bool = False, advance: Callable[[int], None] = _ignore) -> Manifest:
    """Make the index of a corpus of passages, unless it is there, fits and is whole to the byte; return its manifest.

    `advance` is told how many passages were read. Rankings are the same for every index that is made of a corpus, and
    so is the content of the manifest, though the engine's files differ. Raises UsageFault for a corpus of another kind,
    InputError when there is none, or the index does not fit it or is damaged (`force` makes it again),
    ImpossibleRequest when no passage holds a word, EnvironmentFault when it cannot be written, MissingDependency
    without tantivy.
    """
    version = tantivy_version()
    passages = DiskCorpus(corpus)
    if passages.kind != KIND:
        raise UsageFault(
            f"{corpus}: a corpus of kind {passages.kind}; passages of Wikipedia are what is searched",
            remedy=f"give what gniah-load corpus {KIND} made",
        )
    place = corpus / INDEX_FOLDER
    with locked_place(place):
        if place.exists() and not force:
            manifest = read_index_manifest(corpus, passages.digest)
            _check_files(corpus, manifest)
            return manifest
        clock = RunClock()
        with whole_folder(place) as folder:
            facts = _write(folder, passages, advance)
            content = {
                "back_end": "tantivy",
                "version": version,
                "rules": RANKING_RULES,
                "corpus": passages.digest,
                **facts,
            }
            files = {name: sha256_file(path) for name, path in _files(folder)}
            manifest = Manifest(INDEX_SCHEMA, content, clock.run("tantivy", files=files))
            manifest.write(folder)
            _open_to_others(folder)
    return manifest


def read_index_manifest(corpus: Path, digest: str) -> Manifest:
    """Return the manifest of the index of a corpus with this digest.

    Raises InputError when there is no index, or it was made of another corpus, by other rules or by another tantivy.
    """
    place = corpus / INDEX_FOLDER
    if not place.is_dir():
        raise InputError(f"{corpus}: its passages have no index yet", remedy=f"gniah-gen index {corpus}")
    manifest = Manifest.read(place, INDEX_SCHEMA)
    wanted = {"back_end": "tantivy", "version": tantivy_version(), "rules": RANKING_RULES, "corpus": digest}
    for name, value in wanted.items():
        found = manifest.content.get(name)
        if found != value:
            raise InputError(
                f"{place}: made with {name} {found}, and {value} is needed",
                remedy=f"gniah-gen index {corpus} --force",
            )
    if any(type(manifest.content.get(name)) is not int for name in ("documents", "words")):
        raise damaged(corpus, "the manifest lacks its counts")
    return manifest


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
            raise damaged(corpus, str(error)) from error
    if searcher.num_docs != documents:
        raise damaged(corpus, f"it has {searcher.num_docs:,} passages, and should have {documents:,}")
    return index.schema, searcher


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Return tantivy's files by name; its locks are none."""
    left_out = (MANIFEST_NAME, ".lock")
    with machine_trouble(folder):
        return [(entry.name, entry) for entry in sorted(folder.iterdir()) if not entry.name.endswith(left_out)]


def _check_files(corpus: Path, manifest: Manifest) -> None:
    """Read every byte of an index. Raises InputError when one is not what was written."""
    found = {name: sha256_file(path) for name, path in _files(corpus / INDEX_FOLDER)}
    written = manifest.run.get("files")
    if not isinstance(written, dict):
        raise damaged(corpus, "the manifest does not say which files it has")
    for name in sorted({*found, *written}):
        if found.get(name) != written.get(name):
            raise damaged(corpus, f"{name} is not as it was written")


def damaged(corpus: Path, what: str) -> InputError:
    """Return the error that says that an index is damaged."""
    return InputError(
        f"{corpus / INDEX_FOLDER}: the index is damaged: {what}", remedy=f"gniah-gen index {corpus} --force"
    )


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
    if not total:
        raise ImpossibleRequest(f"{passages.folder}: no passage holds a word", remedy="give another corpus")
    return {"documents": len(passages), "words": total, "words_sha256": hashed.hexdigest()}


def text_of(passages: DiskCorpus, number: int) -> str:
    """Return the text of a passage."""
    return "\n".join(passages.document(number).blocks)


def _open_to_others(folder: Path) -> None:
    """Let who may read the manifest read every file: tantivy keeps two to their owner."""
    mode = stat.S_IMODE((folder / MANIFEST_NAME).stat().st_mode)
    for entry in folder.iterdir():
        entry.chmod(mode)
