r"""Light normalisation of a short answer, on both sides of a comparison.

Only what surrounds a value is taken off: white space and invisible characters, Markdown emphasis, LaTeX
wrappers, quotes and brackets round the whole, and closing punctuation. What is inside stays, so a comparison
is always one of whole values: `42 papers` and `x = 42` are not the integer 42.

Everything takes time linear in the length of the text: no pattern backtracks, and a text that is too long to
be an answer is given up before anything expensive is done with it.
"""

from __future__ import annotations

import itertools
import re
import unicodedata

# No label, letter or count of any task is longer, wrapped in whatever markup. It also bounds NFKC, which can
# take quadratic time on a long run of combining marks.
LONGEST = 1000

# Full-width ASCII variants, one character for one, so that positions in a text do not move.
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_WIDE = re.compile("[\uff01-\uff5e\u3000]")

# Spaces that are set between groups of digits. A plain space is not one: "1 042" may be two numbers.
_SPACES = "[\u00a0\u2007\u2009\u202f]"
_SPACE = re.compile(_SPACES)
_GROUPING_SPACE = re.compile(rf"(?<=\d){_SPACES}(?=\d)")
_GROUPING_MARKS = ("{,}", "\\,")

_EMPHASIS = "*_`"
_CLOSING = ".,;:!。"
_PAIRS = (
    ("$", "$"),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("‘", "’"),
    ("«", "»"),
)
_LAST = frozenset(closing[-1] for _, closing in _PAIRS)
# LaTeX commands that change how their argument looks, not what it says.
MACROS = (
    "answer",
    "boxed",
    "emph",
    "fbox",
    "mathbf",
    "mathit",
    "mathrm",
    "mathsf",
    "mathtt",
    "mbox",
    "operatorname",
    "text",
    "textbf",
    "textit",
    "textrm",
    "textsf",
    "texttt",
    "underline",
)
_OPENINGS = tuple(f"\\{name}{{" for name in MACROS)


def narrow(text: str) -> str:
    """Return the text with full-width ASCII variants made narrow, each character in its place."""
    return text.translate(_NARROW) if _WIDE.search(text) else text


def normalised(text: str) -> str | None:
    """Return the bare form of a text that should be an answer, its letter case kept; it may be empty.

    None stands for a text that is too long to be an answer.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return None
    folded = " ".join(_grouped(text).split())
    if not (folded.isascii() and folded.isprintable()):
        folded = " ".join(_compatible(_visible(folded)).split())
    return unwrapped(folded)


def unwrapped(text: str) -> str:
    """Take wrappers and closing punctuation off until nothing changes."""
    if text.isalnum():
        return text
    while True:
        shorter = _without_wrapper(text.strip())
        if shorter == text:
            return text
        text = shorter


def integer(text: str) -> str | None:
    r"""Return the canonical digits of a non-negative base-10 integer in its bare form, else None.

    ASCII digits only (full-width and styled ones became ASCII before), leading zeros dropped, groups of three
    after the first set apart by `,`, `{,}` or `\,`. A sign is not read, plus among it: nothing asks for one,
    and in front of a count it says that the writer meant something else. The digits stay text, so no length
    is a trap.
    """
    for mark in _GROUPING_MARKS:
        text = text.replace(mark, ",")
    first, *rest = text.split(",")
    if not all(group.isascii() and group.isdigit() for group in (first, *rest)):
        return None
    if rest and (len(first) > 3 or first.startswith("0") or any(len(group) != 3 for group in rest)):
        return None
    return "".join((first, *rest)).lstrip("0") or "0"


def _grouped(text: str) -> str:
    """Turn a grouping space between two digits into a comma, before it is folded into a plain one."""
    return _GROUPING_SPACE.sub(",", text) if not text.isascii() and _SPACE.search(text) else text


def _visible(text: str) -> str:
    """Drop format characters (zero-width, joiners, direction marks) and controls that are not white space."""
    if text.isprintable():
        return text
    return "".join(
        character for character in text if character.isspace() or unicodedata.category(character) not in ("Cf", "Cc")
    )


def _compatible(text: str) -> str:
    """Apply NFKC, but leave raised and lowered characters as they are: 4² is not the integer 42."""
    if unicodedata.is_normalized("NFKC", text):
        return text
    return "".join(
        "".join(run) if raised else unicodedata.normalize("NFKC", "".join(run))
        for raised, run in itertools.groupby(text, key=_is_raised)
    )


def _is_raised(character: str) -> bool:
    return unicodedata.decomposition(character).startswith(("<super>", "<sub>"))


def _without_wrapper(text: str) -> str:
    bare = text.strip(_EMPHASIS)
    if bare.startswith("#"):
        # A heading has a space; "#42" is a number of something.
        heading = bare.lstrip("#")
        bare = heading if heading.startswith(" ") else bare
    # An ellipsis says that something is left out, so it is no closing mark.
    if bare.endswith(tuple(_CLOSING)) and not bare.endswith(".."):
        bare = bare[:-1]
    if bare[-1:] not in _LAST:
        return bare.strip()
    for opening, closing in _PAIRS:
        if len(bare) >= len(opening) + len(closing) and bare.startswith(opening) and bare.endswith(closing):
            return bare[len(opening) : -len(closing)].strip()
    if bare.endswith("}"):
        for macro in _OPENINGS:
            if bare.startswith(macro):
                return bare[len(macro) : -1].strip()
    return bare.strip()
