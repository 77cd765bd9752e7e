"""The contract as files: one Avro schema per event and row, a `doc` on every field.

Written from the types in `mesh_events` by `python -m mesh_events.avro write`, which refuses a
change that readers of the old form could not bear. Earlier released forms stay in `avro/earlier`.
"""
