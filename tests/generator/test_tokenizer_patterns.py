"""What is read from a pre-tokenizer's expression, against an engine that runs it on every short text."""

from __future__ import annotations

from itertools import product

import pytest
import regex
import tiktoken
from tokenizer_files import QWEN_PATTERN

from gniah.generator.tokenizers.patterns import UnknownPattern, read_pattern

O200K = str(tiktoken.get_encoding("o200k_base")._pat_str)
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CUTTING = {"o200k": O200K, "cl100k": CL100K, "qwen": QWEN_PATTERN, "deepseek": DEEPSEEK}


def pieces(pattern: str, text: str) -> list[str]:
    return [match[0] for match in regex.finditer(pattern, text)]


@pytest.mark.parametrize("name", CUTTING)
def test_what_is_not_joined_is_cut_for_every_short_text(name: str) -> None:
    read = read_pattern(CUTTING[name])
    assert read.cuts
    befores = ["".join(some) + "\n" for size in range(4) for some in product("a1 \n\r/.'", repeat=size)]
    afters = ["".join(some) for size in (1, 2, 3) for some in product("a \t\n\r/.s\u0301", repeat=size)]
    compiled = regex.compile(CUTTING[name])
    alone = {text: [match[0] for match in compiled.finditer(text)] for text in (*befores, *afters)}
    free = [text for text in afters if not read.joined(text)]
    assert len(free) > len(afters) // 3
    for before in befores[::3]:
        for after in free:
            assert [match[0] for match in compiled.finditer(before + after)] == alone[before] + alone[after]


def test_what_is_joined_is_sometimes_not_cut() -> None:
    assert pieces(O200K, "};\n\n// y")[0] == "};\n\n//"
    assert pieces(QWEN_PATTERN, "a\n\n \nb")[1] == "\n\n \n"
    assert read_pattern(O200K).joined("// y")
    assert read_pattern(QWEN_PATTERN).joined(" \nb")
    assert not read_pattern(QWEN_PATTERN).joined("// y")


@pytest.mark.parametrize(
    ("name", "joined"), [("o200k", "\n\r/"), ("cl100k", "\n\r"), ("qwen", "\n\r"), ("deepseek", "\n\r")]
)
def test_of_all_characters_a_few_are_joined(name: str, joined: str) -> None:
    read = read_pattern(CUTTING[name])
    found = [chr(code) for code in range(1, 0x3000) if read.joined(chr(code) + "x")]
    assert "".join(found) == joined


def test_gpt_2_does_not_cut_before_a_word() -> None:
    assert not read_pattern(GPT2).cuts
    assert read_pattern(GPT2).joined("a")
    # The last line break before a word is a piece of its own; at the end of a text it is not.
    assert pieces(GPT2, "a\n\nb") == ["a", "\n", "\n", "b"]
    assert pieces(GPT2, "a\n\n") == ["a", "\n\n"]


def test_white_space_is_joined_where_no_alternative_ends_at_line_breaks() -> None:
    assert read_pattern(r"\p{L}+|[\r\n]+|\s+").joined("  x")
    assert not read_pattern(r"\p{L}+|\s*[\r\n]+|\s+").joined("  x")
    assert read_pattern(r"\s+|\p{L}+|\s*[\r\n]+").joined("  x")  # tried before it, so not shadowed by it


@pytest.mark.parametrize(
    ("pattern", "free"),
    [
        (r"\p{N}{1,3}", True),
        (r"[一-龥]+", True),
        (r"[^\r\n]+", True),
        (r"\P{L}+", False),
        (r"[^a]", False),
        (r".", False),
    ],
)
def test_an_expression_without_line_breaks_is_known(pattern: str, free: bool) -> None:
    assert read_pattern(pattern).newline_free is free


def test_lookaheads_are_followed_too() -> None:
    assert read_pattern(r"[\n]+(?=x)|\s*[\r\n]+").joined("x")
    assert not read_pattern(r"[\n]+(?=x)|\s*[\r\n]+").joined("y")
    assert read_pattern(r"a\n?(?:b|(?i:x))c").joined("X")
    assert not read_pattern(r"a\n?(?:b|(?i:x))c").joined("c")
    assert read_pattern(r"a\n?b*c").joined("c")
    assert read_pattern(r"(?:\n[a-c])+").joined("b")
    assert not read_pattern(r"(?:\n[a-c])+").joined("d")


def test_an_unassigned_character_may_be_anything() -> None:
    assert read_pattern(r"\n\p{L}").joined("\U000e0fff")
    assert not read_pattern(r"\n\p{L}").joined("1")


@pytest.mark.parametrize(
    "pattern",
    [r"(?<=a)b", r"\bword", r"^a", r"a$", r"[a&&b]", r"[[:alpha:]]", r"(a", r"a)", r"(?>a)", r"\1", "*a", "[a"],
)
def test_what_is_not_understood_is_refused(pattern: str) -> None:
    with pytest.raises(UnknownPattern):
        read_pattern(pattern)
