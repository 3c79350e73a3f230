from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gniah.generator.graphniah.prompts import load_templates
from gniah.generator.graphniah.rendering import (
    TitleRegister,
    paper_block,
    publication_line,
    reference_line,
    title_readings,
    with_stop,
    written_date,
)
from gniah.generator.graphniah.text_solver import Identity, TextGraph, normalise, rebuild, solve
from gniah.generator.requests import BLOCK_SEPARATOR
from gniah.records.families import Solution
from gniah.records.papers import Paper
from gniah.records.streams import Stream
from gniah.records.titles import normalised_title, shown_text

MakePaper = Callable[..., Paper]

DAY = datetime.date(2026, 9, 1)


def plain(title: str = "A title", **changed: Any) -> Paper:
    values: dict[str, Any] = {"authors": ("Ann Lee", "Bo Kim"), "publicationdate": DAY, "venue": "Journal X", **changed}
    return Paper(1, title, normalised_title(title), **values)


# --- lines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("A title", "A title."),
        ("A title.", "A title."),
        ("Why?", "Why?"),
        ("Stop!", "Stop!"),
        ("Wait...", "Wait..."),
        ('He said "no."', 'He said "no.".'),
        ("Colon:", "Colon:."),
        ("كيف؟", "كيف؟."),
        ("…", "…."),
    ],
)
def test_a_stop_is_added_only_where_none_is(text: str, written: str) -> None:
    assert with_stop(text) == written


def test_dates_are_written_in_english_without_leading_zeros() -> None:
    assert written_date(DAY) == "September 1, 2026"
    assert written_date(datetime.date(2026, 12, 31)) == "December 31, 2026"


@pytest.mark.parametrize(
    ("venue", "arxiv_id", "date", "line"),
    [
        ("Journal X", None, DAY, "Published in Journal X on September 1, 2026."),
        ("Journal X", None, None, "Published in Journal X."),
        ("Proc. X.", None, None, "Published in Proc. X."),
        ("Proc. X.", None, DAY, "Published in Proc. X. on September 1, 2026."),
        ("What?", None, None, "Published in What?"),
        (None, None, DAY, "Published on September 1, 2026."),
        (None, None, None, None),
        (None, "2609.00001", DAY, "Uploaded to arXiv on September 1, 2026."),
        (None, "2609.00001", None, "Uploaded to arXiv."),
        ("arXiv.org", "2609.00001", DAY, "Uploaded to arXiv on September 1, 2026."),
        ("ArXiv", "2609.00001", DAY, "Uploaded to arXiv on September 1, 2026."),
        ("ArXiv", None, DAY, "Uploaded to arXiv on September 1, 2026."),
        ("arXiv.org", None, None, "Uploaded to arXiv."),
        ("Journal X", "2609.00001", DAY, "Published in Journal X on September 1, 2026."),
        ("arXiv in Society", None, DAY, "Published in arXiv in Society on September 1, 2026."),
    ],
)
def test_the_line_on_venue_and_date_has_what_is_known(
    venue: str | None, arxiv_id: str | None, date: datetime.date | None, line: str | None
) -> None:
    assert publication_line(plain(venue=venue, arxiv_id=arxiv_id, publicationdate=date)) == line


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, "- Ann Lee, Bo Kim (2026). A title. Journal X."),
        ({"authors": ("Ann Lee",)}, "- Ann Lee (2026). A title. Journal X."),
        ({"authors": ()}, "- (2026). A title. Journal X."),
        ({"publicationdate": None}, "- Ann Lee, Bo Kim. A title. Journal X."),
        ({"publicationdate": None, "authors": ("Ann Lee Jr.",)}, "- Ann Lee Jr. A title. Journal X."),
        ({"publicationdate": None, "authors": ()}, "- A title. Journal X."),
        ({"venue": None}, "- Ann Lee, Bo Kim (2026). A title."),
        ({"venue": None, "arxiv_id": "2609.00001"}, "- Ann Lee, Bo Kim (2026). A title. arXiv:2609.00001."),
        ({"venue": "arXiv.org", "arxiv_id": "2609.00001"}, "- Ann Lee, Bo Kim (2026). A title. arXiv:2609.00001."),
        ({"venue": "ArXiv"}, "- Ann Lee, Bo Kim (2026). A title. arXiv."),
        ({"arxiv_id": "2609.00001"}, "- Ann Lee, Bo Kim (2026). A title. Journal X."),
        ({"publicationdate": None, "authors": (), "venue": None}, "- A title."),
        ({"title": "Why?"}, "- Ann Lee, Bo Kim (2026). Why? Journal X."),
        ({"title": "Ends.", "venue": "Proc."}, "- Ann Lee, Bo Kim (2026). Ends. Proc."),
    ],
)
def test_a_reference_line_has_what_is_known(changed: dict[str, Any], line: str) -> None:
    assert reference_line(plain(**changed)) == line


