"""The text solver: answers a GraphNIAH example from its two prompts alone.

It reads the graph that the text states (`text_graph`) and the question, and shares no code with what renders
examples. When it agrees with a stored answer, the text itself says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gniah.generator.graphniah.text_graph import Identity, Pieces, TextGraph, graph_of, normalise, rebuild, sections
from gniah.records.families import Solution

__all__ = ["Identity", "TextGraph", "normalise", "rebuild", "sections", "solve"]

YES_NO, MULTIPLE_CHOICE, COUNTING = "yes-no", "multiple-choice", "counting"

_OPTION = re.compile(r'[ \t]*([A-Z])\. [Pp]aper "(.*)"\s*\Z')
_COUNT_WORDS = re.compile(r"\bhow many\b|\bnumber of\b", re.IGNORECASE)


class _Undetermined(Exception):
    """The text does not determine the answer; the message says why."""


def solve(system_prompt: str, user_prompt: str) -> Solution:
    """Answer an example from its prompts: YES or NO, an option's letter, or a number.

    The answer is None, with a reason, when the text does not determine it.
    """
    try:
        question, context, reminder = sections(user_prompt)
    except ValueError as error:
        return Solution(_told(system_prompt) or YES_NO, None, str(error))
    head, options = _options(question)
    task = MULTIPLE_CHOICE if options else _task(head, reminder, system_prompt)
    graph = graph_of(context)
    try:
        if task == YES_NO:
            source, target = _two_papers(graph, head)
            return Solution(task, "YES" if target in _reachable(graph, source) else "NO")
        source = _source(graph, head)
        reachable = _reachable(graph, source)
        if task == COUNTING:
            return Solution(task, str(len(reachable) - 1))
        if not options:
            raise _Undetermined("the question has no options")
        titles = {letter: normalise(title) for letter, title in options.items()}
        named = graph.named(titles.values())
        letters = [letter for letter, title in titles.items() if _only(named, title) in reachable]
        if len(letters) != 1:
            raise _Undetermined(f"{len(letters)} options are reachable {letters}, not one")
        return Solution(task, letters[0])
    except _Undetermined as undetermined:
        return Solution(task, None, str(undetermined))


def _reachable(graph: TextGraph, source: Identity) -> set[Identity]:
    reachable = graph.component(source)
    for doubt in graph.ambiguities:
        if not reachable.isdisjoint((doubt.citing, *doubt.candidates)):
            raise _Undetermined(f"a reference can be read as {len(doubt.candidates)} papers: {doubt.line[:200]!r}")
    return reachable


def _options(question: str) -> tuple[str, dict[str, str]]:
    """Return the question before its options, and the titles of the options by letter (none: no options)."""
    head: list[str] = []
    options: dict[str, str] = {}
    for line in question.split("\n"):
        match = _OPTION.match(line)
        if match and match[1] == chr(ord("A") + len(options)):
            options[match[1]] = match[2]
        elif not options:
            head.append(line)
    return ("\n".join(head), options) if len(options) > 1 else (question, {})


def _task(question: str, reminder: str, system_prompt: str) -> str:
    """Tell the task of a question without options: by its words outside of titles, then by instructions."""
    before, _, rest = question.partition('"')
    if _COUNT_WORDS.search(before) or _COUNT_WORDS.search(rest.rpartition('"')[2]):
        return COUNTING
    return _told(reminder) or _told(system_prompt) or (YES_NO if question.count('"') >= 4 else COUNTING)


def _told(instructions: str) -> str | None:
    """Return the task that instructions speak of, or None when they name none or several."""
    text = instructions.lower()
    signs = {
        YES_NO: "answer{yes}" in text or "answer{no}" in text,
        MULTIPLE_CHOICE: "multiple-choice" in text or ("letter" in text and "option" in text),
        COUNTING: any(word in text for word in ("integer", "whole number", "how many")),
    }
    told = [task for task, said in signs.items() if said]
    return told[0] if len(told) == 1 else None


def _only(named: Mapping[str, tuple[Identity, ...]], title: str) -> Identity:
    papers = named[title]
    if len(papers) != 1:
        how_many = "no paper" if not papers else f"{len(papers)} papers"
        raise _Undetermined(f"{how_many} of the context may have the title {title[:200]!r}")
    return papers[0]


def _source(graph: TextGraph, question: str) -> Identity:
    """Return the paper in a question with one title: from the first quote to the last one that fits."""
    quoted = Pieces(question.split('"'))
    last = len(quoted.raw) - 1
    if last < 2:
        raise _Undetermined("the question names no paper")
    # Behind the title an even number of quotes may follow, when the wording quotes something of its own.
    titles = [title for end in range(last, 1, -2) if (title := quoted.span(1, end))]
    named = graph.named(titles)
    return _only(named, next((title for title in titles if named[title]), quoted.span(1, last)))


def _two_papers(graph: TextGraph, question: str) -> tuple[Identity, Identity]:
    """Return source and target: the first title starts at the first quote, the second ends at the last.

    Titles may hold quotes themselves. Between the two stand words without a quote, the last of them "paper"
    in our wordings, so there are no more cuts to try than quotes.
    """
    quoted = Pieces(question.split('"'))
    last = len(quoted.raw) - 1
    cuts = [cut for cut in range(2, last - 1) if quoted.normal[cut]]
    if not cuts:
        raise _Undetermined("the question does not name two papers")
    usual = [cut for cut in cuts if quoted.normal[cut].endswith("paper") and quoted.raw[cut].endswith(" ")]
    for some in (usual, cuts):
        pairs = [(quoted.span(1, cut), quoted.span(cut + 1, last)) for cut in some]
        named = graph.named(title for pair in pairs for title in pair)
        fitting = [(source, target) for source, target in pairs if named[source] and named[target]]
        if len(fitting) > 1:
            with_blocks = [pair for pair in fitting if all(named[title][0].has_block for title in pair)]
            fitting = with_blocks or fitting
        if len(fitting) > 1:
            raise _Undetermined(f"the question can be cut into two known titles in {len(fitting)} ways")
        if fitting:
            return _only(named, fitting[0][0]), _only(named, fitting[0][1])
    raise _Undetermined("the context does not know both papers of the question")
