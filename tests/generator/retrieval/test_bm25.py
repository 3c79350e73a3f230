from __future__ import annotations

import math

import pytest

from gniah.generator.retrieval.bm25 import Bm25, idf, stored_length


@pytest.mark.parametrize(
    ("words", "stored"),
    [(0, 0), (1, 1), (40, 40), (41, 40), (42, 42), (57, 56), (60, 60), (99, 96), (104, 104), (151, 144), (300, 280)],
)
def test_a_length_is_rounded_down_to_one_that_a_byte_holds(words: int, stored: int) -> None:
    assert stored_length(words) == stored


def test_a_word_weighs_the_more_the_rarer_it_is() -> None:
    weights = [idf(21_015_324, frequency) for frequency in (1, 2, 1000, 21_015_324)]
    assert weights == sorted(weights, reverse=True)
    for frequency, weight in zip((1, 2, 1000, 21_015_324), weights, strict=True):
        by_definition = math.log(1 + (21_015_324 - frequency + 0.5) / (frequency + 0.5))
        assert weight == pytest.approx(by_definition, rel=1e-9, abs=1e-12)
    assert weights[-1] > 0


def test_a_score_by_hand() -> None:
    formula = Bm25(documents=4, words=20)  # 5 words on average
    weights = formula.weights({"b": 2, "a": 1, "none": 1}, {"a": 1, "b": 3, "none": 0})
    assert [word for word, _ in weights] == ["a", "b"]
    assert dict(weights) == {"a": pytest.approx(math.log(10 / 3)), "b": pytest.approx(2 * math.log(10 / 7))}
    passage = ["b", "c", "b", "d", "e", "f", "g", "h", "i", "j"]  # 10 words: K = 1.2 * (0.25 + 0.75 * 2) = 2.1
    assert formula.score(weights, passage) == pytest.approx(2 * math.log(10 / 7) * 2.2 * 2 / (2 + 2.1))
    assert formula.score(weights, ["c"]) == 0


def test_the_order_of_words_changes_no_bit_of_a_score() -> None:
    formula = Bm25(1000, 50_000)
    query = {word: 1 + place for place, word in enumerate("abcdefgh")}
    frequencies = {word: 3 + 100 * place for place, word in enumerate("abcdefgh")}
    passage = list("aabbbcdddefgh")
    score = formula.score(formula.weights(query, frequencies), passage)
    turned = dict(reversed(query.items()))
    assert formula.score(formula.weights(turned, frequencies), passage[::-1]) == score
