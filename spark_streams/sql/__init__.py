"""Streaming SQL: one statement, from its text to functions on DataFrames.

What lives here: the statement's text as it is understood (`text`), what it may call (`functions`),
its columns and their types (`types`), and what is done to each record (`running`). Errors name the
line and the column (`errors`).
What does not: where a statement may read and write, and when it runs (see
`processors.controllers`).
Comes in: `INSERT INTO destination SELECT ... FROM stream [JOIN table ON key]`. Goes out: at most
one record for each record of the stream, in the same partition.
Start reading with `text/parse.py`, then `running/frame.py`.
"""
