"""What a tokenizer is to this package: counts of texts and of whole requests, and where a count may be cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Frame:
    """A request around a user's message: the text before and after it in one run of text, and all other tokens."""

    before: str
    after: str
    others: int


class Tokenizer(Protocol):
    """What a tokenizer must give. Special tokens that stand in a text are counted as plain text."""

    def __hash__(self) -> int:
        """Return a hash by identity."""

    @property
    def name(self) -> str:
        """How the tokenizer is named in settings: `tiktoken:o200k_base`, `hf:REPO`, `file:PATH`."""

    @property
    def label(self) -> str:
        """The key in `token_counts`."""

    @property
    def digest(self) -> str:
        """The hash of all that counts depend on: vocabulary, rules, chat format."""

    @property
    def adds(self) -> bool:
        """Whether counts add up over blocks: the tokenizer always cuts after a blank line, unless `joined` says no."""

    def joined(self, block: str) -> bool:
        """Whether a token may reach across the line break before a text, so that no cut is certain there."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""

    def count_request(self, system_prompt: str, user_prompt: str) -> int:
        """Return the number of tokens of a whole request, chat format included."""


@runtime_checkable
class AddingTokenizer(Tokenizer, Protocol):
    """A tokenizer that also says how its requests are put together, so that their counts can be kept up.

    It is used so when `adds` is true. Then, for a text U that ends in a line break and a text V that is not `joined`,
    `count(U + V)` must be `count(U) + count(V)`.
    """

    @property
    def text_digest(self) -> str:
        """The hash of what counts of plain texts depend on; two chat formats do not change it."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""

    def frame(self, system_prompt: str) -> Frame:
        """Return the request around a user's message that has no white space around it.

        `count_request(system_prompt, user_prompt)` is `others + count(before + user_prompt + after)`.
        """


def request_counts(tokenizers: Sequence[Tokenizer], system_prompt: str, user_prompt: str) -> dict[str, int]:
    """Return the length of a request under each tokenizer, by label."""
    return {tokenizer.label: tokenizer.count_request(system_prompt, user_prompt) for tokenizer in tokenizers}
