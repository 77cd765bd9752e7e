"""Headers of results: those of the stream's records, but for those that tell a record's schemas."""

from typing import Any

from spark_streams.copy import headers_before

_OF_KEY, _OF_VALUE = "__key_schema_id", "__value_schema_id"
"""Confluent's."""
_OF_APICURIO = "apicurio."


def kept() -> Any:
    """The headers of the stream's record that its result has as well.

    Clients of the two registries that the mesh speaks with take the schema of a key or value out of
    a header before that at the begin of the bytes. A result has a schema of its own, and whoever
    writes to the stream is not to choose by which one it is read.
    """
    from pyspark.sql.connect import functions as f

    def stays(one: Any) -> Any:
        name = one.getField("key")
        of_confluent = (name == f.lit(_OF_KEY)) | (name == f.lit(_OF_VALUE))
        return ~(of_confluent | f.startswith(name, f.lit(_OF_APICURIO)))

    return f.filter(headers_before(), stays)
