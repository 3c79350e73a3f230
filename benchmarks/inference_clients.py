"""What `inference.py` starts: the server on loopback, and each client, in a process of its own.

Nothing but the standard library is imported at the top: the peers' environments have no gniah.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

SENTENCE = (
    "From the source I followed every reference in both directions, kept a list of the papers that I had seen, and\n"
    'went on until no line of the context named a new one. “Beyond” that paper – Müller\'s – is only one more "step". '
)
ANSWER = (SENTENCE * 4)[:600] + "\n\\answer{YES}"
SYSTEM = "You answer questions about research papers."
MODEL = "loopback"

# The server.


def frame(kind: str, number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"answer-{number}", "object": kind, "created": 1, "model": MODEL, **more}


def usage(size: int) -> dict[str, int]:
    return {"prompt_tokens": size // 4, "completion_tokens": 150, "total_tokens": size // 4 + 150}


def whole_answer(number: int, size: int) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
    body = json.dumps(frame("chat.completion", number, choices=[choice], usage=usage(size))).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def streamed_answer(number: int, size: int, pieces: int) -> list[bytes]:
    step = -(-len(ANSWER) // pieces)
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": ANSWER[start : start + step]}, None) for start in range(0, len(ANSWER), step)]
    events = [
        frame("chat.completion.chunk", number, choices=[{"index": 0, "delta": delta, "finish_reason": end}])
        for delta, end in (*deltas, ({}, "stop"))
    ]
    events.append(frame("chat.completion.chunk", number, choices=[], usage=usage(size)))
    lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events] + [b"data: [DONE]\n\n"]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = [b"%x\r\n%s\r\n" % (len(line), line) for line in lines]
    return [head, *chunks[:-1], chunks[-1] + b"0\r\n\r\n"]


class Answering(asyncio.Protocol):
    """One connection. Of a body only both ends are kept, where a request says whether it wants a stream."""

    numbers = itertools.count()

    def __init__(self, delay: float, pieces: int, gap: float) -> None:
        self.delay, self.pieces, self.gap = delay, pieces, gap
        self.head, self.size, self.got, self.first, self.last = b"", -1, 0, b"", b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        if self.size < 0:
            self.head += data
            head, end, data = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            if re.search(rb"\r\nexpect: 100", head, re.IGNORECASE):
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            found = re.search(rb"\r\ncontent-length: *([0-9]+)", head, re.IGNORECASE)
            self.size, self.got = int(found[1]) if found else 0, 0
        self.got += len(data)
        self.first = (self.first + data)[:500] if len(self.first) < 500 else self.first
        self.last = (self.last + data)[-500:]
        if self.got >= self.size:
            stream = re.search(rb'"stream": ?true', self.first + b"|" + self.last) is not None
            asyncio.get_running_loop().call_later(self.delay, self.answer, self.size, stream)
            self.head, self.size, self.first, self.last = b"", -1, b"", b""

    def answer(self, size: int, stream: bool) -> None:
        number = next(self.numbers)
        pieces = streamed_answer(number, size, self.pieces) if stream else [whole_answer(number, size)]
        self.write(pieces)

    def write(self, pieces: list[bytes]) -> None:
        """Write a piece, and each of the next ones a gap later, so that they travel apart."""
        if pieces and not self.transport.is_closing():
            self.transport.write(pieces[0])
            asyncio.get_running_loop().call_later(self.gap, self.write, pieces[1:])


async def serve(delay: float, pieces: int, gap: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(delay, pieces, gap), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, flush=True)


# The clients. Each returns how many answers it got; what it imports is imported before the clock starts.

Ask = Callable[[], Awaitable[int]]


def prompts(file: Path) -> Iterator[tuple[str, str]]:
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            value = json.loads(line)
            yield value["system_prompt"], value["user_prompt"]


def messages(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


async def by_workers(file: Path, at_once: int, ask: Callable[[list[dict[str, str]]], Awaitable[str]]) -> int:
    """Ask all prompts by so many workers, each of which takes the next; return how many answers were whole."""
    left = prompts(file)

    async def work() -> int:
        return sum([await ask(messages(*one)) == ANSWER for one in left])

    return sum(await asyncio.gather(*(work() for _ in range(at_once))))


def bare_sockets(address: str, file: Path, at_once: int, stream: bool, _: Path) -> Ask:
    port = int(address.split(":")[2].split("/")[0])

    async def ask() -> int:
        body = json.dumps({"messages": messages(*next(prompts(file))), "stream": stream}).encode()
        count = sum(1 for _ in file.open("rb"))
        left = iter(range(count))

        async def work() -> int:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
            done = 0
            for _ in left:
                writer.write(b"POST /v1 HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body))
                writer.write(body)
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"content-length: ([0-9]+)", head)
                await (reader.readexactly(int(found[1])) if found else reader.readuntil(b"\r\n0\r\n\r\n"))
                done += 1
            writer.close()
            return done

        return sum(await asyncio.gather(*(work() for _ in range(at_once))))

    return ask


def bare_litellm(address: str, file: Path, at_once: int, stream: bool, _: Path) -> Ask:
    import litellm

    more: dict[str, Any] = {"stream_options": {"include_usage": True}} if stream else {}

    async def ask_one(said: list[dict[str, str]]) -> str:
        response = await litellm.acompletion(
            model=f"openai/{MODEL}", messages=said, api_base=address, api_key="none", stream=stream, **more
        )
        if not stream:
            return str(response.choices[0].message.content)
        parts = []
        async for chunk in response:
            if chunk.choices and chunk.choices[0].delta.content:
                parts.append(chunk.choices[0].delta.content)
        return "".join(parts)

    return lambda: by_workers(file, at_once, ask_one)


def switched_litellm(address: str, file: Path, at_once: int, stream: bool, work: Path) -> Ask:
    from gniah.evaluator.inference.transport import load_litellm

    load_litellm()
    return bare_litellm(address, file, at_once, stream, work)


def ours(address: str, file: Path, at_once: int, stream: bool, work: Path) -> Ask:
    from gniah.evaluator.inference.asked_model import AskedModel
    from gniah.evaluator.inference.model_files import Limits, ModelFile
    from gniah.evaluator.inference.model_run import Work
    from gniah.evaluator.inference.runner import run_models
    from gniah.evaluator.inference.transport import LiteLLMTransport, load_litellm
    from gniah.evaluator.pool import open_pool
    from gniah.evaluator.selection import select

    load_litellm()
    model = AskedModel(
        ModelFile(MODEL, f"openai/{MODEL}", base_address=address, stream=stream, limits=Limits(concurrency=at_once))
    )

    async def ask() -> int:
        selection = select(file)
        with tempfile.TemporaryDirectory(dir=work) as place, selection, open_pool(Path(place, "run")) as pool:
            (tally,) = await run_models([Work(model, selection)], pool, LiteLLMTransport(at_once))
        return tally.answered

    return ask


def timed_ours(address: str, file: Path, at_once: int, stream: bool, work: Path) -> Ask:
    """Ours, with the times noted at which each answer's last byte came and its record was on disk."""
    from gniah.evaluator.inference.wire import Exchange
    from gniah.evaluator.pool import InferencePool

    ask = ours(address, file, at_once, stream, work)
    came: dict[str, float] = {}
    windows: list[float] = []
    feed, append_all = Exchange.feed, InferencePool.append_all

    def noted_feed(self: Exchange, data: bytes) -> None:
        now = time.monotonic()
        for found in re.findall(rb'"id": ?"([^"]+)"', data) or [self.__dict__.get("noted", b"")]:
            self.__dict__["noted"] = found
            came[found.decode()] = now
        feed(self, data)

    def noted_append(self: InferencePool, responses: Any) -> None:
        append_all(self, responses)
        now = time.monotonic()
        windows.extend(now - came[one.call.served["id"]] for one in responses)

    Exchange.feed, InferencePool.append_all = noted_feed, noted_append  # type: ignore[method-assign]

    async def noted() -> int:
        count = await ask()
        found = sorted(windows)
        shown = {"median": statistics.median(found), "99": found[int(0.99 * (len(found) - 1))], "longest": found[-1]}
        print(json.dumps(shown), flush=True)
        return count

    return noted


