"""kill -9 at many random moments in each step: does the next call complete, and with the same bytes?

    python benchmarks/stops.py [--kills 100] [-k EXPRESSION]

It runs the tests of stops with that many kills a step, and prints a table. A step fails on the first difference.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("tests/test_stops.py", "tests/loader/test_stops.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("-k", dest="chosen", default="kill_at_any_moment")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        sheet = Path(place) / "sheet.jsonl"
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", given.chosen, *TESTS],
            cwd=ROOT,
            env={**os.environ, "GNIAH_KILLS": str(given.kills), "GNIAH_KILLS_REPORT": str(sheet)},
            check=False,
        )
        seconds = time.perf_counter() - began
        rows = [json.loads(line) for line in sheet.read_bytes().splitlines()] if sheet.exists() else []
    line = "{:<18} {:>5}  {:>13}  {:>9}  {:>19}  {:>8}"
    print()
    print(line.format("step", "kills", "moments, s", "completed", "found finished work", "too late"))
    for row in rows:
        kills, moments = row["kills"], f"{min(row['moments']):.2f}-{max(row['moments']):.2f}"
        counts = (f"{kills}/{kills}", row["found finished work"], row["too late"])
        print(line.format(row["step"], kills, moments, *counts))
    print(f"\n{'all completed with the same bytes' if not done.returncode else 'FAILED: see above'}; {seconds:.0f} s")
    raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
