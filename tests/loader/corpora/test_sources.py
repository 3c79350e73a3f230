from __future__ import annotations

import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gniah.generator import DiskCorpus
from gniah.loader import build_corpus
from gniah.loader.corpora.sources import Item, TarSource
from gniah.records.errors import InputError
from gniah.records.texts import LARGEST, TOO_LARGE

Make = Callable[..., Path]
MANY = {f"t/f{number}.c": os.urandom(3000).hex().encode() for number in range(40)}


def read(path: Path) -> list[Item]:
    return list(TarSource(path, "code").items())


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.95])
def test_an_archive_that_is_cut_anywhere_is_told(archive: Make, mode: str, share: float) -> None:
    path = archive("a.tar", MANY, mode)
    assert len(read(path)) == 40
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(InputError, match=r"a\.tar: no whole tar archive"):
        read(path)


def test_a_plain_archive_that_is_cut_between_two_members_is_told(archive: Make) -> None:
    path = archive("a.tar", {"a.c": b"int a;", "b.c": b"int b;"})
    os.truncate(path, 1024)
    with pytest.raises(InputError, match=r"behind a\.c: it does not end as an archive does"):
        read(path)


def test_a_damaged_header_is_told_where_tar_would_stop_in_silence(archive: Make) -> None:
    path = archive("a.tar", {"a.c": b"int a;", "b.c": b"int b;"})
    raw = bytearray(path.read_bytes())
    raw[1024 + 148 : 1024 + 154] = b"999999"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"behind a\.c"):
        read(path)


def test_a_compressed_file_that_is_cut_behind_the_archive_s_end_is_told(archive: Make) -> None:
    path = archive("a.tar", {"a.c": b"int a;"})
    whole = gzip.compress(path.read_bytes())
    path.write_bytes(whole[:-8])
    with pytest.raises(InputError, match="no whole tar archive"):
        read(path)


@pytest.mark.parametrize(
    "content", [b"", b"int a;\n" * 300, b"\x1f\x8b\x08rubbish", b"BZh9rubbish", b"\xfd7zXZ\0rubbish"]
)
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(InputError, match="no whole tar archive"):
        read(tmp_path / "a.tar")


def test_a_huge_member_is_passed_over_unread(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar.xz"
    size = LARGEST["code"] * 64
    with lzma.open(path, "wb", preset=0) as packed:
        for name, length in (("bomb.c", size), ("a.c", 6)):
            member = tarfile.TarInfo(name)
            member.size = length
            packed.write(member.tobuf())
            packed.write((b"\0" * size if length == size else b"int a;").ljust(-(-length // 512) * 512, b"\0"))
        packed.write(bytes(1024))
    assert read(path) == [Item("bomb.c", TOO_LARGE), Item("a.c", b"int a;")]


def test_long_and_odd_names_are_kept(tmp_path: Path, archive: Make) -> None:
    names = ["d/" * 80 + "x.c", "Ä ö\t\"'.c", "line\nbreak.c", "日本/語.h"]
    build_corpus("code", archive("n.tar", dict.fromkeys(names, b"int a;")), tmp_path / "out")
    corpus = DiskCorpus(tmp_path / "out")
    assert [corpus.document(number).name for number in range(len(corpus))] == sorted(names)


def test_a_name_that_stands_twice_is_an_error(tmp_path: Path, archive: Make) -> None:
    path = archive("twice.tar", [("t/a.c", b"int a;"), ("t/b.c", b"int b;"), ("./t/a.c", b"int c;")])
    with pytest.raises(InputError, match=r"'t/a\.c' names two texts"):
        build_corpus("code", path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_folder_that_holds_all_is_no_part_of_the_names(archive: Make) -> None:
    def top(*names: str) -> str:
        source = TarSource(archive("t.tar", dict.fromkeys(names, b"int a;")), "code")
        list(source.items())
        return source.top()

    assert top("linux/a.c", "linux/README", "./linux/x/b.c") == "linux/"
    assert top("linux/a.c", "README") == ""
    assert top("one/a.c", "two/b.c") == ""
    assert top("a.c") == ""


def test_memory_does_not_grow_with_the_number_of_members(tmp_path: Path) -> None:
    path = tmp_path / "many.tar"
    with tarfile.open(path, "w") as opened:
        for number in range(3000):
            member = tarfile.TarInfo(f"f{number}.c")
            member.size = 6
            opened.addfile(member, io.BytesIO(b"int a;"))
    with path.open("rb") as stream:
        members = TarSource(path, "code")._members(stream)
        kept = [len(archive.__dict__["members"]) for _, archive in members]
    assert max(kept) <= 1
