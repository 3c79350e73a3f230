"""Tokenizer files of a repository on the Hugging Face Hub: from the local cache, else from the network."""

from __future__ import annotations

import os
from pathlib import Path

from gniah.records.errors import InputError, MissingDependency
from gniah.records.files import read_json

_CONFIG, _TEMPLATE = "tokenizer_config.json", "chat_template.jinja"


def hub_file(repository: str) -> Path:
    """Return the `tokenizer.json` of `OWNER/NAME` or `OWNER/NAME@REVISION`, with what belongs to it beside it.

    The cache is the one of every Hugging Face library (`HF_HUB_CACHE`, `HF_HOME`); what it has is not asked for again.
    Raises InputError when the repository has no such file, MissingDependency when it is not in the cache and cannot be
    fetched.
    """
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise MissingDependency(
            f"hf:{repository} needs the package huggingface_hub",
            remedy="pip install huggingface_hub, or give file:PATH of its tokenizer.json",
        ) from None
    found = _file(repository, "tokenizer.json")
    if found is None:
        raise InputError(
            f"hf:{repository}: has no tokenizer.json", remedy="give file:PATH of one that was made from its files"
        )
    config = _file(repository, _CONFIG)
    if config is None or not read_json(config).get("chat_template"):
        _file(repository, _TEMPLATE)
    return found


def _file(repository: str, file: str) -> Path | None:
    """Return a file of a repository in the cache, fetched when it is not known there; None when there is none."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    name, _, revision = repository.partition("@")
    cached = try_to_load_from_cache(name, file, cache_dir=_cache(), revision=revision or None)
    if cached is not None:
        return Path(cached) if isinstance(cached, str) else None
    try:
        return Path(hf_hub_download(name, file, revision=revision or None, cache_dir=_cache(), etag_timeout=10))
    except LocalEntryNotFoundError:
        raise _unreachable(repository) from None
    except EntryNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001  (a dozen libraries stand between here and the server)
        raise _unreachable(repository, f": {type(error).__name__}: {error}".split("\n")[0]) from None


def _cache() -> str | None:
    """Return the cache that the environment names now; None for the library's own choice."""
    if os.environ.get("HF_HUB_CACHE"):
        return os.environ["HF_HUB_CACHE"]
    home = os.environ.get("HF_HOME")
    return str(Path(home, "hub")) if home else None


def _unreachable(repository: str, why: str = "") -> MissingDependency:
    return MissingDependency(
        f"hf:{repository} is not in the Hugging Face cache and could not be fetched{why}",
        remedy="connect to the network once, or give file:PATH of its tokenizer.json",
    )
