from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from evaluator_toys import example, mixed, response, write_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.evaluator.cli import main
from gniah.evaluator.comparing_commands import comparison_json, comparison_text
from gniah.evaluator.comparison import MCNEMAR, SIGN_FLIP, Comparison, compare
from gniah.evaluator.outcomes import Asked, Outcome, Outcomes, read_outcomes, score_file
from gniah.evaluator.results import write_scores
from gniah.evaluator.scoring import score
from gniah.evaluator.statistics import PairedTable, holm, mcnemar_exact, paired_difference_interval, sign_flip_test
from gniah.records.errors import InputError
from gniah.records.examples import Example
from gniah.records.files import json_line

Run = Callable[..., tuple[int, str, str]]


def side(
    statuses: Mapping[str, str | Sequence[str]],
    variables: Mapping[str, Mapping[str, str]] | None = None,
    bases: Mapping[str, str] | None = None,
    model: str = "m",
) -> Outcomes:
    """Return outcomes from the status, or the statuses of several repeats, of each example."""
    answers = tuple(
        Outcome(qid, status, "YES")
        for qid, found in statuses.items()
        for status in ([found] if isinstance(found, str) else found)
    )
    asked = {qid: Asked((bases or {}).get(qid, qid), (variables or {}).get(qid, {})) for qid in statuses}
    return Outcomes(model, "low", "card", answers, asked)


def word(right: bool) -> str:
    return "correct" if right else "wrong"


def both_sides(table: PairedTable) -> tuple[Outcomes, Outcomes]:
    outcomes = [(True, True)] * table.both + [(False, True)] * table.gained
    outcomes += [(True, False)] * table.lost + [(False, False)] * table.neither
    first, second = (
        side({f"q{number}": word(pair[which]) for number, pair in enumerate(outcomes)}) for which in (0, 1)
    )
    return first, second


few = st.integers(0, 12)


@given(st.builds(PairedTable, few, few, few, few).filter(lambda table: table.n > 0))
@settings(max_examples=60, deadline=None)
def test_one_answer_each_is_a_paired_table_with_mcnemar_and_newcombe(table: PairedTable) -> None:
    found = compare(*both_sides(table)).overall
    assert (found.table, found.method, found.examples, found.clusters) == (table, MCNEMAR, table.n, table.n)
    assert found.p == mcnemar_exact(table.gained, table.lost)
    assert found.interval == paired_difference_interval(table)
    assert (found.gained, found.lost) == (table.gained, table.lost)
    assert found.second - found.first == Fraction(table.gained - table.lost, table.n)


def test_whatever_is_no_right_answer_is_wrong_and_what_is_not_counted_is_left_out() -> None:
    words = ["correct", "wrong", "unreadable", "empty", "refused", "length", "prompt-cut", "error"]
    pairs = {f"{one}/{other}": (one, other) for one, other in product(words, words)}
    first, second = (side({qid: pair[which] for qid, pair in pairs.items()}) for which in (0, 1))
    with pytest.raises(InputError, match="not the same examples are counted: 12"):
        compare(first, second)
    found = compare(first, second, intersect=True)
    assert found.overall.table == PairedTable(both=1, gained=5, lost=5, neither=25)
    assert len(found.first_only) == len(found.second_only) == 12
    assert all(name.split("/")[1] in ("prompt-cut", "error") for name in found.first_only)


def test_unmatched_examples_are_refused_by_name() -> None:
    many = {f"q{number:02}": "correct" for number in range(15)}
    with pytest.raises(InputError) as refused:
        compare(side(many), side({"q03": "wrong", "other": "correct"}))
    message = refused.value.message
    assert "14 (q00, q01, q02, q04, q05, q06, q07, q08, q09, q10, …) in A only" in message
    assert "1 (other) in B only, 1 in both" in message
    assert "--intersect" in (refused.value.remedy or "")
    found = compare(side(many), side({"q03": "wrong", "other": "correct"}), intersect=True)
    assert (found.overall.examples, len(found.first_only), found.second_only) == (1, 14, ("other",))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"a": "correct"}, {"b": "correct"}),
        ({"a": "error"}, {"a": "error"}),
        ({"a": "error"}, {"a": "wrong"}),
    ],
)
def test_nothing_to_compare_is_an_error(first: dict[str, str], second: dict[str, str]) -> None:
    with pytest.raises(InputError, match="no example is counted on both sides"):
        compare(side(first), side(second), intersect=True)


