"""Everything that can be wrong with what a user gives, command by command: one table, and the programs themselves.

For each row the command ends with the exit code of `docs/exit-codes.md`, says where the trouble is and what mends it,
shows no traceback, and leaves behind nothing under a final name that was not there before.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import (
    Place,
    Words,
    changed,
    citation,
    cut,
    damaged,
    edited,
    first_qid,
    give_up_rights,
    paper,
    part_of,
    put,
    removed,
    replaced,
    resealed,
    some_piece,
    template,
    toml,
    without,
)
from programs import Finished, Rfc, program_of
from tokenizer_files import like_qwen

from gniah.records.files import locked_folder, locked_place

ODD = "Füße und 论文 (1)"
# What the docs say may stand beside results: locks, and finished work that the next call uses.
DOCUMENTED = (".lock", ".work", ".verified")
ANSWERS = "inference_pool.jsonl"


@dataclass(frozen=True)
class Row:
    """One way to be wrong: how the world is arranged for which command, and what must come of it."""

    name: str
    words: Callable[[Place], Words]
    code: int
    says: tuple[str, ...] = ()


FILTER = [
    Row("a shard of papers that is missing", lambda at: at.filter(papers=at / "no.gz"), 3, ("no.gz", "--papers")),
    Row(
        "a shard of citations that is missing", lambda at: at.filter(citations=at / "n.gz"), 3, ("n.gz", "--citations")
    ),
    Row(
        "a folder of wrongly named shards",
        lambda at: at.filter(papers=at.papers("in/p.jsonl").parent),
        3,
        ("/in: ", "*.gz", "--papers"),
    ),
    Row("an empty shard", lambda at: at.filter(papers=at.file("p.gz")), 3, ("p.gz:1: ", "empty", "fetch this shard")),
    Row(
        "a cut shard",
        lambda at: at.filter(papers=cut(at.papers("in/p.gz", 900)) / "p.gz"),
        3,
        ("in/p.gz:", "cut", "fetch this shard again"),
    ),
    Row(
        "a corrupt shard",
        lambda at: at.filter(papers=damaged(at.papers("in/p.gz", 900), 1500, b"\xff" * 900) / "p.gz"),
        3,
        ("in/p.gz:", "fetch this shard again"),
    ),
    Row(
        "a shard whose checksum is wrong",
        lambda at: at.filter(papers=damaged(at.papers("in/p.gz"), -8, b"1234") / "p.gz"),
        3,
        ("in/p.gz:", "damaged", "fetch this shard again"),
    ),
    Row(
        "a shard that is not gzip",
        lambda at: at.filter(citations=at.file("c.gz", b"{}\n")),
        3,
        ("c.gz:1: ", "not a gzip file", "compress it with gzip"),
    ),
    Row(
        "a shard that is not UTF-8",
        lambda at: at.filter(papers=at.shard("p.gz", paper(1), b'{"title":"\xff"}')),
        3,
        ("p.gz:2: ", "not UTF-8"),
    ),
    Row(
        "a line of a shard that is not JSON",
        lambda at: at.filter(papers=at.shard("p.gz", paper(1), b"{")),
        3,
        ("p.gz:2: ", "not JSON"),
    ),
    Row(
        "a line of a shard that is no object",
        lambda at: at.filter(citations=at.shard("c.gz", citation(1, 2), [1, 2])),
        3,
        ("c.gz:2: ", "expected a JSON object, found list"),
    ),
    Row(
        "papers given as citations",
        lambda at: at.filter(citations=at.papers("in/p.gz")),
        3,
        ("in/p.gz:1: ", "swapped", "--citations"),
    ),
    Row(
        "citations given as papers",
        lambda at: at.filter(papers=at.citations("in/c.gz")),
        3,
        ("in/c.gz:1: ", "swapped", "--papers"),
    ),
    Row(
        "an id that is no number", lambda at: at.filter(papers=at.shard("p.gz", paper(1), paper("x"))), 3, ("p.gz:2: ",)
    ),
    Row("shards without a row", lambda at: at.filter(papers=at.shard("p.gz")), 6, ("0 papers", "--cutoff")),
    Row(
        "a cutoff after every paper",
        lambda at: at.filter("--cutoff", "2030-01-01"),
        6,
        ("2030-01-01", "the newest date seen is 2026-05-01", "--cutoff"),
    ),
    Row("a cutoff that is no day", lambda at: at.filter("--cutoff", "2026-02-30"), 2, ("2026-02-30", "YYYY-MM-DD")),
    Row(
        "no shards of citations", lambda at: ("filter", "--papers", at.papers(), "--out", at / "g"), 2, ("--citations",)
    ),
    Row("no job to do it", lambda at: at.filter("--jobs", "0"), 2, ("--jobs", "0 is not in the range")),
    Row("an option that no command has", lambda at: at.filter("--cutof", "2026-01-01"), 2, ("--cutof", "--cutoff")),
    Row(
        "a folder that holds a graph of another cutoff",
        lambda at: (*at.big_filter(at.copy("graph"))[:-3], "2011-01-01", "--out", at / "graph"),
        2,
        ("/graph: ", "cutoff", "2010-01-01", "--force", "--out"),
    ),
    Row(
        "a folder that holds a graph of other shards",
        lambda at: at.filter("--cutoff", at.rfc.cutoff, "--out", at.copy("graph")),
        2,
        ("/graph: ", "other papers shards", "--force"),
    ),
    Row(
        "a folder that holds a graph of a newer version",
        lambda at: at.filter("--out", edited(at.copy("graph") / "manifest.json", put(schema="gniah/graph/2"))),
        3,
        ("graph/manifest.json", "newer version", "--force"),
    ),
    Row(
        "a folder that holds something else, even when forced",
        lambda at: at.filter("--force", "--out", at.file("letters/mum.txt").parent),
        2,
        ("/letters: ", "mum.txt", "--out"),
    ),
    Row("a file where the graph should be", lambda at: at.filter("--out", at.file("taken")), 2, ("/taken: ", "--out")),
    Row(
        "a shard that may not be read",
        lambda at: at.filter(papers=at.forbidden(at.papers("in/p.gz"), 0)),
        7,
        ("in/p.gz", "permission denied"),
    ),
    Row(
        "a folder for the graph that may not be written to",
        lambda at: at.filter("--out", at.forbidden(at / "theirs") / "graph"),
        7,
        ("theirs", "permission denied", "choose a folder"),
    ),
    Row(
        "a read-only disk for the graph",
        lambda at: at.filter("--out", at.read_only_disk() / "graph"),
        7,
        ("read-only", "choose a folder"),
    ),
    Row(
        "a full disk for the graph", lambda at: at.big_filter(at.full_disk() / "graph"), 7, ("full", "free some space")
    ),
    Row(
        "a graph that another process makes",
        lambda at: (at.hold(locked_folder(at / ".graph.lock")), at.filter())[1],
        8,
        ("/graph: ", "another process", "wait"),
    ),
]

IMPORT = [
    Row(
        "a graph that is not there",
        lambda at: ("import", at / "no", "--store", at / "s"),
        3,
        ("/no: ", "check the path"),
    ),
    Row(
        "a graph without its citations",
        lambda at: ("import", removed(at.copy("graph") / "citations.parquet"), "--store", at / "s"),
        3,
        ("citations.parquet: no such file", "gniah-load filter"),
    ),
    Row(
        "a cut Parquet file",
        lambda at: ("import", cut(at.copy("graph") / "papers.parquet"), "--store", at / "s"),
        3,
        ("graph", "papers.parquet", "gniah-load filter"),
    ),
    Row(
        "Parquet files that are swapped",
        lambda at: (
            "import",
            shutil.copy(at.copy("graph") / "papers.parquet", at / "graph/citations.parquet").parent,
            *("--store", at / "s"),
        ),
        3,
        ("graph", "gniah-load filter"),
    ),
    Row(
        "a graph whose manifest counts other papers",
        lambda at: ("import", resealed(at.copy("graph"), lambda c: c["counts"].update(papers=9)), "--store", at / "s"),
        3,
        ("3605 papers", "the manifest says 9", "gniah-load filter"),
    ),
    Row(
        "a graph whose manifest was changed by hand",
        lambda at: (
            "import",
            edited(at.copy("graph") / "manifest.json", lambda value: value["content"].update(cutoff="2011-01-01")),
            *("--store", at / "s"),
        ),
        3,
        ("manifest.json", "changed after it was written", "again"),
    ),
    Row(
        "a graph of a newer version",
        lambda at: (
            "import",
            edited(at.copy("graph") / "manifest.json", put(schema="gniah/graph/9")),
            "--store",
            at / "s",
        ),
        3,
        ("manifest.json", "newer version", "upgrade gniah"),
    ),
    Row(
        "a bench given as a graph",
        lambda at: ("import", at.rfc.bench, "--store", at / "s"),
        3,
        ("gniah/graph/1", "gniah/bench/1"),
    ),
    Row(
        "a folder for the store that holds something else",
        lambda at: ("import", at.rfc.graph, "--store", at.file("letters/mum.txt").parent),
        2,
        ("/letters: ", "not a store", "another folder"),
    ),
    Row(
        "a file where the store should be",
        lambda at: ("import", at.rfc.graph, "--store", at.file("taken")),
        2,
        ("/taken: ",),
    ),
    Row(
        "a full disk for the store",
        lambda at: ("import", at.rfc.graph, "--store", at.full_disk() / "store"),
        7,
        ("full/", "the disk is full", "free some space"),
    ),
    Row(
        "a read-only disk for the store",
        lambda at: ("import", at.rfc.graph, "--store", at.read_only_disk() / "store"),
        7,
        ("read-only", "choose a folder"),
    ),
    Row(
        "a folder for the store that may not be written to",
        lambda at: ("import", at.rfc.graph, "--store", at.forbidden(at / "theirs") / "store"),
        7,
        ("theirs", "permission denied", "choose a folder"),
    ),
    Row(
        "a store that another process builds",
        lambda at: (at.hold(locked_place(at / "s")), ("import", at.rfc.graph, "--store", at / "s"))[1],
        8,
        ("/s: ", "another process", "wait"),
    ),
]

STORE = [
    Row(
        "a store that is not there",
        lambda at: ("stats", "--store", at / "no"),
        5,
        ("/no: ", "gniah-load import", "--store"),
    ),
    Row(
        "a store of another engine version",
        lambda at: ("stats", "--store", resealed(at.copy("store"), put(engine="ladybug 0.0.1"))),
        5,
        ("/store: ", "ladybug 0.0.1", "gniah-load import"),
    ),
    Row(
        "a cut store",
        lambda at: ("stats", "--store", cut(at.copy("store") / "graph.lbug", 4096)),
        5,
        ("graph.lbug", "--force"),
    ),
    Row(
        "a store of the right size that is no database",
        lambda at: ("stats", "--store", damaged(at.copy("store") / "graph.lbug", 0, b"\0" * 8192)),
        5,
        ("graph.lbug", "--force"),
    ),
    Row(
        "a store of a newer version",
        lambda at: ("stats", "--store", edited(at.copy("store") / "manifest.json", put(schema="gniah/store/2"))),
        3,
        ("manifest.json", "newer version", "upgrade gniah"),
    ),
    Row(
        "an unknown form of output",
        lambda at: ("stats", "--store", at.rfc.store, "--format", "xml"),
        2,
        ("--format", "json"),
    ),
    Row("an unknown query", lambda at: ("query", "neighbors", "--store", at.rfc.store), 2, ("neighbors", "neighbours")),
    Row(
        "an unknown parameter",
        lambda at: ("query", "neighbours", "--store", at.rfc.store, "--param", "ident=4"),
        2,
        ("neighbours", "ident", "id"),
    ),
    Row(
        "a parameter that is missing",
        lambda at: ("query", "neighbours", "--store", at.rfc.store),
        2,
        ("--param id=VALUE",),
    ),
    Row(
        "a parameter of another type",
        lambda at: ("query", "neighbours", "--store", at.rfc.store, "--param", "id=x"),
        2,
        ("--param id", "integer", "'x'"),
    ),
    Row(
        "a parameter without a value",
        lambda at: ("query", "neighbours", "--store", at.rfc.store, "--param", "id"),
        2,
        ("--param", "NAME=VALUE"),
    ),
    Row("a statement that is no Cypher", lambda at: ("cypher", "MATCH (p", "--store", at.rfc.store), 5, ("exception",)),
    Row(
        "a statement that writes",
        lambda at: ("cypher", "CREATE (p:Paper {corpusid: 1})", "--store", at.rfc.store),
        5,
        ("read",),
    ),
    Row(
        "several statements",
        lambda at: ("cypher", "MATCH (p) RETURN 1; MATCH (p) RETURN 2", "--store", at.rfc.store),
        5,
        ("one statement", "semicolon"),
    ),
    Row("a command that no program has", lambda at: ("filtre",), 2, ("filtre",)),
]

PATHS = [
    Row("a depth under 2", lambda at: at.paths("--depths", "1"), 2, ("depth", "at least 2, not 1")),
    Row("a depth that is no number", lambda at: at.paths("--depths", "4,x"), 2, ("--depths", "'4,x'", "4,8,16")),
    Row("a depth that is given twice", lambda at: at.paths("--depths", "2,2"), 2, ("once", "--depths")),
    Row("no path at all", lambda at: at.paths("--count", "0"), 2, ("--count", "0 is not in the range")),
    Row("a seed that is negative", lambda at: at.paths("--seed", "-1"), 2, ("--seed",)),
    Row(
        "a depth that the graph cannot give",
        lambda at: at.paths("--depths", "2000"),
        6,
        ("k = 2000", "depth of at most"),
    ),
    Row(
        "more paths than there are",
        lambda at: at.paths("--count", "100000", "--max-uses", "1"),
        6,
        ("of 100,000 paths", "--allow-fewer", "--max-uses"),
    ),
    Row(
        "a folder that holds paths of another seed",
        lambda at: ("paths", "--store", at.rfc.store, "--out", at.pool().parents[2], "--depths", "2", "--seed", "9"),
        2,
        ("papers-only: ", "other settings", "--out"),
    ),
    Row(
        "a folder that holds paths of a newer version",
        lambda at: (
            *("paths", "--store", at.rfc.store, "--depths", "2", "--count", "100"),
            *("--out", edited(at.pool() / "manifest.json", put(schema="gniah/path-search/2")).parents[2]),
        ),
        3,
        ("manifest.json", "newer version", "upgrade gniah"),
    ),
    Row("no store for paths", lambda at: at.paths(store=at / "no"), 5, ("/no: ", "--store")),
    Row(
        "a full disk for paths",
        lambda at: at.paths("--count", "900", "--out", at.full_disk() / "p"),
        7,
        ("full", "space"),
    ),
    Row("a read-only disk for paths", lambda at: at.paths("--out", at.read_only_disk() / "p"), 7, ("read-only",)),
    Row(
        "a folder for paths without rights",
        lambda at: at.paths("--out", at.forbidden(at / "no")),
        7,
        ("permission denied",),
    ),
    Row(
        "paths that another process samples",
        lambda at: (at.hold(locked_folder(at / "made")), at.paths())[1],
        8,
        ("/made: ", "another process", "wait"),
    ),
]

EXAMPLES = [
    Row("no example at all", lambda at: at.examples("--count", "0"), 2, ("--count",)),
    Row(
        "an unknown task",
        lambda at: at.examples("--tasks", "maybe"),
        2,
        ("'maybe'", "yes-no, multiple-choice, counting"),
    ),
    Row("a task that is given twice", lambda at: at.examples("--tasks", "counting,counting"), 2, ("task", "twice")),
    Row("sizes that run backwards", lambda at: at.examples("--sizes", "5-3"), 2, ("--sizes 5-3",)),
    Row("sizes that are no numbers", lambda at: at.examples("--sizes", "few"), 2, ("--sizes", "'few'", "100-250")),
    Row(
        "an unknown type of distractors",
        lambda at: at.examples("--distractors", "songs"),
        2,
        ("'songs'", "code, essays"),
    ),
    Row(
        "passages without a corpus",
        lambda at: at.examples("--distractors", "wikipedia,code"),
        2,
        ("wikipedia need a corpus", "--corpus wikipedia=FOLDER"),
    ),
    Row(
        "passages in a plain folder",
        lambda at: at.examples("--distractors", "code,wikipedia", "--corpus", f"wikipedia={at.folder}"),
        2,
        ("a plain folder does not do", "gniah-load corpus wikipedia", "gniah-gen index"),
    ),
    Row(
        "a corpus that is missing",
        lambda at: at.examples("--distractors", "code,essays"),
        2,
        ("essays", "--corpus essays=FOLDER"),
    ),
    Row(
        "a corpus that nothing asks for",
        lambda at: at.examples("--corpus", f"books={at.folder}"),
        2,
        ("--corpus books", "no distractors of type books"),
    ),
    Row("a corpus without its type", lambda at: at.examples("--corpus", at.folder), 2, ("--corpus", "TYPE=FOLDER")),
    Row(
        "a corpus that is no folder",
        lambda at: at.examples("--corpus", f"code={at.file('x')}"),
        3,
        ("/x: ", "no such folder"),
    ),
    Row(
        "a corpus without a text",
        lambda at: at.examples("--corpus", f"code={at.file('in/x.txt').parent}"),
        6,
        ("/in: ", ".py", "another folder"),
    ),
    Row("an unknown tokenizer", lambda at: at.examples("--tokenizer", "gpt"), 2, ("'gpt'", "tiktoken:o200k_base")),
    Row("an unknown encoding", lambda at: at.examples("--tokenizer", "tiktoken:o300k"), 2, ("'o300k'", "o200k_base")),
    Row(
        "a tokenizer file that is missing",
        lambda at: at.examples("--tokenizer", f"file:{at / 'no'}"),
        3,
        ("/no: ", "file:PATH"),
    ),
    Row(
        "a tokenizer file that is corrupt",
        lambda at: at.examples("--tokenizer", f"file:{at.file('t.json', b'{')}"),
        3,
        ("t.json: ", "not a tokenizer file"),
    ),
    Row(
        "a tokenizer file without a chat template",
        lambda at: at.examples("--tokenizer", f"file:{like_qwen(at.folder / 'q', template=None)}"),
        2,
        ("tokenizer.json: ", "no chat template", "--chat-template"),
    ),
    Row(
        "a chat template for nobody",
        lambda at: at.examples("--chat-template", "none"),
        2,
        ("--chat-template", "no tokenizer takes one"),
    ),
    Row(
        "a chat template that is missing",
        lambda at: at.examples(
            *("--tokenizer", f"q=file:{like_qwen(at.folder / 'q', template=None)}", "--chat-template", f"q={at / 'no'}")
        ),
        3,
        ("/no: ", "no such chat template"),
    ),
    Row("no repository", lambda at: at.examples("--tokenizer", "hf:model"), 2, ("'model'", "hf:OWNER/NAME")),
    Row(
        "two tokenizers of one label",
        lambda at: at.examples("--tokenizer", "tiktoken:o200k_base", "--tokenizer", "tiktoken:o200k_base"),
        2,
        ("'o200k_base'", "LABEL=NAME"),
    ),
    *(
        Row(f"alpha {alpha}", lambda at, alpha=alpha: at.examples(f"--alpha={alpha}"), 2, ("alpha", hint))
        for alpha, hint in (("0", "'0'"), ("-1", "'-1'"), ("0.10", "0.1"), ("abc", "'abc'"), ("1e-3", "decimal"))
    ),
    Row("a part that is not there", lambda at: at.examples("--part", "3/2"), 2, ("--part", "'3/2'", "2/8")),
    Row("an unknown variable", lambda at: at.examples("--vary", "weather"), 2, ("'weather'", "question-depth")),
    Row("varied sizes that are missing", lambda at: at.examples("--vary", "node-count"), 2, ("--varied-sizes",)),
    Row("a name that is a path", lambda at: at.examples("--name", "../x"), 2, ("--name", "'../x'")),
    Row("an unknown template set", lambda at: at.examples("--templates", "fancy"), 2, ("'fancy'", "plain")),
    Row(
        "a template set without a text",
        lambda at: at.examples("--templates", template(at, lambda value: value["question"].pop("counting"))),
        3,
        ("mine.json: ", "'question'", "'counting'"),
    ),
    Row(
        "a template set whose text is a number",
        lambda at: at.examples("--templates", template(at, put(user=4))),
        3,
        ("mine.json: ", "'user'"),
    ),
    Row(
        "a template set of a newer version",
        lambda at: at.examples("--templates", template(at, put(schema="gniah/templates/2"))),
        3,
        ("mine.json: ", "upgrade gniah"),
    ),
    Row(
        "paths that are not there",
        lambda at: at.examples("--paths", at / "no"),
        3,
        ("sampled_paths.json", "gniah-gen paths"),
    ),
    Row(
        "paths that were changed by hand",
        lambda at: at.examples(
            "--paths", edited(at.pool() / "sampled_paths.json", lambda value: value["paths"].pop()).parents[2]
        ),
        3,
        ("papers-only: ", "changed", "sample the paths again"),
    ),
    Row(
        "paths that are cut",
        lambda at: at.examples("--paths", cut(at.pool() / "sampled_paths.json").parents[2]),
        3,
        ("sampled_paths.json: ", "not JSON"),
    ),
    Row(
        "paths without their groups",
        lambda at: at.examples("--paths", removed(at.pool() / "disjoint_path_groups.json").parents[2]),
        3,
        ("disjoint_path_groups.json: ", "no such file"),
    ),
    Row(
        "groups of paths that are damaged",
        lambda at: at.examples(
            "--paths", edited(at.pool() / "disjoint_path_groups.json", put(compatible=["zz"])).parents[2]
        ),
        3,
        ("sampled_paths.json: ", "sample the paths again"),
    ),
    Row(
        "paths of another graph",
        lambda at: at.examples(
            "--store",
            resealed(at.copy("store"), lambda content: content["graph"]["content"]["counts"].update(papers=1)),
        ),
        3,
        ("papers-only: ", "another graph", "gniah-gen paths"),
    ),
    Row(
        "a depth that was not sampled",
        lambda at: at.examples("--depths", "2,5"),
        3,
        ("hops=13", "gniah-gen paths"),
    ),
    Row(
        "components smaller than their backbone",
        lambda at: at.examples("--sizes", "4-9"),
        6,
        ("at least 7 papers", "--skip-impossible"),
    ),
    Row(
        "a context that is too short", lambda at: at.examples("--context-length", "300"), 6, ("300", "--context-length")
    ),
    Row(
        "a corpus that cannot fill the context",
        lambda at: at.examples("--context-length", "90000", "--distractors", "code", "--strict-fill"),
        6,
        ("the whole corpus has", "--strict-fill"),
    ),
    Row(
        "a folder that holds another list",
        lambda at: at.rfc.example_words(at.copy("bench"), "--seed", "2"),
        2,
        ("/bench: ", "other settings", "--out"),
    ),
    Row(
        "a folder that holds the pieces of another list",
        lambda at: at.rfc.example_words(part_of(at, "part", "1/8"), "--seed", "2"),
        2,
        ("/part: ", "other settings", "--out"),
    ),
    Row(
        "a folder that holds a list of a newer version",
        lambda at: at.rfc.example_words(edited(at.copy("bench") / "manifest.json", put(schema="gniah/bench/2"))),
        3,
        ("manifest.json: ", "newer version", "upgrade gniah"),
    ),
    Row(
        "a piece that is damaged",
        lambda at: at.rfc.example_words(cut(some_piece(part_of(at, "part", "1/8"))).parent),
        3,
        (".json:2: ", "the file was cut", "again"),
    ),
    Row(
        "a plan that is damaged",
        lambda at: at.rfc.example_words(
            edited(part_of(at, "part", "1/8") / ".work/plan.json", without("content")).parent
        ),
        3,
        ("plan.json: ", "content"),
    ),
    Row(
        "a full disk for examples",
        lambda at: at.examples("--out", at.full_disk() / "b"),
        7,
        ("full", "free some space"),
    ),
    Row("a read-only disk for examples", lambda at: at.examples("--out", at.read_only_disk() / "b"), 7, ("read-only",)),
    Row(
        "a folder for examples without rights",
        lambda at: at.examples("--out", at.forbidden(at / "no")),
        7,
        ("permission denied",),
    ),
    Row(
        "examples that another process builds",
        lambda at: (at.hold(locked_folder(at / "made")), at.examples())[1],
        8,
        ("/made: ", "another process", "wait"),
    ),
]

MERGE = [
    Row("no part to merge", lambda at: ("merge", "--out", at / "m"), 2, ("PARTS",)),
    Row("a part that is none", lambda at: ("merge", at.rfc.bench, "--out", at / "m"), 3, ("/bench: ", "--part")),
    Row(
        "parts of two lists",
        lambda at: ("merge", part_of(at, "one", "1/8"), part_of(at, "two", "1/8", "--seed", "2"), "--out", at / "m"),
        3,
        ("/two: ", "another list", "/one"),
    ),
    Row(
        "parts that are not all",
        lambda at: ("merge", part_of(at, "one", "1/4"), part_of(at, "two", "2/4"), "--out", at / "m"),
        3,
        ("4 of 8 examples are missing", "every part"),
    ),
    Row(
        "a bench that is not there",
        lambda at: ("none-variants", at / "no", "--out", at / "n"),
        3,
        ("/no", "gniah-gen examples"),
    ),
    Row(
        "a bench without a manifest",
        lambda at: ("none-variants", removed(at.copy("bench") / "manifest.json"), "--out", at / "n"),
        3,
        ("/bench: ", "manifest.json"),
    ),
    Row(
        "a bench whose pool lacks an example",
        lambda at: (
            "none-variants",
            at.file("bench/pool.jsonl", (at.copy("bench") / "pool.jsonl").read_bytes().split(b"\n")[0] + b"\n").parent,
            *("--out", at / "n"),
        ),
        3,
        ("pool.jsonl", "lacks", "again"),
    ),
    Row(
        "other tokenizers than the bench has",
        lambda at: ("none-variants", at.rfc.bench, "--out", at / "n", "--tokenizer", "a=tiktoken:o200k_base"),
        2,
        ("o200k_base, not a", "--tokenizer"),
    ),
    Row(
        "other templates than the bench has",
        lambda at: (
            "none-variants",
            at.rfc.bench,
            "--out",
            at / "n",
            "--templates",
            template(at, put(option="{label}) {title}")),
        ),
        2,
        ("not the one", "--templates"),
    ),
    Row(
        "variants into a folder that holds a bench",
        lambda at: ("none-variants", at.rfc.bench, "--out", at.copy("bench")),
        2,
        ("/bench: ", "already", "--out"),
    ),
]

READING = [
    Row(
        "examples that may not be read",
        lambda at: ("verify", at.forbidden(at.copy("bench") / "examples.jsonl", 0)),
        7,
        ("examples.jsonl: ", "permission denied", "permissions"),
    ),
    Row("examples that are not there", lambda at: ("verify", at / "no"), 3, ("/no: ", "gniah-gen examples")),
    Row(
        "a folder without examples", lambda at: ("verify", at.rfc.graph), 3, ("examples.jsonl: ", "gniah-gen examples")
    ),
    Row("a file without examples", lambda at: ("verify", at.file("e.jsonl")), 6, ("e.jsonl: ", "no example")),
    Row(
        "an example that is no object",
        lambda at: ("verify", replaced(at.copy("bench") / "examples.jsonl", 3, b"[]")),
        3,
        ("examples.jsonl:3: ", "expected a JSON object, found list"),
    ),
    Row(
        "an example without a field",
        lambda at: ("verify", changed(at.copy("bench") / "examples.jsonl", 2, without("answer"))),
        3,
        ("examples.jsonl:2: ", "answer", "dataset card"),
    ),
    Row(
        "an example of an unknown question type",
        lambda at: ("verify", changed(at.copy("bench") / "examples.jsonl", 2, put(question_type="riddle"))),
        3,
        ("riddle", "no installed family", "upgrade gniah"),
    ),
    Row(
        "examples whose last line is cut",
        lambda at: ("verify", cut(at.copy("bench") / "examples.jsonl")),
        3,
        ("examples.jsonl:8: ", "the file was cut", "again"),
    ),
    Row(
        "examples that are not UTF-8",
        lambda at: ("verify", replaced(at.copy("bench") / "examples.jsonl", 1, b'{"qid":"\xff"}')),
        3,
        ("examples.jsonl:1: ", "not UTF-8"),
    ),
    Row(
        "an example with a wrong answer",
        lambda at: ("verify", changed(at.copy("bench") / "examples.jsonl", 1, put(answer="99"))),
        1,
        ("1 of 8 examples", "do not use"),
    ),
    Row("an index of a folder that is not there", lambda at: ("index", at / "no"), 3, ("/no: ", "manifest.json")),
    Row("an index of a plain folder", lambda at: ("index", at.rfc.code), 3, ("/code: ", "no finished corpus")),
    Row("verification by no process", lambda at: ("verify", at.rfc.bench, "--jobs", "0"), 2, ("--jobs",)),
    Row(
        "a pool that is not there",
        lambda at: ("audit", at / "no", "--store", at.rfc.store),
        3,
        ("/no: ", "gniah-gen examples"),
    ),
    Row(
        "a pool that is cut",
        lambda at: ("audit", cut(at.copy("bench") / "pool.jsonl"), "--store", at.rfc.store),
        3,
        ("pool.jsonl:8: ", "the file was cut", "again"),
    ),
    Row(
        "a pool of a newer version",
        lambda at: (
            "audit",
            changed(at.copy("bench") / "pool.jsonl", 2, put(schema="gniah/pool/2")),
            "--store",
            at.rfc.store,
        ),
        3,
        ("pool.jsonl:2: ", "newer version", "upgrade gniah"),
    ),
    Row(
        "a file of another kind given as a pool",
        lambda at: ("audit", at.rfc.run / "inference_pool.jsonl", "--store", at.rfc.store),
        3,
        ("inference_pool.jsonl:1: ", "gniah/pool/1", "gniah/response/2"),
    ),
    Row(
        "a record without its components",
        lambda at: (
            "audit",
            changed(at.copy("bench") / "pool.jsonl", 1, without("components")),
            "--store",
            at.rfc.store,
        ),
        3,
        ("pool.jsonl:1: ", "components", "again"),
    ),
    Row(
        "a record with a cutoff that is no day",
        lambda at: (
            "audit",
            changed(at.copy("bench") / "pool.jsonl", 1, lambda value: value["config"].update(cutoff_date="soon")),
            *("--store", at.rfc.store),
        ),
        3,
        ("cutoff_date", "'soon'"),
    ),
    Row(
        "a record with a component that is no list",
        lambda at: (
            "audit",
            changed(at.copy("bench") / "pool.jsonl", 1, lambda value: value["components"][0].update(papers=["x"])),
            *("--store", at.rfc.store),
        ),
        3,
        ("pool.jsonl:1: ", "the paper 'x'", "again"),
    ),
    Row(
        "a pool of another graph",
        lambda at: (
            *("audit", at.rfc.bench, "--store"),
            resealed(at.copy("store"), lambda content: content["graph"]["content"]["counts"].update(papers=1)),
        ),
        3,
        ("pool.jsonl", "another graph"),
    ),
    Row(
        "a record that claims what is not so",
        lambda at: (
            "audit",
            changed(at.copy("bench") / "pool.jsonl", 1, lambda value: value["components"][0]["edges"].pop()),
            *("--store", at.rfc.store),
        ),
        1,
        ("violations", "do not use"),
    ),
    Row(
        "a pool without its index",
        lambda at: ("show", removed(at.copy("bench") / "pool.index.jsonl"), "a", "--store", at.rfc.store),
        3,
        ("pool.index.jsonl: ",),
    ),
    Row(
        "an index that is stale",
        lambda at: (
            "show",
            changed(at.copy("bench") / "pool.index.jsonl", 1, lambda value: value.update(offset=value["offset"] + 9)),
            first_qid(at.rfc.bench),
            *("--store", at.rfc.store),
        ),
        3,
        ("pool.index.jsonl: ", "does not fit", "again"),
    ),
    Row(
        "an example that is not there",
        lambda at: ("show", at.rfc.bench, "xyz", "--store", at.rfc.store),
        3,
        ("'xyz'", "qid"),
    ),
    Row(
        "a qid that several have",
        lambda at: ("show", at.rfc.bench, "", "--store", at.rfc.store),
        3,
        ("8 examples", "more of the qid"),
    ),
    Row(
        "a drawing that may not be written",
        lambda at: (
            *("show", at.rfc.bench, first_qid(at.rfc.bench), "--store", at.rfc.store),
            *("--svg", at.forbidden(at / "theirs") / "x.svg"),
        ),
        7,
        ("theirs", "permission denied"),
    ),
]

RUN = [
    Row("an unknown model", lambda at: at.run("--model", "gpt"), 2, ("'gpt'", "text-solver")),
    Row("no model", lambda at: ("run", at.rfc.bench, "--out", at / "answers"), 2, ("--model",)),
    Row("examples to run that are not there", lambda at: at.run(bench=at / "no"), 3, ("/no: ", "gniah-gen examples")),
    Row(
        "examples to run that are cut",
        lambda at: at.run("--out", at.copy("run"), bench=cut(at.copy("bench") / "examples.jsonl")),
        3,
        ("examples.jsonl:8: ", "cut"),
    ),
    Row("no repeat", lambda at: at.run("--repeats", "0"), 2, ("--repeats",)),
    Row("a constant without its task", lambda at: at.run("--constant-answer", "NO"), 2, ("'NO'", "TASK=ANSWER")),
    Row(
        "a constant of an unknown task",
        lambda at: at.run("--constant-answer", "x=NO"),
        2,
        ("'x'", "yes-no", "--constant-answer"),
    ),
    Row("a range that runs backwards", lambda at: at.run("--count-range", "9", "3"), 2, ("--count-range 9 3",)),
    Row(
        "a run of a newer version",
        lambda at: at.run("--out", changed(at.copy("run") / "inference_pool.jsonl", 2, put(schema="gniah/response/3"))),
        3,
        ("inference_pool.jsonl:2: ", "newer version", "upgrade gniah"),
    ),
    Row(
        "a run with a line that is no response",
        lambda at: at.run("--out", changed(at.copy("run") / "inference_pool.jsonl", 2, without("text"))),
        3,
        ("inference_pool.jsonl:2: ", "lacks text"),
    ),
    Row(
        "a full disk for a run",
        lambda at: at.run("--out", at.full_disk() / "r", "--repeats", "9"),
        7,
        ("full", "space"),
    ),
    Row("a read-only disk for a run", lambda at: at.run("--out", at.read_only_disk() / "r"), 7, ("read-only",)),
    Row(
        "a folder for a run without rights",
        lambda at: at.run("--out", at.forbidden(at / "no")),
        7,
        ("permission denied",),
    ),
    Row("a file where the run should be", lambda at: at.run("--out", at.file("taken")), 7, ("taken",)),
    Row(
        "a run that another process makes",
        lambda at: (at.hold(locked_folder(at / "answers")), at.run())[1],
        8,
        ("/answers: ", "another process", "wait"),
    ),
    Row(
        "a run that is not there",
        lambda at: ("score", at.rfc.bench, at / "no"),
        3,
        ("inference_pool.jsonl", "gniah-eval run"),
    ),
    Row(
        "a model that the run does not have",
        lambda at: ("score", at.rfc.bench, at.copy("run"), "--model", "gpt"),
        2,
        ("gpt", "--model"),
    ),
    Row(
        "an answer to an unknown example",
        lambda at: ("score", at.rfc.bench, changed(at.copy("run") / "inference_pool.jsonl", 1, put(qid="f" * 64))),
        1,
        ("1 belong to examples that are not there", "score against"),
    ),
    Row(
        "a run to score of a newer version",
        lambda at: (
            *("score", at.rfc.bench),
            changed(at.copy("run") / "inference_pool.jsonl", 1, put(schema="gniah/response/7")),
        ),
        3,
        ("inference_pool.jsonl:1: ", "upgrade gniah"),
    ),
    Row(
        "a run to score on a read-only disk",
        lambda at: ("score", at.rfc.bench, at.read_only_disk("run") / "run"),
        7,
        ("read-only", "choose a folder"),
    ),
]

ELSEWHERE = [
    Row(
        "results to compare that are not there",
        lambda at: ("compare", at / "no", at / "no"),
        3,
        ("/no: ", "check the path"),
    ),
    Row(
        "results to compare that were not scored",
        lambda at: ("compare", at.rfc.bench, at.rfc.bench),
        3,
        ("no score file", "gniah-eval score"),
    ),
    Row("power without a question", lambda at: ("power", "--rate", "50"), 2, ("--difference", "--examples")),
    Row(
        "power for a rate that cannot be",
        lambda at: ("power", "--rate", "50", "--difference", "80"),
        2,
        ("130 %", "--rate"),
    ),
    Row(
        "results to export that are not there",
        lambda at: ("export", at / "no", "--out", at / "out.parquet"),
        3,
        ("/no: ", "gniah-eval score"),
    ),
    Row(
        "examples to publish into a store in a folder",
        lambda at: ("publish-graph", at.rfc.bench, "--store", at.rfc.store),
        2,
        ("never written to", "--to"),
    ),
    Row(
        "examples to publish over a store",
        lambda at: ("publish-graph", at.rfc.bench, "--store", at.rfc.store, "--to", at.copy("store")),
        2,
        ("not written to", "folder of their own"),
    ),
    Row(
        "a pool to publish that is not there",
        lambda at: ("publish-graph", at / "no", "--store", at.rfc.store, "--to", at / "published"),
        3,
        ("/no: ", "gniah-gen examples"),
    ),
    Row(
        "a source of a corpus that is not there",
        lambda at: ("corpus", "code", "--from", at / "no", "--out", at / "corpus"),
        3,
        ("/no: ", "--from"),
    ),
    Row(
        "a corpus to check that is none",
        lambda at: ("corpus", "check", at.rfc.bench),
        3,
        ("no corpus", "gniah-load corpus"),
    ),
    Row(
        "pruning in a server without one",
        lambda at: (*at.paths(), "--pruning", "gds"),
        2,
        ("--pruning gds", "leave the option out"),
    ),
    Row(
        "walks in a server without one",
        lambda at: (*at.paths(), "--path-sampler", "gds-walk"),
        2,
        ("--path-sampler gds-walk", "leave the option out"),
    ),
    Row(
        "a graph for a server that is none",
        lambda at: ("neo4j", "import", at.rfc.bench, "--home", at / "home"),
        3,
        ("gniah/graph/1", "graph data"),
    ),
    Row(
        "a server that nobody has the password of",
        lambda at: ("stats", "--store", "bolt://127.0.0.1:9"),
        2,
        ("password", "GNIAH_NEO4J_PASSWORD_FILE"),
    ),
    Row(
        "an address of no store",
        lambda at: ("import", at.rfc.graph, "--store", "http://localhost"),
        2,
        ("http:// is no kind of store", "neo4j://"),
    ),
]

ALL = [
    Row(
        "a file of settings that is not there",
        lambda at: ("--config", at / "no", *at.paths()),
        3,
        ("/no: ", "check the path"),
    ),
    Row(
        "a file of settings that is no TOML",
        lambda at: ("--config", toml(at, "seed ="), *at.paths()),
        3,
        ("settings.toml", "--config"),
    ),
    Row(
        "an unknown setting",
        lambda at: ("--config", toml(at, "[gniah-gen.paths]\nsede = 2"), *at.paths()),
        3,
        ("settings.toml", "'sede'", "seed"),
    ),
    Row(
        "a setting of a wrong type",
        lambda at: ("--config", toml(at, '[gniah-gen.paths]\nseed = "x"'), *at.paths()),
        2,
        ("--seed", "'x'"),
    ),
    Row(
        "a section that is no table",
        lambda at: ("--config", toml(at, "gniah-gen = 4"), *at.paths()),
        3,
        ("settings.toml", "table"),
    ),
    Row(
        "a variable of the environment with a wrong value",
        lambda at: (at.environment.update(GNIAH_GEN_PATHS_SEED="x"), at.paths())[1],
        2,
        ("--seed", "'x'"),
    ),
    Row(
        "a log in a folder that is not there",
        lambda at: ("--log-file", at / "no/log", *at.paths()),
        3,
        ("no/log: ", "no such"),
    ),
    Row(
        "a log on a read-only disk",
        lambda at: ("--log-file", at.read_only_disk() / "log", *at.paths()),
        7,
        ("log: ", "read-only"),
    ),
]

RIGHT = [
    Row(
        "lists in a file of settings",
        lambda at: (
            *("--config", toml(at, "[gniah-gen.paths]\ndepths = [2, 3]\ncount = 20\nseed = 2")),
            *("paths", "--store", at.rfc.store, "--out", at / "made"),
        ),
        0,
    ),
    Row("a bench on a read-only disk is verified", lambda at: ("verify", at.read_only_disk("bench") / "bench"), 0),
    Row(
        "a bench and a store on a read-only disk are audited",
        lambda at: ("audit", at.read_only_disk("bench", "store") / "bench", "--store", at / "fixed/store"),
        0,
    ),
    Row(
        "a bench on a read-only disk is shown",
        lambda at: ("show", at.read_only_disk("bench") / "bench", first_qid(at.rfc.bench), "--store", at.rfc.store),
        0,
    ),
    Row("a bench on a read-only disk is run", lambda at: at.run(bench=at.read_only_disk("bench") / "bench"), 0),
    Row(
        "a bench on a read-only disk is scored",
        lambda at: ("score", at.read_only_disk("bench") / "bench", at.copy("run")),
        0,
    ),
    Row("a store on a read-only disk gives paths", lambda at: at.paths(store=at.read_only_disk("store") / "store"), 0),
    Row(
        "a graph on a read-only disk is imported",
        lambda at: ("import", at.read_only_disk("graph") / "graph", "--store", at / "s"),
        0,
    ),
    Row(
        "a store of another engine version is built again",
        lambda at: ("import", at.rfc.graph, "--store", resealed(at.copy("store"), put(engine="ladybug 0.0.1"))),
        0,
    ),
    Row(
        "a store of other Parquet files is built again",
        lambda at: (
            *("import", at.rfc.graph, "--store"),
            resealed(at.copy("store"), lambda content: content["graph"].update(digest="0" * 64)),
        ),
        0,
        ("built",),
    ),
]

TABLE = [*FILTER, *IMPORT, *STORE, *PATHS, *EXAMPLES, *MERGE, *READING, *RUN, *ELSEWHERE, *ALL]


@pytest.fixture
def place(tmp_path: Path, rfc: Rfc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with contextlib.ExitStack() as stack:
        yield Place(tmp_path, rfc, tmp_path_factory.getbasetemp() / "parts", stack)


def entries(folder: Path) -> dict[str, str]:
    """Return every file below a folder with a hash of its content; folders have none of their own."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name == ANSWERS:  # appended to, one whole line at a time
            assert path.read_bytes().endswith(b"\n") or not path.stat().st_size
        elif path.is_file() and not any(part.endswith(DOCUMENTED) for part in path.relative_to(folder).parts):
            try:
                found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
            except PermissionError:
                found[str(path.relative_to(folder))] = "cannot be read"
    return found


