"""Where counts add up: what is proved from a `tokenizer.json`, and the library itself on texts made to break it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import like_gemma, like_qwen, made_tokenizer, real_tokenizer, without_proof
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers

from gniah.generator.tokenizers import AddingTokenizer, FileTokenizer, TiktokenTokenizer
from gniah.generator.tokenizers.joints import Unproved, find_joints

ODD = st.sampled_from(
    [
        *(
            "\n",
            "\n\n",
            "\n",
            "\r",
            "\t",
            " ",
            "  ",
            "\x0b",
            "\x0c",
            "\x1c",
            "\x85",
            "\xa0",
            "\u2028",
            "\u200b",
            "\ufeff",
        ),
        *(
            "/",
            "//",
            "};",
            "*/",
            ".",
            "'s",
            "'S",
            "a",
            "Ab",
            "B",
            "12345",
            "é",
            "e\u0301",
            "\u0301",
            "\u0338",
            "中文",
            "<",
        ),
        *("<|end|>", "<think>", "</think>", "<s>", "▁", "Ċ", "<0x0A>", "\\n", "🙂‍↔️", "\u1100\u1161\u11a8", "\u0344"),
    ]
)
TEXT = st.lists(ODD | st.text(max_size=4).filter(lambda text: text.isprintable()), max_size=7).map("".join)


def adds(tokenizer: AddingTokenizer) -> Callable[[], None]:
    """Return a property: counts add up after a line break before every text that is not joined."""
    tried = [0]

    @settings(max_examples=1500, deadline=None)
    @given(TEXT, TEXT)
    def check(before: str, after: str) -> None:
        if tokenizer.joined(after):
            return
        tried[0] += 1
        whole, first, second = tokenizer.count_many([f"{before}\n{after}", f"{before}\n", after])
        assert whole == first + second

    def run() -> None:
        check()
        assert tried[0] > 400

    return run


def made(folder: Path, kind: str) -> AddingTokenizer:
    if kind == "o200k_base":
        return TiktokenTokenizer(kind, kind)
    thinking = AddedToken("<think>", special=False, normalized=False)
    if kind == "like qwen":
        return FileTokenizer(like_qwen(folder, tokens=[thinking]), kind)
    if kind == "like gemma":
        breaks = [AddedToken("\n" * size, special=False, normalized=False) for size in range(1, 5)]
        return FileTokenizer(like_gemma(folder, tokens=[thinking, *breaks]), kind)
    return FileTokenizer(real_tokenizer(kind) / "tokenizer.json", kind)


KINDS = [
    "o200k_base",
    "like qwen",
    "like gemma",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("qwen3", "gemma3")),
]


@pytest.mark.parametrize("kind", KINDS)
def test_counts_add_up_where_they_are_said_to(kind: str, tmp_path: Path) -> None:
    tokenizer = made(tmp_path, kind)
    assert tokenizer.adds
    adds(tokenizer)()


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_text_is_not_joined(kind: str, tmp_path: Path) -> None:
    tokenizer = made(tmp_path, kind)
    for text in ("Title: A.", "    return 0;", "\tint x;", "# Response Format", "* a", '"Yes"', "漢字", "éa", "(1)"):
        assert not tokenizer.joined(text)
    assert tokenizer.joined("\n\nx")
    assert tokenizer.joined("// x") == (kind == "o200k_base")


def test_counts_do_not_add_up_where_the_proof_fails(tmp_path: Path) -> None:
    tokenizer = FileTokenizer(without_proof(tmp_path), "gpt-2")
    assert not tokenizer.adds
    assert tokenizer.unproved == "its expression does not always cut after a blank line"
    assert tokenizer.joined("word")
    whole, first, second = tokenizer.count_many(["a\n\nb", "a\n\n", "b"])
    assert whole != first + second


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    return value  # type: ignore[no-any-return]


GEMMA: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda v: v["model"]["vocab"].update({".\n": 5000}), r"token '\.\\n' holds a line break"),
    (lambda v: v["model"]["merges"].append(["a", "\n"]), r"merge of 'a' and '\\n' holds a line break"),
    (lambda v: v["model"]["merges"].append("a \n"), r"merge of 'a' and '\\n' holds a line break"),
    (lambda v: v["model"]["vocab"].pop("\n"), "no token for a line break"),
    (lambda v: v["model"].update(ignore_merges=True), "has ignore_merges"),
    (lambda v: v["model"].update(continuing_subword_prefix="##"), "has continuing_subword_prefix"),
    (lambda v: v["model"].update(type="Unigram"), "its model is Unigram, not BPE"),
    (lambda v: v["added_tokens"].append({"content": "\n<x>", "special": True}), r"added token '\\n<x>'"),
    (lambda v: v["added_tokens"].append({"content": "<x>", "special": False, "rstrip": True}), "takes white space"),
    (lambda v: v.update(normalizer={"type": "Prepend", "prepend": "▁"}), "normalizer Prepend"),
    (lambda v: v.update(normalizer={"type": "NFKC"}), "normalizer NFKC"),
    (lambda v: v.update(normalizer={"type": "Replace", "pattern": {"String": "\n"}, "content": " "}), "Replace"),
    (lambda v: v.update(normalizer={"type": "Replace", "pattern": {"Regex": "a"}, "content": " "}), "Replace"),
    (lambda v: v.update(pre_tokenizer={"type": "Metaspace"}), "pre-tokenizer Metaspace"),
    (lambda v: v.update(pre_tokenizer={"type": "Split", "pattern": {"String": "\n"}}), "splits at"),
]
QWEN: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda v: v["pre_tokenizer"]["pretokenizers"][0].update(behavior="MergedWithNext"), "MergedWithNext"),
    (lambda v: v["pre_tokenizer"]["pretokenizers"][0].update(invert=True), "inverted: True"),
    (lambda v: v["pre_tokenizer"]["pretokenizers"][0].update(pattern={"Regex": r"(?<!a)b"}), "not understood"),
    (lambda v: v["pre_tokenizer"]["pretokenizers"][0].update(pattern={"Regex": r"\s+$|\s*[\r\n]+"}), "end of the text"),
    (lambda v: v["pre_tokenizer"]["pretokenizers"][0].update(pattern={"Regex": r"\n\S+"}), "does not always cut"),
    (lambda v: v["pre_tokenizer"]["pretokenizers"].pop(0), "no token for a line break"),
    (lambda v: v["pre_tokenizer"]["pretokenizers"][1].update(add_prefix_space=True), "pre-tokenizer ByteLevel"),
]


@pytest.mark.parametrize(("change", "why"), GEMMA, ids=[why for _, why in GEMMA])
def test_what_could_join_blocks_of_a_vocabulary_is_found(change: Any, why: str, tmp_path: Path) -> None:
    path = like_gemma(tmp_path)
    assert find_joints(json.loads(path.read_bytes())).pattern is None
    with pytest.raises(Unproved, match=why):
        find_joints(changed(path, change))


@pytest.mark.parametrize(("change", "why"), QWEN, ids=[why for _, why in QWEN])
def test_what_could_join_blocks_of_an_expression_is_found(change: Any, why: str, tmp_path: Path) -> None:
    path = like_qwen(tmp_path)
    assert find_joints(json.loads(path.read_bytes())).pattern is not None
    with pytest.raises(Unproved, match=why):
        find_joints(changed(path, change))


def test_splits_before_the_one_that_cuts_are_allowed(tmp_path: Path) -> None:
    path = like_qwen(tmp_path)

    def change(value: dict[str, Any]) -> None:
        digits = {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}"}, "behavior": "Isolated", "invert": False}
        value["pre_tokenizer"]["pretokenizers"].insert(0, digits)
        value["pre_tokenizer"]["pretokenizers"].insert(0, {"type": "Digits", "individual_digits": False})

    joints = find_joints(changed(path, change))
    assert joints.pattern is not None
    assert not joints.joined("1 a")


def test_a_normaliser_is_looked_through(tmp_path: Path) -> None:
    """A character that is another one once composed counts as both."""
    cut = pre_tokenizers.Split(Regex(r"\n;|\s*[\r\n]+|[^\s;]+|;"), "isolated")
    path = made_tokenizer(tmp_path, pre_tokenizer=cut, normalizer=normalizers.NFC(), byte_level=False)
    joints = find_joints(json.loads(path.read_bytes()))
    assert joints.joined("; a")
    assert joints.joined("\u037e a")  # the Greek question mark, which NFC makes a semicolon
    assert joints.joined("\u037e\u0301 a")
    assert not joints.joined(": a")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_line_break_never_composes(form: Any) -> None:
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            character = chr(code)
            alone = unicodedata.normalize(form, character)
            assert (
                unicodedata.normalize(form, f"e\u0301\n{character}") == unicodedata.normalize(form, "e\u0301\n") + alone
            )
            assert unicodedata.normalize(form, f"{character}\n") == alone + "\n"
            assert ("\n" in alone) == (character == "\n")
