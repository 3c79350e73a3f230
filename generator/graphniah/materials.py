"""What examples are made from, and how an example gets its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gniah.cypher.store import GraphStore
from gniah.generator.corpora import Corpus
from gniah.generator.graphniah.pool_files import PathPool
from gniah.generator.graphniah.prompts import TemplateSet
from gniah.generator.tokenizers import Tokenizer
from gniah.records.canonical import digest
from gniah.records.graphniah.settings import Settings

GENERATOR_VERSION = "gniah.graphniah:1"


@dataclass(frozen=True)
class Materials:
    """All that examples are made from. `corpora` is by distractor type, `pools` by question depth."""

    store: GraphStore
    pools: Mapping[int, PathPool]
    corpora: Mapping[str, Corpus]
    tokenizers: Sequence[Tokenizer]
    templates: TemplateSet

    def inputs(self, settings: Settings) -> dict[str, Any]:
        """Return by hash all that an example with these settings is a function of, beside its config."""
        corpus = self.corpora.get(settings.distractor_type)
        return {
            "generator_version": GENERATOR_VERSION,
            "graph": self.store.manifest.digest,
            "paths": self.pools[settings.question_depth].digest,
            "corpus": corpus.digest if corpus is not None else None,
            "tokenizers": [{"label": item.label, "digest": item.digest} for item in self.tokenizers],
            "templates": self.templates.digest,
        }

    def qid(self, settings: Settings) -> str:
        """Return the name of the example with these settings."""
        return digest({"config": settings.config(), "inputs": self.inputs(settings)})
