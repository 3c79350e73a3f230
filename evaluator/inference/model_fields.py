"""The fields of a model file: each value is checked as it is read, and a mistake names file, field and remedy."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import urlsplit

from gniah.records.errors import InputError

DEFAULT_TIER = "default"
BATCH_TIER = "batch"

_LARGEST = 2**53 - 1
_DEEPEST = 20
# Sent by gniah itself, or settings of LiteLLM that would change what is sent behind its back.
_OURS: Mapping[str, str] = {
    "model": "set litellm",
    "messages": "the prompts of the examples are sent",
    "n": "ask several times with --repeats",
    "stream": "set stream, above the tables",
    "stream_options": "set stream, above the tables",
    "service_tier": "set tiers, above the tables",
    "extra_body": "write a table [extra_body]",
    "allowed_openai_params": "leave it out: whatever stands in the file is sent",
    "api_base": "set base_address",
    "base_url": "set base_address",
    "timeout": "set limits.time_limit_seconds",
    **dict.fromkeys(
        ("max_retries", "num_retries", "drop_params", "additional_drop_params", "caching", "cache", "fallbacks"),
        "leave it out: gniah retries and caches by itself, and drops nothing",
    ),
    **dict.fromkeys(("mock_response", "mock_tool_calls"), "leave it out: answers come from the model"),
}

T = TypeVar("T")


class Fields:
    """One table of a file; what is taken from it is checked, and what is left over is unknown."""

    def __init__(self, where: str, table: Mapping[str, Any], prefix: str = "") -> None:
        self._where = where
        self._table = table
        self._prefix = prefix
        self._known: list[str] = []

    def wrong(self, name: str, what: str, remedy: str) -> InputError:
        """Return the error about a field of this table."""
        return InputError(f"{self._where}: {self._prefix}{name} {what}", remedy=remedy)

    def take(self, name: str, check: Callable[[Any], Any], default: Any = None) -> Any:
        """Return a field, checked, or its default when it is not there."""
        self._known.append(name)
        if name not in self._table:
            return default
        try:
            return check(self._table[name])
        except Wrong as error:
            raise self.wrong(f"{name}{error.place}", error.what, error.remedy) from None

    def need(self, name: str, check: Callable[[Any], T]) -> T:
        """Return a field that has to be there, checked."""
        if name not in self._table:
            raise self.wrong(name, "is missing", f"give {self._prefix}{name}; docs/models.md says what it means")
        found: T = self.take(name, check)
        return found

    def inner(self, name: str) -> Fields:
        """Return the fields of a table in this one, none when it is not there."""
        return Fields(self._where, self.take(name, as_table, {}), f"{self._prefix}{name}.")

    def inner_rows(self, name: str) -> Iterator[Fields]:
        """Yield the fields of each row of [[name]]."""
        for number, row in enumerate(self.take(name, as_tables, ()), 1):
            yield Fields(self._where, row, f"{self._prefix}{name}[{number}].")

    def names(self) -> list[str]:
        """Return the names of all fields that are there."""
        return list(self._table)

    def finish(self) -> None:
        """Refuse the first field that nobody took."""
        for name in self._table:
            if name not in self._known:
                close = difflib.get_close_matches(name, self._known, 1)
                remedy = f"did you mean {close[0]}?" if close else f"known here are {', '.join(self._known)}"
                raise self.wrong(name, "is no field of a model file", remedy)


class Wrong(Exception):
    """A value that is not what its field takes: what is wrong with it, what mends it, and where inside the field."""

    def __init__(self, what: str, remedy: str, place: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.place = place


def as_text(value: Any) -> str:
    """Return a string that is not empty. Raises Wrong."""
    if not isinstance(value, str) or not value.strip():
        raise Wrong("must be a string with something in it", "write it between quotes")
    return value


def as_texts(value: Any) -> tuple[str, ...]:
    """Return a list of strings, each once. Raises Wrong."""
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise Wrong("must be a list of strings", 'write it as ["a", "b"]')
    if len(set(value)) < len(value):
        raise Wrong("names one thing twice", "name each once")
    return tuple(value)


def as_name(value: Any) -> str:
    """Return a model's name, which becomes part of paths. Raises Wrong."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", value):
        raise Wrong(
            "must be a name that can stand in a path",
            'use letters, digits and ".", "_", "+", "-", a letter or digit first',
        )
    return value


