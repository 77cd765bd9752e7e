"""Debezium's JDBC sink, changed by `PatchSink`.

`ExactColumns` refuses columns that round, and by `ColumnValues` values that one of them has not;
`OneWriter` keeps a task from writing what another one has got.
"""
