"""Streams on Spark: what a link does to a record, and how its query is run and resumed.

What lives here: `DataFrame -> DataFrame` functions (`copy`), the header that tells where a record
came from (`provenance`), where a copy stands (`log`, `tail`, `resume`, `lag`), and the port to the
engine (`engine`) with its adapter to a Spark Connect server (`session`, `spark`).
What does not: when a link should run, and with which rights (see `processors.keepers.links`).
Comes in: one topic of one cluster. Goes out: the same records in another cluster.
Start reading with `copy.py`, then `resume.py`.
"""
