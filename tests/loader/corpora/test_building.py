from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import give_up_rights, mount

from gniah.generator import DiskCorpus, FolderCorpus
from gniah.loader import build_corpus
from gniah.loader.corpora import building
from gniah.records.corpora import DATA_FILES
from gniah.records.errors import BusyError, EnvironmentFault, ImpossibleRequest, InputError, UsageFault
from gniah.records.files import locked_place
from gniah.records.texts import BINARY, GENERATED, LINK, NO_BLOCK, NOT_UTF8

Make = Callable[..., Path]


def contents(corpus: Path) -> dict[str, bytes]:
    return {name: (corpus / name).read_bytes() for name in DATA_FILES}


def documents(corpus: DiskCorpus | FolderCorpus) -> list[Any]:
    return [corpus.document(number) for number in range(len(corpus))]


def test_a_folder_becomes_documents_in_the_order_of_their_names(tmp_path: Path, tree: Make) -> None:
    manifest = build_corpus("code", tree(), tmp_path / "out")
    corpus = DiskCorpus(tmp_path / "out")
    found = documents(corpus)
    assert [(one.name, one.blocks, one.left_out) for one in found] == [
        ("a-b/x.rs", ("fn x() {}", "fn y() {}"), 1),
        ("a.h", ("#define A",), 0),
        ("a/z.c", ("int z;", "int y;"), 0),
        ("b/deep/k.S", ("# ü",), 0),
    ]
    assert (corpus.kind, corpus.block_count, corpus.block_range(2)) == ("code", 6, range(3, 5))
    content = manifest.content
    assert content["counts"] == {"documents": 4, "blocks": 6, "bytes": 43}
    assert content["texts_left_out"] == {GENERATED: 1, BINARY: 1, NO_BLOCK: 1, NOT_UTF8: 1}
    assert content["blocks_left_out"] == {"reads as a paper": 1}
    assert (content["source"], content["licence"]) == ("unknown", "unknown")
    assert str(tmp_path) not in json.dumps(dict(content))


