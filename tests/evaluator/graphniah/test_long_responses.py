r"""Reading takes time linear in the response: steps are counted, and ten megabytes of anything are read."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest
from evaluator_toys import example

from gniah.evaluator.extraction import MOST_BLOCKS, visible
from gniah.evaluator.graphniah.scoring import SCORER

ANSWERS = {"yes-no": "YES", "counting": "42", "multiple-choice": "C"}
BIG = 10_000_000
# A response of so many characters, for each way to make a reader stumble.
SHAPES: dict[str, Callable[[int], str]] = {
    "open braces": lambda n: "{" * n,
    "closing braces": lambda n: "}" * n,
    "open blocks": lambda n: "\\answer{" * (n // 8),
    "nested blocks": lambda n: "\\answer{" * (n // 9) + "}" * (n // 9),
    "empty blocks": lambda n: "\\answer{}" * (n // 9),
    "denied blocks": lambda n: "not \\answer{1} " * (n // 15),
    "blocks of dots": lambda n: "\\answer{((((...))))}" * (n // 20),
    "blocks one by one": lambda n: "\\answer{1} or " * (n // 14),
    "a wide gap": lambda n: "\\answer" + " " * n + "x",
    "gaps": lambda n: ("\\answer" + " " * 93) * (n // 100),
    "escaped braces": lambda n: "\\answer\\{" * (n // 9) + "\\}" * (n // 9),
    "open boxes": lambda n: "\\boxed{" * (n // 7),
    "nested boxes": lambda n: "\\boxed{" * (n // 8) + "}" * (n // 8),
    "boxes in blocks": lambda n: "\\answer{\\boxed{" * (n // 16),
    "thinking": lambda n: "<think>" * (n // 7),
    "thinking closed": lambda n: "</think>" * (n // 8),
    "half tags": lambda n: "<think" * (n // 6),
    "wrapped": lambda n: "\\answer{" + "(" * (n // 2) + ")" * (n // 2) + "}",
    "combining marks": lambda n: "\\answer{" + "a\u0300\u0316" * (n // 3) + "}",
    "white space": lambda n: " " * n,
    "empty lines": lambda n: "\n" * (n // 2) + "\u200b" + "\n" * (n // 2),
    "invisible": lambda n: "\u200b" * n,
    "digits": lambda n: "1" * n,
    "grouped digits": lambda n: "1\u00a0" * (n // 2),
    "stars": lambda n: "*" * n,
    "equations": lambda n: "= 1 " * (n // 4),
    "markers": lambda n: "Answer: " * (n // 8),
    "sentences": lambda n: "The answer is " * (n // 14),
    "one line": lambda n: "C or D, " * (n // 8),
    "wide": lambda n: "\uff3canswer\uff5bC\uff5d" * (n // 9),
}


def read(task: str, text: str) -> None:
    SCORER.read(example(task, ANSWERS[task]), visible(text).text)


def steps(run: Callable[[], object]) -> int:
    """Return how many lines of Python run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("task", ANSWERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_response_takes_ten_times_the_steps(shape: str, task: str) -> None:
    # From here on a part is too long to be an answer, and there are more blocks than are looked at.
    length = 20 * MOST_BLOCKS
    read(task, SHAPES[shape](10))  # so that nothing is imported or cached while steps are counted
    few, many = (steps(partial(read, task, SHAPES[shape](size))) for size in (length, 10 * length))
    assert many <= 10 * few + 10_000


def test_the_count_of_steps_shows_a_pass_for_every_character() -> None:
    def pairs() -> int:
        count = 0
        for one in "x" * 100:
            for other in "x" * 100:
                count += one == other
        return count

    assert steps(pairs) > 100 * 100


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_megabytes_of_anything_are_read(shape: str) -> None:
    text = SHAPES[shape](BIG)
    began = time.process_time()
    # multiple-choice looks at the whole, the blocks and the last line: all that the other tasks look at.
    read("multiple-choice", text)
    # Linear time is some seconds; time that grows with the square would be hours.
    assert time.process_time() - began < 60
