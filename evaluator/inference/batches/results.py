"""The lines that a batch's results are made of, each told apart: an answer, a refusal, or no answer at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from gniah.evaluator.inference.batches.translation import ANTHROPIC
from gniah.evaluator.inference.failures import INVALID, SERVER, Failure, by_status, error_message
from gniah.records.files import machine_trouble

# Nothing was answered and nothing is charged: these requests are asked again by the next submission.
EXPIRED = "batch-expired"
CANCELED = "batch-canceled"
# The batch ended without a word about a request.
NO_RESULT = "no-result"
# Anthropic's names of errors, with the status that a live request has them with.
_STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One result: the request's name in the batch, and the status and body of its answer, or its failure."""

    custom_id: str
    status: int = 200
    body: bytes = b""
    failure: Failure | None = None


def read_lines(shape: str, path: Path) -> Iterator[Line | None]:
    """Yield the results in a file, None for a line that is none."""
    with machine_trouble(path), path.open("rb") as stream:
        for raw in stream:
            if raw.strip():
                value = _object(raw)
                yield None if value is None else _line(shape, value)


def _line(shape: str, value: Mapping[str, Any]) -> Line | None:
    name = value.get("custom_id")
    if not isinstance(name, str):
        return None
    return _anthropic(name, value) if shape == ANTHROPIC else _openai(name, value)


def _openai(name: str, value: Mapping[str, Any]) -> Line:
    response = value.get("response")
    if isinstance(response, Mapping):
        status = response.get("status_code")
        if isinstance(status, int) and 100 <= status < 600:
            return Line(name, status, _bytes(response.get("body")))
    words = error_message(value) or "a result without an answer"
    error = value.get("error")
    code = str(error.get("code")) if isinstance(error, Mapping) else ""
    kind = EXPIRED if "expired" in code else CANCELED if "cancel" in code else SERVER if error else INVALID
    return Line(name, failure=Failure(kind, words))


def _anthropic(name: str, value: Mapping[str, Any]) -> Line:
    result = value.get("result")
    kind = result.get("type") if isinstance(result, Mapping) else None
    if isinstance(result, Mapping) and kind == "succeeded":
        return Line(name, 200, _bytes(result.get("message")))
    if isinstance(result, Mapping) and kind == "errored":
        error = result.get("error")
        inner = error.get("error") if isinstance(error, Mapping) else None
        known = inner if isinstance(inner, Mapping) else error if isinstance(error, Mapping) else {}
        status = _STATUSES.get(str(known.get("type")), 500)
        return Line(name, failure=by_status(status, error_message({"error": known}) or "no reason given", {}))
    if kind == "expired":
        return Line(name, failure=Failure(EXPIRED, "the batch expired before this request was answered"))
    if kind == "canceled":
        return Line(name, failure=Failure(CANCELED, "the batch was canceled before this request was answered"))
    return Line(name, failure=Failure(INVALID, f"a result of the kind {str(kind)[:40]!r}"))


def _object(raw: bytes) -> Mapping[str, Any] | None:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        try:  # lone surrogates and the like, which the pool takes too
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _bytes(body: object) -> bytes:
    text = json.dumps(body, ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")
