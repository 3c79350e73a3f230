"""What was asked of a model and what came back: one line of `inference_pool.jsonl`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.files import read_json_lines
from gniah.records.manifests import check_schema

RESPONSE_SCHEMA = "gniah/response/1"


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
        return digest(
            {
                "schema": RESPONSE_SCHEMA,
                "model": self.model,
                "base_address": self.base_address,
                "parameters": _decimal(self.parameters),
                "prompt_sha256": self.prompt_sha256,
                "repeat": self.repeat,
            }
        )


def prompt_sha256(system_prompt: str, user_prompt: str) -> str:
    """Return the SHA-256 of two prompts; where one ends and the other begins is part of it."""
    return digest([hashlib.sha256(text.encode("utf-8")).hexdigest() for text in (system_prompt, user_prompt)])


def _decimal(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(name): _decimal(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_decimal(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Response:
    """What came back for one request.

    `text` is the visible answer. `finish_reason` is the provider's word ("stop", "length", "content_filter", …).
    `error` is None unless the request failed; a failed request is never kept as an answer. `usage` holds the
    provider's own token counts where it gave them.
    """

    key: str
    qid: str
    model: str
    repeat: int
    prompt_sha256: str
    text: str
    finish_reason: str | None = "stop"
    reasoning: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    base_address: str | None = None
    error: str | None = None
    seconds: float | None = None

    @property
    def complete(self) -> bool:
        """Whether this counts as done, so that the request is not sent again."""
        return self.error is None

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
            "seconds": self.seconds,
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
                seconds=value.get("seconds"),
            )
        except KeyError as error:
            raise InputError(f"{where}: a response lacks {error.args[0]}") from None
        for name in ("key", "qid", "model", "prompt_sha256", "text"):
            if not isinstance(getattr(result, name), str):
                raise InputError(f"{where}: {name} must be a string")
        if not isinstance(result.repeat, int) or isinstance(result.repeat, bool):
            raise InputError(f"{where}: repeat must be an integer")
        return result


def read_responses(path: Path) -> Iterator[Response]:
    """Yield the responses of a pool file. Raises InputError with file and line."""
    for number, value in read_json_lines(path):
        yield Response.from_json(value, f"{path}:{number}")
