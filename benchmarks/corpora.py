"""Making corpora and reading them in place: seconds of clock and processor, peak memory, and the same bytes again.

    python benchmarks/corpora.py [--code LINUX.tar.xz] [--tree LINUX] [--essays FOLDER] [--books FOLDER]
        [--wikipedia FILE.jsonl.gz] [--passages 3000000] [--work FOLDER]

Each source that is named becomes a corpus, which is checked and then read by drawing documents at random; --tree is the
unpacked --code and must give the same bytes. --passages makes so many rows of 100 words (0.65 GB a million) and a
corpus of them, for how memory grows with size.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure

from gniah.records.files import json_line, sha256_file
from gniah.records.streams import Stream

WORDS = ("sea", "calm", "ship", "north", "harbour", "letter", "stone", "river", "history", "king", "garden")
KINDS = ("code", "essays", "books", "wikipedia")
READER = """
import sys, time
from pathlib import Path
from gniah.generator import DiskCorpus
from gniah.records.streams import Stream

def resident(word):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(word)).split()[1]) / 1024

began = time.perf_counter()
corpus = DiskCorpus(Path(sys.argv[1]))
opened, before = time.perf_counter() - began, resident("VmRSS")
count = size = 0
began = time.perf_counter()
for number in Stream("benchmark", "read").without_repeats(len(corpus)):
    size += sum(map(len, corpus.document(number).blocks))
    count += 1
    if time.perf_counter() - began > 20:
        break
seconds = time.perf_counter() - began
print(f"  opened in {1000 * opened:.1f} ms; {count:,} documents at random, {size / 1e6:,.0f} MB, "
      f"{1e6 * seconds / count:.0f} us each; memory {before:.0f} MB when opened, at most {resident('VmHWM'):.0f} MB")
"""


def passages(path: Path, count: int) -> None:
    """Write so many made-up passages of 100 words, the same every time."""
    draws = Stream("benchmark", "passages")
    stock = [" ".join(WORDS[draws.below(len(WORDS))] for _ in range(50)) for _ in range(1000)]
    with path.open("wb") as stream:
        for number in range(count):
            text = f"{stock[number % 997]}, {stock[number % 991]}."
            stream.write(json_line({"id": f"{number}-0", "title": f"Page {number}", "contents": text}))


def processor_seconds() -> float:
    """Return what the programs that have ended took of the processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(what: str, *words: str | Path) -> None:
    before = processor_seconds()
    done = measure.run(*words, quiet=True)
    print(
        f"{done.output}  {what} in {done.seconds:.1f} s, {processor_seconds() - before:.1f} s of processors, ", end=""
    )
    print(f"peak {done.peak_mb:,.0f} MB", flush=True)


def build(kind: str, source: Path, out: Path, *more: str) -> None:
    print(f"\n{kind} from {source.name} {' '.join(more)}")
    run("made", "gniah-load", "corpus", kind, "--from", source, "--out", out, *more)


def look(out: Path) -> None:
    run("checked", "gniah-load", "corpus", "check", out)
    subprocess.run([sys.executable, "-c", READER, str(out)], check=True)


def same(one: Path, other: Path) -> None:
    names = ("texts.bin", "blocks.bin", "names.bin", "documents.bin")
    equal = all(sha256_file(one / name) == sha256_file(other / name) for name in names)
    print("  the same bytes" if equal else "  OTHER BYTES", flush=True)
    if not equal:
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for kind in (*KINDS, "tree", "work"):
        parser.add_argument(f"--{kind}", type=Path)
    parser.add_argument("--passages", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.work) as name:
        work = Path(name)
        for kind in KINDS:
            source: Path | None = getattr(given, kind)
            if source is not None:
                build(kind, source, work / kind)
                look(work / kind)
                build(kind, source, work / f"{kind}-2", "--jobs", "2")
                same(work / kind, work / f"{kind}-2")
        if given.tree is not None:
            build("code", given.tree, work / "tree")
            if given.code is not None:
                same(work / "code", work / "tree")
        if given.passages:
            began = time.perf_counter()
            passages(work / "passages.jsonl", given.passages)
            print(f"\n{given.passages:,} passages made up in {time.perf_counter() - began:.0f} s", flush=True)
            build("wikipedia", work / "passages.jsonl", work / "many")
            look(work / "many")


if __name__ == "__main__":
    main()
