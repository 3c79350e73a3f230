"""One request to a provider, sent by LiteLLM, and its answer or its failure, told truly.

LiteLLM is transport only: no cache, no retries, no dropping of parameters, no price map from the network, no `.env` of
the working folder. Its import takes seconds, so it happens when the first model is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import time
import warnings
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gniah.evaluator.inference.answers import (
    BY_HANDLER,
    ENDS,
    Gathered,
    check_answer,
    end_of,
    failure_of,
    failure_within,
    usage_of,
)
from gniah.evaluator.inference.failures import CONNECTION, STALLED, TIME_LIMIT, Failure
from gniah.evaluator.judging import REFUSED as REFUSED_WORDS
from gniah.records.errors import MissingDependency

if TYPE_CHECKING:
    import httpx

NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request as it is handed to LiteLLM: its name of the model, both prompts, and all further fields."""

    model: str
    system_prompt: str
    user_prompt: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    base_address: str | None = None
    key: str | None = None
    tier: str | None = None
    stream: bool = True
    cache_markers: bool = False

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages; with cache markers the end of the prompt is marked, in Anthropic's form."""
        content: Any = self.user_prompt
        if self.cache_markers:
            content = [{"type": "text", "text": self.user_prompt, "cache_control": {"type": "ephemeral"}}]
        system = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        return [*system, {"role": "user", "content": content}]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. Fields are those of `gniah.records.responses.Response` and `Call`."""

    text: str
    reasoning: str | None
    finish_reason: str | None
    usage: Mapping[str, Any]
    served: Mapping[str, Any]
    sent: Mapping[str, Any] | None
    at: str
    seconds: float
    first_token_seconds: float | None

    @property
    def blank(self) -> bool:
        """Whether it is an end without text, thought or tokens, as a provider in trouble sends it."""
        tokens = self.usage.get("completion_tokens")
        nothing = not self.text.strip() and not (self.reasoning or "").strip() and not tokens
        return nothing and (self.finish_reason or "").casefold() in ENDS


class Transport(Protocol):
    """What sends requests."""

    async def send(self, outgoing: Outgoing, time_limit: float, idle_limit: float) -> Reply:
        """Return the answer to a request. Raises Failure when there is none."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def load_litellm() -> Any:
    """Import LiteLLM, quiet and kept from the network. Raises MissingDependency without it."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    # It warns of its own types, each time it meets a provider for the first time.
    warnings.filterwarnings("ignore", module=r"(pydantic|litellm)(\.|$)")
    # What is given up while LiteLLM puts a request together leaves a coroutine of its own behind.
    warnings.filterwarnings("ignore", message=r"coroutine '[A-Z]\w+\.a\w+' was never awaited", category=RuntimeWarning)
    try:
        import litellm
    except ImportError as error:
        raise MissingDependency(
            f"asking models needs LiteLLM: {error}", remedy="pip install 'gniah[models]'"
        ) from error
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    litellm.modify_params = False
    litellm.num_retries = 0
    litellm.cache = None
    # Counting a million tokens in the event loop stops everything for half a second, and nobody reads the log.
    litellm.disable_token_counter = True
    litellm.disable_streaming_logging = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


class LiteLLMTransport:
    """Sends by LiteLLM. It belongs to one event loop, and holds at most `connections` connections.

    Where a `network` is given, all that LiteLLM sends goes there.
    """

    def __init__(self, connections: int = 100, network: httpx.AsyncBaseTransport | None = None) -> None:
        self._litellm = load_litellm()
        import httpx
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        from gniah.evaluator.inference.wire import WatchedTransport, watch

        self._watch = watch
        self._http = WatchedTransport(connections, network)
        self._litellm.aclient_session = httpx.AsyncClient(transport=self._http, timeout=None)  # noqa: S113
        self._handler = AsyncHTTPHandler(transport=self._http)
        self._translated: dict[str, frozenset[str]] = {}

    async def send(self, outgoing: Outgoing, time_limit: float, idle_limit: float) -> Reply:
        """Return the answer to a request. Raises Failure when there is none; the key is not in its message."""
        exchange = self._watch()
        gathered = Gathered()
        at, begun = datetime.datetime.now(datetime.UTC), time.monotonic()
        try:
            async with asyncio.timeout(time_limit) as limit, asyncio.timeout(None) as idle:
                await self._gather(outgoing, time_limit, idle_limit, gathered, idle)
        except TimeoutError as error:
            if limit.expired():
                raise Failure(TIME_LIMIT, f"no whole answer within {time_limit:g} s") from error
            if idle.expired():
                raise Failure(STALLED, f"the stream gave nothing for {idle_limit:g} s") from error
            raise Failure(CONNECTION, "a time limit of the library was reached") from error
        except Failure:
            raise
        except Exception as error:  # LiteLLM raises whatever its parts raise
            cause = failure_within(error)
            if cause is not None:
                raise cause from error
            native = str(exchange.served.get("finish_reason", "")).casefold()
            if native not in REFUSED_WORDS:
                raise failure_of(exchange, error, outgoing, gathered, time.monotonic() - begun) from error
            gathered.finish_reason = native
        seconds = time.monotonic() - (exchange.sent_at or begun)
        check_answer(exchange, gathered, outgoing)
        first = gathered.first_at if outgoing.stream else None
        return Reply(
            text="".join(gathered.text),
            reasoning="".join(gathered.reasoning) or None,
            finish_reason=end_of(exchange, gathered),
            usage=usage_of(exchange, gathered),
            served=dict(exchange.served),
            sent=exchange.sent,
            at=at.isoformat(timespec="milliseconds"),
            seconds=round(seconds, 3),
            first_token_seconds=None if first is None else round(first - (exchange.sent_at or begun), 3),
        )

    async def _gather(
        self, outgoing: Outgoing, time_limit: float, idle_limit: float, gathered: Gathered, idle: asyncio.Timeout
    ) -> None:
        provider = outgoing.model.partition("/")[0]
        more: dict[str, Any] = {"client": self._handler} if provider in BY_HANDLER else {}
        if outgoing.stream:
            more["stream_options"] = {"include_usage": True}
        if outgoing.tier is not None:
            more["service_tier"] = outgoing.tier
        # With an address of the user's own, no key of another provider may leave the machine.
        key = outgoing.key or (NO_KEY if outgoing.base_address is not None else None)
        response = await self._litellm.acompletion(
            model=outgoing.model,
            messages=outgoing.messages(),
            stream=outgoing.stream,
            api_base=outgoing.base_address,
            api_key=key,
            timeout=time_limit + 60,
            max_retries=0,
            num_retries=0,
            drop_params=False,
            allowed_openai_params=self._untranslated(outgoing.model, [*outgoing.fields, "service_tier"]),
            **outgoing.fields,
            **more,
        )
        if not outgoing.stream:
            gathered.whole(response)
            return
        clock = asyncio.get_running_loop().time
        async with contextlib.aclosing(_closing(response)) as chunks:
            async for chunk in chunks:
                gathered.chunk(chunk)
                idle.reschedule(clock() + idle_limit)

    def _untranslated(self, model: str, names: Sequence[str]) -> list[str]:
        """Return the fields that LiteLLM has no translation of for a model, so that it sends them as they are.

        Without that it refuses them; with it, it sends what it does translate twice, in its own form and raw.
        """
        if model not in self._translated:
            provider, _, name = model.partition("/")
            try:
                known = self._litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)
            except Exception:  # noqa: BLE001  (a provider that it does not know: it says so when it is asked)
                known = None
            self._translated[model] = frozenset(known or ())
        return [name for name in names if name not in self._translated[model]]

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


async def _closing(response: Any) -> AsyncGenerator[Any, None]:
    """Yield the chunks of a stream, and close what is under it when they are not read to the end."""
    try:
        async for chunk in response:
            yield chunk
    finally:
        for one in (response, getattr(response, "completion_stream", None)):
            close = getattr(one, "aclose", None) or getattr(one, "close", None)
            if close is not None:
                with contextlib.suppress(Exception):
                    result = close()
                    if hasattr(result, "__await__"):
                        await result
