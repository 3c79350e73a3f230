"""Downloading the results of a batch: a file gets its name when all of it came, and is then not fetched again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gniah.evaluator.inference.batches.calls import Calls
from gniah.evaluator.inference.batches.interfaces import Standing
from gniah.evaluator.inference.batches.journal import Batch, Journal
from gniah.evaluator.inference.batches.results import read_lines
from gniah.evaluator.inference.failures import CUT_SHORT, Failure
from gniah.records.files import sha256_file

Notice = Callable[[str], None]


async def fetch(journal: Journal, batch: Batch, standing: Standing, calls: Calls, notice: Notice) -> list[Path]:
    """Return the files of a batch's results, downloaded where they are not there yet.

    Fewer results than the provider counts are a download that was cut, even where HTTP saw its end: it is made again.
    When the same comes twice, it is what the provider has. Raises Failure.
    """
    last: list[str] = []
    for attempt in range(1, calls.patience.attempts + 1):
        paths = [await _download(journal, batch, name, place, calls) for name, place in standing.results.items()]
        lines, whole = 0, True
        for path in paths:
            for line in read_lines(batch.shape, path):
                lines, whole = lines + 1, whole and line is not None
        if whole and lines >= standing.lines:
            return paths
        hashes = [sha256_file(path) for path in paths]
        if hashes == last:
            notice(
                f"batch {batch.short}: the provider counts {standing.lines:,} results, and {lines:,} lines came, twice "
                "the same"
            )
            return paths
        last = hashes
        for path in paths:
            path.unlink()
        await calls.pause(attempt)
    raise Failure(CUT_SHORT, "the results did not come whole")


async def _download(journal: Journal, batch: Batch, name: str, place: str, calls: Calls) -> Path:
    path = journal.result_path(batch.id, name)
    if not path.exists():
        await calls.again(lambda: calls.download(place, path))
    return path
