"""What was asked of a model and what came back: one line of `inference_pool.jsonl`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.files import read_json_lines
from gniah.records.manifests import check_schema

RESPONSE_SCHEMA = "gniah/response/2"
# What a key is made of. It has a number of its own, so that answers are found again when records gain a field.
KEY_RULES = "gniah/response/1"
# Tokenizers of current models differ by about 5 % on these texts, so a count under nine tenths of the smallest of
# ours is a cut prompt and not another tokenizer.
PROMPT_CUT = Fraction(9, 10)
_MONEY = re.compile(r"[0-9]{1,12}(\.[0-9]{1,30})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model: where it goes, what is sent, and which repeat of the same question it is.

    `parameters` are the request fields beside the messages, exactly as sent; a fraction among them is a decimal
    string in the key's canonical form.
    """

    qid: str
    model: str
    system_prompt: str
    user_prompt: str
    base_address: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0

    @property
    def prompt_sha256(self) -> str:
        """Return the hash of both prompts."""
        return prompt_sha256(self.system_prompt, self.user_prompt)

    @property
    def key(self) -> str:
        """Return the name under which a complete answer to this very request is kept and found again."""
        return request_key(self.model, self.base_address, self.parameters, self.prompt_sha256, self.repeat)


def request_key(model: str, base_address: str | None, parameters: Mapping[str, Any], prompts: str, repeat: int) -> str:
    """Return the key of a request, from what its response also says of it; `prompts` is the hash of both."""
    return digest(
        {
            "schema": KEY_RULES,
            "model": model,
            "base_address": base_address,
            "parameters": settled(parameters),
            "prompt_sha256": prompts,
            "repeat": repeat,
        }
    )


def prompt_sha256(system_prompt: str, user_prompt: str) -> str:
    """Return the SHA-256 of two prompts; where one ends and the other begins is part of it."""
    return digest([hashlib.sha256(text.encode("utf-8")).hexdigest() for text in (system_prompt, user_prompt)])


def settled(value: Any) -> Any:
    """Return parameters in a form that has a digest: fractions as text."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(name): settled(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [settled(item) for item in value]
    return value


def effort_of(parameters: Mapping[str, Any]) -> str:
    """Return the reasoning effort among a request's parameters, `none` without one."""
    effort = parameters.get("reasoning_effort")
    return "none" if effort is None else str(effort)


