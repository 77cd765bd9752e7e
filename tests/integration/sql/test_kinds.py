"""The SQL types by which schemas are compared are those that Spark reads them as."""

import json
from typing import Any

import pytest

from spark_streams.sql.types.kinds import sql_type

pytestmark = pytest.mark.platform

_PRIMITIVES = ("boolean", "int", "long", "float", "double", "string", "bytes")
_TIMESTAMPS = (
    f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros", "nanos")
)
_LOGICAL = ("date", "time-millis", "time-micros", "uuid", "big-decimal", "of-nobody", *_TIMESTAMPS)
DECIMAL = {"logicalType": "decimal", "precision": 10, "scale": 2}
OTHERS: list[dict[str, Any]] = [
    {"type": "bytes", **DECIMAL},
    {"type": "bytes", "logicalType": "decimal", "precision": 38},
    {"type": "fixed", "name": "F", "size": 8, **DECIMAL},
    {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
    {"type": "fixed", "name": "F", "size": 2},
    {"type": "long", **DECIMAL, "logicalType": "custom-decimal"},
    {"type": "enum", "name": "E", "symbols": ["A"]},
    {"type": "long", "spark.sql.catalyst.type": "time(3)"},
    {"type": "int", "spark.sql.catalyst.type": "interval month"},
    {"type": "long", "logicalType": "timestamp-micros", "spark.sql.catalyst.type": "time(3)"},
    {"type": "string", "spark.sql.catalyst.type": "date"},
]


def test_a_schemas_type_is_called_as_spark_reads_it(spark: Any) -> None:
    from pyspark.sql.connect import functions as f
    from pyspark.sql.connect.avro.functions import from_avro
    from pyspark.sql.types import BinaryType

    kinds: list[Any] = [*_PRIMITIVES, *OTHERS]
    kinds += [{"type": one, "logicalType": mark} for one in _PRIMITIVES for mark in _LOGICAL]
    fields = [{"name": f"c{number}", "type": [one]} for number, one in enumerate(kinds)]
    # a type with a name is defined once in a schema
    for one in fields:
        if "name" in one["type"][0]:
            one["type"] = [{**one["type"][0], "name": f"T{one['name']}"}]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    read = from_avro(f.lit(None).cast(BinaryType()), schema)
    [found] = spark.range(1).select(read).schema.fields
    spark_types = [one.dataType.simpleString().upper() for one in found.dataType.fields]
    spark_types = [one.replace("TIME(6)", "TIME") for one in spark_types]
    assert spark_types == [sql_type(one) for one in kinds]
