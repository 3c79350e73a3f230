"""The program `gniah-load`."""

from __future__ import annotations

from collections.abc import Mapping

from gniah.records.command_line import program, run
from gniah.records.families import CommandSpec


def _commands() -> Mapping[str, CommandSpec]:
    return {
        "filter": CommandSpec(
            "gniah.loader.commands:filter_command", "Make Parquet files of the eligible papers and citations."
        ),
        "import": CommandSpec("gniah.loader.importing:import_command", "Build a graph store from the Parquet files."),
        "stats": CommandSpec("gniah.loader.exploring:stats_command", "Describe the graph in a store."),
        "query": CommandSpec("gniah.loader.exploring:query_command", "Run a named query."),
        "cypher": CommandSpec("gniah.loader.exploring:cypher_command", "Run a reading Cypher statement."),
        "corpus": CommandSpec("gniah.loader.corpora.commands:corpus_group", "Turn texts into a corpus of distractors."),
        "neo4j": CommandSpec(
            "gniah.loader.neo4j.commands:neo4j_group", "Run a Neo4j server with Graph Data Science on this machine."
        ),
    }


GROUP = program("gniah-load", "Turn S2AG shards into a citation graph, and look at it.", _commands)


def main() -> None:
    """Run `gniah-load`."""
    run(GROUP)
