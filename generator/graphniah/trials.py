"""Trials: how long the needles of some settings are, and how far a pool of paths carries, before anything is built."""

from __future__ import annotations

from dataclasses import dataclass

from gniah.generator.graphniah.building import ExampleBuilder
from gniah.generator.graphniah.compatibility import members
from gniah.generator.graphniah.pool_files import PathPool
from gniah.generator.packing import NEAR
from gniah.records.graphniah.settings import Settings
from gniah.records.streams import Stream

# Example after example is tried until one could be measured; a graph where this often nothing comes about says nothing.
MOST_TRIALS = 5
SIMULATIONS = 20


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
            pick = stream.choice(list(members(open_paths)))
            open_paths &= pool.index.compatible_with((pick,))
            count += 1
        most = max(most, count)
    return most


def components_wanted(settings: Settings, trial: Trial) -> int:
    """Return how many components a prompt of further components needs in all to reach its length."""
    left = settings.context_length - NEAR - trial.request
    return settings.components + max(0, -int(-left // trial.component))
