from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from gniah.records.errors import InputError
from gniah.records.manifests import Manifest, RunClock, check_schema, package_version

SCHEMA = "gniah/graph/1"
CONTENT = {"counts": {"papers": 2}, "cutoff": "2026-04-01"}


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Manifest(SCHEMA, CONTENT, {"seconds": 0.5, "host": "here"}).write(tmp_path)
    return tmp_path


def test_reads_back_what_was_written(folder: Path) -> None:
    read = Manifest.read(folder, SCHEMA)
    assert (read.schema, read.content, read.run) == (SCHEMA, CONTENT, {"seconds": 0.5, "host": "here"})


def test_the_digest_is_that_of_schema_and_content_and_ignores_the_run() -> None:
    form = b'{"content":{"counts":{"papers":2},"cutoff":"2026-04-01"},"schema":"gniah/graph/1"}'
    digests = {Manifest(SCHEMA, CONTENT, run).digest for run in ({}, {"seconds": 1.5}, {"host": "there"})}
    assert digests == {hashlib.sha256(form).hexdigest()}


def test_the_digest_tells_contents_and_schemas_apart() -> None:
    assert (
        len(
            {
                Manifest(SCHEMA, CONTENT).digest,
                Manifest("gniah/store/1", CONTENT).digest,
                Manifest(SCHEMA, CONTENT | {"cutoff": "2026-04-02"}).digest,
            }
        )
        == 3
    )


def test_a_changed_run_is_read(folder: Path) -> None:
    changed(folder, lambda value: value["run"].update(seconds=9))
    assert Manifest.read(folder, SCHEMA).run["seconds"] == 9
    changed(folder, lambda value: value.update(run=["odd"]))
    assert Manifest.read(folder, SCHEMA).run == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value["content"]["counts"].update(papers=3),
        lambda value: value["content"].update(more=None),
        lambda value: value["content"].update(fraction=0.5),
        lambda value: value["content"].update(large=2**60),
        lambda value: value["content"].pop("cutoff"),
        lambda value: value.update(digest="0" * 64),
        lambda value: value.pop("digest"),
    ],
)
def test_changed_content_is_refused(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    changed(folder, change)
    with pytest.raises(InputError, match="the content was changed after it was written"):
        Manifest.read(folder, SCHEMA)


def test_a_newer_schema_is_refused(folder: Path) -> None:
    changed(folder, lambda value: value.update(schema="gniah/graph/2"))
    with pytest.raises(InputError, match=r"written by a newer version of gniah \(schema gniah/graph/2") as caught:
        Manifest.read(folder, SCHEMA)
    assert caught.value.remedy == "upgrade gniah"


def test_another_kind_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="expected the schema 'gniah/store/1', found 'gniah/graph/1'") as caught:
        Manifest.read(folder, "gniah/store/1")
    assert caught.value.remedy == "give the file or folder that holds store data"


@pytest.mark.parametrize(
    "found",
    [None, 1, "", "gniah/graph", "gniah/graph/x", "gniah/graph/1/2", "gniah/graph/١", "graph/1", ["gniah/graph/1"]],
)
def test_something_that_is_no_schema_is_refused(found: object) -> None:
    with pytest.raises(InputError, match=re.escape(f"here: expected the schema 'gniah/graph/1', found {found!r}")):
        check_schema(found, SCHEMA, "here")


def test_an_older_schema_is_let_through_to_its_reader() -> None:
    check_schema("gniah/graph/1", "gniah/graph/3", "here")
    with pytest.raises(InputError, match="newer version"):
        check_schema("gniah/graph/10", "gniah/graph/9", "here")


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match=r"there is no manifest.json here, so this is no finished graph folder"):
            Manifest.read(place, SCHEMA)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"schema":"gniah/graph/1","content":[]}'])
def test_a_broken_manifest_is_an_input_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "manifest.json"))):
        Manifest.read(tmp_path, SCHEMA)


def test_the_run_part_names_host_versions_and_what_is_added() -> None:
    run = RunClock().run("duckdb", graph="x")
    assert run["versions"] == {"gniah": package_version(), "duckdb": metadata.version("duckdb")}
    assert run["graph"] == "x"
    assert run["seconds"] >= 0
    assert set(run) == {"started", "seconds", "host", "python", "platform", "versions", "graph"}
