"""The graph that a text states, rebuilt from the text alone.

The half of the text solver that reads: it knows the grammar of the prompt (docs/architecture.md, "The prompt") and
nothing else, no metadata of the example and none of the code that renders one.

A reference line can be cut into names, year, title and source in several ways. It belongs to a paper with a
block when one of its readings has the title and the set of authors of that block; otherwise it is a paper
that stands in reference lists only, and its identity is the line itself, normalised.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

_CONTEXT = "\n\n# Context\n\n"
_RESPONSE = "\n\n# Response Format\n\n"
_CUT = re.compile(r"(?<=[.?!])(?= )")
_YEAR = re.compile(r"(?:^| )\(([0-9]{4})\)\.\Z")
_DATED = re.compile(r"(?:Published|Uploaded)\b.*[0-9]{4}\.")
_ASCII = {code: (code if chr(code).isalnum() else 32) for code in range(128)}


class Identity(NamedTuple):
    """Who a paper is: a normalised text and the set of normalised names of its authors.

    With a block the text is the title. Without one it is all that follows the names in the reference line.
    """

    text: str
    authors: frozenset[str]
    has_block: bool


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """A reference line that can be read as more than one paper with a block."""

    citing: Identity
    line: str
    candidates: tuple[Identity, ...]


@dataclass(frozen=True)
class TextGraph:
    """The graph that a context states.

    papers: the title of each paper as its block has it, or its reference line when it has no block.
    edges: (citing, cited), each once, in the order of the text.
    """

    papers: Mapping[Identity, str]
    edges: tuple[tuple[Identity, Identity], ...]
    ambiguities: tuple[Ambiguity, ...] = ()
    _lines: Mapping[Identity, _Line] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def neighbours(self) -> Mapping[Identity, tuple[Identity, ...]]:
        """Return for each paper those it cites or that cite it, in the order of the text."""
        found: dict[Identity, dict[Identity, None]] = {paper: {} for paper in self.papers}
        for citing, cited in self.edges:
            found[citing][cited] = None
            found[cited][citing] = None
        return {paper: tuple(others) for paper, others in found.items()}

    def path(self, source: Identity, target: Identity) -> list[Identity] | None:
        """Return a shortest path between two papers, whatever way its citations point, or None."""
        before = self._search(source)
        if target not in before:
            return None
        path = [target]
        while (previous := before[path[-1]]) is not None:
            path.append(previous)
        return path[::-1]

    def component(self, source: Identity) -> set[Identity]:
        """Return all papers that can be reached from one, itself included."""
        return set(self._search(source))

    def _search(self, source: Identity) -> dict[Identity, Identity | None]:
        before: dict[Identity, Identity | None] = {source: None}
        queue = deque([source])
        while queue:
            paper = queue.popleft()
            for other in self.neighbours[paper]:
                if other not in before:
                    before[other] = paper
                    queue.append(other)
        return before

    def named(self, titles: Iterable[str]) -> dict[str, tuple[Identity, ...]]:
        """Return for each of some normalised titles the papers that may carry it.

        Only when no block has a title are reference lines asked: first for readings behind a year, then lines
        that hold no year, and last the other readings of lines that hold one.
        """
        wanted = set(titles)
        found: dict[str, dict[Identity, None]] = {title: {} for title in wanted}
        for paper in self.papers:
            if paper.has_block and paper.text in wanted:
                found[paper.text][paper] = None
        for with_year, dated in ((True, True), (False, False), (False, True)):
            missing = {title for title in wanted if not found[title]}
            lengths = {len(title) for title in missing}
            for paper, line in self._lines.items() if missing else ():
                if any(line.years) == dated:
                    for title in line.titles(line.starts(with_year), missing, lengths):
                        found[title][paper] = None
        return {title: tuple(papers) for title, papers in found.items()}


class _Letters(dict[int, int]):
    """A table for `str.translate` that keeps letters, digits and marks, and fills itself as it is used."""

    def __missing__(self, code: int) -> int:
        kept = code if unicodedata.category(chr(code))[0] in "LNM" else 32
        self[code] = kept
        return kept


_LETTERS = _Letters()


def normalise(text: str) -> str:
    """Return what is left of a text when case, punctuation, width and white space do not count."""
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII).split())
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS).split())


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(normalise, text.split(", "))))


class Pieces:
    """A text in pieces, each normalised once, so that any run of pieces is a slice of one string."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.raw = pieces
        self.normal = [normalise(piece) for piece in pieces]
        self.joined = "".join(f" {piece}" for piece in self.normal if piece)
        self.offsets = [0]
        for piece in self.normal:
            self.offsets.append(self.offsets[-1] + (len(piece) + 1 if piece else 0))

    def span(self, first: int, end: int) -> str:
        """Return the pieces first, ..., end - 1 as one normalised text."""
        return self.joined[self.offsets[first] + 1 : self.offsets[end]]


