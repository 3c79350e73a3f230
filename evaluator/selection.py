"""Which examples are asked, in which order: all of a file, those of a list, or some slots of it.

A file of examples is read once from end to end, and of each chosen one only a few facts are kept, with the place
where it stands; its prompts are read again when they are sent. So a benchmark of 8 GB takes no memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from gniah.records.errors import InputError, UsageFault
from gniah.records.examples import Example, examples_path
from gniah.records.files import machine_trouble, read_json_lines
from gniah.records.responses import prompt_sha256

EXAMPLES_NAME = "examples.jsonl"


@dataclass(frozen=True, slots=True)
class Chosen:
    """One example that is to be asked: where its line stands, the hash of its prompts, its lengths in tokens."""

    qid: str
    offset: int
    length: int
    prompt_sha256: str
    token_counts: Mapping[str, int]

    @property
    def least_tokens(self) -> int:
        """Return the smallest of its counts, 0 without one."""
        return min(self.token_counts.values(), default=0)

    @property
    def most_tokens(self) -> int:
        """Return the largest of its counts, 0 without one."""
        return max(self.token_counts.values(), default=0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user wants of a file of examples.

    `experiment` names a list as the examples' `experiments` do, `context_length` tells apart lists of one name.
    `slots` are the first and the last slot, from 0, of a list. `limit` keeps the first so many.
    """

    experiment: str | None = None
    context_length: int | None = None
    slots: tuple[int, int] | None = None
    limit: int | None = None


Stamp = tuple[int, int, int]


@dataclass(slots=True)
class _Place:
    """The open file that a selection and those made from it read; its stamp says what it was when they were chosen."""

    stamp: Stamp
    stream: BinaryIO | None = None


def _stamp(stream: BinaryIO) -> Stamp:
    """Return what changes when a file is written or put in another's place: file, size, time."""
    found = os.fstat(stream.fileno())
    return found.st_ino, found.st_size, found.st_mtime_ns


