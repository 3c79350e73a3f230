"""A provider on loopback with batch interfaces in both shapes: files, batches, results, lists.

It answers by the prompt, counts what it is asked, and can be told to fail: a `trouble` is looked up before each call by
its method and path, and says what goes wrong with it. Batches end when they are told to.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OPENAI, ANTHROPIC = "openai", "anthropic"


@dataclass
class Trouble:
    """What goes wrong with one call. `after` does it when the call has had its effect, so that its answer is lost."""

    status: int | None = None
    message: str = "trouble"
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    after: bool = False
    cut: int | None = None
    body: bytes | None = None
    act: Callable[[], None] | None = None


@dataclass
class Made:
    """One batch at the provider. `results` are set when it ends: lines in the shape of the interface."""

    id: str
    shape: str
    requests: list[tuple[str, dict[str, Any]]]
    metadata: dict[str, Any]
    created: float
    state: str
    raw: bytes = b""
    answers: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    refusal: dict[str, Any] | None = None
    results_gone: bool = False


def prompt_of(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def text_for(body: dict[str, Any]) -> str:
    """Return the answer of this provider to a request, live or in a batch."""
    return f"About {len(prompt_of(body))} letters, seed {body.get('seed')}.\n\\answer{{YES}}"


class BatchProvider:
    """A running provider. `asked` counts how often each request was paid for, live ones and those of batches."""

    def __init__(self, ends: str | None = "completed") -> None:
        self.ends = ends
        self.text = text_for
        self.prompt_tokens = 1000
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Made] = {}
        self.calls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.asked: Counter[str] = Counter()
        self.live: list[dict[str, Any]] = []
        self.trouble: Callable[[str, str, int], Trouble | None] = lambda method, path, number: None
        self.page = 100
        self.wanted_key: str | None = None
        self.result_order: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda lines: lines
        self.lock = threading.RLock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                provider.serve(self, "GET")

            def do_POST(self) -> None:
                provider.serve(self, "POST")

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, part: str) -> int:
        return sum(part in call for call in self.calls)

    # What happens to batches.

    def end(self, made: Made, state: str, fate: Callable[[int], str] = lambda number: "succeeded") -> None:
        """End a batch: each request by the fate of its number: succeeded, errored, expired, canceled, missing."""
        with self.lock:
            made.state = state
            made.answers, made.errors = [], []
            for number, (name, body) in enumerate(made.requests):
                self._fate(made, fate(number), name, body)
            made.answers, made.errors = self.result_order(made.answers), self.result_order(made.errors)

    def _fate(self, made: Made, fate: str, name: str, body: dict[str, Any]) -> None:
        if fate == "missing":
            return
        if made.shape == ANTHROPIC:
            result: dict[str, Any] = {"type": fate}
            if fate == "succeeded":
                result["message"] = self.message(body)
            if fate == "errored":
                inner = {"type": "invalid_request_error", "message": "prompt is too long: 5 tokens > 4 maximum"}
                result["error"] = {"type": "error", "error": inner}
            made.answers.append({"custom_id": name, "result": result})
            return
        line: dict[str, Any] = {"id": f"req-{name[:6]}", "custom_id": name, "response": None, "error": None}
        if fate == "succeeded":
            line["response"] = {"status_code": 200, "request_id": "r", "body": self.completion(body)}
            made.answers.append(line)
        elif fate == "errored":
            error = {"message": "This model's maximum context length is 4 tokens", "type": "invalid_request_error"}
            line["response"] = {"status_code": 400, "request_id": "r", "body": {"error": error}}
            made.errors.append(line)
        else:
            code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[fate]
            line["error"] = {"code": code, "message": "This request could not be executed."}
            made.errors.append(line)

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text(body), "reasoning_content": "Thought."}
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": 20, "total_tokens": 20 + self.prompt_tokens}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": "served-1",
            "choices": [choice],
            "usage": usage,
        }

    def message(self, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": "msg-1",
            "type": "message",
            "role": "assistant",
            "model": "served-2",
            "content": [
                {"type": "thinking", "thinking": "Thought.", "signature": "s"},
                {"type": "text", "text": self.text(body)},
            ],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": self.prompt_tokens, "output_tokens": 20},
        }

    # Calls.

    def serve(self, handler: BaseHTTPRequestHandler, method: str) -> None:
        body = self._read(handler)
        path = handler.path
        with self.lock:
            self.calls.append(f"{method} {path}")
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            trouble = self.trouble(method, path, len(self.calls))
        if trouble is not None and trouble.act is not None:
            trouble.act()
        if trouble is not None and not trouble.after and self._fail(handler, trouble):
            return
        key = handler.headers.get("x-api-key") or handler.headers.get("authorization", "").removeprefix("Bearer ")
        if self.wanted_key is not None and key != self.wanted_key:
            self._send(handler, 401, _json({"error": {"message": f"Incorrect API key provided: {key}"}}))
            return
        with self.lock:
            status, answer = self._answer(handler, method, path, body)
        if trouble is not None and trouble.after and self._fail(handler, trouble):
            return
        self._send(handler, status, answer, None if trouble is None else trouble.cut)

    def _read(self, handler: BaseHTTPRequestHandler) -> bytes:
        found = bytearray()
        left = int(handler.headers.get("content-length") or 0)
        while left > 0 and (piece := handler.rfile.read(min(left, 1 << 20))):
            found += piece
            left -= len(piece)
        return bytes(found)

    def _fail(self, handler: BaseHTTPRequestHandler, trouble: Trouble) -> bool:
        if trouble.drop:
            handler.close_connection = True
            with contextlib.suppress(OSError):
                handler.connection.shutdown(2)
            return True
        if trouble.body is not None:
            self._send(handler, trouble.status or 200, trouble.body)
            return True
        if trouble.status is not None:
            handler.close_connection = False
            self._send(handler, trouble.status, _json({"error": {"message": trouble.message}}), more=trouble.headers)
            return True
        return False

    def _send(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        body: bytes,
        cut: int | None = None,
        more: dict[str, str] | None = None,
    ) -> None:
        with contextlib.suppress(OSError):
            handler.send_response(status)
            handler.send_header("content-length", str(len(body)))
            for name, value in (more or {}).items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body if cut is None else body[:cut])
            if cut is not None:
                handler.close_connection = True
                handler.wfile.flush()
                handler.connection.shutdown(2)

    def _answer(self, handler: BaseHTTPRequestHandler, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        place, _, query = path.partition("?")
        if method == "POST" and place == "/v1/chat/completions":
            return self._live(json.loads(body), self.completion)
        if method == "POST" and place == "/v1/messages":
            return self._live(json.loads(body), self.message)
        if method == "POST" and place == "/v1/files":
            return self._upload(handler, body)
        if place == "/v1/batches":
            return self._make_openai(json.loads(body)) if method == "POST" else self._list(OPENAI, query)
        if place == "/v1/messages/batches":
            return self._make_anthropic(json.loads(body)) if method == "POST" else self._list(ANTHROPIC, query)
        if found := re.fullmatch(r"/v1/(?:messages/)?batches/([^/]+)(/cancel|/results)?", place):
            return self._one(found[1], found[2] or "")
        if found := re.fullmatch(r"/v1/files/([^/]+)/content", place):
            return self._content(found[1])
        return 404, _json({"error": {"message": f"no such place: {place}"}})

    def _live(self, body: dict[str, Any], answer: Callable[[dict[str, Any]], dict[str, Any]]) -> tuple[int, bytes]:
        self.live.append(body)
        self.asked[prompt_of(body)] += 1
        return 200, _json(answer(body))

    def _upload(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        head = f"content-type: {handler.headers['content-type']}\r\n\r\n".encode()
        parts = {}
        boundary = re.search(r"boundary=(\S+)", handler.headers["content-type"])
        assert boundary is not None and head
        for part in body.split(b"--" + boundary[1].encode())[1:-1]:
            top, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
            name = re.search(rb'name="([^"]+)"', top)
            assert name is not None
            parts[name[1].decode()] = content
        if parts.get("purpose") != b"batch":
            return 400, _json({"error": {"message": "purpose"}})
        name_ = f"file-{len(self.files)}"
        # The form's parts were stripped of the newlines at their end.
        self.files[name_] = parts["file"] + b"\n"
        return 200, _json({"id": name_, "object": "file", "bytes": len(parts["file"])})

    def _make_openai(self, value: dict[str, Any]) -> tuple[int, bytes]:
        raw = self.files[value["input_file_id"]]
        requests = []
        for line in raw.splitlines():
            one = json.loads(line)
            assert one["method"] == "POST" and one["url"] == value["endpoint"]
            requests.append((one["custom_id"], one["body"]))
        return self._make(OPENAI, requests, value.get("metadata") or {}, raw)

    def _make_anthropic(self, value: dict[str, Any]) -> tuple[int, bytes]:
        return self._make(ANTHROPIC, [(one["custom_id"], one["params"]) for one in value["requests"]], {}, b"")

    def _make(
        self, shape: str, requests: list[tuple[str, dict[str, Any]]], metadata: dict[str, Any], raw: bytes
    ) -> tuple[int, bytes]:
        names = [name for name, _ in requests]
        if len(set(names)) < len(names) or any(not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names):
            return 400, _json({"error": {"message": "custom_id"}})
        name = f"batch_{shape}_{len(self.batches)}"
        made = Made(name, shape, requests, metadata, time.time(), "in_progress", raw)
        self.batches[name] = made
        for _, body in requests:
            self.asked[prompt_of(body) if body.get("seed") is None else f"{prompt_of(body)}#{body['seed']}"] += 1
        if self.ends is not None:
            self.end(made, self.ends if shape == OPENAI else "ended")
        return 200, _json(self.describe(made))

    def describe(self, made: Made) -> dict[str, Any]:
        if made.shape == OPENAI:
            value: dict[str, Any] = {
                "id": made.id,
                "object": "batch",
                "status": made.state,
                "created_at": int(made.created),
                "metadata": made.metadata,
                "request_counts": {
                    "total": len(made.requests),
                    "completed": len(made.answers),
                    "failed": sum(line["response"] is not None for line in made.errors),
                },
                "output_file_id": f"{made.id}-answers" if made.answers else None,
                "error_file_id": f"{made.id}-errors" if made.errors else None,
                "errors": made.refusal,
            }
            return value
        kinds = Counter(line["result"]["type"] for line in made.answers if "result" in line)
        counts = {kind: kinds[kind] for kind in ("succeeded", "errored", "expired", "canceled")}
        ended = made.state == "ended"
        counts["processing"] = 0 if ended else len(made.requests)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(made.created))
        url = "https://elsewhere.example/steal"
        return {
            "id": made.id,
            "type": "message_batch",
            "processing_status": made.state,
            "created_at": moment,
            "request_counts": counts,
            "results_url": url if ended else None,
        }

    def _list(self, shape: str, query: str) -> tuple[int, bytes]:
        wanted = dict(part.split("=") for part in query.split("&")) if query else {}
        after = wanted.get("after") or wanted.get("after_id")
        found = [made for made in reversed(self.batches.values()) if made.shape == shape]
        start = next((place + 1 for place, made in enumerate(found) if made.id == after), 0)
        shown = found[start : start + self.page]
        more = len(found) > start + self.page
        return 200, _json({"object": "list", "data": [self.describe(made) for made in shown], "has_more": more})

    def _one(self, name: str, what: str) -> tuple[int, bytes]:
        made = self.batches.get(name)
        if made is None:
            return 404, _json({"error": {"message": f"No batch {name}"}})
        if what == "/results":
            return 200, _lines(made.answers)
        if what == "/cancel":
            made.state = "cancelling" if made.shape == OPENAI else "canceling"
        return 200, _json(self.describe(made))

    def _content(self, name: str) -> tuple[int, bytes]:
        made = self.batches.get(name.rpartition("-")[0])
        if made is None or made.results_gone:
            return 404, _json({"error": {"message": f"No file {name}"}})
        return 200, _lines(made.answers if name.endswith("-answers") else made.errors)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _lines(values: list[dict[str, Any]]) -> bytes:
    return b"".join(_json(value) + b"\n" for value in values)


@contextlib.contextmanager
def batching(ends: str | None = "completed") -> Iterator[BatchProvider]:
    """Give a running provider whose batches end at once in a state, or never with None."""
    provider = BatchProvider(ends)
    try:
        yield provider
    finally:
        provider.close()
