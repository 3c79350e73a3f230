"""What the regular expression of a pre-tokenizer allows to follow a line break inside one piece.

Such an expression cuts a text into pieces, from left to right, and each piece becomes tokens by itself. So counts add
up at every joint that no piece reaches across. `read_pattern` finds the joints by reading the expression:

The expression is taken as a graph of character classes: which class can come next after which, lookaheads included.
`following` are the classes that can come after one that takes a line break. Let a text be U, which ends in a line
break, then V, whose first character is in none of them. Then no attempt to match can tell V from the end of the text
once it has taken the last line break, so U is cut as it is alone, the cut is there, and V is cut as it is alone.

White space needs more. An alternative that is `\\s*[\\r\\n]+` matches wherever white space with a line break in it
begins, and ends at the last line break of that white space. So later alternatives of white space alone are never
tried there, and they, with their lookaheads, can be left out; and the alternative itself reaches into V only when the
white space at the beginning of V holds a line break, which `Pattern.joined` looks at. An earlier `\\s++$` takes the
same piece at the end of U alone, and nothing at all in front of V unless V is white space.

Everything is an over-approximation: what is not understood is refused, and a character that may be in a class is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from gniah.generator.tokenizers.character_sets import ANY, PERHAPS_SPACE, WHITE_SPACE, CharacterSet, Part

_LINE_BREAKS = ("\\s*[\\r\\n]+", "\\s*[\\r\\n]", "\\s*[\\r\\n]++")
_AT_THE_END = ("\\s++$", "\\s+$")
# What most texts begin with. An expression that reaches across a line break to one of these does not cut there.
_ORDINARY = 'aZ9é"#*([-中'
_SPACES = "".join(sorted(WHITE_SPACE | PERHAPS_SPACE))
_ESCAPED = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v"}
_NAMED = {"s": Part("space"), "d": Part("category", "Nd"), "w": Part("word")}
_CATEGORY = re.compile(r"\\([pP])\{(\^?)([A-Z][a-z]?)\}")
_QUANTIFIER = re.compile(r"([*+?]|\{\d+(?:,\d*)?\})[+?]?")
_HEX = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x\{([0-9A-Fa-f]+)\})")
_GROUPS = (("(?:", False, False), ("(?i:", False, True), ("(?=", True, False), ("(?!", True, False))


class UnknownPattern(Exception):
    """An expression with something in it that is not understood."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pre-tokenizer's expression as far as joints go.

    `following` are the classes that may come after a line break in one piece. `newline_free`: no piece that it matches
    holds a line break. `looks_at_end`: it has an alternative that takes white space at the end of the text.
    """

    following: tuple[CharacterSet, ...]
    newline_free: bool
    looks_at_end: bool
    _known: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @property
    def cuts(self) -> bool:
        """Whether it cuts after a line break and before ordinary text: letters, digits, quotes, brackets."""
        return not self.newline_free and not any(map(self._may_follow, _ORDINARY))

    def joined(self, text: str) -> bool:
        """Whether a piece may reach across a line break into the text after it. White space alone is always joined."""
        if not text or self._may_follow(text[0]):
            return True
        if text[0] not in _SPACES:
            return False
        rest = text.lstrip(_SPACES)
        space = text[: len(text) - len(rest)]
        return not rest or "\n" in space or "\r" in space

    def _may_follow(self, character: str) -> bool:
        """Whether a character may come after a line break in one piece; remembered, being asked for every block."""
        if character not in self._known:
            self._known[character] = any(one.may_hold(character) for one in self.following)
        return self._known[character]


@lru_cache(maxsize=64)
def read_pattern(pattern: str) -> Pattern:
    """Return what can be proved of an expression. Raises UnknownPattern when something in it is not understood."""
    following: list[CharacterSet] = []
    newline_free, looks_at_end, line_breaks = True, False, False
    for alternative in _alternatives(pattern):
        if alternative in _LINE_BREAKS:
            line_breaks, newline_free = True, False
            continue
        if alternative in _AT_THE_END:
            looks_at_end, newline_free = True, False
            continue
        graph = _Graph(alternative)
        if any(one.may_hold("\n") for one in graph.classes):
            newline_free = False
        if line_breaks and all(one.only_space for one in graph.taken):
            continue
        following += [graph.classes[after] for at, after in graph.pairs if graph.classes[at].may_hold("\n")]
    if looks_at_end and not line_breaks:
        following.append(ANY)
    return Pattern(tuple(dict.fromkeys(following)), newline_free, looks_at_end)


def _alternatives(pattern: str) -> list[str]:
    """Return the alternatives at the outermost level, as they are written."""
    found, depth, begin, position, in_class = [], 0, 0, 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            found.append(pattern[begin:position])
            begin = position + 1
        position += 1
    return [*found, pattern[begin:]]


@dataclass
class _Part:
    """A piece of an expression: whether it may be empty, and at which classes it may begin and end."""

    nullable: bool = True
    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)


class _Graph:
    """The classes of an expression, and the pairs of them that can come one after the other (Glushkov's automaton).

    `taken` are the classes outside of lookaheads.
    """

    def __init__(self, text: str) -> None:
        self.classes: list[CharacterSet] = []
        self.pairs: set[tuple[int, int]] = set()
        self._looked_at: set[int] = set()
        self._text = text
        self._position = 0
        self._either(ignore_case=False)
        if self._position != len(text):
            raise UnknownPattern(f"unbalanced brackets in {text!r}")

    @property
    def taken(self) -> list[CharacterSet]:
        return [one for number, one in enumerate(self.classes) if number not in self._looked_at]

    def _next(self) -> str:
        return self._text[self._position : self._position + 1]

    def _either(self, *, ignore_case: bool) -> _Part:
        whole = self._row(ignore_case)
        while self._next() == "|":
            self._position += 1
            other = self._row(ignore_case)
            whole = _Part(whole.nullable or other.nullable, whole.first + other.first, whole.last + other.last)
        return whole

    def _row(self, ignore_case: bool) -> _Part:
        row = _Part()
        while self._next() not in ("", "|", ")"):
            atom, looks = self._atom(ignore_case)
            quantifier = _QUANTIFIER.match(self._text, self._position)
            if quantifier is not None:
                self._position = quantifier.end()
                self._join(atom, atom)
                atom.nullable = atom.nullable or quantifier[1][0] in "*?" or quantifier[1].startswith("{0")
            self._join(row, atom)
            if looks:
                continue
            row = _Part(
                row.nullable and atom.nullable,
                row.first + (atom.first if row.nullable else []),
                atom.last + (row.last if atom.nullable else []),
            )
        return row

    def _join(self, before: _Part, after: _Part) -> None:
        self.pairs.update((at, then) for at in before.last for then in after.first)

    def _atom(self, ignore_case: bool) -> tuple[_Part, bool]:
        """Read one atom; return it, and whether it only looks ahead."""
        if self._next() == "(":
            return self._group(ignore_case)
        number = len(self.classes)
        self.classes.append(self._class(ignore_case))
        return _Part(False, [number], [number]), False

    def _group(self, ignore_case: bool) -> tuple[_Part, bool]:
        opening, look, fold = "(", False, False
        if self._text.startswith("(?", self._position):
            known = [group for group in _GROUPS if self._text.startswith(group[0], self._position)]
            if not known:
                raise UnknownPattern(f"{self._text[self._position :][:8]!r} is not understood")
            opening, look, fold = known[0]
        self._position += len(opening)
        begun = len(self.classes)
        part = self._either(ignore_case=fold or ignore_case)
        if self._next() != ")":
            raise UnknownPattern(f"unbalanced brackets in {self._text!r}")
        self._position += 1
        if look:
            self._looked_at.update(range(begun, len(self.classes)))
        return part, look

    def _class(self, ignore_case: bool) -> CharacterSet:
        if self._next() == "[":
            return self._brackets(ignore_case)
        if self._next() == ".":
            self._position += 1
            return ANY
        if self._next() in "^$*+?{]})":
            raise UnknownPattern(f"{self._next()!r} is not understood in {self._text!r}")
        one = self._one()
        return CharacterSet((_range(one, one) if isinstance(one, str) else one,), ignore_case=ignore_case)

    def _brackets(self, ignore_case: bool) -> CharacterSet:
        self._position += 1
        negated = self._next() == "^"
        self._position += negated
        parts: list[Part] = []
        while self._next() != "]":
            if self._next() in ("", "[") or self._text.startswith("&&", self._position):
                raise UnknownPattern(f"a class is not understood in {self._text!r}")
            one = self._one()
            if self._next() == "-" and self._text[self._position + 1 : self._position + 2] not in ("]", ""):
                self._position += 1
                other = self._one()
                if not (isinstance(one, str) and isinstance(other, str) and one <= other):
                    raise UnknownPattern(f"a range is not understood in {self._text!r}")
                parts.append(_range(one, other))
            else:
                parts.append(_range(one, one) if isinstance(one, str) else one)
        self._position += 1
        return CharacterSet(tuple(parts), negated, ignore_case)

    def _one(self) -> str | Part:
        """Read one character, or a set that has a name, such as `\\p{L}`."""
        text, at = self._text, self._position
        if text[at] != "\\":
            self._position += 1
            return text[at]
        category = _CATEGORY.match(text, at)
        if category is not None:
            self._position = category.end()
            return Part("category", category[3], turned=(category[1] == "P") != (category[2] == "^"))
        number = _HEX.match(text, at)
        if number is not None:
            self._position = number.end()
            return chr(int(number[1] or number[2] or number[3], 16))
        self._position += 2
        escaped = text[at + 1 : at + 2]
        if escaped.lower() in _NAMED:
            return replace(_NAMED[escaped.lower()], turned=escaped.isupper())
        if escaped in _ESCAPED:
            return _ESCAPED[escaped]
        if not escaped or escaped.isalnum():
            raise UnknownPattern(f"\\{escaped} is not understood")
        return escaped


def _range(first: str, last: str) -> Part:
    return Part("range", first + last)


__all__ = ["Pattern", "UnknownPattern", "read_pattern"]
