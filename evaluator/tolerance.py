r"""What our own reading forgives beyond a published one: how an answer is dressed, and what stands beside it.

Everything here is still a comparison of whole values: words beside a value are taken off only when each of them
is known to say nothing else, and two interpretations that disagree are no answer. No language but that of the
prompts is read, and no locale is guessed.

The functions for one candidate take its bare form (see `normalisation.normalised`), which is short.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from gniah.evaluator.extraction import Block
from gniah.evaluator.normalisation import MACROS, integer, normalised, unwrapped
from gniah.evaluator.readings import Reading
from gniah.records.titles import normalised_title

# What surrounds a block in a line of Markdown or LaTeX.
_DRESS = "*_`$\"'“”‘’([{)]}\\"
_DENIALS = frozenset({"not", "never", "neither", "nor", "isn't", "wasn't", "neq", "ne"})
_DENYING_PAIRS = frozenset({("instead", "of"), ("rather", "than")})
_JOINTS = frozenset({"", "or", "and", "and/or", "vs", "versus"})
_LINE_END = frozenset("\r\n")
# How many characters before or between blocks are looked at.
_NEAR = 40

_NOUNS = frozenset(["answer", "choice", "count", "number", "option", "result", "total"])
_LEADS = frozenset({"a", "and", "are", "hence", "is", "my", "of", "so", "the", "then", "therefore", "thus"})
_QUALITIES = frozenset({"best", "correct", "final", "overall", "right"})
_SIGNS = (":", "=", " is ")
_OPTION_WORDS = ("option", "choice", "answer")
_BETWEEN_WORDS = frozenset(" \\{}()$*_~,.`")
_CLOSERS = frozenset(" )].:*_`-–—\"'”’}$")
# An `=` behind one of these, or a lone one of them, compares or estimates and does not say what is equal.
_COMPARING = ("<", ">", "!", "≤", "≥", "≠", "~", "≈")
# What parts several equations.
_LISTING = (", ", ";", " and ", " or ")


def block_reading(
    text: str,
    blocks: Sequence[Block],
    read: Callable[[str], str | None],
    placeholders: Collection[str],
    nothing: str,
) -> Reading | None:
    r"""Return what the last block answers, or None when no block can be an answer; `nothing` is the reason without one.

    A block that is denied right before it ("not \answer{17}") or holds nothing but a placeholder does not count.
    Different answers with nothing but "or" and the like between them are alternatives, and no answer.
    """
    counted = [
        block for block in blocks if not _denied(_line_before(text, block)) and not _blank(block.content, placeholders)
    ]
    if not counted:
        return None
    value = read(counted[-1].content)
    if value is None:
        return Reading(None, nothing)
    if len(counted) > 1:
        before, last = counted[-2:]
        if _side_by_side(text, before, last) and read(before.content) != value:
            return Reading(None, "the last blocks are different answers side by side")
    return Reading(value)


def after_marker(bare: str, more: Collection[str] = ()) -> tuple[str, str] | None:
    """Return the sign and the rest behind words that announce an answer: `Answer:`, `The final count is`.

    None when there are no such words. All words before the sign must be known, one of them a noun; `more` adds
    to the known ones.
    """
    known = _NOUNS | _LEADS | _QUALITIES | frozenset(more)
    nouns = _NOUNS | frozenset(more)
    best: tuple[int, str] | None = None
    for place, sign in sorted((place, one) for one in _SIGNS for place in _places(bare, one)):
        words = _words(bare[:place])
        if not words <= known:
            break
        if words & nouns:
            best = (place + len(sign), sign)
    return None if best is None else (best[1].strip(), bare[best[0] :])


def number(bare: str, nouns: Collection[str], adjectives: Collection[str]) -> str | None:
    """Return the digits of a count: alone, behind `x =`, before a known unit, with a plus sign or as `42.0`.

    Sides of an equation that are different numbers are no answer, and neither is what only bounds or estimates.
    """
    *heads, last = bare.split("=")
    if any(head.rstrip().endswith(_COMPARING) or any(mark in head for mark in _LISTING) for head in heads):
        return None
    value = _amount(unwrapped(last), nouns, adjectives)
    for head in heads:
        other = _amount(unwrapped(head), nouns, adjectives)
        if other not in {None, value}:
            return None
    return value


def option(bare: str, forms: Mapping[str, Collection[str]]) -> str | None:
    """Return the letter of the option that is meant: by its letter, its text, or both when they agree.

    `forms` maps the letters on offer to the ways of writing their options' texts, each a normalised title. None
    when nothing or more than one option fits.
    """
    whole = normalised_title(bare)
    found = {letter for letter, texts in forms.items() if whole and whole in texts}
    rest = bare.lstrip("([*_ ")
    for word in _OPTION_WORDS:
        if rest[: len(word)].casefold() == word and not rest[len(word) : len(word) + 1].isalnum():
            rest = rest[len(word) :].lstrip(" :([*_")
            break
    letter, rest = rest[:1].upper(), rest[1:]
    if letter in forms and not rest[:1].isalnum():
        said = normalised_title(rest)
        if _CLOSERS.issuperset(rest) or (said and said in forms[letter]):
            found.add(letter)
    return found.pop() if len(found) == 1 else None


def _denied(before: str) -> bool:
    """Tell whether the words right before a block, in the same line, take it back."""
    words = before.replace("’", "'").casefold().rstrip(f"{_DRESS} \t\u00a0").split()
    if not words:
        return False
    return (
        words[-1].lstrip(_DRESS) in _DENIALS or words[-1].endswith(("≠", "!=")) or tuple(words[-2:]) in _DENYING_PAIRS
    )


def _blank(content: str, placeholders: Collection[str]) -> bool:
    if len(content) > _NEAR:
        return False
    bare = normalised(content)
    return bare is not None and bare.casefold() in placeholders


def _side_by_side(text: str, before: Block, last: Block) -> bool:
    """Tell whether nothing but "or" and the like is between two blocks, in one line or in lines of their own.

    A block in a line of its own behind one inside a sentence is the final line that was asked for.
    """
    between = text[before.end : last.start]
    if len(between) > _NEAR or between.strip(f"{_DRESS} \t\r\n\u00a0.,;:/|-").casefold() not in _JOINTS:
        return False
    return not _LINE_END.intersection(between) or not _line_before(text, before).strip(f"{_DRESS} \t-")


def _line_before(text: str, block: Block) -> str:
    near = text[max(0, block.start - _NEAR) : block.start]
    return near[max(near.rfind("\n"), near.rfind("\r")) + 1 :]


def _places(text: str, sign: str) -> Sequence[int]:
    places, place = [], text.find(sign)
    while place >= 0:
        places.append(place)
        place = text.find(sign, place + 1)
    return places


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(f"{_DRESS},:=").casefold() for word in text.split()) - {""}


def _amount(bare: str, nouns: Collection[str], adjectives: Collection[str]) -> str | None:
    """Return the digits of a number with a known unit or none."""
    first = next((place for place, character in enumerate(bare) if character.isalpha()), len(bare))
    if first < len(bare) and not _is_unit(bare[first:], nouns, adjectives):
        return None
    head = bare[:first].rstrip(" \\~{($*_`,") if first < len(bare) else bare
    head = unwrapped(head)
    if head[:1] == "+" and head[1:2].isdigit():
        head = head[1:]
    for zeros in (".0", ".00"):  # three could be a group of thousands
        head = head.removesuffix(zeros)
    return integer(head)


def _is_unit(tail: str, nouns: Collection[str], adjectives: Collection[str]) -> bool:
    if not {character for character in tail if not character.isalpha()} <= _BETWEEN_WORDS:
        return False
    letters = "".join(character if character.isalpha() else " " for character in tail)
    words = set(letters.casefold().split()) - set(MACROS)
    return words <= {*nouns, *adjectives} and not words.isdisjoint(nouns)
