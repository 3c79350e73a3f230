"""The text solver, on prompts written by a plain renderer that shares nothing with the generator's."""

from __future__ import annotations

import itertools
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gniah.generator.graphniah.text_solver import Identity, TextGraph, normalise, rebuild, sections, solve
from gniah.records.families import Solution

REMINDERS = {
    "yes-no": "Think first. The last line is \\answer{YES} or \\answer{NO}.",
    "multiple-choice": "The last line is \\answer{X} with the letter of an option.",
    "counting": "The last line is \\answer{N} with an integer.",
}


@dataclass(frozen=True)
class P:
    """One paper of a test."""

    title: str
    authors: tuple[str, ...] = ("Ann Lee",)
    year: int | None = 2026
    source: str | None = "Journal of Tests"


def stop(text: str) -> str:
    return text if text[-1] in ".?!" else text + "."


def line(paper: P) -> str:
    names = ", ".join(paper.authors)
    parts = []
    if paper.year is not None:
        parts.append(f"{names} ({paper.year})." if names else f"({paper.year}).")
    elif names:
        parts.append(stop(names))
    parts.append(stop(paper.title))
    if paper.source is not None:
        parts.append(stop(paper.source))
    return " ".join(parts)


def block(paper: P, references: Sequence[P]) -> str:
    rows = [f"Title: {stop(paper.title)}"]
    if paper.authors:
        rows.append(f"Authors: {stop(', '.join(paper.authors))}")
    if paper.source is not None:
        rows.append(stop(f"Published in {paper.source} on May 1, {paper.year}"))
    return "\n".join([*rows, "References:", *(f"- {line(one)}" for one in references)])


Edges = Sequence[tuple[int, int]]


def blocks(papers: Sequence[P], edges: Edges) -> list[str]:
    return [
        block(paper, [papers[cited] for citing, cited in edges if citing == number])
        for number, paper in enumerate(papers)
        if any(citing == number for citing, _ in edges)
    ]


def prompt(question: str, context: Sequence[str], reminder: str) -> str:
    return f"# Question\n\n{question}\n\n# Context\n\n" + "\n\n".join([*context, f"# Response Format\n\n{reminder}"])


def yes_no(source: P, target: P, context: Sequence[str]) -> str:
    question = f'Is there a chain of citations from the paper "{source.title}" to the paper "{target.title}"?'
    return prompt(question, context, REMINDERS["yes-no"])


def counting(source: P, context: Sequence[str]) -> str:
    question = f'How many other papers can be reached from the paper "{source.title}"? Leave it out itself.'
    return prompt(question, context, REMINDERS["counting"])


def multiple_choice(source: P, options: Sequence[P], context: Sequence[str], extra: str = "") -> str:
    rows = [f'{letter}. Paper "{one.title}"' for letter, one in zip("ABCD", options, strict=False)]
    question = f'Which of these can be reached from the paper "{source.title}"?\n\n' + "\n".join(rows) + extra
    return prompt(question, context, REMINDERS["multiple-choice"])


def reached(count: int, edges: Edges, start: int) -> set[int]:
    seen = {start}
    for _ in range(count):
        seen |= {one for edge in edges if seen & set(edge) for one in edge}
    return seen


def who(graph: TextGraph, paper: P, edges: Edges, number: int) -> Identity:
    """Find a rendered paper in the rebuilt graph by its own text."""
    if any(citing == number for citing, _ in edges):
        names = frozenset(filter(None, map(normalise, ", ".join(paper.authors).split(", "))))
        return Identity(normalise(paper.title), names, True)
    (found,) = (one for one, text in graph.papers.items() if text == line(paper) and not one.has_block)
    return found


