"""Streams on Spark: what a link or statement does to a record, how its query is run and resumed.

What lives here: `DataFrame -> DataFrame` functions (`copy`), the header that tells where a record
came from (`provenance`), where a copy stands (`log`, `tail`, `resume`, `lag`), and the port to the
engine (`engine`) with its adapter to a Spark Connect server (`session`, `spark`); streaming SQL in
`sql`, what of it runs in the JVM in `jvm`.
What does not: when a flow should run, and with which rights (see
`processors.controllers.flows.flow`).
Comes in: one topic of one cluster. Goes out: the same records in another cluster, or what a
statement makes of each.
Start reading with `copy.py`, then `resume.py`.
"""