def ended(at: Place, words: Words) -> Finished:
    """Run a command as the row's user would."""
    done = subprocess.run(
        program_of(words),
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **at.environment},
        preexec_fn=give_up_rights if at.without_rights else None,
        timeout=120,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def check_words(done: Finished, row: Row) -> None:
    assert done.code == row.code, done.err
    for never in ("Traceback", "defect of gniah", "Exception ignored"):
        assert never not in done.err
    for text in row.says:
        assert text in done.err


def test_the_table_is_long_enough_and_names_no_row_twice() -> None:
    names = [row.name for row in (*TABLE, *RIGHT)]
    assert len(set(names)) == len(names)
    assert len(TABLE) >= 70


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_bad_input_is_named_and_leaves_nothing_behind(row: Row, place: Place) -> None:
    words = row.words(place)
    before = entries(place.folder)
    done = ended(place, words)
    check_words(done, row)
    if row.code == 1:
        return  # a check that ran to its end may write what it found
    assert entries(place.folder) == before
    assert done.out == ""


@pytest.mark.parametrize("row", RIGHT, ids=lambda row: row.name)
def test_what_looks_odd_and_is_right(row: Row, place: Place) -> None:
    done = ended(place, row.words(place))
    check_words(done, row)
    assert not [name for name in entries(place.folder) if name.endswith((".part", ".old"))]