def by_inspect(address: str, file: Path, at_once: int, _: bool, work: Path) -> Ask:
    os.environ.update(LOOP_BASE_URL=address, LOOP_API_KEY="none", INSPECT_LOG_DIR=str(work / "inspect-logs"))
    from inspect_ai import Task, eval_async  # type: ignore[import-not-found]
    from inspect_ai.dataset import Sample, json_dataset  # type: ignore[import-not-found]
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser  # type: ignore[import-not-found]
    from inspect_ai.scorer import includes  # type: ignore[import-not-found]
    from inspect_ai.solver import generate  # type: ignore[import-not-found]

    def sample(value: dict[str, Any]) -> Any:
        said = [ChatMessageSystem(content=value["system_prompt"]), ChatMessageUser(content=value["user_prompt"])]
        return Sample(input=said, target=value["answer"], id=value["qid"])

    async def ask() -> int:
        task = Task(dataset=json_dataset(str(file), sample), solver=generate(), scorer=includes())
        (log,) = await eval_async(task, model=f"openai-api/loop/{MODEL}", max_connections=at_once, max_samples=at_once)
        return sum(one.output.completion == ANSWER for one in log.samples)

    return ask


TASK = """task: long_prompts
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
output_type: generate_until
doc_to_text: "{{user_prompt}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: [], max_gen_toks: 256, do_sample: false}
metric_list: [{metric: exact_match}]
"""


