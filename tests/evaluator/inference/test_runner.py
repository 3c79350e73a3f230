"""Whole runs over real HTTP on loopback, against providers in every kind of trouble."""

from __future__ import annotations

import asyncio
import dataclasses
import email.utils
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from evaluator_toys import mixed, write_examples
from inference_provider import USAGE, Act, Asked, Provider, Script, playing, slow_down

from gniah.evaluator import pool as pools
from gniah.evaluator.inference import failures
from gniah.evaluator.inference.asked_model import AskedModel
from gniah.evaluator.inference.attempts import Patience
from gniah.evaluator.inference.model_files import Limits, ModelFile, PriceRow
from gniah.evaluator.inference.model_run import Tally, Work, served_tier
from gniah.evaluator.inference.runner import run_models
from gniah.evaluator.inference.transport import LiteLLMTransport, Outgoing, Reply
from gniah.evaluator.pool import open_pool, pool_files
from gniah.evaluator.selection import Wanted, select
from gniah.records.errors import EnvironmentFault
from gniah.records.responses import Response, read_responses

QUICK = Patience(attempts=6, paid_attempts=3, backoff=0.01, longest_backoff=0.05, time_limit=20.0, idle_limit=5.0)
PRICE = PriceRow("default", 0, Decimal(1000), Decimal(100), None, Decimal(10000))


def model(provider: Provider, name: str = "toy", *, seed: int | None = None, **fields: Any) -> AskedModel:
    limits = fields.pop("limits", Limits(concurrency=4))
    file = ModelFile(name=name, litellm=f"openai/{name}", base_address=provider.address, limits=limits, **fields)
    return AskedModel(file, seed)


def run(
    folder: Path,
    models: Sequence[AskedModel],
    *,
    count: int = 8,
    repeats: int = 1,
    patience: Patience = QUICK,
    max_cost: Decimal | None = None,
    counts: dict[str, int] | None = None,
    said: list[str] | None = None,
) -> list[Tally]:
    examples = [dataclasses.replace(one, token_counts=counts or {"t": 900}) for one in mixed(count)]
    path = write_examples(folder / f"bench-{count}", examples)
    notes = [] if said is None else said

    async def work() -> list[Tally]:
        works = [Work(one, selection, repeats, patience) for one in models]
        transport = LiteLLMTransport()
        return await run_models(works, pool, transport, max_cost=max_cost, notice=notes.append)

    with (
        select(path, Wanted()) as selection,
        open_pool(folder / "run", notes.append, claims=[one.claim for one in models]) as pool,
    ):
        return asyncio.run(asyncio.wait_for(work(), 60))


def responses(folder: Path) -> list[Response]:
    return [one for path in pool_files(folder / "run") for one in read_responses(path)]


def complete(folder: Path) -> list[Response]:
    return [one for one in responses(folder) if one.complete]


def first_fails(act: Act, times: int = 1) -> Script:
    """Return a script in which the first so many attempts of each prompt end like an act."""
    seen: Counter[str] = Counter()

    def script(asked: Asked) -> Act:
        seen[asked.prompt] += 1
        return act if seen[asked.prompt] <= times else Act()

    return script


def test_every_request_is_answered_once_and_on_disk(tmp_path: Path) -> None:
    with playing(Act()) as provider:
        (tally,) = run(tmp_path, [model(provider)], repeats=2)
        assert (tally.answered, tally.already, tally.failed, tally.left) == (16, 0, 0, 0)
        assert provider.most_at_once <= 4
        assert set(provider.per_prompt().values()) == {2}
        (again,) = run(tmp_path, [model(provider)], repeats=2)
        assert (again.answered, again.already) == (0, 16)
        assert len(provider.asked) == 16
    found = responses(tmp_path)
    assert Counter((one.qid, one.repeat) for one in found) == {(f"qid-{n}", r): 1 for n in range(8) for r in range(2)}
    for one in found:
        assert one.call is not None and one.call.sent is not None and one.call.at is not None
        assert one.usage == USAGE and one.seconds is not None and one.call.counted_tokens == 900


