"""Examples built on a Spark cluster: each comes back as a piece, which is written where the command runs."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gniah.generator.corpora import Corpus, FolderCorpus
from gniah.generator.graphniah.building import ExampleBuilder
from gniah.generator.graphniah.growth import StoreUse
from gniah.generator.graphniah.materials import Materials
from gniah.generator.graphniah.plans import Sources, inputs_of
from gniah.generator.graphniah.pool_files import pool_folder
from gniah.generator.graphniah.publication import piece_of
from gniah.generator.retrieval import open_texts
from gniah.generator.spark import SparkCluster, run_on_spark
from gniah.records.errors import InputError
from gniah.records.graphniah.settings import Settings


class Piece(NamedTuple):
    """A finished example: its qid, the bytes of its piece, and what building it asked of the store."""

    qid: str
    content: bytes
    use: StoreUse


@dataclass(frozen=True, slots=True)
class _Start:
    """What each process of the cluster begins with. `folder` is where relative paths begin, `corpora` are pickled."""

    folder: str
    sources: Sources
    corpora: bytes
    read_when_drawn: frozenset[str]
    inputs: Mapping[str, Any]
    strict_fill: bool
    recount: bool


def build_on_spark(
    cluster: SparkCluster,
    tasks: Sequence[Settings],
    sources: Sources,
    materials: Materials,
    *,
    strict_fill: bool,
    recount: bool,
) -> Generator[Piece]:
    """Yield the examples of these settings as they come. Close the iterator to leave the cluster early.

    Every process opens the sources itself, and what it finds must be what `materials` hold, by hash. Raises InputError
    that names the host where it is not, what building raises, and what `run_on_spark` raises.
    """
    start = _Start(
        str(Path.cwd()),
        sources,
        pickle.dumps(materials.corpora),
        frozenset(name for name, corpus in materials.corpora.items() if isinstance(corpus, FolderCorpus)),
        inputs_of(materials),
        strict_fill,
        recount,
    )
    return run_on_spark(cluster, _prepare, start, tasks, kept="finished examples are kept")


def _prepare(stack: ExitStack, start: _Start) -> Callable[[Settings], Piece]:
    """Open all that examples are made from, in a process of the cluster; return what builds one."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the other cores have processes of their own
    with contextlib.suppress(OSError):  # where all paths are absolute, it need not be there
        os.chdir(start.folder)
    corpora = _corpora(start)
    materials = start.sources.open(stack, corpora)
    _compare(start, materials)
    builder = ExampleBuilder(materials, strict_fill=start.strict_fill, recount=start.recount)

    def build(settings: Settings) -> Piece:
        before = builder.neighbourhoods.use
        built = builder.build(settings)
        return Piece(built.example.qid, piece_of(built), builder.neighbourhoods.use - before)

    return build


def _corpora(start: _Start) -> Mapping[str, Corpus]:
    """Open the corpora. Plain folders are not read again: each of their files is compared when it is drawn."""
    for name, folder in start.sources.corpora.items():
        if name in start.read_when_drawn:
            if not folder.is_dir():
                raise InputError(f"{folder}: no such folder", remedy=_SAME)
        elif open_texts(folder, name).digest != start.inputs["corpora"][name]:
            raise _another(folder, "corpus")
    corpora: Mapping[str, Corpus] = pickle.loads(start.corpora)  # noqa: S301  (from the process that started us)
    return corpora


def _compare(start: _Start, materials: Materials) -> None:
    """Raise InputError when something else was opened here than where the run began."""
    sources, wanted, found = start.sources, start.inputs, inputs_of(materials)
    if found["graph"] != wanted["graph"]:
        raise _another(sources.store, "graph")
    for depth, pool in found["paths"].items():
        if pool != wanted["paths"][depth]:
            raise _another(pool_folder(sources.paths, sources.cutoff_date, int(depth)), "pool of paths")
    if found["tokenizers"] != wanted["tokenizers"]:
        raise _another(", ".join((*sources.tokenizers, *sources.chat_templates)), "tokenizer")
    if found["templates"] != wanted["templates"]:
        raise _another(sources.templates, "template set")


_SAME = "give every worker the same files under the same paths, or a folder that all share"


def _another(where: object, what: str) -> InputError:
    return InputError(f"{where}: another {what} than where the command was given", remedy=_SAME)


__all__ = ["Piece", "build_on_spark"]
