"""The request around a context, and its length in tokens: counted whole, or kept up as blocks come in (`running`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gniah.generator.block_lengths import BLOCK_SEPARATOR
from gniah.generator.running import RunningCounts
from gniah.generator.tokenizers import AddingTokenizer, Tokenizer, request_counts


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose context is still open: the system prompt, and the user prompt before and after the context.

    `recount` says that the finished request is counted whole as well, by each tokenizer itself, however its length was
    found.
    """

    tokenizers: tuple[Tokenizer, ...]
    system_prompt: str
    head: str
    tail: str
    recount: bool = True

    def user_prompt(self, texts: Sequence[str]) -> str:
        """Return the user prompt with a context of these blocks."""
        return self.head + BLOCK_SEPARATOR.join(texts) + self.tail

    def __call__(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the length of the whole request by tokenizer label, as each tokenizer itself gives it."""
        return request_counts(self.tokenizers, self.system_prompt, self.user_prompt(texts))

    def running(self) -> RunningCounts | None:
        """Return counts that are kept up as blocks come in, or None when some tokenizer's do not add up.

        They do not either when the context does not stand between blank lines, or when there is white space around the
        user prompt, which a chat template may take away.
        """
        adding = adding_tokenizers(self.tokenizers)
        between = self.head.endswith(BLOCK_SEPARATOR) and self.tail.startswith(BLOCK_SEPARATOR)
        outer = self.head[:1].strip() and self.tail[-1:].strip()
        if adding is None or not between or not outer:
            return None
        head, tail = self.head.removesuffix(BLOCK_SEPARATOR), self.tail.removeprefix(BLOCK_SEPARATOR)
        return RunningCounts(adding, self.system_prompt, head, tail)


def adding_tokenizers(tokenizers: Sequence[Tokenizer]) -> tuple[AddingTokenizer, ...] | None:
    """Return the tokenizers when the counts of all of them add up, else None."""
    adding = tuple(one for one in tokenizers if one.adds and isinstance(one, AddingTokenizer))
    return adding if len(adding) == len(tokenizers) else None
