"""Model files (`gniah/model/1`, TOML): what is asked, where, with which fields, within which limits, at which prices.

`docs/models.md` has every field. Prices are decimal strings in US dollars per million tokens. What a file leaves out
is unknown, and nothing here fills it in. A file never holds a key: it names the environment variable that does.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from gniah.evaluator.inference.key_guard import check_no_keys
from gniah.evaluator.inference.model_fields import (
    DEFAULT_TIER,
    Fields,
    Wrong,
    as_address,
    as_count,
    as_decimal,
    as_flag,
    as_litellm,
    as_name,
    as_parameters,
    as_sendable_table,
    as_text,
    as_texts,
    as_tier,
    as_tiers,
    as_uncached_input,
    as_variable,
    as_whole,
)
from gniah.records.errors import InputError, UsageFault
from gniah.records.files import machine_trouble
from gniah.records.manifests import check_schema

SCHEMA = "gniah/model/1"

T = TypeVar("T")
_SHIPPED = Path(__file__).parent / "models"


@dataclass(frozen=True, slots=True)
class Limits:
    """What is asked at most at a time: requests at once, per minute, tokens per minute, seconds for one request.

    None is no limit. `idle_limit_seconds` is how long a stream may stand still.
    """

    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    time_limit_seconds: int = 1800
    idle_limit_seconds: int = 300


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Prices of one service tier for prompts of more than `above` tokens, in US dollars per million tokens.

    `input` is for prompt tokens that are neither read from a cache (`cached`) nor written into one (`cache_write`).
    None is unknown.
    """

    tier: str
    above: int
    input: Decimal | None
    cached: Decimal | None
    cache_write: Decimal | None
    output: Decimal | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What one answer takes on average: tokens of output, thinking included, and seconds. None is unknown."""

    output_tokens: Decimal | None
    seconds: Decimal | None
    source: str = ""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One model, as its file describes it. `docs/models.md` has the meaning of every field.

    `parameters` and `extra_body` are the request's fields beside the messages, as they stand in the file.
    """

    name: str
    litellm: str
    base_address: str | None = None
    key_variable: str | None = None
    tokenizers: tuple[str, ...] = ()
    context_window: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    tiers: tuple[str, ...] = ()
    stream: bool = True
    cache_markers: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prices: tuple[PriceRow, ...] = ()
    prices_from: str | None = None
    uncached_input: str = "input"
    reported_cost: bool = False
    expected: Mapping[str, Expected] = field(default_factory=dict)

    @property
    def reasoning_effort(self) -> str | None:
        """Return the effort that is asked for, or None when none is named."""
        found = self.parameters.get("reasoning_effort")
        return found if isinstance(found, str) else None

    @property
    def output_limit(self) -> int | None:
        """Return how many tokens one answer can have, thinking included: the request's limit, else the model's."""
        asked = [self.parameters.get(name) for name in ("max_completion_tokens", "max_tokens")]
        known = [one for one in (*asked, self.max_output_tokens) if isinstance(one, int) and not isinstance(one, bool)]
        return min(known, default=None)

    @property
    def billed_tiers(self) -> tuple[str, ...]:
        """Return the tiers that an answer may be billed at, in the order they are tried."""
        return self.tiers or (DEFAULT_TIER,)


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models whose files come with gniah, sorted."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.toml")))


def find_model(word: str) -> ModelFile | None:
    """Return the model of a shipped name or of a path that ends in `.toml`, else None.

    Raises InputError when the file is missing or wrong.
    """
    if word in shipped_models():
        return read_model_file(_SHIPPED / f"{word}.toml")
    return read_model_file(Path(word)) if word.endswith(".toml") else None


def read_model_file(path: Path) -> ModelFile:
    """Read a model file. Raises InputError that names file and field when anything in it is wrong or unknown."""
    try:
        with machine_trouble(path):
            text = path.read_bytes().decode("utf-8-sig")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        # The parser may quote the text, which may hold a key; its position says enough.
        place = re.search(r"at (line \d+, column \d+|end of document)", str(error))
        raise InputError(
            f"{path}: not TOML" + (f": {place[0]}" if place else ""),
            remedy="mend the model file; docs/models.md shows a whole one",
        ) from None
    check_no_keys(table, str(path))
    check_schema(table.get("schema"), SCHEMA, str(path))
    return _model(Fields(str(path), table))


