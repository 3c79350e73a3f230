"""The notebooks run from top to bottom and find what is true; they are kept without outputs. py2neo still works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from neo4j_fixtures import Running, not_here
from programs import Finished, Rfc

from gniah.cypher import named_queries
from gniah.generator import verify_all
from gniah.records import read_examples
from gniah.records.graphniah import read_pool

FOLDER = Path(__file__).parents[1] / "notebooks"
NAMES = ("explore_graph", "first_benchmark")
# A path from the root of a disk, or of a home; not the rest of an address or of a path that begins elsewhere.
ABSOLUTE = re.compile(r"(?<![\w.:/<~$}-])/(?:[\w.-]+/)+|[A-Z]:\\|~/|file:")


def extra(*modules: str) -> list[Any]:
    """Import what the extra `notebooks` brings."""
    try:
        return [import_module(module) for module in modules]
    except ModuleNotFoundError as error:
        not_here(f"no {error.name}: pip install 'gniah[notebooks]'")


def content(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_bytes())
    return found


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    """Run a notebook in an empty folder; return what each cell printed or returned, by the cell's id."""
    nbformat, nbclient, _, _ = extra("nbformat", "nbclient", "ipykernel", "pandas")
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    monkeypatch.chdir(tmp_path)

    def run(name: str, *more: str) -> dict[str, str]:
        """Run it; `more` are expressions to be looked at behind its last cell, as the cells 0, 1, …."""
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        for number, expression in enumerate(more):
            cell = nbformat.v4.new_code_cell(f"import json\nprint(json.dumps({expression}))", id=str(number))
            notebook.cells.append(cell)
        client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
        client.execute()
        return {cell["id"]: "\n".join(map(text_of, cell["outputs"])) for cell in notebook.cells if "outputs" in cell}

    return run


def text_of(output: dict[str, Any]) -> str:
    return str(output["text"] if "text" in output else output["data"].get("text/html", output["data"]["text/plain"]))


@pytest.fixture
def published(empty_neo4j: Running, rfc: Rfc, gniah: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch) -> Rfc:
    """A server with a graph and with the examples made from it, as the environment names it; what they were made of."""
    monkeypatch.delenv("GNIAH_NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("GNIAH_STORE", empty_neo4j.address)
    monkeypatch.setenv("GNIAH_NEO4J_PASSWORD_FILE", str(empty_neo4j.password_file))
    # The two commands that the notebook tells its reader to give.
    for words in (("import", rfc.graph), ("publish-graph", rfc.bench)):
        done = gniah(*words, "--store", empty_neo4j.address)
        assert done.code == 0, done.err
    return rfc


def true_paths(rfc: Rfc) -> Iterator[tuple[str, list[int]]]:
    """Yield qid and true path of each example that has one: papers k to 2k - 1 of the source's backbone."""
    for record in read_pool(rfc.bench / "pool.jsonl"):
        k = record.config["question_depth"]
        path = record.task_components[0].backbone[k - 1 : 2 * k - 1]
        if (path[0], path[-1]) == (record.source, record.target):
            yield record.qid, list(path)


@pytest.mark.slow
@pytest.mark.neo4j
def test_the_graph_notebook_walks_the_path_of_the_pool(published: Rfc, execute: Callable[..., dict[str, str]]) -> None:
    extra("py2neo", "pyvis")
    told = execute("explore_graph", "qid", "found", "drawing.get_network_data()[:2]")
    qid, path = json.loads(told["0"]), json.loads(told["1"])
    assert path == dict(true_paths(published))[qid]
    record = next(record for record in read_pool(published.bench / "pool.jsonl") if record.qid == qid)
    points, lines = json.loads(told["2"])
    assert {point["id"] for point in points} == {paper for part in record.task_components for paper in part.papers}
    assert {(line["from"], line["to"]) for line in lines} == {
        edge for part in record.task_components for edge in part.edges
    }
    red = [line for line in lines if line["color"] == "#d6336c"]
    assert {frozenset((line["from"], line["to"])): line["label"] for line in red} == {
        frozenset(path[step - 1 : step + 1]): str(step) for step in range(1, len(path))
    }
    walked = told["walk"].strip().split("\n")
    assert len(walked) == 2 * len(path) - 1
    assert all(re.search(r" \(20\d\d-\d\d-\d\d\)$", line) for line in walked[::2])
    assert 'sandbox="allow-scripts"' in told["show"]


@pytest.mark.slow
def test_the_benchmark_notebook_makes_a_benchmark_and_scores_it(
    tmp_path: Path, execute: Callable[..., dict[str, str]]
) -> None:
    told = execute("first_benchmark")
    made = tmp_path / "first-benchmark"
    examples = list(read_examples(made / "bench" / "examples.jsonl"))
    assert len(examples) == 24
    assert all(verdict.right for verdict in verify_all(examples))
    assert told["verify"].strip() == "24 of 24 right"
    assert examples[0].user_prompt[:1500] in told["prompt"]
    by_model = dict(re.findall(r"^([\w-]+) +none +all +24 +(\d+) ", told["score"], re.MULTILINE))
    assert by_model == {"constant": "6", "random": by_model["random"], "text-solver": "24"}
    assert len(list((made / "results" / "eval").rglob("model=*.json"))) == 3
    assert told["frames"].count("<th") > 6
    again = execute("first_benchmark")  # what is there already is used again
    assert again["run"].count("answered=0, already=24") == 3
    assert again["score"] == told["score"]


@pytest.mark.neo4j
def test_py2neo_reads_what_the_driver_reads(published: Rfc, empty_neo4j: Running) -> None:
    (py2neo,) = extra("py2neo")
    graph = py2neo.Graph(empty_neo4j.address, auth=(empty_neo4j.user, empty_neo4j.password))
    statement = named_queries()["true-path"].text("neo4j")
    found: dict[str, list[int]] = {}
    for qid in (record.qid for record in read_pool(published.bench / "pool.jsonl")):
        rows = empty_neo4j.run(statement, qid=qid)
        assert graph.query(statement, {"qid": qid}).data() == rows
        if rows:
            found[qid] = [rows[0]["from_id"], *(row["to_id"] for row in rows)]
    assert found == dict(true_paths(published))
    values = 'MATCH (p:Paper {corpusid: $id}) RETURN p.title AS t, p.authors AS a, "ü\\"論" AS s, 0.5 AS f, null AS n'
    assert graph.query(values, {"id": 8101}).data() == empty_neo4j.run(values, id=8101)


def test_there_are_these_notebooks() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_kept_without_outputs_and_machine(name: str) -> None:
    notebook = content(name)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert notebook["metadata"] == {"kernelspec": kernel}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
        assert not ABSOLUTE.findall("".join(cell["source"])), cell["id"]
    assert (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8") == (
        json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    )


@pytest.mark.parametrize(
    "text", ["open('/srv/x/pool')", "cd /home/someone/x", r"C:\Users", "~/x", "file:///x", '"/tmp/x"']
)
def test_a_path_of_a_machine_is_seen(text: str) -> None:
    assert ABSOLUTE.search(text)


@pytest.mark.parametrize("text", ["bolt://127.0.0.1:7687", '"$HOME/.local/share/x"', "a / b / c", "graph/papers"])
def test_other_strokes_are_no_paths(text: str) -> None:
    assert not ABSOLUTE.search(text)
