from __future__ import annotations

import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.evaluator.inference import failures
from gniah.evaluator.inference.failures import Failure, asked_wait, by_status, error_message, error_status


@pytest.mark.parametrize(
    ("status", "message", "tier", "kind"),
    [
        (429, "Rate limit reached for requests", None, failures.RATE_LIMIT),
        (429, "Rate limit reached for requests", "flex", failures.RATE_LIMIT),
        (429, "Resource unavailable, resource_unavailable", "flex", failures.NO_CAPACITY),
        (429, "The model is overloaded", None, failures.RATE_LIMIT),
        (503, "no", "flex", failures.NO_CAPACITY),
        (503, "no", None, failures.SERVER),
        (529, "Overloaded", None, failures.SERVER),
        (500, "boom", "flex", failures.SERVER),
        (502, "", None, failures.SERVER),
        (408, "", None, failures.SERVER),
        (429, "You exceeded your current quota, please check your plan and billing details", None, failures.MONEY),
        (402, "pay", None, failures.MONEY),
        (400, "Your credit balance is too low", None, failures.MONEY),
        (
            429,
            "Request too large for gpt in organization x on tokens per min (TPM): Limit 500000, Requested 921000.",
            None,
            failures.OVER_QUOTA,
        ),
        (401, "Incorrect API key", None, failures.KEY),
        (403, "not allowed in your country", None, failures.KEY),
        (404, "The model does not exist", None, failures.MODEL),
        (400, "This model's maximum context length is 8192 tokens", None, failures.TOO_LONG),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", None, failures.TOO_LONG),
        (400, "The input token count (1200000) exceeds the maximum", None, failures.TOO_LONG),
        (400, "request (12031 tokens) exceeds the available context size (8192 tokens)", None, failures.TOO_LONG),
        (413, "payload", None, failures.TOO_LONG),
        (400, "Invalid value for temperature", None, failures.REFUSED),
        (422, "top_k must be positive", None, failures.REFUSED),
        (400, "Invalid service_tier argument", "flex", failures.TIER),
        (400, "Invalid service_tier argument", None, failures.REFUSED),
        (418, "teapot", None, failures.REFUSED),
    ],
)
def test_a_status_and_its_words_tell_the_kind(status: int, message: str, tier: str | None, kind: str) -> None:
    failure = by_status(status, message, {}, tier=tier)
    assert failure.kind == kind
    assert str(status) in failure.message and message in failure.message


def test_every_kind_is_free_or_perhaps_paid_or_final() -> None:
    kinds = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, str)}
    assert len(kinds) == 18
    groups = (failures.FREE, failures.PERHAPS_PAID, failures.LAST, failures.ENDS_A_MODEL, {failures.TIER})
    assert kinds == set().union(*groups)
    assert not failures.FREE & failures.PERHAPS_PAID


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": " 7.5 "}, 7.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": email.utils.formatdate(1000.0 + 90, usegmt=True)}, 90.0),
        ({"retry-after": email.utils.formatdate(1000.0 - 90, usegmt=True)}, 0.0),
        ({"retry-after": "Wed, 99 Foo 2026 00:00:00 GMT"}, None),
    ],
)
def test_a_wait_is_read_in_both_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers, now=1000.0) == seconds


def test_google_puts_its_wait_into_the_body() -> None:
    assert asked_wait({}, '{"@type": "RetryInfo", "retryDelay": "34.5s"}') == 34.5


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=3), st.text(max_size=60))
def test_no_header_stops_the_reading(headers: dict[str, str], message: str) -> None:
    found = asked_wait({**headers, "retry-after": message}, message, now=0.0)
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("value", "message", "status"),
    [
        ({"error": {"message": "slow", "type": "t", "code": 429}}, "slow, t, 429", 429),
        ({"error": {"message": "slow", "code": "503"}}, "slow, 503", 503),
        ({"error": {"message": "slow", "code": "rate_limit"}}, "slow, rate_limit", None),
        ({"error": {"message": "no", "metadata": {"raw": "upstream says no"}}}, "no, upstream says no", None),
        ({"error": "plain"}, "plain", None),
        ({"error": None}, None, None),
        ({"error": {}}, None, None),
        ({"error": {"code": True}}, "True", None),
        ({"error": {"odd": 1}}, "{'odd': 1}", None),
        ([], None, None),
        ("error", None, None),
    ],
)
def test_errors_of_all_shapes_are_read(value: object, message: str | None, status: int | None) -> None:
    assert error_message(value) == message
    assert error_status(value) == status


def test_a_long_message_is_cut() -> None:
    assert len(Failure("x", "a" * 5000).message) == 1000
