"""Whole lists, on the real store of RFCs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizer_files import like_gemma, like_qwen

from gniah.cypher import open_store
from gniah.generator.graphniah.auditing import audit_pool
from gniah.generator.graphniah.experiments import ListSettings
from gniah.generator.graphniah.plans import Sources, corpora_for, make_plan
from gniah.generator.graphniah.production import WORK_NAME, merge, produce
from gniah.generator.tokenizers import load_tokenizers, request_counts
from gniah.generator.verification import verify_all
from gniah.loader import build_corpus
from gniah.records.errors import BusyError, ImpossibleRequest, InputError, UsageFault
from gniah.records.examples import read_examples
from gniah.records.files import locked_folder
from gniah.records.graphniah.pool import find_record, read_pool
from gniah.records.manifests import Manifest
from gniah.records.responses import prompt_sha256

FILES = ("examples.jsonl", "pool.jsonl", "pool.index.jsonl")


@pytest.fixture(scope="module")
def settings(list_of: Callable[..., ListSettings]) -> ListSettings:
    return list_of(vary="question-format")


@pytest.fixture(scope="module")
def bench(rfc_sources: Sources, settings: ListSettings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a list, built by one process."""
    out = tmp_path_factory.mktemp("production") / "bench"
    produced = produce(settings, rfc_sources, out)
    assert (produced.total, produced.built, produced.found, produced.missing) == (12, 12, 0, 0)
    return out


def published(out: Path, settings: ListSettings) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in (*FILES, settings.path)}


def digest(out: Path) -> str:
    return Manifest.read(out, "gniah/bench/1").digest


def same(out: Path, bench: Path, settings: ListSettings) -> bool:
    return published(out, settings) == published(bench, settings) and digest(out) == digest(bench)


def pieces(out: Path) -> list[Path]:
    return sorted(path for path in (out / WORK_NAME).glob("*.json") if len(path.stem) == 64)


# --- bytes ------------------------------------------------------------------------------------------------------


