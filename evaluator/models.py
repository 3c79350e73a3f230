r"""Models: whatever takes a request and gives a response. Here are those that need no network.

`text-solver` searches, `random` and `constant` do not. All three see the two prompts and nothing else, and
find what belongs to a family through its entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gniah.evaluator.scoring import AnswerSet, CountRange, Scorer
from gniah.records import families
from gniah.records.errors import MissingDependency, UsageFault
from gniah.records.families import Solution
from gniah.records.manifests import package_version
from gniah.records.responses import Request, Response
from gniah.records.streams import Stream


class Model(Protocol):
    """A model that can be asked.

    `name`, `base_address` and `parameters` are part of every request's key: parameters are all that can
    change an answer, so that an answer is found again only when the same would be asked.
    """

    @property
    def name(self) -> str:
        """The model's name, as responses carry it."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The request fields beside the messages."""
        ...

    @property
    def base_address(self) -> str | None:
        """Where requests go; None when they do not leave the process."""
        ...

    def complete(self, request: Request) -> Response:
        """Answer one request. Raises whatever its transport raises when it cannot."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What the offline models can be told. `count_range` None stands for each family's own."""

    seed: int = 0
    constant_answers: Mapping[str, str] = field(default_factory=dict)
    count_range: CountRange | None = None


def answer_text(answer: str) -> str:
    r"""Return the line that ends a response with an answer."""
    return f"\\answer{{{answer}}}"


def respond(request: Request, text: str, finish_reason: str | None = "stop") -> Response:
    """Return a complete response to a request. It carries no time, so that equal runs give equal bytes."""
    return Response(
        key=request.key,
        qid=request.qid,
        model=request.model,
        repeat=request.repeat,
        prompt_sha256=request.prompt_sha256,
        text=text,
        finish_reason=finish_reason,
        parameters=request.parameters,
        base_address=request.base_address,
    )


class TextSolver:
    """Answers with the text solver of the family that recognises the prompts."""

    name = "text-solver"
    base_address = None

    def __init__(self, settings: ModelSettings) -> None:
        # A later version may solve what this one could not, so its answers are others.
        self.parameters: Mapping[str, Any] = {"gniah": package_version()}

    def complete(self, request: Request) -> Response:
        """Answer a request; without a solution the text says why and holds no answer."""
        reasons = []
        for family in families.families().values():
            solution = _solver(family)(request.system_prompt, request.user_prompt)
            if solution.answer is not None:
                said = f"{solution.reason}\n\n" if solution.reason else ""
                return respond(request, f"{said}{answer_text(solution.answer)}")
            reasons.append(f"{family.name}: {solution.reason or 'no answer was found'}")
        return respond(request, "\n".join(["The text solver has no answer.", *reasons]))


class RandomGuesser:
    """Answers uniformly at random among the possible answers of the task."""

    name = "random"
    base_address = None

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self.parameters: Mapping[str, Any] = {"seed": settings.seed}
        if settings.count_range is not None:
            self.parameters = {**self.parameters, "count_range": list(settings.count_range)}

    def complete(self, request: Request) -> Response:
        """Answer a request. The draw depends on the prompts, the seed and the repeat alone."""
        found = _answers_to(request, self._settings.count_range)
        if found is None:
            return respond(request, "No installed family recognises these prompts.")
        stream = Stream(request.prompt_sha256, "random-guess", self._settings.seed, request.repeat)
        return respond(request, answer_text(stream.choice(found.answers)))


class Constant:
    """Answers every example of a task alike."""

    name = "constant"
    base_address = None

    def __init__(self, settings: ModelSettings) -> None:
        answers = dict(sorted(_constant_answers().items()))
        for task, answer in settings.constant_answers.items():
            if task not in answers:
                raise UsageFault(
                    f"no installed family has a task {task!r}; known are {', '.join(answers)}",
                    remedy="give --constant-answer TASK=ANSWER with one of these",
                )
            answers[task] = answer
        self._answers = answers
        self.parameters: Mapping[str, Any] = {"answers": answers}

    def complete(self, request: Request) -> Response:
        """Answer a request with its task's constant."""
        found = _answers_to(request, None)
        if found is None:
            return respond(request, "No installed family recognises these prompts.")
        return respond(request, answer_text(self._answers[found.task]))


OFFLINE: Mapping[str, Callable[[ModelSettings], Model]] = {
    "text-solver": TextSolver,
    "random": RandomGuesser,
    "constant": Constant,
}


def open_model(name: str, settings: ModelSettings | None = None) -> Model:
    """Return the model of a name. Raises UsageFault when there is none."""
    constructor = OFFLINE.get(name)
    if constructor is None:
        raise UsageFault(f"there is no model {name!r}; known are {', '.join(OFFLINE)}", remedy="choose one of these")
    return constructor(settings or ModelSettings())


def _solver(family: families.Family) -> Callable[[str, str], Solution]:
    try:
        solver: Callable[[str, str], Solution] = families.load(family.text_solver)
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"the text solver of {family.name} cannot be imported: {error}",
            remedy="install the package that brings the family, with its generator",
        ) from error
    return solver


def _scorers() -> list[Scorer]:
    return [families.load(family.scorer) for family in families.families().values()]


def _answers_to(request: Request, count_range: CountRange | None) -> AnswerSet | None:
    for scorer in _scorers():
        found = scorer.answers_to(request.system_prompt, request.user_prompt, count_range)
        if found is not None:
            return found
    return None


def _constant_answers() -> dict[str, str]:
    return {task: answer for scorer in _scorers() for task, answer in scorer.constant_answers().items()}