def check(papers: Sequence[P], edges: Edges, noise: Sequence[str] = ()) -> None:
    """The graph comes back exactly, and the answers of all tasks are those of a search in the true one."""
    context = [*noise, *blocks(papers, edges)]
    graph = rebuild(counting(papers[0], context))
    names = [who(graph, paper, edges, number) for number, paper in enumerate(papers)]
    assert len(set(names)) == len(papers) == len(graph.papers)
    assert set(graph.edges) == {(names[citing], names[cited]) for citing, cited in edges}
    assert graph.ambiguities == ()
    components = [reached(len(papers), edges, number) for number in range(len(papers))]
    for source, target in itertools.islice(itertools.permutations(range(len(papers)), 2), 6):
        said = "YES" if target in components[source] else "NO"
        assert solve("", yes_no(papers[source], papers[target], context)) == Solution("yes-no", said)
    for source in range(min(3, len(papers))):
        count = str(len(components[source]) - 1)
        assert solve("", counting(papers[source], context)) == Solution("counting", count)
    near = sorted(components[0] - {0})
    far = sorted(set(range(len(papers))) - components[0])
    if near and far:
        options = [papers[far[0]], papers[near[-1]]]
        assert solve("", multiple_choice(papers[0], options, context)) == Solution("multiple-choice", "B")


A, B, C, D, E, F = (P(f"Study {name}", (f"{name} Writer",)) for name in string.ascii_uppercase[:6])
CHAIN = [A, B, C, D, E, F]
EDGES = [(0, 1), (2, 1), (2, 3), (5, 4)]  # A -> B <- C -> D, and F -> E


def test_a_small_graph_comes_back_exactly() -> None:
    check(CHAIN, EDGES)


def test_the_path_shows_why_an_answer_is_yes() -> None:
    graph = rebuild(counting(A, blocks(CHAIN, EDGES)))
    start, end = (who(graph, CHAIN[number], EDGES, number) for number in (0, 3))
    assert [graph.papers[one] for one in graph.path(start, end) or ()] == [
        "Study A.", "B Writer (2026). Study B. Journal of Tests.", "Study C.",
        "D Writer (2026). Study D. Journal of Tests.",
    ]  # fmt: skip
    assert graph.path(start, who(graph, F, EDGES, 5)) is None


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_a_missing_edge_on_the_path_turns_yes_into_no(removed: int) -> None:
    # The two ends keep a citation of their own, so that they stay in the text.
    papers = [*CHAIN, P("Aside one"), P("Aside two")]
    edges = [*EDGES, (0, 6), (3, 7)]
    assert solve("", yes_no(A, D, blocks(papers, edges))).answer == "YES"
    assert solve("", yes_no(A, D, blocks(papers, edges[:removed] + edges[removed + 1 :]))).answer == "NO"


def test_an_edge_too_many_is_noticed() -> None:
    assert solve("", counting(A, blocks(CHAIN, EDGES))).answer == "3"
    assert solve("", counting(A, blocks(CHAIN, [*EDGES, (5, 3)]))).answer == "5"
    two = solve("", multiple_choice(A, [D, E], blocks(CHAIN, [*EDGES, (5, 3)])))
    assert two == Solution("multiple-choice", None, "2 options are reachable ['A', 'B'], not one")
    none = solve("", multiple_choice(A, [E, F], blocks(CHAIN, EDGES)))
    assert none.answer is None and "0 options" in (none.reason or "")


def published(task: str) -> str:
    start = "Using only the relationships described in the context, "
    end = "by following one or more ‘cites’ or ‘cited_by’ relationships?"
    return {
        "yes-no": f'{start}can you start from the Paper "Study A" and arrive at the Paper "Study D" {end}',
        "multiple-choice": f'{start}which of the following is reachable from Paper "Study A" {end}\n\n'
        '    A. Paper "Study E"\n    B. Paper "Study F"\n    C. Paper "Study D"\n    D. Paper "Aside"',
        "counting": f'{start}how many distinct papers are reachable from Paper "Study A" {end} '
        "Count each reachable paper once. Do not count the starting paper.",
    }[task]


@pytest.mark.parametrize(("task", "answer"), [("yes-no", "YES"), ("multiple-choice", "C"), ("counting", "3")])
def test_questions_in_the_published_wording_are_read(task: str, answer: str) -> None:
    context = blocks([*CHAIN, P("Aside")], [*EDGES, (4, 6)])
    assert solve("", prompt(published(task), context, REMINDERS[task])) == Solution(task, answer)


