"""Trials: how long the needles of some settings are, and how far a pool of paths carries, before anything is built."""

from __future__ import annotations

from dataclasses import dataclass

from gniah.generator.graphniah.bit_rows import member
from gniah.generator.graphniah.building import ExampleBuilder
from gniah.generator.graphniah.pool_files import PathPool
from gniah.generator.packing import NEAR
from gniah.records.graphniah.settings import Settings
from gniah.records.streams import Stream

# Example after example is tried until one could be measured; a graph where this often nothing comes about says nothing.
MOST_TRIALS = 5
SIMULATIONS = 20
FILLINGS = 3
# A pool that carried this far may carry the rest in another attempt: they differ by 3 to 5 parts in a hundred.
NEARLY = 0.95


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial measured, in tokens under the tokenizer that gives most.

    `request` is the whole request with its needles and nothing else, `component` what one of its `components` takes.
    """

    request: int
    component: float
    components: int


def try_needles(builder: ExampleBuilder, settings: Settings) -> Trial | None:
    """Grow and render the needles of an example as building would, and count them; None when none came about."""
    best: Trial | None = None
    for attempt in range(MOST_TRIALS):
        counted = builder.begin(settings).needles_alone(attempt)
        if counted is None:
            continue
        empty, request = counted
        trial = Trial(request, (request - empty) / settings.components, settings.components)
        if best is None or trial.request < best.request:
            best = trial
        if best.request <= settings.context_length:
            break
    return best


def components_that_fit(pool: PathPool, needed: int) -> int:
    """Return how many paths random drawing gets to stand together at best, in a few simulations.

    `needed` is how many the task draws at once; the others are drawn one after the other, as building does.
    """
    most = 0
    for number in range(SIMULATIONS):
        stream = Stream(pool.digest, "trial", number)
        drawn = pool.index.draw(needed, stream)
        if drawn is None:
            continue
        count, open_paths = needed, pool.index.compatible_with(drawn)
        while open_paths:
            pick = member(open_paths, stream.below(open_paths.bit_count()))
            open_paths &= pool.index.compatible_with((pick,))
            count += 1
        most = max(most, count)
    return most


@dataclass(frozen=True, slots=True)
class Reach:
    """How far further components carried in the best of some trials: how many in all, and about how many tokens."""

    components: int
    tokens: int


def reach_of_components(builder: ExampleBuilder, settings: Settings) -> Reach | None:
    """Grow components as building would until the pool has none that fits; return how far that carried.

    `components_that_fit` asks the paths alone; this also sees paths that other components have grown into, and
    components that are stuck. None when a trial came near the length that is wanted, and where none came about.
    """
    best: Reach | None = None
    for attempt in range(FILLINGS):
        found = builder.begin(settings).components_alone(attempt)
        if found is None:
            continue
        reach = Reach(*found)
        if reach.tokens >= NEARLY * settings.context_length:
            return None
        if best is None or reach.tokens > best.tokens:
            best = reach
    return best


def components_wanted(settings: Settings, trial: Trial) -> int:
    """Return how many components a prompt of further components needs in all to reach its length."""
    left = settings.context_length - NEAR - trial.request
    return settings.components + max(0, -int(-left // trial.component))
