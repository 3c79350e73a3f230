"""Step 4: drawing distractors until the prompt is full (GraphNIAH A.2.4), for any family.

The rule, whichever way it is computed: distractors are drawn one at a time until the whole request reaches L tokens
under any tokenizer or is within 100 of it. Of the last one, blocks are kept from its beginning as long as the largest
count is at most L. Every block has a random number from the moment it is drawn, and the context stands in the order
of these numbers, for every count too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gniah.generator.block_lengths import TOGETHER, BlockLengths, count_together
from gniah.generator.requests import Request
from gniah.generator.running import RunningCounts
from gniah.records.errors import GniahError
from gniah.records.streams import Stream

NEAR = 100
NEEDLE = -1


@dataclass(frozen=True, slots=True)
class Distractor:
    """One distractor as it was drawn: its blocks in order, and what `pool.jsonl` says of its source.

    `lengths` are those of its blocks under the tokenizers of the request, where somebody remembers them.
    """

    source: Mapping[str, Any]
    blocks: tuple[str, ...]
    lengths: BlockLengths | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block with its random number. `distractor` is the distractor's number, or NEEDLE; `block` counts within it."""

    number: int
    distractor: int
    block: int
    text: str

    @property
    def place(self) -> tuple[int, int, int]:
        """Return what the context is sorted by: the random number, then the order of drawing."""
        return (self.number, self.distractor, self.block)


@dataclass(frozen=True, slots=True)
class Packed:
    """A filled prompt: its blocks in context order, the counts by tokenizer, and how it came to an end.

    `kept` says for each distractor how many of its blocks stand in the prompt; `stopped` is "near" (within 100 tokens
    of L), "full" (the next block did not fit) or "exhausted" (nothing was left to draw).
    """

    blocks: tuple[PlacedBlock, ...]
    counts: Mapping[str, int]
    distractors: tuple[Distractor, ...]
    kept: tuple[int, ...]
    stopped: str


