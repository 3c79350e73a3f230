"""Tokenizers of the tokenizers library: a `tokenizer.json` with its chat template."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gniah.generator.tokenizers.chat_templates import SYSTEM_MARK, USER_MARK, filled, read_template, split_specials
from gniah.generator.tokenizers.interface import Frame
from gniah.generator.tokenizers.joints import Joints, Unproved, find_joints
from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.files import sha256_file

_SAMPLE = ("You answer.", 'Which of "these"?\n\n\tint x = 1;\n\nÉté, 漢字 123.')
_BATCH = 1 << 20


class FileTokenizer:
    """A `tokenizer.json` of the tokenizers library, with its chat template.

    `chat_template` is the path of a template, "none" for requests that count as their two texts, or None for the one
    beside the file; see `chat_templates.read_template`. The template is rendered with the generation prompt, in Jinja's
    immutable sandbox. A truncation or padding that the file asks for is switched off. `unproved` says why counts are
    not known to add up, when they are not. Raises InputError for a file or template that cannot be used, UsageFault
    when there is no template.
    """

    def __init__(self, path: Path, label: str, chat_template: str | None = None, name: str | None = None) -> None:
        self.name = f"file:{path.name}" if name is None else name
        self.label = label
        self._path = path
        self._tokenizer = _loaded(path)
        self._template = read_template(path, chat_template)
        decoder = self._tokenizer.get_added_tokens_decoder().values()
        self._specials = [(one.content, one.lstrip, one.rstrip) for one in decoder if one.special]
        self._joints, self.unproved = _proof(path)
        self.adds = self._joints is not None
        file = sha256_file(path)
        self.text_digest = digest({"tokenizer": file})
        self.digest = digest(
            {
                "tokenizer": file,
                "chat": self._template.source,
                "special": dict(sorted(self._template.special.items())),
            }
        )
        self._frame = lru_cache(maxsize=64)(self._framed)
        self._check_format()

    def joined(self, block: str) -> bool:
        """Whether a token may reach across the line break before a text."""
        return self._joints is None or self._joints.joined(block)

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0])

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, about a megabyte at a time."""
        counts: list[int] = []
        batch: list[str] = []
        size = 0
        for text in texts:
            batch.append(text)
            size += len(text)
            if size >= _BATCH:
                counts += map(len, self._tokenizer.encode_batch_fast(batch, add_special_tokens=False))
                batch, size = [], 0
        if batch:
            counts += map(len, self._tokenizer.encode_batch_fast(batch, add_special_tokens=False))
        return counts

    def frame(self, system_prompt: str) -> Frame:
        """Return the request around a user's message that has no white space around it."""
        return self._frame(system_prompt)

    def count_request(self, system_prompt: str, user_prompt: str) -> int:
        """Return the tokens of the chat-formatted request.

        The template's special tokens are one token each; the text between two of them is encoded as a whole, with
        the messages that stand in it, as the library does with the rendered request. Raises InputError when the
        template does more with a message than to show it.
        """
        if self._template.source is None:
            return self.count(system_prompt) + self.count(user_prompt)
        self._template.check(system_prompt, user_prompt)
        messages = {SYSTEM_MARK: system_prompt.strip(), USER_MARK: user_prompt.strip()}
        pieces = self._pieces(system_prompt, user_prompt)
        return sum(1 if piece is None else self.count(filled(piece, messages)) for piece in pieces)

    def _pieces(self, system_prompt: str, user_prompt: str) -> list[str | None]:
        """Return the rendered template in pieces, marks in place of the messages."""
        before, between, after = self._template.around(system_prompt, user_prompt)
        return split_specials(before + SYSTEM_MARK + between + USER_MARK + after, self._specials)

    def _framed(self, system_prompt: str) -> Frame:
        if self._template.source is None:
            return Frame("", "", self.count(system_prompt))
        messages = {SYSTEM_MARK: system_prompt.strip()}
        others, before, after = 0, "", ""
        for piece in self._pieces(system_prompt, "?"):
            text = None if piece is None else filled(piece, messages)
            if text is None:
                others += 1
            elif USER_MARK in text:
                before, _, after = text.partition(USER_MARK)
            else:
                others += self.count(text)
        return Frame(before, after, others)

    def _check_format(self) -> None:
        """Raise InputError unless a request is counted as the library itself counts the rendered one."""
        if self._template.source is None:
            return
        ours = self.count_request(*_SAMPLE)
        self._tokenizer.encode_special_tokens = False
        theirs = len(self._tokenizer.encode(self._template.rendered(*_SAMPLE), add_special_tokens=False))
        self._tokenizer.encode_special_tokens = True
        if ours != theirs:
            raise InputError(
                f"{self._path}: a request has {theirs} tokens as a whole and {ours} by its parts, "
                "so requests cannot be counted exactly",
                remedy="give a chat template whose special tokens stand alone, or --chat-template none",
            )


def _loaded(path: Path) -> Any:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise InputError(f"{path}: no such tokenizer file", remedy="give file:PATH of a tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001  (the library raises a bare Exception for any bad file)
        raise InputError(f"{path}: not a tokenizer file: {error}") from None
    if getattr(tokenizer.model, "dropout", None):
        raise InputError(f"{path}: drops merges at random, so it has no count", remedy="set its dropout to null")
    # Otherwise a text that spells a special token would be read as that token.
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _proof(path: Path) -> tuple[Joints | None, str]:
    import orjson

    try:
        return find_joints(orjson.loads(path.read_bytes())), ""
    except Unproved as error:
        return None, str(error)
