"""Where the counts of a `tokenizer.json` add up, proved from the file itself.

The library reads a text in five steps: added tokens are found, the rest is normalised, cut into pieces, encoded piece
by piece, and framed. Let U end in a line break, and let V be the text after it. `find_joints` shows that U and V can
be counted apart when V is not `joined`, or says why it cannot show it:

- Added tokens: none holds a line break beside another character, so none reaches across; none that is taken from a
  text (special ones are not) swallows white space beside it. They are found longest first from the left, so which ones
  are found in U, and in V, does not depend on the other.
- Normalisation: none; NFC or NFD, for which a line break is a starter that never composes, so nothing is reordered or
  composed across it; or one text without a line break in place of another.
- Pieces: an expression always cuts there (`patterns`). Splits before it never take a line break; those after it work
  inside its pieces. What the model is does not matter then.
- Or no piece ends there, and the model is BPE. When no merge and no token holds a line break beside another character,
  the merges to the left of the joint and those to the right do not touch, and each side's are those of it alone, in the
  same order. A line break has a token of its own, so no unknown character or bytes take its place.
- The frame around the text is not asked for.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gniah.generator.tokenizers.patterns import Pattern, UnknownPattern, read_pattern

# The expression that ByteLevel cuts by when `use_regex` is set (GPT-2's).
_BYTE_LEVEL = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class Unproved(Exception):
    """Counts may add up, and it could not be shown. The text says what stood in the way."""


@dataclass(frozen=True, slots=True)
class Joints:
    """Where counts add up. `pattern` is the expression that cuts, or None where the vocabulary keeps line breaks apart.

    `composes` says that characters are composed before they are looked at.
    """

    pattern: Pattern | None
    composes: bool = False

    def joined(self, text: str) -> bool:
        """Whether a token may reach across a line break into the text after it."""
        if not self.composes or text.isascii():
            return self._joined(text)
        # What a character composes to is decided before the next ASCII character that is not the first.
        end = next((at for at in range(1, len(text)) if text[at] < "\x7f"), len(text) - 1) + 1
        return self._joined(text) or any(
            self._joined(unicodedata.normalize(form, text[:end]) + text[end:]) for form in ("NFC", "NFD")
        )

    def _joined(self, text: str) -> bool:
        return text[:1] in ("", "\n") if self.pattern is None else self.pattern.joined(text)


def find_joints(tokenizer: Mapping[str, Any]) -> Joints:
    """Return where the counts of a tokenizer add up, from its `tokenizer.json` as an object. Raises Unproved."""
    _check_added_tokens(tokenizer.get("added_tokens") or [])
    normalizers = list(_steps(tokenizer.get("normalizer"), "normalizers"))
    _check_normalizers(normalizers)
    composes = any(step.get("type") in ("NFC", "NFD") for step in normalizers)
    pieces = list(_steps(tokenizer.get("pre_tokenizer"), "pretokenizers"))
    pattern = _cutting_pattern(pieces)
    if pattern is None:
        _check_vocabulary(tokenizer.get("model") or {})
    return Joints(pattern, composes)


def _steps(value: Mapping[str, Any] | None, many: str) -> Iterable[Mapping[str, Any]]:
    """Yield the steps of a normalizer or pre-tokenizer, sequences opened."""
    if value is None:
        return
    if value.get("type") == "Sequence":
        for step in value.get(many, ()):
            yield from _steps(step, many)
    else:
        yield value


def _mixed(text: str) -> bool:
    """Whether a text holds a line break beside another character."""
    return "\n" in text and text.strip("\n") != ""


def _check_added_tokens(added: Sequence[Mapping[str, Any]]) -> None:
    for token in added:
        content = str(token.get("content", ""))
        if _mixed(content):
            raise Unproved(f"its added token {content!r} holds a line break beside another character")
        if not token.get("special") and (token.get("lstrip") or token.get("rstrip")):
            raise Unproved(f"its added token {content!r} takes white space beside it")


def _check_normalizers(steps: Iterable[Mapping[str, Any]]) -> None:
    for step in steps:
        kind = step.get("type")
        if kind in ("NFC", "NFD"):
            continue
        pattern = (step.get("pattern") or {}).get("String") if kind == "Replace" else None
        if not pattern or "\n" in pattern or "\n" in step.get("content", "\n"):
            raise Unproved(f"its normalizer {kind} is not known to leave line breaks alone")


def _cutting_pattern(steps: Sequence[Mapping[str, Any]]) -> Pattern | None:
    """Return the expression of the first step that cuts after line breaks; None when every step leaves them alone."""
    cutting: Pattern | None = None
    for step in steps:
        kind = step.get("type")
        if kind == "ByteLevel" and not step.get("add_prefix_space"):
            pattern = _read(_BYTE_LEVEL) if step.get("use_regex", True) else None
        elif kind == "Split":
            pattern = _split_pattern(step)
        elif kind == "Digits":
            pattern = None
        else:
            raise Unproved(f"its pre-tokenizer {kind} is not known to cut at line breaks")
        if cutting is None and pattern is not None and not pattern.newline_free:
            if not pattern.cuts:
                raise Unproved("its expression does not always cut after a blank line")
            cutting = pattern
    return cutting


def _split_pattern(step: Mapping[str, Any]) -> Pattern | None:
    given = step.get("pattern") or {}
    text = given.get("String")
    if isinstance(text, str):
        if not text or "\n" in text:
            raise Unproved(f"it splits at {text!r}")
        return None
    if step.get("behavior") != "Isolated" or step.get("invert"):
        raise Unproved(f"its split has the behaviour {step.get('behavior')}, inverted: {bool(step.get('invert'))}")
    return _read(str(given.get("Regex", "")))


def _read(expression: str) -> Pattern:
    try:
        pattern = read_pattern(expression)
    except UnknownPattern as error:
        raise Unproved(f"its expression is not understood: {error}") from None
    if pattern.looks_at_end:
        # In this library a dollar sign stands for the end of a line, and a piece may end at an added token.
        raise Unproved("its expression looks at the end of the text")
    return pattern


def _check_vocabulary(model: Mapping[str, Any]) -> None:
    if model.get("type") != "BPE":
        raise Unproved(f"nothing cuts at line breaks, and its model is {model.get('type')}, not BPE")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"):
        if model.get(name):
            raise Unproved(f"its model has {name}")
    vocabulary = model.get("vocab") or {}
    if "\n" not in vocabulary:
        raise Unproved("its vocabulary has no token for a line break")
    for token in vocabulary:
        if "\n" in token and _mixed(token):
            raise Unproved(f"its token {token!r} holds a line break beside another character")
    for merge in model.get("merges") or ():
        left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
        if ("\n" in left or "\n" in right) and _mixed(left + right):
            raise Unproved(f"its merge of {left!r} and {right!r} holds a line break beside another character")


__all__ = ["Joints", "Unproved", "find_joints"]