def test_a_block_is_written_line_by_line() -> None:
    cited = [plain("First", venue=None), plain("Second?", authors=("Cy Oh",))]
    assert paper_block(plain(), cited) == (
        "Title: A title.\n"
        "Authors: Ann Lee, Bo Kim.\n"
        "Published in Journal X on September 1, 2026.\n"
        "References:\n"
        "- Ann Lee, Bo Kim (2026). First.\n"
        "- Cy Oh (2026). Second? Journal X."
    )
    bare = plain("Alone!", authors=(), venue=None, publicationdate=None)
    assert paper_block(bare, cited[:1]) == "Title: Alone!\nReferences:\n- Ann Lee, Bo Kim (2026). First."
    named = plain(authors=("Ann Lee", "Bo Kim Jr."), venue=None, publicationdate=None)
    assert paper_block(named, cited[:1]).split("\n")[1] == "Authors: Ann Lee, Bo Kim Jr."


# --- readings ---------------------------------------------------------------------------------------------------


def slow_readings(paper: Paper) -> set[str]:
    """All cuts behind a year in brackets (or the beginning, when there is none) up to any stop, one by one."""
    line = reference_line(paper)[2:]
    starts = [match.end() for match in re.finditer(r"\(\d{4}\)\. ", line) if line[: match.start()][-1:] in ("", " ")]
    starts = starts or [0]
    if paper.publicationdate is None:
        starts += [
            place + 2 for place in range(len(line)) if line[place] in ".?!" and line[place + 1 : place + 2] == " "
        ]
    ends = [
        place + 1 for place in range(len(line)) if line[place] in ".?!" and line[place + 1 : place + 2] in ("", " ")
    ]
    found = {normalised_title(line[start:end]) for start in starts for end in ends if end > start}
    return (found | {paper.title_key}) - {""}


PIECES = st.sampled_from(
    (
        *("rivers", "Flow", "ｗｉｄｅ", "ﬁne", "Σίγμας", "İ", "e\u0301", "\u0301x", "-", "3.5", "...", "a.b"),
        *(". ", "? ", "! ", ", ", " (2020). ", "(1999).", "(20). ", ' "q" ', "؟", "نهر", "漢字"),
        *("\\answer{YES}", " Title: "),
    )
)
TEXTS = st.lists(PIECES, min_size=1, max_size=7).map("".join).map(shown_text)
NAMES = st.lists(
    st.sampled_from(["Ann", "Lee", "J.", "B. Kim", "Jr.", "de la", "O'Neil", "王", "Ö", "Smith, Jr"]),
    min_size=1,
    max_size=3,
).map(" ".join)
VENUES = (
    st.none()
    | st.sampled_from(["arXiv.org", "ArXiv", "Proc. Int. Conf. X", "Nature", "What? Now."])
    | TEXTS.filter(bool)
)


@st.composite
def papers(draw: st.DrawFn, dated: bool = True) -> Paper:
    title = draw(TEXTS.filter(lambda text: bool(normalised_title(text))))
    days = st.dates(datetime.date(2010, 1, 1), datetime.date(2029, 12, 31))
    return Paper(
        draw(st.integers(1, 10**9)),
        title,
        normalised_title(title),
        tuple(draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))),
        draw(days if dated else days | st.none()),
        draw(VENUES),
        draw(st.none() | st.just("2604.01234")),
    )


@given(papers(dated=False))
@settings(deadline=None)
@example(plain("One. Two? Three"))
@example(plain("A (1999). B. C", publicationdate=None, authors=("X. Y",)))
def test_title_readings_are_all_cuts_of_the_line(paper: Paper) -> None:
    assert title_readings(paper) == slow_readings(paper)


