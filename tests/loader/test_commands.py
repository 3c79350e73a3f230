from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gniah.loader import rfc_shards

Make = Callable[..., dict[str, Any]]
Shard = Callable[[str, Sequence[dict[str, Any]]], Path]


def load(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from gniah.loader.cli import main; main()", *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        env={"PATH": "/usr/bin:/bin", **environment},
        check=False,
    )


@pytest.fixture
def words(shard: Shard, paper: Make, tmp_path: Path) -> list[object]:
    shard("p/0.gz", [paper(1), paper(2), paper(3, publicationdate="2026-03-31")])
    shard("c/0.gz", [{"citingcorpusid": 1, "citedcorpusid": 2}, {"citingcorpusid": 1, "citedcorpusid": None}])
    return [
        "filter",
        "--papers",
        tmp_path / "p",
        "--citations",
        tmp_path / "c" / "0.gz",
        "--out",
        tmp_path / "g",
    ]


def test_filter_prints_counts_to_standard_output_and_messages_to_standard_error(words: list[object]) -> None:
    done = load(*words)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "graph of papers since 2026-04-01",
        "                                                           count",
        "---------------------------------------------------------  -----",
        "papers kept                                                    2",
        "  of them with an author and a title of letters or digits      2",
        "rows in the papers shards                                      3",
        "  without a date                                               0",
        "  with a date that is no YYYY-MM-DD of the calendar            0",
        "  before the cutoff                                            1",
        "  with an empty title                                          0",
        "  with MathML in the title                                     0",
        "  repeats of a corpusid                                        0",
        "  eligible, and stating another year than the date             0",
        "citations kept                                                 1",
        "rows in the citations shards                                   2",
        "  without a citing id                                          0",
        "  without a cited id                                           1",
        "  of a paper by itself                                         0",
        "  with an end that is not kept                                 0",
        "  repeats of a citation                                        0",
    ]
    assert done.stderr.splitlines() == ["reading 1 papers and 1 citations shards", "sorting and writing"]


def test_filter_prints_json_and_takes_a_finished_folder_as_it_is(words: list[object], tmp_path: Path) -> None:
    first = load(*words, "--json")
    value = json.loads(first.stdout)
    assert (value["cutoff"], value["counts"]["papers"], value["counts"]["citations"]) == ("2026-04-01", 2, 1)
    assert value["digest"] == json.loads((tmp_path / "g" / "manifest.json").read_bytes())["digest"]
    second = load(*words, "--json")
    assert second.returncode == 0
    assert second.stdout == first.stdout
    assert second.stderr == f"{tmp_path / 'g'}: already there, nothing to do\n"


def test_another_cutoff_needs_force(words: list[object]) -> None:
    assert load(*words).returncode == 0
    refused = load(*words, "--cutoff", "2026-03-01")
    assert refused.returncode == 2
    assert "another cutoff: 2026-04-01, not 2026-03-01" in refused.stderr
    assert "to mend it: add --force" in refused.stderr
    forced = load(*words, "--cutoff", "2026-03-01", "--force", "--json")
    assert json.loads(forced.stdout)["counts"]["papers"] == 3


def test_the_cutoff_may_come_from_the_environment_and_a_settings_file(words: list[object], tmp_path: Path) -> None:
    done = load(*words, "--json", GNIAH_LOAD_FILTER_CUTOFF="2026-03-31")
    assert json.loads(done.stdout)["cutoff"] == "2026-03-31"
    for number, value in enumerate(('"2026-03-30"', "2026-03-30")):
        config = tmp_path / "settings.toml"
        config.write_text(f"[gniah-load.filter]\ncutoff = {value}\n", encoding="utf-8")
        done = load("--config", config, *words[:-1], tmp_path / f"t{number}", "--json")
        assert json.loads(done.stdout)["cutoff"] == "2026-03-30"


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("--cutoff", "2026-4-1"), 2, "'2026-4-1' is no day of the form YYYY-MM-DD"),
        (("--cutoff", "2026-02-30"), 2, "'2026-02-30' is no day"),
        (("--papers", "no-such.gz"), 3, "no-such.gz: no such file"),
        (("--citations", "PAPERS"), 3, "0.gz:1: this is a row of papers, not of citations"),
        (("--papers", "EMPTY"), 3, "no *.gz file in this folder"),
        (("--cutoff", "2027-01-01"), 6, "the newest date seen is 2026-04-01"),
        (("--nonsense",), 2, "No such option"),
    ],
)
def test_wrong_use_has_its_exit_code_and_leaves_nothing(
    words: list[object], tmp_path: Path, change: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"PAPERS": tmp_path / "p", "EMPTY": tmp_path / "empty"}
    done = load(*words, *(places.get(word, word) for word in change))
    assert done.returncode == code
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "g").exists()


def test_a_cut_shard_is_bad_input(words: list[object], tmp_path: Path) -> None:
    path = tmp_path / "c" / "0.gz"
    path.write_bytes(path.read_bytes()[:-5])
    done = load(*words)
    assert done.returncode == 3
    assert done.stderr.splitlines()[1:] == [
        f"gniah-load: error: {path}:3: the gzip file is cut: it ends before its end mark",
        "  to mend it: fetch this shard again and check its size",
    ]


def test_a_graph_without_citations_is_said_to_have_none(shard: Shard, paper: Make, tmp_path: Path) -> None:
    papers, citations = shard("p.gz", [paper(1)]), shard("c.gz", [])
    done = load("filter", "--papers", papers, "--citations", citations, "--out", tmp_path / "g")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "warning: no citation connects two of these papers"


def test_help_shows_an_example_and_needs_no_database() -> None:
    done = load("filter", "--help")
    assert done.returncode == 0
    assert "gniah-load filter --papers s2ag/papers --citations s2ag/citations --out graph" in " ".join(
        done.stdout.split()
    )
    quick = "import sys, gniah.loader.cli, gniah.loader.commands; sys.exit('duckdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", quick], check=False).returncode == 0
    overview = load("--help")
    assert [name in overview.stdout for name in ("filter", "import", "stats", "query", "cypher")] == [True] * 5


def test_the_shipped_shards_can_be_named(tmp_path: Path) -> None:
    papers, citations, cutoff = rfc_shards()
    done = load(
        "filter",
        "--papers",
        papers,
        "--citations",
        citations,
        "--cutoff",
        cutoff,
        "--out",
        tmp_path / "g",
        "--json",
    )
    counts = json.loads(done.stdout)["counts"]
    assert (counts["papers"], counts["citations"]) == (3605, 19833)
