"""Running counts against whole ones, and packing by them against packing as the rule is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import like_gemma, like_qwen, real_tokenizer

from gniah.generator import packing
from gniah.generator.block_lengths import TOGETHER, RememberedLengths
from gniah.generator.packing import Distractor, NeedlesTooLong, Packed, pack, pack_plainly
from gniah.generator.requests import Request
from gniah.generator.running import RunningCounts
from gniah.generator.tokenizers import AddingTokenizer, FileTokenizer, TiktokenTokenizer
from gniah.records.errors import GniahError
from gniah.records.streams import Stream

O200K = TiktokenTokenizer("o200k_base", "gpt")
HEAD = "# Question\n\nWhich?\n\n# Context\n\n"
TAIL = "\n\n# Response Format\n\nFinish with \\answer{X}."


def request(
    head: str = HEAD, tail: str = TAIL, tokenizers: Sequence[AddingTokenizer] = (O200K,), *, recount: bool = True
) -> Request:
    return Request(tuple(tokenizers), "You answer.", head, tail, recount)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[AddingTokenizer, ...]:
    """One tokenizer of each kind of proof."""
    folder = tmp_path_factory.mktemp("tokenizers")
    qwen, gemma = like_qwen(folder / "qwen"), like_gemma(folder / "gemma")
    return (FileTokenizer(gemma, "gemma"), O200K, FileTokenizer(qwen, "qwen"))


def added(running: RunningCounts, place: tuple[int, ...], text: str) -> None:
    """Put a block in, its length counted by each tokenizer."""
    running.add(place, text, [tokenizer.count(text + "\n\n") for tokenizer in running.tokenizers])


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


def running_counts_agree(tokenizers: Sequence[AddingTokenizer], tail: str, placed: Sequence[tuple[int, str]]) -> None:
    asked = request(tail=tail, tokenizers=tokenizers)
    running = asked.running()
    assert running is not None
    kept: list[tuple[tuple[int, int, int], str]] = []
    for number, (where, text) in enumerate(placed):
        added(running, (where, 0, number), text)
        kept.append(((where, 0, number), text))
        assert running.totals == tuple(asked([block for _, block in sorted(kept)]).values())


PLACED = st.lists(st.tuples(st.integers(0, 7), BLOCKS), max_size=9)
TAILS = st.sampled_from([TAIL, "\n\n/slash", "\n\n// one\n/ two\nthree", "\n\n  x"])


def test_running_counts_are_those_of_the_whole_request_after_every_block(three: Sequence[AddingTokenizer]) -> None:
    @settings(max_examples=700, deadline=None)
    @given(PLACED, TAILS)
    def check(placed: list[tuple[int, str]], tail: str) -> None:
        running_counts_agree(three, tail, placed)

    check()


@pytest.mark.slow
def test_running_counts_of_real_models_are_those_of_the_whole_request() -> None:
    real = [FileTokenizer(real_tokenizer(name) / "tokenizer.json", name) for name in ("gemma3", "qwen3")]

    @settings(max_examples=300, deadline=None)
    @given(PLACED, TAILS)
    def check(placed: list[tuple[int, str]], tail: str) -> None:
        running_counts_agree(real, tail, placed)

    check()


def test_packing_by_running_counts_is_the_plain_packing(
    three: Sequence[AddingTokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "NEAR", 6)  # otherwise most of these short prompts would be near enough at once
    ends: dict[str, int] = {}

    @settings(max_examples=1500, deadline=None)
    @given(
        st.lists(BLOCKS, min_size=1, max_size=3),
        st.lists(st.lists(BLOCKS, max_size=5), max_size=5),
        st.integers(60, 260),
        st.integers(0, 1000),
    )
    def check(needles: list[str], documents: list[list[str]], limit: int, key: int) -> None:
        def packed(way: Callable[..., Packed]) -> Packed | dict[str, int]:
            distractors = iter([Distractor({"n": n}, tuple(blocks)) for n, blocks in enumerate(documents)])
            asked = request(tokenizers=three, recount=False)
            try:
                return way(needles, distractors, limit, asked, Stream("pack", key))
            except NeedlesTooLong as error:
                return dict(error.counts)

        found = packed(pack)
        assert found == packed(pack_plainly)
        end = found.stopped if isinstance(found, Packed) else "too long"
        ends[end] = ends.get(end, 0) + 1

    check()
    assert min(ends.get(end, 0) for end in ("near", "full", "exhausted", "too long")) >= 10


def test_packing_real_texts_is_the_plain_packing(three: Sequence[AddingTokenizer], code_folder: Path) -> None:
    from gniah.generator.corpora import FolderCorpus

    corpus = FolderCorpus(code_folder)
    remembered = RememberedLengths(three, corpus)
    ends = set()
    for key in range(8):
        asked = request(tokenizers=three)
        stream = Stream("real", key)
        order = list(stream.without_repeats(len(corpus)))

        def distractors(order: list[int] = order) -> list[Distractor]:
            drawn = [(number, corpus.document(number).blocks) for number in order]
            return [Distractor({"n": n}, blocks, remembered.of(n, blocks)) for n, blocks in drawn]

        needles = ["Title: One.\nAuthors: A. B.", "Title: Two.", "// three"]
        limit = 400 + 200 * key
        by_rule = pack_plainly(needles, iter(distractors()), limit, asked, Stream("o", key))
        assert pack(needles, iter(distractors()), limit, asked, Stream("o", key)) == by_rule
        ends.add(by_rule.stopped)
    assert ends >= {"full", "exhausted"}


def test_a_book_is_not_counted_to_its_end_once_the_prompt_is_full() -> None:
    class Counting(TiktokenTokenizer):
        counted = 0

        def count_many(self, texts: Sequence[str]) -> list[int]:
            self.counted += sum(map(len, texts))
            return super().count_many(texts)

    counting = Counting("o200k_base", "gpt")
    blocks = tuple(f"Paragraph {number} of a long book, " * 20 for number in range(3000))
    packed = pack(["Title: x."], iter([Distractor({}, blocks)]), 5000, request(tokenizers=[counting]), Stream("b"))
    assert packed.stopped == "full"
    assert 20 < packed.kept[0] < 60
    assert counting.counted < 100_000 < sum(map(len, blocks))


def test_short_documents_are_drawn_a_few_ahead_and_counted_together(three: Sequence[AddingTokenizer]) -> None:
    texts = [f"Passage {n}.\n" + "words and words " * (n % 40) + "." for n in range(400)]
    calls: list[list[int]] = [[] for _ in three]

    class Noting:
        def __init__(self, tokenizer: AddingTokenizer, noted: list[int]) -> None:
            self._tokenizer, self._noted = tokenizer, noted

        def __getattr__(self, name: str) -> Any:
            return getattr(self._tokenizer, name)

        def count_many(self, given: Sequence[str]) -> list[int]:
            self._noted.append(len(given))
            return self._tokenizer.count_many(given)

    noting: Any = [Noting(tokenizer, noted) for tokenizer, noted in zip(three, calls, strict=True)]
    lengths = RememberedLengths(noting)
    drawn: list[int] = []

    def documents() -> Iterator[Distractor]:
        for number, text in enumerate(texts):
            drawn.append(number)
            yield Distractor({"n": number}, (text,), lengths.of(number, (text,)))

    asked = request(tokenizers=noting)
    packed = pack(["Title: x."], documents(), 20_000, asked, Stream("k"))
    plain = (Distractor({"n": number}, (text,)) for number, text in enumerate(texts))
    assert packed == pack_plainly(["Title: x."], plain, 20_000, asked, Stream("k"))
    used = len(packed.distractors)
    assert 50 < used < len(texts)
    assert sum(len(texts[number]) for number in drawn[used:]) < TOGETHER
    for noted in calls:
        assert len(noted) < used / 10 and sum(noted) <= len(drawn) + 1


def test_a_wrong_length_is_found_by_recounting(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(TiktokenTokenizer):
        def count_many(self, texts: Sequence[str]) -> list[int]:
            return [length + ("zebra" in text) for length, text in zip(super().count_many(texts), texts, strict=True)]

    def packed(*, recount: bool) -> Packed:
        asked = request(tokenizers=[Wrong("o200k_base", "gpt")], recount=recount)
        return pack(["Title: x."], iter([Distractor({}, ("a horse", "a zebra"))]), 500, asked, Stream("w"))

    with pytest.raises(GniahError, match=r"the counts of blocks add up to .* and the whole request has"):
        packed(recount=True)
    assert (
        packed(recount=False).counts["gpt"]
        == pack_plainly(
            ["Title: x."], iter([Distractor({}, ("a horse", "a zebra"))]), 500, request(), Stream("w")
        ).counts["gpt"]
        + 1
    )
    monkeypatch.setattr(packing, "_confirm", lambda *_: None)
    packed(recount=True)


def test_a_block_that_begins_with_a_slash_is_counted_with_the_one_before_it() -> None:
    asked = request()
    apart = asked(["};", "// y"])["gpt"]
    running = asked.running()
    assert running is not None
    added(running, (0, 0, 1), "// y")
    added(running, (0, 0, 0), "};")
    assert running.totals == (apart,)
    # The two blocks by themselves come to another number: that is why they are counted as one.
    assert (O200K.count("};\n\n// y\n\n"), O200K.count("};\n\n"), O200K.count("// y\n\n")) == (3, 1, 3)


@pytest.mark.parametrize(
    ("head", "tail"),
    [("# Context\n", TAIL), (HEAD, "\n# Response"), (HEAD, "\n\n"), (" " + HEAD, TAIL), (HEAD, TAIL + "\n")],
    ids=["one line break before", "one after", "nothing after", "space around it", "a line break at the end"],
)
def test_no_running_counts_where_the_context_does_not_stand_between_blank_lines(head: str, tail: str) -> None:
    assert request(head, tail).running() is None


def test_no_running_counts_for_a_tokenizer_whose_counts_are_not_known_to_add_up() -> None:
    other = TiktokenTokenizer("o200k_base", "other")
    other.adds = False
    assert Request((O200K, other), "", HEAD, TAIL).running() is None


def test_a_tokenizer_of_ones_own_that_adds_needs_all_that_adding_takes() -> None:
    class Words:
        name = label = digest = "words"
        adds = True

        def joined(self, block: str) -> bool:
            return False

        def count(self, text: str) -> int:
            return len(text.split())

        def count_request(self, system_prompt: str, user_prompt: str) -> int:
            return self.count(system_prompt) + self.count(user_prompt)

    assert Request((Words(),), "", HEAD, TAIL).running() is None


def test_joints_are_counted_by_their_nearest_lines_only() -> None:
    class Longest(TiktokenTokenizer):
        longest = 0

        def count(self, text: str) -> int:
            self.longest = max(self.longest, len(text))
            return super().count(text)

    counting = Longest("o200k_base", "gpt")
    running = request(tokenizers=[counting]).running()
    assert running is not None
    long = "\n".join(f"    line({number});" for number in range(500))
    for number, text in islice(
        enumerate([f"{long}\n}}", f"// {long}", f"/* x */\n{long}\n */", "// one line"] * 5), 20
    ):
        running.add((number * 7919 % 20, 0, number), text, [O200K.count(text + "\n\n")])
    assert counting.longest < 200


def test_lengths_of_documents_not_used_for_long_are_forgotten() -> None:
    remembered = RememberedLengths([O200K], most=5)
    first = remembered.of(0, ("a b", "c"))
    assert [first.of(1), first.of(0)] == [(2,), (3,)]
    assert remembered.of(0, ("never", "read")).of(0) == (3,)
    remembered.of(1, ("a", "b", "c"))
    remembered.of(2, ("a",))
    assert remembered.of(0, ("counted again", "c")).of(0) == (O200K.count("counted again\n\n"),)


def test_lengths_that_a_corpus_knows_are_taken_from_it() -> None:
    import numpy as np

    class Counted:
        def block_range(self, number: int) -> range:
            return range(2 * number, 2 * number + 2)

        def counts(self, tokenizer_digest: str) -> Any:
            return np.array([1, 2, 3, 4], "<u4") if tokenizer_digest == O200K.text_digest else None

    words = TiktokenTokenizer("o200k_base", "b")
    words.text_digest = "another"
    lengths = RememberedLengths([O200K, words], Counted()).of(1, ("c", "d e"))
    assert [lengths.of(0), lengths.of(1)] == [(3, 2), (4, 3)]


def test_a_tokenizer_file_is_counted_whole(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    slow = FileTokenizer(tmp_path / "tokenizer.json", "file", "none")
    asked = Request((slow, O200K), "", HEAD, TAIL)
    assert asked.running() is None

    def documents() -> Sequence[Distractor]:
        return [Distractor({}, ("a a", "a")), Distractor({}, ("a " * 30,))]

    by_rule = pack_plainly(["a"], iter(documents()), 60, asked, Stream("k"))
    assert pack(["a"], iter(documents()), 60, asked, Stream("k")) == by_rule
