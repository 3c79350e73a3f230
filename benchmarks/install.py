"""Measure what installing gniah costs: seconds and megabytes of a fresh environment.

    python benchmarks/install.py [--extra dev] [--no-cache] [--python PYTHON]

The project gives itself 60 s and 450 MB for the core. The exit status is 1 when that is exceeded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS = 60
MOST_MEGABYTES = 450
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], help="an extra to install too; may be repeated")
    parser.add_argument("--no-cache", action="store_true", help="download everything again")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        begun = time.monotonic()
        subprocess.run([options.python, "-m", "venv", environment], check=True)
        made = time.monotonic()
        wanted = str(ROOT) + (f"[{','.join(options.extra)}]" if options.extra else "")
        cache = ["--no-cache-dir"] if options.no_cache else []
        pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", *cache, wanted], check=True)
        seconds = time.monotonic() - begun
        megabytes = size(environment) / 2**20
    print(f"{seconds:.0f} s ({made - begun:.0f} s of it for the empty environment), {megabytes:.0f} MB")
    if not options.extra and (seconds > MOST_SECONDS or megabytes > MOST_MEGABYTES):
        sys.exit(1)


def size(folder: Path) -> int:
    """Return the bytes that a folder takes on disk, as du counts them."""
    return sum(path.lstat().st_blocks * 512 for path in _below(folder))


def _below(folder: Path) -> list[Path]:
    return [Path(at) / name for at, folders, files in os.walk(folder) for name in (*folders, *files)]


if __name__ == "__main__":
    main()
