from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.records.titles import normalised_title, shown_text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("A &amp; B", "A & B"),
        ("A &amp;amp; B", "A & B"),
        ("A &amp;amp;amp; B", "A & B"),
        ("A &amp;amp;amp;amp; B", "A &amp; B"),
        ("1 &amp;lt; 2", "1 < 2"),
        ("caf&eacute; &#233; &#xe9;", "café é é"),
        ("AT&T & co", "AT&T & co"),
        ("&nosuchentity;", "&nosuchentity;"),
        ("a\x00b\x07c\x7fd\x9fe", "abcde"),
        ("a\ud800b", "ab"),
        ("a\tb\nc\r\nd\x0be\x0cf", "a b c d e f"),
        ("a\x85b\u2028c\u2029d", "a b c d"),
        ("a\x1cb\x1fc", "a b c"),
        ("  a \u00a0 b\u3000c\u2003 ", "a b c"),
        ("&nbsp;a&nbsp;&amp;nbsp;b&nbsp;", "a b"),
        ("\u202eabc\u202c \u2067def\u2069 \u200eg\u200f\u061c\ufeff", "abc def g"),
        ("&#8238;abc&#x202C;", "abc"),
        ("e\u0301te\u0301", "été"),
        ("e\u200e\u0301", "é"),
        ("\u1112\u1161\u11ab", "한"),
        ("\u212b", "Å"),
        ("ﬁ ½", "ﬁ ½"),
        ("zero\u200bwidth\u200djoiner", "zero\u200bwidth\u200djoiner"),
        ("\u200e\u0007 \u00a0", ""),
        ("", ""),
    ],
)
def test_shown_text(raw: str, shown: str) -> None:
    assert shown_text(raw) == shown


@given(st.text())
def test_shown_text_has_no_controls_and_no_white_space_at_its_ends_or_twice(raw: str) -> None:
    shown = shown_text(raw)
    assert shown == " ".join(shown.split())
    assert not set(shown) & {chr(code) for code in (*range(32), *range(127, 160), 0x200E, 0x200F, 0x202E, 0xFEFF)}


@given(st.text().filter(lambda text: "&" not in text))
def test_shown_text_without_entities_is_idempotent(raw: str) -> None:
    assert shown_text(shown_text(raw)) == shown_text(raw)


@pytest.mark.parametrize(
    ("shown", "key"),
    [
        ("C++ & C#: a review", "c c a review"),
        ("snake_case-and-dash", "snake case and dash"),
        ("What?! (2nd ed.)", "what 2nd ed"),
        ("Straße STRASSE", "strasse strasse"),
        ("ﬁne ½ ① ²", "fine 1 2 1 2"),
        ("Ⅷ century", "viii century"),
        ("ΣΊΣΥΦΟΣ σίσυφος", "σίσυφοσ σίσυφοσ"),
        ("İstanbul", "i\u0307stanbul"),
        ("ЁЛКА Ёлка", "ёлка ёлка"),
        ("हिन्दी में शब्द", "हिन्दी में शब्द"),
        ("עִבְרִית", "עִבְרִית"),
        ("العَرَبِيَّة ٢٠٢٦", "العَرَبِيَّة ٢٠٢٦"),
        ("深層学習、とは何か。", "深層学習 とは何か"),
        ("カタカナ", "カタカナ"),
        ("한국어 논문!", "한국어 논문"),
        ("𝔘nicode", "unicode"),
        ("e\u0301tude étude", "étude étude"),
        ("…—!", ""),
        ("", ""),
    ],
)
def test_normalised_title(shown: str, key: str) -> None:
    assert normalised_title(shown) == key


def test_a_combining_mark_tells_titles_apart_in_every_script() -> None:
    assert normalised_title("resume") != normalised_title("résumé")
    assert normalised_title("दिन") != normalised_title("दीन")


@given(st.text())
def test_normalised_title_is_idempotent(shown: str) -> None:
    assert normalised_title(normalised_title(shown)) == normalised_title(shown)


@given(st.text())
def test_normalised_title_forgets_letter_case_and_punctuation(shown: str) -> None:
    assert normalised_title(f"  {shown.casefold()} !?") == normalised_title(shown.casefold())


@given(st.text(st.characters(categories=("Lu", "Ll"), max_codepoint=0x24F)))
def test_upper_and_lower_case_have_one_normalised_title(text: str) -> None:
    # U+0130 and U+0131 are the one pair of letters that case folding keeps apart on purpose.
    plain = text.replace("\u0130", "").replace("\u0131", "")
    assert normalised_title(plain.upper()) == normalised_title(plain) == normalised_title(plain.lower())


@given(st.text())
def test_the_composed_and_the_decomposed_spelling_have_one_normalised_title(text: str) -> None:
    import unicodedata

    assert normalised_title(unicodedata.normalize("NFD", text)) == normalised_title(text)
