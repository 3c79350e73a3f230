"""Makes the scripted provider importable whatever the import mode, under one name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if "inference_provider" not in sys.modules:
    spec = importlib.util.spec_from_file_location("inference_provider", Path(__file__).with_name("provider.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["inference_provider"] = module
    spec.loader.exec_module(module)
