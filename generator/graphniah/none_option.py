"""None variants: a fifth option that is never right, appended to existing multiple-choice examples (GraphNIAH 4.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from gniah.generator.graphniah.prompts import TemplateSet, load_templates
from gniah.generator.graphniah.publication import BENCH_SCHEMA, clear_leftovers
from gniah.generator.tokenizers import Tokenizer, load_tokenizers, request_counts
from gniah.records.canonical import digest
from gniah.records.errors import ImpossibleRequest, InputError, UsageFault
from gniah.records.examples import Example, Option, examples_path, read_examples
from gniah.records.files import json_line, locked_folder, whole_file
from gniah.records.graphniah import MULTIPLE_CHOICE
from gniah.records.graphniah.pool import pool_path, read_pool
from gniah.records.graphniah.settings import NONE_OPTION
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock

NONE_LABEL = "E"


def none_variant(
    example: Example, inputs: dict[str, Any], tokenizers: tuple[Tokenizer, ...], templates: TemplateSet
) -> Example:
    """Return an example with option E appended; nothing else of its prompt changes.

    Its counts are stored as they are, so it may exceed the context length by that one line.
    """
    question = templates.with_none_option(example.question, NONE_LABEL)
    if example.user_prompt.count(example.question) != 1:
        raise InputError(f"{example.qid}: the question does not stand exactly once in its prompt")
    user = example.user_prompt.replace(example.question, question)
    config = {**example.config, "none_option": 1, "source_qid": example.qid}
    return replace(
        example,
        qid=digest({"config": config, "inputs": inputs}),
        user_prompt=user,
        question=question,
        options=(*(example.options or ()), Option(NONE_LABEL, NONE_OPTION)),
        config=config,
        token_counts=request_counts(tokenizers, example.system_prompt, user),
        experiments=(),
    )


def write_none_variants(
    bench: Path,
    out: Path,
    tokenizer_names: tuple[str, ...],
    *,
    first: int | None = None,
    templates: str | None = None,
    chat_templates: Sequence[str] = (),
) -> int:
    """Write the none variants of the multiple-choice examples of a folder; return how many there are.

    Raises ImpossibleRequest when the folder has none, UsageFault when its counts have other labels.
    """
    clock = RunClock()
    tokenizers = load_tokenizers(tokenizer_names, chat_templates)
    pool = pool_path(bench)
    inputs = {record.qid: dict(record.inputs) for record in read_pool(pool)}
    source = Manifest.read(bench, BENCH_SCHEMA)
    count = 0
    value = hashlib.sha256()
    with locked_folder(out):
        clear_leftovers(out)
        if (out / MANIFEST_NAME).exists():
            raise UsageFault(f"{out}: holds a benchmark already", remedy="choose another --out")
        with whole_file(out / "examples.jsonl") as stream:
            for example in islice(_multiple_choice(bench), first):
                _check_labels(example, tokenizers)
                made_from = _inputs_of(example, inputs, pool)
                texts = _templates_of(example, made_from, templates)
                line = json_line(none_variant(example, made_from, tokenizers, texts).to_json())
                stream.write(line)
                value.update(line)
                count += 1
            if not count:
                raise ImpossibleRequest(f"{bench}: holds no multiple-choice example", remedy="choose another folder")
        content = {
            "plan": {"none_option_of": source.digest, "first": first},
            "counts": {"examples": count},
            "values": {"examples": value.hexdigest()},
        }
        Manifest(BENCH_SCHEMA, content, clock.run("tiktoken")).write(out)
    return count


def _multiple_choice(bench: Path) -> Iterator[Example]:
    for example in read_examples(examples_path(bench)):
        if example.question_type == MULTIPLE_CHOICE.question_type and not example.config.get("none_option"):
            yield example


def _inputs_of(example: Example, inputs: Mapping[str, dict[str, Any]], pool: Path) -> dict[str, Any]:
    found = inputs.get(example.qid)
    if found is None:
        raise InputError(f"{pool}: lacks the example {example.qid}", remedy="build the examples again")
    return found


def _templates_of(example: Example, inputs: dict[str, Any], given: str | None) -> TemplateSet:
    """Return the template set that an example was written with. Raises UsageFault when the one at hand is another."""
    texts = load_templates(given or str(example.config["template_set"]))
    if texts.digest != inputs.get("templates"):
        raise UsageFault(
            f"the template set {texts.name!r} is not the one that {example.qid} was written with",
            remedy="give its file with --templates",
        )
    return texts


def _check_labels(example: Example, tokenizers: tuple[Tokenizer, ...]) -> None:
    given = sorted(tokenizer.label for tokenizer in tokenizers)
    if given != sorted(example.token_counts):
        raise UsageFault(
            f"the examples were counted under {', '.join(sorted(example.token_counts))}, not {', '.join(given)}",
            remedy="give the same --tokenizer options as when they were built",
        )
