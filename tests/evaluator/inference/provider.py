"""A provider on loopback that plays a script: what it answers, when, and how it fails.

It speaks OpenAI's chat completions over plain HTTP in a thread of its own, and notes every request it gets. It is
written on sockets so that it can break off anywhere.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}


@dataclass
class Asked:
    """One request as it arrived."""

    number: int
    at: float
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else content[0]["text"]


@dataclass
class Act:
    """What the provider does with one request. The plain one streams a whole answer when a stream was asked for."""

    text: str = "Thought.\n\\answer{YES}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    error: Mapping[str, Any] | None = None
    finish: str | None = "stop"
    usage: Mapping[str, Any] | None = field(default_factory=lambda: dict(USAGE))
    reasoning: str = ""
    reasoning_name: str = "reasoning_content"
    delay: float = 0.0
    pieces: int = 2
    piece_delay: float = 0.0
    stall_after: int | None = None
    drop_after: int | None = None
    drop_at_once: bool = False
    garbage_after: int | None = None
    error_after: Mapping[str, Any] | None = None
    done: bool = True
    more: Mapping[str, Any] = field(default_factory=dict)


Script = Callable[[Asked], Act]


def slow_down(**headers: str) -> Act:
    """Return a refusal for too many requests."""
    error = {"message": "Rate limit reached, slow down.", "type": "tokens", "code": "rate_limit_exceeded"}
    return Act(status=429, headers={name.replace("_", "-"): value for name, value in headers.items()}, error=error)


class Provider:
    """A running provider. `asked` are the requests that came, `most_at_once` how many ran together at most."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.running = 0
        self.most_at_once = 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        provider = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    while provider.serve(self.rfile, self.wfile, self.connection):
                        pass

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 512

        self._server = Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def count(self, part: str = "") -> int:
        """Return how many requests came whose prompt holds a text."""
        return sum(part in one.prompt for one in self.asked)

    def per_prompt(self) -> Counter[str]:
        return Counter(one.prompt for one in self.asked)

    def serve(self, source: Any, sink: Any, connection: socket.socket) -> bool:
        """Answer one request; return whether the connection stays open."""
        first = source.readline()
        if not first:
            return False
        headers = {}
        while (line := source.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        content = source.read(length)
        if len(content) < length:  # who asked is gone
            return False
        body = json.loads(content)
        with self.lock:
            asked = Asked(len(self.asked), time.monotonic(), headers, body)
            self.asked.append(asked)
            self.running += 1
            self.most_at_once = max(self.most_at_once, self.running)
        try:
            return self.play(self.script(asked), asked, sink, connection)
        finally:
            with self.lock:
                self.running -= 1

    def play(self, act: Act, asked: Asked, sink: Any, connection: socket.socket) -> bool:
        if act.drop_at_once:
            return reset(connection)
        if act.delay:
            self.released.wait(act.delay)
        if act.status != 200 or act.body is not None or act.error is not None:
            body = act.body if act.body is not None else json.dumps({"error": act.error or {"message": "no"}}).encode()
            sink.write(head(act, len(body), "application/json") + body)
            return True
        if not asked.body.get("stream"):
            body = json.dumps(self.whole(act, asked)).encode()
            sink.write(head(act, len(body), "application/json") + body)
            return True
        return self.stream(act, asked, sink, connection)

    def whole(self, act: Act, asked: Asked) -> dict[str, Any]:
        message = {"role": "assistant", "content": act.text}
        if act.reasoning:
            message[act.reasoning_name] = act.reasoning
        choice = {"index": 0, "message": message, "finish_reason": act.finish}
        return {**self.frame(asked, "chat.completion"), "choices": [choice], "usage": act.usage, **act.more}

    def frame(self, asked: Asked, kind: str) -> dict[str, Any]:
        return {"id": f"answer-{asked.number}", "object": kind, "created": 1, "model": "served-model-1"}

    def stream(self, act: Act, asked: Asked, sink: Any, connection: socket.socket) -> bool:
        sink.write(head(act, None, "text/event-stream"))
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if act.reasoning:
            deltas.append({act.reasoning_name: act.reasoning})
        size = max(1, -(-len(act.text) // act.pieces))
        deltas += [{"content": act.text[start : start + size]} for start in range(0, len(act.text), size)]
        for number, delta in enumerate(deltas):
            if act.drop_after == number:
                return reset(connection)
            if act.stall_after == number:
                self.released.wait(60)
                return False
            if act.garbage_after == number:
                chunked(sink, b"data: {no json\n\n")
            if act.piece_delay:
                self.released.wait(act.piece_delay)
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            self.event(sink, {**self.frame(asked, "chat.completion.chunk"), "choices": [choice], **act.more})
        if act.error_after is not None:
            self.event(sink, {"error": act.error_after})
        if act.finish is not None:
            choice = {"index": 0, "delta": {}, "finish_reason": act.finish}
            self.event(sink, {**self.frame(asked, "chat.completion.chunk"), "choices": [choice], **act.more})
        if act.usage is not None:
            self.event(sink, {**self.frame(asked, "chat.completion.chunk"), "choices": [], "usage": act.usage})
        if act.done:
            chunked(sink, b"data: [DONE]\n\n")
        sink.write(b"0\r\n\r\n")
        return True

    def event(self, sink: Any, value: Mapping[str, Any]) -> None:
        chunked(sink, b"data: " + json.dumps(value).encode() + b"\n\n")


def head(act: Act, length: int | None, kind: str) -> bytes:
    lines = [f"HTTP/1.1 {act.status} Words"]
    lines += [] if "content-type" in act.headers else [f"content-type: {kind}"]
    lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    lines += [f"{name}: {value}" for name, value in act.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunked(sink: Any, data: bytes) -> None:
    sink.write(b"%x\r\n%s\r\n" % (len(data), data))
    sink.flush()


def reset(connection: socket.socket) -> bool:
    """Break a connection off the hard way."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.close()
    return False


@contextlib.contextmanager
def playing(script: Script | Act) -> Iterator[Provider]:
    """Give a provider that plays a script, or one act for ever."""
    provider = Provider(script if callable(script) else lambda _: script)
    try:
        yield provider
    finally:
        provider.close()
