"""What the log means: pure folds from events to state, and the rules by which intents are decided.

What lives here: one small state per concern (`identity`, `catalog`, `access`, `links`,
`statements`, `intents`), the `image` that holds them, `decide`, `consequences`, `rows`, `replay`,
`checksum`, and where data flows (`sources`, `lineage`).
What does not: Kafka, files, clocks, random numbers, logging. Time and ids come in with the events.
Comes in: entries of the log in offset order. Goes out: an immutable image that knows its offset.
Start reading with `fold.py`.
"""
