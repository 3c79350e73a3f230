"""Chat templates: how a system and a user message become the text that a model reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from gniah.records.errors import InputError, UsageFault
from gniah.records.files import machine_trouble, read_json

NO_TEMPLATE = "none"

# Stand for the messages while a template is rendered; private-use characters, which no template has.
SYSTEM_MARK = "\ue000gniah-system\ue000"
USER_MARK = "\ue000gniah-user\ue000"
_MARKS = re.compile(f"{SYSTEM_MARK}|{USER_MARK}")
_REMEDY = "give another template with --chat-template PATH, or count requests as their two texts with none"


@dataclass(frozen=True)
class ChatTemplate:
    """A template in Jinja, or None where a request is its two texts, and the special tokens that it may name.

    `where` names it in errors.
    """

    source: str | None
    special: Mapping[str, str]
    where: str

    def rendered(self, system_prompt: str, user_prompt: str) -> str:
        """Return a request as the template has it, with the generation prompt. Raises InputError when it fails."""
        from jinja2 import TemplateError

        messages = [{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}]
        try:
            template = _compiled(self.source or "")
            return str(template.render(messages=messages, add_generation_prompt=True, **self.special))
        except (TemplateError, TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
            raise InputError(f"{self.where}: the chat template cannot be rendered: {error}", remedy=_REMEDY) from None

    def around(self, system_prompt: str, user_prompt: str) -> tuple[str, str, str]:
        """Return the text before the system message, between the messages, and after the user's.

        What a template does to the white space around a message is done to the marks as well. Raises InputError for a
        template that does not show each message once, in order, and otherwise as it is.
        """
        rendered = self.rendered(_marked(system_prompt, SYSTEM_MARK), _marked(user_prompt, USER_MARK))
        if _MARKS.findall(rendered) != [SYSTEM_MARK, USER_MARK]:
            raise InputError(
                f"{self.where}: the chat template does not show a system and a user message once each, in this order",
                remedy=_REMEDY,
            )
        before, between, after = _MARKS.split(rendered)
        return before, between, after

    def check(self, system_prompt: str, user_prompt: str) -> None:
        """Raise InputError unless the template shows these very messages as they are, but for space around them."""
        before, between, after = self.around(system_prompt, user_prompt)
        whole = before + system_prompt.strip() + between + user_prompt.strip() + after
        if self.rendered(system_prompt, user_prompt) != whole:
            raise InputError(f"{self.where}: the chat template changes the text of a message", remedy=_REMEDY)


def read_template(tokenizer: Path, given: str | None = None) -> ChatTemplate:
    """Return the chat template of a `tokenizer.json`.

    `given` is the path of one, or "none"; without it the template is looked for in `chat_template.jinja` and in
    `tokenizer_config.json` beside the file. Raises UsageFault when there is none anywhere: a request would be counted
    without the tokens of its format.
    """
    special, found = _config(tokenizer.with_name("tokenizer_config.json"))
    file = Path(given) if given not in (None, NO_TEMPLATE) else tokenizer.with_name("chat_template.jinja")
    if given == NO_TEMPLATE:
        return ChatTemplate(None, special, str(tokenizer))
    if given is not None and not file.is_file():
        raise InputError(f"{file}: no such chat template", remedy="give the path of a template, or none")
    if file.is_file():
        with machine_trouble(file):
            raw = file.read_bytes()
        try:
            found = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8: {error}") from None
    if found is None:
        raise UsageFault(
            f"{tokenizer}: has no chat template, so the length of a request is not known",
            remedy="add --chat-template [LABEL=]PATH, or --chat-template [LABEL=]none to count its two texts only",
        )
    return ChatTemplate(found, special, str(file if file.is_file() else tokenizer.parent))


def _config(path: Path) -> tuple[dict[str, str], str | None]:
    """Return the special tokens and the chat template of a `tokenizer_config.json`."""
    special: dict[str, str] = {}
    if not path.is_file():
        return special, None
    value = read_json(path)
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        token = value.get(name)
        if isinstance(token, Mapping):
            token = token.get("content")
        if isinstance(token, str):
            special[name] = token
    return special, _template_of(value.get("chat_template"), path)


def _template_of(value: object, config: Path) -> str | None:
    """Return the template of a `tokenizer_config.json`: a text, or of several named ones the default."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        if isinstance(named.get("default"), str):
            return str(named["default"])
    raise InputError(f"{config}: chat_template is neither a text nor a list with a default one")


def filled(piece: str, messages: Mapping[str, str]) -> str:
    """Return a piece with messages in place of their marks, in one pass: a message may spell a mark."""
    return _MARKS.sub(lambda match: messages.get(match[0], match[0]), piece)


def _marked(message: str, mark: str) -> str:
    core = message.strip()
    begin = message.find(core)
    return message[:begin] + mark + message[begin + len(core) :]


@lru_cache(maxsize=16)
def _compiled(source: str) -> Any:
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, autoescape=False, extensions=[loopcontrols]
    )
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _no_clock
    environment.filters["tojson"] = _to_json
    return environment.from_string(source)


def _raise(message: str) -> NoReturn:
    raise ValueError(message)


def _no_clock(form: str) -> NoReturn:
    raise ValueError(f"it asks for the time of day ({form}), so its length would change")


def _to_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def split_specials(text: str, tokens: Sequence[tuple[str, bool, bool]]) -> list[str | None]:
    """Return a text in pieces: None for a special token, else the text between two of them.

    A token is (content, whether it takes the white space before it, whether that after it). The longest one that
    stands at a place is taken.
    """
    if not tokens:
        return [text] if text else []
    strips = {content: (left, right) for content, left, right in tokens}
    ordered = sorted(strips, key=lambda content: (-len(content), content))
    parts = re.split("(" + "|".join(map(re.escape, ordered)) + ")", text)
    for number in range(1, len(parts), 2):
        left, right = strips[parts[number]]
        parts[number - 1] = parts[number - 1].rstrip() if left else parts[number - 1]
        parts[number + 1] = parts[number + 1].lstrip() if right else parts[number + 1]
    return [None if number % 2 else part for number, part in enumerate(parts) if part]