def by_lm_eval(address: str, file: Path, at_once: int, _: bool, work: Path) -> Ask:
    os.environ.update(OPENAI_API_KEY="none", HF_HUB_OFFLINE="1", HF_HOME=str(work / "hf"))
    import lm_eval  # type: ignore[import-not-found]
    from lm_eval.tasks import TaskManager  # type: ignore[import-not-found]

    folder = work / "lm-eval-task"
    folder.mkdir(exist_ok=True)
    (folder / "long_prompts.yaml").write_text(TASK.replace("FILE", json.dumps(str(file))), encoding="utf-8")

    async def ask() -> int:
        found = await asyncio.to_thread(
            lm_eval.simple_evaluate,
            model="local-chat-completions",
            model_args=f"model={MODEL},base_url={address}/chat/completions,num_concurrent={at_once},max_retries=1",
            tasks=["long_prompts"],
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            apply_chat_template=True,
            system_instruction=SYSTEM,
            bootstrap_iters=0,
        )
        return sum(one["resps"][0][0] == ANSWER for one in found["samples"]["long_prompts"])

    return ask


MAKERS: dict[str, Callable[[str, Path, int, bool, Path], Ask]] = {
    "bare sockets": bare_sockets,
    "ours": ours,
    "ours, timed": timed_ours,
    "litellm": bare_litellm,
    "litellm, switches as ours": switched_litellm,
    "inspect_ai": by_inspect,
    "lm-eval": by_lm_eval,
}


def client(name: str, address: str, file: Path, at_once: int, stream: bool, work: Path) -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    ask = MAKERS[name](address, file, at_once, stream, work)
    began, busy = time.perf_counter(), time.process_time()
    answers = asyncio.run(ask())  # type: ignore[arg-type]
    spent = {"seconds": time.perf_counter() - began, "busy": time.process_time() - busy, "answers": answers}
    print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
    else:
        client(
            sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "stream", Path(sys.argv[6])
        )
