from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from gniah.loader import shards
from gniah.loader.shards import ShardReader, shard_files
from gniah.records.errors import InputError, UsageFault


def read(path: Path) -> list[tuple[int, dict[str, object]]]:
    return list(ShardReader(path))


def write(path: Path, text: bytes) -> Path:
    path.write_bytes(gzip.compress(text))
    return path


def test_rows_come_with_their_line_numbers_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", b'{"a":1}\n\n  \r\n{"a":2}\r\n')
    assert read(path) == [(1, {"a": 1}), (4, {"a": 2})]


def test_a_last_line_needs_no_newline(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.gz", b'{"a":1}\n{"a":2}')) == [(1, {"a": 1}), (2, {"a": 2})]


def test_lines_end_at_a_newline_byte_only(tmp_path: Path) -> None:
    title = "a\u2028b\u0085c\x0bd\u00a0e"
    path = write(tmp_path / "a.gz", json.dumps({"t": title}, ensure_ascii=False).encode() + b"\n")
    assert read(path) == [(1, {"t": title})]


def test_facts_are_those_of_the_file_and_exist_at_its_end_only(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", b'{"a":1}\n{"a":2}\n')
    reader = ShardReader(path)
    rows = iter(reader)
    next(rows)
    with pytest.raises(RuntimeError, match="not read to its end"):
        _ = reader.facts
    assert len(list(rows)) == 1
    raw = path.read_bytes()
    assert reader.facts.to_json() == {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw), "rows": 2}


def test_members_and_padding_are_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(
        gzip.compress(b'{"a":1}\n{"a"') + gzip.compress(b"") + b"\0" * 512 + gzip.compress(b":2}\n") + b"\0\0"
    )
    assert read(path) == [(1, {"a": 1}), (2, {"a": 2})]


def test_lines_across_blocks_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"n": number, "t": "x" * (number % 50)} for number in range(500)]
    path = tmp_path / "a.gz"
    text = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    path.write_bytes(gzip.compress(text[:7000]) + gzip.compress(text[7000:]))
    for read_size, block in ((1, 1), (3, 7), (64, 5), (1000, 100), (100_000, 33)):
        monkeypatch.setattr(shards, "_READ", read_size)
        monkeypatch.setattr(shards, "_INFLATE", block)
        assert [row for _, row in read(path)] == rows, (read_size, block)


def test_a_large_line_is_read(tmp_path: Path) -> None:
    title = "long " * 2_000_000
    path = write(tmp_path / "a.gz", json.dumps({"t": title}).encode() + b'\n{"t":"b"}\n')
    assert [row["t"] for _, row in read(path)] == [title, "b"]


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "LONGEST_LINE", 1000)
    monkeypatch.setattr(shards, "_INFLATE", 64)
    path = write(tmp_path / "a.gz", b'{"a":1}\n' + b"x" * 2000)
    with pytest.raises(InputError, match=r"a\.gz:2: a line of more than 1,000 bytes"):
        read(path)


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    text = b"".join(
        b'{"corpusid":%d,"title":"%s"}\n' % (n, hashlib.sha256(b"%d" % n).hexdigest().encode()) for n in range(40)
    )
    raw = gzip.compress(text)
    path = tmp_path / "a.gz"
    for length in range(1, len(raw)):
        path.write_bytes(raw[:length])
        reader = ShardReader(path)
        with pytest.raises(InputError, match=r"a\.gz:\d+: the gzip file is cut"):
            list(reader)
        with pytest.raises(RuntimeError):
            _ = reader.facts


def test_the_line_at_which_a_file_is_cut_is_named(tmp_path: Path) -> None:
    raw = gzip.compress(b'{"a":1}\n{"a":2}\n{"a":3}\n', compresslevel=0)
    path = tmp_path / "a.gz"
    path.write_bytes(raw[:-12])
    with pytest.raises(InputError, match=r"a\.gz:3: the gzip file is cut") as caught:
        read(path)
    assert caught.value.remedy == "fetch this shard again and check its size"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", r"a\.gz:1: the file is empty \(0 bytes\)"),
        (b'{"a":1}\n', r"a\.gz:1: not a gzip file"),
        (b"PK\x03\x04" * 10, r"a\.gz:1: not a gzip file"),
        (gzip.compress(b'{"a":1}\n') + b"rubbish", r"a\.gz:2: the gzip file is damaged"),
        (
            gzip.compress(b'{"a":1}\n')[:-8] + b"\0" * 8,
            r"a\.gz:\d: the gzip file is damaged .*incorrect data check",
        ),
        (
            gzip.compress(b'{"a":1}\n')[:-4] + b"\1" * 4,
            r"a\.gz:\d: the gzip file is damaged .*incorrect length check",
        ),
        (gzip.compress(b'{"a":1}\n{"a":'), r"a\.gz:2: not JSON"),
        (gzip.compress(b'{"a":1}\n\n[1]\n'), r"a\.gz:3: expected a JSON object, found list"),
        (gzip.compress(b'{"a":NaN}\n'), r"a\.gz:1: not JSON: NaN is no JSON value"),
        (gzip.compress(b'{"a":-Infinity}\n'), r"a\.gz:1: not JSON: -Infinity"),
        (gzip.compress(b'{"a":"\xff"}\n'), r"a\.gz:1: not UTF-8"),
        (gzip.compress(b'{"a":"\xed\xa0\x80"}\n'), r"a\.gz:1: not UTF-8"),
        (gzip.compress(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), r"a\.gz:1: nested too deeply"),
        (gzip.compress(b'{"a":"x\ty"}\n'), r"a\.gz:1: not JSON"),
    ],
)
def test_what_is_no_shard_is_refused_with_file_and_line(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert caught.value.exit_code == 3
    assert caught.value.remedy


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.gz: no such file"):
        read(tmp_path / "no.gz")


def test_lone_surrogates_and_nul_are_dropped(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.gz",
        b'{"t":"a\\ud800b","l":["\\u0000x",{"k\\udc00":1}]}\n{"t":"\\ud83d\\ude00 a\\u0000b"}\n',
    )
    assert [row for _, row in read(path)] == [{"t": "ab", "l": ["x", {"k": 1}]}, {"t": "😀 ab"}]


def test_folders_stand_for_their_shards(tmp_path: Path) -> None:
    for name in ("b.gz", "a.gz", ".hidden.gz", "note.txt", "a.gz.part"):
        (tmp_path / name).write_bytes(b"")
    assert shard_files([tmp_path, tmp_path / "a.gz"], "papers") == [tmp_path / "a.gz", tmp_path / "b.gz"]


def test_a_folder_without_shards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \*\.gz file") as caught:
        shard_files([tmp_path], "papers")
    assert caught.value.remedy == "give the papers shards to --papers"
    with pytest.raises(UsageFault, match="no shards of papers"):
        shard_files([], "papers")
    with pytest.raises(InputError, match=r"x\.gz: no such file"):
        shard_files([tmp_path / "x.gz"], "papers")
