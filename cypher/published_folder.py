"""Published examples in a folder of their own, which are written to and removed from.

    FOLDER/examples.jsonl     the examples, one a line, sorted by qid
    FOLDER/graph.lbug         a database made from them, and from the papers and the citations of a store
    FOLDER/manifest.json      gniah/published-graph/1

Whatever changes, the folder is made again from the old lines and the new ones, and appears whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gniah.cypher.embedded import DATABASE_NAME, engine_version
from gniah.cypher.published import PUBLISHED_SCHEMA, PublishedExample, is_published
from gniah.cypher.published_database import build_published
from gniah.cypher.store import GraphStore
from gniah.records.errors import InputError, UsageFault
from gniah.records.files import json_line, locked_place, machine_trouble, read_json_lines, sha256_file, whole_folder
from gniah.records.manifests import Manifest, RunClock

EXAMPLES_NAME = "examples.jsonl"
_AGAIN = "remove the folder, and publish again"


def publish_into(folder: Path, examples: Iterable[PublishedExample], store: GraphStore) -> int:
    """Add examples to a folder of published ones, or to one that is not there yet; return how many changed.

    `store` gives the papers and the citations. An example that is there and differs is replaced. Raises UsageFault when
    the folder holds something else, or examples of another graph; InputError when another hand changed it.
    """
    _refuse_other_content(folder)
    with locked_place(folder):
        before = _lines(folder, store)
        lines = before | {example.qid: json_line(example.to_json()) for example in examples}
        changed = sum(before.get(qid) != line for qid, line in lines.items())
        if lines and (changed or not _is_whole(folder)):
            _make(folder, lines, store)
        return changed


def remove_from(folder: Path, qids: Iterable[str], store: GraphStore) -> int:
    """Remove examples from a folder, which goes with the last of them; return how many were there.

    Raises as `publish_into` does.
    """
    _refuse_other_content(folder)
    with locked_place(folder):
        lines = _lines(folder, store)
        removed = sum(lines.pop(qid, None) is not None for qid in qids)
        if removed and lines:
            _make(folder, lines, store)
        elif removed:
            with machine_trouble(folder):
                shutil.rmtree(folder)
        return removed


def _refuse_other_content(folder: Path) -> None:
    if not _is_new(folder) and not is_published(folder):
        raise UsageFault(
            f"{folder}: holds something else than published examples, and is not written to",
            remedy="give them a folder of their own",
        )


def _is_new(folder: Path) -> bool:
    with machine_trouble(folder):
        return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def _lines(folder: Path, store: GraphStore) -> dict[str, bytes]:
    """Return the lines of a folder by qid; none when it is not there, or empty."""
    if _is_new(folder):
        return {}
    manifest = Manifest.read(folder, PUBLISHED_SCHEMA)
    graph = manifest.content.get("graph")
    if not isinstance(graph, dict) or graph.get("digest") != store.manifest.digest:
        raise UsageFault(f"{folder}: holds examples of another graph", remedy="give these another folder")
    path = folder / EXAMPLES_NAME
    if not path.is_file() or sha256_file(path) != manifest.content.get("examples"):
        raise InputError(f"{path}: is not what was written there", remedy=_AGAIN)
    return {str(value["qid"]): json_line(value) for _, value in read_json_lines(path)}


def _is_whole(folder: Path) -> bool:
    """Whether the database in a published folder is that of its manifest, and of this version of the engine."""
    manifest = Manifest.read(folder, PUBLISHED_SCHEMA)
    written = manifest.run.get("database") or {}
    database = folder / DATABASE_NAME
    same_engine = manifest.content.get("engine") == engine_version()
    return same_engine and database.is_file() and sha256_file(database) == written.get("sha256")


def _make(folder: Path, lines: Mapping[str, bytes], store: GraphStore) -> None:
    clock = RunClock()
    with whole_folder(folder) as part:
        path, database, place = part / EXAMPLES_NAME, part / DATABASE_NAME, part / ".rows"
        with path.open("wb") as stream:
            stream.writelines(lines[qid] for qid in sorted(lines))
        place.mkdir()
        counts = build_published(database, lambda: _examples(path), store, place)
        shutil.rmtree(place)
        graph = store.manifest
        content = {
            "engine": engine_version(),
            "graph": {"schema": graph.schema, "digest": graph.digest, "content": graph.content},
            "examples": sha256_file(path),
            "counts": counts,
        }
        written = {"bytes": database.stat().st_size, "sha256": sha256_file(database)}
        Manifest(PUBLISHED_SCHEMA, content, clock.run("ladybug", database=written)).write(part)


def _examples(path: Path) -> Iterator[PublishedExample]:
    for _, value in read_json_lines(path):
        yield PublishedExample.from_json(value)
