r"""Finding the places in a response where its answer may stand. One pass over the text, whatever it holds.

Text inside a thinking block is never an answer: what counts begins after the last closing tag, and ends where
a block opens that is not closed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from gniah.evaluator.normalisation import narrow

_THINKING_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_OPENING = r"\answer{"
_BLOCK_TOKEN = re.compile(r"\\answer\{|[{}]")
_BRACE = re.compile(r"[{}]")
# White space and invisible characters between a command's name and its brace. Possessive: nothing is tried twice.
_GAP = r"[\s\u200b-\u200f\u2060\ufeff]*+"
# Of a response's blocks the last so many are looked at; further ones cost time and memory and say nothing.
MOST_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class Visible:
    """The part of a response that counts, and whether an unclosed thinking block was cut off its end."""

    text: str
    unclosed: bool

    @property
    def blank(self) -> bool:
        """Whether there is nothing to see: no text, or white space and invisible characters only."""
        return not any(character.isprintable() and character != " " for character in self.text.strip())


@dataclass(frozen=True, slots=True)
class Block:
    """A closed block: its first character in the text, the one behind its last, and what it holds."""

    start: int
    end: int
    content: str


def visible(response: str) -> Visible:
    """Return what a response shows outside thinking: after the last `</think>`, before a later `<think>`.

    `<thinking>` is the same tag, in any letter case. Full-width ASCII is made narrow.
    """
    text = narrow(response)
    start, end = 0, None
    for tag in _THINKING_TAG.finditer(text):
        if tag[1]:
            start, end = tag.end(), None
        elif end is None:
            end = tag.start()
    return Visible(text if not start and end is None else text[start:end], end is not None)


def last_block(text: str) -> str | None:
    r"""Return the content of the last `\answer{…}` block whose braces balance, or None without one.

    Braces inside may nest. The last block is the one that ends last. An opened block that never ends is no
    block, and hides none before or inside it.
    """
    first = text.find(_OPENING)
    if first < 0:
        return None
    if text.find(_OPENING, first + 1) < 0:
        return _only_block(text, first + len(_OPENING))
    found: tuple[int, int] | None = None
    # Open blocks, innermost last: where the content starts, and how many braces are open inside it.
    open_blocks: list[list[int]] = []
    for token in _BLOCK_TOKEN.finditer(text, first):
        if token[0] == "}":
            if not open_blocks:
                continue
            if open_blocks[-1][1]:
                open_blocks[-1][1] -= 1
            else:
                start, _ = open_blocks.pop()
                found = (start, token.start())
        elif token[0] == "{":
            if open_blocks:
                open_blocks[-1][1] += 1
        else:
            open_blocks.append([token.end(), 0])
    return None if found is None else text[found[0] : found[1]]


def _only_block(text: str, start: int) -> str | None:
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start : brace.start()]
    return None


class BlockFinder:
    r"""Finds closed blocks of some commands, however they are dressed: `\answer{…}`, `\Answer {…}`, `\answer\{…\}`."""

    def __init__(self, *names: str) -> None:
        self._commands = [f"\\{name}" for name in names]
        self._token = re.compile(rf"(\\(?:{'|'.join(names)}){_GAP}\\?\{{)|\\?[{{}}]", re.IGNORECASE)

    def __call__(self, text: str) -> Sequence[Block]:
        """Return the outermost closed blocks in their order, the last `MOST_BLOCKS` of them."""
        first = self._first(text)
        if first is None:
            return []
        found: deque[tuple[int, int, int, int]] = deque(maxlen=MOST_BLOCKS)
        # Open blocks, innermost last: where block and content start, and how many braces are open inside it.
        open_blocks: list[list[int]] = []
        for token in self._token.finditer(text, first):
            if token[1]:
                open_blocks.append([token.start(), token.end(), 0])
            elif not open_blocks:
                continue
            elif token[0].endswith("{"):
                open_blocks[-1][2] += 1
            elif open_blocks[-1][2]:
                open_blocks[-1][2] -= 1
            else:
                start, inside, _ = open_blocks.pop()
                while found and found[-1][0] > start:
                    found.pop()
                found.append((start, inside, token.start(), token.end()))
        return [Block(start, end, text[inside:last]) for start, inside, last, end in found]

    def _first(self, text: str) -> int | None:
        """Return where a block may begin at the earliest, or None when there can be none."""
        lower = text.lower()
        places = [place for command in self._commands if (place := lower.find(command)) >= 0]
        if not places:
            return None
        return min(places) if len(lower) == len(text) else 0


def ending(text: str, length: int) -> str | None:
    """Return the last characters of a text, at most `length`, white space at both its ends apart.

    None when the cut falls inside a word or a number: the end of a long number is not a number that was
    written.
    """
    whole = text.strip()
    if len(whole) <= length:
        return whole
    end = whole[-length:]
    if not end[0].isspace() and not whole[-length - 1].isspace():
        return None
    return end.strip()


def last_line(text: str) -> str:
    """Return the last line that is not empty; lines end at a newline or a carriage return."""
    return _last_line(text)[1]


def last_two_lines(text: str) -> tuple[str, str]:
    """Return the last two lines that are not empty; the first of them is empty when there is only one."""
    rest, last = _last_line(text)
    return _last_line(rest)[1], last


def _last_line(text: str) -> tuple[str, str]:
    whole = text.rstrip()
    start = max(whole.rfind("\n"), whole.rfind("\r")) + 1
    return whole[:start], whole[start:]
