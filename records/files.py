"""Files that appear whole or not at all, JSON lines with line numbers in their errors, and folder locks."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from gniah.records.errors import BusyError, EnvironmentFault, GniahError, InputError

_CHUNK = 1 << 20
PART_SUFFIX = ".part"


@contextlib.contextmanager
def machine_trouble(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses (full disk, no permission) into an error a user can act on."""
    try:
        yield
    except OSError as error:
        raise environment_fault(error, path) from error


def environment_fault(error: OSError, path: Path | str) -> GniahError:
    """Say in words what an OSError means for a path."""
    reasons = {
        errno.ENOSPC: ("the disk is full", "free some space, or choose another folder; finished work is kept"),
        errno.EDQUOT: ("the disk quota is used up", "free some space, or choose another folder"),
        errno.EROFS: ("the file system is read-only", "choose a folder that can be written to"),
        errno.EACCES: ("permission denied", "choose a folder that you may write to, or change its permissions"),
        errno.EPERM: ("operation not permitted", "choose a folder that you may write to"),
        errno.ENAMETOOLONG: ("the name is too long", "choose a shorter path"),
        errno.ENOTDIR: ("a part of this path is a file, not a folder", "choose another path"),
        errno.EISDIR: ("this is a folder, not a file", "name a file"),
        errno.EEXIST: ("this exists already", "choose another path, or remove it"),
    }
    number = error.errno or 0
    where = error.filename if isinstance(error.filename, str) else str(path)
    if number == errno.ENOENT:
        return InputError(f"{where}: no such file or folder", remedy="check the path")
    reason, remedy = reasons.get(number, (error.strerror or str(error), "check the path and the disk"))
    return EnvironmentFault(f"{where}: {reason}", remedy=remedy)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that gets its name only when the block ends without an error.

    It is written beside its final place, flushed to disk, and renamed. Raises EnvironmentFault when the disk is
    full or the place cannot be written to; nothing is left behind then.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART_SUFFIX}")
    with machine_trouble(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(path)
            sync_folder(path.parent)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder to fill, which gets its final name only when the block ends without an error.

    A folder that has the name already is replaced.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART_SUFFIX}")
    with machine_trouble(path):
        part.mkdir(parents=True)
        try:
            yield part
            if path.exists():
                old = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
                path.rename(old)
                part.rename(path)
                shutil.rmtree(old, ignore_errors=True)
            else:
                part.rename(path)
            sync_folder(path.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(path: Path) -> int:
    """Remove what a killed process left half-written beside a path; return how many entries went.

    Call it under the lock of the path only.
    """
    removed = 0
    for ending in (PART_SUFFIX, ".old"):
        for entry in sorted(path.parent.glob(f".{glob.escape(path.name)}.*{ending}")):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
            removed += 1
    return removed


@contextlib.contextmanager
def locked_folder(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a folder for one process, or for all that hold it `shared`. Raises BusyError when another one holds it.

    The lock is the operating system's and goes with the process, however it ends. Windows has no shared ones.
    """
    with machine_trouble(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock", folder, shared=shared):
        yield


@contextlib.contextmanager
def locked_name(folder: Path, name: str, what: str) -> Iterator[None]:
    """Hold a name in a folder for one process; `what` says in words what it stands for.

    Raises BusyError when another process holds it.
    """
    with _locked(folder / f".{name}.lock", what):
        yield


@contextlib.contextmanager
def locked_place(path: Path) -> Iterator[None]:
    """Hold the place of a file or folder that is about to appear, and clear what a killed process left there.

    Raises BusyError when another process holds it.
    """
    with machine_trouble(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_name(f".{path.name}.lock"), path):
        remove_leftovers(path)
        yield


@contextlib.contextmanager
def _locked(lock: Path, what: Path | str, *, shared: bool = False) -> Iterator[None]:
    with machine_trouble(lock):
        stream = lock.open("a+b")
    try:
        _take_lock(stream, what, shared=shared)
        yield
    finally:
        stream.close()


def _take_lock(stream: IO[bytes], what: Path | str, *, shared: bool) -> None:
    busy = BusyError(
        f"{what}: another process is writing here",
        remedy="wait for it to end, or choose another folder",
    )
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        windows = cast(Any, msvcrt)
        try:
            stream.seek(0)
            windows.locking(stream.fileno(), windows.LK_NBLCK, 1)
        except OSError:
            raise busy from None
        return
    try:
        fcntl.flock(stream.fileno(), (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        raise busy from None


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    result = hashlib.sha256()
    with machine_trouble(path), path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            result.update(chunk)
    return result.hexdigest()


def json_line(value: object) -> bytes:
    """Return a value as one line of JSON in UTF-8, keys in the order they have, with its newline."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def json_document(value: object) -> bytes:
    """Return a value as an indented JSON document in UTF-8 for people and programs alike."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8") + b"\n"


def write_json(path: Path, value: object) -> None:
    """Write a value as an indented JSON document, whole or not at all."""
    with whole_file(path) as stream:
        stream.write(json_document(value))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON document whose top is an object. Raises InputError that names the file."""
    with machine_trouble(path):
        raw = path.read_bytes()
    return parse_object(raw, str(path))


def read_json_lines(path: Path, end: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for each line. Lines end at a newline byte only, never at other separators.

    `end` is the offset behind the last line that is wanted. Raises InputError with file and line for a line that is
    not a JSON object, and for a last line without its newline, which is what a cut file looks like.
    """
    with machine_trouble(path), path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if end is not None:
                end -= len(line)
                if end < 0:
                    return
            if not line.endswith(b"\n"):
                raise InputError(
                    f"{path}:{number}: the last line has no newline: the file was cut",
                    remedy="make the file again, or remove its last line",
                )
            yield number, parse_object(line, f"{path}:{number}")


def parse_object(raw: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object that bytes hold; `where` names their place. Raises InputError when they hold none."""
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8: {error}", remedy="make the file again") from None
    except ValueError as error:  # JSONDecodeError, or an integer of thousands of digits
        raise InputError(f"{where}: not JSON: {error}", remedy="make the file again") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply", remedy="make the file again") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(value).__name__}")
    return value