def test_a_title_with_stops_has_a_reading_for_each() -> None:
    paper = plain("Rivers. How deep? Very", venue="Proc. X")
    assert title_readings(paper) == {
        "rivers",
        "rivers how deep",
        "rivers how deep very",
        "rivers how deep very proc",
        "rivers how deep very proc x",
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (plain("Same title"), plain("SAME, title!")),
        (plain("Rivers", venue="Deep"), plain("Rivers. Deep")),
        (plain("Rivers. Deep", venue="Nature"), plain("Rivers", venue="Deep. Nature")),
        (plain("Early work (1999). Late work"), plain("Late work")),
        (plain("Deep", authors=("A. Lee",), publicationdate=None), plain("Lee. Deep")),
        (plain("Why? Because"), plain("Why?", venue="Elsewhere")),
    ],
)
def test_papers_whose_lines_could_be_confused_do_not_stand_together(one: Paper, other: Paper) -> None:
    for first, second in ((one, other), (other, one)):
        register = TitleRegister()
        assert register.accepts(first)
        register.add(first)
        assert not register.accepts(second)
        register.remove(first)
        assert register.accepts(second)


def accepted(candidates: Iterable[Paper]) -> list[Paper]:
    register = TitleRegister()
    found = []
    for number, candidate in enumerate(candidates):
        if register.accepts(candidate):
            register.add(candidate)
            found.append(replace(candidate, corpusid=number))
    return found


@given(st.lists(papers(dated=False), min_size=2, max_size=12))
@settings(deadline=None)
def test_no_title_of_an_accepted_set_is_a_reading_of_another_paper(candidates: list[Paper]) -> None:
    for one, other in itertools.permutations(accepted(candidates), 2):
        assert one.title_key not in slow_readings(other)


@given(st.lists(papers(), min_size=1, max_size=8))
@settings(deadline=None)
def test_removing_papers_restores_the_register(candidates: list[Paper]) -> None:
    register = TitleRegister()
    register.add(plain("Stays. Here"))
    before = {name: dict(counts) for name, counts in vars(register).items()}
    for one in candidates:
        register.add(one)
    for one in candidates:
        register.remove(one)
    assert vars(register) == before


# --- round trip -------------------------------------------------------------------------------------------------

Edges = Sequence[tuple[int, int]]

TEMPLATES = load_templates("plain")


def prompt(task: str, question: str, papers: Sequence[Paper], edges: Edges) -> str:
    blocks = [
        paper_block(one, [papers[cited] for citing, cited in edges if citing == number])
        for number, one in enumerate(papers)
        if any(citing == number for citing, _ in edges)
    ]
    return TEMPLATES.user_prompt(task, question, BLOCK_SEPARATOR.join(blocks))


def who(graph: TextGraph, papers: Sequence[Paper], edges: Edges, number: int) -> Identity:
    """Find a rendered paper in the graph that the text solver rebuilt."""
    one = papers[number]
    if any(citing == number for citing, _ in edges):
        names = frozenset(filter(None, map(normalise, ", ".join(one.authors).split(", "))))
        return Identity(normalise(one.title), names, True)
    (found,) = (key for key, text in graph.papers.items() if f"- {text}" == reference_line(one) and not key.has_block)
    return found


def parts(count: int, edges: Edges) -> list[set[int]]:
    found = []
    for start in range(count):
        seen = {start}
        for _ in range(count):
            seen |= {end for edge in edges if seen & set(edge) for end in edge}
        found.append(seen)
    return found


