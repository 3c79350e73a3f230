"""The plan of a list: which examples it has, from which materials, decided before the first is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from gniah.cypher import open_store
from gniah.generator.corpora import Corpus
from gniah.generator.graphniah.building import COMPONENTS_TYPE
from gniah.generator.graphniah.experiments import ListSettings, slots, varied_value
from gniah.generator.graphniah.materials import GENERATOR_VERSION, Materials
from gniah.generator.graphniah.pool_files import PathPool, pool_folder
from gniah.generator.graphniah.possibility import impossible_slots, refuse
from gniah.generator.graphniah.prompts import load_templates
from gniah.generator.retrieval import open_texts
from gniah.generator.tokenizers import Tokenizer, load_tokenizers
from gniah.records.canonical import digest
from gniah.records.errors import InputError, UsageFault
from gniah.records.files import read_json
from gniah.records.graphniah.settings import Settings, distractor_in_files
from gniah.records.manifests import check_schema

PLAN_SCHEMA = "gniah/plan/1"
TOKENIZERS = ("tiktoken:o200k_base",)

_Given = TypeVar("_Given", Path, Path | Corpus)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the materials are. `corpora` maps a distractor type in files to a folder of texts, or to a corpus."""

    store: str
    paths: Path
    corpora: Mapping[str, Path]
    tokenizers: tuple[str, ...]
    templates: str
    cutoff_date: str
    depths: tuple[int, ...]
    chat_templates: tuple[str, ...] = ()

    def open(
        self,
        stack: ExitStack,
        corpora: Mapping[str, Corpus] | None = None,
        tokenizers: Sequence[str | Tokenizer] | None = None,
    ) -> Materials:
        """Open the materials until the stack is closed; corpora and tokenizers that are given are taken instead.

        Raises InputError when they do not belong together.
        """
        store = stack.enter_context(open_store(self.store))
        pools = {}
        for depth in self.depths:
            folder = pool_folder(self.paths, self.cutoff_date, depth)
            pool = pools[depth] = PathPool.read(folder)
            if pool.graph != store.manifest.digest:
                raise InputError(
                    f"{folder}: these paths were sampled from another graph than {self.store} holds",
                    remedy="sample them from this store with gniah-gen paths",
                )
        return Materials(
            store,
            pools,
            corpora or {name: open_texts(folder, name) for name, folder in self.corpora.items()},
            load_tokenizers(tokenizers or self.tokenizers, self.chat_templates),
            load_templates(self.templates),
        )


def sources_for(
    settings: ListSettings,
    *,
    store: str | Path,
    paths: Path,
    corpora: Mapping[str, Path] | None = None,
    tokenizers: Sequence[str] = TOKENIZERS,
    chat_templates: Sequence[str] = (),
    templates: str | None = None,
) -> Sources:
    """Return where the materials of a list are, for `produce`; nothing is opened yet.

    `corpora` maps a distractor type (`code`, `essays`, `books`) to a folder of texts, or to what gniah-load corpus made
    of them; `wikipedia` only to the latter, indexed. `chat_templates` are as `load_tokenizers` takes them. `templates`
    is needed when the template set of the settings is a file. Raises UsageFault when a corpus is missing or not asked
    for, or the file holds another template set than the settings name.
    """
    folders = corpora_for(settings.distractor_types, corpora or {})
    return Sources(
        str(store),
        paths,
        folders,
        tuple(tokenizers),
        _templates_of(settings, templates),
        settings.cutoff_date,
        tuple(sorted(set(settings.depths))),
        tuple(chat_templates),
    )


@contextmanager
def open_materials(
    settings: ListSettings,
    *,
    store: str | Path,
    paths: Path,
    corpora: Mapping[str, Path | Corpus] | None = None,
    tokenizers: Sequence[str | Tokenizer] = TOKENIZERS,
    chat_templates: Sequence[str] = (),
    templates: str | None = None,
) -> Iterator[Materials]:
    """Give the materials of a list, open until the block ends, for `build_examples` and `ExampleBuilder`.

    As `sources_for`, and corpora and tokenizers may be objects of your own. Raises UsageFault as it does, InputError
    when materials are missing or do not belong together.
    """
    given = corpora_for(settings.distractor_types, corpora or {})
    opened = {name: open_texts(item, name) if isinstance(item, Path) else item for name, item in given.items()}
    depths = tuple(sorted(set(settings.depths)))
    texts = _templates_of(settings, templates)
    with ExitStack() as stack:
        sources = Sources(str(store), paths, {}, (), texts, settings.cutoff_date, depths, tuple(chat_templates))
        yield sources.open(stack, opened, tokenizers)


