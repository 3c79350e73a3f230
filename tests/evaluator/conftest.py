"""Makes the toys importable whatever the import mode, under one name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if "evaluator_toys" not in sys.modules:
    spec = importlib.util.spec_from_file_location("evaluator_toys", Path(__file__).with_name("toys.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluator_toys"] = module
    spec.loader.exec_module(module)
