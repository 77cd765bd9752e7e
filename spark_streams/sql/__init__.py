"""Streaming SQL: one statement, from its text to functions on DataFrames.

What lives here: the statement's text as it is understood (`parse`), its columns as they are
resolved (`resolve`), what a topic's values look like to SQL (`columns`), and what is done to each
record (`frame`). Errors name the line and the column (`errors`).
What does not: where a statement may read and write, and when it runs (see `processors.keepers`).
Comes in: `INSERT INTO destination SELECT ... FROM stream [JOIN table ON key]`. Goes out: at most
one record for each record of the stream, in the same partition.
Start reading with `parse.py`, then `frame.py`.
"""
