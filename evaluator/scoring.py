"""Scoring responses against examples: what each one answered, and how it counts.

Both are read once and neither is kept whole: of an example its prompts are dropped, of a response a line stays,
in a temporary file when there are many. How one response counts is said in `gniah.evaluator.judging`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from gniah.evaluator.judging import LENGTH, NOT_COUNTED, REFUSED, STATUSES, assess
from gniah.evaluator.ledger import LARGEST_REPEAT, Ledger, ScoredResponses, json_bytes
from gniah.evaluator.readings import CARD, Readings
from gniah.evaluator.statistics import guessing_rate
from gniah.evaluator.summaries import Differences, ReadingScores, Register, Summary
from gniah.records import families
from gniah.records.canonical import digest
from gniah.records.errors import InputError
from gniah.records.examples import Example
from gniah.records.responses import PROMPT_CUT, Response, effort_of, prompt_sha256, settled

# What others take from here, whatever module it stands in.
__all__ = [
    "LENGTH",
    "NOT_COUNTED",
    "PROMPT_CUT",
    "READING",
    "REFUSED",
    "STATUSES",
    "AnswerSet",
    "CountRange",
    "KnownExample",
    "ModelScores",
    "Scorer",
    "Scores",
    "score",
    "settled",
]

# The reading that fills tables and figures unless another is asked for.
READING = CARD
# The variable of every task that is answered by a label: the right one.
LABEL = "label"

CountRange = tuple[int, int]


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

    def read(self, example: Example, text: str) -> Readings:
        """Return what a response's visible text answers, under both readings; one object when they are the same."""
        ...

    def gold(self, example: Example) -> str:
        """Return the right answer in the form that `read` gives. Raises InputError without one."""
        ...

    def counts(self, example: Example) -> bool:
        """Return whether answers are numbers; `read` and `gold` give digits then."""
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
class KnownExample:
    """An example without its prompts, and what is known of it beforehand.

    `prompts` is the hash of its prompts, `sent` the least of its token counts (0 when there is none), `number`
    tells that answers are numbers, `chance` is what a guess reaches.
    """

    example: Example
    prompts: str
    sent: int
    position: int
    scorer: Scorer
    gold: str
    number: bool
    variables: Mapping[str, str]
    chance: Fraction


@dataclass(frozen=True, slots=True)
class ModelScores:
    """One model with one set of parameters: its responses in the order of the examples, and their summaries.

    `readings` has the summaries by reading, `asked` the examples that it answered. `without_response` names
    examples, `unknown` the qids of responses whose example is not there, `repeated` the examples with several
    responses, `duplicates` (qid, repeat) of further complete answers to one request, which are ignored.
    """

    model: str
    base_address: str | None
    parameters: Mapping[str, Any]
    responses: ScoredResponses
    errors: ScoredResponses
    readings: Mapping[str, ReadingScores]
    differences: Differences
    asked: Sequence[KnownExample]
    without_response: tuple[str, ...]
    unknown: tuple[str, ...]
    repeated: tuple[str, ...]
    duplicates: tuple[tuple[str, int], ...]

    @property
    def reasoning_effort(self) -> str:
        """Return the effort that was asked for, or `none`."""
        return effort_of(self.parameters)

    @property
    def overall(self) -> Summary:
        """Return the summary of all responses under the card's reading."""
        return self.readings[READING].overall

    @property
    def by(self) -> Mapping[str, Mapping[str, Summary]]:
        """Return the summaries by variable and value under the card's reading."""
        return self.readings[READING].by


