from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from evaluator_toys import example, mixed, response, write_examples

from gniah.evaluator.cli import main
from gniah.records.files import json_line

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gniah_eval(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gniah-eval", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def test_a_run_can_be_scored(gniah_eval: Run, tmp_path: Path) -> None:
    bench, out = write_examples(tmp_path / "bench", mixed(6)).parent, tmp_path / "run"
    code, text, _ = gniah_eval("run", bench, "--model", "random", "--model", "constant", "--out", out)
    assert (code, text.count("6")) == (0, 2)
    code, text, err = gniah_eval("score", bench, out)
    assert code == 0, err
    assert "Accuracy by model and task" in text and "Accuracy by variable" in text
    value = json.loads((out / "eval/reasoning_effort=none/model=constant.json").read_text(encoding="utf-8"))
    assert (value["overall"]["n"], value["overall"]["correct"]) == (6, 6)


def test_json_goes_to_standard_output_alone(gniah_eval: Run, tmp_path: Path) -> None:
    path, out = write_examples(tmp_path / "bench", mixed(4)), tmp_path / "run"
    code, text, _ = gniah_eval("run", path, "--model", "constant", "--out", out, "--json", "--limit", 2, "--repeats", 3)
    assert code == 0
    assert json.loads(text)["models"] == [{"model": "constant", "answered": 6, "already": 0, "failed": 0}]
    code, text, _ = gniah_eval("score", path, out, "--json", "--model", "constant")
    assert code == 0
    (model,) = json.loads(text)["models"]
    assert model["without_response"] == ["qid-2", "qid-3"]
    assert model["overall"]["wilson_95"] is None


def test_scoring_twice_gives_the_same_bytes_and_the_same_words(gniah_eval: Run, tmp_path: Path) -> None:
    path, out = write_examples(tmp_path / "bench", mixed(5)), tmp_path / "run"
    gniah_eval("run", path, "--model", "random", "--out", out, "--seed", 7)
    file = out / "eval/reasoning_effort=none/model=random.json"
    first = gniah_eval("score", path, out), file.read_bytes()
    assert (gniah_eval("score", path, out), file.read_bytes()) == first


def test_tables_are_filled_by_the_reading_that_is_asked_for_and_files_are_the_same(
    gniah_eval: Run, tmp_path: Path
) -> None:
    asked = [example(number=number) for number in range(2)]
    path, out = write_examples(tmp_path / "bench", asked), tmp_path / "run"
    out.mkdir()
    answers = [response(asked[0]), response(asked[1], "Answer: YES")]
    (out / "inference_pool.jsonl").write_bytes(b"".join(json_line(one.to_json()) for one in answers))
    file = out / "eval/reasoning_effort=none/model=toy.json"
    tables, files = {}, {}
    for reading in ("card", "ours"):
        code, tables[reading], _ = gniah_eval("score", path, out, "--reading", reading)
        assert code == 0
        files[reading] = file.read_bytes()
    assert files["card"] == files["ours"]
    assert tables["card"] == gniah_eval("score", path, out)[1]
    assert "50.00" in tables["card"].splitlines()[3] and "100.00" in tables["ours"].splitlines()[3]
    assert "(reading: ours)" in tables["ours"] and "reading:" not in tables["card"]
    line = "the readings differ in 1 of 2 responses: 1 read by ours only"
    assert line in tables["card"] and line in tables["ours"]


def test_json_has_the_summaries_and_not_every_response(gniah_eval: Run, tmp_path: Path) -> None:
    path, out = write_examples(tmp_path / "bench", mixed(3)), tmp_path / "run"
    gniah_eval("run", path, "--model", "constant", "--out", out)
    (model,) = json.loads(gniah_eval("score", path, out, "--json")[1])["models"]
    value = json.loads((out / "eval/reasoning_effort=none/model=constant.json").read_text(encoding="utf-8"))
    assert model == {name: part for name, part in value.items() if name not in {"asked", "responses"}}
    assert model["counts"]["exact"] == model["ours"]["counts"]["exact"] == 1


def test_what_does_not_match_one_to_one_is_named(gniah_eval: Run, tmp_path: Path) -> None:
    asked = mixed(3)
    path, out = write_examples(tmp_path / "bench", [*asked, asked[0]]), tmp_path / "run"
    out.mkdir()
    answers = [response(asked[0]), response(asked[0]), response(asked[1]), response(asked[1], repeat=1)]
    pool = [*answers, response(example(number=9))]
    (out / "inference_pool.jsonl").write_bytes(b"".join(json_line(one.to_json()) for one in pool))
    code, _, err = gniah_eval("score", path, out)
    assert code == 1
    value = json.loads((out / "eval/reasoning_effort=none/model=toy.json").read_text(encoding="utf-8"))
    assert value["unknown_examples"] == ["qid-9"]
    assert value["without_response"] == ["qid-2"]
    assert value["duplicate_examples"] == ["qid-0"]
    assert value["duplicate_responses"] == [{"qid": "qid-0", "repeat": 0}]
    assert value["repeated_examples"] == ["qid-1"]
    for line in (
        "1 example (qid-0) listed more than once",
        "responses to 1 example (qid-9) that are not in the examples file",
        "1 example (qid-2) without a response",
        "1 example (qid-1) asked more than once",
        "1 further answer to a request that has one ignored (qid-0)",
    ):
        assert line in err, line


def test_results_can_be_exported(gniah_eval: Run, tmp_path: Path) -> None:
    path, out = write_examples(tmp_path / "bench", mixed(3)), tmp_path / "run"
    gniah_eval("run", path, "--model", "constant", "--out", out)
    gniah_eval("score", path, out)
    code, text, err = gniah_eval("export", out, "--out", tmp_path / "deep" / "x.parquet")
    assert (code, text) == (0, "")
    assert "x.parquet: 3 rows" in err
    assert (tmp_path / "deep" / "x.parquet").is_file()
    code, _, err = gniah_eval("export", tmp_path / "bench", "--out", tmp_path / "y.parquet")
    assert code == 3 and "no score file" in err
    code, _, err = gniah_eval("export", out, "--out", tmp_path / "y.csv")
    assert code == 2 and not (tmp_path / "y.csv").exists()


def test_constant_answers_can_be_given(gniah_eval: Run, tmp_path: Path) -> None:
    path, out = write_examples(tmp_path / "bench", [example(answer="YES")]), tmp_path / "run"
    gniah_eval("run", path, "--model", "constant", "--out", out, "--constant-answer", "yes-no=YES")
    code, text, _ = gniah_eval("score", path, out, "--json")
    assert code == 0
    assert json.loads(text)["models"][0]["overall"]["percentage"] == 100


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (response(example()), 0),
        (response(example(), "unreadable"), 0),
        (response(example(), error="timeout"), 1),
        (response(example(), prompt_sha256="0" * 64), 1),
        (response(example(number=9)), 1),
    ],
)
def test_errors_and_unmatched_responses_end_with_1(
    gniah_eval: Run, tmp_path: Path, answer: object, expected: int
) -> None:
    path, out = write_examples(tmp_path / "bench", [example()]), tmp_path / "run"
    out.mkdir()
    (out / "inference_pool.jsonl").write_bytes(json_line(answer.to_json()))  # type: ignore[attr-defined]
    code, text, err = gniah_eval("score", path, out)
    assert code == expected, err
    assert "Accuracy" in text
    assert (out / "eval").is_dir()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "BENCH", "--model", "gpt", "--out", "RUN"], 2, "known are text-solver, random, constant"),
        (["run", "BENCH", "--out", "RUN"], 2, "--model"),
        (["run", "BENCH", "--model", "constant", "--out", "RUN", "--constant-answer", "x"], 2, "TASK=ANSWER"),
        (["run", "BENCH", "--model", "constant", "--out", "RUN", "--constant-answer", "x=y"], 2, "yes-no"),
        (
            ["run", "BENCH", "--model", "random", "--out", "RUN", "--count-range", "9", "3"],
            2,
            "smallest comes first",
        ),
        (["run", "BENCH", "--model", "random", "--out", "RUN", "--repeats", "0"], 2, "--repeats"),
        (["run", "NOWHERE", "--model", "random", "--out", "RUN"], 3, "no such file"),
        (["score", "BENCH", "RUN"], 3, "no such file"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_mistakes_are_explained_and_leave_nothing(
    gniah_eval: Run, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    bench = write_examples(tmp_path / "bench", mixed(1)).parent
    names = {"BENCH": bench, "RUN": tmp_path / "run", "NOWHERE": tmp_path / "nowhere"}
    found, out, err = gniah_eval(*(names.get(word, word) for word in words))
    assert (found, out) == (code, "")
    assert said in err
    assert not (tmp_path / "run").exists()


def test_a_model_that_did_not_answer_cannot_be_scored(gniah_eval: Run, tmp_path: Path) -> None:
    path, out = write_examples(tmp_path / "bench", mixed(1)), tmp_path / "run"
    gniah_eval("run", path, "--model", "constant", "--out", out)
    code, _, err = gniah_eval("score", path, out, "--model", "random")
    assert (code, (out / "eval").exists()) == (2, False)
    assert "no response of random" in err


@pytest.mark.parametrize("words", [[], ["run"], ["score"], ["export"]])
def test_help_has_an_example(gniah_eval: Run, words: list[str]) -> None:
    code, text, _ = gniah_eval(*words, "--help")
    assert code == 0
    assert "Example:\n" in text


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys, gniah.evaluator.cli as cli\nsys.argv = ['gniah-eval', '--help']\ntry: cli.main()\n"
        "except SystemExit: pass\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(ended.stderr.split()) & {"scipy", "numpy", "ladybug", "duckdb", "tiktoken", "rustworkx"}
