from __future__ import annotations

import datetime
import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gniah.loader
from gniah.loader import rfc_shards
from gniah.loader.shards import ShardReader

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_shipped_rows_look_like_rows_of_s2ag() -> None:
    shards = rfc_shards()
    assert shards.cutoff == datetime.date(2010, 1, 1)
    papers = [row for _, row in ShardReader(shards.papers)]
    citations = [row for _, row in ShardReader(shards.citations)]
    assert (len(papers), len(citations)) == (3605, 19833)
    row = next(row for row in papers if row["journal"]["volume"] == "9339")
    assert row == {
        "corpusid": 9077,
        "externalids": {
            "ACL": None,
            "DBLP": None,
            "ArXiv": None,
            "MAG": None,
            "CorpusId": "9077",
            "PubMed": None,
            "DOI": "10.17487/RFC9339",
            "PubMedCentral": None,
        },
        "url": "https://www.rfc-editor.org/info/rfc9339",
        "title": "OSPF Reverse Metric",
        "authors": [{"authorId": None, "name": name} for name in ("K. Talaulikar", "P. Psenak", "H. Johnston")],
        "venue": "Request for Comments",
        "publicationvenueid": None,
        "year": 2022,
        "referencecount": 7,
        "citationcount": 0,
        "influentialcitationcount": 0,
        "isopenaccess": True,
        "s2fieldsofstudy": None,
        "publicationtypes": None,
        "publicationdate": "2022-12-01",
        "journal": {"name": "Request for Comments", "pages": None, "volume": "9339"},
    }
    assert list(citations[0]) == [
        "citationid",
        "citingcorpusid",
        "citedcorpusid",
        "isinfluential",
        "contexts",
        "intents",
    ]
    assert not any(re.search(r", Eds?\b", author["name"]) for row in papers for author in row["authors"])


@pytest.mark.shared
def test_the_shipped_shards_are_what_their_script_makes(tmp_path: Path, shared: Path) -> None:
    source = shared / "data" / "graphs" / "rfc-2023"
    script = BENCHMARKS / "rfc_shards.py"
    subprocess.run([sys.executable, script, "--from", source, "--out", tmp_path], check=True, capture_output=True)
    for path in rfc_shards()[:2]:
        # The text, since compressed bytes differ between releases of zlib.
        assert gzip.decompress((tmp_path / path.name).read_bytes()) == gzip.decompress(path.read_bytes())


def test_where_the_rows_come_from_is_told_beside_them() -> None:
    text = (rfc_shards().papers.parent / "PROVENANCE.md").read_text(encoding="utf-8")
    assert "3,605 rows" in text
    assert "19,833 rows" in text


def test_public_names_are_there_and_others_are_not() -> None:
    assert all(getattr(gniah.loader, name) for name in gniah.loader.__all__)
    assert {"RfcShards", "filter_graph", "graph_statistics", "import_graph", "rfc_shards"} <= set(gniah.loader.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gniah.loader.nonsense
