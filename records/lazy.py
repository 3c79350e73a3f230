"""Names of a package that are imported when they are first used, so that importing the package costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package; `modules` says which of its modules has which names.

    Type checkers do not see through this, so the package names them once more where only they look:

        if TYPE_CHECKING:
            from gniah.room.noun import Thing
        else:
            __getattr__, __dir__ = lazy_names(__name__, {"noun": ("Thing",)})
    """
    places = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def attribute(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return attribute, names
