"""Running models over examples, reading their answers, and scoring them (`gniah-eval`).

This room reads files and imports `gniah.records` alone. What belongs to one family of benchmarks stands in a
sub-package of its own and is found through the family's entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.evaluator.frames import ResultFrames, load_results
    from gniah.evaluator.judging import Verdict
    from gniah.evaluator.ledger import ScoredResponse, ScoredResponses
    from gniah.evaluator.models import Model, ModelSettings, answer_text, open_model, respond
    from gniah.evaluator.pool import InferencePool, held_responses, open_pool
    from gniah.evaluator.readings import Reading, Readings
    from gniah.evaluator.results import write_scores
    from gniah.evaluator.runs import RunCounts, run_model
    from gniah.evaluator.scoring import ModelScores, Scorer, Scores, score
    from gniah.evaluator.summaries import CountDetails, Differences, ReadingScores, Summary
    from gniah.evaluator.tables import counts_table, differences, task_table, troubles, variable_table
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "frames": ("ResultFrames", "load_results"),
            "judging": ("Verdict",),
            "ledger": ("ScoredResponse", "ScoredResponses"),
            "models": ("Model", "ModelSettings", "answer_text", "open_model", "respond"),
            "pool": ("InferencePool", "held_responses", "open_pool"),
            "readings": ("Reading", "Readings"),
            "results": ("write_scores",),
            "runs": ("RunCounts", "run_model"),
            "scoring": ("ModelScores", "Scorer", "Scores", "score"),
            "summaries": ("CountDetails", "Differences", "ReadingScores", "Summary"),
            "tables": ("counts_table", "differences", "task_table", "troubles", "variable_table"),
        },
    )

__all__ = [
    "CountDetails",
    "Differences",
    "InferencePool",
    "Model",
    "ModelScores",
    "ModelSettings",
    "Reading",
    "ReadingScores",
    "Readings",
    "ResultFrames",
    "RunCounts",
    "ScoredResponse",
    "ScoredResponses",
    "Scorer",
    "Scores",
    "Summary",
    "Verdict",
    "answer_text",
    "counts_table",
    "differences",
    "held_responses",
    "load_results",
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