def test_a_corpus_is_that_of_its_folder(tmp_path: Path, tree: Make) -> None:
    build_corpus("code", tree(), tmp_path / "out")
    disk, folder = DiskCorpus(tmp_path / "out"), FolderCorpus(tree())
    assert documents(disk) == documents(folder)
    assert disk.digest == folder.digest
    assert json.loads((tmp_path / "out/manifest.json").read_bytes())["content"]["texts_left_out"] == folder.skipped


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("top", ["", "linux-6.1/", "./"])
def test_an_archive_gives_the_bytes_of_its_folder(
    tmp_path: Path, tree: Make, archive: Make, mode: str, top: str
) -> None:
    from_tree = build_corpus("code", tree(), tmp_path / "one")
    from_archive = build_corpus("code", archive("tree.tar", mode=mode, top=top), tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert from_archive.digest == from_tree.digest
    assert sorted(entry.name for entry in (tmp_path / "two").iterdir()) == sorted([*DATA_FILES, "manifest.json"])


def test_several_processes_give_the_same_bytes(
    tmp_path: Path, tree: Make, archive: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        f"d{number % 7}/f{number}.c": f"int a{number};\n\nint b;\n".encode() * (number % 5) for number in range(60)
    }
    one = build_corpus("code", tree("many", files), tmp_path / "one")
    monkeypatch.setattr(building, "_BATCH_ITEMS", 7)
    two = build_corpus("code", archive("many.tar", files), tmp_path / "two", jobs=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one.digest == two.digest
    assert one.content["texts_left_out"] == {NO_BLOCK: 12}


def test_the_digest_covers_names_texts_kind_and_nothing_else(tmp_path: Path, tree: Make) -> None:
    def made(name: str, kind: str, files: dict[str, bytes], **more: str) -> str:
        return str(build_corpus(kind, tree(name, files), tmp_path / f"{name}.corpus", **more).content["digest"])

    base = made("base", "essays", {"a.txt": b"one", "b.txt": b"two"})
    assert made("terms", "essays", {"b.txt": b"two", "a.txt": b"one"}, licence="mine", source_name="me") == base
    assert made("left", "essays", {"a.txt": b"one", "b.txt": b"two", "c.txt": b"", "d.c": b"int a;"}) == base
    others = [
        made("text", "essays", {"a.txt": b"one", "b.txt": b"two\n"}),
        made("name", "essays", {"a.txt": b"one", "c.txt": b"two"}),
        made("kind", "books", {"a.txt": b"one", "b.txt": b"two"}),
        made("more", "essays", {"a.txt": b"one", "b.txt": b"two", "c.txt": b"three"}),
    ]
    assert len({base, *others}) == 5


def test_the_source_says_who_it_is(tmp_path: Path, tree: Make, archive: Make) -> None:
    linux = {
        "COPYING": b"The Linux Kernel is provided under:\n",
        "Makefile": b"VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\n",
        "a.c": b"int a;\n",
    }
    terms = ("Linux 6.1.9", "GPL-2.0 WITH Linux-syscall-note")
    frame = "*** START OF THE PROJECT GUTENBERG EBOOK X ***\n\nOnce.\n\n*** END OF THE PROJECT GUTENBERG EBOOK X ***"
    sources = {
        "tree": ("code", tree("linux", linux), terms),
        "tar": ("code", archive("l.tar.xz", linux, "w:xz", "linux-6/"), terms),
        "books": ("books", tree("pg", {"x.txt": frame.encode()}), ("Project Gutenberg", "Project Gutenberg License")),
        "mixed": ("books", tree("mix", {"x.txt": frame.encode(), "y.txt": b"Two."}), ("unknown", "unknown")),
    }
    for name, (kind, source, expected) in sources.items():
        content = build_corpus(kind, source, tmp_path / name).content
        assert (content["source"], content["licence"]) == expected
    given = build_corpus("books", tmp_path / "pg", tmp_path / "given", source_name="Me", licence="CC0").content
    assert (given["source"], given["licence"]) == ("Me", "CC0")


def test_a_corpus_is_replaced_only_when_told_and_nothing_else_ever(tmp_path: Path, tree: Make) -> None:
    out = tmp_path / "out"
    out.mkdir()
    build_corpus("code", tree(), out)
    before = contents(out)
    with pytest.raises(UsageFault, match="holds a corpus already") as refused:
        build_corpus("essays", tree("other", {"a.txt": b"one"}), out)
    assert "--force" in str(refused.value.remedy)
    assert contents(out) == before
    (out / "counts").mkdir()
    (out / "counts/x.bin").write_bytes(b"1234")
    build_corpus("essays", tmp_path / "other", out, force=True)
    assert DiskCorpus(out).kind == "essays"
    assert not (out / "counts").exists()
    (out / "mine.txt").write_bytes(b"")
    with pytest.raises(UsageFault, match=r"something else than a corpus \('mine\.txt'\)"):
        build_corpus("essays", tmp_path / "other", out, force=True)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageFault, match="a file has this name"):
        build_corpus("essays", tmp_path / "other", tmp_path / "file", force=True)


@pytest.mark.parametrize("kind", ["code", "essays", "books", "wikipedia"])
def test_a_source_without_text_leaves_nothing(tmp_path: Path, tree: Make, kind: str) -> None:
    files = {"bad.jsonl": b""} if kind == "wikipedia" else {"a.c": b"\n", "a.txt": b" "}
    with pytest.raises(ImpossibleRequest, match=f"holds no text of kind {kind}"):
        build_corpus(kind, tree("empty", files), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out.*.part"))


def test_a_source_that_is_not_there_or_does_not_fit_is_told(tmp_path: Path, tree: Make) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        build_corpus("code", tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(UsageFault, match="no corpus of kind 'poems'"):
        build_corpus("poems", tree(), tmp_path / "out")
    with pytest.raises(InputError, match="no whole tar archive"):
        build_corpus("code", tree() / "a.h", tmp_path / "out")
    with pytest.raises(InputError, match="no file of rows here"):
        build_corpus("wikipedia", tree(), tmp_path / "out")
    with pytest.raises(UsageFault, match=r"passages come in \.jsonl"):
        build_corpus("wikipedia", tree() / "a.h", tmp_path / "out")
    with pytest.raises(UsageFault, match=r"holds files of rows \('r\.jsonl'\) beside texts"):
        build_corpus("essays", tree("both", {"a.txt": b"one", "r.jsonl": b"{}\n"}), tmp_path / "out")
    with pytest.raises(UsageFault, match="no columns"):
        build_corpus("code", tree(), tmp_path / "out", text_column="text")
    assert not (tmp_path / "out").exists()


def test_a_json_file_beside_texts_is_passed_over(tmp_path: Path, tree: Make) -> None:
    source = tree("essays", {"a.txt": b"one", "package.json": b"{}"})
    for _ in range(2):  # the second time the corpus itself stands among the texts
        manifest = build_corpus("essays", source, source / "out", force=True)
        assert manifest.content["counts"]["documents"] == 1


def test_a_place_is_held_while_a_corpus_is_made(tmp_path: Path, tree: Make) -> None:
    with locked_place(tmp_path / "out"), pytest.raises(BusyError):
        build_corpus("code", tree(), tmp_path / "out")


def test_a_place_below_a_file_is_the_machine_s_fault(tmp_path: Path, tree: Make) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EnvironmentFault, match="a part of this path is a file"):
        build_corpus("code", tree(), tmp_path / "file" / "deeper" / "out")


def test_a_disk_that_runs_full_leaves_nothing(tmp_path: Path, tree: Make) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", small)
    try:
        files = {f"{number}.txt": os.urandom(100_000).hex().encode() for number in range(40)}
        with pytest.raises(EnvironmentFault, match="the disk is full"):
            build_corpus("essays", tree("big", files), small / "out")
        assert [entry.name for entry in small.iterdir()] == [".out.lock"]
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_counts_beside_a_corpus_on_a_disk_that_is_read_only_are_kept_in_memory(tmp_path: Path, tree: Make) -> None:
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", fixed)
    try:
        build_corpus("code", tree(), fixed / "out")
        mount("-o", "remount,ro", fixed)
        corpus = DiskCorpus(fixed / "out")
        corpus.write_counts("ab" * 32, np.arange(6, dtype=np.uint32))
        counts = corpus.counts("ab" * 32)
        assert counts is not None
        assert counts.tolist() == list(range(6))
        del corpus
    finally:
        subprocess.run(["umount", "-l", str(fixed)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="rights as Linux has them")
@pytest.mark.parametrize("place", ["tree/a.h", "tree", "shut"])
def test_what_may_not_be_read_or_written_is_told(tmp_path: Path, tree: Make, place: str) -> None:
    tree()
    (tmp_path / "shut").mkdir()
    (tmp_path / place).chmod(0o555 if place == "shut" else 0)
    code = "from gniah.loader.cli import main; main()"
    words = ("corpus", "code", "--from", tmp_path / "tree", "--out", tmp_path / "shut" / "out")
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        check=False, capture_output=True, text=True, encoding="utf-8", preexec_fn=give_up_rights,
    )  # fmt: skip
    (tmp_path / place).chmod(0o755)
    assert done.returncode == 7, done.stderr
    assert "permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "shut" / "out").exists()


def test_links_and_names_that_lead_out_of_an_archive_are_left_out(tmp_path: Path, archive: Make) -> None:
    import tarfile

    link, hard, device = (tarfile.TarInfo(name) for name in ("t/link.c", "t/hard.c", "t/pipe.c"))
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    hard.type, hard.linkname = tarfile.LNKTYPE, "t/a.c"
    device.type = tarfile.FIFOTYPE
    files = [("t/a.c", b"int a;"), ("t/../../b.c", b"int b;"), ("/t/c.c", b"int c;"), ("t/\udcff.c", b"int d;")]
    manifest = build_corpus("code", archive("odd.tar", files, more=(link, hard, device)), tmp_path / "out")
    assert [one.name for one in documents(DiskCorpus(tmp_path / "out"))] == ["t/a.c"]
    assert manifest.content["texts_left_out"] == {
        LINK: 3, "name leads out of the archive": 2, "name not UTF-8": 1,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals and their exit codes")
def test_a_killed_build_leaves_nothing_under_the_name_and_the_next_one_clears_up(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl.gz"
    with gzip.open(source, "wb", compresslevel=1) as stream:
        for number in range(120_000):
            stream.write(b'{"id": %d, "contents": "The sea was calm that day. Nobody came."}\n' % number)
    out = tmp_path / "out"
    code = "from gniah.loader.cli import main; main()"
    words = ("corpus", "wikipedia", "--from", source, "--out", out)
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".out.*.part/texts.bin")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(process.pid, number)
        assert process.wait(60) != 0
        assert not out.exists()
        left = list(tmp_path.glob(".out.*.part"))
        assert bool(left) == (number != signal.SIGINT)
        if number != signal.SIGTERM:  # the last one's is for the next build
            for folder in left:
                shutil.rmtree(folder)
    build_corpus("wikipedia", source, out)
    assert not list(tmp_path.glob(".out.*.part"))
    assert len(DiskCorpus(out)) == 120_000
