"""A picture of the subgraph of one example, as a standalone SVG.

The backbone of a component runs along one or more lines, back and forth like a snake, and the papers that
growth added stand as small trees above and below it. Equal input gives equal bytes: no clock, no chance, and
numbers are written with one decimal at most.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_WIDTH = 1200.0
_MARGIN = 24.0
_INSET = 56.0  # between the frame and the first paper: the backbone turns here
_LEVEL = 38.0  # between a paper and its children
_LEAF = 11.0  # room for one leaf before a row is full
_GAP = 34.0  # between two rows of a backbone
_FRAME_HEAD = 40.0
_TITLE_LENGTH = 130

_STYLE = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2933}"
    ".heading{font-size:20px;font-weight:600}"
    ".name{font-size:13px}.frame-label{font-size:14px;font-weight:600}.small{font-size:12px;fill:#52606d}"
    ".mark{font-size:13px;font-weight:700;paint-order:stroke;stroke:#ffffff;stroke-width:4px;text-anchor:middle}"
    ".frame{fill:#fbfcfd;stroke:#d9e0e7}"
    ".edge{fill:none;stroke:#b3bfcc;stroke-width:1}.edge.backbone{stroke:#7d9cc0;stroke-width:1.6}"
    ".edge.true-path{stroke:#e07b39;stroke-width:2.6}"
    ".grown{fill:#d5dee8;stroke:#93a5b8}.backbone-paper{fill:#a9c6e8;stroke:#5f86b3}"
    ".true-path-paper{fill:#f6b886;stroke:#cc6420}.marked{fill:#cc4b37;stroke:#7f2418}"
)


@dataclass(frozen=True, slots=True)
class ComponentPicture:
    """One component: its edges (citing, cited), its backbone in order, and the part that is the true path."""

    edges: tuple[tuple[int, int], ...]
    backbone: tuple[int, ...]
    true_path: tuple[int, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What is drawn. `marks` names the papers of the question: source, target, or the letter of an option."""

    components: tuple[ComponentPicture, ...]
    titles: Mapping[int, str]
    marks: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Drawn:
    """One component with its places: (x, y) of each paper within the frame, and the height of the frame."""

    places: dict[int, tuple[float, float]]
    radius: dict[int, float]
    turns: dict[frozenset[int], float]  # the x at which a backbone edge bends from one row to the next
    height: float


def svg(subgraph: Subgraph, *, heading: str = "") -> str:
    """Return the picture as one SVG document. Titles may hold anything; they are escaped."""
    body: list[str] = []
    y = _MARGIN
    if heading:
        body.append(_text(_MARGIN, y + 16, "heading", _trimmed(heading)))
        y += 34
    for paper, mark in subgraph.marks.items():
        name = f"{mark}: {_trimmed(subgraph.titles.get(paper, str(paper)))}"
        body.append(_text(_MARGIN, y + 12, "name", name))
        y += 20
    body.append(_legend(y + 14))
    y += 36
    for number, component in enumerate(subgraph.components, start=1):
        drawn = _layout(component)
        body.append(_component(number, component, drawn, y, subgraph))
        y += drawn.height + 18
    height = _number(y + _MARGIN - 18)
    width = _number(_WIDTH)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">\n'
        f"<style>{_STYLE}</style>\n<defs>{_arrow('plain', '#8d9cab')}{_arrow('backbone', '#5f86b3')}"
        f"{_arrow('true-path', '#cc6420')}</defs>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _layout(component: ComponentPicture) -> _Drawn:
    """Place the papers of a component: rows of backbone papers, each with its trees above and below."""
    children, roots = _forest(component)
    leaves = _leaf_counts(children, roots)
    sides = {root: _sides(children[root], leaves) for root in roots}
    rooms = {root: max(2.0, *(sum(leaves[child] for child in side) for side in sides[root])) for root in roots}
    width = _WIDTH - 2 * _MARGIN - 2 * _INSET
    places: dict[int, tuple[float, float]] = {}
    turns: dict[frozenset[int], float] = {}
    radius: dict[int, float] = {}
    y = _FRAME_HEAD
    before: int | None = None
    rows = _rows(roots, rooms, width / _LEAF)
    for number, row in enumerate(rows):
        unit = min(width / sum(rooms[root] for root in row), 17.0)
        used = unit * sum(rooms[root] for root in row)
        above, below = (max(_depth(children, sides[root][side]) for root in row) for side in (0, 1))
        y += _LEVEL * above + 22
        forward = number % 2 == 0
        spare = width - used
        x = spare / 2 if len(rows) == 1 else 0.0 if forward else spare
        for root in row if forward else row[::-1]:
            room = rooms[root] * unit
            places[root] = (_MARGIN + _INSET + x + room / 2, y)
            for side, way in zip(sides[root], (-1, 1), strict=True):
                taken = unit * sum(leaves[child] for child in side)
                left = places[root][0] - taken / 2
                for child in side:
                    _place(child, left, unit, y + way * _LEVEL, way, children, leaves, places)
                    left += leaves[child] * unit
            x += room
        if before is not None:
            turns[frozenset((before, row[0]))] = _MARGIN + 8 if forward else _WIDTH - _MARGIN - 8
        before = row[-1]
        size = min(max(unit * 0.34, 2.2), 4.5)
        radius.update(dict.fromkeys(_all_below(children, row), size))
        radius.update(dict.fromkeys(row, min(max(size + 1.2, 3.6), 6.0)))
        y += _LEVEL * below + _GAP
    return _Drawn(places, radius, turns, y)


