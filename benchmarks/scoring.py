"""Scoring many responses: seconds on one core, peak memory, and the same bytes again.

    python benchmarks/scoring.py [--responses 1000000] [--examples 10000] [--models 10] [--work FOLDER]

It makes examples and responses of the usual shapes (reasoning with the answer in a block for most, the rest dressed,
cut, empty, refused or failed), scores a tenth of them, all of them, and all of them again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import measure

from gniah.records.examples import Example, Option
from gniah.records.files import json_line
from gniah.records.responses import Response, prompt_sha256

TASKS = ("yesno", "multiple", "counting")
SYSTEM = "You answer questions about research papers."
WORDS = (
    "From the source I followed every reference in both directions, kept a list of the papers that I had seen, and "
    "went on until no line of the context named a new one. The third block cites two papers that I had met before — "
    "so nothing is added there. “Beyond” that paper there is only one more step. "
)
SHAPES = 40


def example(number: int) -> Example:
    task = TASKS[number % 3]
    answer = ("YES" if number % 2 else "NO", "ABCD"[number % 4], str(99 + number % 151))[number % 3]
    options = tuple(Option(letter, f"A study of {letter}{number}") for letter in "ABCD") if task == "multiple" else None
    qid = hashlib.sha256(str(number).encode()).hexdigest()
    config = {
        "question_depth": 4 << number % 4,
        "component_node_count": 100 + number % 151,
        "question_format": f"reachability-{task}",
        "distractor_type": ("code", "essays", "books", "wikipedia", "disjoint-tree")[number % 5],
        "context_length": 200_000,
        "alpha": "0.1",
        "index": number,
    }
    user = f"# Question\n\nQuestion {number}?\n\n# Context\n\n{WORDS * 8}\n\n# Response Format\n\nEnd with the answer."
    return Example(
        qid, {"yesno": "yes-no", "multiple": "multiple-choice"}.get(task, task), SYSTEM, user, f"Question {number}?",
        answer, f"reachability-{task}", f"REACHABILITY_{task.upper()}", options, config, {"o200k_base": 199_950},
        "benchmark", ({"name": "benchmark", "context_length": 200_000, "random_seed": 1, "slot": number, "path": "x"},),
    )  # fmt: skip


def text(one: Example, number: int) -> str:
    """Return an answer in one of the shapes that models give; most are as they were asked for."""
    right = one.answer if number % 7 else {"YES": "NO", "NO": "YES", "A": "B"}.get(one.answer, "100")
    shape, thought = number % SHAPES, WORDS * (1 + number % 5)
    shapes = {
        30: f"<think>{thought}\\answer{{NO}}</think>\\answer{{{right}}}",
        31: f"{thought}\n\n**\\answer{{\\text{{{right}}}}}**",
        32: f"{thought}\n\n\\answer{{{right} papers}}",
        33: f"{thought}\n\nThe final answer is {right}.",
        34: f"{thought}\n\n$\\boxed{{{right}}}$",
        35: f"\\answer{{NO}} No, I was wrong. {thought}\n\n\\answer{{{right}}}",
        36: f"{thought}\n\n\\answer{{YES}} or \\answer{{{right}}}",
        37: "",
        38: thought,
        39: right,
    }
    return shapes.get(shape, f"{thought}\n\n\\answer{{{right}}}")


def responses(examples: list[Example], models: int, limit: int) -> Iterator[bytes]:
    hashes = {one.qid: prompt_sha256(one.system_prompt, one.user_prompt) for one in examples}
    repeats = -(-limit // (len(examples) * models))
    for count in range(limit):
        model, rest = divmod(count, len(examples) * repeats)
        place, repeat = divmod(rest, repeats)
        one = examples[place]
        number = place * 31 + repeat * 7 + model
        yield json_line(
            Response(
                key=hashlib.sha256(f"{model} {repeat} {one.qid}".encode()).hexdigest(),
                qid=one.qid,
                model=f"vendor/model-{model}",
                repeat=repeat,
                prompt_sha256=hashes[one.qid],
                text=text(one, number),
                finish_reason="length" if number % SHAPES == 38 else "stop",
                usage={"prompt_tokens": 200_100, "completion_tokens": 400 + number % 999, "total_tokens": 201_000},
                parameters={"reasoning_effort": "low", "temperature": 1.0, "max_tokens": 32_000},
                base_address="https://example.org/v1",
                error="timeout" if number % 997 == 0 else None,
                seconds=10.5 + number % 60,
            ).to_json()
        )


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.json")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=1_000_000)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--work", type=Path, help="folder to work in (1 GB a million responses and more)")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # the programs that are started inherit it
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(dir=given.work) as place:
        bench, run = Path(place) / "examples.jsonl", Path(place) / "run"
        run.mkdir()
        pool = run / "inference_pool.jsonl"
        examples = [example(number) for number in range(given.examples)]
        bench.write_bytes(b"".join(json_line(one.to_json()) for one in examples))
        digests = []
        for limit in (given.responses // 10, given.responses, given.responses):
            with pool.open("wb") as stream:
                lines = responses(examples, given.models, given.responses)
                step = given.responses // limit  # a tenth of every model's, so that all of its files are there
                stream.writelines(islice(lines, 0, None, step))
            shutil.rmtree(run / "eval", ignore_errors=True)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = measure.run("gniah-eval", "score", bench, run, check=False, quiet=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            digests.append(digest(run / "eval"))
            size = sum(path.stat().st_size for path in (run / "eval").rglob("*.json"))
            print(
                f"{limit:,} responses ({pool.stat().st_size / 1e6:,.0f} MB): {done.seconds:.1f} s, {busy:.1f} s of it "
                f"computing, peak "
                f"{done.peak_mb:,.0f} MB, {size / 1e6:,.0f} MB written",
                flush=True,
            )
        print("the same bytes again" if digests[1] == digests[2] else "OTHER BYTES")
        raise SystemExit(digests[1] != digests[2])


if __name__ == "__main__":
    main()
