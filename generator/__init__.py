"""Paths, examples, packing, verification: everything that makes a benchmark out of a graph store."""
