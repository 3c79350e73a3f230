"""The commands of `gniah-eval batch` in processes of their own, killed and interrupted wherever it may hurt."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluator_toys import mixed, write_examples
from inference_batch_provider import ANTHROPIC, OPENAI, BatchProvider, Trouble, batching
from inference_batch_toys import KEY

from gniah.evaluator.inference.batches.journal import JOURNAL_NAME, read_batches
from gniah.evaluator.pool import whole_responses

SHAPES = pytest.mark.parametrize("shape", [OPENAI, ANTHROPIC])
KILLED = 77
# What a child does: it writes into a file what it says, kills itself at a flush to the disk, or tells its memory.
CHILD = """
import os, resource, signal, sys
words, settings, output = {words!r}, {settings!r}, {output!r}
os.environ.update(settings)
signal.signal(signal.SIGINT, signal.default_int_handler)
stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.dup2(stream, 1)
os.dup2(stream, 2)
sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
real, left = os.fsync, [int(settings.get("KILL_AT", 1 << 30))]
def fsync(descriptor):
    left[0] -= 1
    if left[0] == 0:
        os._exit({killed})
    real(descriptor)
os.fsync = fsync
from gniah.evaluator.inference.batches import submission
submission.SETTLE_SECONDS = 0.0
submission.Submitter.__init__.__defaults__ = tuple(
    0.0 if value == 20.0 else value for value in submission.Submitter.__init__.__defaults__
)
from gniah.evaluator.cli import main
sys.argv = ["gniah-eval", *words]
try:
    main()
