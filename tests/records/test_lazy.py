from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOM = """
from gniah.records.lazy import lazy_names
__getattr__, __dir__ = lazy_names(__name__, {"noun": ("Thing",), "broken": ("Other",)})
"""


def run(folder: Path, code: str) -> str:
    (folder / "room").mkdir()
    (folder / "room" / "__init__.py").write_text(ROOM, encoding="utf-8")
    (folder / "room" / "noun.py").write_text("class Thing: pass\n", encoding="utf-8")
    (folder / "room" / "broken.py").write_text("import no_such_library\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=True
    )
    return done.stdout


def test_a_name_brings_its_module_when_it_is_used_and_stays(tmp_path: Path) -> None:
    code = """
import sys, room
print("room.noun" in sys.modules, "Thing" in dir(room), "Thing" in vars(room))
from room import Thing
print("room.noun" in sys.modules, Thing is room.noun.Thing, vars(room)["Thing"] is Thing)
"""
    assert run(tmp_path, code) == "False True False\nTrue True True\n"


def test_modules_are_found_as_before_and_a_missing_library_is_told_as_such(tmp_path: Path) -> None:
    code = """
from room import noun
print(noun.__name__)
import room
print(hasattr(room, "nonsense"))
try:
    room.Other
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run(tmp_path, code) == "room.noun\nFalse\nno_such_library\n"
