r"""The parts of our reading, each on its own; whole responses stand in graphniah/test_reading.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.evaluator.extraction import MOST_BLOCKS, Block, BlockFinder
from gniah.evaluator.normalisation import LONGEST, normalised
from gniah.evaluator.readings import Reading
from gniah.evaluator.tolerance import after_marker, block_reading, number, option

NOUNS, ADJECTIVES = {"paper", "papers"}, {"distinct"}
BLOCKS = BlockFinder("answer")


def slow_blocks(text: str) -> list[str]:
    """Try every opening: walk to the brace that closes it. What is inside another one does not count."""
    opening, found = "\\answer{", []
    for start in range(len(text)):
        if text.startswith(opening, start):
            depth, position = 1, start + len(opening)
            while position < len(text) and depth:
                depth += {"{": 1, "}": -1}.get(text[position], 0)
                position += 1
            if not depth and all(position > end for _, end in found):
                found.append((start, position))
    return [text[start + len(opening) : end - 1] for start, end in found]


@given(st.lists(st.sampled_from(["\\answer{", "{", "}", "x"]), max_size=14).map("".join))
def test_blocks_are_those_of_the_slow_way(text: str) -> None:
    found = BLOCKS(text)
    assert [block.content for block in found] == slow_blocks(text)
    assert all(text[block.start : block.end].endswith(f"{block.content}}}") for block in found)


def test_of_many_blocks_the_last_are_looked_at() -> None:
    found = BLOCKS("".join(f"\\answer{{{number}}} " for number in range(3 * MOST_BLOCKS)))
    assert [block.content for block in found] == [str(number) for number in range(2 * MOST_BLOCKS, 3 * MOST_BLOCKS)]


def test_a_letter_that_grows_in_lower_case_moves_no_block() -> None:
    text = "İİİ \\answer{42} İ"
    assert BLOCKS(text) == [Block(4, 15, "42")]


@pytest.mark.parametrize(
    ("bare", "expected"),
    [
        ("Answer: 42", (":", " 42")),
        ("The final answer is C", ("is", "C")),
        ("So the total = 42", ("=", " 42")),
        ("Answer: the answer is C", ("is", "C")),
        ("**Answer:** C", (":", "** C")),
        ("Answer:", (":", "")),
        ("is it", None),
        ("so: C", None),
        ("My guess is C", None),
        ("Answer to question 3: C", None),
        ("Antwort: C", None),
        ("", None),
    ],
)
def test_an_announcement_is_made_of_known_words(bare: str, expected: tuple[str, str] | None) -> None:
    assert after_marker(bare) == expected


@given(st.integers(0, 10**9), st.sampled_from(["", " papers", " distinct papers", r" \text{papers}"]))
def test_a_number_is_read_with_a_unit_or_without(value: int, unit: str) -> None:
    for text in (f"{value}{unit}", f"x = {value}{unit}", f"{value:,}{unit}", f"+{value}{unit}"):
        assert number(str(normalised(text)), NOUNS, ADJECTIVES) == str(value)


@given(st.text(alphabet="0123456789 .,=+-<>~xpapers{}\\", max_size=30))
def test_a_number_is_always_digits_that_stand_in_the_text(text: str) -> None:
    value = number(text, NOUNS, ADJECTIVES)
    if value is not None:
        assert value.isdigit() and str(int(value)) == value
        assert value in "".join(character for character in text if character.isdigit())


FORMS = {"A": {"a survey of x"}, "B": {"survey of x"}, "C": {"c"}, "D": {"z", "paper z"}, "E": set[str]()}


@pytest.mark.parametrize(
    ("bare", "expected"),
    [
        ("A", "A"),
        ("B) survey of x", "B"),
        ("B. Survey of X", "B"),
        ("survey of x", "B"),
        ("Paper Z", "D"),
        ("D: z", "D"),
        ("E", "E"),
        ("C. c", "C"),
        ("A. z", None),
        ("A survey of x", "A"),
        ("x", None),
        ("", None),
        ("F", None),
        ("D or z", None),
        ("D z?", "D"),
        ("D?", None),
    ],
)
def test_an_option_is_meant_by_letter_or_text_or_both(bare: str, expected: str | None) -> None:
    assert option(bare, FORMS) == expected


def test_two_interpretations_that_disagree_are_no_answer() -> None:
    # "A survey of x" is B's text, and A's letter with A's text.
    assert option("A survey of x", {"A": {"survey of x"}, "B": {"a survey of x"}}) is None
    assert option("same", {"A": {"same"}, "B": {"same"}}) is None


def read(text: str) -> Reading | None:
    known = {"YES", "NO"}
    return block_reading(text, BLOCKS(text), lambda content: content if content in known else None, {"", "..."}, "none")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\answer{YES} \answer{...}", "YES"),
        (r"\answer{YES}, not $\answer{NO}$", "YES"),
        (r"\answer{YES}; x \neq \answer{NO}", "YES"),
        (r"\answer{YES}, it isn’t \answer{NO}", "YES"),
        (r"\answer{YES} and/or \answer{NO}", None),
        (r"\answer{YES} or else \answer{NO}", "NO"),
        ("\\answer{YES}\r\n\r\n\\answer{NO}", None),
        ("First \\answer{YES}\r\n\r\n\\answer{NO}", "NO"),
        (r"\answer{YES}" + " " * 50 + r"\answer{NO}", "NO"),
        ("do not\n" + r"\answer{NO}", "NO"),
    ],
)
def test_the_last_block_that_counts_decides(text: str, value: str | None) -> None:
    found = read(text)
    assert found is not None and found.value == value


def test_no_block_that_counts_is_not_an_unreadable_one() -> None:
    assert read("nothing") is None
    assert read(r"not \answer{YES}") is None
    assert read(r"\answer{}") is None
    assert read(r"\answer{YES} or maybe \answer{perhaps}") == Reading(None, "none")


@given(st.text(max_size=40))
def test_the_bare_form_of_a_bare_form_is_itself(text: str) -> None:
    bare = normalised(text)
    assert bare is not None
    assert normalised(bare) == bare


def test_what_is_too_long_has_no_bare_form() -> None:
    assert normalised("x" * LONGEST) == "x" * LONGEST
    assert normalised("x" * (LONGEST + 1)) is None
