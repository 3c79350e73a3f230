"""Verification: every example answered again from its two prompts, by the text solver of its family."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice

from gniah.records.examples import Example
from gniah.records.families import family_of, load


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
    family, task = family_of(example.question_type)
    solution = load(family.text_solver)(example.system_prompt, example.user_prompt)
    reason = solution.reason
    found = solution.answer
    if solution.task != task.name:
        reason, found = f"read as {solution.task}", None
    elif example.question not in example.user_prompt:
        reason, found = "the question is not in the prompt", None
    return Verdict(example.qid, task.name, example.answer, found, reason)


def verify_all(examples: Iterable[Example], *, jobs: int = 1) -> Iterator[Verdict]:
    """Yield a verdict for each example, in order, with memory for a few of them at a time."""
    if jobs <= 1:
        yield from map(verify, examples)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as executor:
        source = iter(examples)
        while batch := list(islice(source, 4 * jobs)):
            yield from executor.map(verify, batch)
