"""One request each, over real HTTP on loopback, to a provider that plays what providers do."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from inference_provider import USAGE, Act, Provider, Script, playing, slow_down

from gniah.evaluator.inference import failures, wire
from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.failures import Failure
from gniah.evaluator.inference.model_files import find_model, shipped_models
from gniah.evaluator.inference.transport import LiteLLMTransport, Outgoing, Reply

ANSWER = "Thought.\n\\answer{YES}"
FIELDS = {"temperature": 1.0, "reasoning_effort": "low", "top_k": 20, "extra_body": {"provider": {"order": ["a"]}}}


def send(
    provider: Provider,
    model: str = "openai/some-model",
    *,
    limit: float = 20,
    idle: float = 10,
    times: int = 1,
    **more: Any,
) -> list[Reply | Failure]:
    outgoing = Outgoing(
        **{
            "model": model,
            "system_prompt": "system words",
            "user_prompt": "user words",
            "fields": FIELDS,
            "base_address": provider.address,
            "key": "sk-secret-key",
            **more,
        }
    )

    async def one(transport: LiteLLMTransport) -> Reply | Failure:
        try:
            return await transport.send(outgoing, limit, idle)
        except Failure as failure:
            return failure

    async def work() -> list[Reply | Failure]:
        transport = LiteLLMTransport()
        try:
            return [await one(transport) for _ in range(times)]
        finally:
            await transport.close()

    return asyncio.run(asyncio.wait_for(work(), 60))


def answered(script: Script | Act, **more: Any) -> tuple[Reply, Provider]:
    with playing(script) as provider:
        (found,) = send(provider, **more)
    assert isinstance(found, Reply), found
    return found, provider


def failed(script: Script | Act, **more: Any) -> Failure:
    with playing(script) as provider:
        (found,) = send(provider, **more)
    assert isinstance(found, Failure), found
    return found


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_is_what_the_provider_sent(stream: bool) -> None:
    act = Act(reasoning="hm", more={"service_tier": "flex", "provider": "Alibaba"})
    reply, provider = answered(act, stream=stream, tier="flex")
    assert (reply.text, reply.reasoning, reply.finish_reason) == (ANSWER, "hm", "stop")
    assert reply.usage == USAGE
    assert reply.served == {
        "id": "answer-0",
        "model": "served-model-1",
        "provider": "Alibaba",
        "service_tier": "flex",
        "finish_reason": "stop",
    }
    (asked,) = provider.asked
    assert asked.body["messages"] == [
        {"role": "system", "content": "system words"},
        {"role": "user", "content": "user words"},
    ]
    assert reply.sent == {name: value for name, value in asked.body.items() if name != "messages"}
    assert {**FIELDS["extra_body"], "temperature": 1.0, "top_k": 20}.items() <= asked.body.items()  # type: ignore[dict-item]
    assert asked.body["service_tier"] == "flex" and asked.body["model"] == "some-model"
    assert asked.headers["authorization"] == "Bearer sk-secret-key"
    assert reply.seconds > 0 and (reply.first_token_seconds is not None) is stream


def test_time_runs_from_sending_to_the_last_byte() -> None:
    reply, _ = answered(Act(delay=0.3, pieces=4, piece_delay=0.1))
    assert reply.first_token_seconds is not None
    assert 0.3 < reply.first_token_seconds < reply.seconds
    assert reply.seconds > 0.6


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (slow_down(retry_after="7"), failures.RATE_LIMIT, "slow down"),
        (Act(status=500, error={"message": "boom"}), failures.SERVER, "boom"),
        (Act(status=502, body=b"<html>Bad gateway</html>"), failures.SERVER, "Bad gateway"),
        (Act(status=503, body=b""), failures.SERVER, "503"),
        (Act(status=400, error={"message": "maximum context length is 8192"}), failures.TOO_LONG, "8192"),
        (Act(status=400, error={"message": "temperature must be 1"}), failures.REFUSED, "temperature"),
        (Act(status=401, error={"message": "bad key"}), failures.KEY, "bad key"),
        (Act(status=404, error={"message": "no such model"}), failures.MODEL, "no such model"),
        (Act(error={"message": "upstream died", "code": 502}), failures.SERVER, "upstream died"),
        (Act(body=b"{not json"), failures.INVALID, "{not json"),
        (Act(body=b"<html>a login page</html>"), failures.INVALID, "login page"),
        (Act(drop_at_once=True), failures.CONNECTION, "Connection error"),
        (Act(finish="error"), failures.CUT_SHORT, "error"),
        (Act(finish=None), failures.CUT_SHORT, ""),
    ],
)
def test_what_is_no_answer_is_a_failure_of_its_kind(act: Act, kind: str, words: str, stream: bool) -> None:
    failure = failed(act, stream=stream)
    assert failure.kind == kind and words in failure.message
    assert failure.wait == (7.0 if kind == failures.RATE_LIMIT else None)


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (Act(drop_after=2), failures.CUT_SHORT),
        (Act(garbage_after=2), failures.CUT_SHORT),
        (Act(error_after={"message": "overloaded", "code": 429}), failures.CUT_SHORT),
        (Act(stall_after=2), failures.STALLED),
        (Act(pieces=50, piece_delay=0.2), failures.TIME_LIMIT),
        (Act(delay=30), failures.TIME_LIMIT),
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(act: Act, kind: str) -> None:
    limits = {"limit": 2.0, "idle": 20.0} if kind == failures.TIME_LIMIT else {"limit": 20.0, "idle": 0.5}
    failure = failed(act, **limits)
    assert failure.kind == kind and failure.perhaps_paid


def test_a_whole_answer_that_does_not_come_in_time_is_given_up() -> None:
    assert failed(Act(delay=30), stream=False, limit=0.5).kind == failures.TIME_LIMIT


def test_a_slow_first_piece_is_not_a_stalled_stream() -> None:
    reply, _ = answered(Act(delay=1.0), idle=0.3)
    assert reply.text == ANSWER


@pytest.mark.parametrize("stream", [True, False])
def test_token_counts_that_the_provider_did_not_give_are_not_made_up(stream: bool) -> None:
    reply, _ = answered(Act(usage=None), stream=stream)
    assert reply.usage == {}


@pytest.mark.parametrize("stream", [True, False])
def test_odd_token_counts_are_kept_as_they_came(stream: bool) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.25, "odd": {"x": [1]}}
    reply, _ = answered(Act(usage=usage), stream=stream)
    assert reply.usage == usage


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("finish", "kept"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("strange", "strange")],
)
def test_end_reasons_are_told_apart(finish: str, kept: str, stream: bool) -> None:
    reply, _ = answered(Act(finish=finish), stream=stream)
    assert reply.finish_reason == kept and reply.served["finish_reason"] == finish


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_of_nothing_is_told(stream: bool) -> None:
    reply, _ = answered(Act(text="", usage={"prompt_tokens": 5, "completion_tokens": 0}), stream=stream)
    assert reply.blank


def test_a_huge_answer_is_kept_and_one_without_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = "ä" * (3 << 20)
    reply, _ = answered(Act(text=huge, pieces=8), stream=False)
    assert reply.text == huge
    monkeypatch.setattr(wire, "MOST_BYTES", 1 << 20)
    for stream in (True, False):
        assert failed(Act(text=huge, pieces=8), stream=stream).kind == failures.TOO_LARGE


def test_nobody_there_is_a_failure_of_the_connection() -> None:
    with playing(Act()) as provider:
        pass
    (found,) = send(provider)
    assert isinstance(found, Failure) and found.kind == failures.CONNECTION


def test_a_request_that_litellm_refuses_is_not_sent() -> None:
    with playing(Act()) as provider:
        (found,) = send(provider, "no-such-provider-at-all/model")
    assert isinstance(found, Failure) and found.kind == failures.OUR_OWN and not provider.asked


def test_a_key_of_another_provider_does_not_leave_for_an_address_of_the_users_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-real-one")
    _, provider = answered(Act(), key=None)
    assert "sk-the-real-one" not in json.dumps(dict(provider.asked[0].headers))


def test_cache_marks_stand_at_the_end_of_the_prompt() -> None:
    _, provider = answered(Act(), cache_markers=True)
    assert provider.asked[0].body["messages"][1]["content"] == [
        {"type": "text", "text": "user words", "cache_control": {"type": "ephemeral"}}
    ]


@pytest.mark.parametrize(
    "provider_name", ["openrouter", "hosted_vllm", "deepseek", "groq", "mistral", "together_ai", "xai"]
)
@pytest.mark.parametrize("stream", [True, False])
def test_other_providers_of_the_same_shape_are_watched_too(provider_name: str, stream: bool) -> None:
    fields = {"temperature": 1.0, "max_tokens": 50}
    name = "reasoning" if provider_name == "openrouter" else "reasoning_content"
    tier = {"service_tier": "default"}  # LiteLLM 1.110.2 cannot read Groq's answers without it
    acts = [
        Act(reasoning="hm", reasoning_name=name, more=tier),
        slow_down(retry_after="3"),
        Act(usage=None, more=tier),
    ]
    with playing(lambda asked: acts[asked.number]) as here:
        found = send(here, f"{provider_name}/some-model", stream=stream, fields=fields, times=3)
    first, second, third = found
    assert isinstance(first, Reply) and isinstance(second, Failure) and isinstance(third, Reply), found
    assert (first.text, first.reasoning, first.usage) == (ANSWER, "hm", USAGE)
    assert first.served["model"] == "served-model-1" and first.sent is not None
    assert first.sent["temperature"] == 1.0 and first.sent["max_tokens"] == 50
    assert (second.kind, second.wait) == (failures.RATE_LIMIT, 3.0)
    assert third.usage == {}


def event_stream(*events: Mapping[str, Any] | tuple[str, Mapping[str, Any]]) -> bytes:
    lines = []
    for event in events:
        name, value = event if isinstance(event, tuple) else (None, event)
        lines += [f"event: {name}"] if name else []
        lines += [f"data: {json.dumps(value)}", ""]
    return "\n".join([*lines, ""]).encode()


GEMINI_USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 20,
    "totalTokenCount": 127,
}


def gemini(finish: str | None, text: str) -> Act:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    last = {**candidate, "finishReason": finish} if finish else candidate
    frame = {"modelVersion": "gemini-served-001", "responseId": "r-1"}
    body = event_stream(
        {"candidates": [candidate], **frame}, {"candidates": [last], "usageMetadata": GEMINI_USAGE, **frame}
    )
    return Act(body=body, headers={"content-type": "text/event-stream"})


def test_gemini_is_watched_and_its_counts_are_translated() -> None:
    reply, _ = answered(gemini("STOP", "x"), model="gemini/gemini-3.1-pro-preview", fields={"reasoning_effort": "low"})
    assert (reply.text, reply.finish_reason) == ("xx", "stop")
    assert reply.served == {"id": "r-1", "model": "gemini-served-001", "finish_reason": "STOP"}
    assert reply.usage["prompt_tokens"] == 100 and reply.usage["completion_tokens"] == 27
    assert reply.usage["prompt_tokens_details"]["cached_tokens"] == 40
    assert reply.sent is not None and "thinkingConfig" in reply.sent["generationConfig"]


@pytest.mark.parametrize(("finish", "kept"), [("MAX_TOKENS", "length"), ("SAFETY", "content_filter")])
def test_geminis_ends_are_told_apart(finish: str, kept: str) -> None:
    reply, _ = answered(gemini(finish, "x"), model="gemini/gemini-3.1-pro-preview", fields={})
    assert reply.finish_reason == kept and reply.served["finish_reason"] == finish


def test_anthropic_is_watched() -> None:
    usage = {"input_tokens": 60, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 0, "output_tokens": 1}
    message = {
        "id": "m-1",
        "type": "message",
        "role": "assistant",
        "model": "claude-served",
        "content": [],
        "usage": usage,
    }
    body = event_stream(
        ("message_start", {"type": "message_start", "message": message}),
        (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        ),
        (
            "content_block_delta",
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        ),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        (
            "message_delta",
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        ),
        ("message_stop", {"type": "message_stop"}),
    )
    act = Act(body=body, headers={"content-type": "text/event-stream"})
    reply, _ = answered(act, model="anthropic/claude-x", fields={"max_tokens": 100})
    assert (reply.text, reply.finish_reason) == (ANSWER, "stop")
    assert reply.served == {"id": "m-1", "model": "claude-served", "finish_reason": "end_turn"}
    assert reply.usage["prompt_tokens"] == 100 and reply.usage["completion_tokens"] == 9


@pytest.mark.parametrize("name", shipped_models())
def test_the_fields_of_every_model_that_comes_with_gniah_go_out(name: str) -> None:
    file = find_model(name)
    assert file is not None
    model = AskedModel(dataclasses.replace(file, base_address="http://placeholder", key_variable=None))
    fields = dict(model.file.parameters) | ({"extra_body": model.file.extra_body} if model.file.extra_body else {})
    act = gemini("STOP", "x") if file.litellm.startswith("gemini/") else Act()
    reply, provider = answered(act, model=file.litellm, fields=fields, tier=next(iter(file.tiers), None))
    assert reply.finish_reason == "stop" and reply.sent is not None
    body = provider.asked[0].body
    config = body.get("generationConfig", body)
    assert config["temperature"] == 1.0
    if name.startswith("gpt"):
        assert "top_p" not in body and body["reasoning_effort"] == "low" and body["service_tier"] == "flex"
    if name.startswith("gemini"):
        assert config["topP" if "topP" in config else "top_p"] == 0.95
        assert config["thinkingConfig"]["thinkingLevel"] == "low" and "reasoning_effort" not in body
        assert ("flex" in json.dumps(body)) is bool(file.tiers)
    if name.startswith("qwen"):
        assert (body["top_p"], body["top_k"], body["min_p"], body["presence_penalty"]) == (0.95, 20, 0, 1.5)
        assert body["max_tokens"] == 40000 and body["provider"]["order"][0] == "alibaba"
        assert "low" in json.dumps([body.get("reasoning"), body.get("reasoning_effort")])


PROBE = """
import sys
from gniah.evaluator.inference.transport import load_litellm
litellm = load_litellm()
import os
print(os.environ.get("PLANTED"), litellm.drop_params, litellm.num_retries, litellm.cache)
print(len(litellm.model_cost) > 1000)
"""


def test_litellm_reads_no_env_file_and_no_network(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PLANTED=from-the-folder\nOPENAI_API_KEY=sk-planted\n")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("LITELLM") and "KEY" not in name
    }
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE],
        cwd=tmp_path,
        env={**environment, **nowhere},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split() == ["None", "False", "0", "None", "True"]
    assert done.stderr == ""


def test_other_commands_do_not_import_litellm() -> None:
    code = (
        "import sys, gniah.evaluator.commands, gniah.evaluator.running_commands, gniah.evaluator.pool_commands, "
        "gniah.evaluator.model_commands, gniah.evaluator.inference.preview\n"
        "print('litellm' in sys.modules, 'httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
