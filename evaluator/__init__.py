"""Running models over examples, reading their answers, and scoring them (`gniah-eval`).

This room reads files and imports `gniah.records` alone. What belongs to one family of benchmarks stands in a
sub-package of its own and is found through the family's entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.evaluator.models import Model, ModelSettings, answer_text, open_model, respond
    from gniah.evaluator.results import write_scores
    from gniah.evaluator.runs import InferencePool, RunCounts, held_responses, open_pool, run_model
    from gniah.evaluator.scoring import ModelScores, ScoredResponse, Scorer, Scores, Summary, score
    from gniah.evaluator.tables import task_table, troubles, variable_table
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "models": ("Model", "ModelSettings", "answer_text", "open_model", "respond"),
            "results": ("write_scores",),
            "runs": ("InferencePool", "RunCounts", "held_responses", "open_pool", "run_model"),
            "scoring": ("ModelScores", "ScoredResponse", "Scorer", "Scores", "Summary", "score"),
            "tables": ("task_table", "troubles", "variable_table"),
        },
    )

__all__ = [
    "InferencePool",
    "Model",
    "ModelScores",
    "ModelSettings",
    "RunCounts",
    "ScoredResponse",
    "Scorer",
    "Scores",
    "Summary",
    "answer_text",
    "held_responses",
    "open_model",
    "open_pool",
    "respond",
    "run_model",
    "score",
    "task_table",
    "troubles",
    "variable_table",
    "write_scores",
]
