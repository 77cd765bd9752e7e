"""What a link does to each record: nothing, but for one more header.

In and out: Kafka records as Spark's source gives them and its sink takes them.
"""

from typing import Any

from spark_streams.provenance import HEADER, Origin


def with_provenance(records: Any, origin: Origin) -> Any:
    """Key, value, partition and headers as they are, and `mesh.source` behind the headers.

    Args:
        records: DataFrame[key: binary, value: binary, partition: int, offset: bigint,
            headers: array<struct<key: string, value: binary>> or null, ...].
        origin: what `records` was read from.

    Returns:
        DataFrame[key: binary, value: binary, partition: int, headers: array<...>].
    """
    from pyspark.sql.connect import functions as f

    return records.select(
        f.col("key"),
        f.col("value"),
        f.col("partition"),
        f.concat(headers_before(), f.array(source_header(origin))).alias("headers"),
    )


def headers_before() -> Any:
    """The headers that a record of the source has; none is an empty array."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

    one = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    return f.coalesce(f.col("headers"), f.array().cast(ArrayType(one)))


def source_header(origin: Origin) -> Any:
    """The header that tells a record's place in its source."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BinaryType

    place = f.concat_ws(
        "/", f.lit(origin.cluster), f.lit(origin.topic_id), f.col("partition"), f.col("offset")
    )
    return header(HEADER, place.cast(BinaryType()))


def header(name: str, value: Any) -> Any:
    """A header as the sink takes it; `value` is a column of bytes."""
    from pyspark.sql.connect import functions as f

    return f.struct(f.lit(name).alias("key"), value.alias("value"))
