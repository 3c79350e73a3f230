"""The picture of an example: well-formed, complete, escaped, and the same every time."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.generator.graphniah.drawing import ComponentPicture, Subgraph, svg

SVG = "{http://www.w3.org/2000/svg}"


def small() -> Subgraph:
    # 1 - 2 - 3 - 4 is the backbone, 2 - 3 the true path; 5, 6 and 7 were grown.
    first = ComponentPicture(
        edges=((1, 2), (3, 2), (3, 4), (5, 2), (2, 6), (6, 7)),
        backbone=(1, 2, 3, 4),
        true_path=(2, 3),
        label="source and target",
    )
    second = ComponentPicture(edges=((10, 11), (11, 12)), backbone=(10, 11, 12))
    titles = {paper: f"Paper {paper}" for paper in (1, 2, 3, 4, 5, 6, 7, 10, 11, 12)}
    return Subgraph((first, second), titles, {2: "source", 3: "target"})


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def with_class(root: ElementTree.Element, tag: str, *names: str) -> list[ElementTree.Element]:
    wanted = set(names)
    return [one for one in root.iter(SVG + tag) if wanted <= set((one.get("class") or "").split())]


def test_every_paper_is_a_circle_and_every_citation_an_arrow() -> None:
    root = parsed(svg(small()))
    assert len(list(root.iter(SVG + "circle"))) == 10
    assert len(with_class(root, "path", "edge")) == 8
    assert [len(with_class(root, "path", "edge", kind)) for kind in ("true-path", "backbone")] == [1, 4]
    assert all(one.get("marker-end") for one in with_class(root, "path", "edge"))


def test_papers_are_coloured_by_what_they_are() -> None:
    root = parsed(svg(small()))
    drawn = {one.findtext(SVG + "title"): one.get("class") for one in root.iter(SVG + "circle")}
    assert drawn["Paper 2"] == drawn["Paper 3"] == "marked"
    assert drawn["Paper 1"] == drawn["Paper 4"] == drawn["Paper 11"] == "backbone-paper"
    assert drawn["Paper 5"] == drawn["Paper 6"] == drawn["Paper 7"] == "grown"


def test_the_true_path_between_its_ends_has_its_own_colour() -> None:
    component = ComponentPicture(edges=((1, 2), (2, 3)), backbone=(1, 2, 3), true_path=(1, 2, 3))
    root = parsed(svg(Subgraph((component,), {2: "between"}, {1: "source", 3: "target"})))
    assert [one.findtext(SVG + "title") for one in with_class(root, "circle", "true-path-paper")] == ["between"]


def test_frames_and_marks_are_labelled() -> None:
    root = parsed(svg(small(), heading="yes-no & more"))
    texts = ["".join(one.itertext()) for one in root.iter(SVG + "text")]
    assert texts[0] == "yes-no & more"
    assert texts[1:3] == ["source: Paper 2", "target: Paper 3"]
    assert "component 1: source and target" in texts
    assert "component 2" in texts
    assert "7 papers, 6 citations" in texts
    assert texts.count("source") == texts.count("target") == 1


def test_an_arrow_points_from_the_citing_to_the_cited_paper() -> None:
    for edge, grows in (((1, 2), True), ((2, 1), False)):
        root = parsed(svg(Subgraph((ComponentPicture(edges=(edge,), backbone=(1, 2)),), {})))
        (line,) = with_class(root, "path", "edge")
        start, end = (float(part.split()[0]) for part in (line.get("d") or "")[1:].split("L"))
        assert (start < end) is grows


def test_untrusted_titles_are_escaped_and_forbidden_characters_dropped() -> None:
    nasty = "</title><script>alert(1)</script> & \"q\" 'a' \x00\x1b\x0b\ufffe\ud800]]> \U0001f600 שלום"
    subgraph = Subgraph((ComponentPicture(((1, 2),), (1, 2)),), {1: nasty, 2: "b"}, {1: nasty})
    text = svg(subgraph, heading=nasty)
    assert "<script" not in text
    titles = [one.findtext(SVG + "title") for one in parsed(text).iter(SVG + "circle")]
    assert titles[0] == "</title><script>alert(1)</script> & \"q\" 'a' ]]> \U0001f600 שלום"


def test_a_long_title_is_whole_in_the_tooltip_and_cut_in_the_list() -> None:
    title = "long " * 2000
    root = parsed(svg(Subgraph((ComponentPicture(((1, 2),), (1, 2)),), {1: title}, {1: "source"})))
    assert next(root.iter(SVG + "circle")).findtext(SVG + "title") == title
    (name,) = with_class(root, "text", "name")
    assert len("".join(name.itertext())) == len("source: ") + 130


def test_equal_input_gives_equal_bytes_and_nothing_is_fetched() -> None:
    text = svg(small())
    assert text == svg(small())
    assert "href" not in text
    assert "<script" not in text
    assert text.count("http") == 1


def test_a_component_without_a_backbone_is_drawn_too() -> None:
    root = parsed(svg(Subgraph((ComponentPicture(edges=((1, 2), (3, 4)), backbone=()),), {})))
    assert len(list(root.iter(SVG + "circle"))) == 4


@pytest.mark.parametrize("length", [2, 10, 94])
def test_backbones_of_all_lengths_stay_inside_their_frame(length: int) -> None:
    edges = (*((paper, paper + 1) for paper in range(length - 1)), (0, 1000), (1000, 1001))
    root = parsed(svg(Subgraph((ComponentPicture(edges, tuple(range(length))),), {})))
    (frame,) = with_class(root, "rect", "frame")
    width, height = float(frame.get("width") or 0), float(frame.get("height") or 0)
    places = [(float(one.get("cx") or 0), float(one.get("cy") or 0)) for one in root.iter(SVG + "circle")]
    assert len(set(places)) == length + 2
    assert all(24 < x < 24 + width and 0 < y < height for x, y in places)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=250), st.integers(2, 60))
def test_no_two_papers_of_a_random_tree_lie_on_each_other(parents: list[int], length: int) -> None:
    edges = [(paper, paper + 1) for paper in range(length - 1)]
    edges += [(parent % (length + number), length + number) for number, parent in enumerate(parents)]
    component = ComponentPicture(tuple(edges), tuple(range(length)), tuple(range(length // 2)))
    root = parsed(svg(Subgraph((component,), {})))
    places = [(one.get("cx"), one.get("cy")) for one in root.iter(SVG + "circle")]
    assert len(places) == len(set(places)) == length + len(parents)
    assert len(with_class(root, "path", "edge")) == len(edges)
