"""The files that `neo4j-admin database import full` reads, and the words it is called with.

The ids that tie citations to papers are texts beside the property `corpusid`: as integers the importer takes none
beyond 56 bits, and an integer in the place of a text breaks it when two of its hashes agree.

The node of the graph goes in as one whose import is not finished. That is for whoever compares the counts to change:
a database whose import was killed in its last step opens as if all were well, and answers without its citations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gniah.cypher.bolt import SERVER_GRAPH_SCHEMA
from gniah.cypher.bolt_import import IMPORTING, spelled
from gniah.cypher.store import GRAPH_SCHEMA
from gniah.loader.neo4j.bulk_lines import citation_lines, csv_text, paper_lines, write_lines
from gniah.records.errors import InputError, UsageFault
from gniah.records.files import locked_place, machine_trouble, sha256_file, whole_folder
from gniah.records.manifests import MANIFEST_NAME, Manifest, RunClock

IMPORT_SCHEMA = "gniah/neo4j-import/1"
REPORT_NAME = "import.report"
DATABASE = "neo4j"

HEADERS: Mapping[str, str] = {
    "papers": (
        ":ID(Paper),corpusid:long,title:string,title_key:string,authors:string[],publicationdate:date,"
        "venue:string,arxiv_id:string"
    ),
    "citations": ":START_ID(Paper),:END_ID(Paper),isinfluential:boolean",
    "graph": (
        "name:string,schema:string,digest:string,manifest:string,papers:long,citations:long,"
        "papers_done:long,citations_done:long,state:string"
    ),
}

_AGAIN = "run gniah-load filter again"
_CHOOSE = "choose another folder with --out"
_FORCE = "add --force to write them again, or choose another folder with --out"
# Characters that the importer reads at once unless it is told: it must hold the longest line.
_USUAL_BUFFER = 4 << 20
_LONGEST_CHARACTER = 4
_WORDS = (
    "--array-delimiter=U+001F",
    "--id-type=string",
    "--input-encoding=UTF-8",
    "--multiline-fields=false",
    "--legacy-style-quoting=false",
    "--ignore-empty-strings=false",
    "--trim-strings=false",
    "--bad-tolerance=0",
    "--strict=true",
    f"--report-file={REPORT_NAME}",
)


@dataclass(frozen=True, slots=True)
class ImportFiles:
    """A folder of files to import: what they hold, and how many characters their longest line has."""

    folder: Path
    papers: int
    citations: int
    properties: int
    longest: int

    @property
    def expected(self) -> dict[str, int]:
        """Return what the importer counts when all goes in; one more node says which graph it is."""
        return {"nodes": self.papers + 1, "relationships": self.citations, "properties": self.properties}

    def words(self, *, overwrite: bool = False) -> list[str]:
        """Return the words after `neo4j-admin`, for a process that works in the folder.

        The name of the database comes first, where the releases since 5.19 expect it. Files are named from the folder,
        since the importer takes a comma in a path for the end of it and the rest for a regular expression.
        """
        longest = self.longest * _LONGEST_CHARACTER
        return [
            *("database", "import", "full", DATABASE),
            f"--nodes=Paper={_pair('papers')}",
            f"--nodes=GniahGraph={_pair('graph')}",
            f"--relationships=CITES={_pair('citations')}",
            *_WORDS,
            *([f"--read-buffer-size={longest}"] if longest > _USUAL_BUFFER else []),
            *(["--overwrite-destination=true"] if overwrite else []),
        ]


def _pair(kind: str) -> str:
    return f"./{kind}-header.csv,./{kind}.csv"


def _ignore(_: object) -> None:
    """Take what nobody wants to hear."""


def write_import_files(graph: Path, out: Path, *, advance: Callable[[int], None] = _ignore) -> ImportFiles:
    """Write the files for `neo4j-admin database import full` from a folder that `gniah-load filter` wrote.

    `out` appears whole or not at all, with a manifest (schema `gniah/neo4j-import/1`); the same graph gives the same
    bytes. `advance` is told of rows that were written. Raises InputError when the Parquet files are missing, damaged
    or do not hold what their manifest counts, EnvironmentFault for a full disk.
    """
    clock = RunClock()
    source = Manifest.read(graph, GRAPH_SCHEMA)
    counts = graph_counted(source, graph)
    with whole_folder(out) as part:
        papers = write_lines(part / "papers.csv", paper_lines(graph / "papers.parquet"), advance)
        citations = write_lines(part / "citations.csv", citation_lines(graph / "citations.parquet"), advance)
        _compare(papers.rows, citations.rows, counts, graph)
        written = [papers, citations, write_lines(part / "graph.csv", [[_graph_row(source, counts)]])]
        written += [write_lines(part / f"{kind}-header.csv", [[(header, 0)]]) for kind, header in HEADERS.items()]
        content = {
            "graph": {"schema": source.schema, "digest": source.digest},
            **counts,
            "properties": sum(one.properties for one in written),
            "longest_line": max(one.longest for one in written),
            "files": {one.name: one.sha256 for one in written},
        }
        manifest = Manifest(IMPORT_SCHEMA, content, clock.run("duckdb", graph=str(graph)))
        manifest.write(part)
    return _described(out, manifest)


def make_import_files(
    graph: Path,
    out: Path,
    *,
    force: bool = False,
    report: Callable[[str], None] = _ignore,
    advance: Callable[[int], None] = _ignore,
) -> ImportFiles:
    """Write the files as `write_import_files` does, unless they are there already; never over anything else.

    Files of another graph, and files that were changed, are replaced with `force` only. Raises UsageFault when `out`
    holds something else, BusyError when another process writes there.
    """
    source = Manifest.read(graph, GRAPH_SCHEMA)
    out = out.resolve()
    if not out.name:
        raise UsageFault(f"{out}: this cannot be a folder of files", remedy=_CHOOSE)
    with locked_place(out):
        if _is_filled(out) and not force:
            manifest = _unchanged(out)
            if manifest.content["graph"]["digest"] != source.digest:
                raise UsageFault(f"{out}: holds the files of another graph", remedy=_FORCE)
            report(f"{out}: already there, nothing to do")
            return _described(out, manifest)
        return write_import_files(graph, out, advance=advance)


def _is_filled(out: Path) -> bool:
    """Say whether a folder holds files to import. Raises UsageFault when it holds, or is, anything else."""
    ours = {MANIFEST_NAME, REPORT_NAME, *(f"{kind}{end}.csv" for kind in HEADERS for end in ("", "-header"))}
    with machine_trouble(out):
        if not out.exists():
            return False
        if not out.is_dir():
            raise UsageFault(f"{out}: a file has this name", remedy=_CHOOSE)
        found = sorted(entry.name for entry in out.iterdir())
    foreign = [name for name in found if name not in ours]
    if foreign:
        raise UsageFault(
            f"{out}: holds something else than files to import ({foreign[0]!r}), and is never overwritten",
            remedy=_CHOOSE,
        )
    return bool(found)


def _unchanged(folder: Path) -> Manifest:
    """Return the manifest of a folder of files to import. Raises InputError when any was changed or is missing."""
    try:
        manifest = Manifest.read(folder, IMPORT_SCHEMA)
    except InputError as error:
        raise InputError(error.message, remedy=_FORCE) from None
    for name, known in manifest.content["files"].items():
        path = folder / name
        if not path.is_file() or sha256_file(path) != known:
            raise InputError(f"{path}: missing, or changed after it was written", remedy=_FORCE)
    return manifest


def _described(folder: Path, manifest: Manifest) -> ImportFiles:
    content = manifest.content
    numbers = (content[name] for name in ("papers", "citations", "properties", "longest_line"))
    return ImportFiles(folder, *numbers)


def graph_counted(source: Manifest, graph: Path) -> dict[str, int]:
    """Return how many papers and citations a graph's manifest counts. Raises InputError when it has no counts."""
    counts = source.content.get("counts") or {}
    try:
        return {name: int(counts[name]) for name in ("papers", "citations")}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{graph}: the manifest has no counts", remedy=_AGAIN) from None


def _compare(papers: int, citations: int, counts: Mapping[str, int], graph: Path) -> None:
    if {"papers": papers, "citations": citations} != dict(counts):
        raise InputError(
            f"{graph}: the Parquet files hold {papers} papers and {citations} citations, the manifest says "
            f"{counts['papers']} and {counts['citations']}",
            remedy=_AGAIN,
        )


def _graph_row(source: Manifest, counts: Mapping[str, int]) -> tuple[str, int]:
    texts = ("graph", SERVER_GRAPH_SCHEMA, source.digest, spelled(source))
    numbers = [str(counts[name]) for name in ("papers", "citations")]
    fields = [*map(csv_text, texts), *numbers, *numbers, csv_text(IMPORTING)]
    return ",".join(fields), len(fields)
