"""Recognising a GraphNIAH prompt: which task it sets, from the prompts alone.

The sections of the user prompt are the same for every template set (GraphNIAH, figure 14), so the question is
what stands between `# Question` and `# Context`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gniah.records.families import Task
from gniah.records.graphniah import COUNTING, MULTIPLE_CHOICE, YES_NO

_QUESTION = "# Question\n"
_CONTEXT = "\n# Context\n"
_FORMAT = "\n# Response Format\n"
_LETTERS = "ABCDE"
_COUNT_WORDS = ("how many", "number of")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a prompt asks: the task, and the letters it offers when it is multiple-choice."""

    task: Task
    letters: tuple[str, ...] = ()


def asked(user_prompt: str) -> Asked | None:
    """Return what a user prompt asks, or None when it is not one of GraphNIAH's."""
    start, middle = user_prompt.find(_QUESTION), user_prompt.find(_CONTEXT)
    if not 0 <= start < middle or user_prompt.rfind(_FORMAT) < middle:
        return None
    lines = [line.strip() for line in user_prompt[start + len(_QUESTION) : middle].split("\n")]
    letters: list[str] = []
    for line in lines:
        if len(letters) < len(_LETTERS) and line.startswith(f"{_LETTERS[len(letters)]}. "):
            letters.append(line[0])
    if len(letters) >= 2:
        return Asked(MULTIPLE_CHOICE, tuple(letters))
    # A title may hold any words, so what stands between the outer quotes of a line says nothing about the
    # task.
    unquoted = " ".join(_outside_quotes(line) for line in lines).casefold()
    return Asked(COUNTING if any(words in unquoted for words in _COUNT_WORDS) else YES_NO)


def _outside_quotes(line: str) -> str:
    first, last = line.find('"'), line.rfind('"')
    return line if first < 0 else f"{line[:first]} {line[last + 1 :]}"
