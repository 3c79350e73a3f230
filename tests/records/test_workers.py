from __future__ import annotations

import os
import signal
import time

import pytest

from gniah.records.errors import EnvironmentFault
from gniah.records.workers import Workers


def test_calls_are_done_in_other_processes_in_the_order_given() -> None:
    with Workers(2, kept="all is kept") as workers:
        assert list(workers.map(abs, [-1, 2, -3])) == [1, 2, 3]
        assert workers.submit(os.getpid).result() != os.getpid()


def test_a_process_that_was_ended_from_outside_is_named_with_what_is_kept() -> None:
    with (
        pytest.raises(EnvironmentFault, match="a worker process was ended") as caught,
        Workers(1, kept="half is kept") as workers,
    ):
        workers.submit(os._exit, 9).result()
    assert caught.value.remedy == "run the same command again, with fewer --jobs; half is kept"


def test_an_error_in_the_block_ends_what_the_processes_are_at() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Workers(2, kept="") as workers:
        assert workers.submit(abs, -1).result() == 1
        for _ in range(4):
            workers.submit(time.sleep, 60)
        raise KeyboardInterrupt
    assert time.monotonic() - began < 30


def test_the_processes_do_not_answer_interrupts_and_this_one_still_does() -> None:
    with Workers(1, kept="") as workers:
        process = workers.submit(os.getpid).result()
        os.kill(process, signal.SIGINT)
        assert workers.submit(abs, -5).result() == 5
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


def test_an_error_of_a_call_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError), Workers(1, kept="") as workers:
        workers.submit(divmod, 1, 0).result()
