"""The quickstart: the whole job on a graph that ships with gniah, by the commands a user would type.

No room imports another for it: every step is one of the three programs, shown and then run in a process of its own.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from gniah.records.command_line import emit, table
from gniah.records.errors import GniahError, MissingDependency
from gniah.records.examples import read_examples
from gniah.records.graphniah.settings import distractor_in_tables

CUTOFF = "2010-01-01"
DEPTH = "4"
PATHS = "1000"
EXAMPLES = "24"
SIZES = "20-30"
CONTEXT_LENGTH = "16000"
MODELS = ("text-solver", "random", "constant")

_MODULES = {"gniah-load": "gniah.loader.cli", "gniah-gen": "gniah.generator.cli", "gniah-eval": "gniah.evaluator.cli"}


class StepFailed(GniahError):
    """A command of the quickstart ended with an error; it has said itself what was wrong."""

    def __init__(self, command: str, exit_code: int) -> None:
        super().__init__(f"{command}: ended with exit status {exit_code}", remedy="see its message above")
        self.exit_code = exit_code


def run_quickstart(out: Path, jobs: int) -> None:
    """Run every step into a folder; a second call reuses what is there."""
    out.mkdir(parents=True, exist_ok=True)
    emit("A benchmark from real citations: the RFCs published since 2010, and the references among them.")
    for heading, command in _steps(out, jobs):
        emit(f"\n{heading}\n")
        run(command)
        if command[:2] == ["gniah-gen", "examples"]:
            emit("\n" + example_table(out / "bench" / "examples.jsonl"))
    emit("\n9. Look at one example: its question, its proof, and a picture of its subgraph.\n")
    run(_show_one(out))
    emit("\nThe files:\n")
    emit(table(("where", "what"), _files(out)))


def _steps(out: Path, jobs: int) -> Iterator[tuple[str, list[str]]]:
    graph, store, pools, bench, results = (str(out / name) for name in ("graph", "store", "paths", "bench", "results"))
    papers, citations = _shards()
    yield (
        "1. Filter the shards: eligible papers, and the citations among them.",
        ["gniah-load", "filter", "--papers", papers, "--citations", citations, "--cutoff", CUTOFF, "--out", graph],
    )
    yield "2. Import them into a graph store.", ["gniah-load", "import", graph, "--store", store]
    yield (
        f"3. Prune the graph for question depth {DEPTH} and sample paths, the backbones of examples.",
        ["gniah-gen", "paths", "--store", store, "--out", pools, "--depths", DEPTH, "--count", PATHS],
    )
    yield (
        f"4. Build {EXAMPLES} examples of up to {CONTEXT_LENGTH} tokens, hidden in Python's sources or in more papers.",
        [
            *("gniah-gen", "examples", "--store", store, "--paths", pools, "--out", bench, "--count", EXAMPLES),
            *("--name", "quickstart", "--context-length", CONTEXT_LENGTH, "--depths", DEPTH, "--sizes", SIZES),
            *("--vary", "question-format", "--corpus", f"code={sysconfig.get_path('stdlib')}", "--jobs", str(jobs)),
        ],
    )
    yield "5. Answer every example again from its text alone.", ["gniah-gen", "verify", bench, "--jobs", str(jobs)]
    yield "6. Audit the examples in Cypher, against the store.", ["gniah-gen", "audit", bench, "--store", store]
    models = [word for model in MODELS for word in ("--model", model)]
    yield "7. Ask three models that run offline.", ["gniah-eval", "run", bench, *models, "--out", results]
    yield "8. Score their answers.", ["gniah-eval", "score", bench, results]


def _show_one(out: Path) -> list[str]:
    """Return the command that shows the first example whose answer is a path."""
    bench, store, picture = (str(out / name) for name in ("bench", "store", "example.svg"))
    first = next(example for example in read_examples(out / "bench" / "examples.jsonl") if example.answer == "YES")
    return ["gniah-gen", "show", bench, first.qid[:12], "--store", store, "--svg", picture]


def _files(out: Path) -> list[tuple[str, str]]:
    return [
        (str(out / "graph"), "papers.parquet, citations.parquet: what the filter kept"),
        (str(out / "store"), "the graph store; try: gniah-load query hubs --store " + shlex.quote(str(out / "store"))),
        (str(out / "paths"), "sampled_paths.json, disjoint_path_groups.json"),
        (str(out / "bench" / "examples.jsonl"), "the benchmark: prompts and answers"),
        (str(out / "bench" / "pool.jsonl"), "all that is known of each example"),
        (str(out / "results"), "inference_pool.jsonl: what the models said; eval: their scores"),
        (str(out / "example.svg"), "a picture of one example's subgraph"),
    ]


def example_table(path: Path) -> str:
    """Return a table of the examples of a file."""
    rows = [
        (
            example.qid[:12],
            example.task,
            example.config["question_depth"],
            example.config["component_node_count"],
            distractor_in_tables(str(example.config["distractor_type"])),
            max(example.token_counts.values()),
            example.answer,
        )
        for example in read_examples(path)
    ]
    return table(("qid", "task", "k", "papers", "distractors", "tokens", "answer"), rows)


def _shards() -> tuple[str, str]:
    """Return the shards that ship with the loader, found as files: the generator imports no loader."""
    spec = find_spec("gniah.loader")
    if spec is None or spec.origin is None:
        raise MissingDependency("gniah.loader is not installed", remedy="pip install --force-reinstall gniah")
    folder = Path(spec.origin).parent / "data" / "rfc"
    return str(folder / "papers.jsonl.gz"), str(folder / "citations.jsonl.gz")


def run(command: Sequence[str]) -> None:
    """Show a command and run it. Raises StepFailed when it ends with an error."""
    emit("$ " + shlex.join(command))
    sys.stdout.flush()
    done = subprocess.run([*_program(command[0]), *command[1:]], check=False)  # noqa: S603  (our own programs)
    if done.returncode:
        raise StepFailed(command[0], done.returncode)


def _program(name: str) -> list[str]:
    """Return how a program of ours is started: the script beside this Python, else its module."""
    beside = Path(sys.executable).parent
    script = shutil.which(name, path=str(beside))
    if script is not None:
        return [script]
    return [sys.executable, "-c", f"from {_MODULES[name]} import main; main()"]


__all__ = ["example_table", "run_quickstart"]
