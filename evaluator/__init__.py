"""Running models over examples, reading their answers, and scoring them (`gniah-eval`).

This room reads files and imports `gniah.records` alone. What belongs to one family of benchmarks stands in a
sub-package of its own and is found through the family's entry point.
"""
