"""A preview as people read it, and as programs do."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Any

from gniah.evaluator.inference.preview import Preview
from gniah.records.command_line import table


def preview_json(found: Preview) -> dict[str, Any]:
    """Return a preview for programs: money and means as decimal strings, what is unknown as null."""
    cost_range = found.cost_range
    return {
        "model": found.model,
        "examples": found.examples,
        "requests": found.requests,
        "answered": found.answered,
        "prompt_tokens": found.prompt_tokens,
        "counted_with": dict(found.counted_with),
        "expected": None
        if found.expected is None
        else {
            "output_tokens": _string(found.expected.output_tokens),
            "seconds": _string(found.expected.seconds),
            "source": found.expected.source,
        },
        "output_limit": found.output_limit,
        "tiers": [
            {
                "tier": one.tier,
                "input": _string(one.input),
                "input_cached": _string(one.input_cached),
                "total": _string(one.total),
                "total_cached": _string(one.total_cached),
            }
            for one in found.tiers
        ],
        "cost": None if cost_range is None else {"low": _string(cost_range[0]), "high": _string(cost_range[1])},
        "most": _string(found.most),
        "prices_from": found.prices_from,
        "reported_cost": found.reported_cost,
        "seconds": _string(found.seconds),
        "binding": found.binding,
        "exceeding": found.exceeding,
        "exceeding_qids": list(found.exceeding_qids),
        "over_tokens_per_minute": found.over_tokens_per_minute,
    }


def preview_table(found: Preview) -> str:
    """Return a preview for people: what would be sent, and below what it costs by tier."""
    facts = [
        ("examples", f"{found.examples:,}"),
        ("requests to send", f"{found.requests:,}"),
        ("answered already", f"{found.answered:,}"),
        ("prompt tokens", _prompt_words(found)),
        ("output tokens of an answer", _output_words(found)),
        ("longest answer, in tokens", _number(found.output_limit)),
        ("most that it can cost", dollars(found.most)),
        ("least time", _time_words(found)),
        ("do not fit the context window", _exceeding_words(found)),
        ("prices", found.prices_from or "none are known"),
    ]
    if found.limits.tokens_per_minute is not None:
        facts.insert(-1, ("longer than a minute's tokens", f"{found.over_tokens_per_minute:,}"))
    if found.reported_cost:
        facts.append(("cost of an answer", "what the provider reports"))
    headings = ("tier", "input", "input, repeats cached", "with output", "with output, repeats cached")
    costs = [
        (one.tier, *map(dollars, (one.input, one.input_cached, one.total, one.total_cached))) for one in found.tiers
    ]
    return "\n\n".join((table((found.model, ""), facts), table(headings, costs)))


def dollars(amount: Decimal | None) -> str:
    """Return an amount of US dollars as people read it, rounded up so that a cost is never shown as none."""
    if amount is None:
        return "unknown"
    places = Decimal("0.01") if amount >= 1 or not amount else Decimal("0.0001")
    return f"${amount.quantize(places, ROUND_CEILING):,f}"


def _string(value: Decimal | None) -> str | None:
    return None if value is None else format(value.normalize(), "f")


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _prompt_words(found: Preview) -> str:
    counted = ", ".join(f"{label}: {count:,} examples" for label, count in found.counted_with.items())
    return f"{_number(found.prompt_tokens)} ({counted})" if counted else _number(found.prompt_tokens)


def _output_words(found: Preview) -> str:
    if found.expected is None or found.expected.output_tokens is None:
        return "unknown, so that only the input is priced"
    return f"{found.expected.output_tokens:,} ({found.expected.source})"


def _time_words(found: Preview) -> str:
    if found.seconds is None:
        return "unknown"
    minutes = -(-int(found.seconds.to_integral_value(ROUND_CEILING)) // 60)
    words = f"{minutes // 60:,} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"{words} (set by {found.binding})" if found.binding else words


def _exceeding_words(found: Preview) -> str:
    if not found.exceeding:
        return "0"
    more = ", …" if found.exceeding > len(found.exceeding_qids) else ""
    return f"{found.exceeding:,}: {', '.join(found.exceeding_qids)}{more}"
