from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gniah.generator import FolderCorpus
from gniah.loader.cli import GROUP
from gniah.records.errors import CheckFailed, InputError, UsageFault

Make = Callable[..., Path]


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(GROUP, ["corpus", *map(str, words)])


def test_a_corpus_is_made_listed_and_checked(tmp_path: Path, tree: Make) -> None:
    out = tmp_path / "out"
    made = call("code", "--from", tree(), "--out", out, "--source", "Toys", "--licence", "CC0")
    assert made.exit_code == 0, made.output
    assert "code from Toys, licence CC0" in made.output
    assert "texts left out: generated code" in made.output
    listed = call("list", out)
    digest = FolderCorpus(tree()).digest
    assert listed.stdout.splitlines()[2].split() == [
        str(out), "code", "4", "6", "0.0", "Toys", "CC0", digest[:12],
    ]  # fmt: skip
    assert json.loads(call("list", tmp_path, "--json").stdout)[0]["digest"] == digest
    assert call("check", out).stdout == f"{out}: whole\n"


def test_json_is_the_content_of_the_manifest(tmp_path: Path, tree: Make) -> None:
    made = call("code", "--from", tree(), "--out", tmp_path / "out", "--json")
    content = json.loads((tmp_path / "out/manifest.json").read_bytes())["content"]
    assert json.loads(made.stdout) == {"out": str(tmp_path / "out"), **content}


def test_each_kind_has_its_command(tmp_path: Path, tree: Make) -> None:
    rows = tree(
        "rows", {"r.jsonl": b'{"name": "a", "id": 5, "body": "one"}\n', "p/p.jsonl": b'{"id":1,"contents":"x"}\n'}
    )
    columns = ("--text-column", "body", "--id-column", "name")
    assert call("essays", "--from", rows / "r.jsonl", "--out", tmp_path / "e", *columns).exit_code == 0
    assert call("books", "--from", tree("pg", {"b.txt": b"Once."}), "--out", tmp_path / "b").exit_code == 0
    assert call("wikipedia", "--from", rows / "p", "--out", tmp_path / "w").exit_code == 0
    found = {one["kind"]: one["counts"]["documents"] for one in json.loads(call("list", tmp_path, "--json").stdout)}
    assert found == {"essays": 1, "books": 1, "wikipedia": 1}


def test_a_damaged_corpus_is_exit_code_1_and_named(tmp_path: Path, tree: Make) -> None:
    out = tmp_path / "out"
    call("code", "--from", tree(), "--out", out)
    (out / "texts.bin").write_bytes(b"F" + (out / "texts.bin").read_bytes()[1:])
    checked = call("check", out)
    assert checked.stdout == f"{out}: 1 fault\n"
    assert isinstance(checked.exception, CheckFailed)
    assert checked.exception.exit_code == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("code", "--from", "nowhere", "--out", "out"), InputError),
        (("list", "nowhere"), InputError),
        (("check", "nowhere"), InputError),
        (("essays", "--from", "rows.jsonl", "--out", "out", "--text-column", "x"), InputError),
        (("wikipedia", "--from", "rows.csv", "--out", "out"), UsageFault),
    ],
)
def test_wrong_words_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], error: type[Exception]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_bytes(b'{"text": "one"}\n')
    Path("rows.csv").write_bytes(b"text\none\n")
    assert isinstance(call(*words).exception, error)
    assert not Path("out").exists()


def test_options_are_asked_for() -> None:
    assert call("code", "--from", "x").exit_code == 2
    assert call("list").exit_code == 2
    assert call("code", "--from", "x", "--out", "y", "--text-column", "z").exit_code == 2