@dataclass(frozen=True, slots=True)
class Call:
    """How an answer came over a network. Offline models have none, so that equal runs give equal bytes.

    `sent` are the request fields as they went out, messages left out; None where they could not be seen. `served` is
    what the provider said of itself: `id`, `model`, `provider`, `service_tier`, `finish_reason` in its own words.
    `tier` is the service tier that was asked for. `failed` lists earlier attempts: `kind`, `message`, `tier`,
    `seconds`, `perhaps_paid`. `at` is when the last attempt was sent, in UTC. Seconds run from there:
    `first_token_seconds` to the first piece of text or thought. `waited_seconds` went by before it, with limits,
    pauses and failed attempts. `counted_tokens` is the least of our own counts of the prompt. `cost` is in US dollars
    as a decimal string, None when a price or a count is unknown; `perhaps_cost` is the most that attempts without an
    answer, or an answer without counts, may have cost besides, None when nothing or when unknown.
    """

    at: str | None = None
    tier: str | None = None
    sent: Mapping[str, Any] | None = None
    served: Mapping[str, Any] = field(default_factory=dict)
    failed: tuple[Mapping[str, Any], ...] = ()
    first_token_seconds: float | None = None
    waited_seconds: float | None = None
    counted_tokens: int | None = None
    cost: str | None = None
    perhaps_cost: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the call as an object of the pool."""
        return {
            "at": self.at,
            "tier": self.tier,
            "sent": None if self.sent is None else dict(self.sent),
            "served": dict(self.served),
            "failed": [dict(attempt) for attempt in self.failed],
            "first_token_seconds": self.first_token_seconds,
            "waited_seconds": self.waited_seconds,
            "counted_tokens": self.counted_tokens,
            "cost": self.cost,
            "perhaps_cost": self.perhaps_cost,
        }

    @classmethod
    def from_json(cls, value: object, where: str) -> Call | None:
        """Read a call. Raises InputError."""
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise InputError(f"{where}: call must be an object")
        sent, served, failed, counted = (value.get(name) for name in ("sent", "served", "failed", "counted_tokens"))
        for name, found, kind in (("sent", sent or {}, Mapping), ("served", served or {}, Mapping)):
            if not isinstance(found, kind):
                raise InputError(f"{where}: call.{name} must be an object")
        if not isinstance(failed or [], list) or not all(isinstance(one, Mapping) for one in failed or []):
            raise InputError(f"{where}: call.failed must be a list of objects")
        for name in ("at", "tier"):
            if not isinstance(value.get(name), str | None):
                raise InputError(f"{where}: call.{name} must be a string")
        for name in ("cost", "perhaps_cost"):
            if value.get(name) is not None and not (isinstance(value[name], str) and _MONEY.fullmatch(value[name])):
                raise InputError(f"{where}: call.{name} must be a decimal number of US dollars as a string")
        if isinstance(counted, bool) or not isinstance(counted, int | None):
            raise InputError(f"{where}: call.counted_tokens must be an integer")
        return cls(
            at=value.get("at"),
            tier=value.get("tier"),
            sent=sent,
            served=served or {},
            failed=tuple(failed or ()),
            first_token_seconds=value.get("first_token_seconds"),
            waited_seconds=value.get("waited_seconds"),
            counted_tokens=counted,
            cost=value.get("cost"),
            perhaps_cost=value.get("perhaps_cost"),
        )


@dataclass(frozen=True, slots=True)
class Response:
    """What came back for one request.

    `text` is the visible answer. `finish_reason` is the provider's word ("stop", "length", "content_filter", …).
    `error` is None unless the request failed, and `error_kind` says how; a failed request is never kept as an answer.
    `usage` holds the provider's own token counts where it gave them. `seconds` is the time from sending the attempt
    that was answered to its last byte, without waits and failed attempts.
    """

    key: str
    qid: str
    model: str
    repeat: int
    prompt_sha256: str
    text: str
    finish_reason: str | None = "stop"
    reasoning: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    base_address: str | None = None
    error: str | None = None
    error_kind: str | None = None
    seconds: float | None = None
    call: Call | None = None

    @property
    def prompt_cut(self) -> bool:
        """Whether the provider counted clearly fewer prompt tokens than we did, so that it did not read them all."""
        return self.call is not None and is_cut(self.usage, self.call.counted_tokens)

    @property
    def complete(self) -> bool:
        """Whether this counts as done, so that the request is not sent again."""
        return self.error is None and not self.prompt_cut

    def to_json(self) -> dict[str, Any]:
        """Return the response as one object of the pool."""
        return {
            "schema": RESPONSE_SCHEMA,
            "key": self.key,
            "qid": self.qid,
            "model": self.model,
            "base_address": self.base_address,
            "parameters": dict(self.parameters),
            "repeat": self.repeat,
            "prompt_sha256": self.prompt_sha256,
            "text": self.text,
            "reasoning": self.reasoning,
            "finish_reason": self.finish_reason,
            "usage": dict(self.usage),
            "error": self.error,
            "error_kind": self.error_kind,
            "seconds": self.seconds,
            "call": None if self.call is None else self.call.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], where: str) -> Response:
        """Read a response; `where` names file and line in errors. Raises InputError."""
        check_schema(value.get("schema"), RESPONSE_SCHEMA, where)
        try:
            result = cls(
                key=value["key"],
                qid=value["qid"],
                model=value["model"],
                repeat=value["repeat"],
                prompt_sha256=value["prompt_sha256"],
                text=value["text"],
                finish_reason=value.get("finish_reason"),
                reasoning=value.get("reasoning"),
                usage=value.get("usage") or {},
                parameters=value.get("parameters") or {},
                base_address=value.get("base_address"),
                error=value.get("error"),
                error_kind=value.get("error_kind"),
                seconds=value.get("seconds"),
                call=Call.from_json(value.get("call"), where),
            )
        except KeyError as error:
            raise InputError(f"{where}: a response lacks {error.args[0]}") from None
        _check_types(result, where)
        return result


_STRINGS = ("key", "qid", "model", "prompt_sha256", "text")
_STRINGS_OR_NONE = ("finish_reason", "reasoning", "base_address", "error", "error_kind")


def _check_types(response: Response, where: str) -> None:
    for name in _STRINGS:
        if not isinstance(getattr(response, name), str):
            raise InputError(f"{where}: {name} must be a string")
    for name in _STRINGS_OR_NONE:
        if not isinstance(getattr(response, name), str | None):
            raise InputError(f"{where}: {name} must be a string or null")
    for name in ("usage", "parameters"):
        if not isinstance(getattr(response, name), Mapping):
            raise InputError(f"{where}: {name} must be an object")
    if not isinstance(response.repeat, int) or isinstance(response.repeat, bool):
        raise InputError(f"{where}: repeat must be an integer")
    if isinstance(response.seconds, bool) or not isinstance(response.seconds, int | float | None):
        raise InputError(f"{where}: seconds must be a number or null")


def is_cut(usage: object, sent: int | None) -> bool:
    """Whether a provider's usage says that it saw clearly fewer prompt tokens than `sent`; unknown counts say nothing.

    Only `prompt_tokens` is compared: other names leave cached tokens out.
    """
    counted = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    if not isinstance(counted, int) or not sent or counted <= 0:
        return False
    return counted * PROMPT_CUT.denominator < sent * PROMPT_CUT.numerator


def read_responses(path: Path, end: int | None = None) -> Iterator[Response]:
    """Yield the responses of a pool file, up to an offset behind a line. Raises InputError with file and line."""
    for number, value in read_json_lines(path, end):
        yield Response.from_json(value, f"{path}:{number}")
