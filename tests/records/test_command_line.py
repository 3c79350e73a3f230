from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gniah.records.command_line import printable, table

PROGRAM = '''
import sys
import click
from gniah.records import errors
from gniah.records.command_line import emit, emit_json, program, run, say
from gniah.records.families import CommandSpec

@click.command()
@click.argument("kind")
def fail(kind):
    """Fail in one way."""
    if kind == "disk":
        raise OSError(28, "No space left on device", "/there")
    if kind == "missing":
        open("/no/such/file")
    if kind == "memory":
        raise MemoryError
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "abort":
        raise click.Abort
    if kind == "defect":
        raise RuntimeError("boom")
    if kind == "click":
        raise click.UsageError("not so")
    raise getattr(errors, kind)("what \\x1b[31mwas wrong", remedy="how to mend it")

@click.command()
@click.option("--seed", type=int, default=1)
@click.option("--name", default="none")
@click.option("--long-word", "inner", default="-")
def show(seed, name, inner):
    """Show the settings."""
    emit_json({"seed": seed, "name": name} | ({"inner": inner} if inner != "-" else {}))

@click.command()
def write():
    """Write."""
    say("a message \\x1b[2J\\u202e")
    emit("data \\ud800 é")

@click.command()
def wait():
    """Wait."""
    import time
    print("waiting", flush=True)
    time.sleep(60)

@click.command()
def much():
    """Write without end."""
    while True:
        emit("x" * 10000)

COMMANDS = {name: CommandSpec(f"small:{name}", f"To {name}.") for name in ("fail", "show", "write", "wait", "much")}
GROUP = program("gniah-small", "A small program.", lambda: COMMANDS)
if __name__ == "__main__":
    run(GROUP)
'''

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "small.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GNIAH_")}
    return kept | more


@pytest.fixture
def small(place: Path) -> Run:
    """Run the small program."""

    def call(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "small.py", *map(str, words)],
            cwd=place,
            capture_output=True,
            encoding="utf-8",
            env=environment(**more),
            check=False,
        )

    return call


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("GniahError", 70),
        ("CheckFailed", 1),
        ("UsageFault", 2),
        ("InputError", 3),
        ("MissingDependency", 4),
        ("StoreError", 5),
        ("ImpossibleRequest", 6),
        ("EnvironmentFault", 7),
        ("BusyError", 8),
    ],
)
def test_each_kind_of_error_has_its_exit_code_message_and_remedy(small: Run, kind: str, code: int) -> None:
    done = small("fail", kind)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == "gniah-small: error: what \\u001b[31mwas wrong\n  to mend it: how to mend it\n"


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("disk", 7, "gniah-small: error: /there: the disk is full\n  to mend it: free some space"),
        ("missing", 3, "gniah-small: error: /no/such/file: no such file or folder\n"),
        ("memory", 7, "gniah-small: error: out of memory\n  to mend it: use fewer jobs"),
        ("interrupt", 130, "interrupted; finished work is kept, and the same command goes on from there\n"),
        ("abort", 130, "interrupted; finished work is kept"),
    ],
)
def test_trouble_of_the_machine_and_of_the_person_is_told_without_a_traceback(
    small: Run, kind: str, code: int, message: str
) -> None:
    done = small("fail", kind)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_defect_is_shown_with_its_traceback(small: Run) -> None:
    done = small("fail", "defect")
    assert done.returncode == 70
    assert "RuntimeError: boom\n" in done.stderr
    assert "this is a defect of gniah" in done.stderr