def _forest(component: ComponentPicture) -> tuple[dict[int, list[int]], list[int]]:
    """Return the children of each paper in the trees that hang on the backbone, and the backbone.

    A paper that hangs on nothing (a component without a backbone) is made a part of the backbone.
    """
    neighbours: dict[int, list[int]] = {paper: [] for paper in component.backbone}
    for citing, cited in component.edges:
        neighbours.setdefault(citing, []).append(cited)
        neighbours.setdefault(cited, []).append(citing)
    children: dict[int, list[int]] = {paper: [] for paper in neighbours}
    roots = list(dict.fromkeys(component.backbone))
    seen = set(roots)
    queue = list(roots)
    for start in [*roots, *sorted(neighbours)]:
        if start not in seen:
            roots.append(start)
            seen.add(start)
            queue.append(start)
        while queue:
            paper = queue.pop(0)
            for other in sorted(neighbours[paper]):
                if other not in seen:
                    seen.add(other)
                    children[paper].append(other)
                    queue.append(other)
    return children, roots


def _all_below(children: Mapping[int, Sequence[int]], papers: Sequence[int]) -> list[int]:
    """Return the papers below some papers, each before those below it."""
    found: list[int] = []
    stack = [child for paper in papers for child in children[paper]]
    while stack:
        paper = stack.pop()
        found.append(paper)
        stack.extend(children[paper])
    return found


def _leaf_counts(children: Mapping[int, Sequence[int]], roots: Sequence[int]) -> dict[int, int]:
    leaves: dict[int, int] = {}
    for paper in reversed(_all_below(children, roots)):
        leaves[paper] = sum(leaves[child] for child in children[paper]) or 1
    return leaves


def _depth(children: Mapping[int, Sequence[int]], papers: Sequence[int]) -> int:
    depth, level = 0, list(papers)
    while level:
        depth += 1
        level = [child for paper in level for child in children[paper]]
    return depth