def test_other_right_answers_are_no_same_example() -> None:
    first = side({"a": "correct"})
    second = Outcomes("m", "low", "card", (Outcome("a", "wrong", "NO"),), first.asked)
    with pytest.raises(InputError, match="take other answers for right: NO, YES"):
        compare(first, second)


def test_rows_have_their_own_tests_and_holm_takes_them_all_as_one_family() -> None:
    qids = [f"q{number}" for number in range(24)]
    variables = {
        qid: {"task": ("yes-no", "counting")[number % 2], "question_depth": ("16", "4", "8")[number % 3], "one": "x"}
        for number, qid in enumerate(qids)
    }
    first = side({qid: word(number % 4 == 0) for number, qid in enumerate(qids)}, variables)
    second = side({qid: word(number % 2 == 0 or number > 18) for number, qid in enumerate(qids)}, variables)
    found = compare(first, second)
    assert [(row.variable, row.value) for row in found.rows] == [
        ("task", "counting"),
        ("task", "yes-no"),
        ("question_depth", "4"),
        ("question_depth", "8"),
        ("question_depth", "16"),
    ]
    for row in found.rows:
        members = [qid for qid in qids if variables[qid][row.variable] == row.value]
        gained = sum(_status(second, qid) == "correct" != _status(first, qid) for qid in members)
        lost = sum(_status(first, qid) == "correct" != _status(second, qid) for qid in members)
        assert (row.difference.examples, row.difference.gained, row.difference.lost) == (len(members), gained, lost)
        assert row.difference.p == mcnemar_exact(gained, lost)
    assert [row.p_holm for row in found.rows] == holm([row.difference.p for row in found.rows])
    assert any(row.p_holm > row.difference.p for row in found.rows)


def _status(outcomes: Outcomes, qid: str) -> str:
    return next(answer.status for answer in outcomes.answers if answer.qid == qid)


def test_a_variable_with_too_many_values_gets_no_rows() -> None:
    variables = {f"q{number}": {"size": str(number)} for number in range(9)}
    both = side(dict.fromkeys(variables, "correct"), variables)
    found = compare(both, both)
    assert (found.rows, found.skipped) == ((), ("size",))


def test_repeats_make_one_value_of_an_example_and_no_mcnemar() -> None:
    first = side({"a": ["correct", "wrong", "wrong", "error"], "b": ["correct"], "c": ["wrong", "wrong"], "d": "wrong"})
    second = side({"a": ["correct"], "b": ["wrong", "wrong"], "c": ["wrong", "correct"], "d": "wrong"})
    found = compare(first, second).overall
    assert (found.method, found.table, found.examples) == (SIGN_FLIP, None, 4)
    assert (found.first, found.second) == (Fraction(4, 3) / 4, Fraction(3, 2) / 4)
    assert (found.gained, found.lost) == (2, 1)
    assert found.p == sign_flip_test([Fraction(2, 3), Fraction(-1), Fraction(1, 2), Fraction(0)])


def test_repeats_are_no_more_evidence_than_examples() -> None:
    statuses = {f"q{number}": word(number % 3 == 0) for number in range(30)}
    better = {f"q{number}": word(number % 3 != 2) for number in range(30)}
    once = compare(side(statuses), side(better)).overall
    thrice = compare(
        side({qid: [one] * 3 for qid, one in statuses.items()}), side({qid: [one] * 3 for qid, one in better.items()})
    ).overall
    assert thrice.p == pytest.approx(once.p)
    assert (once.method, thrice.method) == (MCNEMAR, SIGN_FLIP)
    assert thrice.interval is not None and once.interval is not None
    assert thrice.interval == pytest.approx(once.interval, abs=0.05)
    # Taken as 90 independent pairs they would be far more.
    assert mcnemar_exact(30, 0) < 1e-6 < thrice.p


def test_variants_of_one_example_are_one_cluster_or_one_pair() -> None:
    bases = {f"v{number}": f"q{number}" for number in range(6)}
    plain = {f"q{number}": word(number < 4) for number in range(6)}
    variant = {f"v{number}": word(number < 1) for number in range(6)}
    before, after = side(plain), side(variant, bases=bases)
    with pytest.raises(InputError, match="6 \\(q0, q1"):
        compare(before, after)
    paired = compare(before, after, pair_variants=True).overall
    assert paired.table == PairedTable(both=1, gained=0, lost=3, neither=2)
    together = compare(side({**plain, **variant}, bases=bases), side({**variant, **plain}, bases=bases)).overall
    assert (together.method, together.examples, together.clusters) == (SIGN_FLIP, 12, 6)