@dataclass(frozen=True, slots=True)
class Scores:
    """All that was scored at once. `duplicate_examples` are qids that the examples list more than once."""

    models: tuple[ModelScores, ...]
    examples: int
    duplicate_examples: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether every response was matched with its example and none is an error."""
        return not any(len(model.errors) or model.unknown for model in self.models)


@dataclass(slots=True)
class _Group:
    """One model with one set of parameters, while its responses come in."""

    number: int
    model: str
    base_address: str | None
    parameters: Mapping[str, Any]
    unknown: dict[str, None] = field(default_factory=dict)


def score(
    examples: Iterable[Example],
    responses: Iterable[Response],
    count_range: CountRange | None = None,
    spill: Path | None = None,
) -> Scores:
    """Score responses against examples. A temporary file for many responses stands in the folder `spill`.

    Raises InputError for an example that no installed family knows, or whose own answer cannot be read, and for a
    response whose parts are of other types than a pool holds.
    """
    known: dict[str, KnownExample] = {}
    repeated: dict[str, None] = {}
    register = Register()
    for example in examples:
        if example.qid in known:
            repeated[example.qid] = None
            continue
        one = known[example.qid] = _known(example, len(known), count_range)
        label = {} if one.number else {LABEL: one.gold}
        register.add(example.qid, one.number, one.chance, {**one.variables, **label})
    ledger = Ledger(spill)
    groups = _take_all(responses, known, ledger)
    listed = list(known.values())
    models = [_model_scores(group, ledger, register, listed) for group in groups]
    models.sort(key=lambda one: (one.model, one.reasoning_effort, _address(one.base_address, one.parameters)))
    return Scores(tuple(models), len(known), tuple(repeated))


def _known(example: Example, position: int, count_range: CountRange | None) -> KnownExample:
    family, _ = families.family_of(example.question_type, example.qid)
    scorer: Scorer = families.load(family.scorer)
    counts = [count for count in example.token_counts.values() if type(count) is int]
    return KnownExample(
        example=dataclasses.replace(example, system_prompt="", user_prompt=""),
        prompts=prompt_sha256(example.system_prompt, example.user_prompt),
        sent=min(counts, default=0),
        position=position,
        scorer=scorer,
        gold=scorer.gold(example),
        number=scorer.counts(example),
        variables=scorer.variables(example),
        chance=guessing_rate(len(scorer.possible_answers(example, count_range))),
    )


def _take_all(responses: Iterable[Response], known: Mapping[str, KnownExample], ledger: Ledger) -> Sequence[_Group]:
    """Score all responses into a ledger, and return the groups that they fall into."""
    groups: dict[str, _Group] = {}
    # One group may have its parameters in several orders; each is looked up once.
    spelled: dict[tuple[str, str | None, bytes], _Group] = {}
    for response in responses:
        _check(response)
        spelling = response.model, response.base_address, json_bytes(response.parameters)
        group = spelled.get(spelling)
        if group is None:
            name = digest([response.model, _address(response.base_address, response.parameters)])
            found = _Group(len(groups), response.model, response.base_address, response.parameters)
            group = spelled[spelling] = groups.setdefault(name, found)
        one = known.get(response.qid)
        if one is None:
            group.unknown[response.qid] = None
        else:
            verdicts = assess(one.example, response, one.scorer, one.gold, one.prompts, one.sent)
            ledger.add(group.number, one.position, response, verdicts, one.gold, one.number)
    return list(groups.values())


def _check(response: Response) -> None:
    """Raise InputError for parts that a pool never holds; only another program's pool may have them."""
    objects = {"parameters": response.parameters, "usage": response.usage}
    wrong = [name for name, value in objects.items() if type(value) is not dict and not isinstance(value, Mapping)]
    address: object = response.base_address
    if not isinstance(address, str | None):
        wrong.append("base_address")
    if wrong:
        raise InputError(
            f"response {response.key[:64]!r}: {', '.join(wrong)} of another type than in a pool",
            remedy="give a pool of responses as gniah-eval run writes it",
        )
    for name in ("qid", "model"):
        if not getattr(response, name).isascii():
            _check_text(response, name)
    if not 0 <= response.repeat <= LARGEST_REPEAT:
        raise InputError(f"response {response.key[:64]!r}: the repeat {response.repeat} is out of range")


def _check_text(response: Response, name: str) -> None:
    try:
        getattr(response, name).encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"response {response.key[:64]!r}: {name} holds a lone surrogate") from None


def _model_scores(group: _Group, ledger: Ledger, register: Register, known: Sequence[KnownExample]) -> ModelScores:
    import numpy as np

    rows = ledger.rows(group.number)
    failed = rows.judged[READING].status == STATUSES.index("error")
    times = np.bincount(rows.position, minlength=len(known)).tolist()
    return ModelScores(
        model=group.model,
        base_address=group.base_address,
        parameters=group.parameters,
        responses=ScoredResponses(ledger, rows.offset, rows.length),
        errors=ScoredResponses(ledger, rows.offset[failed], rows.length[failed]),
        readings=register.all_scores(rows),
        differences=register.differences(rows),
        asked=[one for one in known if times[one.position]],
        without_response=tuple(one.example.qid for one in known if not times[one.position]),
        unknown=tuple(sorted(group.unknown)),
        repeated=tuple(one.example.qid for one in known if times[one.position] > 1),
        duplicates=tuple((known[position].example.qid, repeat) for position, repeat in rows.duplicates),
    )


def _address(base_address: str | None, parameters: Mapping[str, Any]) -> str:
    """Return a name of where and how a model was asked. Raises InputError for parameters that have none."""
    try:
        return digest([base_address, settled(parameters)])
    except (TypeError, ValueError) as error:
        raise InputError(
            f"parameters of a response: {error}", remedy="give a pool of responses as gniah-eval run writes it"
        ) from None