def test_repeats_follow_the_first_answer_to_their_prompt(tmp_path: Path) -> None:
    order: list[tuple[str, float]] = []

    def script(asked: Asked) -> Act:
        order.append((asked.prompt, asked.at))
        return Act(delay=2.0)

    with playing(script) as provider:
        run(tmp_path, [model(provider, seed=3, limits=Limits(concurrency=8))], count=2, repeats=4)
        seeds = {(one.prompt, one.body["seed"]) for one in provider.asked}
    assert len(seeds) == 8 and len({seed for _, seed in seeds}) == 4
    for prompt in {prompt for prompt, _ in order}:
        times = sorted(at for name, at in order if name == prompt)
        assert times[1] - times[0] >= 2.0
        assert times[3] - times[1] < 2.0
    assert len({json.dumps(dict(one.parameters)) for one in responses(tmp_path)}) == 1


STORMS = {
    "429": slow_down(),
    "429, wait in seconds": slow_down(retry_after="0.2"),
    "429, wait in milliseconds": slow_down(retry_after_ms="200"),
    "500": Act(status=500, error={"message": "boom"}),
    "502 of a gateway": Act(status=502, body=b"<html>bad gateway</html>"),
    "dropped at once": Act(drop_at_once=True),
    "dropped within the answer": Act(drop_after=2),
    "no JSON": Act(body=b"{"),
    "garbage in the stream": Act(garbage_after=2),
    "an error in the stream": Act(error_after={"message": "overloaded", "code": 529}),
    "an error for an answer": Act(error={"message": "upstream", "code": 503}),
    "cut off": Act(finish=None),
    "an answer of nothing": Act(text="", usage={"prompt_tokens": 1000, "completion_tokens": 0}),
}


@pytest.mark.parametrize("name", STORMS)
def test_trouble_passes_and_every_request_is_answered_once(tmp_path: Path, name: str) -> None:
    with playing(first_fails(STORMS[name])) as provider:
        (tally,) = run(tmp_path, [model(provider)])
        assert (tally.answered, tally.failed) == (8, 0)
        assert set(provider.per_prompt().values()) == {2}
    assert len(complete(tmp_path)) == len(responses(tmp_path)) == 8
    for one in responses(tmp_path):
        assert one.call is not None and len(one.call.failed) == 1
        assert one.seconds is not None and one.call.waited_seconds is not None
        assert one.text == Act().text


def test_a_stalled_stream_is_given_up_and_asked_again(tmp_path: Path) -> None:
    patience = dataclasses.replace(QUICK, idle_limit=0.3)
    with playing(first_fails(Act(stall_after=2))) as provider:
        (tally,) = run(tmp_path, [model(provider)], patience=patience)
    assert tally.answered == 8
    kinds = {attempt["kind"] for one in responses(tmp_path) if one.call for attempt in one.call.failed}
    assert kinds == {failures.STALLED}


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_wait_that_is_asked_for_is_kept_by_all_requests(tmp_path: Path, form: str) -> None:
    times: list[float] = []

    def script(asked: Asked) -> Act:
        times.append(asked.at)
        if len(times) > 1:
            return Act()
        after = "2" if form == "seconds" else email.utils.formatdate(time.time() + 3, usegmt=True)
        return slow_down(retry_after=after)

    with playing(script) as provider:
        run(tmp_path, [model(provider, limits=Limits(concurrency=1))], count=3)
    assert times[1] - times[0] > 1.9
    assert len(complete(tmp_path)) == 3


def test_a_storm_makes_fewer_run_at_once(tmp_path: Path) -> None:
    most: list[int] = []

    def script(asked: Asked) -> Act:
        most.append(provider.running)
        storm = dataclasses.replace(slow_down(retry_after="0.3"), delay=0.5)
        return storm if asked.number < 8 else Act(delay=0.05)

    with playing(script) as provider:
        run(tmp_path, [model(provider, limits=Limits(concurrency=8))], count=24)
    assert max(most[:8]) > 4
    assert max(most[8:16]) <= 5 and len(complete(tmp_path)) == 24


def test_what_fails_to_the_end_is_a_failure_and_is_asked_again_by_the_next_run(tmp_path: Path) -> None:
    with playing(lambda asked: Act(status=500, error={"message": "boom"})) as provider:
        (tally,) = run(tmp_path, [model(provider)], count=2, patience=dataclasses.replace(QUICK, attempts=3))
        assert (tally.failed, tally.kinds, len(provider.asked)) == (2, {failures.SERVER: 2}, 6)
        provider.script = lambda asked: Act()
        (tally,) = run(tmp_path, [model(provider)], count=2)
        assert (tally.answered, tally.failed) == (2, 0)
    found = responses(tmp_path)
    assert [one.error_kind for one in found] == [failures.SERVER] * 2 + [None] * 2
    assert all("boom" in (one.error or "") and one.text == "" for one in found[:2])