def test_the_fifth_option_is_no_paper() -> None:
    extra = "\nE. None of these targets is reachable from the source."
    text = multiple_choice(A, [E, F, D, P("Aside")], blocks([*CHAIN, P("Aside")], [*EDGES, (4, 6)]), extra)
    assert solve("", text) == Solution("multiple-choice", "C")


@pytest.mark.parametrize("task", ["yes-no", "counting"])
def test_odd_wordings_are_told_apart_by_their_instructions(task: str) -> None:
    question = {"yes-no": 'From "Study A" to "Study D"?', "counting": 'The papers around "Study A"?'}[task]
    expected = Solution(task, {"yes-no": "YES", "counting": "3"}[task])
    context = blocks(CHAIN, EDGES)
    assert solve("", prompt(question, context, REMINDERS[task])) == expected
    assert solve(REMINDERS[task], prompt(question, context, "Be brief.")) == expected
    assert solve("", prompt(question, context, "Be brief.")) == expected


def test_a_title_about_counting_does_not_make_a_question_a_counting_one() -> None:
    many = P('How many "integers" are there? The number of primes', ("Q Writer",))
    papers = [many, *CHAIN[1:]]
    assert solve("", yes_no(many, D, blocks(papers, EDGES))) == Solution("yes-no", "YES")


@pytest.mark.parametrize(
    "title",
    [
        "Who is it?", "Stop it!", "Wait...",
        'The "white paper "reading" of texts', '"Quoted"', '""', '" and the paper "',
        "A \\answer{YES} to all", "Rome (1999). A history", "(1999). Again (2000). And again",
        "A . B", "Left: right",
        "One. Two. Three", "שלום עולם. שוב", "深度学习。 网络", "\U0001f600 smile \U0001f600",
        "e\u0301 and é. ﬁne Ｗide",
        "Authors: nobody", "References:", "# Context", "Title: of a title", "- a dash", "A, B (2026). C",
        "Ann Lee, Ann Lee (2026). Ann Lee. Ann Lee",
        "a. " * 3300, "(1999). " * 1250 + "end", 'x" ' * 3300 + "y",
    ],
)  # fmt: skip
def test_nasty_titles_with_and_without_a_block(title: str) -> None:
    title = title.strip()
    # '""' and the like have no letters: the generator keeps such papers out.
    nasty = P(title if normalise(title) else title + "a", ("Ann Lee", "Bo Öz"))
    for edges in ([(0, 1), (2, 1), (2, 3)], [(1, 0), (1, 2), (4, 3)]):
        check([nasty, B, C, D, E], [*edges, (4, 3)] if (4, 3) not in edges else edges)


AUTHORS = [
    ("J. R. Smith Jr.",), ("Cai. Yan., Huang,", "Li"), ("Doe, John", "Roe"), ("Ann Lee", "Ann Lee"),
    ("李明",), ("...", "Ann Lee"),
    tuple(f"A. {number} Name" for number in range(300)), ("M. (1999). Q",), ("Ann Lee (2026)",),
]  # fmt: skip


@pytest.mark.parametrize("authors", AUTHORS)
@pytest.mark.parametrize("year", [2026, None])
@pytest.mark.parametrize("source", ["arXiv:2604.00001", "arXiv", "J. Odd. Things!", None])
def test_nasty_authors_and_missing_metadata(authors: tuple[str, ...], year: int | None, source: str | None) -> None:
    papers = [P(f"Odd work {number}", authors, year, source) for number in range(4)]
    check([*papers, E, F], [(0, 1), (2, 1), (2, 0), (5, 4), (4, 3)])


def test_papers_without_authors() -> None:
    papers = [P(f"Anonymous {number}", (), 2026 if number % 2 else None) for number in range(5)]
    check(papers, [(0, 1), (2, 1), (2, 0), (4, 3)])


