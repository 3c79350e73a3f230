"""What stands in the folder of an index, whichever library made it: its manifest, and the errors about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from gniah.generator.corpora import DiskCorpus
from gniah.records.corpora import INDEX_FOLDER, LUCENE_FOLDER, is_corpus
from gniah.records.errors import InputError, UsageFault
from gniah.records.manifests import Manifest

INDEX_SCHEMA = "gniah/passage-index/1"
KIND = "wikipedia"
# Analysis, formula and the order of equal scores. What changes a ranking needs a new number.
RANKING_RULES = 1
# The folder of each back end's index, in the corpus. The first is what is made when nobody asks for another.
FOLDERS = {"tantivy": INDEX_FOLDER, "pyserini": LUCENE_FOLDER}
TANTIVY, LUCENE = FOLDERS


class BackEnd(Protocol):
    """A library that can index passages, and how its index stands on disk."""

    name: str
    # What besides gniah has a version that a manifest notes.
    libraries: tuple[str, ...]

    def identity(self) -> dict[str, Any]:
        """Return what an index must have been made by to be read: versions and settings. Raises MissingDependency."""

    def write(
        self, folder: Path, passages: DiskCorpus, advance: Callable[[int], None]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Make the index in a folder; return what the content of its manifest has to say, and what its run has."""

    def files(self, folder: Path, run: dict[str, Any]) -> list[tuple[str, Path]]:
        """Return the files of an index by name. `run` is what `write` returned last."""


def index_of(folder: Path) -> tuple[Path, str]:
    """Return the corpus and the back end that a folder means: a corpus with one index, or the index itself.

    Raises UsageFault when it is neither, or a corpus with more than one index.
    """
    if is_corpus(folder):
        there = [name for name, inner in FOLDERS.items() if (folder / inner).is_dir()]
        if len(there) > 1:
            raise UsageFault(
                f"{folder}: these passages have an index of {' and one of '.join(there)}",
                remedy=" or ".join(f"--corpus {KIND}={folder / FOLDERS[name]}" for name in there),
            )
        return folder, there[0] if there else TANTIVY
    place = folder.absolute()
    for name, inner in FOLDERS.items():
        if place.name == inner and is_corpus(place.parent):
            return folder.parent if folder.name else place.parent, name
    raise UsageFault(
        f"{folder}: not a corpus; passages are searched, so a plain folder does not do",
        remedy=f"make a corpus with gniah-load corpus {KIND}, then gniah-gen index CORPUS",
    )


def read_index_manifest(back_end: BackEnd, corpus: Path, digest: str) -> Manifest:
    """Return the manifest of a back end's index of a corpus with this digest.

    Raises InputError when there is no index, or it was made of another corpus, by other rules or by another version;
    MissingDependency without the back end's library.
    """
    place = corpus / FOLDERS[back_end.name]
    if not place.is_dir():
        raise InputError(f"{corpus}: its passages have no index yet", remedy=command_for(place))
    manifest = Manifest.read(place, INDEX_SCHEMA)
    wanted = {"back_end": back_end.name, "rules": RANKING_RULES, "corpus": digest, **back_end.identity()}
    for name, value in wanted.items():
        found = manifest.content.get(name)
        if found != value:
            raise InputError(
                f"{place}: made with {name} {found}, and {value} is needed", remedy=f"{command_for(place)} --force"
            )
    if any(type(manifest.content.get(name)) is not int for name in ("documents", "words")):
        raise damaged(place, "the manifest lacks its counts")
    return manifest


def command_for(place: Path) -> str:
    """Return the command that makes the index which stands, or is to stand, in a place."""
    more = " --back-end pyserini" if place.name == LUCENE_FOLDER else ""
    return f"gniah-gen index {place.parent}{more}"


def damaged(place: Path, what: str) -> InputError:
    """Return the error that says that the index in a place is damaged."""
    return InputError(f"{place}: the index is damaged: {what}", remedy=f"{command_for(place)} --force")


def text_of(passages: DiskCorpus, number: int) -> str:
    """Return the text of a passage."""
    return "\n".join(passages.document(number).blocks)