def _templates_of(settings: ListSettings, given: str | None) -> str:
    """Return the template set to open. Raises UsageFault when it is not the one that the settings name."""
    if given is None:
        return settings.templates
    name = load_templates(given).name
    if name != settings.templates:
        raise UsageFault(
            f"{given} holds the template set {name!r}, and the settings name {settings.templates!r}",
            remedy=f"make the settings with templates={name!r}",
        )
    return given


@dataclass(frozen=True)
class Plan:
    """What a list consists of: a qid for each slot, and the settings of each distinct example.

    A slot that was left out as impossible has no qid; `left_out` counts them by reason.
    """

    settings: ListSettings
    inputs: Mapping[str, Any]
    qids: tuple[str | None, ...]
    by_qid: Mapping[str, Settings]
    left_out: Mapping[str, int]

    @property
    def content(self) -> dict[str, Any]:
        """Return the plan as the content of a manifest."""
        return {
            "generator_version": GENERATOR_VERSION,
            "list": self.settings.to_json(),
            "inputs": dict(self.inputs),
            "slots": len(self.qids),
            "qids": digest(self.qids),
            "left_out": dict(self.left_out),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a file: everything that putting the examples together needs."""
        return {
            "schema": PLAN_SCHEMA,
            "content": self.content,
            "path": self.settings.path,
            "slots": [
                {"slot": slot, "qid": qid, "value": varied_value(self.by_qid[qid], self.settings.vary)}
                for slot, qid in enumerate(self.qids)
                if qid is not None
            ],
        }


def make_plan(
    settings: ListSettings, materials: Materials, *, skip_impossible: bool = False, strict_fill: bool = False
) -> Plan:
    """Return the plan of a list: a pure function of its settings and of the materials' hashes.

    Raises ImpossibleRequest that names the cells the graph cannot give, unless they are to be left out.
    """
    planned = slots(settings)
    impossible = impossible_slots(planned, materials, strict_fill=strict_fill)
    qids = [None if slot in impossible else materials.qid(slot) for slot in planned]
    by_qid = {qid: slot for qid, slot in zip(qids, planned, strict=True) if qid is not None}
    if not skip_impossible or not by_qid:
        refuse(impossible.values())
    troubles = (impossible[slot] for slot in planned if slot in impossible)
    left_out = Counter(f"{trouble.cell}: {trouble.reason}" for trouble in troubles)
    return Plan(settings, inputs_of(materials), tuple(qids), by_qid, dict(sorted(left_out.items())))


def inputs_of(materials: Materials) -> dict[str, Any]:
    """Return by hash all that a list is made from, beside its settings."""
    return {
        "graph": materials.store.manifest.digest,
        "paths": {str(depth): pool.digest for depth, pool in sorted(materials.pools.items())},
        "corpora": {name: corpus.digest for name, corpus in sorted(materials.corpora.items())},
        "tokenizers": [{"label": item.label, "digest": item.digest} for item in materials.tokenizers],
        "templates": materials.templates.digest,
    }


def read_plan(path: Path) -> dict[str, Any]:
    """Read a plan file. Raises InputError."""
    value = read_json(path)
    check_schema(value.get("schema"), PLAN_SCHEMA, str(path))
    remedy = "remove the folder, and build again"
    for name, kind in (("content", dict), ("path", str), ("slots", list)):
        if not isinstance(value.get(name), kind):
            raise InputError(f"{path}: not a whole plan: it lacks {name!r}", remedy=remedy)
    if {"..", "/"}.intersection(PurePosixPath(value["path"]).parts):
        raise InputError(f"{path}: 'path' leads out of the folder", remedy=remedy)
    return value


def corpora_for(distractor_types: Sequence[str], given: Mapping[str, _Given]) -> dict[str, _Given]:
    """Return the corpus of each distractor type that needs one.

    Raises UsageFault for one that was not given, and for a corpus that no type asks for.
    """
    for name in given:
        if name not in distractor_types:
            raise UsageFault(f"--corpus {name}=… is given, and no distractors of type {name} are asked for")
    found = {}
    for shown in distractor_types:
        stored = distractor_in_files(shown)
        if stored == COMPONENTS_TYPE:
            continue
        if shown not in given:
            raise UsageFault(f"distractors of type {shown} need a corpus", remedy=f"add --corpus {shown}=FOLDER")
        found[stored] = given[shown]
    return found
