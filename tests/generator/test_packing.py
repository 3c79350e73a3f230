from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.generator.packing import NEAR, NEEDLE, Distractor, NeedlesTooLong, Packed, pack_plainly
from gniah.records.streams import Stream

OVERHEAD = 7


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


def count_words(texts: Sequence[str]) -> dict[str, int]:
    """A request of 7 words and the texts; the second tokenizer sees one token less."""
    total = OVERHEAD + sum(len(text.split()) for text in texts)
    return {"more": total, "less": total - 1}


def pack(needles: Sequence[int], distractors: Sequence[Sequence[int]], limit: int, key: str = "k") -> Packed:
    """Pack blocks given by their lengths."""
    made = (Distractor({"number": n}, tuple(words(size) for size in sizes)) for n, sizes in enumerate(distractors))
    return pack_plainly([words(size) for size in needles], made, limit, count_words, Stream(key, "order"))


@pytest.mark.parametrize(
    ("needles", "distractors", "limit", "stopped", "kept", "count"),
    [
        ([100], [[50, 50], [500]], 250, "near", (2,), 207),  # 43 short is near enough
        ([100], [[43], [500]], 250, "near", (1,), 150),  # exactly 100 short is near
        ([100], [[42], [500]], 250, "full", (1, 0), 149),  # 101 short is not
        ([100], [[143], [1]], 250, "near", (1,), 250),  # exactly the limit
        ([100], [[30, 20, 100, 1]], 250, "full", (2,), 157),  # cut at the first block too many, not resumed behind it
        ([100], [[10], [20], [300, 1]], 250, "full", (1, 1, 0), 137),
        ([100], [[10], [20]], 250, "exhausted", (1, 1), 137),
        ([100], [], 250, "exhausted", (), 107),
        ([100], [[], [43], [1]], 250, "near", (0, 1), 150),
        ([200, 43], [[1]], 250, "near", (), 250),  # needles alone, and nothing is drawn
        ([143], [[1]], 250, "near", (), 150),
        ([], [[50], [200]], 120, "near", (1,), 57),
    ],
)
def test_packing_by_hand(
    needles: list[int], distractors: list[list[int]], limit: int, stopped: str, kept: tuple[int, ...], count: int
) -> None:
    packed = pack(needles, distractors, limit)
    assert packed.stopped == stopped
    assert packed.kept == kept
    assert packed.counts == {"more": count, "less": count - 1}
    assert [distractor.source["number"] for distractor in packed.distractors] == list(range(len(kept)))
    assert len(packed.blocks) == len(needles) + sum(kept)


def test_needles_over_the_limit_are_told_with_their_length() -> None:
    with pytest.raises(NeedlesTooLong) as caught:
        pack([200, 44], [[1]], 250)
    assert caught.value.counts == {"more": 251, "less": 250}


def test_no_distractor_is_drawn_beyond_the_last() -> None:
    drawn = []

    def distractors() -> Iterator[Distractor]:
        for number in range(9):
            drawn.append(number)
            yield Distractor({}, (words(30),))

    pack_plainly([words(100)], distractors(), 250, count_words, Stream("k"))
    assert drawn == [0, 1]


def test_the_context_stands_in_the_order_of_numbers_drawn_at_once_for_each_block() -> None:
    packed = pack([1, 2, 3], [[4, 5], [6], [7, 800, 9]], 700)
    stream = Stream("k", "order")
    numbers = {}
    for distractor, size in ((NEEDLE, 3), (0, 2), (1, 1), (2, 3)):
        for block in range(size):
            numbers[distractor, block] = stream.bits(64)
    shown = [(block.distractor, block.block) for block in packed.blocks]
    visible = [place for place in numbers if place not in {(2, 1), (2, 2)}]
    assert shown == sorted(visible, key=numbers.__getitem__)
    assert shown != visible
    lengths = {(NEEDLE, 0): 1, (NEEDLE, 1): 2, (NEEDLE, 2): 3, (0, 0): 4, (0, 1): 5, (1, 0): 6, (2, 0): 7}
    assert [len(block.text.split()) for block in packed.blocks] == [lengths[place] for place in shown]


def test_every_count_sees_the_blocks_in_the_order_of_the_context() -> None:
    seen: list[list[str]] = []

    def count(texts: Sequence[str]) -> dict[str, int]:
        seen.append(list(texts))
        return {"words": sum(len(text.split()) for text in texts)}

    distractors = [Distractor({}, (f"d{n}", f"e{n} " * 40)) for n in range(5)]
    packed = pack_plainly(["n0", "n1", "n2"], iter(distractors), 200, count, Stream("k", "order"))
    final = [block.text for block in packed.blocks]
    assert len(seen) > 2
    for texts in seen:
        assert [text for text in final if text in texts] == [text for text in texts if text in final]


@given(
    st.lists(st.integers(1, 60), max_size=5),
    st.lists(st.lists(st.integers(1, 120), max_size=5), max_size=8),
    st.integers(1, 500),
)
def test_the_rule_of_the_last_distractor_holds(needles: list[int], distractors: list[list[int]], limit: int) -> None:
    try:
        packed = pack(needles, distractors, limit)
    except NeedlesTooLong:
        assert OVERHEAD + sum(needles) > limit
        return
    total = OVERHEAD + sum(needles) + sum(sum(d[:k]) for d, k in zip(distractors, packed.kept, strict=False))
    assert packed.counts["more"] == total <= limit
    whole = [len(sizes) == kept for sizes, kept in zip(distractors, packed.kept, strict=False)]
    if packed.stopped == "near":
        assert total >= limit - NEAR
        assert all(whole)
    elif packed.stopped == "full":
        assert all(whole[:-1])
        assert not whole[-1]
        assert total + distractors[len(packed.kept) - 1][packed.kept[-1]] > limit
    else:
        assert all(whole)
        assert len(whole) == len(distractors)
        assert total < limit - NEAR
