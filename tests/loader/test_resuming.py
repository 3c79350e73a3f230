"""Pieces of finished shards: used again when they are right, and only then; the same bytes for any number of jobs."""

from __future__ import annotations

import datetime
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gniah.loader import filter_graph, filtering, pieces, work_folder
from gniah.loader.eligibility import RowFault
from gniah.loader.work_folder import WorkFolder
from gniah.records.errors import EnvironmentFault, ImpossibleRequest, InputError, UsageFault
from gniah.records.files import sha256_file
from gniah.records.manifests import Manifest

CUTOFF = datetime.date(2026, 4, 1)
Make = Callable[..., dict[str, Any]]
Shard = Callable[[str, Sequence[dict[str, Any]]], Path]


def edge(citing: object, cited: object, **more: object) -> dict[str, Any]:
    return {"citingcorpusid": citing, "citedcorpusid": cited, **more}


class Runs:
    """Shards and an output; calls that can be stopped, and that tell which shards they read."""

    def __init__(self, tmp_path: Path, shard: Shard, paper: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shard, self.paper, self.out = shard, paper, tmp_path / "o" / "g"
        self.work = tmp_path / "o" / ".g.work"
        self.papers = [shard(f"p{n}.gz", [paper(10 * n + m) for m in range(4)]) for n in range(3)]
        self.citations = [shard(f"c{n}.gz", [edge(10 * n, m, citationid=m) for m in (1, 2, 99)]) for n in range(3)]
        self.read: list[str] = []
        self.said: list[str] = []
        self.stop_at: str | None = None
        reader = pieces.ShardReader

        def watched(path: Path) -> pieces.ShardReader:
            if path.name == self.stop_at:
                raise KeyboardInterrupt
            self.read.append(path.name)
            return reader(path)

        monkeypatch.setattr(pieces, "ShardReader", watched)

    def call(self, **more: Any) -> Manifest:
        self.read, self.said = [], []
        given = {"cutoff": CUTOFF, "report": self.said.append, **more}
        return filter_graph(self.papers, self.citations, self.out, **given)

    def stopped_at(self, name: str) -> None:
        self.stop_at = name
        with pytest.raises(KeyboardInterrupt):
            self.call()
        self.stop_at = None

    def equals_fresh(self) -> bool:
        """Whether the graph is what a call in another place makes."""
        other = self.out.with_name("fresh")
        manifest = filter_graph(self.papers, self.citations, other, cutoff=CUTOFF, force=True)
        files = [sha256_file(folder / "papers.parquet") for folder in (self.out, other)]
        files += [sha256_file(folder / "citations.parquet") for folder in (self.out, other)]
        return files[0] == files[1] and files[2] == files[3] and manifest == Manifest.read(other, "gniah/graph/1")


@pytest.fixture
def runs(tmp_path: Path, shard: Shard, paper: Make, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, shard, paper, monkeypatch)


def test_finished_shards_are_not_read_again_and_progress_says_so(runs: Runs) -> None:
    runs.stopped_at("c2.gz")
    assert runs.said == [
        "reading 3 papers and 3 citations shards",
        f"{runs.work}: 5 finished shards are kept; the same command goes on from there",
    ]
    runs.call()
    assert runs.read == ["c2.gz"]
    assert runs.said == [
        "reading 3 papers and 3 citations shards",
        "going on: 3 of 3 papers shards were read by an earlier call",
        "going on: 2 of 3 citations shards were read by an earlier call",
        "sorting and writing",
    ]
    assert not runs.work.exists()
    assert runs.equals_fresh()


def test_nothing_is_kept_of_a_call_that_finished_no_shard(runs: Runs) -> None:
    runs.stopped_at("p0.gz")
    assert not runs.work.exists()
    assert runs.said == ["reading 3 papers and 3 citations shards"]


def test_sorted_files_are_kept_too(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(filtering, "put_in_place", stop)
        with pytest.raises(KeyboardInterrupt):
            runs.call()
    with monkeypatch.context() as patch:
        patch.setattr(filtering, "merge", stop)
        runs.call()
    assert runs.read == []
    assert "going on: the papers were sorted by an earlier call" in runs.said
    assert runs.equals_fresh()


def test_a_shard_that_changed_is_read_again_though_size_and_time_are_the_same(runs: Runs) -> None:
    runs.stopped_at("c2.gz")
    path = runs.citations[0]
    before = path.stat()
    for number in range(3, 100):  # another row of a size that compresses alike
        runs.shard(path.name, [edge(0, m, citationid=m) for m in (1, 3, number)])
        if path.stat().st_size == before.st_size:
            break
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    runs.call()
    assert runs.read == ["c0.gz", "c2.gz"]
    assert runs.equals_fresh()


def test_a_shard_is_known_by_what_it_holds_wherever_it_stands(runs: Runs, tmp_path: Path) -> None:
    runs.stopped_at("c2.gz")
    runs.papers = [path.rename(tmp_path / f"moved-{path.name}") for path in runs.papers]
    runs.call()
    assert runs.read == ["c2.gz"]


def test_citations_are_read_again_when_other_papers_are_eligible(runs: Runs) -> None:
    runs.stopped_at("c2.gz")
    runs.papers.append(runs.shard("p3.gz", [runs.paper(99)]))
    runs.call()
    assert runs.read == ["p3.gz", "c0.gz", "c1.gz", "c2.gz"]
    assert runs.equals_fresh()


def test_pieces_of_shards_that_are_gone_are_removed(runs: Runs) -> None:
    runs.stopped_at("c2.gz")
    runs.papers.pop()
    runs.stopped_at("c0.gz")
    assert len(list(runs.work.glob("papers-*.json"))) == 2
    assert not list(runs.work.glob("citations-*"))


@pytest.mark.parametrize("change", ["cutoff", "rules", "gniah", "form"])
def test_pieces_of_other_settings_are_removed_with_a_message(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    runs.stopped_at("c2.gz")
    more: dict[str, Any] = {}
    if change == "cutoff":
        more["cutoff"] = datetime.date(2026, 3, 1)
    elif change == "rules":
        monkeypatch.setattr(filtering, "RULES", 99)
    elif change == "form":
        monkeypatch.setattr(work_folder, "FORM", 99)
    else:
        monkeypatch.setattr(work_folder, "package_version", lambda: "99")
    runs.call(**more)
    assert len(runs.read) == 6
    assert runs.said[0].startswith(f"{runs.work}: unfinished work of another {change} (")
    assert not any(line.startswith("going on") for line in runs.said)


@pytest.mark.parametrize("damage", ["cut rows", "no rows", "cut facts", "no facts", "other key"])
def test_a_piece_that_is_not_whole_is_made_again(runs: Runs, damage: str) -> None:
    runs.stopped_at("c2.gz")
    facts = sorted(runs.work.glob("papers-*.json"))[0]
    rows = facts.with_suffix(".jsonl")
    if damage == "cut rows":
        rows.write_bytes(rows.read_bytes()[:-9])
    elif damage == "no rows":
        rows.unlink()
    elif damage == "cut facts":
        facts.write_bytes(facts.read_bytes()[:-9])
    elif damage == "no facts":
        facts.unlink()
    else:
        facts.write_bytes(facts.read_bytes().replace(b'{"key":"', b'{"key":"0'))
    runs.call()
    assert len(runs.read) == 2
    assert runs.equals_fresh()


def test_work_that_stayed_beside_a_finished_graph_goes(runs: Runs) -> None:
    runs.call()
    runs.work.mkdir()
    runs.call()
    assert runs.said == [f"{runs.out}: already there, nothing to do"]
    assert not runs.work.exists()


def test_a_folder_of_somebody_else_is_never_removed(runs: Runs) -> None:
    (runs.work / "notes").mkdir(parents=True)
    with pytest.raises(UsageFault, match=r"\.g\.work/notes: is in the way of unfinished work"):
        runs.call()
    runs.work.rename(runs.out.with_name("aside"))
    runs.call()
    runs.out.with_name("aside").rename(runs.work)
    runs.call()
    assert (runs.work / "notes").is_dir()


def test_an_impossible_request_keeps_nothing(runs: Runs) -> None:
    with pytest.raises(ImpossibleRequest):
        runs.call(cutoff=datetime.date(2027, 1, 1))
    assert not runs.work.exists()


def test_a_bad_shard_costs_itself_only(runs: Runs) -> None:
    good = runs.citations[1].read_bytes()
    runs.citations[1].write_bytes(good[:-4])
    with pytest.raises(InputError, match=r"c1\.gz:4: the gzip file is cut"):
        runs.call()
    runs.citations[1].write_bytes(good)
    runs.call()
    assert runs.read == ["c1.gz", "c2.gz"]


def test_equal_shards_count_twice(runs: Runs, tmp_path: Path) -> None:
    for paths, name in ((runs.papers, "again-p.gz"), (runs.citations, "again-c.gz")):
        (tmp_path / name).write_bytes(paths[0].read_bytes())
        paths.append(tmp_path / name)
    runs.stopped_at("c2.gz")
    counts = runs.call().content["counts"]
    assert (counts["papers"], counts["papers_repeated"], counts["paper_rows"]) == (12, 4, 16)
    assert (counts["citations"], counts["citations_repeated"], counts["citation_rows"]) == (6, 2, 12)


@pytest.mark.slow
def test_any_number_of_jobs_gives_the_same_bytes(
    tmp_path: Path, shard: Shard, paper: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    papers = [shard(f"p{n}.gz", [paper(m, title=f"T {n}") for m in range(n, 300, 2)]) for n in range(3)]
    citations = [
        shard(f"c{n}.gz", [edge(m % 290, (7 * m + n) % 310, isinfluential=m < 9, citationid=m) for m in range(400)])
        for n in range(3)
    ]
    results = set()
    for jobs in (1, 2, 5):
        out, rows = tmp_path / str(jobs), [0]
        manifest = filter_graph(papers, citations, out, cutoff=CUTOFF, jobs=jobs, advance=rows.append)
        results.add((sha256_file(out / "papers.parquet"), sha256_file(out / "citations.parquet"), manifest.digest))
        assert sum(rows) <= sum(manifest.content["counts"][name] for name in ("paper_rows", "citation_rows"))
    assert len(results) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_error_of_a_worker_is_what_the_user_sees(
    tmp_path: Path, shard: Shard, paper: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    papers = [shard("p0.gz", [paper(1)]), shard("p1.gz", [paper(2), paper(3, title=5)])]
    with pytest.raises(InputError, match=r"p1\.gz:2: title must be a string") as caught:
        filter_graph(papers, [shard("c.gz", [edge(1, 2)])], tmp_path / "g", cutoff=CUTOFF, jobs=2)
    assert caught.value.remedy == "give shards of the S2AG data set papers to --papers"
    assert not (tmp_path / "g").exists()
    assert capfd.readouterr() == ("", "")


def test_errors_and_tasks_travel_between_processes(tmp_path: Path) -> None:
    for error in (InputError("a", remedy="b"), EnvironmentFault("c"), RowFault("d")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    task = pieces.PapersTask(tmp_path, CUTOFF, WorkFolder(tmp_path, {"a": 1}))
    assert pickle.loads(pickle.dumps(task)) == task