def test_two_processes_give_the_bytes_of_one(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    assert produce(settings, rfc_sources, tmp_path / "elsewhere", jobs=2).built == 12
    assert same(tmp_path / "elsewhere", bench, settings)


def test_several_tokenizers_counted_and_recounted_in_any_way_give_the_same_bytes(
    rfc_sources: Sources, code_folder: Path, list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    """A folder or a corpus on disk, its lengths known or not, one process or two, with the recount or without."""
    settings = list_of(vary="question-format", count=6, context_length=12_000)
    build_corpus("code", code_folder, tmp_path / "corpus")
    names = (f"gemma=file:{like_gemma(tmp_path / 'gemma')}", f"qwen=file:{like_qwen(tmp_path / 'qwen', template=None)}")
    sources = replace(rfc_sources, tokenizers=(*names, *rfc_sources.tokenizers), chat_templates=("qwen=none",))
    on_disk = replace(sources, corpora={"code": tmp_path / "corpus"})
    produce(settings, sources, tmp_path / "first")
    tokenizers = load_tokenizers(sources.tokenizers, sources.chat_templates)
    for example in read_examples(tmp_path / "first" / "examples.jsonl"):
        assert example.token_counts == request_counts(tokenizers, example.system_prompt, example.user_prompt)
        assert sorted(example.token_counts) == ["gemma", "o200k_base", "qwen"]
        assert 6000 < max(example.token_counts.values()) <= 12_000
    produce(settings, on_disk, tmp_path / "second", jobs=2, recount=False)
    assert len(list((tmp_path / "corpus" / "counts").iterdir())) == 3
    produce(settings, on_disk, tmp_path / "third", recount=False)
    for other in ("second", "third"):
        assert same(tmp_path / other, tmp_path / "first", settings)


def test_parts_in_any_place_are_merged_to_the_same_bytes(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    one, two, whole = tmp_path / "one", tmp_path / "far" / "two", tmp_path / "whole"
    first = produce(settings, rfc_sources, one, part=(1, 2))
    assert (first.total, first.built, first.missing, first.manifest) == (12, 6, 6, None)
    assert not (one / "examples.jsonl").exists()
    with pytest.raises(InputError, match="6 of 12 examples are missing from the parts given"):
        merge([one], whole)
    assert not (whole / "examples.jsonl").exists()
    produce(settings, rfc_sources, two, part=(2, 2))
    assert not {path.name for path in pieces(one)} & {path.name for path in pieces(two)}
    assert merge([two, one], whole).total == 12
    assert same(whole, bench, settings)


def test_the_last_part_in_one_folder_puts_it_together(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    produce(settings, rfc_sources, tmp_path, part=(2, 2))
    last = produce(settings, rfc_sources, tmp_path, part=(1, 2))
    assert (last.built, last.missing) == (6, 0)
    assert same(tmp_path, bench, settings)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_the_program_gives_the_same_bytes_under_any_hash_seed(
    gniah: Callable[..., Any],
    rfc_sources: Sources,
    settings: ListSettings,
    bench: Path,
    tmp_path: Path,
    code_folder: Path,
    hash_seed: str,
) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(code_folder, corpus)
    done = gniah(
        *("examples", "--store", rfc_sources.store, "--paths", rfc_sources.paths, "--out", tmp_path / "bench"),
        *("--count", "12", "--name", "toys", "--context-length", "3000", "--depths", "2,3", "--sizes", "7-9"),
        *("--vary", "question-format", "--corpus", f"code={corpus}", "--json"),
        PYTHONHASHSEED=hash_seed,
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["examples"] == 12
    assert same(tmp_path / "bench", bench, settings)


# --- what is published ------------------------------------------------------------------------------------------


def test_every_example_is_answered_by_its_text(bench: Path) -> None:
    verdicts = list(verify_all(read_examples(bench / "examples.jsonl")))
    assert len(verdicts) == 12
    assert all(verdict.right for verdict in verdicts)


def test_every_audit_is_silent(bench: Path, rfc_sources: Sources) -> None:
    with open_store(rfc_sources.store) as store:
        report = audit_pool(bench / "pool.jsonl", store)
    assert (report.examples, report.violations) == (12, ())


def test_stored_counts_are_those_of_the_published_prompts(bench: Path, rfc_sources: Sources) -> None:
    tokenizers = load_tokenizers(rfc_sources.tokenizers)
    for example in read_examples(bench / "examples.jsonl"):
        assert example.token_counts == request_counts(tokenizers, example.system_prompt, example.user_prompt)
        assert max(example.token_counts.values()) <= 3000


def test_the_index_finds_every_record_by_the_beginning_of_its_qid(bench: Path) -> None:
    records = list(read_pool(bench / "pool.jsonl"))
    examples = list(read_examples(bench / "examples.jsonl"))
    assert [record.qid for record in records] == [example.qid for example in examples]
    for record, example in zip(records, examples, strict=True):
        assert find_record(bench / "pool.jsonl", record.qid) == record
        assert find_record(bench / "pool.jsonl", record.qid[:12]) == record
        assert record.prompt_sha256 == prompt_sha256(example.system_prompt, example.user_prompt)
        assert record.config == example.config
    with pytest.raises(InputError, match="12 examples have a qid that begins with ''"):
        find_record(bench / "pool.jsonl", "")
    with pytest.raises(InputError, match="no examples have a qid that begins with 'xyz'"):
        find_record(bench / "pool.jsonl", "xyz")


def test_the_list_names_its_examples_in_order(bench: Path, settings: ListSettings) -> None:
    rows = [json.loads(line) for line in (bench / settings.path).read_bytes().splitlines()]
    assert [row["slot"] for row in rows] == list(range(12))
    assert [row["value"] for row in rows] == ["yes-no", "multiple-choice", "counting"] * 4
    for row, example in zip(rows, read_examples(bench / "examples.jsonl"), strict=True):
        assert row["qid"] == example.qid
        assert example.experiments == (
            {
                "name": "toys",
                "context_length": 3000,
                "random_seed": 1,
                "slot": row["slot"],
                "path": settings.path,
            },
        )


def test_no_file_knows_where_it_was_made(bench: Path, rfc_sources: Sources, settings: ListSettings) -> None:
    for name, written in published(bench, settings).items():
        for place in (bench, rfc_sources.store, rfc_sources.paths):
            assert str(place).encode() not in written, name
    content = Manifest.read(bench, "gniah/bench/1").content
    assert str(bench.parent) not in json.dumps(content)
    assert content["counts"]["examples"] == 12
    assert content["counts"]["left out"] == {}
    assert not (bench / WORK_NAME).exists()


# --- going on ---------------------------------------------------------------------------------------------------


def test_a_finished_list_is_not_built_again(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bench"
    shutil.copytree(bench, out)
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != ".lock"}
    produced = produce(settings, rfc_sources, out)
    assert (produced.built, produced.found, produced.missing) == (0, 12, 0)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_a_stopped_run_builds_only_what_is_missing(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    # A third part that never was leaves the pieces of the others.
    for part in (1, 2):
        produce(settings, rfc_sources, tmp_path, part=(part, 3))
    finished = pieces(tmp_path)
    assert len(finished) == 8
    for path in finished[::2]:
        path.unlink()
    stamps = {path: path.stat().st_mtime_ns for path in finished[1::2]}
    again = produce(settings, rfc_sources, tmp_path, part=(1, 3))
    assert again.built + again.found == 4
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    last = produce(settings, rfc_sources, tmp_path)
    assert (last.built, last.found) == (8 - again.built, 4 + again.built)
    assert same(tmp_path, bench, settings)


KILLED = """
import sys
from pathlib import Path
from gniah.generator.graphniah import production
write = production.write_piece
def dying(built, work, left=[5]):
    left[0] -= 1
    if not left[0]:
        (work / ".cut.json.0000.part").write_bytes(b"{")
        import os; os.kill(os.getpid(), 9)
    return write(built, work)
production.write_piece = dying
from gniah.generator.cli import main
main()
"""


def test_a_killed_run_goes_on_to_the_same_bytes(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path, code_folder: Path
) -> None:
    command = [sys.executable, "-c", KILLED]
    command += ["examples", "--store", rfc_sources.store, "--paths", str(rfc_sources.paths), "--out", str(tmp_path)]
    command += ["--count", "12", "--name", "toys", "--context-length", "3000", "--depths", "2,3", "--sizes", "7-9"]
    command += ["--vary", "question-format", "--corpus", f"code={code_folder}"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -9
    assert len(pieces(tmp_path)) == 4
    produced = produce(settings, rfc_sources, tmp_path)
    assert (produced.built, produced.found) == (8, 4)
    assert same(tmp_path, bench, settings)


# --- what is refused --------------------------------------------------------------------------------------------


def test_another_list_in_the_folder_is_refused(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    other = replace(settings, seed=2)
    with pytest.raises(UsageFault, match="holds the examples of other settings or inputs"):
        produce(other, rfc_sources, bench)
    produce(other, rfc_sources, tmp_path / "begun", part=(1, 6))
    with pytest.raises(UsageFault, match="holds the examples of other settings or inputs"):
        produce(settings, rfc_sources, tmp_path / "begun", part=(1, 6))
    with pytest.raises(UsageFault, match="holds the examples of other settings or inputs"):
        produce(settings, replace(rfc_sources, tokenizers=("gpt=tiktoken:o200k_base",)), bench)


def test_merging_refuses_other_lists_and_folders_that_hold_none(
    rfc_sources: Sources, settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    produce(settings, rfc_sources, tmp_path / "one", part=(1, 4))
    produce(replace(settings, seed=2), rfc_sources, tmp_path / "two", part=(2, 4))
    with pytest.raises(InputError, match=r"two: is a part of another list than .*one"):
        merge([tmp_path / "one", tmp_path / "two"], tmp_path / "out")
    with pytest.raises(InputError, match="holds no part of a list"):
        merge([tmp_path / "one", bench], tmp_path / "out")


def test_merging_does_not_replace_another_benchmark(
    rfc_sources: Sources, list_of: Callable[..., ListSettings], settings: ListSettings, bench: Path, tmp_path: Path
) -> None:
    few = list_of(count=2, tasks=("counting",), depths=(2,), name="few")
    for part in (1, 2):
        produce(few, rfc_sources, tmp_path / f"{part}", part=(part, 2))
    before = published(bench, settings)
    with pytest.raises(UsageFault, match="holds the examples of other settings or inputs"):
        merge([tmp_path / "1", tmp_path / "2"], bench)
    assert published(bench, settings) == before


def test_a_folder_that_is_being_written_is_busy(
    gniah: Callable[..., Any], rfc_sources: Sources, settings: ListSettings, tmp_path: Path
) -> None:
    with locked_folder(tmp_path):
        done = gniah(
            *("examples", "--store", rfc_sources.store, "--paths", rfc_sources.paths, "--out", tmp_path),
            *("--count", "1", "--context-length", "3000", "--depths", "2", "--sizes", "7-9", "--distractors"),
            "disjoint-component",
        )
        with pytest.raises(BusyError):
            produce(settings, rfc_sources, tmp_path)
    assert done.code == 8
    assert "another process is writing here" in done.err
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_cells_that_cannot_be_had_are_named_before_anything_is_built(
    rfc_sources: Sources, list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    # Backbones of depth 3 have 7 papers.
    settings = list_of(sizes=(5, 6), vary="question-depth")
    with pytest.raises(ImpossibleRequest, match=r"depth 3.*: a component of depth 3 has at least 7 papers") as caught:
        produce(settings, rfc_sources, tmp_path)
    assert "depth 2" not in caught.value.message
    assert "--skip-impossible" in str(caught.value.remedy)
    assert not (tmp_path / WORK_NAME).exists()
    produced = produce(settings, rfc_sources, tmp_path, skip_impossible=True)
    assert produced.total == 6
    content = Manifest.read(tmp_path, "gniah/bench/1").content
    assert list(content["counts"]["left out"].values()) == [6]
    assert "a component of depth 3 has at least 7 papers" in next(iter(content["counts"]["left out"]))
    rows = [json.loads(line) for line in (tmp_path / settings.path).read_bytes().splitlines()]
    assert [(row["slot"], row["value"]) for row in rows] == [(slot, 2) for slot in range(0, 12, 2)]


def test_a_list_of_impossible_cells_only_is_refused_even_when_they_may_be_skipped(
    rfc_sources: Sources, list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    with pytest.raises(ImpossibleRequest):
        produce(list_of(sizes=(5, 6), depths=(3,)), rfc_sources, tmp_path, skip_impossible=True)


def test_a_corpus_that_cannot_fill_is_told_before_anything_is_built(
    rfc_sources: Sources, list_of: Callable[..., ListSettings], tmp_path: Path
) -> None:
    settings = list_of(count=4, tasks=("counting",), depths=(2,), distractor_types=("code",), context_length=60_000)
    with pytest.raises(ImpossibleRequest, match=r"counting, code: the whole corpus has [\d,]+ tokens"):
        produce(settings, rfc_sources, tmp_path, strict_fill=True)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert produce(settings, rfc_sources, tmp_path).total == 4
    assert Manifest.read(tmp_path, "gniah/bench/1").content["counts"]["stopped"] == {"exhausted": 4}


def test_paths_of_another_graph_are_refused(
    rfc_sources: Sources, settings: ListSettings, tmp_path: Path, gniah: Callable[..., Any]
) -> None:
    shutil.copytree(rfc_sources.paths, tmp_path / "paths")
    for path in (tmp_path / "paths").rglob("sampled_paths.json"):
        value = json.loads(path.read_bytes())
        value["paths"][0][0] += 1
        path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(InputError, match="were changed or do not belong together"):
        produce(settings, replace(rfc_sources, paths=tmp_path / "paths"), tmp_path / "out")
    with pytest.raises(InputError, match="no such file"):
        produce(settings, replace(rfc_sources, depths=(2, 3, 4)), tmp_path / "out")


def test_distractor_types_need_their_corpora(tmp_path: Path) -> None:
    assert corpora_for(("code", "disjoint-component"), {"code": tmp_path}) == {"code": tmp_path}
    with pytest.raises(UsageFault, match="distractors of type code need a corpus") as caught:
        corpora_for(("code",), {})
    assert caught.value.remedy == "add --corpus code=FOLDER"
    with pytest.raises(UsageFault, match="no distractors of type essays are asked for"):
        corpora_for(("code",), {"code": tmp_path, "essays": tmp_path})


def test_equal_settings_under_another_name_are_the_same_examples(
    rfc_sources: Sources, list_of: Callable[..., ListSettings]
) -> None:
    values: dict[str, Any] = {"sizes": (7, 7), "depths": (2,), "tasks": ("counting",), "distractor_types": ("code",)}
    with ExitStack() as stack:
        materials = rfc_sources.open(stack)
        one, other = (make_plan(list_of(**values, count=5, name=name), materials) for name in ("a", "b"))
    assert one.qids == other.qids
    assert len(set(one.qids)) == 5
    assert one.content != other.content
