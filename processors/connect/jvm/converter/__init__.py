"""The Avro converter, changed by `PatchConverter`.

`BoundedSchemas` bounds what all connectors keep of schemas, `SmallNumbers` cuts no number.
"""
