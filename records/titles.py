"""The two forms of a title, as SPEC.md "The citation graph" defines them.

The *shown* form is what a prompt prints. The *normalised* form is what titles are compared by, everywhere.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable
from functools import lru_cache

# Marks that reorder or isolate text: they change how a line is displayed and carry no content.
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
# Control characters that are not white space, and lone surrogates, which have no UTF-8 form.
_DROPPED = frozenset({"Cc", "Cs"})


class _Table(dict[int, int | None]):
    """A table for `str.translate` that is filled as characters turn up, by a rule for one character."""

    def __init__(self, rule: Callable[[str], int | None]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> int | None:
        return self.setdefault(code, self._rule(chr(code)))


def _as_shown(character: str) -> int | None:
    if character.isspace():
        return ord(" ")
    gone = character in _BIDIRECTIONAL or unicodedata.category(character) in _DROPPED
    return None if gone else ord(character)


def _as_compared(character: str) -> int:
    return ord(character) if unicodedata.category(character)[0] in "LNM" else ord(" ")


_SHOWN = _Table(_as_shown)
_COMPARED = _Table(_as_compared)


def shown_text(raw: str) -> str:
    """Return a text as it is shown: entities unescaped, controls dropped, NFC, white space folded.

    Entities are unescaped to a fixpoint, three times at most, since upstream sources escape more than once.
    """
    text = raw
    if "&" in raw:
        for _ in range(3):
            unescaped = html.unescape(text)
            if unescaped == text:
                break
            text = unescaped
    if not text.isprintable():  # what is printable has nothing to drop, and no white space but the space
        text = text.translate(_SHOWN)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


@lru_cache(maxsize=1 << 16)
def normalised_title(shown: str) -> str:
    """Return the form by which titles are compared.

    NFKC, case folded, everything but letters, digits and combining marks of any script turned into a space,
    white space folded. It may be empty, and then the title identifies nothing.
    """
    if shown.isascii():
        folded = shown.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())
    return " ".join(folded.translate(_COMPARED).split())
