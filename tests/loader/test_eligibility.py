from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gniah.loader.eligibility import (
    CitationRow,
    Drop,
    PaperRow,
    RowFault,
    author_names,
    citation_numbers,
    has_mathml,
    judge_paper,
    parse_date,
    parse_id,
    read_citation,
    resolve_venue,
)

CUTOFF = datetime.date(2026, 4, 1)
Make = Callable[..., dict[str, Any]]


def test_a_row_becomes_its_columns(paper: Make) -> None:
    row = paper(
        "42",
        title="  Fish &amp;amp; Chips:\n a\u200e Caf\u0065\u0301 ",
        authors=[{"authorId": None, "name": "Zoë  M&uuml;ller"}, {"authorId": "3", "name": "B"}],
        venue="",
        journal={"name": " J. of &amp; ", "pages": None, "volume": ""},
        publicationvenueid="uuid",
        externalids={"ArXiv": "2604.00001", "DOI": None},
        unknown=[1.5],
    )
    assert judge_paper(row, CUTOFF) == PaperRow(
        corpusid=42,
        title="Fish & Chips: a Café",
        title_raw="  Fish &amp;amp; Chips:\n a\u200e Caf\u0065\u0301 ",
        title_key="fish chips a café",
        authors=("Zoë Müller", "B"),
        authors_raw='[{"authorId":null,"name":"Zoë  M&uuml;ller"},{"authorId":"3","name":"B"}]',
        publicationdate=datetime.date(2026, 4, 1),
        venue="J. of &",
        venue_raw="",
        journal_name=" J. of &amp; ",
        publicationvenueid="uuid",
        arxiv_id="2604.00001",
    )


def test_a_row_with_the_least_fields_is_kept() -> None:
    row = judge_paper({"corpusid": 0, "title": "T", "publicationdate": "2026-04-01"}, CUTOFF)
    assert row == PaperRow(0, "T", "T", "t", (), "[]", CUTOFF, None, None, None, None, None)


@pytest.mark.parametrize(
    ("date", "verdict"),
    [
        (None, Drop.NO_DATE),
        ("2026-03-31", Drop.BEFORE_CUTOFF),
        ("", Drop.BAD_DATE),
        ("2026", Drop.BAD_DATE),
        ("2026-04", Drop.BAD_DATE),
        ("2026-4-1", Drop.BAD_DATE),
        ("20260401", Drop.BAD_DATE),
        ("2026-W14-3", Drop.BAD_DATE),
        ("2026-02-30", Drop.BAD_DATE),
        ("2026-13-01", Drop.BAD_DATE),
        ("0000-01-01", Drop.BAD_DATE),
        ("2026-04-01\n", Drop.BAD_DATE),
        (" 2026-04-01", Drop.BAD_DATE),
        ("2026-04-01T00:00:00", Drop.BAD_DATE),
        ("２０２６-04-01", Drop.BAD_DATE),
        (20260401, Drop.BAD_DATE),
    ],
)
def test_only_a_full_date_from_the_cutoff_on_counts(paper: Make, date: object, verdict: Drop) -> None:
    assert judge_paper(paper(publicationdate=date), CUTOFF) is verdict


def test_a_date_is_never_invented_from_the_year() -> None:
    assert judge_paper({"corpusid": 1, "title": "T", "year": 2026}, CUTOFF) is Drop.NO_DATE


def test_a_date_in_the_future_is_kept(paper: Make) -> None:
    assert isinstance(judge_paper(paper(publicationdate="2031-01-01", year=2025), CUTOFF), PaperRow)
    assert parse_date("2024-02-29") == datetime.date(2024, 2, 29)
    assert parse_date("2023-02-29") is None


@pytest.mark.parametrize("title", [None, "", "  \n", "&nbsp;", "&amp;nbsp; \u200e", "\x07", "\u2003"])
def test_an_empty_title_is_dropped(paper: Make, title: str | None) -> None:
    assert judge_paper(paper(title=title), CUTOFF) is Drop.NO_TITLE


@pytest.mark.parametrize(
    "title",
    [
        '<inline-formula><tex-math notation="LaTeX">$\\mu$</tex-math></inline-formula>Bench',
        "On <math>x</math>",
        "On <MATH xmlns='y'>x",
        "On <mml:math>x</mml:math>",
        "On <m-l.2:math/>",
        "On &lt;mml:math&gt;x",
        "On &amp;amp;lt;math&amp;amp;gt;x",
        "On &#60;math&#x3E;",
        "cut <math",
        "<tex-math>a",
        "<jats:inline-formula>a",
    ],
)
def test_mathml_is_found(paper: Make, title: str) -> None:
    assert has_mathml(title)
    assert judge_paper(paper(title=title), CUTOFF) is Drop.MATHML


@pytest.mark.parametrize(
    "title",
    [
        "$K_{s,s}$ and $O(\\log^{3} n)$",
        "<i>E. coli</i> and H<sub>2</sub>O",
        "p < 0.05 and n > 30",
        "MathML in <b>practice</b>",
        "a<math education",
        "<mathematics>",
        "<math-ph> papers",
        "x &lt; math",
        "AT&T & co",
        'What If Turing Had Preceded G\\"odel?',
    ],
)
def test_what_is_no_mathml_is_kept(paper: Make, title: str) -> None:
    expected = title == "a<math education"  # an opening tag as far as anyone can tell
    assert has_mathml(title) is expected