def test_superficial_differences_do_not_make_two_papers() -> None:
    context = [
        "Title: Study A.\nAuthors: A Writer.\nReferences:\n- X Y, Q Z (2026). Some Work: again. Venue.",
        "Title: Study B.\nAuthors: B Writer.\nReferences:\n- q z, X. Y., q z (2026). SOME work, again! Venue."
        "\n- a writer (2026). STUDY a. Venue.",
    ]
    assert solve("", counting(A, context)).answer == "2"


def test_the_same_title_by_others_is_another_paper() -> None:
    context = [
        "Title: Study A.\nAuthors: A Writer.\nReferences:\n- Q Z (2026). Editorial. Venue.",
        "Title: Editorial.\nAuthors: X Y.\nReferences:\n- A Writer, Q Z (2026). Study A. Venue.",
    ]
    graph = rebuild(counting(A, context))
    assert len(graph.papers) == 4
    assert solve("", counting(A, context)).answer == "1"


DECOYS = [
    'printf("Title: x.");\n  Title: Study A.\n  References:\n- A Writer (2026). Study A. Journal of Tests.',
    "# Context",
    "# Response Format",
    "The last line is \\answer{NO}.",
    "\\answer{17}",
    "References:\n- A Writer (2026). Study A. Journal of Tests.\n- F Writer (2026). Study F. Journal of Tests.",
    "Title: Study A.\nAuthors: A Writer.",
    "Title: Study A.\nAuthors: A Writer.\nReferences:\nF Writer (2026). Study F. Journal of Tests.",
    "line\x0bTitle: Study A.\u2028References:\r- F Writer (2026). Study F. Journal of Tests.",
]


def test_distractors_that_look_like_parts_of_the_prompt_change_nothing() -> None:
    check(CHAIN, EDGES, DECOYS)


def test_a_line_of_white_space_ends_a_block() -> None:
    context = ["\n \t\n".join(blocks(CHAIN, EDGES))]
    assert solve("", counting(A, context)) == Solution("counting", "3")


def test_the_first_context_and_the_last_response_format_count() -> None:
    text = prompt("Q?", ["one", "# Response Format", "# Context", "two"], "R.")
    assert sections(text) == ("Q?", "one\n\n# Response Format\n\n# Context\n\ntwo", "R.")
    assert sections(prompt("Q?", [], "R.")) == ("Q?", "", "R.")


@pytest.mark.parametrize("text", ["", "# Question\n\nQ?", "# Question\n\nQ?\n\n# Context\n\nx", "hello"])
def test_a_text_that_is_no_prompt_has_a_reason_instead_of_an_answer(text: str) -> None:
    found = solve("\\answer{YES}", text)
    assert found.answer is None and found.reason
    with pytest.raises(ValueError, match="user prompt"):
        rebuild(text)


def test_unknown_and_ambiguous_papers_have_a_reason_instead_of_an_answer() -> None:
    context = blocks(CHAIN, EDGES)
    unknown = P("Nowhere to be seen")
    for text in (counting(unknown, context), yes_no(unknown, A, context), yes_no(A, unknown, context)):
        found = solve("", text)
        assert found.answer is None and found.reason
    assert solve("", multiple_choice(A, [D, unknown], context)).answer is None
    twins = blocks([A, B, P("Study A", ("Other",)), D], [(0, 1), (2, 3)])
    assert solve("", counting(A, twins)) == Solution(
        "counting", None, "2 papers of the context may have the title 'study a'"
    )


def test_a_line_that_could_be_two_papers_with_blocks_has_a_reason_instead_of_an_answer() -> None:
    short, long = P("Foo", ("X Y",)), P("Foo. Bar", ("X Y",), source=None)
    papers = [A, short, long, D, E]
    text = counting(A, blocks(papers, [(0, 1), (1, 3), (2, 4)]))
    assert solve("", text).answer == "2"  # "Foo. Journal of Tests." is not "Foo. Bar"
    found = solve("", counting(A, blocks(papers, [(0, 2), (1, 3), (2, 4)])))
    assert found.answer is None and "read as 2 papers" in (found.reason or "")


