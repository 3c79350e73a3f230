"""What each way to write an answer is read as: task, right answer, response, status, value."""

from __future__ import annotations

import pytest
from evaluator_toys import example, response

from gniah.evaluator.graphniah.scoring import SCORER
from gniah.evaluator.scoring import assess
from gniah.records.responses import prompt_sha256

PROSE = "I followed the citations from the source, one after the other, and kept a list of what I had seen. "

YES_NO = [
    (r"\answer{YES}", "correct", "YES"),
    (r"\answer{NO}", "wrong", "NO"),
    (r"\answer{yes}", "correct", "YES"),
    (r"\answer{Yes.}", "correct", "YES"),
    (r"\answer{ YES }", "correct", "YES"),
    ("\\answer{\nYES\n}", "correct", "YES"),
    (r"\answer{**YES**}", "correct", "YES"),
    (r"**\answer{YES}**", "correct", "YES"),
    (r"`\answer{YES}`", "correct", "YES"),
    (r"$\answer{YES}$", "correct", "YES"),
    (r"\answer{\text{YES}}", "correct", "YES"),
    (r"\answer{\mathrm{YES}}", "correct", "YES"),
    (r"\answer{\textbf{YES}}", "correct", "YES"),
    (r"\answer{\boxed{\text{YES}}}", "correct", "YES"),
    (r"\boxed{\answer{YES}}", "correct", "YES"),
    (r"\answer{\answer{YES}}", "correct", "YES"),
    (r"\answer{$\text{YES}$}", "correct", "YES"),
    (r"\answer{\(YES\)}", "correct", "YES"),
    (r'\answer{"YES"}', "correct", "YES"),
    (r"\answer{“YES”}", "correct", "YES"),
    (r"\answer{(YES)}", "correct", "YES"),
    (r"\answer{YES!}", "correct", "YES"),
    ("\\answer{Y\u200bES\u200d}", "correct", "YES"),
    ("\\answer{\ufeffYES\u00a0}", "correct", "YES"),
    ("\\answer{\uff39\uff25\uff33}", "correct", "YES"),
    ("\uff3canswer\uff5bYES\uff5d", "correct", "YES"),
    (r"\\answer{YES}", "correct", "YES"),
    (r"\answer{NO} No, I was wrong: \answer{YES}", "correct", "YES"),
    (r"\answer{YES}" + "\n" + r"\answer{YES}", "correct", "YES"),
    (r"\answer{YES}" + "\nThat is my last word.", "correct", "YES"),
    (r"\answer{YES} and not \answer{NO}", "wrong", "NO"),
    (r"The form is \answer{YES} or \answer{NO}. So: \answer{YES}", "correct", "YES"),
    (r"I must end with \answer{YES} or \answer{NO}", "wrong", "NO"),
    (r"\answer{YES or NO}", "unreadable", None),
    (r"\answer{YES/NO}", "unreadable", None),
    (r"\answer{YES} \answer{}", "unreadable", None),
    (r"\answer{}", "unreadable", None),
    (r"\answer{YES, it is}", "unreadable", None),
    (r"\answer{YES?}", "unreadable", None),
    (r"\answer{~~YES~~}", "unreadable", None),
    (r"\answer{true}", "unreadable", None),
    (r"\answer{Ja}", "unreadable", None),
    (r"\answer{是}", "unreadable", None),
    (r"\answer{ДА}", "unreadable", None),
    (r"\answer{NOT}", "unreadable", None),
    (r"\answer{YES", "unreadable", None),
    (r"\answer{NO} \answer{YES", "wrong", "NO"),
    (r"\answer{foo \answer{YES}", "correct", "YES"),
    (r"set { \answer{YES}", "correct", "YES"),
    (r"} \answer{YES}", "correct", "YES"),
    (r"\answer{{YES}}", "correct", "YES"),
    (r"\boxed{YES}", "correct", "YES"),
    (r"<think>\answer{NO}</think>\answer{YES}", "correct", "YES"),
    (r"<think>\answer{YES}", "unreadable", None),
    (r"<think>so \answer{YES} it is", "unreadable", None),
    (r"\answer{YES}<think>but \answer{NO}", "correct", "YES"),
    (r"\answer{NO}</think>\answer{YES}", "correct", "YES"),
    (r"<think>a</think><think>\answer{YES}", "unreadable", None),
    (r"<THINK>\answer{NO}</THINK> YES", "correct", "YES"),
    (r"<thinking>\answer{NO}</thinking> YES", "correct", "YES"),
    (r"<think>\answer{YES}</think>", "empty", None),
    ("", "empty", None),
    (" \n\t ", "empty", None),
    ("YES", "correct", "YES"),
    ("no", "wrong", "NO"),
    ("**Yes.**", "correct", "YES"),
    ("# YES", "correct", "YES"),
    ("```\nYES\n```", "correct", "YES"),
    ("The answer is YES", "unreadable", None),
    (PROSE + "\n\nYES", "unreadable", None),
    (PROSE + " " * 100 + "YES", "correct", "YES"),
    ("x" * 200, "unreadable", None),
    ("I cannot answer.", "unreadable", None),
    (r"\Answer{YES}", "unreadable", None),
]

COUNTING = [
    (r"\answer{1042}", "correct", "1042"),
    (r"\answer{1,042}", "correct", "1042"),
    (r"\answer{1{,}042}", "correct", "1042"),
    (r"\answer{1\,042}", "correct", "1042"),
    ("\\answer{1\u00a0042}", "correct", "1042"),
    ("\\answer{1\u202f042}", "correct", "1042"),
    ("\\answer{１０４２}", "correct", "1042"),
    ("\\answer{１，０４２}", "correct", "1042"),
    ("\\answer{𝟏𝟎𝟒𝟐}", "correct", "1042"),
    (r"\answer{$1042$}", "correct", "1042"),
    (r"\answer{$$1{,}042$$}", "correct", "1042"),
    (r"\answer{\boxed{1042}}", "correct", "1042"),
    (r"\answer{\text{1042}}", "correct", "1042"),
    (r"\answer{\(1042\)}", "correct", "1042"),
    (r"\answer{\[1042\]}", "correct", "1042"),
    (r"\answer{**1042**}", "correct", "1042"),
    (r"\answer{(1042)}", "correct", "1042"),
    (r"\answer{1042.}", "correct", "1042"),
    (r"\answer{1042,}", "correct", "1042"),
    (r"\answer{0001042}", "correct", "1042"),
    (r"\answer{104" + "\u200b" + "2}", "correct", "1042"),
    (r"\answer{42}", "wrong", "42"),
    (r"\answer{0}", "wrong", "0"),
    (r"\answer{000}", "wrong", "0"),
    (r"\answer{11042}", "wrong", "11042"),
    (r"\answer{10420}", "wrong", "10420"),
    (r"\answer{" + "1" * 900 + "}", "wrong", "1" * 900),
    (r"\answer{" + "1" * 5000 + "}", "unreadable", None),
    (r"\answer{" + "0" * 5000 + "1042}", "unreadable", None),
    (r"\answer{42 papers}", "unreadable", None),
    (r"\answer{x = 42}", "unreadable", None),
    (r"\answer{1042.0}", "unreadable", None),
    (r"\answer{1.042}", "unreadable", None),
    (r"\answer{1042...}", "unreadable", None),
    (r"\answer{-1042}", "unreadable", None),
    (r"\answer{+1042}", "unreadable", None),
    ("\\answer{−1042}", "unreadable", None),
    (r"\answer{1 042}", "unreadable", None),
    (r"\answer{10,42}", "unreadable", None),
    (r"\answer{1,0420}", "unreadable", None),
    (r"\answer{0,042}", "unreadable", None),
    (r"\answer{1,,042}", "unreadable", None),
    (r"\answer{1042%}", "unreadable", None),
    (r"\answer{1e3}", "unreadable", None),
    (r"\answer{0x412}", "unreadable", None),
    (r"\answer{1_042}", "unreadable", None),
    ("\\answer{104²}", "unreadable", None),
    ("\\answer{10₄₂}", "unreadable", None),
    ("\\answer{½}", "unreadable", None),
    ("\\answer{١٠٤٢}", "unreadable", None),
    ("\\answer{千四十二}", "unreadable", None),
    (r"\answer{forty-two}", "unreadable", None),
    (r"\answer{N}", "unreadable", None),
    (r"\answer{1042 or 1043}", "unreadable", None),
    (r"\answer{~1042}", "unreadable", None),
    (r"\answer{#1042}", "unreadable", None),
    ("## 1042", "correct", "1042"),
    (r"\answer{>1042}", "unreadable", None),
    ("1042", "correct", "1042"),
    ("1042.", "correct", "1042"),
    ("**1,042**", "correct", "1042"),
    ("The total is 1042", "unreadable", None),
    (PROSE + "\n\n" + " " * 26 + "1042", "correct", "1042"),
    (PROSE + "\n\n1042", "unreadable", None),
    ("9" * 10 + "0" * 26 + "1042", "unreadable", None),
    ("9" * 31, "unreadable", None),
    ("9" * 30, "wrong", "9" * 30),
    (r"\answer{1042", "unreadable", None),
    (r"\answer{1043} \answer{1042}", "correct", "1042"),
    (r"not \boxed{17} but \answer{1042}", "correct", "1042"),
    (r"\answer{1042} not \boxed{17}", "correct", "1042"),
    (r"\answer{many} 1042", "unreadable", None),
]

CHOICE = [
    ("C", "correct", "C"),
    ("C.", "correct", "C"),
    ("c", "correct", "C"),
    ("(C)", "correct", "C"),
    ("[C]", "correct", "C"),
    ("**C**", "correct", "C"),
    ("**(C)**", "correct", "C"),
    ("$C$", "correct", "C"),
    ("`C`", "correct", "C"),
    ("Option C", "correct", "C"),
    ("option c.", "correct", "C"),
    ("**Option C**", "correct", "C"),
    ("**Option** C", "correct", "C"),
    ("Option (C)", "correct", "C"),
    ("Option **C**", "correct", "C"),
    ("\\text{C}", "correct", "C"),
    ("\uff23", "correct", "C"),
    ("C\u200b", "correct", "C"),
    (r"\answer{C}", "correct", "C"),
    (r"\answer{\boxed{C}}", "correct", "C"),
    (r"\answer{$\mathrm{C}$}", "correct", "C"),
    (r"\answer{Option C}", "correct", "C"),
    (r"\answer{(c).}", "correct", "C"),
    (r"\answer{B} \answer{C}", "correct", "C"),
    (r"\answer{C}" + "\nB", "correct", "C"),
    ("It is\nC", "correct", "C"),
    ("It is\r\nOption C\r\n\n", "correct", "C"),
    ("A\nB\nD", "wrong", "D"),
    ("D", "wrong", "D"),
    ("E", "unreadable", None),
    (r"\answer{E}", "unreadable", None),
    (r"\answer{X}", "unreadable", None),
    (r"\answer{C or D}", "unreadable", None),
    (r'\answer{C. Paper "Paper C"}', "unreadable", None),
    ("The answer is C", "unreadable", None),
    ("Antwort: C", "unreadable", None),
    ("OptionC", "unreadable", None),
    ("Option", "unreadable", None),
    ("\u0421", "unreadable", None),
    ("CC", "unreadable", None),
    ("A, B", "unreadable", None),
    (r"\answer{E}" + "\nC", "unreadable", None),
    (r"<think>C</think>", "empty", None),
    ("<think>hm</think>C", "correct", "C"),
    ("<think>hm\nC", "unreadable", None),
    ("", "empty", None),
]

ROWS = [
    *(("yes-no", "YES", *row) for row in YES_NO),
    *(("counting", "1042", *row) for row in COUNTING),
    *(("multiple-choice", "C", *row) for row in CHOICE),
]


def read(task: str, answer: str, text: str, **changes: object) -> tuple[str, str | None]:
    asked = example(task, answer)
    prompts = prompt_sha256(asked.system_prompt, asked.user_prompt)
    scored = assess(asked, response(asked, text, **changes), SCORER, SCORER.gold(asked), prompts)
    assert (scored.reason is None) == (scored.status in ("correct", "wrong"))
    return scored.status, scored.value


@pytest.mark.parametrize(("task", "answer", "text", "status", "value"), ROWS, ids=lambda item: repr(item)[:40])
def test_an_answer_is_read_as_the_card_says(task: str, answer: str, text: str, status: str, value: str | None) -> None:
    assert read(task, answer, text) == (status, value)


def test_there_are_enough_rows_and_none_is_there_twice() -> None:
    assert len(ROWS) >= 120
    assert len({(task, text) for task, _, text, _, _ in ROWS}) == len(ROWS)


def test_a_fifth_letter_counts_where_it_is_offered() -> None:
    none_variant = example("multiple-choice", "C", letters="ABCDE")
    assert SCORER.read(none_variant, r"\answer{E}").value == "E"
    assert len(SCORER.possible_answers(none_variant)) == 5


@pytest.mark.parametrize(
    "text",
    [
        "{" * 10_000_000,
        "}" * 10_000_000,
        "\\answer{" * 1_250_000,
        "\\answer{" * 600_000 + "}" * 600_000,
        "<think>" * 1_400_000,
        "\\answer{" + "(" * 5_000_000 + ")" * 5_000_000 + "}",
        "\\answer{" + "a\u0300\u0316" * 3_000_000 + "}",
        " " * 10_000_000,
        "\n" * 5_000_000 + "\u200b" + "\n" * 5_000_000,
        "1" * 10_000_000,
        "**" * 5_000_000,
    ],
    ids=lambda text: repr(text[:16]),
)
def test_ten_megabytes_of_anything_are_read(text: str) -> None:
    # multiple-choice looks at the whole, the block and the last line: all that the other tasks look at.
    assert read("multiple-choice", "C", text)[0] in ("unreadable", "empty")
