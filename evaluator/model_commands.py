"""`gniah-eval models`: the model files that come with gniah."""

from __future__ import annotations

import click

from gniah.records.command_line import emit, table
from gniah.records.errors import UsageFault


@click.command("models")
@click.argument("name", required=False)
def models_command(name: str | None) -> None:
    """List the models whose files come with gniah, or print the file of NAME, to be copied and changed.

    \b
    Example:
      gniah-eval models
      gniah-eval models gpt-5.6-luna > my-model.toml
    """
    from gniah.evaluator.inference.model_files import find_model, shipped_models, shipped_text

    if name is not None:
        if name not in shipped_models():
            raise UsageFault(
                f"no file of a model {name!r} comes with gniah", remedy=f"choose one of {', '.join(shipped_models())}"
            )
        emit(shipped_text(name).rstrip("\n"))
        return
    rows = []
    for one in shipped_models():
        file = find_model(one)
        if file is not None:
            window = "unknown" if file.context_window is None else f"{file.context_window:,}"
            rows.append((file.name, file.litellm, window, ", ".join(file.tiers) or "-"))
    emit(table(("model", "asked as", "window", "tiers"), rows))
