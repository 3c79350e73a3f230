"""Make the small shards that ship with the product: RFCs since a date, as rows of S2AG.

    python benchmarks/rfc_shards.py --from FOLDER --out loader/data/rfc [--since 2010-01-01]

FOLDER holds `papers.jsonl.gz` (`corpusid`, `externalids.RFC`, `title`, `authors`, `publicationdate`) and
`citations.jsonl.gz` (`citingcorpusid`, `citedcorpusid`). The same rows give the same text, and the same bytes
wherever zlib is the same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SERIES = "Request for Comments"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=Path, required=True, help="folder of RFC rows")
    parser.add_argument("--out", type=Path, required=True, help="folder for the two shards")
    parser.add_argument("--since", default="2010-01-01", help="take RFCs published on this day or later")
    options = parser.parse_args()
    papers = {
        row["corpusid"]: row
        for row in read_rows(options.source / "papers.jsonl.gz")
        if (row.get("publicationdate") or "") >= options.since
    }
    edges = sorted(
        {
            (row["citingcorpusid"], row["citedcorpusid"])
            for row in read_rows(options.source / "citations.jsonl.gz")
            if row["citingcorpusid"] in papers and row["citedcorpusid"] in papers
        }
    )
    references = Counter(citing for citing, _ in edges)
    citations = Counter(cited for _, cited in edges)
    options.out.mkdir(parents=True, exist_ok=True)
    write_rows(
        options.out / "papers.jsonl.gz",
        (paper_row(papers[key], references[key], citations[key]) for key in sorted(papers)),
    )
    write_rows(
        options.out / "citations.jsonl.gz",
        (citation_row(number, citing, cited) for number, (citing, cited) in enumerate(edges, start=1)),
    )
    print(f"{len(papers):,} RFCs, {len(edges):,} references")


def paper_row(row: dict[str, Any], references: int, citations: int) -> dict[str, Any]:
    """Return an RFC as S2AG would give it; what the source does not know is null, as it often is there."""
    number = int(row["externalids"]["RFC"])
    return {
        "corpusid": row["corpusid"],
        "externalids": {
            "ACL": None,
            "DBLP": None,
            "ArXiv": None,
            "MAG": None,
            "CorpusId": str(row["corpusid"]),
            "PubMed": None,
            "DOI": f"10.17487/RFC{number:04d}",
            "PubMedCentral": None,
        },
        "url": f"https://www.rfc-editor.org/info/rfc{number}",
        "title": row["title"],
        "authors": [{"authorId": None, "name": without_role(author["name"])} for author in row["authors"]],
        "venue": SERIES,
        "publicationvenueid": None,
        "year": int(row["publicationdate"][:4]),
        "referencecount": references,
        "citationcount": citations,
        "influentialcitationcount": 0,
        "isopenaccess": True,
        "s2fieldsofstudy": None,
        "publicationtypes": None,
        "publicationdate": row["publicationdate"],
        "journal": {"name": SERIES, "pages": None, "volume": str(number)},
    }


def without_role(name: str) -> str:
    """Return a name without the mark of an editor, which S2AG does not keep in names."""
    return re.sub(r",\s*Eds?\.?$", "", name)


def citation_row(number: int, citing: int, cited: int) -> dict[str, Any]:
    """Return a reference as S2AG would give it."""
    return {
        "citationid": number,
        "citingcorpusid": citing,
        "citedcorpusid": cited,
        "isinfluential": False,
        "contexts": None,
        "intents": None,
    }


def read_rows(path: Path) -> Iterable[dict[str, Any]]:
    with gzip.open(path, "rb") as stream:
        for line in stream:
            yield json.loads(line)


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    text = b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n" for row in rows)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
    part.replace(path)


if __name__ == "__main__":
    main()
