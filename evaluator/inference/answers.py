"""What has come of one answer, and what that means: an answer, or a failure of some kind.

LiteLLM's exceptions are read by what passed on the wire rather than by their classes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gniah.evaluator.inference.failures import CONNECTION, CUT_SHORT, INVALID, KEY, OUR_OWN, Failure, by_status

if TYPE_CHECKING:
    from gniah.evaluator.inference.transport import Outgoing

# Providers that LiteLLM asks through its own HTTP handler, not through the client of OpenAI.
BY_HANDLER = frozenset(
    (
        "anthropic",
        "azure_ai",
        "deepseek",
        "fireworks_ai",
        "gemini",
        "groq",
        "hosted_vllm",
        "mistral",
        "ollama",
        "ollama_chat",
        "openrouter",
        "together_ai",
        "vertex_ai",
        "xai",
    )
)
# Words for an end that is the model's own.
ENDS = frozenset(
    {"", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed", "end", "stop_token"}
)
# A connection that breaks so soon broke before the request was read.
_SOON = 5.0


class Gathered:
    """What has come of an answer so far."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] = {}
        self.first_at: float | None = None

    def chunk(self, chunk: Any) -> None:
        """Take a piece of a stream."""
        choices = getattr(chunk, "choices", None)
        if choices:
            self._part(getattr(choices[0], "delta", None))
            self.finish_reason = getattr(choices[0], "finish_reason", None) or self.finish_reason
        self._count(chunk)

    def whole(self, response: Any) -> None:
        """Take an answer that came in one piece."""
        choices = getattr(response, "choices", None)
        if choices:
            self._part(getattr(choices[0], "message", None))
            self.finish_reason = getattr(choices[0], "finish_reason", None)
        self._count(response)

    def _part(self, part: Any) -> None:
        for name, place in (("content", self.text), ("reasoning_content", self.reasoning), ("refusal", self.refusal)):
            found = getattr(part, name, None)
            if isinstance(found, str) and found:
                place.append(found)
                self.first_at = self.first_at or time.monotonic()

    def _count(self, response: Any) -> None:
        usage = getattr(response, "usage", None)
        if usage is not None:
            found = usage.model_dump(exclude_none=True) if hasattr(usage, "model_dump") else usage
            if isinstance(found, dict):
                self.usage = found


def usage_of(exchange: Any, gathered: Gathered) -> dict[str, Any]:
    """Return the provider's own token counts, none when it gave none: LiteLLM makes up what is missing.

    Those in OpenAI's shape are kept as they came; others are kept as LiteLLM translates them.
    """
    if exchange.sent_at is None or not exchange.readable:
        return gathered.usage if gathered.usage.get("prompt_tokens") else {}
    if not exchange.usage:
        return {}
    return exchange.usage if "prompt_tokens" in exchange.usage else gathered.usage


def check_answer(exchange: Any, gathered: Gathered, outgoing: Outgoing) -> None:
    """Raise Failure when what LiteLLM takes for an answer is none."""
    if exchange.error is not None:
        raise _told(exchange, gathered, outgoing)
    watched = exchange.sent_at is not None and exchange.readable
    if watched and not exchange.events:
        raise Failure(INVALID, f"an answer that is none: {exchange.message or 'an empty body'}")
    native = str(exchange.served.get("finish_reason", "")).casefold()
    if native in ("error", "malformed_response"):
        raise Failure(CUT_SHORT, f"the provider ended the answer with {native}")
    if gathered.finish_reason is None or (watched and not native):
        raise Failure(CUT_SHORT, "the answer ended without an end reason")


def end_of(exchange: Any, gathered: Gathered) -> str | None:
    """Return LiteLLM's word for the end, but the provider's own where LiteLLM does not know it and says `stop`."""
    if gathered.refusal and not "".join(gathered.text).strip():
        return "refusal"
    native = str(exchange.served.get("finish_reason", "")).casefold()
    if gathered.finish_reason == "stop" and native not in ENDS:
        return native
    return gathered.finish_reason


def failure_of(exchange: Any, error: Exception, outgoing: Outgoing, gathered: Gathered, seconds: float) -> Failure:
    """Return what an exception of LiteLLM means, by what passed on the wire rather than by its class."""
    words = f"{type(error).__name__}: {error}"
    if exchange.sent_at is None:
        return _unsent(error, words, outgoing)
    if exchange.status is None:
        return Failure(CONNECTION if seconds < _SOON or _unconnected(error) else CUT_SHORT, words)
    if exchange.error is not None or exchange.status >= 400:
        return _told(exchange, gathered, outgoing)
    if gathered.first_at is not None:
        return Failure(CUT_SHORT, words)
    return Failure(INVALID if exchange.received else CUT_SHORT, f"{words}; received: {exchange.message}")


def _told(exchange: Any, gathered: Gathered, outgoing: Outgoing) -> Failure:
    """Return what an error that the provider sent means. Within an answer it is one that broke off."""
    if gathered.first_at is not None:
        return Failure(CUT_SHORT, f"the answer broke off: {exchange.message}")
    status = exchange.error_status or 500
    if status < 400:
        status = 500
    return by_status(status, exchange.message, exchange.headers, tier=outgoing.tier)


def _unsent(error: Exception, words: str, outgoing: Outgoing) -> Failure:
    """Return what an exception before anything was seen on the wire means."""
    if _unconnected(error):
        return Failure(CONNECTION, words)
    status = getattr(error, "status_code", None)
    name = type(error).__name__
    if name == "AuthenticationError" or "api_key" in words or "API key" in words:
        return Failure(KEY, words)
    provider = outgoing.model.partition("/")[0]
    seen = provider in BY_HANDLER or provider == "openai"
    if seen or not isinstance(status, int) or name in ("UnsupportedParamsError", "BadRequestError"):
        return Failure(OUR_OWN, words)
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None) or {}
    return by_status(status, words, dict(headers), tier=outgoing.tier)


def _chain(error: BaseException) -> Sequence[BaseException]:
    found: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in found:
        found.append(one)
        one = one.__cause__ or one.__context__
    return found


def failure_within(error: BaseException) -> Failure | None:
    """Return the failure of ours that an exception was made of, if there is one."""
    return next((one for one in _chain(error) if isinstance(one, Failure)), None)


def _unconnected(error: BaseException) -> bool:
    names = {type(one).__name__ for one in _chain(error)}
    return bool(names & {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "gaierror", "ProxyError"})
