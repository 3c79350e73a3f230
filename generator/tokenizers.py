"""Tokenizers: counting text exactly, as the named tokenizer itself does."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from gniah.records.canonical import digest
from gniah.records.errors import GniahError, InputError, MissingDependency, UsageFault
from gniah.records.files import machine_trouble, read_json, sha256_file, whole_file

# tiktoken keeps a file under the SHA-1 of its address and checks the SHA-256 of what it finds there.
_RANK_FILES = {
    "o200k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "o200k.vocab",
    ),
}
# The hash of the pattern by which o200k_base cuts a text into pieces; `TiktokenTokenizer.joined` was proved for it.
_O200K_PATTERN = "2d1b8dc11e89af71459b36004f698ab3693f59fd84f63e8ec2b49564ab857420"
_TOKENS_PER_MESSAGE = 3
_TOKENS_PER_PROMPT = 3
# Stand for the messages while a chat template is rendered; private-use characters, which no template has.
_SYSTEM_MARK = "\ue000gniah-system\ue000"
_USER_MARK = "\ue000gniah-user\ue000"
_MARKS = re.compile(f"{_SYSTEM_MARK}|{_USER_MARK}")


class Tokenizer(Protocol):
    """What a tokenizer must give. Special tokens that stand in a text are counted as plain text."""

    def __hash__(self) -> int:
        """Return a hash by identity: counts are remembered for each tokenizer object."""

    @property
    def name(self) -> str:
        """How the tokenizer is named in settings: `tiktoken:o200k_base`, `file:PATH`."""

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
        """Whether a token may reach across the blank line before a block, so that no cut is certain there."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""

    def count_request(self, system_prompt: str, user_prompt: str) -> int:
        """Return the number of tokens of a whole request, chat format included."""


class TiktokenTokenizer:
    """An encoding of tiktoken, with 3 tokens a message and 3 a prompt for the chat format (GraphNIAH A.2.4)."""

    def __init__(self, encoding_name: str, label: str) -> None:
        self.name = f"tiktoken:{encoding_name}"
        self.label = label
        self._encoding = _tiktoken_encoding(encoding_name)
        pattern = hashlib.sha256(str(getattr(self._encoding, "_pat_str", "")).encode()).hexdigest()
        self.adds = pattern == _O200K_PATTERN
        known = _RANK_FILES.get(encoding_name)
        self.digest = digest(
            {
                "tokenizer": self.name,
                "ranks": known[1] if known else self._encoding.n_vocab,
                "chat": {"per_message": _TOKENS_PER_MESSAGE, "per_prompt": _TOKENS_PER_PROMPT},
            }
        )

    def joined(self, block: str) -> bool:
        """Whether a piece of the pattern may reach across the blank line before a block.

        A piece holds a line break only at its end, or as white space up to the last line break in a row, or after
        punctuation, where slashes may follow it. So it reaches into a block that begins with a slash, or with white
        space that itself holds a line break.
        """
        space = block[: len(block) - len(block.lstrip())]
        return block.startswith("/") or "\n" in space or "\r" in space

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._encoding.encode_ordinary(text))

    def count_request(self, system_prompt: str, user_prompt: str) -> int:
        """Return the tokens of both messages and of the chat format around them."""
        return self.count(system_prompt) + self.count(user_prompt) + 2 * _TOKENS_PER_MESSAGE + _TOKENS_PER_PROMPT


