"""Indexing made-up passages and drawing from them by titles: seconds of clock and processor, disk, peak memory.

    python benchmarks/passages.py [--passages 200000] [--titles 200] [--draws 1500,7000] [--back-end tantivy|pyserini]
                                  [--work FOLDER]

A passage has 100 words of a vocabulary of 200,000, the n-th as common as 1 / n. A title has ten words as common as
there, with no stop words among them, so it is harder than a real one: its words stand in more passages.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from gniah.generator.retrieval import PassageCorpus, build_index
from gniah.generator.retrieval.back_ends import FOLDERS
from gniah.records.corpora import CORPUS_SCHEMA, CorpusWriter, packed
from gniah.records.manifests import Manifest
from gniah.records.texts import CLEANING_RULES

VOCABULARY = 200_000
AT_ONCE = 1000


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def zipf_words(count: int, seed: int, length: int) -> list[str]:
    """Return texts of so many words."""
    draws = np.random.default_rng(seed)
    steps = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    numbers = np.searchsorted(steps / steps[-1], draws.random((count, length)))
    return [" ".join(f"w{number:x}q" for number in row) for row in numbers.tolist()]


def make_corpus(folder: Path, passages: int) -> None:
    folder.mkdir()
    with CorpusWriter(folder, "wikipedia") as writer:
        for begin in range(0, passages, AT_ONCE):
            for place, text in enumerate(zipf_words(min(AT_ONCE, passages - begin), begin, 100), start=begin + 1):
                writer.add(packed(str(place), hashlib.sha256(text.encode()).hexdigest(), [text], 0))
        facts = writer.finish()
    content = {"kind": "wikipedia", "source": "made up", "licence": "none", "rules": {"cleaning": CLEANING_RULES}}
    Manifest(CORPUS_SCHEMA, {**content, **facts}).write(folder)


def index(folder: Path, back_end: str) -> None:
    clock, processor = time.perf_counter(), time.process_time()
    build_index(folder, back_end=back_end)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    size = sum(path.stat().st_size for path in (folder / FOLDERS[back_end]).rglob("*")) / 1e6
    print(f"indexed: {clock:.1f} s, {processor:.1f} s of processor, {size:.1f} MB, peak {peak():.0f} MB")


def draw(folder: Path, titles: int, draws: int) -> None:
    began = time.perf_counter()
    corpus = PassageCorpus(folder)
    opened = time.perf_counter() - began
    queries = zipf_words(titles, 1, 10)
    processor = time.process_time()
    for query in queries:
        next(corpus.draws([query]), None)
    each = 1000 * (time.process_time() - processor) / titles
    print(f"the first 16 of a title: {each:.1f} ms of processor")
    processor = time.process_time()
    found = len(list(islice(corpus.draws(queries), draws)))
    processor = time.process_time() - processor
    print(f"opened: {opened:.3f} s")
    print(f"{found} draws by {titles} titles: {processor:.2f} s of processor, peak {peak():.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--titles", type=int, default=200)
    parser.add_argument("--draws", default="1500,7000")
    parser.add_argument("--back-end", choices=tuple(FOLDERS), default="tantivy")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step == "index":
        index(given.work, given.back_end)
        return
    if given.step:
        draw(given.work, given.titles, int(given.step))
        return
    with tempfile.TemporaryDirectory(dir=given.work) as name:
        folder = Path(name) / "corpus"
        make_corpus(folder, given.passages)
        for step in ("index", *given.draws.split(",")):  # each in a process of its own, for its peak
            words = ("--work", folder, "--titles", given.titles, "--back-end", given.back_end, "--step", step)
            subprocess.run([sys.executable, __file__, *map(str, words)], check=True)


if __name__ == "__main__":
    main()
