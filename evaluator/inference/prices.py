"""What an answer costs: exact, from the provider's own counts and the prices of a model file. Unknown is None, never 0.

Money is in US dollars, as decimals. A provider's usage is untrusted: a count that is no count makes a cost unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gniah.evaluator.inference.model_fields import BATCH_TIER, DEFAULT_TIER
from gniah.evaluator.inference.model_files import ModelFile, PriceRow

# No prompt or answer is longer, and products with prices stay exact below it.
_MOST_TOKENS = 10**12
_MILLIONTH = -6


@dataclass(frozen=True, slots=True)
class Usage:
    """A provider's counts of tokens for one answer. None is a count that it did not give.

    `prompt_tokens` include those read from a cache and those written into one, `completion_tokens` those of thinking.
    `reported_cost` is what the provider says it charged, in US dollars. `unreadable` names counts that were given
    but are none, such as negative ones.
    """

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    reported_cost: Decimal | None = None
    unreadable: tuple[str, ...] = ()


# Where each count stands in a usage as LiteLLM gives it; the first place that has one counts.
_PLACES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "prompt_tokens": (("prompt_tokens",),),
    "cached_tokens": (("prompt_tokens_details", "cached_tokens"), ("cache_read_input_tokens",)),
    "cache_write_tokens": (
        ("prompt_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_tokens"),
        ("cache_creation_input_tokens",),
    ),
    "completion_tokens": (("completion_tokens",),),
    "reasoning_tokens": (("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",)),
}


def read_usage(usage: object) -> Usage:
    """Read a provider's usage in OpenAI's shape, as LiteLLM gives it. Whatever it holds, nothing is raised."""
    if not isinstance(usage, Mapping):
        return Usage()
    counts: dict[str, int | None] = {}
    unreadable = []
    for name, places in _PLACES.items():
        given = next((found for place in places if (found := _at(usage, place)) is not None), None)
        counts[name] = _count(given)
        if given is not None and counts[name] is None:
            unreadable.append(name)
    return Usage(**counts, reported_cost=_money(usage.get("cost")), unreadable=tuple(unreadable))


def cost(model: ModelFile, usage: Usage, tier: str | None, batch: bool = False) -> Decimal | None:
    """Return what an answer cost in US dollars, or None when that is not known.

    `tier` is the service tier that really served it, None when the provider did not say: then the cost is known only
    for a model that is asked without tiers. Where the provider reports what it charged (`reported_cost`), that alone
    is the cost, since nobody else knows which prices it took.
    """
    if model.reported_cost:
        return usage.reported_cost
    return cost_by_prices(model, usage, tier, batch)


def cost_by_prices(model: ModelFile, usage: Usage, tier: str | None, batch: bool = False) -> Decimal | None:
    """Return what an answer costs at the prices of the model file, or None when a count or a price is not known.

    Cached tokens are part of the prompt's and are counted once. A provider that says nothing of a cache used none:
    then all of the prompt is billed as `uncached_input` says.
    """
    billed = _billed_tier(model, tier, batch)
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if billed is None or prompt is None or completion is None:
        return None
    if {"cached_tokens", "cache_write_tokens"} & set(usage.unreadable):
        return None
    row = price_row(model, billed, prompt)
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    rest = prompt - cached - written
    if row is None or rest < 0:
        return None
    rest_price = row.input if usage.cache_write_tokens is not None else uncached_price(model, row)
    return charge((rest, rest_price), (cached, row.cached), (written, row.cache_write), (completion, row.output))


def price_row(model: ModelFile, tier: str, prompt_tokens: int) -> PriceRow | None:
    """Return the prices of a tier for a prompt of a length, or None when the file has none."""
    rows = [row for row in model.prices if row.tier == tier and (row.above < prompt_tokens or row.above == 0)]
    return max(rows, key=lambda row: row.above, default=None)


def uncached_price(model: ModelFile, row: PriceRow) -> Decimal | None:
    """Return the price of prompt tokens that came from no cache, where the provider names no cache writes."""
    return row.cache_write if model.uncached_input == "cache-write" else row.input


def charge(*parts: tuple[int | Decimal, Decimal | None]) -> Decimal | None:
    """Return the sum of tokens times price, in US dollars; None when tokens are charged at an unknown price."""
    total = Decimal(0)
    for tokens, price in parts:
        if tokens:
            if price is None:
                return None
            total += (tokens * price).scaleb(_MILLIONTH)
    return total


def reserve(model: ModelFile, prompt_tokens: int) -> Decimal | None:
    """Return the most that one request can cost: no cache hit, the dearest prices of the file, the longest answer.

    None when the longest answer or a price is not known. `prompt_tokens` is usually an estimate; give the largest.
    """
    if model.output_limit is None:
        return None
    tiers = {*model.billed_tiers, *(row.tier for row in model.prices)}
    most = [_most(price_row(model, tier, prompt_tokens), prompt_tokens, model.output_limit) for tier in sorted(tiers)]
    known = [one for one in most if one is not None]
    return max(known) if len(known) == len(most) else None


def _most(row: PriceRow | None, prompt_tokens: int, output_tokens: int) -> Decimal | None:
    if row is None or row.input is None:
        return None
    dearest = max(price for price in (row.input, row.cached, row.cache_write) if price is not None)
    return charge((prompt_tokens, dearest), (output_tokens, row.output))


def _billed_tier(model: ModelFile, served: str | None, batch: bool) -> str | None:
    if batch:
        return BATCH_TIER
    if served is None:
        return None if model.tiers else DEFAULT_TIER
    return DEFAULT_TIER if served.lower() == "standard" else served.lower()


def _at(usage: Mapping[str, Any], place: tuple[str, ...]) -> object:
    value: object = usage
    for name in place:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _count(value: object) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if right and isinstance(value, int) else None


def _money(value: object) -> Decimal | None:
    """Return an amount that a provider reported: a JSON number, or the string that gniah keeps in its place."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        text = repr(value)
    else:
        return None
    try:
        amount = Decimal(text)
    except ArithmeticError:
        return None
    return amount if amount.is_finite() and 0 <= amount < _MOST_TOKENS else None