finally:
    sys.stderr.flush()
    os.write(2, b"\\npeak %d\\n" % resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


class Child:
    """How a child ended and what it said."""

    def __init__(self, code: int | None, said: str) -> None:
        self.code = code
        self.said = said

    @property
    def json(self) -> Any:
        start = self.said.index("{\n")
        return json.JSONDecoder().raw_decode(self.said[start:])[0]

    @property
    def peak(self) -> int:
        """Return the most memory it had, in KB."""
        return int(self.said.rsplit("peak ", 1)[1])


@pytest.fixture(scope="module")
def processes() -> Any:
    """Return what makes processes that have all imports made already."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["litellm", "gniah.evaluator.cli"])
    return found


class Place:
    """A run folder, a benchmark and a model, for commands in children."""

    def __init__(self, folder: Path, provider: BatchProvider, shape: str, processes: Any, count: int = 3) -> None:
        self.run = folder / "run"
        self.bench = folder / "bench"
        self.provider, self.processes = provider, processes
        write_examples(self.bench, mixed(count))
        self.model = folder / "model.toml"
        address = provider.address if shape == ANTHROPIC else f"{provider.address}/v1"
        self.model.write_text(
            f'schema = "gniah/model/1"\nname = "toy"\nlitellm = "{shape}/toy"\nbase_address = "{address}"\n'
            'key_variable = "TOY_KEY"\nstream = false\n[parameters]\nmax_tokens = 100\n',
            encoding="utf-8",
        )
        self.output = folder / "said"

    def call(self, *words: str | Path, interrupt: list[int] | None = None, **settings: object) -> Child:
        given = {"TOY_KEY": KEY, **{name: str(value) for name, value in settings.items()}}
        source = CHILD.format(words=[*map(str, words)], settings=given, output=str(self.output), killed=KILLED)
        process = self.processes.Process(target=exec, args=(source, {"__name__": "child"}))
        process.start()
        if interrupt is not None:
            interrupt.append(process.pid)
        process.join(60)
        assert process.exitcode is not None, "it hangs"
        return Child(process.exitcode, self.output.read_text(encoding="utf-8"))

    def submit(self, *more: str | Path, **settings: Any) -> Child:
        return self.call("batch", "submit", self.bench, "--model", self.model, "--out", self.run, *more, **settings)

    def collect(self, *more: str | Path, **settings: Any) -> Child:
        return self.call("batch", "collect", self.run, *more, **settings)

    def answers(self) -> list[str]:
        return sorted(one.key for one in whole_responses(self.run) if one.complete)


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    with batching() as found:
        yield found


@pytest.mark.slow
@SHAPES
def test_killed_at_any_flush_while_submitting_every_request_is_paid_once(
    tmp_path: Path, provider: BatchProvider, processes: Any, shape: str
) -> None:
    """Between two flushes stands at most one call, so these are all places where it matters."""
    kills = 0
    for at in range(1, 100):
        provider.asked.clear()
        provider.batches.clear()
        place = Place(tmp_path / str(at), provider, shape, processes)
        killed = place.submit(KILL_AT=at)
        if killed.code == 0:
            break
        assert killed.code == KILLED, killed.said
        kills += 1
        again = place.submit()
        assert again.code == 0, again.said
        assert set(provider.asked.values()) == {1} and len(provider.asked) == 3, (at, again.said)
        done = place.collect()
        assert done.code == 0, done.said
        assert len(place.answers()) == 3 and len(list(whole_responses(place.run))) == 3
        assert not list((place.run / "batches").iterdir())
    assert kills >= 7


@pytest.mark.slow
@SHAPES
def test_killed_at_any_flush_while_collecting_every_answer_is_kept_once(
    tmp_path: Path, provider: BatchProvider, processes: Any, shape: str
) -> None:
    submitted = Place(tmp_path / "submitted", provider, shape, processes)
    assert submitted.submit().code == 0
    [made] = provider.batches.values()
    fates = ("succeeded", "errored", "expired")
    provider.end(made, "completed" if shape == OPENAI else "ended", lambda number: fates[number])
    kills = 0
    for at in range(1, 100):
        place = Place(tmp_path / str(at), provider, shape, processes)
        shutil.copytree(submitted.run, place.run)
        killed = place.collect(KILL_AT=at)
        if killed.code == 1:
            break
        assert killed.code == KILLED, killed.said
        kills += 1
        again = place.collect()
        assert again.code == (1 if "requests failed" in again.said else 0), again.said
        responses = list(whole_responses(place.run))
        assert len(responses) == 3 and len({one.key for one in responses}) == 3, (at, again.said)
        [batch] = read_batches(place.run).values()
        assert (batch.step, batch.answered, batch.failed) == ("collected", 1, 2)
        assert not list((place.run / "batches").iterdir())
    assert kills >= 5


@SHAPES
def test_an_interruption_waits_until_a_submission_is_noted(
    tmp_path: Path, provider: BatchProvider, processes: Any, shape: str
) -> None:
    place = Place(tmp_path, provider, shape, processes)
    child: list[int] = []
    creating = ("/v1/batches", "/v1/messages/batches")

    def trouble(method: str, path: str, number: int) -> Trouble | None:
        interrupt = method == "POST" and path in creating and not provider.batches
        return Trouble(after=True, act=lambda: os.kill(child[0], signal.SIGINT)) if interrupt else None

    provider.trouble = trouble
    stopped = place.submit("--batch-requests", "1", interrupt=child)
    assert stopped.code == 130 and "stopping when" in stopped.said, stopped.said
    assert [batch.step for batch in read_batches(place.run).values()] == ["submitted"]
    assert len(provider.batches) == 1
    assert place.submit().code == 0
    assert set(provider.asked.values()) == {1} and len(provider.asked) == 3


def test_waiting_can_be_interrupted(tmp_path: Path, processes: Any) -> None:
    with batching(ends=None) as provider:
        place = Place(tmp_path, provider, OPENAI, processes)
        place.submit()
        child: list[int] = []
        provider.trouble = lambda method, path, number: Trouble(
            after=True, act=lambda: os.kill(child[0], signal.SIGINT)
        )
        stopped = place.collect("--wait", "50", interrupt=child)
        assert stopped.code == 130 and "the same command goes on" in stopped.said
        assert "Traceback" not in stopped.said


def test_the_commands_say_how_things_stand(tmp_path: Path, processes: Any) -> None:
    with batching(ends=None) as provider:
        place = Place(tmp_path, provider, OPENAI, processes)
        missing = place.call("batch", "status", place.run)
        assert missing.code == 3 and "no such file" in missing.said
        assert place.submit("--model", "random").code == 2
        submitted = place.submit("--json")
        assert submitted.code == 0 and submitted.json["models"][0]["left"] == 0
        assert len(submitted.json["models"][0]["batches"]) == 1
        waiting = place.collect("--json")
        assert waiting.code == 1 and "1 batches have not ended" in waiting.said
        assert waiting.json["batches"][0]["step"] == "submitted"
        live = place.call("run", place.bench, "--model", place.model, "--out", place.run)
        assert live.code == 1 and "3 requests are in batches" in live.said and not provider.live
        status = place.call("batch", "status", place.run)
        assert status.code == 0 and "in_progress" in status.said and "toy" in status.said
        provider.end(provider.batches["batch_openai_0"], "completed")
        assert place.collect().code == 0
        nothing = place.collect()
        assert nothing.code == 0 and "no batch is open" in nothing.said
        live = place.call("run", place.bench, "--model", place.model, "--out", place.run)
        assert live.code == 0 and not provider.live
        assert place.call("batch", "cancel", place.run, "--let-go").code == 2
        assert place.call("batch", "cancel", place.run, "--batch", "ff").code == 2
        assert place.call("pool", "check", place.run).code == 0
        found = b"".join(path.read_bytes() for path in place.run.rglob("*") if path.is_file())
        assert KEY.encode() not in found


def test_what_batches_may_cost_counts_for_a_run(tmp_path: Path, processes: Any) -> None:
    with batching(ends=None) as provider:
        place = Place(tmp_path, provider, OPENAI, processes, count=4)
        prices = 'prices_from = "x"\n' + "".join(
            f'[[prices]]\ntier = "{tier}"\ninput = "0"\noutput = "10000"\n' for tier in ("batch", "default")
        )
        text = place.model.read_text(encoding="utf-8")
        head, fields = text.split("[parameters]")
        place.model.write_text(f"{head}{prices}[parameters]{fields}", encoding="utf-8")
        # A request may cost one dollar: two are in a batch, and one more fits below three and a half.
        assert place.submit("--limit", "2", "--max-cost", "3.5").code == 0
        live = place.call("run", place.bench, "--model", place.model, "--out", place.run, "--max-cost", "3.5")
        assert live.code == 1
        # The answer cost 0.2, so that another one fits as well.
        assert len(provider.live) == 2
        refused = place.submit("--limit", "2", "--repeats", "2", "--max-cost", "3")
        assert refused.code == 1 and "requests are not submitted" in refused.said
        assert len(provider.batches) == 1


@pytest.mark.slow
@SHAPES
def test_memory_does_not_grow_with_prompts_and_answers(tmp_path: Path, processes: Any, shape: str) -> None:
    """300 prompts of half a megabyte, and as many answers of 100 KB, take what 20 take."""
    peaks = []
    for count in (20, 300):
        with batching() as provider:
            place = Place(tmp_path / str(count), provider, shape, processes)
            provider.text = lambda body: "word " * 20_000
            examples = mixed(count)
            with (place.bench / "examples.jsonl").open("w", encoding="utf-8") as stream:
                for one in examples:
                    value = one.to_json()
                    value["user_prompt"] += "text " * 100_000
                    stream.write(json.dumps(value) + "\n")
            submitted, collected = place.submit(), place.collect()
            assert (submitted.code, collected.code) == (0, 0), submitted.said + collected.said
            assert len(place.answers()) == count
            peaks.append((submitted.peak, collected.peak))
    (few, few_collected), (many, many_collected) = peaks
    print("peaks in KB:", shape, peaks)
    assert many - few < 40_000 and many_collected - few_collected < 60_000


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['gniah-eval', 'batch', 'submit', '--help']\n"
        "from gniah.evaluator.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'litellm', 'httpx', 'scipy', 'pandas', 'openai'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with contextlib.suppress(ValueError):
        assert done.stdout.index("--batch-requests")
    assert JOURNAL_NAME in done.stdout
