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

    place = f.concat_ws(
        "/", f.lit(origin.cluster), f.lit(origin.topic_id), f.col("partition"), f.col("offset")
    )
    header = f.struct(f.lit(HEADER).alias("key"), place.cast("binary").alias("value"))
    before = f.coalesce(f.col("headers"), f.array().cast("array<struct<key:string,value:binary>>"))
    return records.select(
        f.col("key"),
        f.col("value"),
        f.col("partition"),
        f.concat(before, f.array(header)).alias("headers"),
    )
