"""What one row of a shard means: which papers are eligible, and what a citation says. Pure functions.

An eligible paper has a full calendar date on or after the cutoff, and a title that is not empty and has no
MathML markup. No date is ever invented.
"""

from __future__ import annotations

import datetime
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from gniah.records.titles import normalised_title, shown_text

LARGEST_ID = 2**63 - 1

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DIGITS = re.compile(r"\d{1,19}", re.ASCII)
_MATHML = re.compile(r"<(?:[\w.\-]+:)?(?:math|inline-formula|tex-math)(?![\w.\-])", re.IGNORECASE)
# More rounds than any source escapes, and a bound on the work that a hostile title can ask for.
_UNESCAPE_ROUNDS = 8


class RowFault(Exception):
    """A row that is no row of its data set: a value of a type that the schema does not know."""


class Drop(StrEnum):
    """Why a paper is not eligible; the value is its name among a manifest's counts."""

    NO_DATE = "papers_without_date"
    BAD_DATE = "papers_with_bad_date"
    BEFORE_CUTOFF = "papers_before_cutoff"
    NO_TITLE = "papers_without_title"
    MATHML = "papers_with_mathml"


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One row of `papers.parquet`; the fields are its columns, in their order."""

    corpusid: int
    title: str
    title_raw: str
    title_key: str
    authors: tuple[str, ...]
    authors_raw: str
    publicationdate: datetime.date
    venue: str | None
    venue_raw: str | None
    journal_name: str | None
    publicationvenueid: str | None
    arxiv_id: str | None


class CitationRow(NamedTuple):
    """What a row of a citations shard says; an end is None when S2AG does not know the paper."""

    citing: int | None
    cited: int | None
    isinfluential: bool
    citationid: int | None


def parse_id(value: object, name: str) -> int:
    """Return an id as an int64: a number, or a string of digits as older releases have. Raises RowFault."""
    if type(value) is int:
        number = value
    elif isinstance(value, str) and _DIGITS.fullmatch(value):
        number = int(value)
    else:
        raise RowFault(f"{name} must be an integer or a string of digits, found {_shortened(value)}")
    if not 0 <= number <= LARGEST_ID:
        raise RowFault(f"{name} is out of range: {number}")
    return number


def parse_date(value: object) -> datetime.date | None:
    """Return the date of a strict `YYYY-MM-DD` that is in the calendar, else None.

    `date.fromisoformat` takes more (`20260401`, `2026-W14-3`), so the form is checked first.
    """
    return _parsed_date(value) if isinstance(value, str) and len(value) == 10 else None


@lru_cache(maxsize=1 << 12)
def _parsed_date(text: str) -> datetime.date | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return datetime.date(int(text[:4]), int(text[5:7]), int(text[8:]))
    except ValueError:
        return None


def has_mathml(title: str) -> bool:
    """Return whether a title has MathML or the JATS markup around it, raw or with entities unescaped."""
    for _ in range(_UNESCAPE_ROUNDS):
        if "<" in title and _MATHML.search(title):
            return True
        if "&" not in title:
            return False
        unescaped = html.unescape(title)
        if unescaped == title:
            return False
        title = unescaped
    return bool(_MATHML.search(title))


_shown_venue = lru_cache(maxsize=1 << 14)(shown_text)


def author_names(authors: object) -> tuple[str, ...]:
    """Return the shown names of an `authors` list in their order.

    Null entries and blank names are dropped, and of entries with the same author id all but the first that
    has a name. Authors without an id are never taken for each other. Raises RowFault for what is not such a
    list.
    """
    if authors is None:
        return ()
    if not isinstance(authors, list):
        raise RowFault(f"authors must be a list, found {_shortened(authors)}")
    names: list[str] = []
    seen: set[str] = set()
    for author in authors:
        if author is None:
            continue
        if not isinstance(author, dict):
            raise RowFault(f"an author must be an object, found {_shortened(author)}")
        name = _text(author, "name", "an author's name")
        shown_name = shown_text(name) if name else ""
        if not shown_name:
            continue
        key = _author_key(author.get("authorId"))
        if key is not None:
            if key in seen:
                continue
            seen.add(key)
        names.append(shown_name)
    return tuple(names)


def judge_paper(row: Mapping[str, Any], cutoff: datetime.date) -> PaperRow | Drop:
    """Return the columns of an eligible paper, or why it is not eligible.

    Raises RowFault for a row that is no paper (a citation, say) or has values of the wrong type.
    """
    corpusid = _paper_id(row)
    title_raw = _text(row, "title", "title")
    written = row.get("publicationdate")
    date = parse_date(written)
    if date is None:
        return Drop.NO_DATE if written is None else Drop.BAD_DATE
    if date < cutoff:
        return Drop.BEFORE_CUTOFF
    title = shown_text(title_raw) if title_raw else ""
    if title_raw is None or not title:
        return Drop.NO_TITLE
    if has_mathml(title_raw):
        return Drop.MATHML
    authors = row.get("authors")
    names = author_names(authors)
    venue_raw = _text(row, "venue", "venue")
    journal_name = _text(_object(row, "journal"), "name", "journal.name")
    arxiv = _text(_object(row, "externalids"), "ArXiv", "externalids.ArXiv")
    return PaperRow(
        corpusid=corpusid,
        title=title,
        title_raw=title_raw,
        title_key=normalised_title(title),
        authors=names,
        authors_raw=_json([] if authors is None else authors),
        publicationdate=date,
        venue=resolve_venue(venue_raw, journal_name),
        venue_raw=venue_raw,
        journal_name=journal_name,
        publicationvenueid=_text(row, "publicationvenueid", "publicationvenueid") or None,
        arxiv_id=(shown_text(arxiv) or None) if arxiv else None,
    )


def resolve_venue(venue: str | None, journal_name: str | None) -> str | None:
    """Return the shown venue: the first of `venue` and `journal.name` that is not empty."""
    for text in (venue, journal_name):
        if text and (found := _shown_venue(text)):
            return found
    return None


def year_differs(row: Mapping[str, Any], date: datetime.date) -> bool:
    """Return whether a row states a year that is not the year of its date."""
    year = row.get("year")
    return year is not None and year != date.year


def read_citation(row: Mapping[str, Any]) -> CitationRow:
    """Return what a row of a citations shard says. Raises RowFault for a row that is no citation."""
    if "citingcorpusid" not in row and "citedcorpusid" not in row:
        if "corpusid" in row:
            raise RowFault("this is a row of papers, not of citations: were the two kinds of shards swapped?")
        raise RowFault("this is no row of citations: it has neither citingcorpusid nor citedcorpusid")
    citing, cited, number = row.get("citingcorpusid"), row.get("citedcorpusid"), row.get("citationid")
    influential = row.get("isinfluential")
    if influential is not None and not isinstance(influential, bool):
        raise RowFault(f"isinfluential must be true, false or null, found {_shortened(influential)}")
    return CitationRow(
        None if citing is None else parse_id(citing, "citingcorpusid"),
        None if cited is None else parse_id(cited, "citedcorpusid"),
        bool(influential),
        None if number is None else parse_id(number, "citationid"),
    )


def citation_numbers(row: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Return what `read_citation` says as numbers: citing, cited, 0 or 1, citation id, and -1 for None."""
    citing, cited, number = row.get("citingcorpusid"), row.get("citedcorpusid"), row.get("citationid")
    influential = row.get("isinfluential")
    if (
        type(citing) is int
        and type(cited) is int
        and type(number) is int
        and (influential is False or influential is True)
        and 0 <= citing <= LARGEST_ID
        and 0 <= cited <= LARGEST_ID
        and 0 <= number <= LARGEST_ID
    ):
        return citing, cited, int(influential), number
    citing, cited, influential, number = read_citation(row)
    return (
        -1 if citing is None else citing,
        -1 if cited is None else cited,
        int(influential),
        -1 if number is None else number,
    )


def _paper_id(row: Mapping[str, Any]) -> int:
    if "citingcorpusid" in row or "citedcorpusid" in row:
        raise RowFault("this is a row of citations, not of papers: were the two kinds of shards swapped?")
    if row.get("corpusid") is None:
        raise RowFault("this is no row of papers: it has no corpusid")
    if "title" not in row and "publicationdate" not in row:
        raise RowFault("this is no row of papers: it has neither title nor publicationdate")
    return parse_id(row["corpusid"], "corpusid")


def _author_key(value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    raise RowFault(f"an authorId must be a string or null, found {_shortened(value)}")


def _text(row: Mapping[str, Any], key: str, name: str) -> str | None:
    value = row.get(key)
    if value is None or isinstance(value, str):
        return value
    raise RowFault(f"{name} must be a string or null, found {_shortened(value)}")


def _object(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key)
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise RowFault(f"{key} must be an object or null, found {_shortened(value)}")


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode("utf-8")
    except TypeError:  # a number beyond 64 bits somewhere inside
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
