"""Spark's types as Avro: every type that Avro has, and those that it does not have."""

import io
import json
from typing import Any

import fastavro
import pytest
from pyspark.sql import types as t

from spark_streams.sql.errors import SqlError
from spark_streams.sql.types.result import result_schema


def fields(**kinds: t.DataType) -> dict[str, Any]:
    columns = t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])
    schema = json.loads(result_schema(columns, "ClickUsers", "east"))
    fastavro.parse_schema(json.loads(json.dumps(schema)))
    assert schema["name"] == "ClickUsers"
    assert schema["namespace"] == "east"
    assert all(one["default"] is None and one["type"][0] == "null" for one in schema["fields"])
    return {one["name"]: one["type"][1] for one in schema["fields"]}


def test_plain_types_are_avros_own() -> None:
    assert fields(
        a=t.BooleanType(), b=t.ShortType(), c=t.IntegerType(), d=t.LongType(), e=t.FloatType(),
        f=t.DoubleType(), g=t.StringType(), h=t.BinaryType(), i=t.VarcharType(3),
    ) == {
        "a": "boolean", "b": "int", "c": "int", "d": "long", "e": "float",
        "f": "double", "g": "string", "h": "bytes", "i": "string",
    }  # fmt: skip


def test_dates_times_and_decimals_are_logical_types() -> None:
    found = fields(
        day=t.DateType(), at=t.TimestampType(), local=t.TimestampNTZType(), sum=t.DecimalType(12, 2)
    )
    assert found["day"] == {"type": "int", "logicalType": "date"}
    assert found["at"] == {"type": "long", "logicalType": "timestamp-micros"}
    assert found["local"] == {"type": "long", "logicalType": "local-timestamp-micros"}
    assert found["sum"] == {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": 12,
        "scale": 2,
    }


def test_records_that_look_alike_get_names_of_their_own() -> None:
    inner = t.StructType([t.StructField("zip", t.StringType())])
    deep = t.StructType([t.StructField("zip", inner)])
    found = fields(
        home=inner, work=deep, all=t.ArrayType(inner), by=t.MapType(t.StringType(), inner)
    )
    assert found["home"]["name"] == "ClickUsers_home"
    assert found["work"]["name"] == "ClickUsers_work"
    assert found["all"]["items"][1]["name"] == "ClickUsers_all"
    assert found["by"]["values"][1]["type"] == "record"


def test_a_record_goes_through_its_schema_and_back() -> None:
    columns = t.StructType([t.StructField("tags", t.ArrayType(t.StringType()))])
    schema = fastavro.parse_schema(json.loads(result_schema(columns, "X", "east")))
    for value in ({"tags": ["a", None]}, {"tags": None}):
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, schema, value)
        buffer.seek(0)
        assert fastavro.schemaless_reader(buffer, schema) == value


@pytest.mark.parametrize(
    "kind", [t.DayTimeIntervalType(), t.NullType(), t.MapType(t.IntegerType(), t.StringType())]
)
def test_a_type_that_avro_does_not_have_is_refused_by_the_columns_name(kind: t.DataType) -> None:
    with pytest.raises(SqlError, match="the column gap has the type") as refused:
        fields(gap=kind)
    assert refused.value.code == "wrong_type"


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A")])
def test_a_struct_with_one_name_for_two_fields_is_refused(names: tuple[str, str]) -> None:
    twice = t.StructType([t.StructField(name, t.LongType()) for name in names])
    for kind in (twice, t.ArrayType(twice), t.MapType(t.StringType(), twice)):
        with pytest.raises(SqlError, match="one name in SQL") as refused:
            fields(both=kind)
        assert refused.value.code == "duplicate_column"


def test_a_time_of_day_is_refused_with_casts_that_keep_it() -> None:
    with pytest.raises(SqlError, match=r"CAST it AS STRING, or AS DECIMAL\(14, 6\)"):
        fields(clock=t.TimeType(6))
