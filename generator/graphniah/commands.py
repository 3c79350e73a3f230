"""The commands that GraphNIAH adds to `gniah-gen`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gniah.records.command_line import GIVEN_PATH, emit, emit_json, say, table
from gniah.records.errors import UsageFault
from gniah.records.parameters import Integers, Names, Part, Range

if TYPE_CHECKING:
    from gniah.generator.graphniah import Produced
    from gniah.generator.graphniah.path_graph import Pruning
    from gniah.generator.graphniah.path_sampling import PathSampler
    from gniah.generator.spark import SparkCluster

_STORE = click.option("--store", required=True, envvar="GNIAH_STORE", help="The graph store: a folder or a server.")
_CHAT = click.option(
    "--chat-template",
    "chat_templates",
    multiple=True,
    metavar="[LABEL=]PATH|none",
    help="Chat template of a tokenizer file; none counts a request as its two texts.",
)
_SEED = click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Names all random draws.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")


@click.command("paths")
@_STORE
@click.option("--out", required=True, type=GIVEN_PATH, help="Where the pools go, one folder for each depth.")
@click.option("--depths", type=Integers(), default="4,8,16,32", show_default=True, help="Question depths k.")
@click.option("--count", type=click.IntRange(1), default=1000, show_default=True, help="Paths for each depth.")
@click.option("--max-uses", type=click.IntRange(1), default=100, show_default=True, help="Paths on one paper at most.")
@click.option("--allow-fewer", is_flag=True, help="Be content with fewer paths than asked for.")
@click.option(
    "--pruning",
    type=click.Choice(("gds", "blocks")),
    help="By Graph Data Science (the default on a Neo4j store), or in this process; the result is the same.",
)
@click.option(
    "--path-sampler",
    type=click.Choice(("dfs", "gds-walk")),
    default="dfs",
    show_default=True,
    help="Depth-first search as in the paper, or random walks by Graph Data Science.",
)
@_SEED
@_JSON
def paths(
    store: str,
    out: Path,
    depths: tuple[int, ...],
    count: int,
    max_uses: int,
    allow_fewer: bool,
    pruning: Pruning | None,
    path_sampler: PathSampler,
    seed: int,
    as_json: bool,
) -> None:
    """Prune the graph for each depth k, and sample a pool of simple paths of 3k - 2 papers.

    \b
    Example:
      gniah-gen paths --store store --out out --depths 4,8
    """
    from gniah.cypher import open_store
    from gniah.generator.graphniah import sample_pools

    with open_store(store) as graph:
        pools = sample_pools(
            graph,
            out,
            depths=depths,
            count=count,
            seed=seed,
            max_uses=max_uses,
            allow_fewer=allow_fewer,
            pruning=pruning,
            sampler=path_sampler,
        )
    if as_json:
        emit_json([pool.to_json() for pool in pools])
        return
    headings = {
        "question_depth": "k",
        "path_length": "papers a path",
        "papers_before": "papers",
        "papers_after": "left by pruning",
        "paths": "paths found",
        "can_stand_together": "can stand together",
        "starts": "starts",
        "seconds": "s",
    }
    emit(table(headings.values(), ([getattr(pool, name) for name in headings] for pool in pools)))


@click.command("examples")
@_STORE
@click.option("--paths", "path_folder", required=True, type=GIVEN_PATH, help="What gniah-gen paths wrote.")
@click.option("--out", required=True, type=GIVEN_PATH, help="Where the benchmark goes.")
@click.option("--count", type=click.IntRange(1), required=True, help="Slots of the list.")
@click.option("--context-length", type=click.IntRange(1), required=True, help="L: tokens of a whole request.")
@click.option("--name", default="mixed", show_default=True, help="The name of the list.")
@click.option(
    "--tasks", type=Names(), default="yes-no,multiple-choice,counting", show_default=True, help="Tasks to draw from."
)
@click.option("--depths", type=Integers(), default="4,8,16,32", show_default=True, help="Question depths to draw from.")
@click.option("--sizes", type=Range(), default="100-250", show_default=True, help="Papers in each component.")
@click.option(
    "--distractors", type=Names(), default="code,disjoint-component", show_default=True, help="Types to draw from."
)
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="TYPE=FOLDER",
    help="Where texts of a type come from: what gniah-load corpus made, or a plain folder of texts.",
)
@click.option(
    "--tokenizer",
    "tokenizers",
    multiple=True,
    default=("tiktoken:o200k_base",),
    show_default=True,
    metavar="[LABEL=]NAME",
    help="Tokenizers under which L holds: tiktoken:NAME, hf:OWNER/NAME, file:PATH.",
)
@_CHAT
@click.option("--vary", help="The variable whose values take turns: question-depth, node-count, …")
@click.option("--varied-sizes", type=Integers(), default=(), help="Sizes that take turns with --vary node-count.")
@click.option("--alpha", default="0.1", show_default=True, help="Concentration parameter of growth.")
@click.option("--templates", default="plain", show_default=True, help="Template set: a name or a file.")
@click.option(
    "--recount/--no-recount",
    default=True,
    show_default=True,
    help="Count each finished prompt whole as well, by each tokenizer itself; no byte depends on it.",
)
@click.option("--strict-fill", is_flag=True, help="Fail when a corpus runs out, instead of leaving prompts short.")
@click.option("--skip-impossible", is_flag=True, help="Leave out settings that the graph cannot give.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many processes.")
@click.option(
    "--engine",
    type=click.Choice(("local", "spark")),
    default="local",
    show_default=True,
    help="Processes of this machine, or a Spark cluster; the bytes are the same.",
)
@click.option("--spark-master", metavar="URL", help="As spark://HOST:PORT; else what Spark's configuration says.")
@click.option(
    "--spark-wait",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="For so many seconds the cluster may have no free core.",
)
@click.option("--part", type=Part(), default="1/1", show_default=True, help="Build only part I of N; see merge.")
@_SEED
@_JSON
def examples(
    store: str,
    path_folder: Path,
    out: Path,
    count: int,
    context_length: int,
    name: str,
    tasks: tuple[str, ...],
    depths: tuple[int, ...],
    sizes: tuple[int, int],
    distractors: tuple[str, ...],
    corpora: tuple[str, ...],
    tokenizers: tuple[str, ...],
    chat_templates: tuple[str, ...],
    vary: str | None,
    varied_sizes: tuple[int, ...],
    alpha: str,
    templates: str,
    recount: bool,
    strict_fill: bool,
    skip_impossible: bool,
    jobs: int,
    engine: str,
    spark_master: str | None,
    spark_wait: int,
    part: tuple[int, int],
    seed: int,
    as_json: bool,
) -> None:
    """Build a list of examples and write the published files.

    \b
    Example:
      gniah-gen examples --store store --paths out --out bench --count 24 --context-length 32000 \\
        --depths 4 --sizes 30-60 --corpus code=/usr/src/linux
    """
    from gniah.cypher import open_store
    from gniah.generator.graphniah import ListSettings, load_templates, produce, sources_for

    cluster = _cluster(engine, spark_master, spark_wait, jobs)
    with open_store(store) as graph:
        cutoff = str(graph.manifest.content["cutoff"])
    settings = ListSettings(
        name=name,
        count=count,
        tasks=tasks,
        depths=depths,
        sizes=sizes,
        distractor_types=distractors,
        context_length=context_length,
        seed=seed,
        alpha=alpha,
        cutoff_date=cutoff,
        templates=load_templates(templates).name,
        vary=vary,
        varied_sizes=varied_sizes,
    )
    sources = sources_for(
        settings,
        store=store,
        paths=path_folder,
        corpora=_corpus_folders(corpora),
        tokenizers=tokenizers,
        chat_templates=chat_templates,
        templates=templates,
    )
    produced = produce(
        settings,
        sources,
        out,
        jobs=jobs,
        cluster=cluster,
        part=part,
        strict_fill=strict_fill,
        skip_impossible=skip_impossible,
        recount=recount,
    )
    _report(produced, out, as_json)


def _cluster(engine: str, master: str | None, wait: int, jobs: int) -> SparkCluster | None:
    """Return the cluster to build on, if any. Raises UsageFault for options that belong to the other engine."""
    if engine == "local":
        typed = click.get_current_context().get_parameter_source("spark_master")
        if typed is click.core.ParameterSource.COMMANDLINE:
            raise UsageFault("--spark-master is given, and the engine is local", remedy="add --engine spark")
        return None
    if jobs != 1:
        raise UsageFault("--jobs are processes of this machine, and the engine is spark", remedy="leave out --jobs")
    from gniah.generator.spark import find_cluster

    return find_cluster(master, patience=wait)


def _corpus_folders(given: tuple[str, ...]) -> dict[str, Path]:
    folders: dict[str, Path] = {}
    for text in given:
        kind, equals, folder = text.partition("=")
        if not equals or not folder:
            raise UsageFault(f"--corpus takes TYPE=FOLDER, not {text!r}")
        folders[kind] = Path(folder)
    return folders


def _report(produced: Produced, out: Path, as_json: bool) -> None:
    if produced.built and produced.store.questions:
        each = produced.store.questions / produced.built
        milliseconds = 1000 * produced.store.seconds / produced.store.questions
        say(f"{out}: {each:,.0f} questions to the store an example, {milliseconds:.2f} ms each")
    if produced.manifest is None:
        say(
            f"{out}: {produced.built} examples built now, {produced.found} found finished, "
            f"{produced.missing} of {produced.total} are left for other parts"
        )
        return
    if not produced.built and produced.found:
        say(f"{out}: all {produced.total} examples were finished already")
    counts = produced.manifest.content["counts"]
    if as_json:
        emit_json(counts)
        return
    rows = [("examples", counts["examples"])]
    for kind in ("tasks", "stopped", "building", "left out"):
        rows += [(f"{kind}: {name}", number) for name, number in counts.get(kind, {}).items()]
    emit(table(("what", "count"), rows))


@click.command("merge")
@click.argument("parts", nargs=-1, required=True, type=GIVEN_PATH)
@click.option("--out", required=True, type=GIVEN_PATH, help="Where the whole benchmark goes.")
@_JSON
def merge(parts: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Put together what several machines built with gniah-gen examples --part.

    \b
    Example:
      gniah-gen merge part-1 part-2 --out bench
    """
    from gniah.generator.graphniah import merge as merge_parts

    _report(merge_parts(parts, out), out, as_json)


