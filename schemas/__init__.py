"""The contract as files: one Avro schema per event and row, a `doc` on every field.

Written from the types in `mesh_events` by `python -m mesh_events.avro write`. The recorded logs in
`tests/fixtures` hold the earlier forms; a test reads each in both directions.
"""