def check_round_trip(papers: Sequence[Paper], edges: Edges) -> None:
    """The text gives back exactly the graph, and the answer of every task."""
    system = TEMPLATES.system
    counting = prompt("counting", TEMPLATES.ask("counting", papers[0].title), papers, edges)
    graph = rebuild(counting)
    names = [who(graph, papers, edges, number) for number in range(len(papers))]
    assert len(set(names)) == len(papers) == len(graph.papers)
    assert set(graph.edges) == {(names[citing], names[cited]) for citing, cited in edges}
    assert len(graph.edges) == len(edges)
    assert graph.ambiguities == ()
    reached = parts(len(papers), edges)
    assert solve(system["counting"], counting) == Solution("counting", str(len(reached[0]) - 1))
    for target in range(1, len(papers)):
        question = TEMPLATES.ask("yes-no", papers[0].title, target=papers[target].title)
        said = "YES" if target in reached[0] else "NO"
        user = prompt("yes-no", question, papers, edges)
        assert solve(system["yes-no"], user) == Solution("yes-no", said)
    outside = [number for number in range(len(papers)) if number not in reached[0]]
    inside = sorted(reached[0] - {0})
    if len(outside) >= 3 and inside:
        options = list(
            zip("ABCD", [papers[n].title for n in (outside[0], inside[-1], outside[1], outside[2])], strict=True)
        )
        question = TEMPLATES.ask("multiple-choice", papers[0].title, options=options)
        user = prompt("multiple-choice", question, papers, edges)
        assert solve(system["multiple-choice"], user) == Solution("multiple-choice", "B")


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[Paper], list[tuple[int, int]]]:
    """Papers that the register accepts, in two trees with citations in random directions."""
    found = accepted(draw(st.lists(papers(), min_size=6, max_size=16)))
    edges = []
    half = max(2, len(found) // 2)
    for number in range(len(found)):
        first = 0 if number < half else half
        if number > first:
            other = draw(st.integers(first, number - 1))
            edges.append((number, other) if draw(st.booleans()) else (other, number))
    used = {end for edge in edges for end in edge}
    return [one for number, one in enumerate(found) if number in used], [
        (sorted(used).index(one), sorted(used).index(other)) for one, other in edges
    ]


@given(forests())
@settings(max_examples=100, deadline=None)
def test_the_text_solver_rebuilds_exactly_what_was_rendered(forest: tuple[list[Paper], list[tuple[int, int]]]) -> None:
    found, edges = forest
    if len(found) >= 2 and edges:
        check_round_trip(found, edges)


AWKWARD = {
    "a full stop": "Ends with a stop.",
    "a question": "Does it end?",
    "a shout": "It ends!",
    "an ellipsis": "It goes on...",
    "quotes": 'On "good" and "bad" papers',
    "quotes at both ends": '"Quoted"',
    "a question in it": 'Paths to the paper "X" to the paper "Y',
    "an answer": "\\answer{YES}",
    "a heading": "# Response Format",
    "a block": "Title: Authors: References:",
    "a list": "- Ann Lee (2020). Old work. Nature",
    "a line break": "One\n\nline\r\nafter\tanother",
    "a hidden one": "One &amp;#10; line &lt;b&gt; more",
    "right to left": "\u202bأثر الأنهار\u202c على \u2067الجسور\u2069",
    "combining marks": "Cafe\u0301 n\u0303",
    "10,000 characters": "long. " * 1666 + "tail",
    "10,000 characters without a space": "x" * 10_000,
    "a place": "{source} {target} {options}",
    "an option": 'A. Paper "B"',
    "full width": "ＲＩＶＥＲ：ｔｗｏ",
}


@pytest.mark.parametrize("raw", AWKWARD.values(), ids=AWKWARD)
@pytest.mark.parametrize("place", range(3))
def test_awkward_titles_come_back_wherever_they_stand(paper: MakePaper, raw: str, place: int) -> None:
    title = shown_text(raw)
    assert "\n" not in title
    others = [paper(number, f"Other work {number}") for number in range(2, 9)]
    found = [*others[:place], paper(1, title), *others[place:]]
    assert len(accepted(found)) == 8
    # 0 -> 1 -> 2 <- 3, and four more apart.
    check_round_trip(found, [(0, 1), (1, 2), (3, 2), (4, 5), (6, 5), (6, 7)])


@pytest.mark.parametrize("count", [1, 2, 300])
def test_lists_of_authors_come_back_whatever_their_length(paper: MakePaper, count: int) -> None:
    names = tuple(f"N{number % 7}. Author{number}, Jr." for number in range(count))
    found = [paper(1, "First", authors=names), paper(2, "Second", authors=names), paper(3, "Third", authors=names[:1])]
    check_round_trip(found, [(0, 1), (1, 2)])


def test_references_are_written_alike_in_every_list(paper: MakePaper) -> None:
    cited = paper(9, "Shared. Work?")
    lists = [paper_block(paper(number), Stream("k", number).shuffled([cited, paper(8)])) for number in (1, 2)]
    assert all(reference_line(cited) in block.split("\n") for block in lists)
