"""Synthetic S2AG-shaped shards: power-law in-degrees, communities, optional hubs. Deterministic for a seed.

python benchmarks/synthetic.py --papers 1000000 --citations 3000000 --out shards
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import numpy as np

COPY = 0.6  # how often a reference copies the target of an earlier one: the copy model of preferential attachment
CROSS = 0.05  # how often a reference leaves its community
SHARDS = 4


def citations(papers: int, count: int, communities: int, hubs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (citing, cited) as node numbers, every cited paper older than the citing one."""
    rng = np.random.default_rng(seed)
    community = rng.integers(communities, size=papers)
    citing = np.sort(rng.integers(1, papers, size=count))
    # A base target: an older paper of the same community, by its rank among that community's papers.
    order = np.argsort(community, kind="stable")
    starts = np.searchsorted(community[order], np.arange(communities + 1))
    rank = np.empty(papers, dtype=np.int64)
    rank[order] = np.arange(papers) - starts[community[order]]
    home = community[citing]
    older = rank[citing]
    base = order[starts[home] + (rng.random(count) * np.maximum(older, 1)).astype(np.int64)]
    outside = (rng.random(count) < CROSS) | (older == 0)
    base[outside] = (rng.random(int(outside.sum())) * citing[outside]).astype(np.int64)
    if hubs:
        to_hub = rng.random(count) < 0.05
        base[to_hub] = rng.integers(hubs, size=int(to_hub.sum()))
    # Copying: point at an earlier reference of the same community, and follow pointers to a base.
    by_home = np.argsort(home, kind="stable")
    first = np.searchsorted(home[by_home], np.arange(communities + 1))
    place = np.empty(count, dtype=np.int64)
    place[by_home] = np.arange(count) - first[home[by_home]]
    pointer = by_home[first[home] + (rng.random(count) * np.maximum(place, 1)).astype(np.int64)]
    own = (rng.random(count) >= COPY) | (place == 0)
    pointer[own] = np.flatnonzero(own)
    while not np.array_equal(pointer, following := pointer[pointer]):
        pointer = following
    cited = base[pointer]
    kept = cited < citing
    return citing[kept], cited[kept]


def write_shards(folder: Path, papers: int, count: int, *, communities: int = 8, hubs: int = 0, seed: int = 7) -> None:
    """Write `papers-*.gz` and `citations-*.gz` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed + 1)
    ids = np.sort(rng.choice(290_000_000, size=papers, replace=False)) + 1
    words = [f"{a}{b}{c}" for a in "bcdfghklmnprst" for b in "aeiou" for c in ("l", "nd", "rm", "st", "tion", "x")]
    chosen = rng.integers(len(words), size=(papers, 9))
    days = rng.integers(1, 29, size=papers)
    months = rng.integers(4, 11, size=papers)
    people = rng.integers(400_000, size=(papers, 3))
    for shard in range(SHARDS):
        with gzip.open(folder / f"papers-{shard}.gz", "wt", compresslevel=1, encoding="utf-8", newline="\n") as stream:
            for paper in range(shard, papers, SHARDS):
                title = " ".join(words[word] for word in chosen[paper]).capitalize()
                row = {
                    "corpusid": int(ids[paper]),
                    "externalids": {"ArXiv": None, "CorpusId": str(ids[paper])},
                    "title": title,
                    "authors": [{"authorId": str(one), "name": f"A. Person{one}"} for one in people[paper].tolist()],
                    "venue": "Journal of Synthetic Results" if paper % 3 else "",
                    "year": 2026,
                    "publicationdate": f"2026-{months[paper]:02d}-{days[paper]:02d}",
                    "journal": None,
                }
                stream.write(json.dumps(row, separators=(",", ":")) + "\n")
    citing, cited = citations(papers, count, communities, hubs, seed)
    one, other = ids[citing], ids[cited]
    for shard in range(SHARDS):
        path = folder / f"citations-{shard}.gz"
        with gzip.open(path, "wt", compresslevel=1, encoding="utf-8", newline="\n") as stream:
            for number in range(shard, len(one), SHARDS):
                stream.write(
                    f'{{"citationid":{number + 1},"citingcorpusid":{one[number]},"citedcorpusid":{other[number]},'
                    f'"isinfluential":false,"contexts":null,"intents":null}}\n'
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--papers", type=int, default=300_000)
    parser.add_argument("--citations", type=int, default=900_000)
    parser.add_argument("--communities", type=int, default=8)
    parser.add_argument("--hubs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write_shards(
        given.out,
        given.papers,
        given.citations,
        communities=given.communities,
        hubs=given.hubs,
        seed=given.seed,
    )


if __name__ == "__main__":
    main()
