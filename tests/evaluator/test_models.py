from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from evaluator_toys import example

from gniah.evaluator.models import Model, ModelSettings, open_model
from gniah.records import families
from gniah.records.errors import MissingDependency, UsageFault
from gniah.records.examples import Example
from gniah.records.families import Family, Solution, Task
from gniah.records.responses import Request


def request(to: Example, model: Model, repeat: int = 0) -> Request:
    return Request(to.qid, model.name, to.system_prompt, to.user_prompt, model.base_address, model.parameters, repeat)


def ask(to: Example, model: Model, repeat: int = 0) -> str:
    asked = request(to, model, repeat)
    answer = model.complete(asked)
    assert (answer.key, answer.prompt_sha256, answer.seconds) == (asked.key, asked.prompt_sha256, None)
    return answer.text


@pytest.fixture
def riddles(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Solution]]:
    """Two families that solve by looking a system prompt up; the first knows nothing."""
    known: dict[str, Solution] = {}

    def load(reference: str) -> object:
        if reference == "deaf":
            return lambda system_prompt, user_prompt: Solution("?", None, "not mine")
        return lambda system_prompt, user_prompt: known.get(system_prompt, Solution("riddle", None, "no clue"))

    task = (Task("riddle", "riddle", "RIDDLE"),)
    registry = {
        "deaf": Family("deaf", task, "deaf", "none"),
        "riddles": Family("riddles", task, "riddles", "none"),
    }
    monkeypatch.setattr(families, "families", lambda: registry)
    monkeypatch.setattr(families, "load", load)
    yield known


def test_the_text_solver_asks_every_family(riddles: dict[str, Solution]) -> None:
    riddles["Read the text."] = Solution("riddle", "YES", "found it")
    text = ask(example(), open_model("text-solver", ModelSettings()))
    assert text == "found it\n\n\\answer{YES}"


def test_the_text_solver_says_when_it_has_no_answer(riddles: dict[str, Solution]) -> None:
    text = ask(example(), open_model("text-solver", ModelSettings()))
    assert "\\answer" not in text
    assert "deaf: not mine" in text and "riddles: no clue" in text


def test_a_solver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Family("lost", (), "gniah.nowhere:solve", "none")
    monkeypatch.setattr(families, "families", lambda: {"lost": lost})
    with pytest.raises(MissingDependency, match="lost"):
        ask(example(), open_model("text-solver", ModelSettings()))


def test_the_real_solver_answers_a_small_prompt() -> None:
    block = "Title: Beta.\nAuthors: B. Bee.\nReferences:\n- A. Ay (2026). Alpha. arXiv."
    other = "Title: Gamma.\nAuthors: C. Cee.\nReferences:\n- D. Dee (2026). Delta. arXiv."
    question = 'Can one get from the paper "Alpha" to the paper "{}" by citations?'
    for target, answer in (("Beta", "YES"), ("Gamma", "NO")):
        asked = Request(
            "q",
            "text-solver",
            "",
            f"# Question\n\n{question.format(target)}\n\n# Context\n\n{block}\n\n{other}\n\n"
            "# Response Format\n\nEnd with \\answer{YES} or \\answer{NO}.",
        )
        text = open_model("text-solver", ModelSettings()).complete(asked).text
        assert text.endswith(f"\\answer{{{answer}}}"), text


def test_random_answers_are_uniform_over_what_the_prompt_offers() -> None:
    model = open_model("random", ModelSettings())
    for task, letters, expected in (
        ("yes-no", "", {"YES", "NO"}),
        ("multiple-choice", "ABCDE", set("ABCDE")),
    ):
        found = Counter(ask(example(task, "A", letters=letters), model, repeat)[8:-1] for repeat in range(600))
        assert set(found) == expected
        assert min(found.values()) > 0.7 * 600 / len(expected)
    counts = {int(ask(example("counting", "99"), model, repeat)[8:-1]) for repeat in range(3000)}
    assert (min(counts), max(counts), len(counts)) == (99, 249, 151)


def test_random_answers_depend_on_prompts_seed_and_repeat_alone() -> None:
    def drawn(seed: int, number: int = 0) -> list[str]:
        model = open_model("random", ModelSettings(seed))
        return [ask(example("counting", "99", number=number), model, repeat) for repeat in range(8)]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    assert drawn(0) != drawn(0, number=1)
    assert len(set(drawn(0))) > 1


def test_a_range_of_counts_bounds_the_guesses_and_is_part_of_the_key() -> None:
    narrow, usual = (
        open_model("random", ModelSettings(count_range=(5, 6))),
        open_model("random", ModelSettings()),
    )
    to = example("counting", "5")
    assert {ask(to, narrow, repeat)[8:-1] for repeat in range(40)} == {"5", "6"}
    assert request(to, narrow).key != request(to, usual).key


def test_the_constant_model_answers_each_task_alike() -> None:
    usual = open_model("constant", ModelSettings())
    other = open_model("constant", ModelSettings(constant_answers={"yes-no": "YES"}))
    assert [ask(example("yes-no"), model) for model in (usual, other)] == [r"\answer{NO}", r"\answer{YES}"]
    assert ask(example("multiple-choice", "C"), other) == r"\answer{A}"
    assert ask(example("counting", "7"), other) == r"\answer{99}"
    assert request(example(), usual).key != request(example(), other).key


def test_prompts_of_no_family_get_no_answer() -> None:
    for name in ("random", "constant", "text-solver"):
        text = open_model(name, ModelSettings()).complete(Request("q", name, "", "What is 2 + 2?")).text
        assert text and "\\answer" not in text


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageFault, match="text-solver, random, constant"):
        open_model("gpt", ModelSettings())
    with pytest.raises(UsageFault, match="yes-no"):
        open_model("constant", ModelSettings(constant_answers={"riddle": "x"}))