def _sides(papers: Sequence[int], leaves: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Divide the trees of one backbone paper into those above and those below, about as wide."""
    above: list[int] = []
    below: list[int] = []
    balance = 0
    for paper in sorted(papers, key=lambda paper: (-leaves[paper], paper)):
        side = above if balance <= 0 else below
        side.append(paper)
        balance += leaves[paper] if side is above else -leaves[paper]
    return above, below


def _rows(roots: Sequence[int], rooms: Mapping[int, float], limit: float) -> list[list[int]]:
    """Divide the backbone into as few rows as hold it, about as full."""
    left = sum(rooms.values())
    count = max(1, -int(-left // limit))
    rows: list[list[int]] = []
    row: list[int] = []
    filled = 0.0
    for root in roots:
        rest = max(1, count - len(rows))
        if row and rest > 1 and filled + rooms[root] / 2 > left / rest:
            rows.append(row)
            left -= filled
            row, filled = [], 0.0
        row.append(root)
        filled += rooms[root]
    return [*rows, row] if row else rows


def _place(
    paper: int,
    left: float,
    unit: float,
    y: float,
    way: int,
    children: Mapping[int, Sequence[int]],
    leaves: Mapping[int, int],
    places: dict[int, tuple[float, float]],
) -> None:
    """Place a tree: a paper over the middle of its leaves, one level on for each generation."""
    stack = [(paper, left, y)]
    while stack:
        paper, left, y = stack.pop()
        places[paper] = (left + leaves[paper] * unit / 2, y)
        x = left
        for child in children[paper]:
            stack.append((child, x, y + way * _LEVEL))
            x += leaves[child] * unit


def _component(number: int, component: ComponentPicture, drawn: _Drawn, top: float, subgraph: Subgraph) -> str:
    true_path, backbone = set(component.true_path), set(component.backbone)
    steps = {
        kind: {frozenset(pair) for pair in pairwise(path)}
        for kind, path in (("true-path", component.true_path), ("backbone", component.backbone))
    }
    label = f"component {number}" + (f": {component.label}" if component.label else "")
    lines = [
        f'<g class="component" transform="translate(0 {_number(top)})">',
        f'<rect class="frame" x="{_number(_MARGIN)}" y="0" width="{_number(_WIDTH - 2 * _MARGIN)}" '
        f'height="{_number(drawn.height)}" rx="10"/>',
        _text(_MARGIN + 16, 25, "frame-label", label),
        f'<text class="small" x="{_number(_WIDTH - _MARGIN - 16)}" y="25" text-anchor="end">'
        f"{len(drawn.places)} papers, {len(component.edges)} citations</text>",
    ]
    # What matters is drawn last, on top: the true path over the backbone over the grown edges.
    rank = {"plain": 0, "backbone": 1, "true-path": 2}
    kinds = [
        (next((kind for kind in steps if frozenset(edge) in steps[kind]), "plain"), edge) for edge in component.edges
    ]
    lines += [_edge(edge, kind, drawn) for kind, edge in sorted(kinds, key=lambda item: rank[item[0]])]
    for paper in drawn.places:
        style = "grown"
        if paper in subgraph.marks:
            style = "marked"
        elif paper in true_path:
            style = "true-path-paper"
        elif paper in backbone:
            style = "backbone-paper"
        lines.append(_circle(paper, style, drawn, subgraph.titles.get(paper, str(paper))))
    for paper, mark in subgraph.marks.items():
        if paper in drawn.places:
            x, y = drawn.places[paper]
            lines.append(_text(x, y - 11, "mark", mark))
    lines.append("</g>")
    return "\n".join(lines)


def _edge(edge: tuple[int, int], kind: str, drawn: _Drawn) -> str:
    """Draw a citation from the rim of the citing paper to that of the cited one, where its head is."""
    (x1, y1), (x2, y2) = drawn.places[edge[0]], drawn.places[edge[1]]
    classes = "edge" if kind == "plain" else f"edge {kind}"
    end = f'class="{classes}" marker-end="url(#{kind})"'
    bend = drawn.turns.get(frozenset(edge))
    if bend is not None:
        shift = drawn.radius[edge[1]] + 1
        x2 += shift if bend > x2 else -shift
        return f'<path {end} d="M{_point(x1, y1)} C{_point(bend, y1)} {_point(bend, y2)} {_point(x2, y2)}"/>'
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    first, last = drawn.radius[edge[0]], drawn.radius[edge[1]] + 1
    return f'<path {end} d="M{_point(x1 + dx * first, y1 + dy * first)} L{_point(x2 - dx * last, y2 - dy * last)}"/>'


def _circle(paper: int, style: str, drawn: _Drawn, title: str) -> str:
    x, y = drawn.places[paper]
    size = drawn.radius[paper] + (1.5 if style == "marked" else 0)
    return (
        f'<circle class="{style}" cx="{_number(x)}" cy="{_number(y)}" r="{_number(size)}">'
        f"<title>{_escaped(title)}</title></circle>"
    )


def _legend(y: float) -> str:
    x = _MARGIN
    parts = ['<g class="legend">']
    for style, meaning, room in (
        ("marked", "paper of the question", 165.0),
        ("true-path-paper", "true path", 95.0),
        ("backbone-paper", "rest of the backbone", 160.0),
        ("grown", "added by growth", 135.0),
    ):
        # Squares, so that every circle of the document is a paper.
        parts.append(
            f'<rect class="{style}" x="{_number(x)}" y="{_number(y - 9)}" width="10" height="10" rx="5"/>'
            + _text(x + 16, y, "small", meaning)
        )
        x += room
    parts.append(
        f'<path class="key" d="M{_point(x, y - 4)} L{_point(x + 26, y - 4)}" stroke="#8d9cab" '
        f'marker-end="url(#plain)"/>' + _text(x + 34, y, "small", "cites") + "</g>"
    )
    return "".join(parts)


def _arrow(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="5" markerHeight="5" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L6 3 L0 6 z" fill="{colour}"/></marker>'
    )


def _text(x: float, y: float, style: str, text: str) -> str:
    return f'<text class="{style}" x="{_number(x)}" y="{_number(y)}">{_escaped(text)}</text>'


def _trimmed(text: str) -> str:
    return text if len(text) <= _TITLE_LENGTH else text[: _TITLE_LENGTH - 1] + "…"


def _escaped(text: str) -> str:
    """Escape a text for XML, without what XML forbids: controls, surrogates, non-characters."""
    return html.escape("".join(character for character in text if _allowed(character)))


def _allowed(character: str) -> bool:
    return character not in "\ufffe\uffff" and unicodedata.category(character) not in {"Cc", "Cs"}


def _point(x: float, y: float) -> str:
    return f"{_number(x)} {_number(y)}"


def _number(value: float) -> str:
    """Write a number with one decimal, or none when that is a zero."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
