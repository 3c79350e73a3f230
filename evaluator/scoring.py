"""Scoring responses against examples: what each one answered, and how it counts. Nothing here touches a disk.

Every response gets one status. They are tried in this order, and the first that fits stands:

1. `error`: the request failed, the response was made from other prompts than the example's, or the scorer
   could not cope with it. Left out of the denominator, listed, and a reason to fail.
2. `prompt-cut`: the provider counted clearly fewer prompt tokens than were sent (see `PROMPT_CUT`), so the
   model did not see the question as it is. Left out of the denominator.
3. `correct` or `wrong`: an answer could be read, even when the output limit was reached after it.
4. `refused`: the provider says that its filter or the model declined.
5. `length`: the output limit was reached without a readable answer, or without any text at all.
6. `empty`: there is no text outside closed thinking blocks.
7. `unreadable`: all the rest. It counts as wrong, and equals no answer, whatever the right one is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from gniah.evaluator.extraction import visible
from gniah.evaluator.statistics import guessing_rate, mean_rate, wilson_interval
from gniah.records import families
from gniah.records.canonical import digest
from gniah.records.examples import Example
from gniah.records.responses import Response, prompt_sha256

STATUSES = ("correct", "wrong", "unreadable", "empty", "refused", "length", "prompt-cut", "error")
NOT_COUNTED = frozenset({"prompt-cut", "error"})
# Tokenizers of current models differ by about 5 % on these texts, so a count under nine tenths of the
# smallest of ours is a cut prompt and not another tokenizer. Only `prompt_tokens` is compared: other names
# leave cached tokens out.
PROMPT_CUT = Fraction(9, 10)
REFUSED = frozenset({"content_filter", "refusal", "safety"})
LENGTH = frozenset({"length", "max_tokens"})
READING = "card"

CountRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a scorer read: a value in the form of `Scorer.gold`, or None with the reason."""

    value: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The task that two prompts set, and all answers it could have, in order."""

    task: str
    answers: Sequence[str]


class Scorer(Protocol):
    """What a family gives to scoring and to the offline models. Every method is pure.

    Examples come without their prompts (both are empty then), so that a file of many can be scored at once.
    `count_range` is the smallest and largest right answer of a task that is answered by a number; None stands
    for the family's own.
    """

    def read(self, example: Example, text: str) -> Reading:
        """Return what a response's visible text answers."""
        ...

    def gold(self, example: Example) -> str:
        """Return the right answer in the form that `read` gives. Raises InputError without one."""
        ...

    def variables(self, example: Example) -> Mapping[str, str]:
        """Return the variables that accuracy is told by, `task` first, each with its value as it is shown."""
        ...

    def possible_answers(self, example: Example, count_range: CountRange | None = None) -> Sequence[str]:
        """Return all answers that an example could have had."""
        ...

    def answers_to(
        self, system_prompt: str, user_prompt: str, count_range: CountRange | None = None
    ) -> AnswerSet | None:
        """Return task and possible answers from the prompts alone; None for another family's."""
        ...

    def constant_answers(self) -> Mapping[str, str]:
        """Return an answer for each task of the family that needs no reading."""
        ...

    def count_range(self, list_settings: Mapping[str, Any]) -> CountRange | None:
        """Return the range of right answers in a list with these settings; None when they do not say."""
        ...


@dataclass(frozen=True, slots=True)
class ScoredResponse:
    """How one response counts: `value` was read, `gold` is right, `reason` says why nothing was read."""

    qid: str
    repeat: int
    key: str
    status: str
    value: str | None
    gold: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A group of responses: `n` is the denominator, `interval` the Wilson 95 % interval as fractions.

    `interval` is None when nothing was counted or an example was counted more than once, since repeats are
    not independent. `chance` is what uniform guessing would reach on the same examples.
    """

    n: int
    correct: int
    interval: tuple[float, float] | None
    chance: Fraction | None
    statuses: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ModelScores:
    """One model with one set of parameters: its responses in the order of the examples, and their summaries.

    `by` maps a variable to its values' summaries. `without_response` names examples, `unknown` the qids of
    responses whose example is not there, `duplicates` counts further complete answers to one request, which
    are ignored.
    """

    model: str
    base_address: str | None
    parameters: Mapping[str, Any]
    responses: tuple[ScoredResponse, ...]
    overall: Summary
    by: Mapping[str, Mapping[str, Summary]]
    without_response: tuple[str, ...]
    unknown: tuple[str, ...]
    duplicates: int

    @property
    def reasoning_effort(self) -> str:
        """Return the effort that was asked for, or `none`."""
        effort = self.parameters.get("reasoning_effort")
        return "none" if effort is None else str(effort)

    @property
    def errors(self) -> tuple[ScoredResponse, ...]:
        """Return the responses with an error status."""
        return tuple(response for response in self.responses if response.status == "error")


@dataclass(frozen=True, slots=True)
class Scores:
    """All that was scored at once. `duplicate_examples` are qids that the examples list more than once."""

    models: tuple[ModelScores, ...]
    examples: int
    duplicate_examples: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether every response was matched with its example and none is an error."""
        return not any(model.errors or model.unknown for model in self.models)


@dataclass(frozen=True, slots=True)
class _Known:
    """An example without its prompts, and what is known of it beforehand."""

    example: Example
    prompts: str
    position: int
    scorer: Scorer
    gold: str
    variables: Mapping[str, str]
    chance: Fraction


@dataclass(slots=True)
class _Group:
    """What was gathered for one model and one set of parameters, by the requests' keys."""

    first: Response
    scored: dict[str, tuple[bool, ScoredResponse]] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    duplicates: int = 0


