"""GraphNIAH's half of the evaluator: how its prompts are recognised, and how its answers are read."""
