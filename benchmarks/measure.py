"""Running a command and measuring it: wall seconds, and the peak memory of its largest process."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_mb: float
    output: str


def run(*command: str | Path, check: bool = True, quiet: bool = False) -> Measured:
    """Run one of our programs from this Python's environment; its standard output is kept and shown."""
    words = [str(word) for word in command]
    program = Path(sys.executable).parent / words[0]
    if not quiet:
        print("$", shlex.join(words), flush=True)
    began = time.perf_counter()
    process = subprocess.Popen([str(program), *words[1:]], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    measured = Measured(time.perf_counter() - began, usage.ru_maxrss / 1024, output)
    if not quiet:
        print(output.rstrip())
        print(f"  -> {measured.seconds:.1f} s, {measured.peak_mb:.0f} MB\n", flush=True)
    if check and process.returncode:
        raise SystemExit(f"{words[0]} ended with exit status {process.returncode}")
    return measured
