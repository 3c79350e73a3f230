"""Running models over examples, reading their answers, and scoring them (`gniah-eval`).

This room reads files and imports `gniah.records` alone. What belongs to one family of benchmarks stands in a
sub-package of its own and is found through the family's entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.evaluator.frames import ResultFrames, load_results
    from gniah.evaluator.inference.asked_model import AskedModel
    from gniah.evaluator.inference.model_files import ModelFile, find_model, read_model_file, shipped_models
    from gniah.evaluator.inference.model_run import Tally, Work
    from gniah.evaluator.inference.runner import Interrupted, ask_models
    from gniah.evaluator.judging import Verdict
    from gniah.evaluator.ledger import ScoredResponse, ScoredResponses
    from gniah.evaluator.models import Model, ModelSettings, answer_text, open_model, respond
    from gniah.evaluator.pool import InferencePool, held_responses, open_pool
    from gniah.evaluator.pool_keeping import PoolReport, check_pool, compact
    from gniah.evaluator.readings import Reading, Readings
    from gniah.evaluator.results import write_scores
    from gniah.evaluator.runs import RunCounts, run_model
    from gniah.evaluator.scoring import ModelScores, Scorer, Scores, score
    from gniah.evaluator.selection import Selection, Wanted, select
    from gniah.evaluator.summaries import CountDetails, Differences, ReadingScores, Summary
    from gniah.evaluator.tables import counts_table, differences, task_table, troubles, variable_table
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "inference.asked_model": ("AskedModel",),
            "inference.model_files": ("ModelFile", "find_model", "read_model_file", "shipped_models"),
            "inference.model_run": ("Tally", "Work"),
            "inference.runner": ("Interrupted", "ask_models"),
            "pool_keeping": ("PoolReport", "check_pool", "compact"),
            "selection": ("Selection", "Wanted", "select"),
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
    "AskedModel",
    "CountDetails",
    "Differences",
    "InferencePool",
    "Interrupted",
    "Model",
    "ModelFile",
    "ModelScores",
    "ModelSettings",
    "PoolReport",
    "Reading",
    "ReadingScores",
    "Readings",
    "ResultFrames",
    "RunCounts",
    "ScoredResponse",
    "ScoredResponses",
    "Scorer",
    "Scores",
    "Selection",
    "Summary",
    "Tally",
    "Verdict",
    "Wanted",
    "Work",
    "answer_text",
    "ask_models",
    "check_pool",
    "compact",
    "counts_table",
    "differences",
    "find_model",
    "held_responses",
    "load_results",
    "open_model",
    "open_pool",
    "read_model_file",
    "respond",
    "run_model",
    "score",
    "select",
    "shipped_models",
    "task_table",
    "troubles",
    "variable_table",
    "write_scores",
]
