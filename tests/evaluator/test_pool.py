from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from evaluator_toys import example, mixed, response, write_examples

from gniah.evaluator.pool import POOL_NAME, held_responses, open_pool, pool_files, whole_responses
from gniah.evaluator.pool_keeping import check_pool, compact, export_lists
from gniah.records.errors import BusyError, InputError
from gniah.records.files import json_line
from gniah.records.responses import Call, Response, read_responses


def answer(number: int, model: str = "toy", **changes: object) -> Response:
    return response(example(number=number), model=model, **changes)


def paid(one: Response, cost: str | None = "0.5", perhaps: str | None = None, **changes: object) -> Response:
    call = Call(cost=cost, perhaps_cost=perhaps, counted_tokens=1000)
    return dataclasses.replace(one, call=call, **changes)  # type: ignore[arg-type]


def failure(one: Response, perhaps: str | None = None) -> Response:
    return paid(one, None, perhaps, text="", error="HTTP 500: boom", error_kind="server-error", finish_reason=None)


def test_two_writers_have_a_file_each_and_readers_take_both_as_one(tmp_path: Path) -> None:
    with open_pool(tmp_path, claims=["a"]) as first, open_pool(tmp_path, claims=["b"]) as second:
        assert [first.path.name, second.path.name] == [POOL_NAME, "inference_pool.2.jsonl"]
        first.append(answer(0, "a"))
        second.append(answer(1, "b"))
        with open_pool(tmp_path) as third:
            assert third.path.name == "inference_pool.3.jsonl" and len(third.done) == 2
    with open_pool(tmp_path) as again:
        assert again.path.name == POOL_NAME and len(again.done) == 2
    with held_responses(tmp_path) as responses:
        assert [one.model for one in responses] == ["a", "b"]


def test_one_model_is_asked_by_one_process_at_a_time(tmp_path: Path) -> None:
    with open_pool(tmp_path, claims=["a", "b"]):
        with pytest.raises(BusyError, match="this model"), open_pool(tmp_path, claims=["c", "b"]):
            pass
        with open_pool(tmp_path, claims=["c"]):
            pass
    with open_pool(tmp_path, claims=["b"]):
        pass


def test_a_folder_that_is_scored_is_not_written_to_and_the_other_way_round(tmp_path: Path) -> None:
    with open_pool(tmp_path) as pool:
        pool.append(answer(0))
        with pytest.raises(BusyError), held_responses(tmp_path):
            pass
    with held_responses(tmp_path), pytest.raises(BusyError), open_pool(tmp_path):
        pass


def test_a_cut_line_of_a_writer_that_died_is_mended_and_one_being_written_is_left(tmp_path: Path) -> None:
    whole = json_line(answer(0).to_json())
    dead, alive = tmp_path / POOL_NAME, tmp_path / "inference_pool.2.jsonl"
    dead.write_bytes(whole + whole[:50])
    said: list[str] = []
    with open_pool(tmp_path, said.append):
        alive.write_bytes(json_line(answer(1).to_json()) + whole[:50])
        with open_pool(tmp_path, said.append) as mine:
            assert mine.path == alive and len(mine.done) == 2
    assert dead.read_bytes() == whole and len(said) == 2
    dead.write_bytes(whole + whole[:50])
    assert [one.qid for one in whole_responses(tmp_path)] == ["qid-0", "qid-1"]
    assert dead.read_bytes() == whole + whole[:50]


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in (
        "inference_pool.10.jsonl",
        "inference_pool.2.jsonl",
        "inference_pool_old.jsonl",
        POOL_NAME,
        "other.jsonl",
    ):
        (tmp_path / name).write_bytes(b"")
    names = [path.name for path in pool_files(tmp_path)]
    assert names == [POOL_NAME, "inference_pool.2.jsonl", "inference_pool.10.jsonl", "inference_pool_old.jsonl"]


def test_what_was_spent_is_counted_over_all_lines(tmp_path: Path) -> None:
    with open_pool(tmp_path) as pool:
        assert pool.spent == 0
        pool.append_all([paid(answer(0)), failure(answer(1), "0.25"), paid(answer(2), None), answer(3)])
    with open_pool(tmp_path) as pool:
        assert pool.spent == Decimal("0.75")


def test_a_prompt_that_was_cut_is_not_done(tmp_path: Path) -> None:
    cut = paid(answer(0), usage={"prompt_tokens": 800})
    assert cut.prompt_cut and not cut.complete
    with open_pool(tmp_path) as pool:
        pool.append(cut)
        assert pool.done == set()
        pool.append(paid(answer(0), usage={"prompt_tokens": 950}))
        assert len(pool.done) == 1


def fill(folder: Path) -> None:
    """Of qid-0 a failure and two answers; of qid-1 two failures; of qid-2 a cut prompt; of qid-3 another model."""
    with open_pool(folder) as first, open_pool(folder) as second:
        first.append_all([failure(answer(0), "0.25"), paid(answer(0)), failure(answer(1), "0.125"), failure(answer(1))])
        second.append_all([paid(answer(0), "2"), paid(answer(2), usage={"prompt_tokens": 5}), answer(3, "other")])


def test_a_check_says_what_there_is_and_what_it_cost(tmp_path: Path) -> None:
    fill(tmp_path)
    before = {path: path.read_bytes() for path in pool_files(tmp_path)}
    report = check_pool(tmp_path)
    assert (report.files, report.lines, report.wrong, report.cut_bytes) == (2, 7, [], 0)
    other, toy = report.models
    assert (other.model, other.complete, other.unpriced) == ("other", 1, 0)
    assert (toy.complete, toy.duplicates, toy.cut, dict(toy.failed)) == (1, 1, 1, {"server-error": 3})
    assert (toy.cost, toy.perhaps, toy.unpriced) == (Decimal(3), Decimal("0.375"), 0)
    assert json.loads(json.dumps(report.to_json()))["models"][1]["cost"] == "3.0"
    assert {path: path.read_bytes() for path in pool_files(tmp_path)} == before