class _Line:
    """A reference line, cut at every place where names or a title may end."""

    def __init__(self, line: str) -> None:
        # Behind a stop comes a space, and NFKC joins nothing over one: normalising piece by piece is exact.
        self.pieces = Pieces(_CUT.split(line))
        self.years = [_YEAR.search(piece) for piece in self.pieces.raw]
        self.ends = set(self.pieces.offsets[1:])

    def starts(self, with_year: bool) -> Iterator[int]:
        """Yield the pieces with which a title may start: behind a year, or anywhere else."""
        if not with_year:
            yield 0
        for number, year in enumerate(self.years[:-1], start=1):
            if (year is not None) == with_year:
                yield number

    def titles(self, starts: Iterable[int], wanted: Iterable[str], lengths: Iterable[int]) -> Iterator[str]:
        """Yield the wanted titles that this line may have when they start with one of some pieces.

        Only lengths that a wanted title has are tried, so a long line with many stops costs little.
        """
        joined, offsets = self.pieces.joined, self.pieces.offsets
        for start in starts:
            begin = offsets[start]
            for length in lengths:
                end = begin + length + 1 if length else offsets[start + 1]
                if end in self.ends and (title := joined[begin + 1 : end]) in wanted:
                    yield title

    def identity(self) -> Identity:
        """Return who the paper is when no block is its own: the line, but for the order of the names."""
        start = next(self.starts(with_year=True), None)
        if start is None:
            return Identity(self.pieces.joined[1:], frozenset(), has_block=False)
        year = self.years[start - 1]
        assert year is not None
        names = "".join(self.pieces.raw[: start - 1]) + self.pieces.raw[start - 1][: year.start()]
        rest = f"{year[1]} {self.pieces.span(start, len(self.pieces.raw))}"
        return Identity(rest, _names(names), has_block=False)


@dataclass(slots=True)
class _Group:
    """The papers with a block that share one set of authors."""

    authors: frozenset[str]
    by_title: dict[str, Identity] = field(default_factory=dict)
    lengths: set[int] = field(default_factory=set)


class _Blocks:
    """All papers with a block, to be found from a reference line."""

    def __init__(self, papers: Iterable[Identity], dated: Set[Identity]) -> None:
        self._dated = dated
        self.groups: dict[int, list[_Group]] = {}
        self.names: set[str] = set()
        for paper in papers:
            groups = self.groups.setdefault(_combined(paper.authors), [])
            group = next((group for group in groups if group.authors == paper.authors), None)
            if group is None:
                groups.append(group := _Group(paper.authors))
            group.by_title[paper.text] = paper
            group.lengths.add(len(paper.text))
            self.names |= paper.authors
        self.longest = max(map(len, self.names), default=0)

    def matches(self, line: _Line) -> list[Identity]:
        """Return the papers that a line may be.

        A paper whose block has a date is cited with its year, and one without a date is not; a reading with a year
        beats all without one.
        """
        found: dict[bool, dict[Identity, None]] = {True: {}, False: {}}
        for start, with_year, group in self._readings(line):
            for title in line.titles([start], group.by_title, group.lengths):
                paper = group.by_title[title]
                if with_year or paper not in self._dated:
                    found[with_year][paper] = None
        return list(found[True] or found[False])

    def _readings(self, line: _Line) -> Iterator[tuple[int, bool, _Group]]:
        """Yield every start of a title whose names before it are exactly the authors of some block.

        The walk ends at the first complete name that no block knows. The set of names is kept as the
        exclusive or of their hashes, so that a line with hundreds of names costs one look-up for each cut.
        """
        closed: set[str] = set()
        combined, last = 0, ""
        for group in self.groups.get(0, ()):
            yield 0, False, group
        for start, piece in enumerate(line.pieces.raw[:-1], start=1):
            parts = piece.split(", ")
            for number, part in enumerate(parts):
                if number:
                    if last and last not in self.names:
                        return
                    if last and last not in closed:
                        closed.add(last)
                        combined ^= hash(last)
                    last = ""
                before, last = last, self._extended(last, part)
            tails = {False: last}
            if (year := line.years[start - 1]) is not None:
                # The year belongs to its piece, of which the last part holds it: "(1999)." has no comma.
                tails[True] = self._extended(before, parts[-1][: year.start() - len(piece)])
            for with_year, tail in tails.items():
                if len(tail) > self.longest:
                    continue
                names = closed | {tail} if tail else closed
                key = combined ^ hash(tail) if tail and tail not in closed else combined
                for group in self.groups.get(key, ()):
                    if group.authors == names:
                        yield start, with_year, group

    def _extended(self, name: str, part: str) -> str:
        """Return a name with one more part; one that is too long already stays as it is."""
        if len(name) > self.longest:
            return name
        return f"{name} {normalise(part)}".strip()


