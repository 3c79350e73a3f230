"""Scored responses as a Parquet file. DuckDB writes it, so no extra is needed."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from gniah.evaluator.ledger import json_bytes
from gniah.evaluator.result_rows import as_column, rows, survey
from gniah.evaluator.score_files import result_files
from gniah.records.errors import EnvironmentFault, UsageFault
from gniah.records.files import locked_place, machine_trouble, sync_folder

_SUFFIX = ".parquet"
_LONGEST_ROW = 1 << 26


@dataclass(frozen=True, slots=True)
class Exported:
    """How many rows were written, and a line for each file of which not all was understood."""

    rows: int
    not_understood: tuple[str, ...]


def export(folder: Path, target: Path) -> Exported:
    """Write the scored responses below a folder into a Parquet file, with the columns of `load_results`.

    Score files are read one at a time. The same results give the same bytes with one version of DuckDB.

    Raises UsageFault unless the file's name ends in `.parquet`, and InputError for score files that cannot be read.
    """
    if target.suffix != _SUFFIX:
        raise UsageFault(f"--out {target}: the name of a Parquet file ends in {_SUFFIX}")
    found = survey(folder)
    with locked_place(target), tempfile.TemporaryDirectory(prefix="gniah-export-") as work:
        staged = Path(work) / "rows.jsonl"
        count = 0
        with machine_trouble(staged), staged.open("wb") as stream:
            for file in result_files(folder):
                for row in rows(file):
                    values = {name: as_column(row.get(name), kind) for name, kind in found.columns.items()}
                    stream.write(json_bytes(values) + b"\n")
                    count += 1
        _write(staged, found.columns, target)
    return Exported(count, found.not_understood)


def _write(staged: Path, columns: Mapping[str, str], target: Path) -> None:
    part = target.with_name(f".{target.name}.part")
    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        with duckdb.connect(":memory:", config=settings) as engine:
            engine.execute(
                "COPY (SELECT * FROM read_json($staged, format = 'newline_delimited', columns = $columns, "
                "maximum_object_size = $longest)) TO $target (FORMAT parquet, COMPRESSION zstd)",
                {
                    "staged": glob.escape(str(staged)),
                    "columns": dict(columns),
                    "longest": _LONGEST_ROW,
                    "target": str(part),
                },
            )
        with machine_trouble(target):
            part.replace(target)
            sync_folder(target.parent)
    except duckdb.Error as error:
        first = str(error).partition("\n")[0]
        raise EnvironmentFault(f"{target}: {first}", remedy="check the disk and the path") from None
    finally:
        part.unlink(missing_ok=True)
