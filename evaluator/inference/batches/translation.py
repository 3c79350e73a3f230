"""Requests as LiteLLM would send them live, and answers read as LiteLLM would read them, without a network.

A batch asks the same question as a live run only if its requests are made in the same place. So LiteLLM is handed each
request as ever, and what it would send is taken where the network would be. An answer goes the same way back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.failures import KEY, Failure
from gniah.evaluator.inference.transport import LiteLLMTransport, Outgoing, Reply
from gniah.records.errors import CheckFailed, UsageFault
from gniah.records.examples import Example

OPENAI, ANTHROPIC = "openai", "anthropic"
_ENDINGS = {OPENAI: "/chat/completions", ANTHROPIC: "/messages"}
# Headers of a live request that a batch's calls have too: those that say who asks and for which version.
_KEPT = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta", "openai-organization", "openai-project")
_SECRET = ("authorization", "x-api-key")
_PLACEHOLDER = "no-key-needed-here"
_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Translated:
    """One request as it would be sent: its address, its headers, its body."""

    address: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Route:
    """How a model's batch interface is reached: its shape, the address under which it stands, the headers to send."""

    shape: str
    address: str
    headers: Mapping[str, str] = dataclasses.field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what must not be shown or written."""
        found = [self.headers[name].removeprefix("Bearer ") for name in _SECRET if name in self.headers]
        return tuple(one for one in found if len(one) > 3)


class _Stage(httpx.AsyncBaseTransport):
    """Stands where the network would be: keeps what is sent, and answers what it was told to, or nothing."""

    def __init__(self) -> None:
        self._sent: Translated | None = None
        self.answer: tuple[int, bytes] | None = None

    def take(self) -> Translated | None:
        """Return what was sent since this was last called, if anything was."""
        sent, self._sent = self._sent, None
        return sent

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._sent = Translated(str(request.url), dict(request.headers), await request.aread())
        if self.answer is None:
            raise Failure("kept", "what would be sent is all that was wanted")
        status, body = self.answer
        # As a stream, so that it passes by whoever watches the wire.
        return httpx.Response(status, headers={"content-type": "application/json"}, stream=httpx.ByteStream(body))


class Translator:
    """Translates requests and answers of any models. It belongs to one event loop, and is an async context manager."""

    def __init__(self) -> None:
        self._stage = _Stage()
        self._transport = LiteLLMTransport(1, self._stage)

    async def request(self, outgoing: Outgoing) -> Translated:
        """Return what LiteLLM would send. Raises Failure when it would send nothing."""
        failed: Failure | None = None
        try:
            await self._transport.send(dataclasses.replace(outgoing, stream=False, tier=None), _SECONDS, _SECONDS)
        except Failure as failure:
            failed = failure
        sent = self._stage.take()
        if sent is None:
            raise failed or AssertionError("an answer to a request that was not sent")
        return sent

    async def reply(self, outgoing: Outgoing, status: int, body: bytes) -> Reply:
        """Return what an answer with this status and body says. Raises Failure as for a live request."""
        self._stage.answer = (status, body)
        try:
            return await self._transport.send(
                dataclasses.replace(outgoing, stream=False, tier=None), _SECONDS, _SECONDS
            )
        finally:
            self._stage.answer = None
            self._stage.take()

    async def route(self, model: AskedModel) -> Route:
        """Return how a model's batch interface is reached.

        Raises UsageFault for a model that is asked in another shape than OpenAI's chat or Anthropic's messages, and
        CheckFailed where its key is missing.
        """
        tiny = model.outgoing(blank_example(), 0, shared_prefix=False)
        try:
            # Where LiteLLM goes by ways of its own, this leaves the machine; so it has no key and no prompt.
            probe = await self.request(dataclasses.replace(tiny, key=_PLACEHOLDER))
            shape = next((name for name, ending in _ENDINGS.items() if probe.address.endswith(ending)), None)
            if shape is None:
                raise _no_batches(model, f"it is asked at {probe.address.partition('?')[0]}")
            sent = await self.request(tiny)
        except Failure as failure:
            words = failure.message.partition("\n")[0]
            if failure.kind == KEY:
                raise CheckFailed(
                    f"{model.label}: {words}", remedy="put your key into the environment variable it names"
                ) from None
            raise _no_batches(model, words) from None
        headers = {name: value for name, value in sent.headers.items() if name in _KEPT}
        return Route(shape, sent.address.removesuffix(_ENDINGS[shape]), headers)

    async def __aenter__(self) -> Translator:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()


def blank_example() -> Example:
    """Return an example that stands for any, where only the fields of a request matter."""
    return Example(
        qid="",
        task="",
        system_prompt="s",
        user_prompt="u",
        question="",
        answer="",
        question_type="",
        answer_type="",
        options=None,
        config={},
        token_counts={},
        generator_version="",
    )


def _no_batches(model: AskedModel, why: str) -> UsageFault:
    return UsageFault(
        f"{model.label}: batches are there for models that are asked in the shape of OpenAI's chat completions or of "
        f"Anthropic's messages: {why}",
        remedy="ask it with gniah-eval run, or name it as openai/NAME with --base-address",
    )
