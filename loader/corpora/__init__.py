"""Corpora of texts for distractors: a source tree, essays, books or passages, turned once into a folder read in place.

`build_corpus` makes one, `check_corpus` reads all of it again; `gniah-load corpus` is the same on the command line. The
file format is that of `gniah.records.corpora`, the rules are those of `gniah.records.texts`.
"""