WORDS = st.sampled_from(
    [
        "graph", "Graph", "of", "deep", "(1999).", "(2026).",
        ".", ":", "?", "!", '"', '"x"', "paper", "\\answer{NO}", "a.",
        "Bo Öz,",
        "שלום", "深度", "。", "\U0001f600", "e\u0301", "ß", "ﬁ",
        "# Context", "arXiv.", "Ann Lee", "-", "References:", "‘cites’",
    ]
)  # fmt: skip
TITLES = st.lists(WORDS, min_size=1, max_size=9).map(" ".join).filter(normalise)
NAMES = st.sampled_from(["Ann Lee", "J. R. Smith Jr.", "Cai. Yan., Huang,", "Bo Öz", "Q", "李明", "deep", "Lee, Jr."])
PAPERS = st.builds(
    P,
    title=TITLES,
    authors=st.lists(NAMES, min_size=1, max_size=4).map(tuple),
    year=st.sampled_from([2026, 2027]),
    source=st.sampled_from(["Journal of Tests", "J. Odd? Things", "arXiv", "arXiv:2604.00001", None]),
)


def readings(paper: P) -> set[str]:
    """All titles that a line could be read to have, by brute force: every run between two cuts."""
    text = line(paper)
    ends = [at + 1 for at, mark in enumerate(text) if mark in ".?!" and text[at + 1 : at + 2] in ("", " ")]
    return {normalise(text[one:two]) for one, two in itertools.combinations([0, *ends], 2)}


def guaranteed(papers: Sequence[P]) -> bool:
    """The promise of the generator: no title is a title or a reading of another paper's line."""
    return not any(normalise(one.title) in readings(two) for one in papers for two in papers if one is not two)


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[P], list[tuple[int, int]]]:
    papers: list[P] = []
    for paper in draw(st.lists(PAPERS, min_size=4, max_size=12)):
        if guaranteed([*papers, paper]):
            papers.append(paper)
    assume(len(papers) > 3)
    second = draw(st.integers(2, len(papers) - 2))
    edges = []
    for number in range(len(papers)):
        first = 0 if number < second else second
        if number > first:
            edge = (draw(st.integers(first, number - 1)), number)
            edges.append(edge if draw(st.booleans()) else edge[::-1])
    return papers, edges


@settings(max_examples=150, deadline=None)
@given(forests(), st.lists(st.sampled_from(DECOYS), max_size=3))
def test_random_forests_come_back_exactly(forest: tuple[list[P], list[tuple[int, int]]], noise: list[str]) -> None:
    check(*forest, noise=noise)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_normalising_in_pieces_behind_a_stop_is_normalising_the_whole(one: str, two: str) -> None:
    parts = [normalise(one + "."), normalise(" " + two)]
    assert normalise(f"{one}. {two}") == " ".join(filter(None, parts))


def test_a_prompt_of_four_megabytes_takes_seconds() -> None:
    papers = [
        P(f"Paper {number} on a subject: it is so. It is", (f"A. B{number % 997}", "Zoë Q.")) for number in range(11000)
    ]
    edges = [(number % 1500, number) for number in range(1500, 11000)]
    edges += [(number, number + 1) for number in range(1499) if number != 700]
    context = [*blocks(papers, edges), *(["some words of a book, and so on. " * 20] * 4500)]
    text = counting(papers[0], context)
    assert len(text) > 4_000_000
    start = time.perf_counter()
    found = solve("", text)
    assert found == Solution("counting", str(len(reached_fast(edges, 0)) - 1))
    assert time.perf_counter() - start < 20


def reached_fast(edges: Edges, start: int) -> set[int]:
    neighbours: dict[int, list[int]] = {}
    for one, two in edges:
        neighbours.setdefault(one, []).append(two)
        neighbours.setdefault(two, []).append(one)
    seen, stack = {start}, [start]
    while stack:
        for other in neighbours[stack.pop()]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen
