from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

# Names whose order by folder differs from that of the whole names: `-` < `.` < `/`.
FILES: Mapping[str, bytes] = {
    "a/z.c": b"int z;\n\nint y;\n",
    "a.h": b"#define A\n",
    "a-b/x.rs": b"fn x() {}\n\nTitle: no\n\n\n\nfn y() {}\n",
    "b/deep/k.S": "# \u00fc\n".encode(),
    "gen.c": b"/* Automatically generated, do not edit */\nint a;\n",
    "nul.h": b"int\0;\n",
    "latin.c": b"int \xfc;\n",
    "empty.c": b"\n",
    "README": b"not code\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """Write files below a folder of the test's own, and return it."""

    def write(name: str = "tree", files: Mapping[str, bytes] = FILES) -> Path:
        folder = tmp_path / name
        for inner, content in files.items():
            path = folder / inner
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder

    return write


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Write a tar archive of files in the order given, members of other kinds among them, and return its path."""

    def write(
        name: str = "tree.tar",
        files: Mapping[str, bytes] | list[tuple[str, bytes]] = FILES,
        mode: str = "w",
        top: str = "",
        more: tuple[tarfile.TarInfo, ...] = (),
    ) -> Path:
        path = tmp_path / name
        with tarfile.open(path, mode) as opened:  # type: ignore[call-overload]
            for inner, content in files.items() if isinstance(files, Mapping) else files:
                member = tarfile.TarInfo(f"{top}{inner}")
                member.size = len(content)
                opened.addfile(member, io.BytesIO(content))
            for member in more:
                opened.addfile(member)
        return path

    return write
