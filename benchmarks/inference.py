"""Sending many long prompts at once: ours, a bare LiteLLM loop, inspect_ai and lm-eval, against one loopback server.

    python benchmarks/inference.py [--requests 200] [--at-once 64] [--rounds 3] [--without PEER …] [--work FOLDER]

Each client is a process of its own, asks the same prompts in the same number at once, and is measured from outside
(processor seconds of its tree, peak memory) and, after its imports, from inside (requests a second). inspect_ai and
lm-eval get fresh environments below FOLDER, which stay there. The server is another process: it reads a request to its
end, waits, and answers; a client of bare sockets shows what it bears. Other rows: memory at five times as many
requests, and the time between the last byte of an answer and its record being on disk.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_clients import MODEL, SENTENCE, SYSTEM

CLIENTS = Path(__file__).resolve().with_name("inference_clients.py")
PEERS = {"inspect_ai": ("inspect_ai", "openai"), "lm-eval": ("lm_eval[api]",)}
COMMAND = "gniah-eval run"
CLIENTS_SHOWN = ("ours", COMMAND, "litellm", "litellm, switches as ours", "inspect_ai", "lm-eval")
STREAMED = CLIENTS_SHOWN[:4]
WINDOW_WAYS = (
    ("whole", False, 1, 0.0),
    ("streamed, 10 events a second each", True, 20, 0.1),
    ("streamed, 64 events in one go", True, 64, 0.0),
)
PARTS = ("peers", "memory", "windows")
NUMBERS = ("seconds", "busy", "whole_seconds", "whole_busy", "peak")


@dataclass
class Server:
    """The running server: its address, and, once closed, the seconds that it computed."""

    address: str
    seconds: float = 0.0


@contextlib.contextmanager
def serving(delay: float, pieces: int, gap: float = 0) -> Iterator[Server]:
    words = [sys.executable, str(CLIENTS), "serve", str(delay), str(pieces), str(gap)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    server = Server(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
    try:
        yield server
    finally:
        out, _ = process.communicate()
        server.seconds = float(out)


@dataclass(frozen=True)
class Measured:
    """One client's process: seconds and processor seconds of asking and of everything, and its peak in MB."""

    seconds: float
    busy: float
    whole_seconds: float
    whole_busy: float
    peak: float
    printed: tuple[dict[str, Any], ...] = ()


def measured(words: list[str], work: Path, requests: int) -> Measured:
    began = time.perf_counter()
    with (work / "client.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, cwd=work)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    whole, busy = time.perf_counter() - began, used.ru_utime + used.ru_stime
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}; see {work / 'client.log'}")
    lines = [json.loads(line) for line in output.splitlines() if line.startswith('{"')] or [{}]
    last = {"seconds": whole, "busy": busy, "answers": requests, **lines[-1]}
    if last["answers"] != requests:
        raise SystemExit(f"{words}: {last['answers']} whole answers to {requests} requests")
    return Measured(last["seconds"], last["busy"], whole, busy, used.ru_maxrss / 1024, tuple(lines))


