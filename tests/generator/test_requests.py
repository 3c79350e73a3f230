"""Running counts against whole ones, and packing by them against packing as the rule is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.generator.packing import Distractor, NeedlesTooLong, Packed, pack, pack_plainly
from gniah.generator.requests import Request
from gniah.generator.tokenizers import FileTokenizer, TiktokenTokenizer
from gniah.records.streams import Stream

O200K = TiktokenTokenizer("o200k_base", "gpt")
HEAD = "# Question\n\nWhich?\n\n# Context\n\n"
TAIL = "\n\n# Response Format\n\nFinish with \\answer{X}."


def request(head: str = HEAD, tail: str = TAIL) -> Request:
    return Request((O200K,), "You answer.", head, tail)


# Lines that meet a blank line in every way that could matter: punctuation before it, slashes, spaces, tabs, other
# white space and marks after it.
LINES = st.one_of(
    st.sampled_from(
        [
            *("};", "/", "//", "/// doc", "// comment", "/* c */", "*/", "};  ", "\tindent", "    x = 1", "\x0cform"),
            *("\x0b", "\u2028sep", "\x85", "'s", "don't", "#", "# Context", "...", "?!\t", "a", "1234567", "é", "é"),
            *("中文", "\u0301", "\ufeffbom", "<|endoftext|>", "Title: x", "-", "--", "\u200b", "🙂‍↔️", "\u00a0nbsp"),
        ]
    ),
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), max_size=12),
)
BLOCKS = (
    st.lists(LINES, min_size=1, max_size=3)
    .map("\n".join)
    .filter(lambda text: text.strip() and all(line.strip() for line in text.split("\n")))
)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), BLOCKS), max_size=9))
def test_running_counts_are_those_of_the_whole_request_after_every_block(placed: list[tuple[int, str]]) -> None:
    asked = request()
    running = asked.running()
    assert running is not None
    assert running.counts == asked([])
    kept: list[tuple[tuple[int, int, int], str]] = []
    for number, (where, text) in enumerate(placed):
        running.add((where, 0, number), text)
        kept.append(((where, 0, number), text))
        assert running.counts == asked([block for _, block in sorted(kept)])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(BLOCKS, min_size=1, max_size=4),
    st.lists(st.lists(BLOCKS, max_size=6), max_size=5),
    st.integers(40, 160),
    st.integers(0, 1000),
)
def test_packing_by_running_counts_is_the_plain_packing(
    needles: list[str], documents: list[list[str]], limit: int, key: int
) -> None:
    def packed(way: object) -> Packed | dict[str, int]:
        distractors = iter([Distractor({"n": n}, tuple(blocks)) for n, blocks in enumerate(documents)])
        try:
            return way(needles, distractors, limit, request(), Stream("pack", key))  # type: ignore[operator]
        except NeedlesTooLong as error:
            return dict(error.counts)

    assert packed(pack) == packed(pack_plainly)


def test_a_block_that_begins_with_a_slash_is_counted_with_the_one_before_it() -> None:
    asked = request()
    apart = asked(["};", "// y"])["gpt"]
    running = asked.running()
    assert running is not None
    running.add((0, 0, 1), "// y")
    running.add((0, 0, 0), "};")
    assert running.counts == {"gpt": apart}
    # The two blocks by themselves come to another number: that is why they are counted as one.
    assert (O200K.count("};\n\n// y\n\n"), O200K.count("};\n\n"), O200K.count("// y\n\n")) == (3, 1, 3)


@pytest.mark.parametrize(
    ("head", "tail"),
    [("# Context\n", TAIL), (HEAD, "\n# Response"), (HEAD, "\n\n/slash"), (HEAD, "\n\n")],
    ids=["one line break before", "one after", "a slash after", "nothing after"],
)
def test_no_running_counts_where_the_context_does_not_stand_between_blank_lines(head: str, tail: str) -> None:
    assert request(head, tail).running() is None


def test_no_running_counts_for_an_encoding_whose_pattern_was_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(TiktokenTokenizer):
        pass

    other = Other("o200k_base", "other")
    other.adds = False
    assert Request((O200K, other), "", HEAD, TAIL).running() is None


def test_a_tokenizer_file_is_counted_whole(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    slow = FileTokenizer(tmp_path / "tokenizer.json", "file")
    asked = Request((slow, O200K), "", HEAD, TAIL)
    assert asked.running() is None

    def documents() -> Sequence[Distractor]:
        return [Distractor({}, ("a a", "a")), Distractor({}, ("a " * 30,))]

    by_rule = pack_plainly(["a"], iter(documents()), 60, asked, Stream("k"))
    assert pack(["a"], iter(documents()), 60, asked, Stream("k")) == by_rule