class Selection:
    """The chosen examples of a file, in order. It is a context manager, and reads prompts while it is open."""

    def __init__(self, path: Path, chosen: tuple[Chosen, ...], place: _Place) -> None:
        self.path = path
        self.chosen = chosen
        self._place = place

    def only(self, chosen: Iterable[Chosen]) -> Selection:
        """Return a selection of some of these examples, which is open while this one is."""
        return Selection(self.path, tuple(chosen), self._place)

    def __enter__(self) -> Selection:
        with machine_trouble(self.path):
            self._place.stream = self.path.open("rb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._place.stream is not None:
            self._place.stream.close()

    def read(self, one: Chosen) -> Example:
        """Return a chosen example. Raises InputError when the file was changed since."""
        stream = self._place.stream
        if stream is None:
            raise ValueError("the selection is not open")
        with machine_trouble(self.path):
            if _stamp(stream) != self._place.stamp:
                raise self._changed()
            stream.seek(one.offset)
            line = stream.read(one.length)
        try:
            example = Example.from_json(orjson.loads(line), f"{self.path}: {one.qid}")
        except (orjson.JSONDecodeError, InputError):
            raise self._changed() from None
        if example.qid != one.qid:
            raise self._changed()
        return example

    def _changed(self) -> InputError:
        return InputError(f"{self.path}: was changed while it was in use", remedy="start again")


def select(path: Path, wanted: Wanted | None = None) -> Selection:
    """Choose examples. `path` is an `examples.jsonl`, a folder with one, or an `experiment.jsonl` below such a folder.

    Raises InputError for a file that is damaged or lacks an example of the list, UsageFault when nothing is chosen.
    """
    wanted = wanted or Wanted()
    listed = is_list(path)
    file = _examples_above(path) if listed else examples_path(path)
    with machine_trouble(file), file.open("rb") as stream:
        stamp = _stamp(stream)
    if listed:
        chosen = _of_list(path, file, wanted)
    else:
        chosen = _of_experiment(file, wanted) if _names_a_list(wanted) else list(_all(file))
    chosen = list({one.qid: one for one in chosen}.values())[: wanted.limit]
    if not chosen:
        raise UsageFault(
            f"{path}: holds no example that was asked for",
            remedy="look at --experiment, --list-length and --slots; gniah-eval lists EXAMPLES names what there is",
        )
    return Selection(file, tuple(chosen), _Place(stamp))


def is_list(path: Path) -> bool:
    """Whether a path names an ordered list of qids and not examples."""
    if not path.is_file():
        return False
    with machine_trouble(path), path.open("rb") as stream:
        start = stream.read(1 << 12)
    return b'"slot"' in start and b'"user_prompt"' not in start and b'"system_prompt"' not in start


def _names_a_list(wanted: Wanted) -> bool:
    return wanted.experiment is not None or wanted.context_length is not None or wanted.slots is not None


def _of_list(path: Path, file: Path, wanted: Wanted) -> list[Chosen]:
    if wanted.experiment is not None or wanted.context_length is not None:
        raise UsageFault(f"{path}: is one list already", remedy="leave out --experiment and --list-length")
    slots = sorted(_slots(path))
    places = {one.qid: one for one in _all(file, {qid for _, qid in slots})}
    missing = [qid for _, qid in slots if qid not in places]
    if missing:
        raise InputError(
            f"{file}: lacks {len(missing)} examples of {path}, the first being {missing[0]}",
            remedy="give the list and the examples of one benchmark",
        )
    return [places[qid] for slot, qid in slots if _within(slot, wanted.slots)]


def _slots(path: Path) -> Iterator[tuple[int, str]]:
    for number, value in read_json_lines(path):
        slot, qid = value.get("slot"), value.get("qid")
        if not isinstance(slot, int) or isinstance(slot, bool) or not isinstance(qid, str):
            raise InputError(f"{path}:{number}: a line of a list has a slot and a qid", remedy="make the list again")
        yield slot, qid


def _examples_above(path: Path) -> Path:
    for folder in path.absolute().parents:
        if (folder / EXAMPLES_NAME).is_file():
            return folder / EXAMPLES_NAME
    raise InputError(
        f"{path}: there is no {EXAMPLES_NAME} in a folder above it", remedy="keep the list inside its benchmark"
    )


def _of_experiment(file: Path, wanted: Wanted) -> list[Chosen]:
    found: list[tuple[int, Chosen]] = []
    names: set[tuple[object, object]] = set()
    for one, value in _lines(file):
        for use in value["experiments"]:
            if not isinstance(use, Mapping):
                continue
            name, length, slot = use.get("name"), use.get("context_length"), use.get("slot")
            if wanted.experiment not in (None, name) or wanted.context_length not in (None, length):
                continue
            names.add((name, length))
            if isinstance(slot, int) and _within(slot, wanted.slots):
                found.append((slot, one))
    if len(names) > 1:
        shown = ", ".join(sorted(f"{name} at {length}" for name, length in names))
        raise UsageFault(f"{file}: several lists fit: {shown}", remedy="give --experiment and --list-length of one")
    return [one for _, one in sorted(found, key=lambda item: item[0])]


def _within(slot: int, slots: tuple[int, int] | None) -> bool:
    return slots is None or slots[0] <= slot <= slots[1]


def _all(file: Path, only: set[str] | None = None) -> Iterator[Chosen]:
    seen: set[str] = set()
    for one, _ in _lines(file, only):
        if one.qid in seen:
            raise InputError(f"{file}: holds the example {one.qid} twice", remedy="make the file again")
        seen.add(one.qid)
        yield one


def _lines(file: Path, only: set[str] | None = None) -> Iterator[tuple[Chosen, Mapping[str, Any]]]:
    """Yield each example's facts and its object; of a set of qids, only lines that may hold one are parsed."""
    signs = tuple(qid.encode("utf-8") for qid in only or ())
    offset = 0
    with machine_trouble(file), file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            where = f"{file}:{number}"
            if only is None or _may_hold(line, only, signs):
                example, value = _parsed(line, where)
                if only is None or example.qid in only:
                    prompts = prompt_sha256(example.system_prompt, example.user_prompt)
                    yield Chosen(example.qid, offset, len(line), prompts, _counts(example, where)), value
            offset += len(line)


_HEAD = b'{"qid":"'


def _may_hold(line: bytes, only: set[str], signs: tuple[bytes, ...]) -> bool:
    """Whether a line may be that of a wanted example; as we write them, the qid stands first."""
    if line.startswith(_HEAD):
        end = line.find(b'"', len(_HEAD))
        return line[len(_HEAD) : end].decode("utf-8", "replace") in only if end > 0 else True
    return any(sign in line for sign in signs)


def _parsed(line: bytes, where: str) -> tuple[Example, Mapping[str, Any]]:
    if not line.endswith(b"\n"):
        raise InputError(f"{where}: the last line has no newline: the file was cut", remedy="make the file again")
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON: {error}", remedy="make the file again") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(value).__name__}")
    return Example.from_json(value, where), value


def _counts(example: Example, where: str) -> Mapping[str, int]:
    for label, count in example.token_counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InputError(f"{where}: token_counts.{label} must be a whole number", remedy="make the file again")
    return dict(example.token_counts)
