"""The bottom room: what crosses a file boundary, and nothing that knows another room.

Records, canonical JSON, random streams, manifests, files that appear whole, errors with exit codes,
and the registry of benchmark families.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.records.canonical import canonical_json, digest
    from gniah.records.errors import (
        BusyError,
        CheckFailed,
        EnvironmentFault,
        GniahError,
        ImpossibleRequest,
        InputError,
        MissingDependency,
        StoreError,
        UsageFault,
    )
    from gniah.records.examples import Example, Option, examples_path, read_examples, write_examples
    from gniah.records.families import Family, Solution, Task, family_of
    from gniah.records.manifests import Manifest
    from gniah.records.papers import Paper
    from gniah.records.responses import Request, Response, read_responses
    from gniah.records.streams import Stream
    from gniah.records.titles import normalised_title
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "canonical": ("canonical_json", "digest"),
            "errors": (
                "BusyError",
                "CheckFailed",
                "EnvironmentFault",
                "GniahError",
                "ImpossibleRequest",
                "InputError",
                "MissingDependency",
                "StoreError",
                "UsageFault",
            ),
            "examples": ("Example", "Option", "examples_path", "read_examples", "write_examples"),
            "families": ("Family", "Solution", "Task", "family_of"),
            "manifests": ("Manifest",),
            "papers": ("Paper",),
            "responses": ("Request", "Response", "read_responses"),
            "streams": ("Stream",),
            "titles": ("normalised_title",),
        },
    )

__all__ = [
    "BusyError",
    "CheckFailed",
    "EnvironmentFault",
    "Example",
    "Family",
    "GniahError",
    "ImpossibleRequest",
    "InputError",
    "Manifest",
    "MissingDependency",
    "Option",
    "Paper",
    "Request",
    "Response",
    "Solution",
    "StoreError",
    "Stream",
    "Task",
    "UsageFault",
    "canonical_json",
    "digest",
    "examples_path",
    "family_of",
    "normalised_title",
    "read_examples",
    "read_responses",
    "write_examples",
]
