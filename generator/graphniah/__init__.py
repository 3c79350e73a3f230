"""GraphNIAH: citation subgraphs hidden in long prompts, with questions of reachability."""
