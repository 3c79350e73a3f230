"""Makes the scripted providers importable whatever the import mode, each under one name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

for _file in ("provider", "batch_provider", "batch_toys"):
    if f"inference_{_file}" not in sys.modules:
        spec = importlib.util.spec_from_file_location(f"inference_{_file}", Path(__file__).with_name(f"{_file}.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[f"inference_{_file}"] = module
        spec.loader.exec_module(module)
