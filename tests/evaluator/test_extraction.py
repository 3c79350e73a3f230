from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.evaluator.extraction import ending, last_block, last_line, last_two_lines, visible

OPEN = "\\answer{"


def slow_last_block(text: str) -> str | None:
    """Try every opening: walk to the brace that closes it. The block that ends last wins."""
    best: tuple[int, str] | None = None
    for start in range(len(text)):
        if not text.startswith(OPEN, start):
            continue
        depth, position = 1, start + len(OPEN)
        while position < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[position], 0)
            position += 1
        if not depth and (best is None or position > best[0]):
            best = (position, text[start + len(OPEN) : position - 1])
    return None if best is None else best[1]


@given(st.lists(st.sampled_from([OPEN, "{", "}", "x", "\\", "answer"]), max_size=14).map("".join))
@settings(max_examples=1500, deadline=None)
def test_the_last_block_is_that_of_the_slow_way(text: str) -> None:
    assert last_block(text) == slow_last_block(text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "b"]), max_size=10).map("".join))
@settings(max_examples=300, deadline=None)
def test_what_is_visible_stands_after_all_thinking(text: str) -> None:
    rest = text.rsplit("</think>", 1)[-1]
    shown = visible(text)
    assert shown.text == rest.split("<think>", 1)[0]
    assert shown.unclosed == ("<think>" in rest)


def test_an_ending_is_not_cut_inside_a_word() -> None:
    assert ending("  12 345  ", 3) == "345"
    assert ending("12 345", 4) == "345"
    assert ending("12 345", 2) is None
    assert ending("345", 3) == "345"
    assert ending("", 3) == ""


def test_the_last_two_lines_are_not_empty() -> None:
    assert last_two_lines("a\n\nb \n\n  \n") == ("a", "b")
    assert last_two_lines("a\rb\r\nc") == ("b", "c")
    assert last_two_lines(" c ") == ("", " c")
    assert last_two_lines("") == ("", "")


def test_the_last_line_is_not_empty() -> None:
    assert last_line("a\nb \n\n  \n") == "b"
    assert last_line("a\rb\r\n") == "b"
    assert last_line("") == ""
