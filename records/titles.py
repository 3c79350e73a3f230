"""The two forms of a title, as SPEC.md "The citation graph" defines them.

The *shown* form is what a prompt prints. The *normalised* form is what titles are compared by, everywhere.
"""

from __future__ import annotations

import html
import unicodedata
from functools import lru_cache

# Marks that reorder or isolate text: they change how a line is displayed and carry no content.
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def shown_text(raw: str) -> str:
    """Return a text as it is shown: entities unescaped, controls dropped, NFC, white space folded.

    Entities are unescaped to a fixpoint, three times at most, since upstream sources escape more than once.
    """
    text = raw
    for _ in range(3):
        unescaped = html.unescape(text)
        if unescaped == text:
            break
        text = unescaped
    kept = [
        " " if character.isspace() else character
        for character in text
        if character.isspace() or (character not in _BIDIRECTIONAL and unicodedata.category(character) not in _DROPPED)
    ]
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


# Control characters that are not white space, and lone surrogates, which have no UTF-8 form.
_DROPPED = frozenset({"Cc", "Cs"})


@lru_cache(maxsize=1 << 16)
def normalised_title(shown: str) -> str:
    """Return the form by which titles are compared.

    NFKC, case folded, everything but letters, digits and combining marks of any script turned into a space,
    white space folded. It may be empty, and then the title identifies nothing.
    """
    folded = unicodedata.normalize("NFKC", shown).casefold()
    return " ".join(
        "".join(
            character if unicodedata.category(character)[0] in "LNM" else " "
            for character in unicodedata.normalize("NFKC", folded)
        ).split()
    )
