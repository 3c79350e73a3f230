"""The index of a corpus of passages: a folder beside its data files, made once, which may be removed and made again."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from gniah.generator.corpora import DiskCorpus
from gniah.generator.retrieval.back_ends import (
    FOLDERS,
    INDEX_SCHEMA,
    KIND,
    LUCENE,
    RANKING_RULES,
    TANTIVY,
    BackEnd,
    command_for,
    damaged,
    read_index_manifest,
)
from gniah.records.canonical import digest
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.files import locked_place, sha256_file, whole_folder
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


def build_index(
    corpus: Path,
    *,
    back_end: str | None = None,
    lucene_index: Path | None = None,
    force: bool = False,
    advance: Callable[[int], None] = _ignore,
) -> Manifest:
    """Make the index of a corpus of passages, unless it is there, fits and is whole to the byte; return its manifest.

    `back_end` is `tantivy` (the default) or `pyserini`. With `lucene_index`, the folder of a Lucene index of the same
    passages, none is made: that one is compared with the corpus and searched where it stands. `advance` is told how
    many passages were read. Rankings are the same for every index that is made of a corpus by one version of a back
    end, and so is the content of the manifest, though the files differ. Raises UsageFault for a corpus of another
    kind or an unknown back end, InputError when there is no corpus, or the index does not fit it or is damaged (`force`
    makes it again), ImpossibleRequest when no passage holds a word, EnvironmentFault when it cannot be written,
    MissingDependency without the back end's library.
    """
    maker = _maker(back_end or (LUCENE if lucene_index else TANTIVY), lucene_index)
    identity = maker.identity()
    passages = DiskCorpus(corpus)
    if passages.kind != KIND:
        raise UsageFault(
            f"{corpus}: a corpus of kind {passages.kind}; passages of Wikipedia are what is searched",
            remedy=f"give what gniah-load corpus {KIND} made",
        )
    place = corpus / FOLDERS[maker.name]
    with locked_place(place):
        if place.exists() and not force:
            return _found_whole(maker, corpus, passages.digest, lucene_index)
        clock = RunClock()
        with whole_folder(place) as folder:
            facts, more = maker.write(folder, passages, advance)
            if not facts["words"]:
                raise ImpossibleRequest(f"{passages.folder}: no passage holds a word", remedy="give another corpus")
            content = {
                "back_end": maker.name,
                "rules": RANKING_RULES,
                "corpus": passages.digest,
                **identity,
                **facts,
            }
            files = {name: sha256_file(path) for name, path in maker.files(folder, more)}
            if lucene_index:
                content["files_sha256"] = digest(files)
            manifest = Manifest(INDEX_SCHEMA, content, clock.run(*maker.libraries, **more, files=files))
            manifest.write(folder)
            _open_to_others(folder)
    return manifest


def _maker(back_end: str, lucene_index: Path | None) -> BackEnd:
    if back_end not in FOLDERS:
        raise UsageFault(f"there is no back end {back_end!r}", remedy=f"use one of {', '.join(FOLDERS)}")
    if back_end == LUCENE:
        from gniah.generator.retrieval.lucene_files import LuceneFiles

        return LuceneFiles(lucene_index)
    if lucene_index is not None:
        raise UsageFault(f"{back_end} cannot read a Lucene index", remedy=f"use the back end {LUCENE}")
    from gniah.generator.retrieval.tantivy_files import TantivyFiles

    return TantivyFiles()


def _found_whole(maker: BackEnd, corpus: Path, corpus_digest: str, lucene_index: Path | None) -> Manifest:
    """Return the manifest of an index that is there. Raises InputError when one byte of it is not what was written."""
    place = corpus / FOLDERS[maker.name]
    manifest = read_index_manifest(maker, corpus, corpus_digest)
    given = str(lucene_index.absolute()) if lucene_index else None
    if lucene_index and manifest.run.get("lucene_index") != given:
        there = manifest.run.get("lucene_index") or "one that was made here"
        raise InputError(
            f"{place}: stands for the index {there}, not for {lucene_index}",
            remedy=f"{command_for(place)} --index {lucene_index} --force",
        )
    written = manifest.run.get("files")
    if not isinstance(written, dict):
        raise damaged(place, "the manifest does not say which files it has")
    found = {name: sha256_file(path) for name, path in maker.files(place, dict(manifest.run))}
    for name in sorted({*found, *written}):
        if found.get(name) != written.get(name):
            raise damaged(place, f"{name} is not as it was written")
    return manifest


def _open_to_others(folder: Path) -> None:
    """Let who may read the manifest read every file: tantivy keeps two to their owner."""
    mode = stat.S_IMODE((folder / MANIFEST_NAME).stat().st_mode)
    for entry in folder.rglob("*"):
        if entry.is_file():
            entry.chmod(mode)
