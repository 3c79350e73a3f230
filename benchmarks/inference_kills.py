"""Kill a run of models over a network again and again, at random moments, and look that nothing is lost or paid twice.

    python benchmarks/inference_kills.py --kills 200

It is the test of the suite with more kills: each request has one answer in the end, none that was on disk is asked
again, and no more is asked twice than was under way at a kill.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

TEST = Path(__file__).resolve().parent.parent / "tests" / "evaluator" / "inference" / "test_kills.py"


def main() -> int:
    """Run the test with as many kills as asked for, and say how long it took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    kills = parser.parse_args().kills
    began = time.monotonic()
    words = [sys.executable, "-P", "-m", "pytest", "-q", "-s", str(TEST)]
    code = subprocess.run(words, env={**os.environ, "GNIAH_KILLS": str(kills)}, check=False).returncode
    print(f"{kills} kills, {time.monotonic() - began:.0f} s, {'passed' if code == 0 else 'FAILED'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