def test_a_check_names_every_damaged_line_and_reads_the_others(tmp_path: Path) -> None:
    good = answer(0).to_json()
    lines = [
        json_line(good),
        b"{no json\n",
        json_line({**good, "schema": "gniah/response/9"}),
        json_line({**good, "repeat": 5}),
        json_line({**good, "text": 5}),
        json_line(answer(1).to_json()),
        b'{"half',
    ]
    (tmp_path / POOL_NAME).write_bytes(b"".join(lines))
    report = check_pool(tmp_path)
    assert report.lines == 6 and report.cut_bytes == 6
    assert [line.split(":")[1] for line in report.wrong] == ["2", "3", "4", "5"]
    assert "its key is not that" in report.wrong[2]
    assert report.models[0].complete == 2


def test_compacting_keeps_the_first_answer_else_the_last_failure_and_every_cost(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_pool(tmp_path) as pool:
        spent, done = pool.spent, pool.done
    assert compact(tmp_path, print) == (7, 4)
    assert [path.name for path in pool_files(tmp_path)] == [POOL_NAME]
    kept = list(read_responses(tmp_path / POOL_NAME))
    assert [(one.qid, one.error_kind) for one in kept] == [
        ("qid-0", None),
        ("qid-1", "server-error"),
        ("qid-2", None),
        ("qid-3", None),
    ]
    assert kept[0].call is not None and (kept[0].call.cost, kept[0].call.perhaps_cost) == ("0.5", "2.25")
    with open_pool(tmp_path) as pool:
        assert (pool.spent, pool.done) == (spent, done)
    before = (tmp_path / POOL_NAME).read_bytes()
    assert compact(tmp_path, print) == (4, 4)
    assert (tmp_path / POOL_NAME).read_bytes() == before


def test_compacting_waits_for_nobody(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_pool(tmp_path), pytest.raises(BusyError):
        compact(tmp_path, print)


def test_responses_are_given_out_beside_each_list_as_the_card_lays_them_out(tmp_path: Path) -> None:
    bench, run = tmp_path / "bench", tmp_path / "run"
    write_examples(bench, mixed(4))
    places = []
    for name, qids in (("depth", ["qid-1", "qid-0", "qid-9"]), ("size", ["qid-3"])):
        place = bench / f"cutoff_date=2026-04-01/vary={name}"
        place.mkdir(parents=True)
        (place / "experiment.jsonl").write_bytes(
            b"".join(json_line({"slot": slot, "qid": qid}) for slot, qid in enumerate(qids))
        )
        places.append(place)
    with open_pool(run) as pool:
        for effort in ("low", "high"):
            for repeat in (1, 0):
                parameters = {"reasoning_effort": effort, "temperature": 0.5}
                pool.append(answer(0, "a/b:c", parameters=parameters, repeat=repeat))
        pool.append(answer(1, "a/b:c", parameters={"reasoning_effort": "low", "temperature": 0.5}))
        pool.append(answer(3, ".hidden"))
        pool.append(answer(0, "a/b:c", parameters={"reasoning_effort": "low", "temperature": 0.7}))
    written = export_lists(run, bench, print)
    names = sorted(str(path.relative_to(places[0])) for path in written if path.is_relative_to(places[0]))
    assert names[0] == "inference/reasoning_effort=high/model=a%2Fb%3Ac.json"
    assert len(names) == 3 and all("model=a%2Fb%3Ac.settings=" in name for name in names[1:])
    assert (places[1] / "inference/reasoning_effort=none/model=%2Ehidden.json").is_file()
    low = [json.loads(path.read_text()) for path in written if "effort=low" in str(path)]
    (half,) = [one for one in low if one["parameters"]["temperature"] == 0.5]
    assert half["schema"] == "gniah/inference/1" and half["model"] == "a/b:c"
    assert [(one["slot"], one["qid"], one["repeat"]) for one in half["responses"]] == [
        (0, "qid-1", 0),
        (1, "qid-0", 0),
        (1, "qid-0", 1),
    ]
    assert {path: path.read_bytes() for path in export_lists(run, bench, print)} == {
        path: path.read_bytes() for path in written
    }


def test_a_folder_without_a_pool_is_told(tmp_path: Path) -> None:
    for call in (lambda: check_pool(tmp_path), lambda: compact(tmp_path, print)):
        with pytest.raises(InputError, match="no such file"):
            call()


@pytest.mark.slow
def test_two_processes_write_side_by_side_and_nothing_is_mixed(tmp_path: Path) -> None:
    code = """
import sys
from evaluator_toys import example, response
from gniah.evaluator.pool import open_pool
with open_pool(__import__("pathlib").Path(sys.argv[1]), claims=[sys.argv[2]]) as pool:
    for number in range(300):
        pool.append(response(example(number=number), "x" * 2000, model=sys.argv[2]))
"""
    toys = Path(__file__).with_name("toys.py")
    load = f"""
import sys, types
toys = types.ModuleType("evaluator_toys")
exec(open({str(toys)!r}).read(), toys.__dict__)
sys.modules["evaluator_toys"] = toys
"""
    processes = [
        subprocess.Popen([sys.executable, "-P", "-c", load + code, str(tmp_path), name]) for name in ("a", "b", "c")
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    report = check_pool(tmp_path)
    assert report.wrong == [] and [one.complete for one in report.models] == [300] * 3
