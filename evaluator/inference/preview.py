"""What a run would send, cost and take, said before anything is sent. Nothing here asks anybody.

Costs are in US dollars, exact for the token counts they are made from; those counts are estimates, since a provider
counts with a tokenizer of its own. Unknown is None, and is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from gniah.evaluator.inference.model_files import Expected, Limits, ModelFile, PriceRow
from gniah.evaluator.inference.prices import charge, price_row, reserve, uncached_price

_NAMED = 10
NO_COUNT = "no count"

Answered = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a preview needs of one example: its name, and its length under each tokenizer."""

    qid: str
    token_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TierCost:
    """What all requests cost when one tier serves them.

    `input` has no cache hit; with `input_cached`, repeats of one prompt find it in the cache. `total` and
    `total_cached` add the expected output.
    """

    tier: str
    input: Decimal | None
    input_cached: Decimal | None
    total: Decimal | None
    total_cached: Decimal | None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run of one model would do.

    `counted_with` says how many examples were measured with which tokenizer's count. `expected` is the output of one
    answer, None when nobody knows. `tiers` are in the order they are tried. `most` has every
    answer at its longest and at the dearest tier. `seconds` is the least time that limits allow, `binding` the limit
    that says so. Of examples that do not fit, `exceeding` counts all and `exceeding_qids` names the first ten; they
    are among the requests, like all others.
    """

    model: str
    examples: int
    requests: int
    answered: int
    prompt_tokens: int | None
    counted_with: Mapping[str, int]
    expected: Expected | None
    tiers: tuple[TierCost, ...]
    most: Decimal | None
    seconds: Decimal | None
    binding: str | None
    exceeding: int
    exceeding_qids: tuple[str, ...]
    over_tokens_per_minute: int
    output_limit: int | None
    prices_from: str | None
    reported_cost: bool
    limits: Limits

    @property
    def cost_range(self) -> tuple[Decimal, Decimal] | None:
        """Return the expected cost from the cheapest case to the dearest, output included; None when unknown."""
        low = [tier.total if tier.total_cached is None else tier.total_cached for tier in self.tiers]
        high = [tier.total for tier in self.tiers]
        known = [one for one in (*low, *high) if one is not None]
        return (min(known), max(known)) if len(known) == len(low) + len(high) else None


def preview(
    model: ModelFile,
    prompts: Iterable[Prompt],
    answered: Answered,
    repeats: int = 1,
    limits: Limits | None = None,
    observed: Expected | None = None,
) -> Preview:
    """Say what a run would send, cost and take; prompts are looked at one by one.

    `answered` tells for a qid how many of its repeats have an answer. `limits` go before the model file's, and so
    does `observed`, what answers of this model have taken so far (`average`), before its expectations.
    """
    limits = limits or model.limits
    expected = observed or model.expected.get(model.reasoning_effort or "")
    sums = _Sums(model, limits, marked=model.cache_markers and repeats > 1)
    for prompt in prompts:
        done = min(max(answered(prompt.qid), 0), repeats)
        sums.add(prompt, repeats - done, done)
    output = None if expected is None else expected.output_tokens
    seconds, binding = _least_time(sums, limits, expected)
    return Preview(
        model=model.name,
        examples=sums.examples,
        requests=sums.requests,
        answered=sums.answered,
        prompt_tokens=sums.prompt_tokens,
        counted_with=dict(sorted(sums.counted_with.items())),
        expected=expected,
        tiers=tuple(sums.cost(tier, output) for tier in model.billed_tiers),
        most=sums.most,
        seconds=seconds,
        binding=binding,
        exceeding=sums.exceeding,
        exceeding_qids=tuple(sums.exceeding_qids),
        over_tokens_per_minute=sums.over_tokens_per_minute,
        output_limit=model.output_limit,
        prices_from=model.prices_from,
        reported_cost=model.reported_cost,
        limits=limits,
    )


def average(answers: Iterable[tuple[int | None, float | None]], source: str = "answers so far") -> Expected | None:
    """Return the mean of completion tokens and of seconds, each over the answers that have it; None without any."""
    tokens: list[int] = [0, 0]
    seconds: list[Decimal | int] = [Decimal(0), 0]
    for one, time in answers:
        if one is not None:
            tokens = [tokens[0] + one, tokens[1] + 1]
        if time is not None:
            seconds = [seconds[0] + Decimal(str(time)), seconds[1] + 1]
    if not tokens[1]:
        return None
    return Expected(
        round(Decimal(tokens[0]) / tokens[1], 2),
        round(Decimal(seconds[0]) / seconds[1], 2) if seconds[1] else None,
        source,
    )


def prompt_length(model: ModelFile, token_counts: Mapping[str, int]) -> tuple[int | None, str]:
    """Return a prompt's length and the tokenizer that counted it.

    It is the first of the model's tokenizers that counted the prompt, whatever the case of its letters, else the one
    with the largest count. (None, "no count") when nobody counted.
    """
    folded = {label.casefold(): label for label in sorted(token_counts)}
    for name in model.tokenizers:
        label = folded.get(name.casefold())
        if label is not None:
            return token_counts[label], label
    if not token_counts:
        return None, NO_COUNT
    label = max(sorted(token_counts), key=lambda one: token_counts[one])
    return token_counts[label], f"{label} (the largest count; not the model's own)"


def exceeds(model: ModelFile, prompt_tokens: int) -> bool:
    """Return whether a prompt does not fit: too long by itself, or together with the longest answer, thinking included.

    Where no longest answer is known, nothing is set aside for it.
    """
    if model.max_input_tokens is not None and prompt_tokens > model.max_input_tokens:
        return True
    return model.context_window is not None and prompt_tokens + (model.output_limit or 0) > model.context_window


@dataclass(slots=True)
class _Sums:
    """Running sums over the prompts. Money is None from the first prompt on whose part of it is unknown."""

    model: ModelFile
    limits: Limits
    # Whether prompts are sent with a cache mark: all requests that find no prompt there write it there.
    marked: bool
    examples: int = 0
    requests: int = 0
    answered: int = 0
    prompt_tokens: int | None = 0
    most: Decimal | None = Decimal(0)
    exceeding: int = 0
    over_tokens_per_minute: int = 0
    counted_with: dict[str, int] = field(default_factory=dict)
    exceeding_qids: list[str] = field(default_factory=list)
    inputs: dict[str, Decimal | None] = field(default_factory=dict)
    inputs_cached: dict[str, Decimal | None] = field(default_factory=dict)
    # Requests by tier and by the row of prices that their length falls into.
    rows: dict[str, dict[PriceRow | None, int]] = field(default_factory=dict)

    def add(self, prompt: Prompt, left: int, done: int) -> None:
        self.examples += 1
        self.requests += left
        self.answered += done
        if not left:
            return
        length, label = prompt_length(self.model, prompt.token_counts)
        self.counted_with[label] = self.counted_with.get(label, 0) + 1
        if length is None:
            self.prompt_tokens = self.most = None
        else:
            self._measure(prompt.qid, length, left)
        for tier in self.model.billed_tiers:
            row = None if length is None else price_row(self.model, tier, length)
            plain, cached = (None, None) if row is None else self._input(row, length or 0, left)
            self.inputs[tier] = _plus(self.inputs.get(tier, Decimal(0)), plain)
            self.inputs_cached[tier] = _plus(self.inputs_cached.get(tier, Decimal(0)), cached)
            counts = self.rows.setdefault(tier, {})
            counts[row] = counts.get(row, 0) + left

    def _measure(self, qid: str, length: int, left: int) -> None:
        if self.prompt_tokens is not None:
            self.prompt_tokens += length * left
        most = reserve(self.model, length)
        self.most = _plus(self.most, None if most is None else most * left)
        if exceeds(self.model, length):
            self.exceeding += 1
            if len(self.exceeding_qids) < _NAMED:
                self.exceeding_qids.append(qid)
        per_minute = self.limits.tokens_per_minute
        self.over_tokens_per_minute += per_minute is not None and length > per_minute

    def _input(self, row: PriceRow, length: int, left: int) -> tuple[Decimal | None, Decimal | None]:
        """Return the input costs of `left` requests with one prompt: without cache hits, and with all but the first."""
        price = row.cache_write if self.marked else uncached_price(self.model, row)
        return charge((length * left, price)), charge((length, price), (length * (left - 1), row.cached))

    def cost(self, tier: str, output_tokens: Decimal | None) -> TierCost:
        """Return the costs of a tier, with the expected output where it is known."""
        output: Decimal | None = None
        if output_tokens is not None:
            output = Decimal(0)
            for row, count in self.rows.get(tier, {}).items():
                output = _plus(output, None if row is None else charge((output_tokens * count, row.output)))
        plain, cached = self.inputs.get(tier, Decimal(0)), self.inputs_cached.get(tier, Decimal(0))
        return TierCost(tier, plain, cached, _plus(plain, output), _plus(cached, output))


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other


def _least_time(sums: _Sums, limits: Limits, expected: Expected | None) -> tuple[Decimal | None, str | None]:
    """Return the seconds that limits make a run last at least, and which limit it is; None when none says anything."""
    if not sums.requests:
        return Decimal(0), None
    times: dict[str, Decimal] = {}
    if expected is not None and expected.seconds is not None:
        times["concurrency"] = max(expected.seconds, expected.seconds * sums.requests / limits.concurrency)
    if limits.requests_per_minute is not None:
        times["requests per minute"] = Decimal(60 * sums.requests) / limits.requests_per_minute
    if limits.tokens_per_minute is not None and sums.prompt_tokens is not None:
        times["tokens per minute"] = Decimal(60 * sums.prompt_tokens) / limits.tokens_per_minute
    if not times:
        return None, None
    binding = max(times, key=lambda name: times[name])
    return round(times[binding], 1), binding
