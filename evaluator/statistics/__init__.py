"""The statistics of scores: intervals, tests, baselines and power. Pure functions; docs/statistics.md says when.

Rates are fractions between 0 and 1, p-values are two-sided, and every definition's source stands with it. scipy
and numpy are imported by the functions that need them.
"""

from __future__ import annotations

from gniah.evaluator.statistics.baselines import counting_rate, guessing_rate, mean_rate, mixed_rate
from gniah.evaluator.statistics.clusters import bootstrap, clustered_error, clustered_interval, percentile_interval
from gniah.evaluator.statistics.divergence import smoothed_divergence
from gniah.evaluator.statistics.groups import ChiSquare, chi_square, fisher_exact
from gniah.evaluator.statistics.multiplicity import holm
from gniah.evaluator.statistics.paired import (
    PairedTable,
    mcnemar_exact,
    paired_difference_interval,
    sign_flip_test,
    wilcoxon_signed_rank,
)
from gniah.evaluator.statistics.power import (
    connor_examples,
    expected_discordance,
    mcnemar_power,
    paired_difference,
    paired_examples,
    unpaired_difference,
    unpaired_examples,
)
from gniah.evaluator.statistics.proportions import Z_95, jeffreys_interval, wilson_interval

__all__ = [
    "Z_95",
    "ChiSquare",
    "PairedTable",
    "bootstrap",
    "chi_square",
    "clustered_error",
    "clustered_interval",
    "connor_examples",
    "counting_rate",
    "expected_discordance",
    "fisher_exact",
    "guessing_rate",
    "holm",
    "jeffreys_interval",
    "mcnemar_exact",
    "mcnemar_power",
    "mean_rate",
    "mixed_rate",
    "paired_difference",
    "paired_difference_interval",
    "paired_examples",
    "percentile_interval",
    "sign_flip_test",
    "smoothed_divergence",
    "unpaired_difference",
    "unpaired_examples",
    "wilcoxon_signed_rank",
    "wilson_interval",
]