def test_a_bootstrap_that_says_nothing_gives_no_interval() -> None:
    assert compare(side({"a": ["wrong", "wrong"]}), side({"a": "correct"})).overall.interval is None
    alike = {f"q{number}": ["wrong", "correct"] for number in range(5)}
    found = compare(side(alike), side(alike)).overall
    assert (found.interval, found.p) == (None, 1.0)


def test_the_seed_moves_the_bootstrap_alone_and_the_order_of_answers_nothing() -> None:
    def sides(order: int) -> tuple[Outcomes, Outcomes]:
        qids = [f"q{number}" for number in range(20)][::order]
        return (
            side({qid: [word(int(qid[1:]) % 2 == 0), "wrong", "wrong", "correct", "wrong"] for qid in qids}),
            side({qid: [word(int(qid[1:]) % 3 == 0)] + ["correct"] * (int(qid[1:]) % 7) for qid in qids}),
        )

    one, again = compare(*sides(1)), compare(*sides(-1))
    assert comparison_json(one) == comparison_json(again)
    other = compare(*sides(1), seed=2**70)
    assert other.overall.interval != one.overall.interval
    assert other.overall.p == one.overall.p


def test_shares_with_large_denominators_are_bootstrapped_too() -> None:
    primes = (101, 103, 107, 109, 113, 127)
    first = side({f"q{prime}": ["correct"] * 7 + ["wrong"] * (prime - 7) for prime in primes})
    second = side({f"q{prime}": ["correct"] * (prime % 10) + ["wrong"] * 9 for prime in primes})
    found = compare(first, second).overall
    assert found.interval is not None
    assert found.interval[0] < float(found.second - found.first) < found.interval[1]


# Files and commands.


