"""Verification: every example answered again from its two prompts, by the text solver of its family."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from gniah.records.canonical import digest
from gniah.records.errors import BusyError, EnvironmentFault
from gniah.records.examples import Example
from gniah.records.families import family_of, load
from gniah.records.files import json_line, locked_folder, machine_trouble
from gniah.records.responses import prompt_sha256
from gniah.records.workers import Workers


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one example: what the solver found, and what the example claims."""

    qid: str
    task: str
    answer: str
    found: str | None
    reason: str | None

    @property
    def right(self) -> bool:
        """Whether the solver, which saw the two prompts only, came to the example's answer."""
        return self.found == self.answer


def verify(example: Example) -> Verdict:
    """Solve one example from its prompts and compare. Raises InputError for a question type that no family knows."""
    family, task = family_of(example.question_type, example.qid)
    solution = load(family.text_solver)(example.system_prompt, example.user_prompt)
    reason = solution.reason
    found = solution.answer
    if solution.task != task.name:
        reason, found = f"read as {solution.task}", None
    elif example.question not in example.user_prompt:
        reason, found = "the question is not in the prompt", None
    return Verdict(example.qid, task.name, example.answer, found, reason)


def verify_all(examples: Iterable[Example], *, jobs: int = 1, journal: Journal | None = None) -> Iterator[Verdict]:
    """Yield a verdict for each example, in order, with memory for a few of them at a time.

    With a journal, what it holds is not solved again, and every new verdict is written to it first.
    """
    with Workers(jobs, kept="finished verdicts are kept") if jobs > 1 else nullcontext() as workers:
        source = iter(examples)
        while batch := list(islice(source, 4 * jobs)):
            keys = [_key(example) if journal is not None else "" for example in batch]
            known = [journal.get(key) if journal is not None else None for key in keys]
            unknown = [example for example, verdict in zip(batch, known, strict=True) if verdict is None]
            fresh = workers.map(verify, unknown) if workers else map(verify, unknown)
            for key, verdict in zip(keys, known, strict=True):
                if verdict is None:
                    verdict = next(fresh)
                    if journal is not None:
                        journal.add(key, verdict)
                yield verdict


class Journal:
    """The verdicts of a verification that is under way, so that one that was stopped goes on from there.

    A verdict is kept under the hash of the example's prompts, question and answer and of the solver's own source, so
    nothing is taken over from other examples or another solver.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Verdict] = {}
        with machine_trouble(path):
            lines = path.read_bytes().split(b"\n") if path.is_file() else [b""]
            for line in lines[:-1]:
                self._take(line)
            self._stream = path.open("ab")
            # A last line that a killed process left unfinished would spoil the next one.
            self._stream.truncate(self._stream.tell() - len(lines[-1]))

    def __len__(self) -> int:
        """Return how many verdicts are known."""
        return len(self._known)

    def get(self, key: str) -> Verdict | None:
        """Return the verdict under a key, or None."""
        return self._known.get(key)

    def add(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict."""
        self._known[key] = verdict
        self._write(key, verdict)

    def close(self, *, finished: bool) -> None:
        """Let go of the file; when the verification came to its end, it goes."""
        self._stream.close()
        if finished:
            self._path.unlink(missing_ok=True)

    def _take(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            key = value.pop("key")
            self._known[key] = Verdict(**value)
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # a line that cannot be read is a verdict to be found again

    def _write(self, key: str, verdict: Verdict) -> None:
        with machine_trouble(self._path):
            self._stream.write(json_line({"key": key, **asdict(verdict)}))
            self._stream.flush()


@contextmanager
def open_journal(examples: Path) -> Iterator[Journal | None]:
    """Give the journal of a file of examples until the block ends, and remove it when it ends without an error.

    Gives None where there can be none: in a folder that cannot be written to, or that another process works in.
    """
    with ExitStack() as stack:
        journal: Journal | None = None
        with suppress(EnvironmentFault, BusyError):
            stack.enter_context(locked_folder(examples.parent))
            journal = Journal(examples.with_name(f".{examples.name}.verified"))
        try:
            yield journal
        except BaseException:
            if journal is not None:
                journal.close(finished=False)
            raise
        if journal is not None:
            journal.close(finished=True)


def _key(example: Example) -> str:
    family, _ = family_of(example.question_type, example.qid)
    prompts = prompt_sha256(example.system_prompt, example.user_prompt)
    return digest([example.qid, prompts, example.question, example.answer, _source_of(family.text_solver)])


@cache
def _source_of(reference: str) -> str:
    """Return the hash of all modules beside a solver, which is what its verdicts depend on."""
    spec = find_spec(reference.partition(":")[0])
    folder = Path(spec.origin).parent if spec and spec.origin else None
    files = sorted(folder.glob("*.py")) if folder else []
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
