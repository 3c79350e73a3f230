"""What the lists beside a file of examples say of it: their settings, as the generator left them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gniah.evaluator.scoring import CountRange
from gniah.records.errors import InputError
from gniah.records.families import families, load
from gniah.records.files import read_json

_SETTINGS = "cutoff_date=*/**/experiment.jsonl.settings.json"


def list_settings(examples: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of each list below the folder of a file of examples; what is not understood is passed over."""
    for path in sorted(examples.parent.glob(_SETTINGS)):
        try:
            settings = read_json(path).get("list")
        except InputError:
            continue
        if isinstance(settings, dict):
            yield settings


def count_range_of(examples: Path) -> CountRange | None:
    """Return the range of right answers that the lists beside a file of examples allow, or None when none says."""
    scorers = [load(family.scorer) for family in families().values()]
    ranges = [
        found
        for settings in list_settings(examples)
        for scorer in scorers
        if (found := scorer.count_range(settings)) is not None
    ]
    if not ranges:
        return None
    return (min(low for low, _ in ranges), max(high for _, high in ranges))
