"""Keys do not belong into files that are shared: what looks like one is refused, and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from gniah.records.errors import InputError

# Request fields of providers that sound like a key and are none.
_HARMLESS = frozenset({"prompt_cache_key"})
_KEY_WORDS = frozenset({"key", "keys", "apikey", "secret", "password", "passwd", "authorization", "auth", "bearer"})
_KEY_WORDS_IN_PAIRS = frozenset({"token", "credentials", "credential"})
# The beginnings of keys of the large providers (OpenAI, OpenRouter, Anthropic; Google; xAI; Groq; Hugging Face; AWS).
_KEY_VALUES = re.compile(r"(?i:\bbearer\s+\S{8,})|\b(sk-|AIza|xai-|gsk_|hf_|AKIA)[A-Za-z0-9_-]{12,}")


def check_no_keys(table: Mapping[str, Any], where: str) -> None:
    """Check that no field of a file looks like a key. Raises InputError that names the field, not what it holds."""
    for place, name, value in _fields(table, ""):
        if _looks_like_key(name, value):
            raise InputError(
                f"{where}: {place} looks like a key, and a key does not belong there",
                remedy="take it out, put the key into an environment variable, and name that in key_variable",
            )
        if isinstance(value, str) and _has_user(value):
            raise InputError(
                f"{where}: {place} is an address with a user or password in it",
                remedy="take them out; a key is taken from the environment variable named by key_variable",
            )


def _fields(value: Any, place: str, name: str = "") -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _fields(item, f"{place}.{inner}" if place else str(inner), str(inner))
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _fields(item, f"{place}[{number}]", name)
    else:
        yield place, name, value


def _looks_like_key(name: str, value: Any) -> bool:
    if isinstance(value, str) and _KEY_VALUES.search(value):
        return True
    if not isinstance(value, str) or name in _HARMLESS:
        return False
    words = re.split(r"[^a-z0-9]+", name.lower())
    return words[-1] in _KEY_WORDS | _KEY_WORDS_IN_PAIRS


def _has_user(text: str) -> bool:
    try:
        return "://" in text and "@" in urlsplit(text).netloc
    except ValueError:
        return "@" in text
