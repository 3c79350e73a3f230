from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gniah.loader import filter_graph, rfc_shards
from gniah.loader.filtering import CITATION_COUNTS, PAPER_COUNTS
from gniah.records.errors import BusyError, ImpossibleRequest, InputError, UsageFault
from gniah.records.files import locked_folder, sha256_file
from gniah.records.manifests import Manifest

CUTOFF = datetime.date(2026, 4, 1)
FILES = ["citations.parquet", "manifest.json", "papers.parquet"]
Make = Callable[..., dict[str, Any]]
Shard = Callable[[str, Sequence[dict[str, Any]]], Path]
Read = Callable[[Path], list[tuple[Any, ...]]]


def edge(citing: object, cited: object, **more: object) -> dict[str, Any]:
    return {"citingcorpusid": citing, "citedcorpusid": cited, **more}


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def reference_edges(
    rows: Sequence[dict[str, Any]], eligible: set[int]
) -> tuple[list[tuple[int, int, bool, list[int]]], dict[str, int]]:
    """The rules of edges, slowly and plainly."""
    counts = dict.fromkeys(CITATION_COUNTS, 0)
    edges: dict[tuple[int, int], tuple[bool, set[int]]] = {}
    for row in rows:
        counts["citation_rows"] += 1
        citing, cited = row["citingcorpusid"], row["citedcorpusid"]
        if citing is None:
            counts["citations_null_citing"] += 1
        elif cited is None:
            counts["citations_null_cited"] += 1
        elif int(citing) == int(cited):
            counts["citations_self"] += 1
        elif int(citing) not in eligible or int(cited) not in eligible:
            counts["citations_dangling"] += 1
        else:
            key = int(citing), int(cited)
            counts["citations_repeated"] += key in edges
            flag, ids = edges.get(key, (False, set()))
            number = row.get("citationid")
            edges[key] = (
                flag or bool(row.get("isinfluential")),
                ids | ({number} if number is not None else set()),
            )
    counts["citations"] = len(edges)
    return [(*key, flag, sorted(ids)) for key, (flag, ids) in sorted(edges.items())], counts


def test_papers_and_citations_become_two_sorted_files(tmp_path: Path, shard: Shard, paper: Make, rows_of: Read) -> None:
    papers = shard(
        "p.gz", [paper(3, venue="V"), paper(1, title="Caf&eacute;"), paper("2", publicationdate="2026-05-02")]
    )
    citations = shard("c.gz", [edge(3, 1), edge("2", "3", isinfluential=True, citationid=5), edge(3, 2)])
    out = tmp_path / "new" / "graph"
    manifest = filter_graph([papers], [citations], out, cutoff=CUTOFF)
    authors = (["A. Author"], '[{"authorId":"7","name":"A. Author"}]')
    assert rows_of(out / "papers.parquet") == [
        (1, "Café", "Caf&eacute;", "café", *authors, CUTOFF, None, "", None, None, None),
        (2, "Paper 2", "Paper 2", "paper 2", *authors, datetime.date(2026, 5, 2), None, "", None, None, None),
        (3, "Paper 3", "Paper 3", "paper 3", *authors, CUTOFF, "V", "V", None, None, None),
    ]
    assert rows_of(out / "citations.parquet") == [(2, 3, True, [5]), (3, 1, False, []), (3, 2, False, [])]
    assert names(out) == FILES
    assert Manifest.read(out, "gniah/graph/1") == manifest


