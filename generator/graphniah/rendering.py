"""Papers as text: blocks, reference lines, and what a reference line could be mistaken for (GraphNIAH A.5)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from gniah.records.papers import Paper
from gniah.records.titles import normalised_title

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_YEAR = re.compile(r"(?:^|(?<= ))\((\d{4})\)\. ")
_STOPS = ".?!"
_ARXIV = frozenset({"arxiv", "arxiv org", "arxiv preprint", "arxiv e prints", "arxivorg", "corr", "arxiv cornell"})


def with_stop(text: str) -> str:
    """Return a text that ends in exactly the stop it has, or in a full stop when it has none."""
    return text if text.endswith(tuple(_STOPS)) else text + "."


def written_date(date: datetime.date) -> str:
    """Return a date as a month name, day and year: September 1, 2025."""
    return f"{_MONTHS[date.month - 1]} {date.day}, {date.year}"


def own_venue(paper: Paper) -> str | None:
    """Return the venue of a paper unless it is only a spelling of arXiv."""
    if paper.venue is None or normalised_title(paper.venue) in _ARXIV:
        return None
    return paper.venue


def on_arxiv(paper: Paper) -> bool:
    """Whether a paper is on arXiv, by its id or by its venue's name."""
    return paper.arxiv_id is not None or (paper.venue is not None and own_venue(paper) is None)


def publication_line(paper: Paper) -> str | None:
    """Return the line on venue and date, with what is known of them, or None when nothing is."""
    venue, date = own_venue(paper), paper.publicationdate
    when = f" on {written_date(date)}" if date is not None else ""
    if venue is not None:
        return with_stop(f"Published in {venue}{when}")
    if on_arxiv(paper):
        return f"Uploaded to arXiv{when}."
    return f"Published{when}." if when else None


def reference_line(paper: Paper) -> str:
    """Return a paper as one item of a reference list, without what is unknown. It is the same in every list."""
    parts = []
    names = ", ".join(paper.authors)
    if paper.publicationdate is not None:
        parts.append(f"{names} ({paper.publicationdate.year}).".lstrip())
    elif names:
        parts.append(with_stop(names))
    parts.append(with_stop(paper.title))
    source = own_venue(paper)
    if source is None and on_arxiv(paper):
        source = f"arXiv:{paper.arxiv_id}" if paper.arxiv_id else "arXiv"
    if source is not None:
        parts.append(with_stop(source))
    return "- " + " ".join(parts)


def paper_block(paper: Paper, references: Sequence[Paper]) -> str:
    """Return the block of a paper that cites others of its component, its references in the order given."""
    lines = [f"Title: {with_stop(paper.title)}"]
    if paper.authors:
        lines.append(f"Authors: {with_stop(', '.join(paper.authors))}")
    line = publication_line(paper)
    if line is not None:
        lines.append(line)
    lines.append("References:")
    lines.extend(reference_line(reference) for reference in references)
    return "\n".join(lines)


@lru_cache(maxsize=1 << 15)
def title_readings(paper: Paper) -> frozenset[str]:
    """Return every normalised title that a paper's reference line could be read to have, its own among them.

    A reader knows the grammar only: names end before a year in brackets, a title ends at a stop. So the readings
    are all cuts after such a year, up to any stop.
    """
    line = reference_line(paper)[2:]
    starts = [match.end() for match in _YEAR.finditer(line)] or [0]
    readings = {paper.title_key}
    for start in starts:
        readings.update(_cuts(line[start:]))
    if paper.publicationdate is None:
        for start in _sentence_starts(line):
            readings.update(_cuts(line[start:]))
    readings.discard("")
    return frozenset(readings)


def _cuts(text: str) -> Iterator[str]:
    """Yield the normalised form of a text up to each of its stops.

    Normalisation does not reach across a stop and a space, so it is done once for each piece between stops.
    """
    pieces: list[str] = []
    begin = 0
    for position, character in enumerate(text):
        if character in _STOPS and (position + 1 == len(text) or text[position + 1] == " "):
            piece = normalised_title(text[begin : position + 1])
            if piece:
                pieces.append(piece)
            begin = position + 1
            yield " ".join(pieces)


def _sentence_starts(text: str) -> list[int]:
    return [match.end() for match in re.finditer(r"[.?!] ", text)]


class TitleRegister:
    """The titles of one example, so that no paper can be taken for another one.

    A paper is refused when its title is one that a paper here has or could be read to have, or when its own line
    could be read as the title of a paper here. Equal normalised titles are refused by the same rule.
    """

    def __init__(self) -> None:
        self._titles: dict[str, int] = {}
        self._readings: dict[str, int] = {}

    def accepts(self, paper: Paper) -> bool:
        """Whether the paper could enter without a second reading. Says nothing about papers with the same id."""
        if paper.title_key in self._readings:
            return False
        return not any(reading in self._titles for reading in title_readings(paper))

    def add(self, paper: Paper) -> None:
        """Enter a paper."""
        self._titles[paper.title_key] = self._titles.get(paper.title_key, 0) + 1
        for reading in title_readings(paper):
            self._readings[reading] = self._readings.get(reading, 0) + 1

    def remove(self, paper: Paper) -> None:
        """Take a paper out again, as when a component is drawn anew."""
        for counts, keys in ((self._titles, (paper.title_key,)), (self._readings, title_readings(paper))):
            for key in keys:
                counts[key] -= 1
                if not counts[key]:
                    del counts[key]