@pytest.mark.parametrize(
    "words", [("fail", "click"), ("nothing",), ("show", "--odd"), ("show", "--seed", "x"), ("--odd",)]
)
def test_wrong_use_is_2(small: Run, words: tuple[str, ...]) -> None:
    done = small(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_kill_by_the_keyboard_is_130(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "small.py", "wait"], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "interrupted; finished work is kept, and the same command goes on from there"
    assert "Traceback" not in errors


def test_a_reader_who_goes_away_is_no_defect(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "small.py", "much"], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
        process.wait()
    assert process.returncode not in {0, 70}
    assert "Traceback" not in errors


def test_data_goes_to_standard_output_and_messages_to_standard_error(small: Run) -> None:
    done = small("write")
    assert (done.returncode, done.stdout) == (0, "data \\ud800 é\n")
    assert done.stderr == "a message \\u001b[2J\\u202e\n"


def test_a_log_file_gets_all_messages_in_a_printable_form(small: Run, place: Path) -> None:
    done = small("--log-file", "log.txt", "write")
    assert done.returncode == 0
    assert done.stderr == "a message \\u001b[2J\\u202e\n"
    assert (place / "log.txt").read_text(encoding="utf-8").endswith(" INFO a message \\u001b[2J\\u202e\n")
    failed = small("--log-file", "log.txt", "fail", "InputError")
    assert failed.returncode == 3
    assert "error: what \\u001b[31mwas wrong" in (place / "log.txt").read_text(encoding="utf-8")


def test_with_v_a_message_is_still_shown_once(small: Run) -> None:
    assert small("-v", "write").stderr.count("a message") == 1


def test_a_log_file_that_cannot_be_opened_is_told(small: Run) -> None:
    done = small("--log-file", "missing/log.txt", "write")
    assert (done.returncode, done.stdout) == (3, "")
    assert "missing/log.txt: no such file or folder" in done.stderr


def test_an_option_goes_before_the_environment_before_the_file_before_the_default(small: Run, place: Path) -> None:
    (place / "settings.toml").write_text('[gniah-small.show]\nseed = 3\nname = "file"\n', encoding="utf-8")
    file = ("--config", "settings.toml")
    assert json.loads(small("show").stdout) == {"seed": 1, "name": "none"}
    assert json.loads(small(*file, "show").stdout) == {"seed": 3, "name": "file"}
    assert json.loads(small("show", GNIAH_CONFIG="settings.toml").stdout) == {"seed": 3, "name": "file"}
    assert json.loads(small(*file, "show", GNIAH_SMALL_SHOW_SEED="4").stdout) == {"seed": 4, "name": "file"}
    assert json.loads(small(*file, "show", "--seed", 5, GNIAH_SMALL_SHOW_SEED="4").stdout) == {
        "seed": 5,
        "name": "file",
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[gniah-small\n", "settings.toml: not TOML: "),
        (b"a = '\xff'\n", "settings.toml: not TOML: "),
        (b"gniah-small = 3\n", "settings.toml: [gniah-small] must be a table of commands"),
        (b"[gniah-small]\nshow = 3\n", "settings.toml: [gniah-small.show] must be a table"),
    ],
)
def test_a_broken_settings_file_is_bad_input(small: Run, place: Path, content: bytes, message: str) -> None:
    (place / "settings.toml").write_bytes(content)
    done = small("--config", "settings.toml", "show")
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr


def test_a_setting_is_called_as_its_option_is(small: Run, place: Path) -> None:
    for spelling in ("long-word", "long_word"):
        (place / "settings.toml").write_text(f'[gniah-small.show]\n{spelling} = "file"\n', encoding="utf-8")
        assert json.loads(small("--config", "settings.toml", "show").stdout)["inner"] == "file"
    assert json.loads(small("show", GNIAH_SMALL_SHOW_LONG_WORD="environment").stdout)["inner"] == "environment"


def test_a_misspelt_setting_is_refused(small: Run, place: Path) -> None:
    (place / "settings.toml").write_text("[gniah-small.show]\nsead = 2\n", encoding="utf-8")
    done = small("--config", "settings.toml", "show")
    assert (done.returncode, done.stdout) == (3, "")
    assert "sets 'sead', and show has no such option" in done.stderr
    assert "options of show: seed, name, long-word" in done.stderr


def test_a_missing_settings_file_is_bad_input(small: Run) -> None:
    done = small("--config", "none.toml", "show")
    assert done.returncode == 3
    assert "none.toml: no such file or folder" in done.stderr


def test_help_lists_the_commands_with_their_summaries(small: Run) -> None:
    done = small("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  fail   To fail.\n" in done.stdout
    assert small("show", "-h").stdout.startswith("Usage: gniah-small show [OPTIONS]\n")


HEAVY = ("scipy", "duckdb", "ladybug", "rustworkx", "tiktoken", "tokenizers", "numpy", "jinja2", "rich", "orjson")


@pytest.mark.parametrize("module", ["gniah.loader.cli", "gniah.generator.cli", "gniah.evaluator.cli"])
@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(module: str, words: list[str]) -> None:
    code = (
        "import importlib, json, sys, atexit\n"
        f"heavy = {HEAVY!r}\n"
        "atexit.register(lambda: print('LOADED', [name for name in heavy if name in sys.modules]))\n"
        f"sys.argv[1:] = {words!r}\n"
        f"importlib.import_module({module!r}).main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "LOADED []"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 論文 🙂", "plain é 論文 🙂"),
        ("line\nnext\ttab", "line\nnext\ttab"),
        ("\x1b[31mred\x1b[0m", "\\u001b[31mred\\u001b[0m"),
        ("bell\x07 back\x08 return\r", "bell\\u0007 back\\u0008 return\\u000d"),
        ("\x9b31m", "\\u009b31m"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_printable_shows_what_could_steer_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_table_is_aligned_with_numbers_to_the_right() -> None:
    rows = [("a", 1, "1.5", ""), ("long name", 1000, "-", "x\ny"), ("b\x1b", 20, "3 %", "z")]
    assert table(("name", "count", "share", "note"), rows, title="Things").splitlines() == [
        "Things",
        "name       count  share  note",
        "---------  -----  -----  ----",
        "a              1    1.5",
        "long name   1000      -  x y",
        "b\\u001b       20    3 %  z",
    ]


def test_a_table_without_rows_has_its_headings() -> None:
    assert table(("a", "bc"), []) == "a  bc\n-  --"


def test_wide_characters_are_counted_as_two_columns() -> None:
    assert table(("t", "n"), [("論文", 1), ("ab", 2), ("e\u0301e", 3)]).splitlines() == [
        "t     n",
        "----  -",
        "論文  1",
        "ab    2",
        "e\u0301e    3",
    ]


def test_outside_of_a_program_messages_go_to_the_logger_alone() -> None:
    code = """
import logging
from gniah.records.command_line import Progress, say
say("first")
kept = logging.getLogger("gniah")
kept.addHandler(logging.StreamHandler())
kept.setLevel(logging.INFO)
say("second")
with Progress("work") as progress:
    progress.advance()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert (done.stdout, done.stderr) == ("", "second\n")
