r"""Finding the place in a response where its answer stands. One pass over the text, whatever it holds.

Text inside a thinking block is never an answer: what counts begins after the last closing tag, and ends where
a block opens that is not closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gniah.evaluator.normalisation import narrow

_THINKING_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_BLOCK_TOKEN = re.compile(r"\\answer\{|[{}]")


@dataclass(frozen=True, slots=True)
class Visible:
    """The part of a response that counts, and whether an unclosed thinking block was cut off its end."""

    text: str
    unclosed: bool

    @property
    def blank(self) -> bool:
        """Whether there is nothing to read."""
        return not self.text.strip()


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
    return Visible(text[start:end], end is not None)


def last_block(text: str) -> str | None:
    r"""Return the content of the last `\answer{…}` block whose braces balance, or None without one.

    Braces inside may nest. The last block is the one that ends last. An opened block that never ends is no
    block, and hides none before or inside it.
    """
    found: tuple[int, int] | None = None
    # Open blocks, innermost last: where the content starts, and how many braces are open inside it.
    open_blocks: list[list[int]] = []
    for token in _BLOCK_TOKEN.finditer(text):
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
    whole = text.rstrip()
    return whole[max(whole.rfind("\n"), whole.rfind("\r")) + 1 :]
