"""What a list asks for that its graph cannot give, found before the first example is built.

Some of it is exact (a component cannot be smaller than its backbone, four paths that stand together either exist or
do not), the rest is measured on trials: a few real examples are grown, rendered and counted, a few sequences of
compatible paths are drawn, and a few prompts of further components are grown as far as they go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gniah.generator.graphniah.building import COMPONENTS_TYPE, ExampleBuilder
from gniah.generator.graphniah.experiments import task_name
from gniah.generator.graphniah.materials import Materials
from gniah.generator.graphniah.pool_files import PathPool
from gniah.generator.graphniah.trials import (
    FILLINGS,
    Trial,
    components_that_fit,
    components_wanted,
    reach_of_components,
    try_needles,
)
from gniah.records.errors import ImpossibleRequest
from gniah.records.graphniah.settings import Settings, distractor_in_tables

_Cell = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Impossible:
    """One cell of a list that cannot be had: which, why, and the nearest setting that can."""

    cell: str
    reason: str
    remedy: str


def impossible_slots(
    slots: Sequence[Settings], materials: Materials, *, strict_fill: bool = False
) -> dict[Settings, Impossible]:
    """Return why slots of a list cannot be built; what is not named may still turn out hard, never known impossible."""
    found: dict[Settings, Impossible] = {}
    cells: dict[_Cell, list[Settings]] = defaultdict(list)
    groups: dict[tuple[int, int], Impossible | None] = {}
    for slot in slots:
        trouble = _too_small(slot)
        if trouble is None:
            key = (slot.question_depth, slot.components)
            if key not in groups:
                groups[key] = _no_group(slot, materials.pools[slot.question_depth])
            trouble = groups[key]
        if trouble is not None:
            found[slot] = trouble
        else:
            cells[slot.question_type, slot.question_depth].append(slot)
    builder = ExampleBuilder(materials)
    for cell in sorted(cells):
        found.update(_measured(cells[cell], builder, materials, strict_fill))
    return found


def refuse(found: Iterable[Impossible]) -> None:
    """Raise ImpossibleRequest that names every impossible cell, when there is one."""
    cells = list(dict.fromkeys(found))
    if not cells:
        return
    lines = [f"{cell.cell}: {cell.reason}; {cell.remedy}" for cell in cells]
    raise ImpossibleRequest(
        "not all that is asked for can be had:\n  " + "\n  ".join(lines),
        remedy="change these settings as the lines above say, or leave them out with --skip-impossible",
    )


def _too_small(settings: Settings) -> Impossible | None:
    depth, least = settings.question_depth, settings.backbone_length
    if settings.component_node_count >= least:
        return None
    return Impossible(
        f"depth {depth}, size under {least}",
        f"a component of depth {depth} has at least {least} papers",
        f"use sizes of {least} or more, or smaller depths",
    )


def _no_group(settings: Settings, pool: PathPool) -> Impossible | None:
    needed, depth = settings.components, settings.question_depth
    if pool.index.has_group(needed):
        return None
    together = len(pool.index.largest_group_found())
    return Impossible(
        f"{task_name(settings.question_type)}, depth {depth}",
        f"{needed} paths must stand together, and of the {len(pool.paths)} paths of depth {depth} no more than "
        f"{together} do",
        "leave this depth or task out, sample more paths, or use a larger graph",
    )


def _measured(
    slots: Sequence[Settings], builder: ExampleBuilder, materials: Materials, strict_fill: bool
) -> Mapping[Settings, Impossible]:
    """Return the slots of one cell (task, depth) that are too long, or that nothing can fill."""
    by_size: dict[int, list[Settings]] = defaultdict(list)
    for slot in slots:
        by_size[slot.component_node_count].append(slot)
    sizes = sorted(by_size)
    trials: dict[int, Trial | None] = {}

    def fits(size: int) -> bool:
        if size not in trials:
            trials[size] = try_needles(builder, by_size[size][0])
        trial = trials[size]
        return trial is None or trial.request <= by_size[size][0].context_length

    # Longer components take more tokens: the greatest size that fits is found by halving.
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(sizes[middle - 1]):
            low = middle
        else:
            high = middle - 1
    found: dict[Settings, Impossible] = {}
    if sizes[low:]:
        trouble = _too_long(by_size[sizes[low]][0], sizes, low, trials)
        found.update((slot, trouble) for size in sizes[low:] for slot in by_size[size])
    for kind in sorted({slot.distractor_type for slot in slots}):
        fillable = [slot for size in sizes[:low] for slot in by_size[size] if slot.distractor_type == kind]
        found.update(_unfillable(fillable, trials, _Filling(builder, materials, strict_fill)))
    return found


@dataclass(frozen=True, slots=True)
class _Filling:
    """What tells whether settings can be filled."""

    builder: ExampleBuilder
    materials: Materials
    strict_fill: bool

    def trouble(self, settings: Settings, trial: Trial) -> Impossible | None:
        if settings.distractor_type == COMPONENTS_TYPE:
            pool = self.materials.pools[settings.question_depth]
            return _paths_run_out(settings, trial, pool) or _components_run_out(settings, trial, pool, self.builder)
        return _corpus_runs_out(settings, trial, self.materials) if self.strict_fill else None


def _unfillable(
    slots: Sequence[Settings], trials: Mapping[int, Trial | None], filling: _Filling
) -> Mapping[Settings, Impossible]:
    """Return the slots, all with one type of distractors and in order of size, that nothing can fill.

    The smaller the components, the more is left to fill, so the sizes that cannot be filled come first, and the last of
    them is found by halving.
    """
    first_of = {slot.component_node_count: slot for slot in reversed(slots)}
    sizes = sorted(first_of)
    judged: dict[int, Impossible | None] = {}

    def trouble(place: int) -> Impossible | None:
        size = sizes[place]
        if size not in judged:
            trial = trials.get(size) or _scaled(trials, size)
            judged[size] = filling.trouble(first_of[size], trial) if trial else None
        return judged[size]

    if not sizes or trouble(0) is None:
        return {}
    last, fillable = 0, len(sizes)
    if trouble(len(sizes) - 1) is not None:
        last = len(sizes) - 1
    while fillable - last > 1:
        middle = (last + fillable) // 2
        if trouble(middle) is None:
            fillable = middle
        else:
            last = middle
    named = trouble(last)
    return {slot: named for slot in slots if named is not None and slot.component_node_count <= sizes[last]}


def _scaled(trials: Mapping[int, Trial | None], size: int) -> Trial | None:
    """Return what a size would take by the nearest size that was tried: tokens grow with the number of papers."""
    tried = [(abs(other - size), other, trial) for other, trial in trials.items() if trial is not None]
    if not tried:
        return None
    _, other, trial = min(tried, key=lambda item: item[:2])
    component = trial.component * size / other
    return Trial(round(trial.request + (component - trial.component) * trial.components), component, trial.components)


def _too_long(settings: Settings, sizes: Sequence[int], first: int, trials: Mapping[int, Trial | None]) -> Impossible:
    """Return what is wrong with the sizes from `sizes[first]` on."""
    measured = [trials.get(size) or _scaled(trials, size) for size in (sizes[first], sizes[-1])]
    tokens = sorted({trial.request for trial in measured if trial is not None})
    takes = " to ".join(f"{count:,}" for count in tokens) or "too many"
    smaller = f"sizes of at most {sizes[first - 1]}" if first else "smaller sizes"
    return Impossible(
        f"{task_name(settings.question_type)}, depth {settings.question_depth}, sizes of {sizes[first]} and more",
        f"the papers alone take about {takes} tokens, and the whole request may have {settings.context_length:,}",
        f"use --context-length {max(tokens, default=settings.context_length + 1)} or more, or {smaller}",
    )


def _paths_run_out(settings: Settings, trial: Trial, pool: PathPool) -> Impossible | None:
    """Return what is wrong when too few paths can stand together, whatever is grown from them."""
    wanted = components_wanted(settings, trial)
    together = components_that_fit(pool, settings.components)
    if wanted <= together:
        return None
    reached = round(trial.request + (together - settings.components) * trial.component)
    return _too_few(
        settings,
        f"about {wanted} components are needed to reach {settings.context_length:,} tokens, and drawing from the pool "
        f"of {len(pool.paths):,} paths brings at most about {together} to stand together",
        reached,
    )


def _components_run_out(settings: Settings, trial: Trial, pool: PathPool, builder: ExampleBuilder) -> Impossible | None:
    """Return what is wrong when what is grown leaves too few paths free, or too few papers to grow."""
    reach = reach_of_components(builder, settings)
    if reach is None:
        return None
    return _too_few(
        settings,
        f"about {components_wanted(settings, trial)} components are needed to reach {settings.context_length:,} "
        f"tokens, and the pool of {len(pool.paths):,} paths carries {reach.components} (about "
        f"{round(reach.tokens, -3):,} tokens, the best of {FILLINGS} trials): the other paths hold papers that were "
        "taken by then, or cannot grow",
        reach.tokens,
    )


def _too_few(settings: Settings, reason: str, reached: int) -> Impossible:
    return Impossible(
        f"{task_name(settings.question_type)}, depth {settings.question_depth}, sizes of "
        f"{settings.component_node_count} and less, {distractor_in_tables(settings.distractor_type)}",
        reason,
        f"use --context-length {max(reached // 1000 * 1000, 1000)} or less, larger sizes, more paths (gniah-gen paths "
        "--count), or a larger graph",
    )


def _corpus_runs_out(settings: Settings, trial: Trial, materials: Materials) -> Impossible | None:
    corpus = materials.corpora[settings.distractor_type]
    missing = settings.context_length - trial.request
    tokens = {tokenizer.label: 0 for tokenizer in materials.tokenizers}
    for number in range(len(corpus)):
        text = "\n\n".join(corpus.document(number).blocks)
        for tokenizer in materials.tokenizers:
            tokens[tokenizer.label] += tokenizer.count(text)
        if max(tokens.values()) >= missing:
            return None
    return Impossible(
        f"{task_name(settings.question_type)}, {distractor_in_tables(settings.distractor_type)}",
        f"the whole corpus has {max(tokens.values()):,} tokens, and {missing:,} are to be filled",
        "give a larger corpus, use a shorter context, or leave out --strict-fill",
    )
