"""A model that is asked over a network: its file with what a user changed, and how its requests look."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gniah.evaluator.inference.model_files import ModelFile
from gniah.evaluator.inference.prices import cost, read_usage, reserve
from gniah.evaluator.inference.transport import Outgoing
from gniah.records.canonical import digest
from gniah.records.errors import UsageFault
from gniah.records.examples import Example
from gniah.records.responses import request_key, settled
from gniah.records.streams import Stream

# 31 bits, since some providers take no more.
_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model over a network. `seed` None sends no seeds; else each repeat gets one of its own, drawn from it."""

    file: ModelFile
    seed: int | None = None

    @property
    def name(self) -> str:
        """Return the model's name, as responses and paths carry it."""
        return self.file.name

    @property
    def label(self) -> str:
        """Return a name for people: with the effort, where there is one."""
        effort = self.file.reasoning_effort
        return self.name if effort is None else f"{self.name} ({effort})"

    @property
    def base_address(self) -> str | None:
        """Return where requests go; None stands for the provider's own address."""
        return self.file.base_address

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return all that can change an answer, as a request's key has it.

        How a request travels is no part of it: the service tier, whether the answer is streamed or collected from a
        batch, cache marks, limits. An answer is the same whatever way it came, and is not paid for again because of it.
        """
        found: dict[str, Any] = {"model": self.file.litellm, **self.file.parameters}
        if self.file.extra_body:
            found["extra_body"] = dict(self.file.extra_body)
        if self.seed is not None:
            found["seeds"] = self.seed
        return found

    @property
    def claim(self) -> str:
        """Return what only one process may ask at a time in one run folder."""
        return digest([self.name, self.base_address, settled(self.parameters)])[:16]

    def request_key(self, prompts: str, repeat: int) -> str:
        """Return the key of a request; `prompts` is the hash of both."""
        return request_key(self.name, self.base_address, self.parameters, prompts, repeat)

    def outgoing(self, example: Example, repeat: int, *, shared_prefix: bool) -> Outgoing:
        """Return a request, as it is sent. `shared_prefix` tells that its prompt is sent more than once."""
        fields = dict(self.file.parameters)
        if self.file.extra_body:
            fields["extra_body"] = dict(self.file.extra_body)
        if self.seed is not None:
            fields["seed"] = seed_of(self.seed, repeat)
        return Outgoing(
            model=self.file.litellm,
            system_prompt=example.system_prompt,
            user_prompt=example.user_prompt,
            fields=fields,
            base_address=self.base_address,
            key=self.key,
            stream=self.file.stream,
            cache_markers=self.file.cache_markers and shared_prefix,
        )

    @property
    def key(self) -> str | None:
        """Return the API key, or None where LiteLLM looks for it. Raises UsageFault when its variable is not set."""
        if self.file.key_variable is None:
            return None
        found = os.environ.get(self.file.key_variable, "").strip()
        if not found:
            raise UsageFault(
                f"{self.name}: the environment variable {self.file.key_variable} is not set",
                remedy=f"export {self.file.key_variable}=… with your key for this model",
            )
        return found

    def cost(self, usage: Mapping[str, Any], tier: str | None) -> Decimal | None:
        """Return what an answer cost in US dollars, or None when that is not known."""
        return cost(self.file, read_usage(usage), tier)

    def most(self, prompt_tokens: int) -> Decimal | None:
        """Return the most that one request of so many prompt tokens can cost, or None when that is not known."""
        return reserve(self.file, prompt_tokens)


def seed_of(seed: int, repeat: int) -> int:
    """Return the seed that one repeat is asked with."""
    return Stream(digest(["gniah-request-seeds/1", str(seed)]), "repeat", repeat).below(_SEEDS)


def changed(
    file: ModelFile,
    *,
    parameters: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    **fields: Any,
) -> ModelFile:
    """Return a model's file with what a user gave on the command line; what is None stays as it is."""
    given = {name: value for name, value in fields.items() if value is not None}
    asked = {name: value for name, value in (limits or {}).items() if value is not None}
    merged = {**file.parameters, **(parameters or {})}
    kept = {name: value for name, value in merged.items() if value is not None}
    return dataclasses.replace(file, parameters=kept, limits=dataclasses.replace(file.limits, **asked), **given)
