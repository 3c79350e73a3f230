"""The small shards that come with the product: RFCs since 2010 and the references among them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import NamedTuple

from gniah.records.errors import MissingDependency


class RfcShards(NamedTuple):
    """The shipped shards, and the cutoff that takes all of their papers."""

    papers: Path
    citations: Path
    cutoff: datetime.date


def rfc_shards() -> RfcShards:
    """Return where the shipped shards are. Raises MissingDependency when they were not installed."""
    folder = Path(__file__).parent / "data" / "rfc"
    shards = RfcShards(folder / "papers.jsonl.gz", folder / "citations.jsonl.gz", datetime.date(2010, 1, 1))
    for path in shards[:2]:
        if not path.is_file():
            raise MissingDependency(f"{path}: this data file of gniah is missing", remedy="install gniah again")
    return shards