def test_the_manifest_says_what_came_in_and_what_went_out(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers = [
        shard(
            "p0.gz",
            [paper(1, year=2025), paper(2, publicationdate=None), paper(3, publicationdate="2026-04")],
        ),
        shard(
            "p1.gz",
            [
                paper(4, publicationdate="2026-03-31"),
                paper(5, title="&nbsp;"),
                paper(6, title="<mml:math>"),
                paper(7, authors=[]),
                paper(7, authors=[]),
                paper(8, title="???", publicationdate="2099-01-01", year=2099),
            ],
        ),
    ]
    citations = shard(
        "c.gz",
        [
            edge(1, 7),
            edge(1, 7),
            edge(None, 7),
            edge(1, None),
            edge(1, 1),
            edge(1, 6),
            edge(99, 1),
            edge(9, 9),
        ],
    )
    manifest = filter_graph(papers, [citations], tmp_path / "g", cutoff=CUTOFF)
    content = manifest.content
    assert {name: content[name] for name in ("cutoff", "rules", "counts")} == {
        "cutoff": "2026-04-01",
        "rules": 1,
        "counts": {
            "papers": 3,
            "papers_usable": 1,
            "paper_rows": 9,
            "papers_without_date": 1,
            "papers_with_bad_date": 1,
            "papers_before_cutoff": 1,
            "papers_without_title": 1,
            "papers_with_mathml": 1,
            "papers_repeated": 1,
            "papers_year_differs": 1,
            "citations": 1,
            "citation_rows": 8,
            "citations_null_citing": 1,
            "citations_null_cited": 1,
            "citations_self": 2,
            "citations_dangling": 2,
            "citations_repeated": 1,
        },
    }
    assert list(content["counts"]) == [*PAPER_COUNTS, *CITATION_COUNTS]
    assert content["inputs"]["papers"] == sorted(
        (
            {"sha256": sha256_file(path), "bytes": path.stat().st_size, "rows": rows}
            for path, rows in zip(papers, (3, 6), strict=True)
        ),
        key=lambda facts: str(facts["sha256"]),
    )
    lines = (
        '[1,"Paper 1","Paper 1","paper 1",["A. Author"],"[{\\"authorId\\":\\"7\\",\\"name\\":\\"A. Author\\"}]",'
        '"2026-04-01",null,"",null,null,null]\n'
        '[7,"Paper 7","Paper 7","paper 7",[],"[]","2026-04-01",null,"",null,null,null]\n'
        '[8,"???","???","",["A. Author"],"[{\\"authorId\\":\\"7\\",\\"name\\":\\"A. Author\\"}]",'
        '"2099-01-01",null,"",null,null,null]\n'
    )
    assert content["values"] == {
        "papers": hashlib.sha256(lines.encode()).hexdigest(),
        "citations": hashlib.sha256(b"[1,7,false,[]]\n").hexdigest(),
    }
    assert manifest.run["papers_after_today"] == 1
    assert manifest.run["inputs"] == [str(path) for path in (*papers, citations)]
    assert manifest.run["files"] == {
        name: sha256_file(tmp_path / "g" / name) for name in ("papers.parquet", "citations.parquet")
    }
    assert str(tmp_path) not in json.dumps(content)


def test_an_edge_is_one_over_all_shards(tmp_path: Path, shard: Shard, paper: Make, rows_of: Read) -> None:
    papers = shard("p.gz", [paper(1), paper(2)])
    first = shard("c0.gz", [edge(1, 2, citationid=9, isinfluential=False), edge(2, 1, citationid=2**62)])
    second = shard("c1.gz", [edge(1, 2, citationid=1, isinfluential=True), edge(1, 2, citationid=9), edge("1", "2")])
    manifest = filter_graph([papers], [first, second], tmp_path / "g", cutoff=CUTOFF)
    assert rows_of(tmp_path / "g" / "citations.parquet") == [(1, 2, True, [1, 9]), (2, 1, False, [2**62])]
    assert manifest.content["counts"]["citations_repeated"] == 3


def test_papers_with_one_title_stay_apart_and_rows_of_one_id_become_one(
    tmp_path: Path, shard: Shard, paper: Make, rows_of: Read
) -> None:
    rows = [paper(1, title="T"), paper(2, title="T"), paper(1, title="S"), paper(1, title="T", venue="V")]
    seen = set()
    for turn in range(4):
        papers = [shard(f"{turn}/{n}.gz", [row]) for n, row in enumerate(rows[turn:] + rows[:turn])]
        out = tmp_path / f"g{turn}"
        manifest = filter_graph(papers, [shard("c.gz", [edge(1, 2)])], out, cutoff=CUTOFF)
        assert manifest.content["counts"]["papers_repeated"] == 2
        assert [row[:2] for row in rows_of(out / "papers.parquet")] == [(1, "S"), (2, "T")]
        seen.add((out / "papers.parquet").read_bytes())
    assert len(seen) == 1


def test_an_id_with_one_eligible_row_is_eligible(tmp_path: Path, shard: Shard, paper: Make, rows_of: Read) -> None:
    papers = shard(
        "p.gz", [paper(1, publicationdate=None), paper(1, title="T"), paper(1, publicationdate="2020-01-01")]
    )
    counts = filter_graph([papers], [shard("c.gz", [edge(1, 1)])], tmp_path / "g", cutoff=CUTOFF).content["counts"]
    assert (counts["papers"], counts["papers_repeated"]) == (1, 0)
    assert rows_of(tmp_path / "g" / "papers.parquet")[0][1] == "T"


def test_titles_with_odd_characters_arrive_as_they_are(
    tmp_path: Path, shard: Shard, paper: Make, rows_of: Read
) -> None:
    titles = [
        "A\\",
        'G\\"odel "q" \'s',
        "$O(\\log^{3} n)$",
        "a,b;c|d",
        "[1, 2]",
        "\ud83d\ude00 x\ud800y\0z",
        "NULL",
        "null",
        "{}",
    ]
    papers = shard("p.gz", [paper(number, title=title) for number, title in enumerate(titles)])
    filter_graph([papers], [shard("c.gz", [edge(1, 2)])], tmp_path / "g", cutoff=CUTOFF)
    shown = [row[1] for row in rows_of(tmp_path / "g" / "papers.parquet")]
    assert shown == [*titles[:5], "😀 xyz", *titles[6:]]


@pytest.mark.parametrize("name", ["cutoff=2026-04-01", "a*b?[x]", "it's", "ü {1} %s", "-x"])
def test_a_folder_may_have_any_name(tmp_path: Path, shard: Shard, paper: Make, rows_of: Read, name: str) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    manifest = filter_graph([papers], [citations], tmp_path / name / name, cutoff=CUTOFF)
    assert names(tmp_path / name / name) == FILES
    assert manifest.content["values"]["citations"] == hashlib.sha256(b"[1,2,false,[]]\n").hexdigest()


ROWS = st.lists(
    st.builds(
        edge,
        st.none() | st.integers(0, 6) | st.integers(0, 6).map(str),
        st.none() | st.integers(0, 6),
        isinfluential=st.booleans(),
        citationid=st.none() | st.integers(0, 5) | st.just(2**63 - 1),
    ),
    max_size=25,
)


def write_shards(folder: Path, kind: str, rows: Sequence[dict[str, Any]], cuts: Sequence[int]) -> list[Path]:
    paths = []
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        path = folder / f"{kind}{number}.gz"
        path.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows[start:end])))
        paths.append(path)
    return paths


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), rows=ROWS)
def test_order_and_splitting_do_not_change_the_bytes_and_edges_follow_the_rules(
    tmp_path_factory: pytest.TempPathFactory,
    paper: Make,
    rows_of: Read,
    data: st.DataObject,
    rows: list[dict[str, Any]],
) -> None:
    folder = tmp_path_factory.mktemp("graph")
    papers = [paper(number) for number in range(5)] + [paper(5, publicationdate="2026-03-31")]
    papers += [paper(number % 3, title=f"Again {number}", venue="V" * (number % 2)) for number in range(4)]
    results = []
    for turn in range(2):
        some_papers = data.draw(st.permutations(papers)) if turn else papers
        some_rows = data.draw(st.permutations(rows)) if turn else rows
        cut = data.draw(st.integers(0, len(some_papers))) if turn else 3
        cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3))) if turn else []
        place = folder / str(turn)
        place.mkdir()
        given_papers = write_shards(place, "p", some_papers, [cut])
        given_rows = write_shards(place, "c", some_rows, cuts)
        out = place / "out"
        manifest = filter_graph(given_papers, data.draw(st.permutations(given_rows)), out, cutoff=CUTOFF)
        results.append(
            (
                (out / "papers.parquet").read_bytes(),
                (out / "citations.parquet").read_bytes(),
                manifest.content["counts"],
            )
        )
        edges, counts = reference_edges(some_rows, set(range(5)))
        assert rows_of(out / "citations.parquet") == edges
        assert {name: manifest.content["counts"][name] for name in CITATION_COUNTS} == counts
    assert results[0] == results[1]