@pytest.mark.parametrize(
    ("act", "words", "at_most"),
    [
        (Act(status=401, error={"message": "bad key sk-very-secret"}), "not-allowed", 4),
        (Act(status=404, error={"message": "no such model"}), "no-such-model", 4),
        (Act(status=402, error={"message": "pay first"}), "no-credit", 4),
        (Act(status=400, error={"message": "temperature must be 1"}), "temperature must be 1", 9),
        (Act(status=400, error={"message": "maximum context length is 10"}), "context length", 9),
        (slow_down(retry_after="86400"), "asks to wait for 86,400 s", 5),
        (Act(usage={"prompt_tokens": 400, "completion_tokens": 5}), "cuts prompts", 7),
    ],
)
def test_what_every_request_would_meet_ends_the_model_early(
    tmp_path: Path, act: Act, words: str, at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_KEY", "sk-very-secret")
    said: list[str] = []
    with playing(act) as provider:
        (tally,) = run(tmp_path, [model(provider, key_variable="TOY_KEY")], count=40, said=said)
        assert tally.ended is not None and words in tally.ended
        assert len(provider.asked) <= at_most and tally.left > 0
    assert not complete(tmp_path)
    assert any(words in line for line in said)
    whole = "".join(path.read_text() for path in pool_files(tmp_path / "run")) + "".join(said) + str(tally)
    assert "sk-very-secret" not in whole


def test_many_failures_in_a_row_end_the_model(tmp_path: Path) -> None:
    with playing(lambda asked: Act() if asked.number < 5 else Act(status=500)) as provider:
        patience = dataclasses.replace(QUICK, attempts=1)
        (tally,) = run(tmp_path, [model(provider)], count=40, patience=patience)
    assert tally.ended is not None and "10 requests in a row failed" in tally.ended
    assert tally.answered == 5 and 10 <= tally.failed < 25


def test_a_prompt_that_was_cut_is_neither_an_answer_nor_asked_for_ever(tmp_path: Path) -> None:
    def script(asked: Asked) -> Act:
        return Act(usage={"prompt_tokens": 500, "completion_tokens": 5}) if asked.number == 3 else Act()

    with playing(script) as provider:
        (tally,) = run(tmp_path, [model(provider, limits=Limits(concurrency=1))])
        assert (tally.answered, tally.cut, tally.ended) == (7, 1, None)
        (tally,) = run(tmp_path, [model(provider, limits=Limits(concurrency=1))])
        assert (tally.answered, tally.already) == (1, 7)
    assert sum(one.prompt_cut for one in responses(tmp_path)) == 1


def test_a_tier_without_room_is_left_for_the_next_and_the_cost_is_that_of_the_tier_that_served(tmp_path: Path) -> None:
    def script(asked: Asked) -> Act:
        tier = asked.body["service_tier"]
        if tier == "flex" and asked.number % 2:
            return Act(status=429, error={"message": "Resource unavailable", "code": "resource_unavailable"})
        return Act(more={"service_tier": tier})

    prices = (PRICE, dataclasses.replace(PRICE, tier="flex", input=Decimal(500), output=Decimal(5000)))
    with playing(script) as provider:
        asked = model(provider, tiers=("flex", "default"), prices=prices, max_output_tokens=100)
        (tally,) = run(tmp_path, [asked])
        assert tally.answered == 8
    costs = Counter((one.call.tier, one.call.cost) for one in responses(tmp_path) if one.call)
    amounts = {tier: Decimal(cost or 0) for tier, cost in costs}
    assert amounts == {"flex": Decimal("0.6"), "default": Decimal("1.2")}
    assert tally.cost == sum(Decimal(cost or 0) * count for (_, cost), count in costs.items())


def test_a_tier_that_is_refused_is_not_asked_for_again(tmp_path: Path) -> None:
    def script(asked: Asked) -> Act:
        if asked.body.get("service_tier") == "flex":
            return Act(status=400, error={"message": "Flex is not available for this model (service_tier)"})
        return Act()

    with playing(script) as provider:
        asked = model(provider, tiers=("flex", "default"), limits=Limits(concurrency=1))
        said: list[str] = []
        run(tmp_path, [asked], said=said)
        tiers = [one.body.get("service_tier") for one in provider.asked]
    assert tiers == ["flex", *["default"] * 8]
    assert sum("flex" in line for line in said) == 1


@pytest.mark.parametrize(
    ("told", "asked", "tier"),
    [
        ("flex", "flex", "flex"),
        ("ON_DEMAND_FLEX", "flex", "flex"),
        ("default", "flex", "default"),
        (None, "flex", "flex"),
    ],
)
def test_the_tier_that_served_is_the_providers_word(told: str | None, asked: str, tier: str) -> None:
    assert served_tier(told, asked) == tier


def test_spending_stops_before_the_limit(tmp_path: Path) -> None:
    """Each answer costs 1.2 USD, and the most that one can cost is 0.9 + 1 = 1.9."""
    with playing(Act(delay=0.02)) as provider:
        asked = model(provider, prices=(PRICE,), max_output_tokens=100)
        (tally,) = run(tmp_path, [asked], count=20, max_cost=Decimal(10))
        assert tally.ended is not None and "could cost" in tally.ended
        assert Decimal("8.1") < tally.cost <= 10
        sent = len(provider.asked)
        (tally,) = run(tmp_path, [asked], count=20, max_cost=Decimal(10))
        assert tally.answered == 0 and len(provider.asked) == sent
        (tally,) = run(tmp_path, [asked], count=20, max_cost=Decimal(12))
        assert 0 < tally.answered <= 2


def test_attempts_that_may_have_been_charged_count_as_spent(tmp_path: Path) -> None:
    with playing(Act(drop_after=2)) as provider:
        asked = model(provider, prices=(PRICE,), max_output_tokens=100, limits=Limits(concurrency=1))
        patience = dataclasses.replace(QUICK, paid_attempts=1)
        (tally,) = run(tmp_path, [asked], count=20, max_cost=Decimal(5), patience=patience)
        assert (tally.failed, tally.cost, tally.perhaps) == (2, 0, Decimal("3.8"))
        (again,) = run(tmp_path, [asked], count=20, max_cost=Decimal(5), patience=patience)
        assert again.failed == 0 and len(provider.asked) == 2


def test_an_unknown_cost_is_counted_as_unknown(tmp_path: Path) -> None:
    with playing(Act()) as provider:
        (tally,) = run(tmp_path, [model(provider)])
    assert (tally.cost, tally.unpriced) == (0, 8)
    assert all(one.call is not None and one.call.cost is None for one in responses(tmp_path))


def test_requests_and_tokens_in_a_minute_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gniah.evaluator.inference import limits

    monkeypatch.setattr(limits, "MINUTE", 1.0)
    with playing(Act()) as provider:
        asked = model(provider, limits=Limits(concurrency=8, requests_per_minute=100, tokens_per_minute=1800))
        run(tmp_path, [asked], count=6)
        times = [one.at for one in provider.asked]
    assert all(times[n + 2] - times[n] > 0.9 for n in range(len(times) - 2))


def test_a_full_disk_ends_the_run_and_leaves_a_whole_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    write_all = pools._write_all

    def filling(stream: BinaryIO, data: bytes) -> None:
        nonlocal written
        written += 1
        if written > 3:
            stream.write(data[:40])
            raise OSError(errno.ENOSPC, "No space left on device")
        write_all(stream, data)

    monkeypatch.setattr(pools, "_write_all", filling)
    with playing(Act(delay=0.02)) as provider:
        with pytest.raises(EnvironmentFault, match="the disk is full"):
            run(tmp_path, [model(provider), model(provider, "other")], count=20)
        assert len(provider.asked) < 30
        assert len(complete(tmp_path)) == 3
        monkeypatch.undo()
        tallies = run(tmp_path, [model(provider), model(provider, "other")], count=20)
    assert sum(tally.answered for tally in tallies) == 37 and sum(tally.already for tally in tallies) == 3


def test_efforts_of_one_model_share_its_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gniah.evaluator.inference import limits

    monkeypatch.setattr(limits, "MINUTE", 1.0)
    with playing(Act()) as provider:
        efforts = [
            model(provider, parameters={"reasoning_effort": effort}, limits=Limits(8, requests_per_minute=3))
            for effort in ("low", "high")
        ]
        tallies = run(tmp_path, efforts, count=4)
        times = [one.at for one in provider.asked]
    assert [tally.answered for tally in tallies] == [4, 4]
    assert all(times[n + 3] - times[n] > 0.9 for n in range(len(times) - 3))


def test_several_models_run_at_once_and_one_that_ends_stops_no_other(tmp_path: Path) -> None:
    def script(asked: Asked) -> Act:
        return Act(status=401, error={"message": "no"}) if asked.body["model"] == "bad" else Act(delay=0.05)

    with playing(script) as provider:
        tallies = run(tmp_path, [model(provider, "good"), model(provider, "bad"), model(provider, "fine")])
    assert [tally.answered for tally in tallies] == [8, 0, 8]
    assert [tally.ended is None for tally in tallies] == [True, False, True]
    assert Counter(one.model for one in complete(tmp_path)) == {"good": 8, "fine": 8}


class Dropping(LiteLLMTransport):
    """A transport that leaves a field out, as a library may."""

    async def send(self, outgoing: Outgoing, time_limit: float, idle_limit: float) -> Reply:
        fields = {name: value for name, value in outgoing.fields.items() if name != "temperature"}
        return await super().send(dataclasses.replace(outgoing, fields=fields), time_limit, idle_limit)


@pytest.mark.parametrize("transport", [LiteLLMTransport, Dropping])
def test_a_field_that_is_not_sent_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: type[LiteLLMTransport]
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "LiteLLMTransport", transport)
    said: list[str] = []
    with playing(Act()) as provider:
        run(tmp_path, [model(provider, parameters={"temperature": 1.0, "max_tokens": 5})], said=said)
        assert provider.asked[0].body.get("temperature") == (None if transport is Dropping else 1.0)
    told = [line for line in said if "not sent" in line]
    assert len(told) == (transport is Dropping) and all("not sent: temperature;" in line for line in told)


