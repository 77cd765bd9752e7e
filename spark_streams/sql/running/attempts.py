"""Columns that may have no value for a record: the record then goes to the dead letters, with why.

Spark ends a query where `url_decode`, `slice` or `map_concat` gets arguments that it does not take.
One record would stop a statement for good.
"""

from typing import Any

from spark_streams.jvm import ATTEMPT, MATCHES

FAILED = "the statement has no value for this record, Spark says "
_NEXT = ": leave such records out by WHERE, or use a function that gives null instead"
_ZONED = (
    r"-?infinity|[+-]?[0-9]{4,9}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{0,6}0*)?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2}(:[0-9]{2})?)"
)
"""What a capture writes of a time with a zone, and others of ISO 8601."""
_OF_SQL = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-.*"
"""A text that begins with a year of SQL's, 0001 to 9999."""
_MOST_MILLIS = 2**63 // 1000 - 1
"""Milliseconds since 1970 of the last moment that Spark has."""


def attempted(rows: Any, name: str, column: Any, *, told: str | None = None) -> Any:
    """Rows with one more column; where it cannot be computed it is null, and `fault` says why.

    Args:
        rows: DataFrame with the column `fault`; where that is not null, nothing is computed.
        name: of the new column.
        column: what is computed.
        told: what `fault` says; by default what Spark does, and what to do about it.
    """
    from pyspark.sql.connect import functions as f

    attempt = f.when(f.col("fault").isNull(), f.call_function(ATTEMPT, column))
    rows = rows.withColumn(name, attempt)
    said = f.col(name).getField("fault")
    why = f.concat(f.lit(FAILED), said, f.lit(_NEXT))
    if told is not None:
        why = f.when(said.isNotNull(), f.lit(told))
    found = f.col(name).getField("value")
    return rows.withColumns({"fault": f.coalesce(f.col("fault"), why), name: found})


def moment(value: Any) -> Any:
    """A time from its milliseconds, null where Spark has none."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import TimestampNTZType

    return f.when(~_beyond(value), f.timestamp_millis(value).cast(TimestampNTZType()))


def no_moment(value: Any, field: str) -> Any:
    """Why a record has no time of so many milliseconds, null if it has one."""
    from pyspark.sql.connect import functions as f

    return f.when(_beyond(value), f.lit(f"{field} holds milliseconds that are no time in Spark"))


def no_zoned(value: Any, field: str) -> Any:
    """Why a text is no time with a zone, or a finer one than Spark has; null if it is one.

    Infinity is null in SQL, and so are years that it has not.
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BinaryType, TimestampType

    def matches(pattern: str) -> Any:
        return f.call_function(MATCHES, value.cast(BinaryType()), f.lit(pattern))

    is_none = value.try_cast(TimestampType()).isNull() & matches(_OF_SQL)
    wrong = value.isNotNull() & (~matches(_ZONED) | is_none)
    return f.when(wrong, f.lit(f"{field} holds a text that is no time with a zone in Spark"))


def _beyond(value: Any) -> Any:
    from pyspark.sql.connect import functions as f

    return ~value.between(f.lit(-_MOST_MILLIS), f.lit(_MOST_MILLIS))
