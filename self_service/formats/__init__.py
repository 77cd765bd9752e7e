"""What records are made of: Avro, JSON Schema and Protobuf in the wire format of a registry.

What lives here: one class for each language of schemas (`avro`, `json_schema`, `protobuf`), which
decodes and encodes records and tells the fields; `protoc` and `proto_values` help the last one.
What does not: which schema a record names, and where it is registered
(`mesh_events.schema.registry`).
Start reading with `schema.py`.
"""