@pytest.fixture
def gniah_eval(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gniah-eval", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def scored(folder: Path, examples: list[Example], texts: Mapping[str, str], model: str = "toy") -> Path:
    """Score a response to each example whose text is given, and return the score file."""
    answers = [response(one, texts[one.qid], model=model) for one in examples if one.qid in texts]
    (path,) = write_scores(folder, score(examples, answers))
    return path


def answers(examples: list[Example], right: Callable[[int], bool]) -> dict[str, str]:
    wrong = {"yes-no": "YES", "multiple-choice": "B", "counting": "100"}
    return {
        one.qid: rf"\answer{{{one.answer if right(number) else wrong[one.task]}}}"
        for number, one in enumerate(examples)
    }


def test_two_score_files_are_compared_by_task_and_variable(gniah_eval: Run, tmp_path: Path) -> None:
    asked = mixed(30)
    one = scored(tmp_path / "one", asked, answers(asked, lambda number: number % 5 == 0), "old\x1b[31m")
    two = scored(tmp_path / "two", asked, answers(asked, lambda number: number % 5 < 4), "new")
    code, text, err = gniah_eval("compare", one, tmp_path / "two")
    assert code == 0, err
    assert "\x1b" not in text
    lines = text.splitlines()
    assert lines[0].startswith("A: old") and lines[1] == "B: new, effort none, reading card"
    assert [line.split() for line in lines if line.startswith("A ")] == [
        ["A", "right", "6", "0"],
        ["A", "wrong", "18", "6"],
    ]
    overall = next(line for line in lines if line.startswith("all")).split()
    assert overall[:5] == ["all", "30", "20.00", "80.00", "+60.00"]
    assert overall[7:] == ["18", "0", "<0.0001", "–"]
    assert sum(line.startswith("task") for line in lines) == 3
    assert sum(line.startswith("question_depth") for line in lines) == 2
    assert "component_node_count: too many values" in text
    assert "exact McNemar" in lines[-1]
    assert two.is_file()


def test_json_has_the_same_numbers(gniah_eval: Run, tmp_path: Path) -> None:
    asked = mixed(12)
    one = scored(tmp_path / "one", asked, answers(asked, lambda number: number < 6))
    two = scored(tmp_path / "two", asked, answers(asked, lambda number: number > 2))
    code, text, err = gniah_eval("compare", one, two, "--json")
    assert code == 0, err
    value = json.loads(text)
    found = compare(read_outcomes(one), read_outcomes(two))
    assert value == json.loads(json.dumps(comparison_json(found)))
    assert {name: value["overall"][name] for name in ("examples", "a", "b", "difference", "gained", "lost")} == {
        "examples": 12,
        "a": 50.0,
        "b": 75.0,
        "difference": 25.0,
        "gained": 6,
        "lost": 3,
    }
    assert value["overall"]["p"] == mcnemar_exact(6, 3)


def test_one_run_is_compared_under_two_readings(gniah_eval: Run, tmp_path: Path) -> None:
    asked = [example("counting", "120", number=number) for number in range(4)]
    texts = [r"\answer{120}", r"\answer{120 papers}", r"\answer{n = 120}", r"\answer{7 papers}"]
    file = scored(tmp_path, asked, {one.qid: text for one, text in zip(asked, texts, strict=True)})
    code, text, err = gniah_eval("compare", file, file, "--reading-b", "ours", "--json")
    assert code == 0, err
    value = json.loads(text)
    assert (value["a"]["reading"], value["b"]["reading"]) == ("card", "ours")
    assert (value["overall"]["gained"], value["overall"]["lost"], value["overall"]["examples"]) == (2, 0, 4)


def test_an_example_and_its_variant_are_paired_when_asked_for(gniah_eval: Run, tmp_path: Path) -> None:
    plain = [example("multiple-choice", "A", number=number) for number in range(6)]
    variants = [
        example("multiple-choice", "A", number=100 + one, letters="ABCDE", config={"source_qid": f"qid-{one}"})
        for one in range(6)
    ]
    before = scored(tmp_path / "before", plain, {one.qid: r"\answer{A}" for one in plain})
    after = scored(tmp_path / "after", variants, {one.qid: r"\answer{E}" for one in variants})
    code, _, err = gniah_eval("compare", before, after)
    assert code == 3
    assert "6 (qid-0, qid-1" in err and "6 (qid-100" in err
    code, text, err = gniah_eval("compare", before, after, "--pair-variants", "--json")
    assert code == 0, err
    overall = json.loads(text)["overall"]
    assert (overall["examples"], overall["gained"], overall["lost"], overall["p"]) == (6, 0, 6, 0.03125)


def test_what_is_left_out_is_told(gniah_eval: Run, tmp_path: Path) -> None:
    asked = mixed(6)
    one = scored(tmp_path / "one", asked, answers(asked, bool))
    two = scored(tmp_path / "two", asked, dict(list(answers(asked, bool).items())[:4]))
    code, out, err = gniah_eval("compare", one, two)
    assert (code, out) == (3, "")
    assert "2 (qid-4, qid-5) in A only, 0 in B only, 4 in both" in err
    code, out, err = gniah_eval("compare", one, two, "--intersect")
    assert code == 0
    assert "left out: 2 examples that are counted in A only" in err


def test_a_comparison_of_what_the_commands_made(gniah_eval: Run, tmp_path: Path) -> None:
    bench, run = write_examples(tmp_path / "bench", mixed(9)).parent, tmp_path / "run"
    gniah_eval("run", bench, "--model", "random", "--model", "constant", "--repeats", 2, "--out", run)
    gniah_eval("score", bench, run)
    code, out, err = gniah_eval("compare", run, run)
    assert (code, out) == (3, "")
    assert "holds 2 score files" in err and "model=random.json" in err
    folder = run / "eval" / "reasoning_effort=none"
    first = gniah_eval("compare", folder / "model=random.json", folder / "model=constant.json")
    assert first[0] == 0
    assert "sign-flip test over clusters" in first[1]
    assert gniah_eval("compare", folder / "model=random.json", folder / "model=constant.json") == first


def altered(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(json_line(value))
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value.update(schema="gniah/bench/1"), "expected the schema"),
        (lambda value: value.update(schema="gniah/eval/999"), "newer version"),
        (lambda value: value.update(schema="gniah/eval/1"), "older version"),
        (lambda value: value.update(responses={}), "are not as gniah-eval score writes them"),
        (lambda value: value.update(responses=[1]), "are not as gniah-eval score writes them"),
        (lambda value: value.update(model=None), "are not as gniah-eval score writes them"),
        (lambda value: value.pop("asked"), "are not as gniah-eval score writes them"),
        (lambda value: value.update(asked=[]), "is not among those asked"),
        (lambda value: value["asked"][0].pop("config"), "no variables or no config"),
        (lambda value: value["asked"][0].pop("qid"), "one example lacks its qid"),
        (lambda value: value["responses"][0].pop("qid"), "one response lacks its qid"),
        (lambda value: value["responses"][0].update(gold=7), "one response lacks its gold"),
        (lambda value: value["responses"][0]["card"].update(status="fine"), "no known status"),
        (lambda value: value["responses"][0].update(card=None), "no known status"),
    ],
)
def test_files_of_another_form_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    asked = mixed(2)
    path = altered(scored(tmp_path, asked, answers(asked, bool)), change)
    with pytest.raises(InputError, match=said) as refused:
        read_outcomes(path)
    assert str(path) in refused.value.message


