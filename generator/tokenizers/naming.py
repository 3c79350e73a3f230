"""Tokenizers by the names that settings give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gniah.generator.tokenizers.encodings import TiktokenTokenizer
from gniah.generator.tokenizers.hub import hub_file
from gniah.generator.tokenizers.huggingface import FileTokenizer
from gniah.generator.tokenizers.interface import Tokenizer
from gniah.records.errors import UsageFault

_EVERY = ""


def load_tokenizers(names: Sequence[str | Tokenizer], chat_templates: Sequence[str] = ()) -> tuple[Tokenizer, ...]:
    """Return the tokenizers of settings like `tiktoken:o200k_base` or `LABEL=file:PATH`, sorted by label.

    A tokenizer of your own may stand among the names. `chat_templates` are paths of chat templates, or `none`, each as
    `LABEL=PATH`, or without a label for every tokenizer that takes one. Raises UsageFault for a name that is not
    understood, a label given twice, a template for a tokenizer that takes none, or none for one that has to have one.
    """
    templates = _templates(chat_templates)
    loaded = (_load(name, templates) if isinstance(name, str) else name for name in names)
    found = sorted(loaded, key=lambda tokenizer: tokenizer.label)
    labels = [tokenizer.label for tokenizer in found]
    if not found:
        raise UsageFault("at least one tokenizer is needed", remedy="add --tokenizer tiktoken:o200k_base")
    for label in labels:
        if labels.count(label) > 1:
            raise UsageFault(f"two tokenizers have the label {label!r}", remedy="name them as LABEL=NAME")
    takers = {tokenizer.label for tokenizer in found if isinstance(tokenizer, FileTokenizer)}
    _refuse_strangers(templates, takers)
    return tuple(found)


def slow_tokenizers(tokenizers: Iterable[Tokenizer]) -> Iterator[str]:
    """Yield a warning for each tokenizer whose counts are not known to add up, with the reason."""
    for tokenizer in tokenizers:
        if not tokenizer.adds:
            why = getattr(tokenizer, "unproved", "it does not say where its counts add up")
            yield f"{tokenizer.label}: the whole prompt is counted after each distractor, which is slow: {why}"


def _load(text: str, templates: Mapping[str, str]) -> Tokenizer:
    match = re.fullmatch(r"(?:([\w.-]+)=)?(tiktoken|file|hf):(.+)", text)
    if match is None:
        raise UsageFault(
            f"{text!r} does not name a tokenizer",
            remedy="use tiktoken:o200k_base, hf:OWNER/NAME or LABEL=file:PATH/tokenizer.json",
        )
    label, kind, rest = match[1], match[2], match[3]
    if kind == "tiktoken":
        return TiktokenTokenizer(rest, label or rest)
    if kind == "file":
        label = label or Path(rest).parent.name or "file"
        return FileTokenizer(Path(rest), label, _template_for(label, templates))
    if re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w./-]+)?", rest) is None or ".." in rest:
        raise UsageFault(f"{rest!r} is no repository", remedy="use hf:OWNER/NAME, or hf:OWNER/NAME@REVISION")
    label = label or rest.partition("@")[0].rpartition("/")[2]
    return FileTokenizer(hub_file(rest), label, _template_for(label, templates), name=f"hf:{rest}")


def _template_for(label: str, templates: Mapping[str, str]) -> str | None:
    return templates.get(label, templates.get(_EVERY))


def _templates(given: Iterable[str]) -> dict[str, str]:
    """Return chat templates by label. A path with an equals sign in it needs its label in front."""
    found: dict[str, str] = {}
    for text in given:
        label, equals, path = text.partition("=")
        label, path = (label, path) if equals else (_EVERY, text)
        if not path:
            raise UsageFault(f"--chat-template takes [LABEL=]PATH or [LABEL=]none, not {text!r}")
        if label in found:
            raise UsageFault(f"two chat templates are given for {label or 'every tokenizer'}")
        found[label] = path
    return found


def _refuse_strangers(templates: Mapping[str, str], takers: set[str]) -> None:
    for label in templates:
        if label == _EVERY and not takers:
            raise UsageFault("--chat-template is given, and no tokenizer takes one", remedy="leave it out")
        if label != _EVERY and label not in takers:
            known = ", ".join(sorted(takers)) or "none"
            raise UsageFault(f"no tokenizer that takes a chat template has the label {label!r}; these do: {known}")
