from __future__ import annotations

from collections.abc import Iterator

from gniah.generator.retrieval.interface import in_turns


def test_each_ranking_in_turn_gives_its_best_that_is_left() -> None:
    assert list(in_turns(map(iter, ([1, 2, 3, 4], [2, 1, 5], [1, 2, 3, 6])))) == [1, 2, 3, 4, 5, 6]
    assert list(in_turns(map(iter, ([1, 2, 3], [3, 9], [])))) == [1, 3, 2, 9]


def test_nothing_is_drawn_from_nothing() -> None:
    assert list(in_turns([])) == []
    assert list(in_turns([iter([]), iter([])])) == []


def test_no_ranking_is_read_before_its_turn() -> None:
    read: list[str] = []

    def ranking(name: str, start: int) -> Iterator[int]:
        for number in range(start, start + 3):
            read.append(f"{name}{number}")
            yield number

    draws = in_turns([ranking("a", 0), ranking("b", 10)])
    assert read == []
    assert [next(draws) for _ in range(3)] == [0, 10, 1]
    assert read == ["a0", "b10", "a1"]