def score(examples: Iterable[Example], responses: Iterable[Response], count_range: CountRange | None = None) -> Scores:
    """Score responses against examples; both are read once, and neither is kept whole.

    Raises InputError for an example that no installed family knows, or whose own answer cannot be read.
    """
    known: dict[str, _Known] = {}
    repeated: dict[str, None] = {}
    for example in examples:
        if example.qid in known:
            repeated[example.qid] = None
        else:
            known[example.qid] = _known(example, len(known), count_range)
    groups: dict[str, _Group] = {}
    for response in responses:
        name = digest([response.model, response.base_address, settled(response.parameters)])
        _add(groups.setdefault(name, _Group(response)), response, known.get(response.qid))
    models = [_model_scores(group, known) for group in groups.values()]
    models.sort(key=lambda model: (model.model, model.reasoning_effort, digest(settled(model.parameters))))
    return Scores(tuple(models), len(known), tuple(repeated))


def assess(example: Example, response: Response, scorer: Scorer, gold: str, prompts: str) -> ScoredResponse:
    """Return how one response to an example counts; `prompts` is the hash of the example's own prompts."""
    status, value, reason = _status(example, response, scorer, gold, prompts)
    return ScoredResponse(response.qid, response.repeat, response.key, status, value, gold, reason)


def _status(
    example: Example, response: Response, scorer: Scorer, gold: str, prompts: str
) -> tuple[str, str | None, str | None]:
    if response.error is not None:
        return "error", None, f"the request failed: {str(response.error)[:300]}"
    if response.prompt_sha256 != prompts:
        return "error", None, "made from other prompts than this example's"
    counted, sent = response.usage.get("prompt_tokens"), min(example.token_counts.values(), default=0)
    if isinstance(counted, int) and 0 < counted < sent * PROMPT_CUT:
        return "prompt-cut", None, f"the provider counted {counted} prompt tokens, at least {sent} were sent"
    shown = visible(response.text)
    try:
        reading = scorer.read(example, shown.text)
    except Exception as error:  # noqa: BLE001  (one odd response must not end the scoring of all others)
        return "error", None, f"the scorer failed: {type(error).__name__}: {str(error)[:300]}"
    if reading.value is not None:
        return ("correct" if reading.value == gold else "wrong"), reading.value, None
    finish = response.finish_reason
    if finish in REFUSED:
        return "refused", None, f"the provider ended it with {finish}"
    if finish in LENGTH:
        return "length", None, f"the output limit was reached: {reading.reason}"
    if shown.blank and not shown.unclosed:
        return "empty", None, "there is no text"
    return "unreadable", None, "the thinking block was not closed" if shown.unclosed else reading.reason


def summarise(items: Sequence[tuple[ScoredResponse, Fraction]]) -> Summary:
    """Return the summary of responses, each with the guessing rate of its example."""
    counted = [(response, chance) for response, chance in items if response.status not in NOT_COUNTED]
    correct = sum(response.status == "correct" for response, _ in counted)
    independent = len({response.qid for response, _ in counted}) == len(counted)
    return Summary(
        n=len(counted),
        correct=correct,
        interval=wilson_interval(correct, len(counted)) if independent else None,
        chance=mean_rate(chance for _, chance in counted),
        statuses={status: sum(response.status == status for response, _ in items) for status in STATUSES},
    )


def _known(example: Example, position: int, count_range: CountRange | None) -> _Known:
    family, _ = families.family_of(example.question_type, example.qid)
    scorer: Scorer = families.load(family.scorer)
    return _Known(
        example=dataclasses.replace(example, system_prompt="", user_prompt=""),
        prompts=prompt_sha256(example.system_prompt, example.user_prompt),
        position=position,
        scorer=scorer,
        gold=scorer.gold(example),
        variables=scorer.variables(example),
        chance=guessing_rate(len(scorer.possible_answers(example, count_range))),
    )


def _add(group: _Group, response: Response, known: _Known | None) -> None:
    """Score a response into its group: a complete answer replaces failures, the first complete one stays."""
    if known is None:
        group.unknown[response.qid] = None
        return
    before = group.scored.get(response.key)
    if before is not None and before[0]:
        group.duplicates += response.complete
        return
    scored = assess(known.example, response, known.scorer, known.gold, known.prompts)
    group.scored[response.key] = (response.complete, scored)


def _model_scores(group: _Group, known: Mapping[str, _Known]) -> ModelScores:
    responses = sorted(
        (scored for _, scored in group.scored.values()),
        key=lambda scored: (known[scored.qid].position, scored.repeat, scored.key),
    )
    by: dict[str, dict[str, list[tuple[ScoredResponse, Fraction]]]] = {}
    for response in responses:
        for variable, value in known[response.qid].variables.items():
            by.setdefault(variable, {}).setdefault(value, []).append((response, known[response.qid].chance))
    answered = {response.qid for response in responses}
    return ModelScores(
        model=group.first.model,
        base_address=group.first.base_address,
        parameters=group.first.parameters,
        responses=tuple(responses),
        overall=summarise([(response, known[response.qid].chance) for response in responses]),
        by={
            variable: {value: summarise(values[value]) for value in sorted(values, key=_natural)}
            for variable, values in by.items()
        },
        without_response=tuple(qid for qid in known if qid not in answered),
        unknown=tuple(sorted(group.unknown)),
        duplicates=group.duplicates,
    )


def _natural(value: str) -> tuple[int, int, str]:
    """Sort numbers by size and before words."""
    digits = value.isascii() and value.isdigit() and len(value) < 20
    return (0, int(value), value) if digits else (1, 0, value)


def settled(value: Any) -> Any:
    """Return parameters in a form that has a digest: fractions as text."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(name): settled(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [settled(item) for item in value]
    return value
