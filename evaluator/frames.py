"""Results as pandas frames. It needs the extra `analysis`; `docs/scoring.md` lists the columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gniah.evaluator.result_rows import (
    INTEGER,
    NUMBER,
    PLACEMENTS,
    SUMMARIES,
    TEXT,
    TRUTH,
    Row,
    as_column,
    placements,
    rows,
    summaries,
    survey,
)
from gniah.evaluator.score_files import result_files
from gniah.records.errors import MissingDependency

if TYPE_CHECKING:
    from pandas import DataFrame

_DTYPES = {TEXT: "string", INTEGER: "Int64", NUMBER: "Float64", TRUTH: "boolean"}


@dataclass(frozen=True, slots=True)
class ResultFrames:
    """The results below a folder. `docs/scoring.md` lists the columns of each frame.

    responses: a row a scored response, in the order of files and of their responses.
    summaries: a row for each reading, variable and value of a score file of ours.
    placements: a row for each place where an example is used.
    not_understood: a line for each file of which something was kept as it is, or was passed over.
    """

    responses: DataFrame
    summaries: DataFrame
    placements: DataFrame
    not_understood: tuple[str, ...]


def load_results(folder: Path | str) -> ResultFrames:
    """Return the results below a folder as frames: what gniah-eval score wrote, or the published layout.

    A folder may hold several runs; `file` tells them apart. All columns have nullable types.

    Raises MissingDependency without pandas, and InputError when there is no score file, or one that cannot be read.
    """
    _pandas()
    found = survey(Path(folder))
    responses, groups, places = (_Columns(kinds) for kinds in (found.columns, SUMMARIES, PLACEMENTS))
    seen: set[str] = set()
    for file in result_files(Path(folder)):
        responses.add(rows(file))
        groups.add(summaries(file))
        places.add(placements(file, seen))
    return ResultFrames(responses.frame(), groups.frame(), places.frame(), found.not_understood)


class _Columns:
    """The values of a frame while it grows, by column."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._values: dict[str, list[Any]] = {name: [] for name in kinds}

    def add(self, found: Iterable[Row]) -> None:
        """Take rows; a column that a row lacks is missing there."""
        for row in found:
            for name, kind in self._kinds.items():
                self._values[name].append(as_column(row.get(name), kind))

    def frame(self) -> DataFrame:
        """Return what was taken, with nullable types."""
        pandas = _pandas()
        arrays = {name: pandas.array(self._values[name], dtype=_DTYPES[kind]) for name, kind in self._kinds.items()}
        frame: DataFrame = pandas.DataFrame(arrays, columns=list(self._kinds))
        return frame


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"results as frames need pandas: {error}",
            remedy="pip install 'gniah[analysis]'; gniah-eval export needs no extra",
        ) from error
    return pandas