@click.command("none-variants")
@click.argument("bench", type=GIVEN_PATH)
@click.option("--out", required=True, type=GIVEN_PATH, help="Where the converted examples go.")
@click.option("--first", type=click.IntRange(1), help="Convert only the first so many multiple-choice examples.")
@click.option(
    "--tokenizer",
    "tokenizers",
    multiple=True,
    default=("tiktoken:o200k_base",),
    show_default=True,
    metavar="[LABEL=]NAME",
    help="The tokenizers the examples were made with.",
)
@_CHAT
@click.option("--templates", help="The template set, when it is none that ships with gniah: its file.")
def none_variants(
    bench: Path,
    out: Path,
    first: int | None,
    tokenizers: tuple[str, ...],
    chat_templates: tuple[str, ...],
    templates: str | None,
) -> None:
    """Append option E, which is never right, to the multiple-choice examples of BENCH; nothing else changes.

    \b
    Example:
      gniah-gen none-variants bench --out bench-none --first 100
    """
    from gniah.generator.graphniah import write_none_variants

    count = write_none_variants(bench, out, tokenizers, first=first, templates=templates, chat_templates=chat_templates)
    emit(f"{count} examples converted")


@click.command("show")
@click.argument("pool", type=GIVEN_PATH)
@click.argument("qid")
@_STORE
@click.option("--svg", type=GIVEN_PATH, help="Also draw its subgraph into this file, the true path marked.")
def show(pool: Path, qid: str, store: str, svg: Path | None) -> None:
    """Print one example for a person: question, answer, and the lines of the prompt that prove it.

    POOL is a pool.jsonl or the folder that holds it; QID may be the beginning of one.

    \b
    Example:
      gniah-gen show bench 1f3a --store store --svg example.svg
    """
    from gniah.cypher import open_store
    from gniah.generator.graphniah import picture_of, shown
    from gniah.records.command_line import printable
    from gniah.records.files import whole_file
    from gniah.records.graphniah import find_record, pool_path

    record = find_record(pool_path(pool), qid)
    with open_store(store) as graph:
        text = shown(record, graph)
        if svg is not None:
            with whole_file(svg) as stream:
                stream.write(picture_of(record, graph).encode("utf-8"))
            say(f"{svg}: written")
        emit(printable(text))


@click.command("quickstart")
@click.option("--out", type=GIVEN_PATH, default=Path("gniah-quickstart"), show_default=True, help="Where all files go.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="How many processes.")
def quickstart(out: Path, jobs: int) -> None:
    """Run the whole job on a small real graph: RFCs since 2010 and the references among them.

    It types the three programs' commands one after the other, and shows each before it runs.

    \b
    Example:
      gniah-gen quickstart
    """
    from gniah.generator.graphniah.quickstart import run_quickstart

    run_quickstart(out, jobs)