def as_litellm(value: Any) -> str:
    """Return a model as LiteLLM is asked for it. Raises Wrong."""
    if not isinstance(value, str) or not re.fullmatch(r"[^\s/]+(/[^\s/]+)+", value):
        raise Wrong("must name a provider and its model", 'write it as "openai/gpt-5.6-luna"')
    return value


def as_address(value: Any) -> str:
    """Return an address of http or https. Raises Wrong."""
    try:
        parts = urlsplit(as_text(value))
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or parts.query or parts.fragment or re.search(r"\s", value):
        raise Wrong("must be an address of http or https without a query", 'write it as "https://HOST/v1"')
    return str(value)


def as_variable(value: Any) -> str:
    """Return the name of an environment variable. Raises Wrong."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,79}", value):
        raise Wrong("must be the name of an environment variable, never a key", 'write it as "OPENAI_API_KEY"')
    return value


def as_whole(value: Any) -> int:
    """Return a whole number that is not negative. Raises Wrong."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise Wrong("must be a whole number", "write digits, without quotes")
    return value


def as_count(value: Any) -> int:
    """Return a whole number of at least 1. Raises Wrong."""
    if as_whole(value) == 0:
        raise Wrong("must be at least 1", "leave it out when there is no limit or it is not known")
    return int(value)


def as_flag(value: Any) -> bool:
    """Return true or false. Raises Wrong."""
    if not isinstance(value, bool):
        raise Wrong("must be true or false", "write true or false, without quotes")
    return value


def as_decimal(value: Any) -> Decimal:
    """Return a decimal number that stands in a string. Raises Wrong."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
        raise Wrong("must be a decimal number in a string", 'write it as "0.20"; leave it out when it is not known')
    return Decimal(value)


def as_tier(value: Any) -> str:
    """Return the name of a service tier. Raises Wrong."""
    if value == "standard":
        raise Wrong('is "standard"', f'call that tier "{DEFAULT_TIER}", as requests do')
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9_-]*", value) or value == "auto":
        raise Wrong("must be the name of a service tier", 'write it as "flex" or "default"')
    return value


def as_tiers(value: Any) -> tuple[str, ...]:
    """Return service tiers in the order they are tried. Raises Wrong."""
    names = tuple(as_tier(one) for one in as_texts(value))
    if BATCH_TIER in names:
        raise Wrong("names batch, which is no service tier of a request", "leave it out; its prices may stand in a row")
    return names


def as_uncached_input(value: Any) -> str:
    """Return how prompt tokens are billed that came from no cache. Raises Wrong."""
    if value not in ("input", "cache-write"):
        raise Wrong('must be "input" or "cache-write"', "docs/models.md says what they mean")
    return str(value)


def as_table(value: Any) -> Mapping[str, Any]:
    """Return a table. Raises Wrong."""
    if not isinstance(value, dict):
        raise Wrong("must be a table", "write [name] and its fields below")
    return value


def as_tables(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return rows, each of them a table. Raises Wrong."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Wrong("must be rows", "write [[prices]] above each row")
    return value


def as_parameters(value: Any) -> Mapping[str, Any]:
    """Return the request's fields, none of which is one that gniah sets. Raises Wrong."""
    for name in as_table(value):
        if name in _OURS:
            raise Wrong("cannot be set here", _OURS[name], f".{name}")
    for name in ("max_tokens", "max_completion_tokens"):
        if name in value:
            try:
                as_count(value[name])
            except Wrong as error:
                raise Wrong(error.what, error.remedy, f".{name}") from None
    return as_sendable_table(value)


def as_sendable_table(value: Any) -> Mapping[str, Any]:
    """Return a table whose values can be sent as JSON. Raises Wrong."""
    _check_sendable(as_table(value), "")
    return dict(value)


def _check_sendable(value: Any, place: str) -> None:
    """Check that a value is JSON; these are the only fields that may hold fractions."""
    if len(re.findall(r"[.\[]", place)) > _DEEPEST:
        raise Wrong(f"goes deeper than {_DEEPEST} tables and lists", "no request needs that")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_sendable(inner, f"{place}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            _check_sendable(inner, f"{place}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise Wrong("must be a finite number", "JSON has no other", place)
    elif isinstance(value, int) and abs(value) > _LARGEST:
        raise Wrong("is too large for JSON", "use at most 53 bits, or a string", place)
    elif not isinstance(value, str | int | float):
        raise Wrong("is a date or time, which JSON does not have", "write it as a string", place)
