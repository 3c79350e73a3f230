"""Tasks on a Spark cluster that is there: many independent ones, each result given back as soon as it has come."""

from __future__ import annotations

from gniah.generator.spark.masters import SparkCluster, find_cluster
from gniah.generator.spark.runs import run_on_spark

__all__ = ["SparkCluster", "find_cluster", "run_on_spark"]
