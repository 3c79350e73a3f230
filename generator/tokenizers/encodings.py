"""The encodings of tiktoken, with OpenAI's chat format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from gniah.generator.tokenizers.interface import Frame
from gniah.generator.tokenizers.patterns import Pattern, UnknownPattern, read_pattern
from gniah.generator.tokenizers.ranks import RANK_FILES, tiktoken_encoding
from gniah.records.canonical import digest

_TOKENS_PER_MESSAGE = 3
_TOKENS_PER_PROMPT = 3


class TiktokenTokenizer:
    """An encoding of tiktoken, with 3 tokens a message and 3 a prompt for the chat format (GraphNIAH A.2.4).

    tiktoken cuts a text by the encoding's expression and encodes each piece by itself, so its counts add up where the
    expression always cuts; that is read from the expression itself (`patterns`). `unproved` says why not, when not.
    """

    def __init__(self, encoding_name: str, label: str) -> None:
        self.name = f"tiktoken:{encoding_name}"
        self.label = label
        self._encoding = tiktoken_encoding(encoding_name)
        known = RANK_FILES.get(encoding_name)
        ranks = known[1] if known else self._encoding.n_vocab
        self.digest = digest(
            {
                "tokenizer": self.name,
                "ranks": ranks,
                "chat": {"per_message": _TOKENS_PER_MESSAGE, "per_prompt": _TOKENS_PER_PROMPT},
            }
        )
        expression = str(getattr(self._encoding, "_pat_str", ""))
        pattern = hashlib.sha256(expression.encode()).hexdigest()
        self.text_digest = digest({"tokenizer": self.name, "ranks": ranks, "pattern": pattern})
        self._pattern, self.unproved = _proof(expression)
        self.adds = self._pattern is not None

    def joined(self, block: str) -> bool:
        """Whether a piece of the expression may reach across the line break before a text.

        Under o200k_base: before a slash, which may stand behind punctuation and line breaks in one piece, and before
        white space that itself holds a line break.
        """
        return self._pattern is None or self._pattern.joined(block)

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._encoding.encode_ordinary(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return [self.count(text) for text in texts]

    def frame(self, system_prompt: str) -> Frame:
        """Return the request around a user's message: nothing touches it."""
        return Frame("", "", self.count(system_prompt) + 2 * _TOKENS_PER_MESSAGE + _TOKENS_PER_PROMPT)

    def count_request(self, system_prompt: str, user_prompt: str) -> int:
        """Return the tokens of both messages and of the chat format around them."""
        return self.frame(system_prompt).others + self.count(user_prompt)


def _proof(expression: str) -> tuple[Pattern | None, str]:
    try:
        pattern = read_pattern(expression)
    except UnknownPattern as error:
        return None, f"its expression is not understood: {error}"
    if not pattern.cuts:
        return None, "its expression does not always cut after a blank line"
    return pattern, ""