def _combined(names: Iterable[str]) -> int:
    combined = 0
    for name in names:
        combined ^= hash(name)
    return combined


def sections(user_prompt: str) -> tuple[str, str, str]:
    """Return the question, the context and the reminder. Raises ValueError when a heading is missing."""
    text = user_prompt.lstrip()
    if not text.startswith("# Question\n\n"):
        raise ValueError("the user prompt does not start with '# Question'")
    context = text.find(_CONTEXT)
    if context < 0:
        raise ValueError("the user prompt has no '# Context'")
    # Distractors may hold the same headings: the first '# Context' and the last '# Response Format' are ours.
    # With no block at all the two headings share one empty line.
    response = text.rfind(_RESPONSE, context + len("\n\n# Context"))
    if response < 0:
        raise ValueError("the user prompt has no '# Response Format' behind its context")
    begin = context + len(_CONTEXT)
    return text[len("# Question\n\n") : context], text[begin:response], text[response + len(_RESPONSE) :]


def _paper_blocks(context: str) -> Iterator[tuple[str, str, bool, list[str]]]:
    """Yield title, authors, whether there is a date, and the reference lines of each block that describes a paper."""
    block: list[str] = []
    for line in [*context.split("\n"), ""]:
        if line.strip():
            block.append(line)
            continue
        if block and block[0].startswith("Title: "):
            stripped = [line.strip() for line in block]
            if "References:" in stripped:
                begin = stripped.index("References:") + 1
                lines = stripped[begin:]
                if lines and all(line.startswith("- ") for line in lines):
                    heads = (line[8:] for line in stripped[1:begin] if line.startswith("Authors:"))
                    dated = any(_DATED.fullmatch(line) for line in stripped[1:begin])
                    yield block[0][7:].strip(), next(heads, "").strip(), dated, [line[2:] for line in lines]
        block = []


def rebuild(user_prompt: str) -> TextGraph:
    """Return the graph that a user prompt states. Raises ValueError when a heading is missing."""
    return graph_of(sections(user_prompt)[1])


def graph_of(context: str) -> TextGraph:
    """Return the graph that a context states, its lines read in their order."""
    papers: dict[Identity, str] = {}
    cited_by: list[tuple[Identity, list[str]]] = []
    dated: set[Identity] = set()
    for title, authors, has_date, references in _paper_blocks(context):
        paper = Identity(normalise(title), _names(authors), has_block=True)
        if has_date:
            dated.add(paper)
        papers.setdefault(paper, title)
        cited_by.append((paper, references))
    blocks = _Blocks(papers, dated)
    edges: dict[tuple[Identity, Identity], None] = {}
    known: dict[str, list[Identity]] = {}
    lines: dict[Identity, _Line] = {}
    ambiguities = []
    for citing, references in cited_by:
        for text in references:
            if text not in known:
                line = _Line(text)
                known[text] = blocks.matches(line)
                if not known[text]:
                    cited = line.identity()
                    known[text] = [cited]
                    papers.setdefault(cited, text)
                    lines.setdefault(cited, line)
            candidates = known[text]
            if len(candidates) > 1:
                ambiguities.append(Ambiguity(citing, text, tuple(candidates)))
            edges[citing, max(candidates, key=lambda paper: len(paper.text))] = None
    return TextGraph(papers, tuple(edges), tuple(ambiguities), lines)
