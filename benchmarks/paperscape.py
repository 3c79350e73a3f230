"""Trial on a real graph: arXiv papers of 1996 and the citations among them (Paperscape).

    python benchmarks/paperscape.py --graph FOLDER --code FOLDER --books FOLDER --out work [--small]

Pools of 1,000 paths for k = 4, 8, 16, 32; 200 examples at 32k tokens, 60 at 128k with multiple-choice where four paths
can stand together, 5 at 200k. Every example verified from its text, every pool audited. Prints times, peak memory,
restarts, refused candidates, and how full the prompts are. `--small` builds a twentieth of the examples.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from measure import run

CUTOFF = "1996-01-01"


def fullness(bench: Path) -> None:
    by_kind: dict[str, list[float]] = {}
    stopped: dict[str, int] = {}
    with (bench / "pool.jsonl").open(encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            config = record["config"]
            full = max(record["token_counts"].values()) / config["context_length"]
            by_kind.setdefault(config["distractor_type"], []).append(full)
            stopped[record["stopped"]] = stopped.get(record["stopped"], 0) + 1
    for kind, values in sorted(by_kind.items()):
        mean, least = statistics.fmean(values), min(values)
        print(f"  {kind}: {len(values)} prompts, on average {mean:.1%} full, the least {least:.1%}")
    print(f"  packing stopped: {stopped}\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", type=Path, required=True)
    parser.add_argument("--code", type=Path, required=True)
    parser.add_argument("--books", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    out, share = given.out, 20 if given.small else 1
    graph, store, paths = out / "graph", out / "store", out / "paths"
    run(
        *("gniah-load", "filter", "--papers", given.graph / "papers.jsonl.gz"),
        *("--citations", given.graph / "citations.jsonl.gz", "--cutoff", CUTOFF, "--out", graph),
    )
    run("gniah-load", "import", graph, "--store", store)
    run("gniah-load", "stats", "--store", store)
    run("gniah-gen", "paths", "--store", store, "--out", paths, "--depths", "4,8,16,32", "--count", "1000")
    corpora = ("--corpus", f"code={given.code}", "--corpus", f"books={given.books}")
    types = "code,books,disjoint-component"
    lists = {
        "at-32k": (200 // share, 32_000, "4,8", "30-60", types, corpora),
        "at-128k": (60 // share, 128_000, "4,8,16,32", "100-250", "code,books", corpora),
        "at-128k-components": (12 // min(share, 6), 128_000, "4", "150-250", "disjoint-component", ()),
        "at-200k": (max(5 // share, 1), 200_000, "4,8,16,32", "100-250", "code,books", corpora),
    }
    for name, (count, length, depths, sizes, kinds, given_corpora) in lists.items():
        bench = out / name
        run(
            *("gniah-gen", "examples", "--store", store, "--paths", paths, "--out", bench, "--name", name),
            *("--count", str(count), "--context-length", str(length), "--depths", depths, "--sizes", sizes),
            *("--distractors", kinds, *given_corpora, "--jobs", given.jobs, "--skip-impossible"),
        )
        fullness(bench)
        run("gniah-gen", "verify", bench, "--jobs", given.jobs)
        run("gniah-gen", "audit", bench, "--store", store)


if __name__ == "__main__":
    main()
