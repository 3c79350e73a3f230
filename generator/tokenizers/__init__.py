"""Tokenizers: counting text exactly, as the named tokenizer itself does, and knowing where a count may be cut."""

from __future__ import annotations

from gniah.generator.tokenizers.encodings import TiktokenTokenizer
from gniah.generator.tokenizers.huggingface import FileTokenizer
from gniah.generator.tokenizers.interface import AddingTokenizer, Frame, Tokenizer, request_counts
from gniah.generator.tokenizers.naming import load_tokenizers, slow_tokenizers

__all__ = [
    "AddingTokenizer",
    "FileTokenizer",
    "Frame",
    "TiktokenTokenizer",
    "Tokenizer",
    "load_tokenizers",
    "request_counts",
    "slow_tokenizers",
]
