"""Whole batch jobs over real HTTP on loopback, in both shapes: what is asked, what is kept, what is left."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from inference_batch_provider import ANTHROPIC, OPENAI, BatchProvider, Trouble, batching, prompt_of
from inference_batch_toys import KEY, Job, model

from gniah.evaluator.inference import failures
from gniah.evaluator.inference.batches import planning, results
from gniah.evaluator.inference.batches.journal import aside_of
from gniah.evaluator.inference.batches.planning import BatchLimits
from gniah.evaluator.inference.model_files import ModelFile
from gniah.evaluator.inference.model_run import Work as LiveWork
from gniah.evaluator.inference.runner import run_models
from gniah.evaluator.inference.transport import LiteLLMTransport
from gniah.evaluator.pool import open_pool
from gniah.evaluator.selection import Wanted, select
from gniah.records.errors import CheckFailed, UsageFault
from gniah.records.responses import Response

SHAPES = pytest.mark.parametrize("shape", [OPENAI, ANTHROPIC])


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", KEY)


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    with batching() as found:
        yield found


@pytest.fixture
def slow() -> Iterator[BatchProvider]:
    with batching(ends=None) as found:
        yield found


def live(job: Job, **fields: Any) -> list[Response]:
    """Ask all of a job live, into a folder of its own."""

    async def work() -> None:
        works = [LiveWork(one, selection, job.repeats) for one in job.models]
        await run_models(works, pool, LiteLLMTransport())

    folder = job.run.with_name("live")
    with select(job.bench, Wanted()) as selection, open_pool(folder) as pool:
        asyncio.run(asyncio.wait_for(work(), 60))
    other = Job(folder.parent, *job.models)
    other.run = folder
    return other.responses


def without_travel(response: Response) -> dict[str, Any]:
    """Return a record without what tells how it came."""
    found = response.to_json()
    return {name: value for name, value in found.items() if name not in ("call", "seconds")}


@SHAPES
def test_a_batch_leaves_the_records_that_a_live_run_leaves(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    job = Job(tmp_path, model(provider, shape, seed=5), repeats=2)
    [handed] = job.submit()
    assert (handed.total, handed.submitted, handed.left, handed.ended) == (8, 8, 0, None)
    [outcome] = job.collect()
    assert outcome.kept is not None and (outcome.kept.answered, outcome.batch.step) == (8, "collected")
    batched = {one.key: one for one in job.responses}
    asked_live = {one.key: one for one in live(job)}
    assert len(batched) == 8 and batched.keys() == asked_live.keys()
    for key, response in batched.items():
        assert without_travel(response) == without_travel(asked_live[key])
        assert response.text.startswith("About ") and response.reasoning == "Thought."
        assert response.usage["prompt_tokens"] == 1000
        call, live_call = response.call, asked_live[key].call
        assert call is not None and live_call is not None
        assert call.tier == "batch" and call.cost == "1.200000" and call.counted_tokens == 900
        assert call.sent == live_call.sent
        served = {name: value for name, value in call.served.items() if name != "batch"}
        assert served == live_call.served and call.served["batch"] == next(iter(provider.batches))


@SHAPES
def test_a_batch_asks_exactly_what_a_live_run_asks(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    toy = model(
        provider, shape, cache_markers=True, parameters={"max_tokens": 100, "temperature": 0.5}, extra_body={"k": [1]}
    )
    job = Job(tmp_path, toy, repeats=2)
    job.submit()
    live(job)
    [made] = provider.batches.values()
    of_batch = [json.dumps(body) for _, body in made.requests]
    assert sorted(of_batch) == sorted(json.dumps(body) for body in provider.live)
    assert "stream" not in made.requests[0][1]
    content = made.requests[0][1]["messages"][-1]["content"]
    assert content[0]["cache_control"] == {"type": "ephemeral"}
    # Repeats of a prompt stand side by side, in the order of the examples.
    prompts = [prompt_of(body) for _, body in made.requests]
    assert prompts[0::2] == prompts[1::2] and len(set(prompts)) == 4
    assert all(re.fullmatch(r"[0-9a-f-]{57}", name) for name, _ in made.requests)


def test_each_repeat_has_its_seed(tmp_path: Path, provider: BatchProvider) -> None:
    job = Job(tmp_path, model(provider, OPENAI, seed=3), count=1, repeats=3)
    job.submit()
    job.collect()
    [made] = provider.batches.values()
    seeds = [body["seed"] for _, body in made.requests]
    assert len(set(seeds)) == 3
    texts = {one.repeat: one.text for one in job.answers}
    assert [re.search(r"seed (\d+)", texts[n])[1] for n in range(3)] == [str(one) for one in seeds]  # type: ignore[index]


@SHAPES
def test_requests_are_cut_into_batches_by_count(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    job = Job(tmp_path, model(provider, shape), count=5, repeats=2)
    [handed] = job.submit(batch_requests=4)
    assert [len(made.requests) for made in provider.batches.values()] == [4, 4, 2]
    assert handed.submitted == 10
    job.collect()
    assert len(job.answers) == 10 and set(provider.asked.values()) == {2}


@SHAPES
def test_requests_are_cut_into_batches_by_bytes(
    tmp_path: Path, provider: BatchProvider, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "PROVIDER_LIMITS", {shape: BatchLimits(100, 1000)})
    monkeypatch.setattr("gniah.evaluator.inference.batches.submission.PROVIDER_LIMITS", {shape: BatchLimits(100, 1000)})
    job = Job(tmp_path, model(provider, shape), count=6)
    job.submit()
    sizes = [batch.bytes for batch in job.batches]
    assert len(sizes) > 2 and all(500 < size <= 1000 for size in sizes[:-1])
    if shape == OPENAI:
        assert [len(made.raw) for made in provider.batches.values()] == sizes
    job.collect()
    assert len(job.answers) == 6 and set(provider.asked.values()) == {1}
    monkeypatch.setattr("gniah.evaluator.inference.batches.submission.PROVIDER_LIMITS", {shape: BatchLimits(100, 200)})
    with pytest.raises(CheckFailed, match=r"qid-6 has [0-9,]+ bytes, and a batch takes 200"):
        Job(tmp_path, model(provider, shape), count=7).submit()


def test_the_file_of_a_batch_is_gone_when_it_is_submitted(tmp_path: Path, provider: BatchProvider) -> None:
    job = Job(tmp_path, model(provider, OPENAI))
    job.submit()
    job.collect()
    assert list((job.run / "batches").iterdir()) == []


@SHAPES
def test_what_waits_in_a_batch_is_not_asked_again(tmp_path: Path, slow: BatchProvider, shape: str) -> None:
    job = Job(tmp_path, model(slow, shape))
    job.submit()
    [handed] = job.submit()
    assert (handed.waiting, handed.submitted, handed.already) == (4, 0, 0)
    more = Job(tmp_path, model(slow, shape), count=6)
    [handed] = more.submit()
    assert (handed.waiting, handed.submitted) == (4, 2)
    assert set(slow.asked.values()) == {1}
    [one, other] = job.collect()
    assert one.kept is None and one.batch.open and other.batch.open
    for made in slow.batches.values():
        slow.end(made, "completed" if shape == OPENAI else "ended")
    job.collect()
    [handed] = more.submit()
    assert (handed.already, handed.waiting, handed.submitted) == (6, 0, 0)
    assert set(slow.asked.values()) == {1} and len(job.answers) == 6


@SHAPES
def test_collecting_twice_adds_nothing(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    job = Job(tmp_path, model(provider, shape))
    job.submit()
    job.collect()
    before = job.on_disk()
    assert job.collect() == []
    assert job.on_disk() == before


FATES = ("succeeded", "errored", "expired", "canceled")


@SHAPES
def test_requests_without_an_answer_are_failures_and_are_asked_again(
    tmp_path: Path, slow: BatchProvider, shape: str
) -> None:
    job = Job(tmp_path, model(slow, shape), count=8)
    job.submit()
    [made] = slow.batches.values()
    slow.end(made, "expired" if shape == OPENAI else "ended", lambda number: FATES[number % 4])
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 2
    assert outcome.kept.failed == {failures.TOO_LONG: 2, results.EXPIRED: 2, results.CANCELED: 2}
    assert [one.error_kind for one in job.failures] and all(not one.text for one in job.failures)
    assert all(one.call is not None and one.call.perhaps_cost is None for one in job.failures)
    [handed] = job.submit()
    assert (handed.already, handed.submitted) == (2, 6)
    slow.end(list(slow.batches.values())[1], "completed" if shape == OPENAI else "ended")
    job.collect()
    assert len(job.answers) == 8 and len({one.key for one in job.answers}) == 8
    assert sorted(slow.asked.values()) == [1, 1, 2, 2, 2, 2, 2, 2]


@SHAPES
def test_results_may_come_in_any_order(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    provider.result_order = lambda lines: lines[::-2] + lines[-2::-2]
    job = Job(tmp_path, model(provider, shape), count=5)
    job.submit()
    job.collect()
    lengths = {one.qid: one.text for one in job.answers}
    [made] = provider.batches.values()
    for number, (_, body) in enumerate(made.requests):
        assert lengths[f"qid-{number}"].startswith(f"About {len(prompt_of(body))} letters")


def test_a_prompt_that_arrived_cut_is_no_answer(tmp_path: Path, provider: BatchProvider) -> None:
    provider.prompt_tokens = 500
    job = Job(tmp_path, model(provider, OPENAI))
    job.submit()
    [outcome] = job.collect()
    assert outcome.kept is not None and (outcome.kept.cut, outcome.kept.answered) == (4, 0)
    [handed] = job.submit()
    assert (handed.already, handed.submitted) == (0, 4)


def test_the_limit_of_cost_holds_for_all_batches_together(tmp_path: Path, slow: BatchProvider) -> None:
    # A request can cost 0.9 for its prompt and 1 for its answer; six of ten fit into 12 dollars.
    job = Job(tmp_path, model(slow, OPENAI), count=10)
    [handed] = job.submit(max_cost=Decimal(12), batch_requests=4)
    assert [len(made.requests) for made in slow.batches.values()] == [4, 2]
    assert (handed.submitted, handed.left) == (6, 4)
    assert handed.ended is not None and "could cost 1.9" in handed.ended
    assert aside_of(job.batches) == Decimal("11.4")
    for made in slow.batches.values():
        slow.end(made, "completed")
    job.collect()
    # They did cost 1.2 each, so that 4.8 are left for two more.
    [handed] = job.submit(max_cost=Decimal(12))
    assert (handed.already, handed.submitted, handed.left) == (6, 2, 2)


def test_a_batch_that_was_refused_as_a_whole_says_why_and_frees_its_requests(
    tmp_path: Path, slow: BatchProvider
) -> None:
    job = Job(tmp_path, model(slow, OPENAI))
    job.submit()
    [made] = slow.batches.values()
    made.state = "failed"
    error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None}
    made.refusal = {"object": "list", "data": [error, {"code": "x", "message": "bad\x1b[2J", "line": 3}]}
    [outcome] = job.collect()
    assert outcome.batch.step == "dropped" and job.responses == []
    assert outcome.batch.reason == "Enqueued token limit reached (token_limit_exceeded); line 3: bad\x1b[2J (x)"
    [handed] = job.submit()
    assert handed.submitted == 4


@SHAPES
def test_a_canceled_batch_gives_what_it_has_answered(tmp_path: Path, slow: BatchProvider, shape: str) -> None:
    job = Job(tmp_path, model(slow, shape))
    job.submit()
    [outcome] = job.cancel()
    assert outcome.batch.state.startswith("cancel") and outcome.batch.open
    [made] = slow.batches.values()
    fate = lambda number: "succeeded" if number < 3 else "missing" if shape == OPENAI else "canceled"  # noqa: E731
    slow.end(made, "cancelled" if shape == OPENAI else "ended", fate)
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 3
    assert outcome.kept.failed == {results.CANCELED: 1}


def test_a_batch_that_is_let_go_frees_its_requests_and_keeps_its_money(tmp_path: Path, slow: BatchProvider) -> None:
    job = Job(tmp_path, model(slow, OPENAI))
    job.submit()
    name = job.batches[0].id
    assert job.cancel("zz") == []
    [outcome] = job.cancel(name[:8], let_go=True)
    assert outcome.batch.step == "dropped" and aside_of(job.batches) == Decimal("7.6")
    [handed] = job.submit(max_cost=Decimal(10))
    assert (handed.submitted, handed.left) == (1, 3)


def test_a_model_in_another_shape_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    os.environ["GEMINI_API_KEY"] = "g-0123456789"
    toy = planning.AskedModel(ModelFile("g", "gemini/gemini-3.6-flash"))
    with pytest.raises(UsageFault, match="in the shape of OpenAI's chat completions"):
        Job(tmp_path, toy).submit()


def test_a_provider_without_a_batch_interface_is_told_so(tmp_path: Path, provider: BatchProvider) -> None:
    provider.trouble = lambda method, path, number: Trouble(status=404, message="Not Found")
    job = Job(tmp_path, model(provider, OPENAI))
    [handed] = job.submit()
    assert handed.left == 4 and handed.ended is not None and "HTTP 404: Not Found" in handed.ended
    assert not job.batches[0].open


@SHAPES
def test_a_lone_surrogate_in_an_answer_loses_nothing(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    provider.text = lambda body: "odd \ud800 letter \\answer{YES}"
    job = Job(tmp_path, model(provider, shape), count=1)
    job.submit()
    job.collect()
    [answer] = job.answers
    assert answer.text == "odd \ufffd letter \\answer{YES}"
