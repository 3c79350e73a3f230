"""The program `gniah-gen`: its own commands, and those that families add."""

from __future__ import annotations

from collections.abc import Mapping

from gniah.records.command_line import program, run
from gniah.records.families import CommandSpec, families


def _commands() -> Mapping[str, CommandSpec]:
    found: dict[str, CommandSpec] = {}
    for family in families().values():
        found.update(family.commands)
    found["index"] = CommandSpec("gniah.generator.retrieval.commands:index_command", "Index passages of Wikipedia.")
    found["verify"] = CommandSpec("gniah.generator.commands:verify_command", "Answer examples again from their text.")
    return found


GROUP = program("gniah-gen", "Build benchmarks out of a graph store, and prove them sound.", _commands)


def main() -> None:
    """Run the program."""
    run(GROUP)
