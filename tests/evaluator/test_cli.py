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


@pytest.mark.parametrize("words", [[], ["run"], ["score"]])
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
