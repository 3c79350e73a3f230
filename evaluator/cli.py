"""`gniah-eval`: the program. Its commands are imported when they are called."""

from __future__ import annotations

from collections.abc import Mapping

from gniah.records.command_line import program, run
from gniah.records.families import CommandSpec

_COMMANDS = "gniah.evaluator.commands"
_RUNNING = "gniah.evaluator.running_commands"
_POOL = "gniah.evaluator.pool_commands"
_BATCHES = "gniah.evaluator.batch_commands"
_COMPARING = "gniah.evaluator.comparing_commands"

SUMMARY = """Run models over examples and score their answers.

\b
Example:
  gniah-eval run BENCH --model text-solver --model random --out RUN
  gniah-eval score BENCH RUN
"""


def commands() -> Mapping[str, CommandSpec]:
    """Return the commands of the program."""
    return {
        "run": CommandSpec(f"{_RUNNING}:run_command", "Ask models every example and keep what they answer."),
        "models": CommandSpec(
            "gniah.evaluator.model_commands:models_command", "List the models whose files come with gniah."
        ),
        "pool": CommandSpec(f"{_POOL}:pool_group", "Check, put together or give out the responses of a run."),
        "lists": CommandSpec(f"{_POOL}:lists_command", "Name the lists that examples belong to."),
        "batch": CommandSpec(f"{_BATCHES}:batch_group", "Ask models by their provider's batch interface."),
        "score": CommandSpec(f"{_COMMANDS}:score_command", "Read the answers of a run and score them."),
        "export": CommandSpec(f"{_COMMANDS}:export_command", "Write scored responses into a Parquet file."),
        "compare": CommandSpec(f"{_COMPARING}:compare_command", "Compare two score files, example by example."),
        "power": CommandSpec(f"{_COMPARING}:power_command", "Say how many examples a comparison needs."),
    }


PROGRAM = program("gniah-eval", SUMMARY, commands)


def main() -> None:
    """Run `gniah-eval` and end the process with its exit code."""
    run(PROGRAM)
