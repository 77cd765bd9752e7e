"""Avro schemas as columns: plain records, Debezium's envelopes, Connect's named types, keys."""

import io
import json
from typing import Any

import fastavro
import pytest

from mesh_events.errors import RefusedError
from spark_streams.sql.types.shape import Field, Meaning, key_columns, shape_of


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": "shop.users",
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


def named(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": name}


ROW = record(
    ("userid", "int"),
    ("born", ["null", named("int", "io.debezium.time.Date")]),
    ("made", named("long", "io.debezium.time.MicroTimestamp")),
    ("seen", named("string", "io.debezium.time.ZonedTimestamp")),
    ("extra", named("string", "io.debezium.data.Json")),
    name="Value",
)
ENVELOPE = record(("before", ["null", ROW]), ("after", ["null", "Value"]), ("op", "string"))


def test_texts_are_read_as_they_are_whatever_java_makes_of_them() -> None:
    text = {"type": "string", "avro.java.string": "String"}
    texts = {
        "type": "map",
        "avro.java.string": "String",
        "values": {"type": "array", "items": text},
    }
    inner = record(("t", ["null", text]), name="Inner")
    schema = json.dumps(record(("a", text), ("m", texts), ("i", inner), ("n", "int")))
    shape = shape_of(schema, "s")
    assert shape.schema == schema
    for read in (shape.reader, shape.row_reader, shape.row_schema):
        assert "avro.java.string" not in read
    assert [one.name for one in shape.fields] == ["a", "m", "i", "n"]
    envelope = record(("before", ["null", inner]), ("after", ["null", "Inner"]), ("op", text))
    change = shape_of(json.dumps(envelope), "s")
    assert change.is_change
    assert "avro.java.string" not in change.row_reader + change.row_schema + change.reader


def test_a_plain_record_has_its_fields_as_columns() -> None:
    shape = shape_of(json.dumps(record(("ip", "string"), ("status", ["null", "int"]))), "s")
    assert not shape.is_change
    assert shape.fields == shape.row == (Field("ip"), Field("status"))
    assert shape.row_reader == shape.row_schema == shape.schema


@pytest.mark.parametrize("spelled", ["Value", "shop.users.Value"])
def test_a_change_of_a_row_has_the_rows_columns_with_the_types_that_are_meant(spelled: str) -> None:
    envelope = record(("before", ["null", ROW]), ("after", ["null", spelled]), ("op", "string"))
    shape = shape_of(json.dumps(envelope), "s")
    assert shape.is_change
    assert [field.name for field in shape.fields] == ["before", "after", "op"]
    assert {field.name: field.meaning for field in shape.row} == {
        "userid": Meaning.ITSELF,
        "born": Meaning.DAYS,
        "made": Meaning.MICROS,
        "seen": Meaning.ZONED,
        "extra": Meaning.ITSELF,
    }
    # a reader of the row and of what the change is, and the row by itself, are schemas of their own
    for schema in (shape.row_reader, shape.row_schema):
        fastavro.parse_schema(json.loads(schema))
    assert [field["name"] for field in json.loads(shape.row_reader)["fields"]] == ["after", "op"]
    assert json.loads(shape.row_schema)["namespace"] == "shop.users"


def test_a_row_is_the_record_of_the_namespace_around_it() -> None:
    other = {**record(("other", "int"), name="Value"), "namespace": "far"}
    fields = [("before", ["null", ROW]), ("x", ["null", other]), ("after", ["null", "Value"])]
    shape = shape_of(json.dumps(record(*fields, ("op", "string"))), "s")
    assert [field.name for field in shape.row][:2] == ["userid", "born"]
    of_far = record(*fields[:2], ("after", ["null", "far.Value"]), ("op", "string"))
    assert [field.name for field in shape_of(json.dumps(of_far), "s").row] == ["other"]


def test_a_record_with_before_and_after_that_are_no_rows_is_a_plain_one() -> None:
    plain = record(("before", "long"), ("after", "long"), ("op", "string"))
    assert not shape_of(json.dumps(plain), "s").is_change


@pytest.mark.parametrize("around", [[], ["null"], [{"type": "null"}]])
def test_a_record_in_a_union_with_null_is_read_as_the_record(around: list[Any]) -> None:
    plain = record(("ip", "string"))
    shape = shape_of(json.dumps([*around, plain]), "s")
    assert shape.fields == (Field("ip"),)
    for schema in (shape.reader, shape.row_reader, shape.row_schema):
        assert json.loads(schema) == plain
    changed = shape_of(json.dumps([*around, ENVELOPE]), "s")
    assert changed.is_change
    assert json.loads(changed.reader)["name"] == "R"
    assert json.loads(shape.schema) == [*around, plain]


@pytest.mark.parametrize(
    "schema",
    [
        record(("Id", "int"), ("id", "int"), ("x", "int")),
        record(("x", "int"), ("inner", record(("Id", "int"), ("id", "int"), name="Inner"))),
        record(
            ("many", {"type": "array", "items": ["null", record(("Id", "int"), ("id", "int"))]})
        ),
    ],
)
def test_fields_that_differ_in_nothing_but_case_are_refused(schema: Any) -> None:
    with pytest.raises(RefusedError, match=r"s: the fields Id and id of .* have one name") as found:
        shape_of(json.dumps(schema), "s")
    assert found.value.code == "schema_not_usable"


@pytest.mark.parametrize("schema", ['"string"', '["null", "int"]', "no json", '{"type": "map"}'])
def test_values_without_columns_are_refused(schema: str) -> None:
    with pytest.raises(RefusedError, match=r"east\.x-value") as refused:
        shape_of(schema, "east.x-value")
    assert refused.value.code == "schema_not_usable"


def test_a_pattern_in_a_union_of_several_types_is_refused() -> None:
    kind = {"type": "string", "logicalType": "validatedString", "pattern": "a"}
    with pytest.raises(RefusedError, match=r"east\.x-value: the pattern of s ") as refused:
        shape_of(json.dumps(record(("s", ["null", "int", kind]))), "east.x-value")
    assert refused.value.code == "unsupported_pattern"


def test_a_key_is_a_records_fields_or_the_key_itself_or_nothing() -> None:
    assert key_columns(json.dumps(record(("region", "string"), ("number", "int"))), "s") == (
        "region",
        "number",
    )
    assert key_columns('"string"', "s") == ("_key",)
    assert key_columns(None, "s") == ()


def test_a_number_that_is_two_times_is_refused() -> None:
    kind = named("long", "io.debezium.time.MicroTimestamp")
    inner = record(("at", {**kind, "logicalType": "timestamp-millis"}), name="In")
    with pytest.raises(
        RefusedError, match=r"east\.x-value: shop\.users\.In\.at has the"
    ) as refused:
        shape_of(json.dumps(record(("in", inner))), "east.x-value")
    assert refused.value.code == "schema_not_usable"


@pytest.mark.parametrize("kind", ["int", "string"])
def test_a_number_among_several_types_is_not_taken_for_a_time(kind: str) -> None:
    """Spark reads an int and a long as one number: 20260101 would be a time of 1970."""
    time = named("long", "io.debezium.time.Timestamp")
    alone, among = ["null", time], ["null", kind, time]
    shape = shape_of(json.dumps(record(("alone", alone), ("among", among))), "s")
    assert shape.fields == (Field("alone", Meaning.MILLIS), Field("among"))


def test_a_row_brings_the_types_along_that_are_defined_outside_of_it() -> None:
    kind = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    code = {"type": "fixed", "name": "Code", "namespace": "shop.codes", "size": 2}
    before = record(("kind", kind), ("code", code), name="Before")
    deep = record(("code", "shop.codes.Code"), name="Deep")
    after = record(("kind", "Kind"), ("again", ["null", "Kind"]), ("deep", deep), name="After")
    envelope = record(("before", ["null", before]), ("after", ["null", after]), ("op", "string"))
    shape = shape_of(json.dumps(envelope), "s")
    row = {"kind": "B", "again": "A", "deep": {"code": b"ab"}}
    value = {"before": {"kind": "A", "code": b"cd"}, "after": row, "op": "u"}
    wide, narrow, alone = (
        fastavro.parse_schema(json.loads(one))
        for one in (shape.reader, shape.row_reader, shape.row_schema)
    )
    out = io.BytesIO()
    fastavro.schemaless_writer(out, wide, value)
    out.seek(0)
    assert fastavro.schemaless_reader(out, wide, narrow) == {"after": row, "op": "u"}
    fastavro.schemaless_writer(io.BytesIO(), alone, row)
