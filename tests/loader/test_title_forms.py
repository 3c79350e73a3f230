"""The quick forms of titles against their definitions, written slowly and plainly."""

from __future__ import annotations

import html
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gniah.records.titles import normalised_title, shown_text

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"


def slow_shown_text(raw: str) -> str:
    text = raw
    for _ in range(3):
        text = html.unescape(text)
    kept = []
    for character in text:
        if character.isspace():
            kept.append(" ")
        elif character not in BIDIRECTIONAL and unicodedata.category(character) not in ("Cc", "Cs"):
            kept.append(character)
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


def slow_normalised_title(shown: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())
    kept = [character if unicodedata.category(character)[0] in "LNM" else " " for character in folded]
    return " ".join("".join(kept).split())


TEXTS = st.text(st.characters()) | st.lists(
    st.sampled_from(
        [
            "&amp;",
            "&lt;",
            "amp;",
            "&#8238;",
            "&nbsp;",
            "&",
            " ",
            "\t",
            "\0",
            "A",
            "é",
            "e\u0301",
            "ſ",
            "İ",
            "ß",
            "ﬁ",
            "\u200e",
            "\ufeff",
            "\ud800",
            "\x85",
            "\u2028",
            "한",
            "\u1112",
            "½",
            "ǰ",
            "ͅ",
            "-",
            "_",
            "²",
        ]
    )
    | st.characters(),
    max_size=30,
).map("".join)


@given(TEXTS)
def test_the_quick_forms_are_the_definitions(text: str) -> None:
    assert shown_text(text) == slow_shown_text(text)
    assert normalised_title(text) == slow_normalised_title(text)


def test_every_character_has_the_forms_of_the_definitions() -> None:
    for code in range(sys.maxunicode + 1):
        text = f"x{chr(code)}y"
        assert shown_text(text) == slow_shown_text(text), hex(code)
        assert normalised_title.__wrapped__(text) == slow_normalised_title(text), hex(code)