class Count(Protocol):
    """Counts the whole request for a context given as blocks in order, by tokenizer label."""

    def __call__(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the length of the request in tokens, by label."""


class NeedlesTooLong(Exception):
    """The needles alone exceed the limit. `counts` says by how much."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        super().__init__(f"the needles alone take {max(counts.values())} tokens")
        self.counts = counts


Pack = Callable[[Sequence[str], Iterator[Distractor], int, Request, Stream], Packed]


def pack(
    needles: Sequence[str], distractors: Iterator[Distractor], limit: int, request: Request, stream: Stream
) -> Packed:
    """Pack by the rule, with counts that are kept up as blocks come in where every tokenizer's counts add up.

    Equal to `pack_plainly`, block for block, and many times faster. With `request.recount` the finished request is
    counted whole as well. Raises NeedlesTooLong, and GniahError when the two counts differ.
    """
    running = request.running()
    if running is None or not needles:
        return pack_plainly(needles, distractors, limit, request, stream)
    packing = _Packing(running, limit)
    placed = [PlacedBlock(stream.bits(64), NEEDLE, number, text) for number, text in enumerate(needles)]
    counts = packing.add(placed, BlockLengths(needles, running.tokenizers), whole=True)[-1]
    if max(counts) > limit:
        raise NeedlesTooLong(_by_label(request, counts))
    used: list[Distractor] = []
    kept: list[int] = []
    stopped = "near" if max(counts) >= limit - NEAR else ""
    drawn = _counted_ahead(distractors)
    while not stopped:
        distractor = next(drawn, None)
        if distractor is None:
            stopped = "exhausted"
            break
        blocks = [PlacedBlock(stream.bits(64), len(used), place, text) for place, text in enumerate(distractor.blocks)]
        used.append(distractor)
        after = packing.add(blocks, distractor.lengths or BlockLengths(distractor.blocks, running.tokenizers))
        fits = len(blocks)
        if after and max(after[-1]) > limit:
            stopped = "full"
            fits = next(number for number, counted in enumerate(after) if max(counted) > limit)
        placed += blocks[:fits]
        kept.append(fits)
        if fits:
            counts = after[fits - 1]
        if not stopped and max(counts) >= limit - NEAR:
            stopped = "near"
    ordered = sorted(placed, key=_place)
    found = _by_label(request, counts)
    if request.recount:
        _confirm(found, request([block.text for block in ordered]))
    return Packed(tuple(ordered), found, tuple(used), tuple(kept), stopped)


def _counted_ahead(distractors: Iterator[Distractor]) -> Iterator[Distractor]:
    """Yield distractors as they are drawn. Short documents are drawn a few ahead, and counted together.

    Only those whose lengths somebody remembers are: they are files, and drawing one costs nothing.
    """
    waiting: list[Distractor] = []
    size = 0
    for distractor in distractors:
        waiting.append(distractor)
        size += sum(map(len, distractor.blocks))
        if distractor.lengths is None or size >= TOGETHER:
            count_together([one.lengths for one in waiting if one.lengths is not None])
            yield from waiting
            waiting, size = [], 0
    count_together([one.lengths for one in waiting if one.lengths is not None])
    yield from waiting


class _Packing:
    """The running counts of a request that is being filled."""

    def __init__(self, running: RunningCounts, limit: int) -> None:
        self._running = running
        self._limit = limit

    def add(
        self, blocks: Sequence[PlacedBlock], lengths: BlockLengths, *, whole: bool = False
    ) -> list[tuple[int, ...]]:
        """Put blocks in; return the counts after each.

        Unless all are wanted, it ends early when the limit is passed and what is left to put in cannot bring a count
        below it again.
        """
        after = []
        looked = whole
        for number, block in enumerate(blocks):
            self._running.add(block.place, block.text, lengths.of(number))
            after.append(self._running.totals)
            if not looked and max(after[-1]) > self._limit:
                looked = True
                if self._running.only_grow([left.text for left in blocks[number + 1 :]]):
                    break
        return after


def _by_label(request: Request, counts: Sequence[int]) -> dict[str, int]:
    return {tokenizer.label: count for tokenizer, count in zip(request.tokenizers, counts, strict=True)}


def _confirm(counts: Mapping[str, int], whole: Mapping[str, int]) -> None:
    """Raise GniahError unless the counts of blocks add up to those of the whole request."""
    if whole != counts:
        raise GniahError(
            f"the counts of blocks add up to {dict(counts)}, and the whole request has {dict(whole)}",
            remedy="this is a defect of gniah; please report it with the tokenizer and the corpus",
        )


def pack_plainly(
    needles: Sequence[str], distractors: Iterator[Distractor], limit: int, count: Count, stream: Stream
) -> Packed:
    """Pack by the rule as it is written: the whole request is counted after each distractor, then after each block.

    Slow, and right by inspection: it is what any faster way must agree with, block for block, and what is used for
    tokenizers of which it is not known where counts add up. Raises NeedlesTooLong.
    """
    placed = [PlacedBlock(stream.bits(64), NEEDLE, number, text) for number, text in enumerate(needles)]
    counts = _counted(placed, count)
    if max(counts.values()) > limit:
        raise NeedlesTooLong(counts)
    used: list[Distractor] = []
    kept: list[int] = []
    stopped = "near" if max(counts.values()) >= limit - NEAR else ""
    while not stopped:
        distractor = next(distractors, None)
        if distractor is None:
            stopped = "exhausted"
            break
        number = len(used)
        blocks = [PlacedBlock(stream.bits(64), number, place, text) for place, text in enumerate(distractor.blocks)]
        used.append(distractor)
        whole = _counted(placed + blocks, count)
        if max(whole.values()) <= limit:
            placed, counts = placed + blocks, whole
            kept.append(len(blocks))
            if max(counts.values()) >= limit - NEAR:
                stopped = "near"
            continue
        stopped = "full"
        kept.append(0)
        for block in blocks:
            longer = _counted([*placed, block], count)
            if max(longer.values()) > limit:
                break
            placed, counts = [*placed, block], longer
            kept[-1] += 1
    return Packed(tuple(sorted(placed, key=_place)), counts, tuple(used), tuple(kept), stopped)


def _place(block: PlacedBlock) -> tuple[int, int, int]:
    return block.place


def _counted(placed: Sequence[PlacedBlock], count: Count) -> dict[str, int]:
    return count([block.text for block in sorted(placed, key=_place)])