def _model(read: Fields) -> ModelFile:
    read.take("schema", as_text)
    found = ModelFile(
        name=read.need("name", as_name),
        litellm=read.need("litellm", as_litellm),
        base_address=read.take("base_address", as_address),
        key_variable=read.take("key_variable", as_variable),
        tokenizers=read.take("tokenizers", as_texts, ()),
        context_window=read.take("context_window", as_count),
        max_input_tokens=read.take("max_input_tokens", as_count),
        max_output_tokens=read.take("max_output_tokens", as_count),
        tiers=read.take("tiers", as_tiers, ()),
        stream=read.take("stream", as_flag, True),
        cache_markers=read.take("cache_markers", as_flag, False),
        parameters=read.take("parameters", as_parameters, {}),
        extra_body=read.take("extra_body", as_sendable_table, {}),
        limits=_limits(read.inner("limits")),
        prices=_prices(read),
        prices_from=read.take("prices_from", as_text),
        uncached_input=read.take("uncached_input", as_uncached_input, "input"),
        reported_cost=read.take("reported_cost", as_flag, False),
        expected=_expected(read),
    )
    read.finish()
    if found.prices and found.prices_from is None:
        raise read.wrong(
            "prices_from", "is missing", 'say where the prices are from and when, as in "price list, May 2026"'
        )
    return found


def _limits(read: Fields) -> Limits:
    usual = Limits()
    limits = Limits(
        concurrency=read.take("concurrency", as_count, usual.concurrency),
        requests_per_minute=read.take("requests_per_minute", as_count),
        tokens_per_minute=read.take("tokens_per_minute", as_count),
        time_limit_seconds=read.take("time_limit_seconds", as_count, usual.time_limit_seconds),
        idle_limit_seconds=read.take("idle_limit_seconds", as_count, usual.idle_limit_seconds),
    )
    read.finish()
    return limits


def _prices(read: Fields) -> tuple[PriceRow, ...]:
    rows: dict[tuple[str, int], PriceRow] = {}
    for one in read.inner_rows("prices"):
        row = PriceRow(
            tier=one.take("tier", as_tier, DEFAULT_TIER),
            above=one.take("above", as_whole, 0),
            input=one.take("input", as_decimal),
            cached=one.take("cached", as_decimal),
            cache_write=one.take("cache_write", as_decimal),
            output=one.take("output", as_decimal),
        )
        one.finish()
        if (row.tier, row.above) in rows:
            raise one.wrong("above", f"is {row.above} in two rows of the tier {row.tier!r}", "keep one of the two rows")
        rows[row.tier, row.above] = row
    return tuple(rows[key] for key in sorted(rows))


def _expected(read: Fields) -> dict[str, Expected]:
    efforts = read.inner("expected")
    found = {}
    for effort in efforts.names():
        one = efforts.inner(effort)
        found[effort] = Expected(
            one.take("output_tokens", as_decimal), one.take("seconds", as_decimal), one.need("source", as_text)
        )
        one.finish()
    return found


def shipped_text(name: str) -> str:
    """Return the file of a shipped model as it stands."""
    return (_SHIPPED / f"{name}.toml").read_text(encoding="utf-8")


def from_words(words: str, value: Any, check: Callable[[Any], T]) -> T:
    """Return a value of the command line, checked as the field of a model file is. Raises UsageFault with the words."""
    try:
        check_no_keys(value if isinstance(value, Mapping) else {"what is given": value}, words)
        return check(value)
    except Wrong as error:
        raise UsageFault(f"{words}{error.place}: {error.what}", remedy=error.remedy) from None
    except InputError as error:
        raise UsageFault(error.message, remedy=error.remedy) from None
