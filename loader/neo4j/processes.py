"""Processes by number and start, so that a number that was given to another process is never taken for ours."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gniah.records.errors import EnvironmentFault

_HAS_PROC = Path("/proc/self/stat").exists()  # Linux; elsewhere ps is asked


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its number, and a mark of when it began that no other process of this number has."""

    pid: int
    began: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """Return the running process of a number, or None."""
        began = _began(pid)
        return None if began is None else cls(pid, began)

    def runs(self) -> bool:
        """Say whether it still runs: this process, not another that has its number now."""
        return _began(self.pid) == self.began

    def is_ours(self) -> bool:
        """Say whether it belongs to the user that this program runs as."""
        if _HAS_PROC:
            try:
                return Path(f"/proc/{self.pid}").stat().st_uid == os.geteuid()
            except OSError:
                return False
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    def end(self, patience: float) -> bool:
        """Ask it to end, wait, and kill it when it has not ended after `patience` seconds; say whether it ended itself.

        Raises EnvironmentFault when the system does not allow it, or the process outlives its killing.
        """
        for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 15.0)):
            if self.runs():
                self._send(number)
            if self.wait(seconds):
                return number == signal.SIGTERM
        raise EnvironmentFault(f"process {self.pid} does not end", remedy="look at it with ps")

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, `seconds` at most; say whether it has."""
        limit = time.monotonic() + seconds
        while self.runs():
            if time.monotonic() >= limit:
                return False
            time.sleep(0.1)
        return True

    def _send(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            raise EnvironmentFault(
                f"process {self.pid} belongs to another user", remedy="let the user who started it stop it"
            ) from None

    def as_json(self) -> dict[str, Any]:
        """Return it as it stands in a file."""
        return {"pid": self.pid, "began": self.began}

    @classmethod
    def from_json(cls, value: object) -> Process | None:
        """Return what stands in a file, or None when it is no process."""
        if isinstance(value, dict) and isinstance(value.get("pid"), int) and isinstance(value.get("began"), str):
            return cls(value["pid"], value["began"])
        return None


def _began(pid: int) -> str | None:
    """Return when a process began, or None when there is none or it has ended and only waits to be reaped."""
    if _HAS_PROC:
        return _began_by_proc(pid)
    done = subprocess.run(  # noqa: S603
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607  (of the system; its place differs)
        check=False,
        capture_output=True,
        text=True,
    )
    state, _, began = done.stdout.strip().partition(" ")
    return None if done.returncode != 0 or not state or state.startswith("Z") else began.strip()


def _began_by_proc(pid: int) -> str | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The second field is the program's name in brackets, which may hold anything. The state is next, the start is 20th.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else f"{boot}:{fields[19]}"
