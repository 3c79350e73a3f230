"""Prompts filled with further components: how far a pool of paths carries, what a component costs, and verifying.

    python benchmarks/disjoint.py --store STORE --tokenizers FOLDER --work FOLDER \\
        [--counts 1000,10000] [--sizes 100,250] [--length 922000] [--examples 3]

FOLDER of tokenizers as for `packing.py`. For a graph with few hubs: `scale.py --papers 300000 --citations 900000
--no-networkx`, then its store. Each row is a process of its own; seconds are CPU seconds of one thread, means of the
examples, but for what is said here.

- in all: how many components stand together when the pool has none left that fits, and how many papers they have; least
  and most of the examples. A row of examples that cannot be had ends there, with what `gniah-gen examples` would say.
- used: how many stand in the finished prompt, the task's included. taken, stuck: how many more paths were drawn and
  refused, because papers on them had been taken, or because what was grown from them got stuck.
- first, last: milliseconds for one of the first ten and one of the last ten components, with what was refused before
  it; in the last example, when most of what is asked of the store has been asked before.
- drawing, packing: seconds of an example, the recount left out. verify: answering one from its text.
- unused: what is left of L under the fullest tokenizer. MB: peak memory of the process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from measure import run

from gniah.cypher import open_store
from gniah.generator.graphniah import ListSettings, open_materials
from gniah.generator.graphniah.building import Built, ExampleBuilder
from gniah.generator.graphniah.experiments import slots
from gniah.generator.graphniah.materials import Materials
from gniah.generator.graphniah.possibility import impossible_slots
from gniah.generator.graphniah.subgraphs import SubgraphSampler
from gniah.generator.packing import Distractor, Packed, pack
from gniah.generator.requests import Request
from gniah.generator.verification import verify
from gniah.records.graphniah.settings import Settings
from gniah.records.streams import Stream

DEPTH = 4


@dataclass
class Timed:
    """Packing that notes the CPU seconds of each draw and, apart from them, its own."""

    draws: list[float] = field(default_factory=list)
    packing: float = 0.0

    def __call__(
        self, needles: Sequence[str], distractors: Iterator[Distractor], limit: int, request: Request, stream: Stream
    ) -> Packed:
        """Pack as the builder asks."""
        self.draws = []

        def watched() -> Iterator[Distractor]:
            while True:
                began = time.process_time()
                distractor = next(distractors, None)
                self.draws.append(time.process_time() - began)
                if distractor is None:
                    return
                yield distractor

        began = time.process_time()
        packed = pack(needles, watched(), limit, request, stream)
        self.packing = time.process_time() - began - sum(self.draws)
        return packed


@dataclass(frozen=True)
class Row:
    """What one row of the table is about."""

    store: Path
    paths: Path
    tokenizers: tuple[str, ...]
    cutoff: str
    count: int
    size: int
    length: int
    examples: int

    def settings(self) -> ListSettings:
        """Return the settings of its examples."""
        return ListSettings(
            name="disjoint", count=self.examples, tasks=("yes-no",), depths=(DEPTH,), sizes=(self.size, self.size),
            distractor_types=("disjoint-component",), context_length=self.length, seed=1, alpha="0.1",
            cutoff_date=self.cutoff, templates="plain",
        )  # fmt: skip


def carried(settings: Settings, materials: Materials, builder: ExampleBuilder) -> tuple[int, int]:
    """Return how many components stand together at the end of the pool, and how many papers they have."""
    pool = materials.pools[DEPTH]
    sampler = SubgraphSampler(settings, materials.qid(settings), pool, builder.neighbourhoods)
    attempt = 0
    while (sampled := sampler.sample(attempt)) is None:
        attempt += 1
    components = [*sampled.components, *(component for component, _ in sampler.further(sampled, attempt))]
    return len(components), sum(len(component.papers) for component in components)


def restarts(built: Sequence[Built], reason: str) -> float:
    return fmean(one.record.building["restarts"].get(f"additional component {reason}", 0) for one in built)


def between(values: Sequence[int]) -> str:
    return f"{min(values):,}–{max(values):,}"


def measured(row: Row) -> str:
    """Return one line of the table."""
    settings = row.settings()
    with open_materials(settings, store=row.store, paths=row.paths, tokenizers=row.tokenizers) as materials:
        timed = Timed()
        builder = ExampleBuilder(materials, pack=timed, recount=False)
        ends = [carried(slot, materials, builder) for slot in slots(settings)]
        start = f"{row.count:6,} {row.size:5} {between([n for n, _ in ends]):>9} {between([p for _, p in ends]):>14}"
        refused = impossible_slots(slots(settings), materials)
        if refused:
            return f"{start}  {next(iter(refused.values())).reason}"
        built, drawing, packing, verifying = [], [], [], []
        for slot in slots(settings):
            built.append(builder.build(slot))
            drawing.append(sum(timed.draws))
            packing.append(timed.packing)
            began = time.process_time()
            solution = verify(built[-1].example)
            verifying.append(time.process_time() - began)
            if not solution.right:
                raise SystemExit(f"the text says something else than {built[-1].record.qid}")
    used = [len(one.record.components) for one in built]
    unused = fmean(min(one.record.unused.values()) for one in built) / row.length
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = timed.draws[:-1]  # the last may be the one that is cut
    cells = [
        f"{between(used):>9} {restarts(built, 'confusable'):7.0f} {restarts(built, 'stuck'):6.1f}",
        f"{fmean(whole[:10]) * 1000:6.0f} {fmean(whole[-10:]) * 1000:6.0f} {fmean(drawing):8.1f} {fmean(packing):8.1f}",
        f"{fmean(verifying):7.2f} {unused:7.2%} {peak:6.0f}",
    ]
    return " ".join([start, *cells, " " + ", ".join(sorted({one.record.stopped for one in built}))])


HEADINGS = (
    " paths  size    in all      of papers      used   taken  stuck  first   last  drawing  packing  verify  unused"
    "     MB  stopped"
)


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--counts", default="1000,10000")
    parser.add_argument("--sizes", default="100,250")
    parser.add_argument("--length", type=int, default=922_000)
    parser.add_argument("--examples", type=int, default=3)
    given = parser.parse_args()
    with open_store(str(given.store)) as graph:
        cutoff = str(graph.manifest.content["cutoff"])
    names = ["tiktoken:o200k_base"] + [
        f"{label}=file:{given.tokenizers / folder / 'tokenizer.json'}"
        for label, folder in (("gemma3", "gemma3-3.7.2"), ("qwen3", "qwen3-3.7.2"))
    ]
    spawn = multiprocessing.get_context("spawn")
    for count in map(int, given.counts.split(",")):
        paths = given.work / f"paths-{count}"
        words = ("gniah-gen", "paths", "--store", given.store, "--out", paths, "--depths", str(DEPTH))
        run(*words, "--count", str(count))
        print(HEADINGS)
        for size in map(int, given.sizes.split(",")):
            row = Row(given.store, paths, tuple(names), cutoff, count, size, given.length, given.examples)
            with ProcessPoolExecutor(1, mp_context=spawn) as one:
                print(one.submit(measured, row).result(), flush=True)
        print()


if __name__ == "__main__":
    main()
