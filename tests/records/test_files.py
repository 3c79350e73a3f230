from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gniah.records.errors import BusyError, EnvironmentFault, InputError
from gniah.records.files import (
    json_line,
    locked_folder,
    locked_place,
    read_json,
    read_json_lines,
    remove_leftovers,
    sha256_file,
    whole_file,
    whole_folder,
    write_json,
)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=False)


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """A place that cannot be written to: a read-only mount for root, a folder without the right for others."""
    place = tmp_path / "fixed"
    place.mkdir()
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no such rights")
    if os.geteuid() != 0:
        place.chmod(0o500)
        yield place
        place.chmod(0o700)
        return
    command = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a read-only disk cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=False)


def test_a_whole_file_has_its_name_only_when_it_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with whole_file(path) as stream:
        stream.write(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"
    assert names(path.parent) == ["file"]


def test_a_whole_file_replaces_another_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with whole_file(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(type(error)), whole_file(path) as stream:
        stream.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_full_disk_is_an_environment_fault_and_leaves_nothing(tiny_disk: Path) -> None:
    path = tiny_disk / "file"
    with pytest.raises(EnvironmentFault, match="the disk is full") as caught, whole_file(path) as stream:
        for _ in range(100):
            stream.write(b"x" * 4096)
    assert caught.value.exit_code == 7
    assert caught.value.remedy is not None
    assert "free some space" in caught.value.remedy
    assert names(tiny_disk) == []
    with whole_file(path) as stream:
        stream.write(b"fits")
    assert path.read_bytes() == b"fits"


def test_a_full_disk_leaves_the_old_file(tiny_disk: Path) -> None:
    write_json(tiny_disk / "file.json", {"old": 1})
    with pytest.raises(EnvironmentFault, match="the disk is full"):
        write_json(tiny_disk / "file.json", {"new": "x" * 200_000})
    assert read_json(tiny_disk / "file.json") == {"old": 1}
    assert names(tiny_disk) == ["file.json"]


def test_a_read_only_place_is_an_environment_fault(read_only_disk: Path) -> None:
    for attempt in (
        lambda: write_json(read_only_disk / "file.json", {}),
        lambda: write_json(read_only_disk / "new" / "file.json", {}),
        lambda: locked_folder(read_only_disk / "new").__enter__(),
        lambda: locked_place(read_only_disk / "new").__enter__(),
    ):
        with pytest.raises(EnvironmentFault, match=r"the file system is read-only|permission denied"):
            attempt()


def test_a_file_in_the_place_of_a_folder_is_an_environment_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EnvironmentFault, match="file: this exists already"):
        write_json(tmp_path / "file" / "inner.json", {})
    with pytest.raises(EnvironmentFault, match="a part of this path is a file, not a folder"):
        write_json(tmp_path / "file" / "folder" / "inner.json", {})
    with pytest.raises(EnvironmentFault, match="this is a folder, not a file"):
        read_json(tmp_path)


def test_a_whole_folder_appears_at_once_and_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with whole_folder(path) as part:
        (part / "a").write_bytes(b"1")
        assert not path.exists()
    assert names(path) == ["a"]
    with whole_folder(path) as part:
        (part / "b").write_bytes(b"2")
        assert names(path) == ["a"]
    assert names(path) == ["b"]
    assert names(tmp_path) == ["folder"]


def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with whole_folder(path) as part:
        (part / "a").write_bytes(b"1")
    with pytest.raises(RuntimeError), whole_folder(path) as part:
        (part / "b").write_bytes(b"2")
        raise RuntimeError
    assert names(path) == ["a"]
    assert names(tmp_path) == ["folder"]


def test_leftovers_of_a_name_are_removed_and_of_no_other(tmp_path: Path) -> None:
    for name in (".a[1].0f.part", ".a[1].0f.old", ".a1.0f.part", ".b.0f.part", "a[1]", ".a[1].note"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".a[1].1f.part").mkdir()
    (tmp_path / ".a[1].1f.part" / "x").write_bytes(b"")
    assert remove_leftovers(tmp_path / "a[1]") == 3
    assert names(tmp_path) == [".a1.0f.part", ".a[1].note", ".b.0f.part", "a[1]"]


def test_sha256_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256_file(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(InputError, match="no such file or folder"):
        sha256_file(tmp_path / "other")


def test_json_line_keeps_the_order_of_keys_and_is_one_line() -> None:
    assert json_line({"b": "ü\u2028\n", "a": 1}) == '{"b":"ü\u2028\\n","a":1}\n'.encode()


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1e", "\r"])
def test_lines_end_at_a_newline_byte_only(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"".join(json_line({"n": n, "text": f"a{odd}b"}) for n in (1, 2)))
    assert list(read_json_lines(path)) == [(1, {"n": 1, "text": f"a{odd}b"}), (2, {"n": 2, "text": f"a{odd}b"})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a":1}\n{"a":2}', r":2: the last line has no newline: the file was cut"),
        (b'{"a":1}\n{"a":', r":2: the last line has no newline: the file was cut"),
        (b'{"a":1}\n{"a":\n', r":2: not JSON: "),
        (b'{"a":1}\n\n', r":2: not JSON: "),
        (b'{"a":"\xff"}\n', r":1: not UTF-8: "),
        (b'{"a":1}\n[1]\n', r":2: expected a JSON object, found list"),
        (b"null\n", r":1: expected a JSON object, found NoneType"),
        (b'"text"\n', r":1: expected a JSON object, found str"),
        (b'\xef\xbb\xbf{"a":1}\n', r":1: not JSON: Unexpected UTF-8 BOM"),
        (b'{"a":' + b"1" * 5000 + b"}\n", r":1: not JSON: Exceeds the limit"),
        (b'{"a":' + b"[" * 200_000 + b"\n", r":1: nested too deeply"),
        (b'{"a":1}\x00\n', r":1: not JSON: Extra data"),
    ],
)
def test_a_broken_line_is_named_by_file_and_number(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_json_lines(path))
    assert caught.value.message.startswith(f"{path}:")


def test_lines_before_a_broken_one_are_given(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}\n{"a"')
    found = []
    with contextlib.suppress(InputError):
        found.extend(number for number, _ in iter(read_json_lines(path)))
    lines = read_json_lines(path)
    assert [next(lines)[1]["a"], next(lines)[1]["a"]] == [1, 2]


def test_an_empty_file_has_no_lines_and_a_missing_one_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert list(read_json_lines(tmp_path / "empty")) == []
    with pytest.raises(InputError, match="missing: no such file or folder"):
        list(read_json_lines(tmp_path / "missing"))


HOLDER = """
import sys
from pathlib import Path
from gniah.records.files import locked_folder, locked_place
hold = {"folder": locked_folder, "place": locked_place}[sys.argv[1]]
with hold(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def held_by_another(kind: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, kind, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize("kind", ["folder", "place"])
def test_a_second_process_is_refused_until_the_holder_is_killed(tmp_path: Path, kind: str) -> None:
    hold = {"folder": locked_folder, "place": locked_place}[kind]
    path = tmp_path / "it's [mine]"
    with held_by_another(kind, path) as holder:
        with pytest.raises(BusyError, match="another process is writing here") as caught, hold(path):
            pass
        assert caught.value.exit_code == 8
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with hold(path):
            pass


def test_a_lock_is_let_go_when_the_block_ends_or_fails(tmp_path: Path) -> None:
    with locked_folder(tmp_path):
        pass
    with pytest.raises(ValueError, match="x"), locked_folder(tmp_path):
        raise ValueError("x")
    with locked_folder(tmp_path):
        pass


def test_locks_of_two_folders_do_not_meet(tmp_path: Path) -> None:
    with held_by_another("folder", tmp_path / "a"), locked_folder(tmp_path / "b"):
        pass


def test_a_held_place_is_cleared_of_leftovers_only_by_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with held_by_another("place", path):
        (tmp_path / ".store.00.part").mkdir()
        with contextlib.suppress(BusyError), locked_place(path):
            pass
        assert (tmp_path / ".store.00.part").exists()
    with locked_place(path):
        assert not (tmp_path / ".store.00.part").exists()