def test_paths_with_spaces_and_other_letters_are_right_for_every_step(place: Place) -> None:
    home = place / ODD
    (home / "shards").mkdir(parents=True)
    graph, store, paths, bench, run = (home / f"{ODD} {name}" for name in ("graph", "store", "paths", "bench", "run"))
    code = Path(shutil.copytree(place.rfc.code, home / "code"))
    first = ("filter", "--papers", home / "shards/p.gz", "--citations", home / "shards/c.gz")
    for name, source in zip(("p.gz", "c.gz"), place.big_filter(graph)[2:5:2], strict=True):
        shutil.copy(source, home / "shards" / name)
    steps: list[Words] = [
        (*first, "--cutoff", place.rfc.cutoff, "--out", graph, "--jobs", "2"),
        ("import", graph, "--store", store),
        ("stats", "--store", store),
        ("paths", "--store", store, "--out", paths, "--depths", "2,3", "--count", "100"),
        place.rfc.example_words(
            *(bench, "--store", store, "--paths", paths, "--corpus", f"code={code}", "--jobs", "2"),
        ),
        ("verify", bench, "--jobs", "2"),
        ("audit", bench, "--store", store),
        ("show", bench, first_qid(place.rfc.bench), "--store", store, "--svg", home / "drawing.svg"),
        ("none-variants", bench, "--out", home / "none"),
        ("run", bench, "--model", "text-solver", "--out", run),
        ("score", bench, run),
    ]
    for words in steps:
        done = ended(place, ("--log-file", home / "log", *words))
        assert done.code == 0, done.err
    assert (bench / "examples.jsonl").read_bytes() == (place.rfc.bench / "examples.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["graph", "paths", "examples", "answers"])
def test_with_room_again_the_same_command_completes(place: Place, name: str) -> None:
    disk = place.full_disk(kilobytes=8192)
    words = {
        "graph": place.big_filter(disk / name),
        "paths": place.paths("--count", "900", "--out", disk / name),
        "examples": place.examples("--out", disk / name),
        "answers": place.run("--out", disk / name, "--repeats", "9"),
    }[name]
    assert ended(place, words).code == 7
    (disk / "ballast").unlink()
    done = ended(place, words)
    assert done.code == 0, done.err
