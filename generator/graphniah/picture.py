"""The picture of one example, from its pool record."""

from __future__ import annotations

from gniah.cypher.store import GraphStore
from gniah.generator.graphniah.drawing import ComponentPicture, Subgraph, svg
from gniah.generator.graphniah.experiments import is_counting, task_name
from gniah.generator.graphniah.growth import Component
from gniah.records.graphniah.pool import PoolRecord


def picture_of(record: PoolRecord, store: GraphStore) -> str:
    """Return the task components of an example as SVG, the true path and the question's papers marked."""
    components = record.task_components
    ids = sorted({paper for component in components for paper in component.papers})
    titles = {paper.corpusid: paper.title for paper in store.papers(ids)}
    marks = {record.source: "source"} | {paper: label for label, paper in record.option_papers.items()}
    if not record.option_papers and record.target is not None:
        marks[record.target] = "target"
    pictures = []
    for component in components:
        true_path = Component(component.backbone).true_path
        # For counting the whole component is the answer, and in the others' components no path answers anything.
        marked = true_path if component.role == "source" and not is_counting(record.question_type) else ()
        if record.answer == "NO":
            marked = ()
        pictures.append(ComponentPicture(component.edges, component.backbone, marked, component.role))
    heading = f"{task_name(record.question_type)}, depth {record.config['question_depth']}, answer {record.answer}"
    return svg(Subgraph(tuple(pictures), titles, marks), heading=heading)
