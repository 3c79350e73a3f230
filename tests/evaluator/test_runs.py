from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

import pytest
from evaluator_toys import mixed, response

from gniah.evaluator import pool as pools
from gniah.evaluator.models import ModelSettings, open_model, respond
from gniah.evaluator.pool import POOL_NAME, held_responses, open_pool
from gniah.evaluator.runs import run_model
from gniah.records.errors import BusyError, EnvironmentFault, InputError, MissingDependency
from gniah.records.files import json_line, locked_folder
from gniah.records.responses import Request, Response, read_responses


class Counting:
    """A model that remembers what it was asked and fails where it is told to."""

    name = "counting-model"
    base_address = None
    parameters: dict[str, object] = {"temperature": 1.0}  # noqa: RUF012

    def __init__(self, fail: frozenset[str] = frozenset(), error: Exception | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self._fail = fail
        self._error = error or TimeoutError("too slow")

    def complete(self, request: Request) -> Response:
        self.asked.append((request.qid, request.repeat))
        if request.qid in self._fail:
            raise self._error
        return respond(request, f"für {request.qid}\n\\answer{{YES}}")


def run(folder: Path, model: Counting, count: int = 4, repeats: int = 1) -> list[str]:
    said: list[str] = []
    with open_pool(folder, said.append) as pool:
        run_model(model, mixed(count), pool, repeats=repeats)
    return said


def test_every_request_becomes_one_line_in_order(tmp_path: Path) -> None:
    run(tmp_path, Counting(), count=3, repeats=2)
    found = list(read_responses(tmp_path / POOL_NAME))
    assert [(item.qid, item.repeat) for item in found] == [(f"qid-{n}", r) for n in range(3) for r in range(2)]
    assert len({item.key for item in found}) == 6


def test_what_is_there_is_not_asked_again(tmp_path: Path) -> None:
    run(tmp_path, Counting(), count=2)
    before = (tmp_path / POOL_NAME).read_bytes()
    again = Counting()
    run(tmp_path, again, count=2)
    assert again.asked == []
    assert (tmp_path / POOL_NAME).read_bytes() == before
    run(tmp_path, again, count=3, repeats=2)
    assert again.asked == [("qid-0", 1), ("qid-1", 1), ("qid-2", 0), ("qid-2", 1)]


def test_a_pool_cut_at_any_byte_of_its_last_line_is_made_whole_again(tmp_path: Path) -> None:
    run(tmp_path, Counting(), count=3)
    path = tmp_path / POOL_NAME
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for size in range(last, len(whole)):
        path.write_bytes(whole[:size])
        model = Counting()
        said = run(tmp_path, model, count=3)
        assert path.read_bytes() == whole
        assert model.asked == [("qid-2", 0)]
        assert bool(said) == (size > last)


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_a_pool_cut_in_its_first_line_starts_again(tmp_path: Path, kept: int) -> None:
    run(tmp_path, Counting(), count=2)
    path = tmp_path / POOL_NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    run(tmp_path, Counting(), count=2)
    assert path.read_bytes() == whole


def test_a_long_cut_line_is_found_from_the_end(tmp_path: Path) -> None:
    run(tmp_path, Counting(), count=1)
    path = tmp_path / POOL_NAME
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"text":"' + b"x" * 200_000)
    assert "200009 bytes" in run(tmp_path, Counting(), count=1)[0]
    assert path.read_bytes() == whole


def test_a_failed_request_is_kept_as_an_error_and_asked_again(tmp_path: Path) -> None:
    run(tmp_path, Counting(fail=frozenset({"qid-1"})), count=3)
    found = list(read_responses(tmp_path / POOL_NAME))
    assert [item.error for item in found] == [None, "TimeoutError: too slow", None]
    again = Counting()
    run(tmp_path, again, count=3)
    assert again.asked == [("qid-1", 0)]


def test_what_the_user_must_mend_ends_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    model = Counting(fail=frozenset({"qid-1"}), error=MissingDependency("no solver"))
    with pytest.raises(MissingDependency):
        run(tmp_path, model, count=3)
    assert [item.qid for item in read_responses(tmp_path / POOL_NAME)] == ["qid-0"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_line_that_cannot_be_written_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    run(tmp_path, Counting(), count=2)
    before = (tmp_path / POOL_NAME).read_bytes()

    def write_half(stream: BinaryIO, data: bytes) -> None:
        stream.write(data[: len(data) // 2])
        raise error

    monkeypatch.setattr(pools, "_write_all", write_half)
    with pytest.raises((EnvironmentFault, KeyboardInterrupt)):
        run(tmp_path, Counting(), count=3)
    assert (tmp_path / POOL_NAME).read_bytes() == before


def test_a_second_answer_to_one_request_is_ignored_and_counted(tmp_path: Path) -> None:
    asked = mixed(1)[0]
    with open_pool(tmp_path, print) as pool:
        pool.append(response(asked))
        pool.append(response(asked, "other"))
        assert pool.duplicates == 1
    path = tmp_path / POOL_NAME
    path.write_bytes(path.read_bytes() * 2)
    said: list[str] = []
    with open_pool(tmp_path, said.append) as pool:
        assert pool.duplicates == 1
    assert "1 further" in said[0]


def test_text_without_a_utf8_form_is_kept_as_well_as_it_can_be(tmp_path: Path) -> None:
    asked = mixed(1)[0]
    with open_pool(tmp_path, print) as pool:
        pool.append(response(asked, "a\ud800b\U0001f600", reasoning="\udfff"))
    (kept,) = read_responses(tmp_path / POOL_NAME)
    assert (kept.text, kept.reasoning) == ("a\ufffdb\U0001f600", "\ufffd")


def test_a_line_that_is_no_response_is_named(tmp_path: Path) -> None:
    (tmp_path / POOL_NAME).write_bytes(b'{"schema":"gniah/response/1"}\n' + json_line({"a": 1}))
    with pytest.raises(InputError, match=r"inference_pool.jsonl:1"), open_pool(tmp_path, print):
        pass


def test_models_share_a_run_folder(tmp_path: Path) -> None:
    examples = mixed(6)
    with open_pool(tmp_path, print, sync_every=100) as pool:
        for name, seed in (("random", 0), ("random", 1), ("constant", 0)):
            run_model(open_model(name, ModelSettings(seed)), examples, pool, repeats=2)
    with held_responses(tmp_path, print) as responses:
        assert len({item.key for item in responses}) == 36


def test_a_folder_without_a_pool_cannot_be_scored(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"), held_responses(tmp_path, print):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_held_is_busy(tmp_path: Path) -> None:
    with locked_folder(tmp_path), pytest.raises(BusyError), open_pool(tmp_path, print):
        pass
