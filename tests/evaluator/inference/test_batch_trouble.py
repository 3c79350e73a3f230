"""Batch jobs when the network, the provider or the key is in trouble: nothing is paid twice, lost, or blamed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inference_batch_provider import ANTHROPIC, OPENAI, BatchProvider, Trouble, batching
from inference_batch_toys import KEY, Job, model

from gniah.evaluator.inference import failures
from gniah.evaluator.inference.batches import results
from gniah.evaluator.inference.batches.journal import JOURNAL_NAME, open_journal, read_batches
from gniah.records.errors import BusyError, CheckFailed, InputError

SHAPES = pytest.mark.parametrize("shape", [OPENAI, ANTHROPIC])
ENDED = {OPENAI: "completed", ANTHROPIC: "ended"}
CREATE = {OPENAI: "/v1/batches", ANTHROPIC: "/v1/messages/batches"}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", KEY)


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    with batching() as found:
        yield found


def troubles(*each: Trouble | None, on: Callable[[str, str], bool]) -> Callable[[str, str, int], Trouble | None]:
    """Return troubles for the first calls that are meant, one after another."""
    left = list(each)
    return lambda method, path, number: left.pop(0) if left and on(method, path) else None


def creating(method: str, path: str) -> bool:
    return method == "POST" and path in CREATE.values()


def downloading(method: str, path: str) -> bool:
    return path.endswith(("/content", "/results"))


def polling(method: str, path: str) -> bool:
    return method == "GET" and "batch_" in path and not downloading(method, path)


LOST = [Trouble(after=True, drop=True), Trouble(after=True, status=502), Trouble(after=True, body=b"<html>"), None]


@SHAPES
@pytest.mark.parametrize("how", LOST[:3], ids=["dropped", "502", "garbage"])
def test_a_batch_whose_submission_was_not_answered_is_found(
    tmp_path: Path, provider: BatchProvider, shape: str, how: Trouble
) -> None:
    provider.trouble = troubles(how, on=creating)
    job = Job(tmp_path, model(provider, shape))
    [handed] = job.submit()
    assert handed.submitted == 4 and job.told("had been submitted")
    job.collect()
    assert len(provider.batches) == 1 and set(provider.asked.values()) == {1} and len(job.answers) == 4


@SHAPES
@pytest.mark.parametrize(
    "how", [Trouble(drop=True), Trouble(status=500), Trouble(status=429, headers={"retry-after": "0"})]
)
def test_a_submission_that_did_not_arrive_is_made_again(
    tmp_path: Path, provider: BatchProvider, shape: str, how: Trouble
) -> None:
    provider.trouble = troubles(how, how, on=creating)
    job = Job(tmp_path, model(provider, shape))
    [handed] = job.submit()
    job.collect()
    assert handed.submitted == 4 and len(provider.batches) == 1 and set(provider.asked.values()) == {1}
    assert len(job.answers) == 4


@SHAPES
def test_a_submission_that_never_arrives_leaves_the_requests_free(
    tmp_path: Path, provider: BatchProvider, shape: str
) -> None:
    provider.trouble = lambda method, path, number: Trouble(status=500) if creating(method, path) else None
    job = Job(tmp_path, model(provider, shape))
    [handed] = job.submit()
    assert handed.left == 4 and handed.ended is not None and "HTTP 500" in handed.ended
    assert provider.count(f"POST {CREATE[shape]}") == 4 and job.responses == []
    provider.trouble = lambda method, path, number: None
    job.submit()
    job.collect()
    assert len(job.answers) == 4 and set(provider.asked.values()) == {1}


@SHAPES
def test_while_nobody_can_tell_nothing_is_submitted_again(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    """The answer to the submission is lost, and then the provider cannot be asked."""
    lost: list[int] = []

    def trouble(method: str, path: str, number: int) -> Trouble | None:
        if creating(method, path) and not lost:
            lost.append(number)
            return Trouble(after=True, drop=True)
        return Trouble(status=503) if lost and method == "GET" else None

    provider.trouble = trouble
    job = Job(tmp_path, model(provider, shape))
    [handed] = job.submit()
    assert handed.ended is not None and "not known yet" in handed.ended and handed.left == 0 and handed.waiting == 4
    [handed] = job.submit()
    assert handed.ended is not None and handed.submitted == 0
    [outcome] = job.collect()
    assert outcome.trouble is not None and outcome.batch.open and not outcome.hopeless
    provider.trouble = lambda method, path, number: None
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 4
    assert len(provider.batches) == 1 and set(provider.asked.values()) == {1}


def test_a_lost_batch_of_anthropics_shape_is_known_by_its_results(tmp_path: Path) -> None:
    with batching(ends=None) as provider:
        other = Job(tmp_path / "other", model(provider, ANTHROPIC))
        other.submit()
        provider.trouble = troubles(Trouble(after=True, drop=True), on=creating)
        job = Job(tmp_path, model(provider, ANTHROPIC))
        [handed] = job.submit()
        assert handed.ended is not None and "shows when" in handed.ended
        theirs, mine = provider.batches.values()
        assert mine.id in handed.ended and theirs.id in handed.ended
        # The other folder asked the very same, and its batch is not taken for ours.
        provider.end(theirs, "ended")
        [outcome] = job.collect()
        assert outcome.trouble is not None and mine.id in outcome.trouble and theirs.id not in outcome.trouble
        assert job.submit()[0].submitted == 0
        provider.end(mine, "ended")
        [outcome] = job.collect()
        assert outcome.kept is not None and outcome.batch.provider_id == mine.id and outcome.kept.answered == 4
        assert len(provider.batches) == 2 and not other.responses


def test_a_batch_is_found_among_many_pages_of_others(tmp_path: Path, provider: BatchProvider) -> None:
    provider.page = 2
    job = Job(tmp_path, model(provider, OPENAI), count=1)

    def others() -> None:
        for number in range(7):
            provider._make(
                OPENAI, [(f"other-{number}", {"messages": [{"content": "other"}]})], {"gniah_batch": "x"}, b""
            )

    provider.trouble = troubles(Trouble(after=True, drop=True), on=creating)
    made = provider._make_openai

    def make(value: dict[str, object]) -> tuple[int, bytes]:
        answer = made(value)
        others()
        return answer

    provider._make_openai = make  # type: ignore[method-assign]
    [handed] = job.submit()
    assert handed.submitted == 1 and job.batches[0].provider_id == "batch_openai_0"
    assert provider.count("GET /v1/batches?") == 4


@SHAPES
def test_a_poll_that_fails_is_made_again(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    provider.trouble = troubles(
        Trouble(status=500), Trouble(drop=True), Trouble(status=429, headers={"retry-after": "0.2"}), on=polling
    )
    job = Job(tmp_path, model(provider, shape))
    job.submit()
    begun = time.monotonic()
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 4 and time.monotonic() - begun >= 0.2


@SHAPES
def test_a_network_that_is_down_says_nothing_about_a_batch(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    job = Job(tmp_path, model(provider, shape))
    job.submit()
    before = (job.run / JOURNAL_NAME).read_bytes()
    provider.trouble = lambda method, path, number: Trouble(drop=True)
    [outcome] = job.collect()
    assert outcome.trouble is not None and "could not be asked about" in outcome.trouble and outcome.batch.open
    assert (job.run / JOURNAL_NAME).read_bytes() == before and job.responses == []
    [outcome] = job.look()
    assert outcome.trouble is not None
    provider.trouble = lambda method, path, number: None
    job.collect()
    assert len(job.answers) == 4


def test_waiting_goes_on_until_a_batch_ends(tmp_path: Path) -> None:
    with batching(ends=None) as provider:
        job = Job(tmp_path, model(provider, OPENAI))
        job.submit()
        [made] = provider.batches.values()

        def end_at_third(method: str, path: str, number: int) -> Trouble | None:
            if polling(method, path) and provider.count("GET /v1/batches/batch_") == 3:
                provider.end(made, "completed")
            return None

        provider.trouble = end_at_third
        [outcome] = job.collect(wait=30)
        assert outcome.kept is not None and provider.count("GET /v1/batches/batch_") == 3


def test_waiting_has_an_end(tmp_path: Path) -> None:
    with batching(ends=None) as provider:
        job = Job(tmp_path, model(provider, OPENAI))
        job.submit()
        begun = time.monotonic()
        [outcome] = job.collect(wait=1.5)
        assert outcome.batch.open and 1.5 <= time.monotonic() - begun < 10


@SHAPES
@pytest.mark.parametrize("how", [Trouble(cut=700), Trouble(cut=0), Trouble(status=503), Trouble(drop=True)])
def test_results_that_come_cut_are_fetched_again(
    tmp_path: Path, provider: BatchProvider, shape: str, how: Trouble
) -> None:
    provider.trouble = troubles(how, how, on=downloading)
    job = Job(tmp_path, model(provider, shape))
    job.submit()
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 4 and not job.failures
    assert sum(downloading("GET", call) for call in provider.calls) == 3


@SHAPES
def test_fewer_results_than_are_counted_are_fetched_again(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    """An answer that ends after a whole line looks whole to HTTP."""
    job = Job(tmp_path, model(provider, shape))
    job.submit()
    [made] = provider.batches.values()
    first = (json.dumps(made.answers[0]) + "\n").encode()
    provider.trouble = troubles(Trouble(body=first), Trouble(body=first + b'{"custom_id": "x", '), on=downloading)
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 4 and not outcome.kept.strange and not job.failures


@SHAPES
def test_a_request_that_the_results_lack_is_a_failure(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    """The same comes twice: it is what the provider has, though it counts more."""
    job = Job(tmp_path, model(provider, shape))
    job.submit()
    [made] = provider.batches.values()
    short = b"".join((json.dumps(line) + "\n").encode() for line in made.answers[:3])
    provider.trouble = troubles(Trouble(body=short), Trouble(body=short), on=downloading)
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 3 and outcome.kept.failed == {results.NO_RESULT: 1}
    [failure] = job.failures
    # It may have been answered and charged: 0.9 for the prompt and 1 for the longest answer.
    assert failure.call is not None and failure.call.perhaps_cost == "1.900000"
    assert job.told("counts 4 results, and 3 lines came")


@SHAPES
def test_what_belongs_to_no_request_is_told_and_kept(tmp_path: Path, provider: BatchProvider, shape: str) -> None:
    job = Job(tmp_path, model(provider, shape))
    job.submit()
    [made] = provider.batches.values()
    stranger = json.loads(json.dumps(made.answers[0]).replace(made.requests[0][0], "evil\\u001b[2J"))
    made.answers = [stranger, *made.answers, made.answers[1], {"no": "custom_id"}]
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 4 and len(job.answers) == 4
    assert sum(outcome.kept.strange.values()) == 3
    assert job.told("which was not asked") and job.told("a second result for one request")
    [kept] = (job.run / "batches").iterdir()
    assert b"u001b[2J" in kept.read_bytes()


BROKEN = {
    "no choices": {"id": "x", "object": "chat.completion", "choices": []},
    "no text, no tokens": {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
    },
    "a list": [],
    "nothing": None,
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_that_is_none_is_a_failure_and_not_the_models(
    tmp_path: Path, provider: BatchProvider, body: object
) -> None:
    job = Job(tmp_path, model(provider, OPENAI), count=1)
    job.submit()
    [made] = provider.batches.values()
    made.answers[0]["response"]["body"] = body
    [outcome] = job.collect()
    assert outcome.kept is not None and outcome.kept.answered == 0
    [failure] = job.failures
    assert failure.error_kind in failures.PERHAPS_PAID
    assert failure.call is not None and failure.call.perhaps_cost == "1.900000"


@SHAPES
def test_a_wrong_key_is_told_and_is_nowhere(
    tmp_path: Path, provider: BatchProvider, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.wanted_key = "another"
    job = Job(tmp_path, model(provider, shape))
    [handed] = job.submit()
    assert handed.ended is not None and "HTTP 401" in handed.ended and "[key]" in handed.ended
    provider.wanted_key = KEY
    job.submit()
    provider.wanted_key = "another"
    [outcome] = job.collect(wait=20)  # waiting does not mend it
    assert outcome.trouble is not None and outcome.hopeless and outcome.batch.open
    shown = " ".join([handed.ended, outcome.trouble, *job.said]).encode()
    assert KEY.encode() not in shown + job.on_disk()
    provider.wanted_key = KEY
    job.collect()
    assert len(job.answers) == 4
    monkeypatch.delenv("TOY_KEY")
    with pytest.raises(Exception, match="TOY_KEY is not set"):
        Job(tmp_path, model(provider, shape), count=5).submit()


def test_a_batch_that_the_provider_does_not_know_stays_open(tmp_path: Path, provider: BatchProvider) -> None:
    job = Job(tmp_path, model(provider, OPENAI))
    job.submit()
    gone = provider.batches.pop("batch_openai_0")
    [outcome] = job.collect()
    assert outcome.hopeless and outcome.trouble is not None and "does not know it" in outcome.trouble
    provider.batches[gone.id] = gone
    gone.results_gone = True
    [outcome] = job.collect()
    assert outcome.hopeless and outcome.batch.open and job.responses == []
    gone.results_gone = False
    job.collect()
    assert len(job.answers) == 4


@pytest.mark.parametrize("name", ["../../evil", "a/b", "", "x" * 300, None, 7, "a b", "a?b", "x..y"])
def test_names_that_a_provider_gives_do_not_change_an_address(
    tmp_path: Path, provider: BatchProvider, name: object
) -> None:
    provider.trouble = lambda method, path, number: (
        Trouble(body=json.dumps({"id": name}).encode()) if path == "/v1/files" else None
    )
    job = Job(tmp_path, model(provider, OPENAI))
    [handed] = job.submit()
    assert handed.ended is not None and "the provider named no file" in handed.ended and not provider.batches


def test_a_key_does_not_go_to_where_the_environment_leads_now(
    tmp_path: Path, provider: BatchProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.address}/v1")
    toy = model(provider, OPENAI, base_address=None, key_variable=None)
    job = Job(tmp_path, toy)
    job.submit()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    [outcome] = job.collect()
    assert (
        outcome.hopeless and outcome.trouble is not None and "is asked at http://127.0.0.1:9/v1 now" in outcome.trouble
    )
    with pytest.raises(CheckFailed, match="is asked at"):
        (job.run / JOURNAL_NAME).write_bytes(_until(job, "planned"))
        job.submit()


def _until(job: Job, event: str) -> bytes:
    """Return the journal up to the first event of a kind."""
    lines = (job.run / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if json.loads(line)["event"] == event)
    return b"".join(lines[: last + 1])


def test_a_journal_that_was_cut_by_a_crash_is_mended(tmp_path: Path, provider: BatchProvider) -> None:
    job = Job(tmp_path, model(provider, OPENAI))
    job.submit()
    path = job.run / JOURNAL_NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert read_batches(job.run)[job.batches[0].id].step == "submitting"
    job.submit()
    assert job.told("its last line was cut") and job.told("had been submitted")
    job.collect()
    assert len(provider.batches) == 1 and len(job.answers) == 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"no json\n", "not JSON"),
        (b'{"schema":"gniah/batch/2"}\n', "gniah/batch/2"),
        (b'{"schema":"gniah/batch/1","batch":"x","event":"seen"}\n', "no event of a batch"),
        (b'{"schema":"gniah/batch/1","batch":"x","event":"planned"}\n', "no event of a batch"),
    ],
)
def test_a_damaged_journal_is_named_with_its_line(tmp_path: Path, line: bytes, words: str) -> None:
    (tmp_path / JOURNAL_NAME).write_bytes(line)
    with pytest.raises(InputError, match=f"{JOURNAL_NAME}:1.*{words}"):
        read_batches(tmp_path)


def test_two_commands_do_not_work_on_the_batches_of_a_folder_at_once(tmp_path: Path, provider: BatchProvider) -> None:
    job = Job(tmp_path, model(provider, OPENAI))
    with open_journal(job.run, lambda _: None), pytest.raises(BusyError, match="the batches"):
        job.submit()
    assert not provider.calls
