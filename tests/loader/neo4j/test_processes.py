from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gniah.loader.neo4j.processes import Process

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def of(child: subprocess.Popen[bytes]) -> Process:
    process = Process.of(child.pid)
    assert process is not None
    return process


def test_a_process_is_known_by_number_and_beginning(child: subprocess.Popen[bytes]) -> None:
    process = of(child)
    assert process.runs()
    assert process.is_ours()
    assert Process.from_json(process.as_json()) == process
    assert Process.from_json({"pid": child.pid}) is None


def test_another_process_of_the_same_number_is_left_alone(child: subprocess.Popen[bytes]) -> None:
    earlier = replace(of(child), began="before")
    assert not earlier.runs()
    assert earlier.end(1.0)
    assert child.poll() is None


def test_a_process_that_ends_when_asked_is_not_killed(child: subprocess.Popen[bytes]) -> None:
    assert of(child).end(10.0)
    assert child.wait() == -15


def test_a_process_that_does_not_listen_is_killed() -> None:
    child = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"up\n"
    begun = time.monotonic()
    assert not of(child).end(0.5)
    assert 0.5 <= time.monotonic() - begun < 10
    assert child.wait() == -9
    child.stdout.close()


def test_a_process_that_only_waits_to_be_reaped_does_not_run() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process = of(child)
    child.kill()
    assert process.wait(10.0)
    assert Process.of(child.pid) is None
    child.communicate()