def test_score_files_are_found_below_a_folder(tmp_path: Path) -> None:
    asked = mixed(1)
    path = scored(tmp_path / "run", asked, answers(asked, bool))
    assert score_file(path) == score_file(path.parent) == score_file(tmp_path) == path
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="holds no score file"):
        score_file(tmp_path / "none")
    for number in range(11):
        (path.parent / f"model={number}.json").write_bytes(b"{}")
    with pytest.raises(InputError, match="holds 12 score files") as many:
        score_file(tmp_path)
    assert many.value.message.endswith("…")


def test_a_text_says_which_method_was_used() -> None:
    variables = {f"q{number}": {"task": "ab"[number % 2]} for number in range(6)}
    first = side({qid: ["wrong", "correct"] if qid == "q0" else "wrong" for qid in variables}, variables)
    second = side(dict.fromkeys(variables, "correct"), variables)
    found: Comparison = compare(first, second)
    text = comparison_text(found)
    assert [row.difference.method for row in found.rows] == [SIGN_FLIP, MCNEMAR]
    assert "sign-flip" in text and "exact McNemar" in text
    assert "A right" not in text  # no paired table where an example has several answers


POWER = ["power", "--rate", "50"]


def test_power_tells_how_many_examples_or_which_difference(gniah_eval: Run) -> None:
    code, text, err = gniah_eval(*POWER, "--difference", "5", "--discordance", "20")
    assert code == 0, err
    assert "20.0 % of pairs differ" in text and "658" in text and "1,605" in text
    code, text, _ = gniah_eval(*POWER, "--difference", "5", "--json")
    assert json.loads(text) == {"difference": 5.0, "discordance": 50.0, "paired": 1606, "unpaired_each": 1605}
    code, text, _ = gniah_eval(*POWER, "--examples", "500")
    assert text.count("9.02") == 2
    code, text, _ = gniah_eval(*POWER, "--examples", "400", "--discordance", "10", "--json")
    assert json.loads(text) == {"examples": 400, "discordance": 10.0, "paired": 4.57, "unpaired": 10.09}
    code, text, _ = gniah_eval("power", "--rate", "3", "--examples", "6")
    assert code == 0
    assert "–" not in text


def test_power_tells_of_the_design_that_shows_something(gniah_eval: Run) -> None:
    code, text, _ = gniah_eval("power", "--rate", "94", "--examples", "150", "--discordance", "6")
    assert code == 0
    assert [line.split()[-1] for line in text.splitlines()[-2:]].count("–") == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (POWER, 2, "either --difference or --examples"),
        ([*POWER, "--difference", "5", "--examples", "9"], 2, "either --difference or --examples"),
        (["power", "--difference", "5"], 2, "--rate"),
        ([*POWER, "--difference", "60"], 2, "50 % and 110 %"),
        ([*POWER, "--difference", "0"], 2, "difference of 0 points"),
        ([*POWER, "--difference", "nan"], 2, "nan"),
        (["power", "--rate", "nan", "--difference", "5"], 2, "nan"),
        (["power", "--rate", "101", "--difference", "5"], 2, "--rate"),
        ([*POWER, "--difference", "5", "--discordance", "1"], 2, "5 to 95 % of pairs, not in 1 %"),
        ([*POWER, "--difference", "5", "--power", "100"], 2, "--power"),
        ([*POWER, "--difference", "5", "--level", "nan"], 2, "between 0 and 1"),
        ([*POWER, "--examples", "0"], 2, "--examples"),
        ([*POWER, "--examples", "3"], 6, "show no difference"),
        (["compare", "NOWHERE", "NOWHERE"], 3, "no such file"),
        (["compare", "NOWHERE"], 2, "Missing argument"),
        (["compare", "NOWHERE", "NOWHERE", "--reading-a", "theirs"], 2, "theirs"),
    ],
)
def test_mistakes_are_explained(gniah_eval: Run, tmp_path: Path, words: list[str], code: int, said: str) -> None:
    found, out, err = gniah_eval(*(tmp_path / "nowhere" if word == "NOWHERE" else word for word in words))
    assert (found, out) == (code, "")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["compare", "power"])
def test_help_has_an_example(gniah_eval: Run, command: str) -> None:
    code, text, _ = gniah_eval(command, "--help")
    assert code == 0
    assert "Example:\n" in text