def test_unescaping_has_an_end() -> None:
    assert not has_mathml("&" + "amp;" * 100_000 + "lt;math&gt;")


@pytest.mark.parametrize(("value", "number"), [(0, 0), ("20187272", 20187272), ("007", 7), (2**63 - 1, 2**63 - 1)])
def test_ids_are_numbers_or_digits(value: object, number: int) -> None:
    assert parse_id(value, "corpusid") == number


@pytest.mark.parametrize("value", [True, 1.0, -1, 2**63, "9" * 19, "-1", "+1", " 1", "1e3", "", "١", None, [], {}])
def test_other_ids_are_refused(value: object) -> None:
    with pytest.raises(RowFault, match="corpusid"):
        parse_id(value, "corpusid")


def test_authors_keep_their_order_without_blanks_and_repeats() -> None:
    authors = [
        {"authorId": None, "name": "A. B"},
        None,
        {"authorId": "7", "name": ""},
        {"authorId": "7", "name": "C"},
        {"authorId": "7", "name": "C2"},
        {"authorId": None, "name": "A. B"},
        {"authorId": 8, "name": "Cai. Yan., Huang,"},
        {"authorId": "8", "name": "D"},
        {"authorId": "", "name": "何祚庥"},
        {"authorId": "", "name": "D.M'endez"},
        {"authorId": "9", "name": None},
        {"authorId": "9"},
        {"authorId": "9", "name": "&nbsp;\t"},
        {},
    ]
    assert author_names(authors) == ("A. B", "C", "A. B", "Cai. Yan., Huang,", "何祚庥", "D.M'endez")
    assert author_names(None) == author_names([]) == ()


@pytest.mark.parametrize(
    ("venue", "journal", "expected"),
    [
        ("V", "J", "V"),
        ("", "J", "J"),
        (None, "J", "J"),
        (" \n", "J &amp; K", "J & K"),
        ("", "", None),
        (None, None, None),
    ],
)
def test_the_venue_is_the_first_that_is_not_empty(venue: str | None, journal: str | None, expected: str | None) -> None:
    assert resolve_venue(venue, journal) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"title": 5},
        {"authors": "A. B"},
        {"authors": ["A. B"]},
        {"authors": [{"name": 5}]},
        {"authors": [{"authorId": True, "name": "A"}]},
        {"authors": [{"authorId": 1.5, "name": "A"}]},
        {"externalids": "x"},
        {"externalids": {"ArXiv": 2604.1}},
        {"journal": "Nature"},
        {"journal": {"name": 5}},
        {"venue": []},
        {"publicationvenueid": 5},
        {"corpusid": None},
        {"corpusid": 1.0},
        {"citingcorpusid": 1},
    ],
)
def test_values_of_a_wrong_type_are_a_fault_of_the_row(paper: Make, changed: dict[str, object]) -> None:
    with pytest.raises(RowFault):
        judge_paper(paper() | changed, CUTOFF)


def test_rows_of_another_data_set_are_recognised() -> None:
    with pytest.raises(RowFault, match="a row of citations, not of papers"):
        judge_paper({"citingcorpusid": 1, "citedcorpusid": 2}, CUTOFF)
    with pytest.raises(RowFault, match="a row of papers, not of citations"):
        read_citation({"corpusid": 1, "title": "T"})
    with pytest.raises(RowFault, match="neither title nor publicationdate"):
        judge_paper({"corpusid": 1, "abstract": "text"}, CUTOFF)
    with pytest.raises(RowFault, match="neither citingcorpusid nor citedcorpusid"):
        read_citation({"authorid": "1"})


def test_citations_of_every_release_are_read() -> None:
    assert read_citation({"citingcorpusid": "1", "citedcorpusid": "2", "isinfluential": False, "intents": ["a"]}) == (
        CitationRow(1, 2, False, None)
    )
    assert read_citation(
        {"citationid": 4871802503, "citingcorpusid": 12423623, "citedcorpusid": None, "isinfluential": True}
    ) == CitationRow(12423623, None, True, 4871802503)
    assert read_citation({"citedcorpusid": 2}) == CitationRow(None, 2, False, None)


@pytest.mark.parametrize(
    "row",
    [
        {"citingcorpusid": 1.0, "citedcorpusid": 2},
        {"citingcorpusid": True, "citedcorpusid": 2},
        {"citingcorpusid": 1, "citedcorpusid": -2},
        {"citingcorpusid": 1, "citedcorpusid": 2, "isinfluential": 1},
        {"citingcorpusid": 1, "citedcorpusid": 2, "citationid": "x"},
    ],
)
def test_odd_citations_are_a_fault_of_the_row(row: dict[str, object]) -> None:
    with pytest.raises(RowFault):
        read_citation(row)


ENDS = st.none() | st.integers(-1, 3) | st.just(2**63 - 1) | st.just(2**63) | st.sampled_from(["7", "x", 1.0, True])


@given(ENDS, ENDS, ENDS, st.none() | st.booleans() | st.just(1))
def test_the_numbers_of_a_citation_are_what_is_read(
    citing: object, cited: object, number: object, flag: object
) -> None:
    row = {"citingcorpusid": citing, "citedcorpusid": cited, "citationid": number, "isinfluential": flag}
    try:
        expected = tuple(-1 if value is None else int(value) for value in read_citation(row))
    except RowFault as fault:
        with pytest.raises(RowFault, match=re.escape(str(fault))):
            citation_numbers(row)
    else:
        assert citation_numbers(row) == expected
