"""The ranks of tiktoken's encodings without a network, from a package that carries them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from gniah.records.errors import GniahError, MissingDependency, UsageFault
from gniah.records.files import sha256_file, whole_file

# tiktoken keeps a file under the SHA-1 of its address and checks the SHA-256 of what it finds there.
RANK_FILES = {
    "o200k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "o200k.vocab",
    ),
}


@cache
def tiktoken_encoding(name: str) -> Any:
    """Return an encoding. Raises UsageFault for an unknown one, MissingDependency when its ranks cannot be had."""
    import tiktoken

    if name not in tiktoken.list_encoding_names():
        known = ", ".join(sorted(tiktoken.list_encoding_names()))
        raise UsageFault(f"tiktoken has no encoding {name!r}; it has {known}")
    with _ranks_at_hand(name):
        try:
            return tiktoken.get_encoding(name)
        except (OSError, ValueError) as error:
            raise MissingDependency(
                f"the ranks of {name} could not be loaded: {error}",
                remedy="pip install quicktok-v1, or set TIKTOKEN_CACHE_DIR to a folder that holds them",
            ) from None


@contextmanager
def _ranks_at_hand(name: str) -> Iterator[None]:
    """Put an encoding's ranks where tiktoken looks first, unless they are there, from a package that has them.

    tiktoken itself then checks their hash, so nothing is taken on trust. Where its cache is switched off or cannot be
    written to, a folder for this one time takes its place.
    """
    folder = _tiktoken_cache()
    if name not in RANK_FILES or (folder is not None and _offer_ranks(name, folder)):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="gniah-ranks-") as place:
        if not _offer_ranks(name, Path(place)):
            yield
            return
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = place
        try:
            yield
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


def _offer_ranks(name: str, folder: Path) -> bool:
    """Whether a folder holds the ranks of an encoding, after they were put there if they could be."""
    address, wanted, vocabulary = RANK_FILES[name]
    path = folder / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    if path.is_file() and sha256_file(path) == wanted:
        return True
    package = importlib.util.find_spec("quicktok")
    source = Path(package.origin).parent / "data" / vocabulary if package and package.origin else None
    if source is None or not source.is_file():
        return False
    ranks = _ranks_of(source.read_bytes())
    if hashlib.sha256(ranks).hexdigest() != wanted:
        return False
    try:
        with whole_file(path) as stream:
            stream.write(ranks)
    except GniahError:
        return False
    return True


def _tiktoken_cache() -> Path | None:
    """Return the folder where tiktoken keeps its files, by its own rules; None when it keeps none."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _ranks_of(vocabulary: bytes) -> bytes:
    """Return the lines of a `.tiktoken` file for a vocabulary of (length: u16, bytes, rank: u32) entries."""
    import base64

    (entries,) = struct.unpack_from("<I", vocabulary)
    position = 4
    lines: dict[int, bytes] = {}
    for _ in range(entries):
        (length,) = struct.unpack_from("<H", vocabulary, position)
        token = vocabulary[position + 2 : position + 2 + length]
        (rank,) = struct.unpack_from("<I", vocabulary, position + 2 + length)
        position += 6 + length
        lines[rank] = base64.b64encode(token) + b" " + str(rank).encode() + b"\n"
    return b"".join(lines[rank] for rank in sorted(lines))
