"""Where the texts of a corpus come from: a folder of files, or a tar archive of one, read without unpacking it."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol, cast

from gniah.records.errors import InputError
from gniah.records.files import environment_fault
from gniah.records.texts import LARGEST, LINK, ODD_NAME, TOO_LARGE, has_utf8_form, is_text_name, read_text, text_files

OUTSIDE = "name leads out of the archive"
FETCH_AGAIN = "fetch it again, and check its size"
_HINTS = ("COPYING", "Makefile")
_HINT_BYTES = 1 << 16
# What reading a compressed file raises when it is cut or damaged; an OSError is that only when it has no number.
BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)


@dataclass(frozen=True, slots=True)
class Item:
    """A text by name: its bytes, or the reason why it is left out unread."""

    name: str
    content: bytes | str


class Source(Protocol):
    """Texts to make a corpus of. `in_order` says that they come as the corpus is to have them."""

    in_order: bool

    def items(self) -> Iterator[Item]:
        """Yield the texts. Raises InputError when the source is damaged."""

    def places(self, name: str) -> list[str]:
        """Return where in the source this name stands, for the error about one that stands twice."""

    def origin(self) -> tuple[str | None, str | None]:
        """Return what the source says of its own name and licence, once the items were read."""


class FolderSource:
    """The files below a folder whose names end as a kind asks for, in the order of their relative names."""

    in_order = True

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind

    def items(self) -> Iterator[Item]:
        """Yield the files. Raises EnvironmentFault for one that may not be read."""
        for name, path in sorted(text_files(self._folder, self._kind)):
            yield Item(name, read_text(name, path, self._kind))

    def places(self, name: str) -> list[str]:
        """Return the one place of a name: a file system has no two."""
        return [str(self._folder / name)]

    def origin(self) -> tuple[str | None, str | None]:
        """Return name and licence of a Linux tree."""
        hints = {}
        for name in _HINTS:
            with contextlib.suppress(OSError), (self._folder / name).open("rb") as stream:
                hints[name] = stream.read(_HINT_BYTES)
        return _linux(hints)


class TarSource:
    """The files of a tar archive, plain or compressed by gzip, bzip2 or xz, in the order of the archive.

    The name of the one folder that holds all of them, as archives of releases have it, is no part of their names.
    """

    in_order = False

    def __init__(self, path: Path, kind: str) -> None:
        self._path = path
        self._kind = kind
        self._hints: dict[str, bytes] = {}
        self._tops: set[str] = set()
        self._last = "its beginning"

    def items(self) -> Iterator[Item]:
        """Yield the files. Raises InputError when the archive is cut or damaged, naming the last whole member."""
        try:
            with opened(self._path) as stream:
                yield from self._files(stream)
        except (tarfile.TarError, *BROKEN) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise environment_fault(error, self._path) from error
            raise self._broken(str(error)) from None

    def top(self) -> str:
        """Return the folder that holds all files, with its slash, or "", once the items were read."""
        return f"{next(iter(self._tops))}/" if len(self._tops) == 1 and "" not in self._tops else ""

    def places(self, name: str) -> list[str]:
        """Return where a name stands: an archive may hold it more than once."""
        return [f"{self._path}: {self.top()}{name}"]

    def origin(self) -> tuple[str | None, str | None]:
        """Return name and licence of a Linux tree."""
        return _linux(self._hints)

    def _content_or_reason(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, parts: tuple[str, ...]
    ) -> bytes | str:
        if parts[0] == "/" or ".." in parts:
            return OUTSIDE
        if not has_utf8_form(member.name):
            return ODD_NAME
        if not member.isfile():
            return LINK
        if member.size > LARGEST[self._kind]:
            return TOO_LARGE
        return _content(archive, member, member.size)

    def _files(self, stream: IO[bytes]) -> Iterator[Item]:
        for member, archive in self._members(stream):
            name = member.name
            while name.startswith("./"):
                name = name[2:]
            parts = PurePosixPath(name).parts
            if not member.isdir():
                self._tops.add(parts[0] if len(parts) > 1 else "")
            if member.isfile() and len(parts) <= 2 and parts[-1:] and parts[-1] in _HINTS:
                self._hints[parts[-1]] = _content(archive, member, _HINT_BYTES)
            if not member.isdir() and is_text_name(name, self._kind):
                yield Item(name, self._content_or_reason(archive, member, parts))

    def _members(self, stream: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        watched = _Watched(stream)
        with tarfile.open(fileobj=cast(Any, watched), mode="r:", errors="surrogateescape") as archive:
            while (member := archive.next()) is not None:
                yield member, archive
                self._last = member.name
                cast(Any, archive).members.clear()  # it would keep every one
        if watched.last != bytes(tarfile.BLOCKSIZE):  # where tarfile stops in silence
            raise self._broken("it does not end as an archive does")
        while stream.read(1 << 20):
            pass  # a compressed file that is cut says so at its end

    def _broken(self, why: str) -> InputError:
        return InputError(
            f"{self._path}: no whole tar archive (gzip, bzip2 and xz are read too): behind {self._last}: {why}",
            remedy=f"give a folder or another archive, or {FETCH_AGAIN}",
        )


class _Watched:
    """A file that is read forwards and remembers the last bytes that it gave."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        self.last = self._stream.read(size)
        return self.last

    def seek(self, place: int, whence: int = 0) -> int:
        return self._stream.seek(place, whence)

    def tell(self) -> int:
        return self._stream.tell()


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked when it begins as one of gzip, bzip2 or xz does."""
    with path.open("rb") as stream:
        begin = stream.read(6)
    if begin.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.open(path))
    if begin.startswith(b"BZh"):
        return cast(IO[bytes], bz2.open(path))
    if begin == b"\xfd7zXZ\0":
        return cast(IO[bytes], lzma.open(path))
    return path.open("rb")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes:
    stream = archive.extractfile(member)
    return stream.read(most) if stream is not None else b""


def _linux(hints: dict[str, bytes]) -> tuple[str | None, str | None]:
    """Return name and licence, when the files at the top are those of Linux."""
    if b"The Linux Kernel is provided under:" not in hints.get("COPYING", b""):
        return None, None
    numbers = dict(re.findall(rb"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)$", hints.get("Makefile", b""), re.MULTILINE))
    version = ".".join(numbers[name].decode() for name in (b"VERSION", b"PATCHLEVEL", b"SUBLEVEL") if name in numbers)
    return f"Linux {version}".rstrip(), "GPL-2.0 WITH Linux-syscall-note"
