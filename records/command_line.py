"""What the three commands share: exit codes, streams, settings, and how an error looks.

Data goes to standard output, messages and progress to standard error. A setting comes from an option, then from
the environment (`GNIAH_GEN_PATHS_SEED`), then from a TOML file (`--config`), then from its default.
"""

from __future__ import annotations

import importlib
import json
import logging
import signal
import sys
import threading
import time
import tomllib
import traceback
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from gniah.records.errors import EnvironmentFault, GniahError, InputError
from gniah.records.families import CommandSpec
from gniah.records.files import environment_fault
from gniah.records.manifests import package_version

INTERRUPTED = 130
LOG = logging.getLogger("gniah")
# Whether a path can be read is found out where it is read: click would call a lack of permission wrong use.
GIVEN_PATH = click.Path(path_type=Path, readable=False)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that `--help` is quick.

    `lazy` maps a command's name to where it is and its line in the overview.
    """

    def __init__(self, *args: Any, lazy: Callable[[], Mapping[str, CommandSpec]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy_source = lazy
        self._lazy_specs: Mapping[str, CommandSpec] | None = None

    @property
    def _lazy(self) -> Mapping[str, CommandSpec]:
        if self._lazy_specs is None:
            self._lazy_specs = self._lazy_source()
        return self._lazy_specs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every command's name."""
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or None when there is none of that name."""
        spec = self._lazy.get(cmd_name)
        if spec is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = spec.reference.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            return None
        _name_variables(command, ctx, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the summaries alone, importing nothing."""
        rows = [(name, spec.summary) for name, spec in self._lazy.items()]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _option_names(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by the names that a user knows, with `_` for `-`."""
    return {
        max(parameter.opts, key=len).lstrip("-").replace("-", "_"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
    }


def _name_variables(command: click.Command, ctx: click.Context, name: str) -> None:
    """Let an option's environment variable be called as the option is, and not as the argument it fills."""
    if isinstance(command, click.Group):
        for inner, its_command in command.commands.items():
            _name_variables(its_command, ctx, f"{name}_{inner}")
    for public, option in _option_names(command).items():
        if public != option.name and option.envvar is None and ctx.auto_envvar_prefix:
            option.envvar = "_".join((ctx.auto_envvar_prefix, name.replace("-", "_"), public)).upper()


def _by_argument(
    section: Mapping[str, Mapping[str, Any]], name: str, command: click.Command, path: Path
) -> dict[str, Any]:
    """Return a section of TOML with the settings of one command under the names of the arguments they fill.

    Raises InputError for a setting that is no option of the command.
    """
    given = {setting.replace("-", "_"): value for setting, value in section.get(name, {}).items()}
    inner: dict[str, Any] = {}
    if isinstance(command, click.Group):  # [gniah-load.neo4j.start]: a table of each of its commands
        inner = {word: given.pop(word) for word in list(given) if word in command.commands}
        for word in inner:
            inner = _by_argument(inner, word, command.commands[word], path)
    options = _option_names(command)
    unknown = [setting for setting in given if setting not in options]
    if unknown:
        raise InputError(
            f"{path}: sets {unknown[0]!r}, and {name} has no such option",
            remedy=f"options of {name}: {', '.join(option.replace('_', '-') for option in options)}",
        )
    return {**section, name: {**inner, **{options[setting].name: value for setting, value in given.items()}}}


def program(name: str, summary: str, lazy: Callable[[], Mapping[str, CommandSpec]]) -> LazyGroup:
    """Return the group of one of the three programs, with the options that all of them have."""

    def settings(ctx: click.Context, verbose: int, log_file: Path | None, config: Path | None) -> None:
        _set_up_logging(verbose, log_file)
        if config is not None:
            section = _settings_of(config, name)
            called = ctx.invoked_subcommand or ""
            command = group.get_command(ctx, called)
            ctx.default_map = _by_argument(section, called, command, config) if command else section

    group = LazyGroup(
        name=name,
        help=summary,
        lazy=lazy,
        callback=click.pass_context(settings),
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        params=[
            click.Option(["-v", "--verbose"], count=True, help="Say more; twice for everything."),
            click.Option(["--log-file"], type=GIVEN_PATH, help="Also write all messages to this file."),
            click.Option(
                ["--config"],
                type=GIVEN_PATH,
                envvar="GNIAH_CONFIG",
                help=f'TOML file with settings, as in [{name}.COMMAND] option = "value".',
            ),
        ],
    )
    return click.version_option(package_version(), prog_name=name)(group)


# Whether this process is one of the programs. In any other one, messages go to the logger alone, as a library's do.
_is_program = False


def run(group: click.Group) -> None:
    """Run a program and end the process with its exit code. No user's mistake ends in a traceback."""
    global _is_program
    _is_program = True
    name = group.name or "gniah"
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    _answer_interrupts()
    try:
        code = group.main(prog_name=name, standalone_mode=False, auto_envvar_prefix=name.upper().replace("-", "_"))
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (click.Abort, KeyboardInterrupt) as stop:
        if isinstance(stop.__cause__, EOFError):  # click takes it for the end of a dialogue, and we have none
            _tell_defect(name)
        say("interrupted; finished work is kept, and the same command goes on from there")
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except GniahError as error:
        show_error(name, error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(EnvironmentFault.exit_code)
    except OSError as error:
        fault = environment_fault(error, error.filename or "")
        show_error(name, fault)
        sys.exit(fault.exit_code)
    except MemoryError:
        show_error(name, EnvironmentFault("out of memory", remedy="use fewer jobs or a larger machine"))
        sys.exit(EnvironmentFault.exit_code)
    except Exception:  # noqa: BLE001  (the last resort: a defect of ours is said to be one)
        _tell_defect(name)


def _tell_defect(name: str) -> NoReturn:
    traceback.print_exc()
    say(f"{name}: this is a defect of gniah {package_version()}; please report it with the lines above")
    sys.exit(GniahError.exit_code)


def _answer_interrupts() -> None:
    """Let the first Ctrl-C end the work in order, and the next one end the process at once, without a traceback."""

    def end_in_order(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    # Where interrupts are ignored, as after nohup, or belong to a program that calls this one, they stay as they are.
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, end_in_order)


def show_error(name: str, error: GniahError) -> None:
    """Write an error and its remedy to standard error."""
    say(f"{name}: error: {error.message}")
    if error.remedy:
        say(f"  to mend it: {error.remedy}")


def say(message: str) -> None:
    """Write a message for a person to standard error, safe to show on a terminal whatever it quotes.

    Outside of the programs it goes to the logger `gniah` and nowhere else.
    """
    LOG.info("%s", message)
    if _is_program and not any(isinstance(handler, _StandardError) for handler in LOG.handlers):
        click.echo(printable(message), err=True)


def printable(text: str) -> str:
    """Return a text without characters that could steer a terminal (model output and titles are untrusted)."""
    return "".join(
        character if character in "\n\t" or character.isprintable() else _escaped(character) for character in text
    )


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def emit(text: str) -> None:
    """Write data to standard output."""
    click.echo(text)


def emit_json(value: object) -> None:
    """Write a value to standard output as JSON, for programs."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=1))


def table(headings: Iterable[str], rows: Iterable[Iterable[object]], *, title: str | None = None) -> str:
    """Return a plain-text table: headings, a rule, aligned columns, numbers to the right."""
    cells = [[printable(str(cell)).replace("\n", " ") for cell in row] for row in rows]
    heads = [str(heading) for heading in headings]
    widths = [max([_width(head), *(_width(row[i]) for row in cells)]) for i, head in enumerate(heads)]
    numeric = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(heads))]

    def line(row: list[str]) -> str:
        padded = [
            " " * (width - _width(cell)) + cell if right else cell + " " * (width - _width(cell))
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [title] if title else []
    lines += [line(heads), "  ".join("-" * width for width in widths), *(line(row) for row in cells)]
    return "\n".join(lines)


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(character) in {"Mn", "Me"}
        else 2
        if unicodedata.east_asian_width(character) in {"W", "F"}
        else 1
        for character in text
    )


def _is_number(cell: str) -> bool:
    return bool(cell) and all(character in "0123456789.,%+-–∞ " for character in cell)


def on_terminal() -> bool:
    """Whether this is one of our programs with a terminal as its standard error, where lines can renew themselves."""
    return _is_program and sys.stderr.isatty()


class Progress:
    """Progress of a long step: a line that renews itself on a terminal, a message now and then elsewhere."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._started = self._last = time.monotonic()
        self._terminal = on_terminal()

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count work that was finished."""
        self._done += count
        now = time.monotonic()
        if now - self._last >= (0.2 if self._terminal else 10.0):
            self._last = now
            of = f" of {self._total:,}" if self._total is not None else ""
            text = printable(f"{self._what}: {self._done:,}{of}, {now - self._started:.0f} s {note}".rstrip())
            if self._terminal:
                sys.stderr.write(f"\r\x1b[K{text}")
                sys.stderr.flush()
            else:
                say(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class _StandardError(logging.StreamHandler[Any]):
    """The handler that shows messages; its presence tells `say` not to write them twice."""


def _set_up_logging(verbose: int, log_file: Path | None) -> None:
    for handler in list(LOG.handlers):
        LOG.removeHandler(handler)
        handler.close()
    LOG.setLevel({0: logging.INFO, 1: logging.INFO}.get(verbose, logging.DEBUG))
    LOG.propagate = False
    LOG.addHandler(logging.NullHandler())
    if verbose:
        shown = _StandardError(sys.stderr)
        shown.setFormatter(_Printable("%(message)s"))
        LOG.addHandler(shown)
    if log_file is not None:
        try:
            kept = logging.FileHandler(log_file, encoding="utf-8")
        except OSError as error:
            raise environment_fault(error, log_file) from error
        kept.setFormatter(_Printable("%(asctime)s %(levelname)s %(message)s"))
        LOG.addHandler(kept)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _settings_of(path: Path, program_name: str) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            settings = tomllib.load(stream)
    except OSError as error:
        raise environment_fault(error, path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}", remedy="mend the file given by --config") from None
    section = settings.get(program_name, {})
    if not isinstance(section, dict):
        raise InputError(f"{path}: [{program_name}] must be a table of commands")
    for command, given in section.items():
        if not isinstance(given, dict):
            raise InputError(f"{path}: [{program_name}.{command}] must be a table of options")
    return section