def test_lone_surrogates_and_control_characters_are_kept_readable(tmp_path: Path) -> None:
    message = b'{"role":"assistant","content":"a\\ud800b\\u0000\\u001b[2J"}'
    usage = b'{"prompt_tokens":1000,"completion_tokens":3,"total_tokens":1003}'
    choice = b'{"index":0,"message":%s,"finish_reason":"stop"}' % message
    body = b'{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[%s],"usage":%s}' % (choice, usage)
    with playing(Act(body=body)) as provider:
        (tally,) = run(tmp_path, [model(provider, stream=False)], count=1)
    (found,) = responses(tmp_path)
    assert tally.answered == 1 and found.text == "a�b\x00\x1b[2J"


# The program, in a process of its own.


def command(folder: Path, provider: Provider, *more: str) -> list[str]:
    examples = write_examples(folder, mixed(12))
    words = ["run", str(examples), "--model", "toy", "--base-address", provider.address, "--out", str(folder / "run")]
    return [sys.executable, "-P", "-c", "from gniah.evaluator.cli import main; main()", *words, *more]


def started(folder: Path, provider: Provider, *more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.Popen(
        command(folder, provider, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def wait_for(provider: Provider, count: int) -> None:
    until = time.monotonic() + 60
    while len(provider.asked) < count:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
def test_one_interrupt_keeps_what_is_under_way_and_the_next_call_goes_on(tmp_path: Path) -> None:
    with playing(Act(delay=1.0)) as provider:
        process = started(tmp_path, provider, "--concurrency", "3")
        wait_for(provider, 3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "3 requests are under way" in said and "Traceback" not in said
        assert len(complete(tmp_path)) == len(provider.asked) == 3
        process = started(tmp_path, provider, "--concurrency", "12")
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert len(provider.asked) == 12 and set(provider.per_prompt().values()) == {1}


@pytest.mark.slow
def test_a_second_interrupt_gives_up_at_once(tmp_path: Path) -> None:
    with playing(Act(delay=50.0)) as provider:
        process = started(tmp_path, provider, "--concurrency", "3")
        wait_for(provider, 3)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130 and time.monotonic() - began < 20
        assert "Traceback" not in said
    assert responses(tmp_path) == []


@pytest.mark.slow
def test_the_program_tells_of_failures_by_kind_and_ends_with_1(tmp_path: Path) -> None:
    with playing(lambda asked: Act(status=400, error={"message": "no"}) if asked.number < 2 else Act()) as provider:
        process = started(tmp_path, provider)
        out, said = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "request-refused 2" in said and re.search(r"toy +10 +0 +2", out)
        process = started(tmp_path, provider, "--json")
        out, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        (found,) = json.loads(out)["models"]
        assert (found["answered"], found["already"], found["failed"]) == (2, 10, 0)
