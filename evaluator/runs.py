"""Asking a model that answers in this process, example by example, into the pool of a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gniah.evaluator.models import Model
from gniah.evaluator.pool import InferencePool
from gniah.records.errors import EnvironmentFault, MissingDependency, UsageFault
from gniah.records.examples import Example
from gniah.records.responses import Request, Response

# What costs nothing to make again is flushed to the disk in batches. What was paid for is flushed at once.
OFFLINE_SYNC_EVERY = 200

# What every further request would meet too, until the user has mended it.
_ENDS_A_RUN = (UsageFault, MissingDependency, EnvironmentFault, MemoryError)


@dataclass(slots=True)
class RunCounts:
    """What a run did for one model: new answers, answers that were there, failures."""

    model: str
    answered: int = 0
    already: int = 0
    failed: int = 0


def run_model(
    model: Model,
    examples: Iterable[Example],
    pool: InferencePool,
    *,
    repeats: int = 1,
    advance: Callable[[], None] = lambda: None,
) -> RunCounts:
    """Ask a model every example, `repeats` times each, in order, but for what the pool has.

    A request that fails becomes a response with an error and ends nothing; what the user must mend first (a
    wrong word, a missing package, a full disk) ends the run.
    """
    counts = RunCounts(model.name)
    for example in examples:
        for request in _requests(model, example, repeats):
            if request.key in pool.done:
                counts.already += 1
            else:
                response = _ask(model, request)
                pool.append(response)
                counts.answered += response.complete
                counts.failed += not response.complete
            advance()
    return counts


def _requests(model: Model, example: Example, repeats: int) -> Sequence[Request]:
    return [
        Request(
            qid=example.qid,
            model=model.name,
            system_prompt=example.system_prompt,
            user_prompt=example.user_prompt,
            base_address=model.base_address,
            parameters=model.parameters,
            repeat=repeat,
        )
        for repeat in range(repeats)
    ]


def _ask(model: Model, request: Request) -> Response:
    try:
        return model.complete(request)
    except _ENDS_A_RUN:
        raise
    except Exception as error:  # noqa: BLE001  (one bad request must not end a run that was paid for)
        return Response(
            key=request.key,
            qid=request.qid,
            model=request.model,
            repeat=request.repeat,
            prompt_sha256=request.prompt_sha256,
            text="",
            finish_reason=None,
            parameters=request.parameters,
            base_address=request.base_address,
            error=f"{type(error).__name__}: {error}",
        )
