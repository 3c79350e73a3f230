"""Words of passages and of queries, as tantivy cuts and stems them; and tantivy itself, which is an extra."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from types import ModuleType

from gniah.records.errors import MissingDependency

# Longer words (in bytes) are dropped.
LONGEST_WORD = 40


def load_tantivy() -> ModuleType:
    """Import tantivy. Raises MissingDependency when it is not installed."""
    try:
        import tantivy
    except ImportError as error:
        raise MissingDependency(
            f"passages are searched with tantivy: {error}", remedy="pip install 'gniah[wikipedia]'"
        ) from error
    return tantivy


def tantivy_version() -> str:
    """Return the version of the installed tantivy. Raises MissingDependency."""
    load_tantivy()
    return metadata.version("tantivy")


def load_analyser() -> Callable[[str], list[str]]:
    """Return the function from a text to its words: letters and digits, lower case, no English stop words, stemmed.

    Raises MissingDependency without tantivy.
    """
    tantivy = load_tantivy()
    parts, steps = tantivy.Tokenizer, tantivy.Filter
    builder = tantivy.TextAnalyzerBuilder(parts.simple())
    for step in (
        steps.remove_long(LONGEST_WORD),
        steps.lowercase(),
        steps.stopword("english"),
        steps.stemmer("english"),
    ):
        builder = builder.filter(step)
    analyse: Callable[[str], list[str]] = builder.build().analyze
    return analyse
