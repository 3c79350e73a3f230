"""Results as frames and as Parquet: the documented columns, what gniah wrote, and the published layout."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from evaluator_toys import TASKS, example, mixed, response

from gniah.evaluator import load_results
from gniah.evaluator.exporting import export
from gniah.evaluator.results import write_scores
from gniah.evaluator.scoring import score
from gniah.records.errors import EnvironmentFault, InputError, MissingDependency, UsageFault
from gniah.records.examples import Example
from gniah.records.files import write_json
from gniah.records.graphniah import Settings

PAGE = Path(__file__).parents[2] / "docs" / "scoring.md"
TYPES = {"text": "string", "integer": "Int64", "number": "Float64", "truth": "boolean"}
QID = "ab" * 32


def documented(frame: str) -> dict[str, str]:
    """Return the columns that the page lists for a frame, with their types."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n`{frame}`, a row")[1].split("\n\n")[1]
    found = {}
    for names, kind in re.findall(r"^\| (`[^|]+) \| (\w+) \|", text, re.MULTILINE):
        found |= dict.fromkeys(re.findall(r"`([\w<>]+)`", names), TYPES[kind])
    return found


def settled_example(task: str, number: int, *, variant: bool = False) -> Example:
    """An example with the config that the generator writes."""
    made = Settings(TASKS[task][0], 4, 100, "disjoint-tree", 200_000, None if task == "counting" else "NO", number, 1,
                    "0.1", "2026-04-01", "plain").config()  # fmt: skip
    config = {**made, "none_option": 1, "source_qid": "x"} if variant else made
    answer = {"yes-no": "NO", "multiple-choice": "A", "counting": "99"}[task]
    return example(task, answer, number, config=config, token_counts={"o200k_base": 1000})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two models over all tasks, with repeats, a failure and a cut prompt."""
    asked = [settled_example(task, number) for number, task in enumerate([*TASKS, "counting"])]
    asked.append(settled_example("multiple-choice", 4, variant=True))
    responses = [
        response(one, text, model=model, repeat=repeat, parameters={"reasoning_effort": effort}, **more)
        for model, effort in (("a/b", "low"), ("c", "high"))
        for repeat in range(2)
        for one, text, more in zip(
            asked,
            [r"\answer{NO}", "Answer: A", r"\answer{99 papers}", "hm", r"\answer{E}"],
            [
                {"usage": {"prompt_tokens": 1000, "completion_tokens_details": {"reasoning_tokens": 7}}},
                {"error": "timeout"} if model == "c" else {"seconds": 1.5},
                {},
                {"usage": {"prompt_tokens": 5}},
                {},
            ],
            strict=True,
        )
    ]
    write_scores(tmp_path / "run", score(asked, responses))
    return tmp_path / "run"


def test_the_columns_are_those_of_the_page_with_their_types(run: Path) -> None:
    results = load_results(run)
    for name in ("responses", "summaries", "placements"):
        frame: pd.DataFrame = getattr(results, name)
        columns = documented(name)
        patterns = {column for column in columns if "<" in column}
        found = {column: str(kind) for column, kind in frame.dtypes.items()}
        for pattern in patterns:
            prefix = pattern.partition("<")[0]
            assert {kind for column, kind in found.items() if column.startswith(prefix)} <= {columns[pattern]}
            found = {column: kind for column, kind in found.items() if not column.startswith(prefix)}
        assert found == {column: kind for column, kind in columns.items() if column not in patterns}, name
    assert results.not_understood == ()


def test_a_row_is_a_response_with_its_config(run: Path) -> None:
    frame = load_results(run).responses
    assert len(frame) == 20
    assert frame["model"].unique().tolist() == ["c", "a/b"]  # in the order of files: effort, then model
    first = frame[(frame["model"] == "a/b") & (frame["repeat"] == 1)].set_index("qid")
    assert first["task"].tolist() == ["yes-no", "multiple-choice", "counting", "counting", "multiple-choice"]
    assert first["card_status"].tolist() == ["correct", "unreadable", "unreadable", "prompt-cut", "unreadable"]
    assert first["ours_status"].tolist() == ["correct", "correct", "correct", "prompt-cut", "unreadable"]
    assert first["ours_value"].tolist()[:3] == ["NO", "A", "99"]
    assert first["card_correct"].isna().tolist() == [False, False, False, True, False]
    assert first["prompt_tokens"].tolist()[0] == 1000
    assert first["reasoning_tokens"].tolist()[0] == 7
    assert first["seconds"].tolist()[1] == 1.5
    assert first["chance"].tolist() == [1 / 2, 1 / 4, 1 / 151, 1 / 151, 1 / 4]
    assert first["config_component_node_count"].tolist() == [100] * 5
    assert first["config_answer_condition"].isna().tolist() == [False, False, True, True, False]
    assert first["config_source_qid"].notna().tolist() == [False, False, False, False, True]
    assert set(first["tokens_o200k_base"]) == {1000}
    assert json.loads(first["parameters"].iloc[0]) == {"reasoning_effort": "low"}


def test_summaries_and_placements_have_frames(tmp_path: Path) -> None:
    place = {"name": "depth", "context_length": 200_000, "random_seed": 1, "slot": 7, "path": "x/experiment.jsonl"}
    asked = [one.with_experiments((place, {**place, "slot": 9})) for one in mixed(3)]
    write_scores(tmp_path, score(asked, [response(one) for one in asked]))
    results = load_results(str(tmp_path))
    assert results.placements["slot"].tolist() == [7, 9] * 3
    overall = results.summaries[results.summaries["variable"] == "all"]
    assert overall["reading"].tolist() == ["card", "ours"]
    assert overall["n"].tolist() == [3, 3]
    assert overall["unreadable"].tolist() == [2, 2]
    assert overall["low"].tolist() == [0.0, 0.0]
    assert set(results.summaries["variable"]) >= {"all", "task", "label", "question_depth"}


def test_parquet_has_the_rows_of_the_frame_and_the_same_bytes_again(run: Path, tmp_path: Path) -> None:
    frame = load_results(run).responses
    exported = export(run, tmp_path / "one.parquet")
    assert (exported.rows, exported.not_understood) == (20, ())
    read = pd.read_parquet(tmp_path / "one.parquet", dtype_backend="numpy_nullable")
    pd.testing.assert_frame_equal(read, frame)
    export(run, tmp_path / "two.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert [path.name for path in tmp_path.glob(".*.part")] == []


def test_export_needs_no_pandas(run: Path, tmp_path: Path, without_pandas: None) -> None:
    export(run, tmp_path / "one.parquet")
    with duckdb.connect() as engine:
        counted = engine.execute("SELECT count(*) FROM read_parquet($path)", {"path": str(tmp_path / "one.parquet")})
        assert counted.fetchall() == [(20,)]


@pytest.fixture
def without_pandas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] in {"pandas", "pyarrow"}:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    yield


def test_frames_without_pandas_name_the_extra(run: Path, without_pandas: None) -> None:
    with pytest.raises(MissingDependency, match="No module named 'pandas'") as raised:
        load_results(run)
    assert "gniah[analysis]" in (raised.value.remedy or "")


def published(folder: Path, value: object, name: str = "model=m%2F1.json") -> Path:
    """Put a score file into the layout of the dataset card."""
    path = folder / (
        "cutoff_date=2026-04-01/hops=10-22-46-94/context_length=200k/seed=1/alpha=0.1/vary=question-depth/eval/"
        f"reasoning_effort=low/{name}"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("shape", ["list", "list inside", "map by qid"])
def test_the_published_layout_is_read_as_far_as_the_card_names_it(shape: str, tmp_path: Path) -> None:
    row = {"correct": True, "reachability_task": "yes-no", "config": {"question_depth": 4}, "score": [1], "odd": None}
    value = {
        "list": [{"qid": QID, **row}],
        "list inside": {"accuracy": 0.5, "results": [{"qid": QID, **row}]},
        "map by qid": {"accuracy": 0.5, "results": {QID: row}},
    }[shape]
    published(tmp_path, value)
    results = load_results(tmp_path)
    (found,) = results.responses.to_dict("records")
    assert (found["qid"], found["model"], found["reasoning_effort"]) == (QID, "m/1", "low")
    assert (found["task"], found["card_correct"], found["config_question_depth"]) == ("yes-no", True, 4)
    assert (found["path_vary"], found["path_context_length"], found["path_alpha"]) == ("question-depth", "200k", "0.1")
    assert json.loads(found["other"]) == {"odd": None, "score": [1]}
    assert results.responses["card_status"].isna().all()
    (line,) = results.not_understood
    assert "keys of rows: odd, score" in line
    assert ("keys of the file: accuracy, results" in line) == (shape != "list")
    assert len(results.summaries) == 0


def test_our_files_may_stand_in_the_published_layout(run: Path, tmp_path: Path) -> None:
    ours = json.loads((run / "eval/reasoning_effort=low/model=a%2Fb.json").read_text(encoding="utf-8"))
    published(tmp_path / "archive", ours, "model=a%2Fb.json")
    published(tmp_path / "archive", {"nothing": 1}, "model=z.json")
    results = load_results(tmp_path / "archive")
    assert len(results.responses) == 10
    assert set(results.responses["path_vary"]) == {"question-depth"}
    assert set(results.responses["path_hops"]) == {"10-22-46-94"}
    assert [line.rpartition(": ")[2] for line in results.not_understood] == ["no object in it has a qid"]


def test_a_column_with_values_of_several_types_is_text(tmp_path: Path) -> None:
    configs = [{"k": 1, "f": 1, "b": True}, {"k": "x", "f": 0.5, "b": 1}, {"k": [1], "f": 2**70, "b": None}]
    published(tmp_path, [{"qid": f"{number}", "config": config} for number, config in enumerate(configs)])
    frame = load_results(tmp_path).responses
    assert frame["config_k"].tolist() == ["1", "x", "[1]"]
    assert frame["config_b"].tolist()[:2] == ["true", "1"]
    assert str(frame["config_f"].dtype) == "string"
    export(tmp_path, tmp_path / "x.parquet")
    read = pd.read_parquet(tmp_path / "x.parquet", dtype_backend="numpy_nullable")
    pd.testing.assert_frame_equal(read, frame)


def test_what_does_not_fit_its_column_is_missing(tmp_path: Path) -> None:
    asked = mixed(4)
    odd: list[Any] = ["soon", float("nan"), float("inf"), True]
    answers = [response(one, seconds=value, finish_reason=["x"]) for one, value in zip(asked, odd, strict=True)]
    write_scores(tmp_path, score(asked, answers))
    frame = load_results(tmp_path).responses
    assert frame["seconds"].isna().all()
    assert frame["finish_reason"].tolist() == ['["x"]'] * 4
    export(tmp_path, tmp_path / "x.parquet")
    read = pd.read_parquet(tmp_path / "x.parquet", dtype_backend="numpy_nullable")
    pd.testing.assert_frame_equal(read, frame)


def test_texts_of_models_are_kept_whatever_they_hold(tmp_path: Path) -> None:
    asked = example()
    odd = "a\x00b\u2028\ud83d\n\"'\\ ; é"
    write_scores(tmp_path, score([asked], [response(asked, error=odd)]))
    expected = f"the request failed: {odd}"
    assert load_results(tmp_path).responses["card_reason"].tolist() == [expected.replace("\ud83d", "\ufffd")]
    export(tmp_path, tmp_path / "x.parquet")
    assert pd.read_parquet(tmp_path / "x.parquet")["card_reason"].tolist() == [expected.replace("\ud83d", "\ufffd")]


def damaged(run: Path) -> Path:
    return run / "eval/reasoning_effort=low/model=a%2Fb.json"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "gniah/eval/1"}, "earlier version"),
        ({"schema": "gniah/eval/99"}, "newer version"),
        ({"schema": "gniah/bench/1"}, "expected the schema"),
        ({"responses": None}, "responses is no list"),
        ({"asked": [3]}, "asked is no list"),
        ({"asked": []}, "damaged: KeyError"),
        ({"asked": [{"x": 1}]}, "damaged: KeyError"),
        ({"responses": [{"qid": "qid-0"}]}, "damaged: KeyError"),
        ({"ours": 3}, "damaged: TypeError"),
    ],
)
def test_a_score_file_that_was_changed_is_named(run: Path, change: dict[str, object], said: str) -> None:
    value = json.loads(damaged(run).read_text(encoding="utf-8"))
    write_json(damaged(run), {**value, **change})
    with pytest.raises(InputError, match=said):
        load_results(run)


def test_a_cut_score_file_is_named(run: Path, tmp_path: Path) -> None:
    damaged(run).write_bytes(damaged(run).read_bytes()[:-100])
    with pytest.raises(InputError, match="not JSON"):
        export(run, tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()


def test_a_folder_without_scores_is_refused(tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="no score file"):
            load_results(wrong)


def test_export_refuses_what_is_no_parquet_file(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match=r"ends in \.parquet"):
        export(run, tmp_path / "x.csv")
    (tmp_path / "x.parquet").mkdir()
    with pytest.raises(EnvironmentFault):
        export(run, tmp_path / "x.parquet")