def test_many_rows_in_another_order_give_the_same_bytes(tmp_path: Path, shard: Shard, paper: Make) -> None:
    # More rows than one row group holds.
    rows = [paper(number, title="T") for number in range(2_000)]
    edges = [edge(n % 2000, (n * 7 + n // 2000 + 1) % 2000, citationid=n) for n in range(130_000)]
    results = set()
    for turn, order in enumerate((1, -1)):
        out = tmp_path / str(turn)
        filter_graph([shard("p.gz", rows[::order])], [shard("c.gz", edges[::order])], out, cutoff=CUTOFF)
        results.add((sha256_file(out / "papers.parquet"), sha256_file(out / "citations.parquet")))
    assert len(results) == 1


def test_a_cut_shard_leaves_no_graph_behind_and_keeps_the_shards_before_it(
    tmp_path: Path, shard: Shard, paper: Make
) -> None:
    papers = shard("p.gz", [paper(number) for number in range(30)])
    citations = shard("c.gz", [edge(number, number + 1) for number in range(29)])
    out = tmp_path / "g" / "out"
    for path, left in ((papers, [".out.lock"]), (citations, [".out.lock", ".out.work"])):
        raw = path.read_bytes()
        for length in range(0, len(raw), len(raw) // 12):
            path.write_bytes(raw[:length])
            with pytest.raises(InputError, match=rf"{path.name}:\d+: the (gzip )?file is"):
                filter_graph([papers], [citations], out, cutoff=CUTOFF)
            assert names(tmp_path / "g") == left
        path.write_bytes(raw)
    filter_graph([papers], [citations], out, cutoff=CUTOFF)
    assert names(out) == FILES
    assert names(tmp_path / "g") == [".out.lock", "out"]


def test_a_failed_run_leaves_the_graph_that_was_there(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    out = tmp_path / "g"
    before = filter_graph([papers], [citations], out, cutoff=CUTOFF)
    citations.write_bytes(citations.read_bytes()[:-3])
    with pytest.raises(InputError, match="cut"):
        filter_graph([papers], [citations], out, cutoff=CUTOFF, force=True)
    assert Manifest.read(out, "gniah/graph/1") == before
    assert names(out) == FILES


def test_swapped_shards_are_recognised(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1)]), shard("c.gz", [edge(1, 2)])
    with pytest.raises(InputError, match=r"c\.gz:1: this is a row of citations, not of papers: .* swapped"):
        filter_graph([citations], [papers], tmp_path / "g", cutoff=CUTOFF)
    with pytest.raises(InputError, match=r"p\.gz:1: this is a row of papers, not of citations: .* swapped"):
        filter_graph([papers], [papers], tmp_path / "g", cutoff=CUTOFF)


def test_a_bad_value_is_named_with_file_and_line(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers = shard("p.gz", [paper(1), paper(2, authors="A. B")])
    with pytest.raises(InputError, match=r"p\.gz:2: authors must be a list, found 'A. B'"):
        filter_graph([papers], [shard("c.gz", [edge(1, 2)])], tmp_path / "g", cutoff=CUTOFF)


def test_no_eligible_paper_is_impossible_and_the_newest_date_is_named(
    tmp_path: Path, shard: Shard, paper: Make
) -> None:
    papers = shard(
        "p.gz",
        [
            paper(1, publicationdate="2025-12-31"),
            paper(2, publicationdate="2026-02-07"),
            paper(3, publicationdate=None),
        ],
    )
    with pytest.raises(
        ImpossibleRequest, match=r"none of the 3 papers .* 2026-04-01: the newest date seen is 2026-02-07"
    ) as caught:
        filter_graph([papers], [shard("c.gz", [edge(1, 2)])], tmp_path / "g", cutoff=CUTOFF)
    assert "--cutoff" in str(caught.value.remedy)
    assert not (tmp_path / "g").exists()


def test_a_graph_without_citations_is_a_graph(tmp_path: Path, shard: Shard, paper: Make, rows_of: Read) -> None:
    manifest = filter_graph([shard("p.gz", [paper(1)])], [shard("c.gz", [])], tmp_path / "g", cutoff=CUTOFF)
    assert rows_of(tmp_path / "g" / "citations.parquet") == []
    assert manifest.content["values"]["citations"] == hashlib.sha256(b"").hexdigest()


def test_the_same_graph_is_not_made_twice(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    out = tmp_path / "g"
    first = filter_graph([papers], [citations], out, cutoff=CUTOFF)
    said: list[str] = []
    again = filter_graph([papers.rename(tmp_path / "other.gz")], [citations], out, cutoff=CUTOFF, report=said.append)
    assert again == first
    assert said == [f"{out}: already there, nothing to do"]
    forced = filter_graph([tmp_path / "other.gz"], [citations], out, cutoff=CUTOFF, force=True)
    assert forced.digest == first.digest
    assert forced.run != first.run


def test_another_graph_is_replaced_by_force_only(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    out = tmp_path / "g"
    filter_graph([papers], [citations], out, cutoff=CUTOFF)
    earlier = datetime.date(2026, 3, 1)
    with pytest.raises(UsageFault, match="another cutoff: 2026-04-01, not 2026-03-01") as caught:
        filter_graph([papers], [citations], out, cutoff=earlier)
    assert "--force" in str(caught.value.remedy)
    with pytest.raises(UsageFault, match="made from other citations shards"):
        filter_graph([papers], [shard("d.gz", [edge(2, 1)])], out, cutoff=CUTOFF)
    assert filter_graph([papers], [citations], out, cutoff=earlier, force=True).content["cutoff"] == "2026-03-01"


def test_a_damaged_graph_is_named_and_made_again_by_force(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    out = tmp_path / "g"
    filter_graph([papers], [citations], out, cutoff=CUTOFF)
    (out / "papers.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"papers\.parquet: missing, or changed"):
        filter_graph([papers], [citations], out, cutoff=CUTOFF)
    (out / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"no manifest\.json"):
        filter_graph([papers], [citations], out, cutoff=CUTOFF)
    filter_graph([papers], [citations], out, cutoff=CUTOFF, force=True)
    assert names(out) == FILES


def test_a_folder_with_something_else_is_never_replaced(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    with pytest.raises(UsageFault, match="never overwritten"):
        filter_graph([papers], [citations], tmp_path, cutoff=CUTOFF, force=True)
    assert papers.is_file()
    with pytest.raises(UsageFault, match="a file has this name"):
        filter_graph([papers], [citations], papers, cutoff=CUTOFF, force=True)
    (tmp_path / "empty").mkdir()
    filter_graph([papers], [citations], tmp_path / "empty", cutoff=CUTOFF)
    assert names(tmp_path / "empty") == FILES


def test_what_a_killed_process_left_is_removed(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    home = tmp_path / "home"
    for name in (".g.0123abcd.part", ".g.0123abcd.old", ".g.h.0123abcd.part", ".other.0123abcd.part"):
        (home / name / "work").mkdir(parents=True)
    filter_graph([papers], [citations], home / "g", cutoff=CUTOFF)
    assert names(home) == [".g.h.0123abcd.part", ".g.lock", ".other.0123abcd.part", "g"]


def hold(folder: Path, ready: Any, done: Any) -> None:
    with locked_folder(folder):
        ready.set()
        done.wait(30)


def test_two_processes_do_not_write_the_same_folder(tmp_path: Path, shard: Shard, paper: Make) -> None:
    papers, citations = shard("p.gz", [paper(1), paper(2)]), shard("c.gz", [edge(1, 2)])
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=hold, args=(tmp_path / ".g.lock", ready, done))
    process.start()
    try:
        assert ready.wait(30)
        with pytest.raises(BusyError, match=r"/g: another process is writing this folder") as caught:
            filter_graph([papers], [citations], tmp_path / "g", cutoff=CUTOFF)
        assert caught.value.exit_code == 8
    finally:
        done.set()
        process.join()
    filter_graph([papers], [citations], tmp_path / "g", cutoff=CUTOFF)


def test_the_shipped_rfc_shards_make_a_graph(tmp_path: Path, rows_of: Read) -> None:
    papers, citations, cutoff = rfc_shards()
    counts = filter_graph([papers], [citations], tmp_path / "g", cutoff=cutoff).content["counts"]
    assert {name: count for name, count in counts.items() if count} == {
        "papers": 3605,
        "papers_usable": 3605,
        "paper_rows": 3605,
        "citations": 19833,
        "citation_rows": 19833,
    }
    assert {row[7] for row in rows_of(tmp_path / "g" / "papers.parquet")} == {"Request for Comments"}
    assert papers.stat().st_size + citations.stat().st_size < 400_000


@pytest.mark.shared
def test_genuine_sample_rows_are_read(tmp_path: Path, shared: Path) -> None:
    samples = shared / "data" / "s2ag-samples"
    papers = [samples / draw / "papers.jsonl.gz" for draw in ("draw-a", "draw-b")]
    citations = [samples / draw / "citations.jsonl.gz" for draw in ("draw-a", "draw-b")]
    citations.append(samples / "citations-diff-2024-06-25.jsonl.gz")
    counts = filter_graph(papers, citations, tmp_path / "g", cutoff=datetime.date(1500, 1, 1)).content["counts"]
    assert counts["paper_rows"] == 200
    assert counts["citation_rows"] == 220
    assert counts["papers_without_date"] == 120
    assert counts["papers"] == 80
    assert counts["citations_null_cited"] + counts["citations_dangling"] == 220


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "cutoff", "papers", "citations"),
    [("paperscape-1991-1996", "1996-01-01", 15_866, 19_130), ("rfc-2023", "2010-01-01", 3_605, 19_833)],
)
def test_real_graphs_have_the_known_sizes(
    tmp_path: Path, shared: Path, name: str, cutoff: str, papers: int, citations: int
) -> None:
    folder = shared / "data" / "graphs" / name
    counts = filter_graph(
        [folder / "papers.jsonl.gz"],
        [folder / "citations.jsonl.gz"],
        tmp_path / "g",
        cutoff=datetime.date.fromisoformat(cutoff),
    ).content["counts"]
    assert (counts["papers"], counts["citations"]) == (papers, citations)
