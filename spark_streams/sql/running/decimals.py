"""Decimals of Avro that have more digits than their schema says: no value, never another one.

Spark reads a decimal of up to 18 digits by the last 64 bits of its number, whatever is before them.
So it is given a schema in which they have 38, and takes the ones as they were declared of those.
"""

import json
from math import floor, log10
from typing import Any

from spark_streams.sql.running.attempts import attempted

TOO_LONG = "a decimal has more digits than its schema allows"
_OF_64_BITS, _BYTES, _MOST_DIGITS = 18, 8, 38


def widened(schema: str) -> str:
    """The schema with 38 digits for each decimal that Spark would read by 64 bits."""
    return json.dumps(_wide(json.loads(schema)))


def _wide(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_wide(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: _wide(one) if name in ("type", "items", "values", "fields") else one
        for name, one in schema.items()
    }
    digits = schema.get("precision") if schema.get("logicalType") == "decimal" else None
    if isinstance(digits, int) and digits <= _OF_64_BITS:
        found["precision"] = max(digits, _most_digits(schema))
    return found


def _most_digits(schema: Any) -> int:
    """Digits that a decimal may have at most, to be one for Avro; of 64 bits they need no more."""
    size = schema.get("size") if schema.get("type") == "fixed" else None
    if not isinstance(size, int) or size > _MOST_DIGITS:
        return _MOST_DIGITS
    return min(_MOST_DIGITS, floor((8 * size - 1) * log10(2))) if size > _BYTES else 0


def declared(rows: Any, name: str, schema: str) -> Any:
    """Rows whose column has the types of its schema again; `fault` tells where one is too long.

    Args:
        rows: DataFrame with the columns `fault` and `name`, read with the schema `widened`.
        name: of the column.
        schema: as it was declared.
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.connect.avro.functions import from_avro
    from pyspark.sql.connect.column import Column
    from pyspark.sql.connect.expressions import CastExpression
    from pyspark.sql.types import BinaryType

    if json.loads(widened(schema)) == json.loads(schema):
        return rows
    nothing = from_avro(f.lit(None).cast(BinaryType()), schema, {"mode": "PERMISSIVE"})
    # of a plan of its own, which is smaller
    kind = rows.sparkSession.range(1).select(nothing.alias(name)).schema[name].dataType
    # elsewhere a number that does not fit is null
    column = Column(CastExpression(f.col(name)._expr, kind, "ansi"))  # noqa: SLF001 - has no method
    return attempted(rows, name, column, told=TOO_LONG)
