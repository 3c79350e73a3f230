r"""Reading GraphNIAH's answers: by the rules of its dataset card, and by ours.

The card. yes-no and counting: the last `\answer{…}` block; without one, the end of the response (100 characters
for yes-no, 30 for counting) counts when it is exactly a label or an integer. multiple-choice: the whole response
when it is one option letter, else the block, else the last line that is not empty. A block that is there
decides, readable or not. Each candidate is compared whole, after light normalisation.

Ours reads the same places, the whole response, the last line and the last `\boxed{…}` besides, and forgives what
`gniah.evaluator.tolerance` knows: `42 papers`, `x = 42`, an option's text. It reads less than the card where a
block is taken back ("not \answer{NO}") or holds a placeholder, and where different answers stand side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gniah.evaluator.extraction import BlockFinder, ending, last_block, last_line, last_two_lines
from gniah.evaluator.normalisation import integer, normalised, unwrapped
from gniah.evaluator.readings import Reading, Readings
from gniah.evaluator.tolerance import after_marker, block_reading, number, option
from gniah.records.titles import normalised_title

LABELS = ("YES", "NO")
YES_NO_END = 100
COUNTING_END = 30

_OPTION = "option"
_UNIT_NOUNS = frozenset({"article", "articles", "node", "nodes", "paper", "papers", "publication", "publications"})
_UNIT_ADJECTIVES = frozenset({"different", "distinct", "in", "other", "reachable", "total", "unique"})
_ELLIPSES = frozenset({"", "...", "\\ldots", "\\dots"})
_LINE_END = frozenset("\r\n")
_COMMAND = "\\answer"
_ANSWERS = BlockFinder("answer")
_BOXES = BlockFinder("boxed", "fbox")


class Kind(Protocol):
    """How one task's answers are read from the bare form of a candidate.

    `wanted` names what an answer must be; `end` is how much of the end of a response the card looks at, in
    characters, and None for the last line; `placeholders` are what a quoted instruction has for an answer.
    """

    @property
    def wanted(self) -> str:
        """What an answer must be, with its article."""
        ...

    @property
    def end(self) -> int | None:
        """How many characters of the end the card looks at; None for the last line."""
        ...

    @property
    def placeholders(self) -> frozenset[str]:
        """What stands for an answer in an instruction."""
        ...

    def card(self, bare: str) -> str | None:
        """Return the value by the card's rules."""
        ...

    def ours(self, bare: str) -> str | None:
        """Return the value by our rules, where the card's give none."""
        ...


class YesNo:
    """YES or NO, in any letter case and no other language."""

    wanted = "a label"
    end = YES_NO_END
    placeholders = _ELLIPSES

    def card(self, bare: str) -> str | None:
        """Return the label that a candidate is."""
        return label if (label := bare.upper()) in LABELS else None

    def ours(self, bare: str) -> str | None:
        """Return the label that is announced, as in `Answer: NO`."""
        marked = after_marker(bare)
        return None if marked is None else self.card(unwrapped(marked[1]))


class Counting:
    """A non-negative integer in base 10."""

    wanted = "an integer"
    end = COUNTING_END
    placeholders = _ELLIPSES | {"n", "x"}

    def card(self, bare: str) -> str | None:
        """Return the digits that a candidate is."""
        return integer(bare)

    def ours(self, bare: str) -> str | None:
        """Return the digits of a count with its unit, behind an equals sign, or announced."""
        value = number(bare, _UNIT_NOUNS, _UNIT_ADJECTIVES)
        if value is None and (marked := after_marker(bare, _UNIT_NOUNS | _UNIT_ADJECTIVES)):
            value = number(unwrapped(marked[1]), _UNIT_NOUNS, _UNIT_ADJECTIVES)
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the letters on offer; `texts` maps them to their options' texts."""

    texts: Mapping[str, str]
    wanted = "a letter that was offered"
    end = None
    placeholders = _ELLIPSES | {"x"}

    def card(self, bare: str) -> str | None:
        """Return the offered letter that a candidate is: `C`, `c`, `(C)`, `C.`, `Option C`."""
        if bare[: len(_OPTION)].casefold() == _OPTION and bare[len(_OPTION) : len(_OPTION) + 1] in {" ", "(", "*"}:
            bare = unwrapped(bare[len(_OPTION) :])
        return letter if (letter := bare.upper()) in self.texts else None

    def ours(self, bare: str) -> str | None:
        """Return the letter of the option that is meant by letter, text or both, or announced."""
        forms = {letter: _forms(text) for letter, text in self.texts.items()}
        value = option(bare, forms)
        if value is None and (marked := after_marker(bare)):
            sign, rest = marked
            # "The answer is a" is a sentence that was cut, and its last word an article.
            if sign != "is" or rest.strip(" .!") not in {"a", "i"}:
                bare = unwrapped(rest)
                value = self.card(bare) or option(bare, forms)
        return value