class FileTokenizer:
    """A `tokenizer.json` of the tokenizers library, with its chat template when it has one.

    The template is looked for in `chat_template.jinja` and in `tokenizer_config.json` beside the file. It is
    rendered with the generation prompt, in Jinja's immutable sandbox. Without one a request counts as its two texts.
    """

    def __init__(self, path: Path, label: str) -> None:
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        self.name = f"file:{path.name}"
        self.label = label
        if not path.is_file():
            raise InputError(f"{path}: no such tokenizer file", remedy="give file:PATH of a tokenizer.json")
        try:
            self._tokenizer: Any = HuggingFaceTokenizer.from_file(str(path))
        except Exception as error:  # noqa: BLE001  (the library raises a bare Exception for any bad file)
            raise InputError(f"{path}: not a tokenizer file: {error}") from None
        # Otherwise a text that spells a special token would be read as that token.
        self._tokenizer.encode_special_tokens = True
        template, special = _chat_template(path.parent)
        self._pieces = None if template is None else self._rendered(template, special, path)
        # Where a tokenizer of this library cuts is known only for one whose rules were looked at; none was yet.
        self.adds = False
        self.digest = digest(
            {"tokenizer": sha256_file(path), "chat": template, "special": dict(sorted(special.items()))}
        )

    def joined(self, block: str) -> bool:
        """Return True: nothing is known of where counts could be cut."""
        return True

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def count_request(self, system_prompt: str, user_prompt: str) -> int:
        """Return the tokens of the chat-formatted request.

        The template's special tokens are one token each; the text between two of them is encoded as a whole, with
        the messages that stand in it, as the library does with the rendered request.
        """
        if self._pieces is None:
            return self.count(system_prompt) + self.count(user_prompt)
        messages = {_SYSTEM_MARK: system_prompt, _USER_MARK: user_prompt}
        total = 0
        for piece in self._pieces:
            if piece is None:
                total += 1
            else:
                total += self.count(_MARKS.sub(lambda match: messages[match[0]], piece))
        return total

    def _rendered(self, template: str, special: Mapping[str, str], path: Path) -> tuple[str | None, ...]:
        """Return the rendered template in pieces: None for a special token, else the text between two of them.

        Marks stand for the messages. Raises InputError for a template that does not show each of them once, as it is.
        """
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
        messages = [{"role": "system", "content": _SYSTEM_MARK}, {"role": "user", "content": _USER_MARK}]
        try:
            rendered = environment.from_string(template).render(
                messages=messages, add_generation_prompt=True, **special
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise InputError(f"{path.parent}: the chat template cannot be rendered: {error}") from None
        if _MARKS.findall(rendered) != [_SYSTEM_MARK, _USER_MARK]:
            raise InputError(
                f"{path.parent}: the chat template does not show a system and a user message once each, in this order",
                remedy="give another chat_template.jinja beside the tokenizer file",
            )
        decoder = self._tokenizer.get_added_tokens_decoder().values()
        tokens = sorted((token.content for token in decoder if token.special), key=len, reverse=True)
        if not tokens:
            return (rendered,)
        parts = re.split("(" + "|".join(map(re.escape, tokens)) + ")", rendered)
        return tuple(None if number % 2 else part for number, part in enumerate(parts) if part)


def load_tokenizers(names: Sequence[str | Tokenizer]) -> tuple[Tokenizer, ...]:
    """Return the tokenizers of settings like `tiktoken:o200k_base` or `LABEL=file:PATH`, sorted by label.

    A tokenizer of your own may stand among the names. Raises UsageFault for a name that is not understood or a label
    given twice.
    """
    loaded = (_load(name) if isinstance(name, str) else name for name in names)
    found = sorted(loaded, key=lambda tokenizer: tokenizer.label)
    labels = [tokenizer.label for tokenizer in found]
    if not found:
        raise UsageFault("at least one tokenizer is needed", remedy="add --tokenizer tiktoken:o200k_base")
    for label in labels:
        if labels.count(label) > 1:
            raise UsageFault(f"two tokenizers have the label {label!r}", remedy="name them as LABEL=NAME")
    return tuple(found)


def _load(text: str) -> Tokenizer:
    match = re.fullmatch(r"(?:([\w.-]+)=)?(tiktoken|file):(.+)", text)
    if match is None:
        raise UsageFault(
            f"{text!r} does not name a tokenizer", remedy="use tiktoken:o200k_base or LABEL=file:PATH/tokenizer.json"
        )
    label, kind, rest = match[1], match[2], match[3]
    if kind == "tiktoken":
        return TiktokenTokenizer(rest, label or rest)
    return FileTokenizer(Path(rest), label or Path(rest).parent.name or "file")


def request_counts(tokenizers: Sequence[Tokenizer], system_prompt: str, user_prompt: str) -> dict[str, int]:
    """Return the length of a request under each tokenizer, by label."""
    return {tokenizer.label: tokenizer.count_request(system_prompt, user_prompt) for tokenizer in tokenizers}


def _chat_template(folder: Path) -> tuple[str | None, Mapping[str, str]]:
    special: dict[str, str] = {}
    template: str | None = None
    config = folder / "tokenizer_config.json"
    if config.is_file():
        value = read_json(config)
        template = _template_of(value.get("chat_template"), config)
        for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
            token = value.get(name)
            if isinstance(token, Mapping):
                token = token.get("content")
            if isinstance(token, str):
                special[name] = token
    file = folder / "chat_template.jinja"
    if file.is_file():
        with machine_trouble(file):
            template = file.read_text(encoding="utf-8")
    return template, special


def _template_of(value: object, config: Path) -> str | None:
    """Return the template of a `tokenizer_config.json`: a text, or of several named ones the default."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        if isinstance(named.get("default"), str):
            return str(named["default"])
    raise InputError(f"{config}: chat_template is neither a text nor a list with a default one")


@cache
def _tiktoken_encoding(name: str) -> Any:
    import tiktoken

    if name not in tiktoken.list_encoding_names():
        known = ", ".join(sorted(tiktoken.list_encoding_names()))
        raise UsageFault(f"tiktoken has no encoding {name!r}; it has {known}")
    with _ranks_at_hand(name):
        try:
            return tiktoken.get_encoding(name)
        except (OSError, ValueError) as error:
            raise MissingDependency(
                f"the ranks of {name} could not be loaded: {error}",
                remedy="pip install quicktok-v1, or set TIKTOKEN_CACHE_DIR to a folder that holds them",
            ) from None


@contextmanager
def _ranks_at_hand(name: str) -> Iterator[None]:
    """Put an encoding's ranks where tiktoken looks first, unless they are there, from a package that has them.

    tiktoken itself then checks their hash, so nothing is taken on trust. Where its cache is switched off or cannot be
    written to, a folder for this one time takes its place.
    """
    folder = _tiktoken_cache()
    if name not in _RANK_FILES or (folder is not None and _offer_ranks(name, folder)):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="gniah-ranks-") as place:
        if not _offer_ranks(name, Path(place)):
            yield
            return
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = place
        try:
            yield
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


def _offer_ranks(name: str, folder: Path) -> bool:
    """Whether a folder holds the ranks of an encoding, after they were put there if they could be."""
    address, wanted, vocabulary = _RANK_FILES[name]
    path = folder / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    if path.is_file() and sha256_file(path) == wanted:
        return True
    package = importlib.util.find_spec("quicktok")
    source = Path(package.origin).parent / "data" / vocabulary if package and package.origin else None
    if source is None or not source.is_file():
        return False
    ranks = _ranks_of(source.read_bytes())
    if hashlib.sha256(ranks).hexdigest() != wanted:
        return False
    try:
        with whole_file(path) as stream:
            stream.write(ranks)
    except GniahError:
        return False
    return True


def _tiktoken_cache() -> Path | None:
    """Return the folder where tiktoken keeps its files, by its own rules; None when it keeps none."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _ranks_of(vocabulary: bytes) -> bytes:
    """Return the lines of a `.tiktoken` file for a vocabulary of (length: u16, bytes, rank: u32) entries."""
    import base64

    (entries,) = struct.unpack_from("<I", vocabulary)
    position = 4
    lines: dict[int, bytes] = {}
    for _ in range(entries):
        (length,) = struct.unpack_from("<H", vocabulary, position)
        token = vocabulary[position + 2 : position + 2 + length]
        (rank,) = struct.unpack_from("<I", vocabulary, position + 2 + length)
        position += 6 + length
        lines[rank] = base64.b64encode(token) + b" " + str(rank).encode() + b"\n"
    return b"".join(lines[rank] for rank in sorted(lines))
