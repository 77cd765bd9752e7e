"""Debezium's PostgreSQL connector, changed by `PatchDebezium`.

`BoundedMatches` bounds for how long a text of a database is compared with a pattern,
`ConstantDefaults` takes no value out of a default that has to be computed, `Identities` keeps a
table out of a publication by which its UPDATE and DELETE would fail, `LostSlots` refuses a slot
that PostgreSQL has given up, `LogPositions` a position that the database's log has not come to,
`Keepalives` lets heartbeats confirm what was read of the log, `CountedPositions` counts a
transaction's messages, `WholeMessages` keeps the records of one together, `RenamedTables` refuses
changes of a captured table by another name, and another table in its place, `WholePayloads`
leaves nothing of an outbox's payload out, and `TypeLabels` reads enums that have no labels.
"""