YES_NO_KIND: Kind = YesNo()
COUNTING_KIND: Kind = Counting()


def read(kind: Kind, text: str) -> Readings:
    """Return what both sets of rules read in the visible text of a response."""
    block = last_block(text)
    card = _card(kind, text, block)
    if card.value is not None and _is_simple(kind, text, block):
        return Readings(card, card)
    return Readings(card, _ours(kind, text, card, block))


def _is_simple(kind: Kind, text: str, block: str | None) -> bool:
    """Tell whether a response that the card reads is of a shape that both read the same, as most are.

    It has one block and nothing before it in its line, or no block and the end that the card looks at or one line.
    """
    mentions = text.lower().count(_COMMAND)
    if mentions == 1 and block is not None:
        start = text.find(_COMMAND)
        return start == 0 or text[start - 1] == "\n"
    return not mentions and (kind.end is not None or _LINE_END.isdisjoint(text))


def value_of(kind: Kind, candidate: str) -> str | None:
    """Return what a candidate is by the card's rules, or None."""
    bare = normalised(candidate)
    return None if bare is None else kind.card(bare)


def _card(kind: Kind, text: str, block: str | None) -> Reading:
    if kind.end is None and (whole := value_of(kind, text)) is not None:
        return Reading(whole)
    if block is not None:
        value = value_of(kind, block)
        return Reading(value, None if value else rf"the last \answer{{}} block is not {kind.wanted}")
    if kind.end is None:
        value = value_of(kind, last_line(text))
        reason = rf"there is no \answer{{}} block, and the last line is not {kind.wanted}"
        return Reading(value, None if value else reason)
    end = ending(text, kind.end)
    value = None if end is None else value_of(kind, end)
    return Reading(value, None if value else rf"there is no \answer{{}} block, and the end is not {kind.wanted}")


def _ours(kind: Kind, text: str, card: Reading, block: str | None) -> Reading:
    def value(candidate: str) -> str | None:
        bare = normalised(candidate)
        return None if bare is None else (kind.card(bare) or kind.ours(bare))

    nothing = rf"the last \answer{{}} block is not {kind.wanted}"
    found = block_reading(text, _ANSWERS(text), value, kind.placeholders, nothing)
    if found is not None:
        return found
    whole = value(text)
    if whole is not None:
        return Reading(whole)
    if card.value is not None and block is None and kind.end is not None:
        return card
    before, last = last_two_lines(text)
    line = value(last)
    if line is not None:
        return Reading(line) if value(before) in {None, line} else Reading(None, "the last two lines differ")
    nothing = rf"there is no \answer{{}} block, and neither the last line nor a box is {kind.wanted}"
    return block_reading(text, _BOXES(text), value, kind.placeholders, nothing) or Reading(None, nothing)


def _forms(text: str) -> frozenset[str]:
    """Return the ways to write an option's text: as it stands, and as a title with or without the word `Paper`."""
    title = text[len("paper ") :] if text[:7].casefold() == 'paper "' else text
    bare = normalised_title(title)
    return frozenset({normalised_title(text), bare, f"paper {bare}"}) if bare else frozenset()