def make_examples(path: Path, count: int, size: int) -> Path:
    """Write examples with prompts of so many bytes each, all of them different."""
    if path.exists():
        return path
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for number in range(count):
            start = f"Prompt {number} of {count}.\n"
            text = (start + SENTENCE * (size // len(SENTENCE.encode()) + 1)).encode()[:size].decode("utf-8", "ignore")
            value = {
                "qid": f"{number:064x}", "reachability_task": "yes-no", "system_prompt": SYSTEM, "user_prompt": text,
                "question": f"Question {number}?", "answer": "YES", "question_type": "reachability-yesno",
                "answer_type": "REACHABILITY_YESNO", "config": {"index": number},
                "token_counts": {"o200k_base": len(text) // 4 - 9}, "generator_version": "benchmark",
                "experiments": [{"name": "benchmark", "context_length": 200_000, "slot": number}],
            }  # fmt: skip
            stream.write(json.dumps(value, ensure_ascii=False) + "\n")
    return path


class Bench:
    """The clients, run one after the other against a server each."""

    def __init__(self, work: Path, delay: float, pieces: int, pythons: Mapping[str, str]) -> None:
        self.work, self.delay, self.pieces, self.pythons = work, delay, pieces, pythons
        self.gap = self.served = 0.0

    def run(self, name: str, file: Path, requests: int, at_once: int, stream: bool) -> Measured:
        with serving(self.delay, self.pieces, self.gap) as server:
            if name == COMMAND:
                words = self._command(server.address, file, at_once, stream)
            else:
                how = "stream" if stream else "whole"
                python = self.pythons.get(name, sys.executable)
                words = [python, str(CLIENTS), name, server.address, str(file), str(at_once), how, str(self.work)]
            found = measured(words, self.work, requests)
        self.served = server.seconds
        return found

    def _command(self, address: str, file: Path, at_once: int, stream: bool) -> list[str]:
        program = Path(sys.executable).parent / "gniah-eval"
        out = tempfile.mkdtemp(dir=self.work, prefix="run-")
        return [
            *(str(program), "run", str(file), "--model", MODEL, "--base-address", address, "--out", out),
            *("--concurrency", str(at_once), "--stream" if stream else "--no-stream"),
        ]


def environments(work: Path, without: Sequence[str]) -> dict[str, str]:
    """Make the peers' environments where they are not there yet; return each one's Python."""
    found = {}
    for name, packages in PEERS.items():
        if name in without:
            continue
        folder = work / f"environment-{name}"
        python = folder / "bin" / "python"
        if not (folder / "whole").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
            (folder / "whole").touch()
        found[name] = str(python)
        listed = subprocess.run([str(python), "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
        versions = [line for line in listed.splitlines() if line.startswith(("inspect_ai==", "lm_eval==", "openai=="))]
        print(f"{name}: {', '.join(versions)}", flush=True)
    return found


def middle(found: Sequence[Measured]) -> Measured:
    """Return the medians of several rounds."""
    return Measured(*(statistics.median(getattr(one, name) for one in found) for name in NUMBERS))


def compare(bench: Bench, file: Path, given: argparse.Namespace) -> None:
    """All clients in turn, as many rounds as are asked for, so that what else runs meets all of them."""
    ways = [(name, stream) for name in CLIENTS_SHOWN for stream in (False, True) if name in STREAMED or not stream]
    ways = [(name, stream) for name, stream in ways if name not in given.without]
    rounds: dict[tuple[str, bool], list[Measured]] = {way: [] for way in ways}
    for _ in range(given.rounds):
        for name, stream in ways:
            rounds[name, stream].append(bench.run(name, file, given.requests, given.at_once, stream))
    found = {way: middle(one) for way, one in rounds.items()}
    print(f"\n{given.requests} prompts of {given.size / 1e6:g} MB, {given.at_once} at once, {loads()}\n")
    print("| client | answers | requests/s | CPU s, asking | CPU s, whole process | seconds, whole | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for (name, stream), one in found.items():
        how = "streamed" if stream else "whole"
        inside = name != COMMAND
        rate, busy = (f"{given.requests / one.seconds:.1f}", f"{one.busy:.1f}") if inside else ("–", "–")
        print(f"| {name} | {how} | {rate} | {busy} | {one.whole_busy:.1f} | {one.whole_seconds:.1f} | {one.peak:.0f} |")
    print("\n| ours against | answers | requests/s | CPU s, asking | CPU s, whole process | peak memory |")
    print("|---|---|---|---|---|---|")
    for (name, stream), one in found.items():
        if name not in ("ours", COMMAND):
            us, how = found["ours", stream], "streamed" if stream else "whole"
            ratios = (one.seconds / us.seconds, us.busy / one.busy, us.whole_busy / one.whole_busy, us.peak / one.peak)
            print(f"| {name} | {how} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |", flush=True)


def memory(bench: Bench, files: Mapping[int, Path], at_once: int) -> None:
    print("\n| requests | answers | peak MB | CPU s, asking |\n|---|---|---|---|")
    for stream in (False, True):
        for count, file in files.items():
            one = bench.run("ours", file, count, at_once, stream)
            print(f"| {count:,} | {'streamed' if stream else 'whole'} | {one.peak:.0f} | {one.busy:.1f} |", flush=True)


def windows(bench: Bench, file: Path, requests: int) -> None:
    """From an answer's last byte to its record on disk: answers in one go, and streams as slow as real ones."""
    print("\nFrom the last byte of an answer to its record on disk, in ms\n")
    print("| at once | answers | median | 99 % | longest |\n|---|---|---|---|---|")
    for how, stream, pieces, gap in WINDOW_WAYS:
        bench.pieces, bench.gap = pieces, gap
        for at_once in (1, 8, 64):
            some = file.with_name(f"{at_once}-at-once.jsonl")
            count = min(requests, 40 * at_once)
            with file.open("rb") as source:
                some.write_bytes(b"".join(itertools.islice(source, count)))
            one = bench.run("ours, timed", some, count, at_once, stream).printed[0]
            shown = " | ".join(f"{1000 * one[name]:.0f}" for name in ("median", "99", "longest"))
            print(f"| {at_once} | {how} | {shown} |", flush=True)
    bench.gap = 0.0


def capacity(bench: Bench, file: Path, given: argparse.Namespace) -> None:
    """What the server bears, so that it is known not to be what is measured."""
    for stream in (False, True):
        one = bench.run("bare sockets", file, given.requests, given.at_once, stream)
        print(
            f"the server and a client of bare sockets, {'streamed' if stream else 'whole'}: "
            f"{given.requests / one.seconds:.0f} requests/s, server {bench.served:.2f} CPU s, client {one.busy:.2f}",
            flush=True,
        )


def loads() -> str:
    return f"{os.cpu_count()} cores, load {', '.join(f'{one:.1f}' for one in os.getloadavg())}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--size", type=int, default=800_000, help="bytes of a prompt")
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="the medians of so many are shown")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds before the server answers")
    parser.add_argument("--pieces", type=int, default=64, help="events with text in a streamed answer")
    parser.add_argument("--without", nargs="*", default=[], choices=CLIENTS_SHOWN, help="clients to leave out")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--work", type=Path, help="folder to work in (2 GB); environments stay there")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        work = (given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        work.mkdir(parents=True, exist_ok=True)
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=work)))
        peers = environments(work, given.without) if "peers" in given.parts else {}
        bench = Bench(place, given.delay, given.pieces, peers)
        files = {count: make_examples(place / f"{count}.jsonl", count, given.size) for count in sizes(given)}
        file = files[given.requests]
        capacity(bench, file, given)
        if "peers" in given.parts:
            compare(bench, file, given)
        if "memory" in given.parts:
            memory(bench, files, given.at_once)
        if "windows" in given.parts:
            windows(bench, file, given.requests)
        print(f"\nat the end: {loads()}")


def sizes(given: argparse.Namespace) -> tuple[int, ...]:
    return (given.requests, 5 * given.requests) if "memory" in given.parts else (given.requests,)


if __name__ == "__main__":
    main()
