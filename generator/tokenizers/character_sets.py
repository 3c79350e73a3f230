"""Classes of characters in a regular expression, with doubt: whether a character may be in one.

Unicode grows, and libraries differ in what is white space. So each answer is "may be", and a character that this
Python does not know may be in any category.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

# The property White_Space of Unicode, and what is or was white space to somebody.
WHITE_SPACE = frozenset("\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(code) for code in range(0x2000, 0x200B)
}
PERHAPS_SPACE = frozenset("\x1c\x1d\x1e\x1f\u180e\u200b\u2060\ufeff")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a class: a range (`kind` "range", `what` its two ends), a category, white space, or word characters.

    `turned` means the complement.
    """

    kind: str
    what: str = ""
    turned: bool = False

    def verdict(self, character: str, ignore_case: bool) -> tuple[bool, bool]:
        """Return whether a character may be in the part, and whether it may be out of it."""
        could, could_not = self._verdict(character, ignore_case)
        return (could_not, could) if self.turned else (could, could_not)

    def _verdict(self, character: str, ignore_case: bool) -> tuple[bool, bool]:
        if self.kind == "space":
            unsure = character in PERHAPS_SPACE
            return unsure or character in WHITE_SPACE, character not in WHITE_SPACE
        if self.kind == "range":
            return self._in_range(character, ignore_case)
        category = unicodedata.category(character)
        if category == "Cn":
            return True, True
        if self.kind == "word":
            # What belongs to a word beside letters and digits differs: marks, joiners, connecting punctuation.
            return category[0] in "LNM" or category in ("Pc", "Cf", "So"), not character.isalnum()
        return category.startswith(self.what), not category.startswith(self.what)

    def _in_range(self, character: str, ignore_case: bool) -> tuple[bool, bool]:
        inside = self.what[0] <= character <= self.what[1]
        if inside or not ignore_case:
            return inside, not inside
        if character > "\x7f":
            return True, True
        folded = {character.lower(), character.upper()}
        return any(self.what[0] <= one <= self.what[1] for one in folded), True


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """A class of characters: the union of its parts, perhaps turned round."""

    parts: tuple[Part, ...]
    negated: bool = False
    ignore_case: bool = False

    def may_hold(self, character: str) -> bool:
        """Whether a character may be in the class."""
        verdicts = [part.verdict(character, self.ignore_case) for part in self.parts]
        if self.negated:
            return all(could_not for _, could_not in verdicts)
        return any(could for could, _ in verdicts)

    @property
    def only_space(self) -> bool:
        """Whether every character of the class is white space for certain."""
        return not self.negated and all(
            (part.kind == "space" and not part.turned)
            or (part.kind == "range" and part.what[0] == part.what[1] and part.what[0] in WHITE_SPACE)
            for part in self.parts
        )


ANY = CharacterSet((), negated=True)
