"""What the log means: pure folds from events to state, and the rules by which intents are decided.

What lives here: one small state per concern (`identity`, `catalog`, `access`, `links`,
`statements`, `connectors`), the `image` that holds them and its `fold`; what becomes of an intent
(`deciding`, `rules`), `rows`, `replay`, `checksum`, where data flows (`lineage`), and whether the
log is the one that was signed (`integrity`).
What does not: Kafka, files, clocks, random numbers, logging. Time and ids come in with the events.
Comes in: entries of the log in offset order. Goes out: an immutable image that knows its offset.
Start reading with `fold.py`.
"""
