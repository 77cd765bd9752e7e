"""What Spark has no type for is left out of a reader's schema, and refused where it is read."""

import json
from typing import Any

import fastavro
import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.plan import planned
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.shape import shape_of


def decimal(precision: int, scale: int = 2) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": "shop",
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


PAY = record("Pay", ("id", "int"), ("amount", decimal(10)), ("total", ["null", decimal(64)]))
CHANGE = record("Envelope", ("before", ["null", PAY]), ("after", ["null", "Pay"]), ("op", "string"))
PLAIN = record(
    "Order",
    ("id", "int"),
    ("fine", decimal(38)),
    ("wide", decimal(39)),
    ("odd", decimal(5, -2)),
    ("empty", decimal(0, 0)),
    ("many", {"type": "array", "items": ["null", decimal(50)]}),
    ("nested", record("Inner", ("a", "int"), ("b", decimal(64)))),
    ("again", ["null", "shop.Inner"]),
)


class Registry:
    """Subjects of Avro schemas."""

    def __init__(self, **schemas: Any) -> None:
        self._schemas = schemas

    def versions(self, subject: str) -> dict[int, str]:
        topic, _, side = subject.rpartition("-")
        if side == "key":
            return {7: json.dumps(record("Key", ("id", "int")))}
        return {1: json.dumps(self._schemas[topic])}


def test_a_reader_leaves_out_what_spark_has_no_type_for_and_the_schema_stays() -> None:
    shape = shape_of(json.dumps(PLAIN), "s")
    assert set(shape.unreadable) == {
        ("wide",), ("odd",), ("empty",), ("many",), ("nested", "b"), ("again", "b"),
    }  # fmt: skip
    reader = json.loads(shape.reader)
    assert [one["name"] for one in reader["fields"]] == ["id", "fine", "nested", "again"]
    assert [one.name for one in shape.fields] == [one["name"] for one in PLAIN["fields"]]
    assert json.loads(shape.schema) == PLAIN
    fastavro.parse_schema(reader)


def test_a_changed_row_is_read_without_them_too() -> None:
    shape = shape_of(json.dumps(CHANGE), "s")
    assert shape.is_change
    assert set(shape.unreadable) == {("before", "total"), ("after", "total")}
    assert set(shape.row_unreadable) == {("total",)}
    for schema in (shape.reader, shape.row_reader, shape.row_schema):
        fastavro.parse_schema(json.loads(schema))
        assert "64" not in schema


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("INSERT INTO o SELECT id, total FROM TABLE(pay)", "line 1, column 26"),
        ("INSERT INTO o SELECT * FROM TABLE(pay)", "line 1, column 22"),
        ("INSERT INTO o SELECT id FROM TABLE(pay) WHERE total IS NULL", "line 1, column 47"),
        ("INSERT INTO o SELECT p.after.total AS t FROM pay p", "line 1, column 22"),
        ("INSERT INTO o SELECT p.after AS t FROM pay p", "line 1, column 22"),
        ("INSERT INTO o SELECT y.total FROM plain x JOIN pay y ON x.id = y.id",
         "line 1, column 22"),
        ("INSERT INTO o SELECT x.id FROM plain x JOIN pay y ON x.id = y.id AND x.wide > 1",
         "line 1, column 70"),
        ("INSERT INTO o SELECT nested FROM plain", "line 1, column 22"),
    ],
)  # fmt: skip
def test_a_statement_that_reads_one_is_refused_with_its_place(sql: str, place: str) -> None:
    with pytest.raises(SqlError, match="digits") as refused:
        planned(parse(sql), {}, Registry(pay=CHANGE, plain=PLAIN))
    assert refused.value.code == "unreadable_column"
    assert str(refused.value.place) == place


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO o SELECT id, amount FROM TABLE(pay)",
        "INSERT INTO o SELECT * EXCEPT (total) FROM TABLE(pay)",
        "INSERT INTO o SELECT p.after.amount, op FROM pay p",
        "INSERT INTO o SELECT x.fine, x.nested.a, y.amount FROM plain x JOIN pay y ON x.id = y.id",
    ],
)
def test_other_columns_of_the_same_topics_are_read(sql: str) -> None:
    plan = planned(parse(sql), {}, Registry(pay=CHANGE, plain=PLAIN))
    readable = {one.name for one in plan.stream.readable}
    assert not readable & {"total", "wide", "odd", "many"}


WIDE = {"type": "fixed", "name": "Wide", "size": 30, "logicalType": "decimal", "precision": 50}


def test_a_type_that_was_left_out_is_left_out_where_it_is_used_by_its_name() -> None:
    order = record("Order", ("a", WIDE), ("b", ["null", "Wide"]), ("c", "int"))
    shape = shape_of(json.dumps(order), "s")
    assert set(shape.unreadable) == {("a",), ("b",)}
    assert [one["name"] for one in json.loads(shape.reader)["fields"]] == ["c"]


def test_a_type_within_what_was_left_out_is_defined_where_it_is_used_first() -> None:
    inner = record("Inner", ("x", "int"))
    order = record(
        "Order",
        ("a", [inner, decimal(50)]),
        ("b", "Inner"),
        ("c", {"type": "array", "items": "shop.Inner"}),
        ("d", record("Outer", ("y", "Inner"))),
    )
    shape = shape_of(json.dumps(order), "s")
    assert set(shape.unreadable) == {("a",)}
    reader = fastavro.parse_schema(json.loads(shape.reader))
    assert [one["name"] for one in reader["fields"]] == ["b", "c", "d"]
    row = {"b": {"x": 1}, "c": [{"x": 2}], "d": {"y": {"x": 3}}}
    assert fastavro.validate(row, reader)


def test_what_held_a_type_that_is_defined_elsewhere_meanwhile_has_it_by_name() -> None:
    inner = record("Inner", ("x", "int"))
    outer = record("Outer", ("first", inner))
    order = record("Order", ("a", [outer, decimal(50)]), ("b", "Inner"), ("c", "Outer"))
    reader = fastavro.parse_schema(json.loads(shape_of(json.dumps(order), "s").reader))
    assert fastavro.validate({"b": {"x": 1}, "c": {"first": {"x": 2}}}, reader)


DAY = {"type": "int", "logicalType": "date"}
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
NAMED = {"type": "long", "connect.name": "io.debezium.time.Timestamp"}


@pytest.mark.parametrize(
    ("union", "named"),
    [
        (["null", DAY, MOMENT], "date and timestamp-millis"),
        ([MOMENT, "int"], "timestamp-millis and int"),
        (["int", NAMED, "null"], "int and io.debezium.time.Timestamp"),
    ],
)
def test_a_union_of_two_times_is_no_one_number(union: list[Any], named: str) -> None:
    many = {"type": "array", "items": union}
    schema = record("Two", ("id", "int"), ("at", union), ("many", many))
    assert set(shape_of(json.dumps(schema), "s").unreadable) == {("at",), ("many",)}
    with pytest.raises(SqlError, match=f"line 1, column 8: two.at is a union of {named}") as found:
        planned(parse("SELECT at FROM two"), {}, Registry(two=schema))
    assert found.value.code == "unreadable_column"
    assert "decimal" not in str(found.value)


@pytest.mark.parametrize(
    "union", [["int", "long"], [DAY, "null"], [DAY, "string"], [MOMENT, DAY, "string"]]
)
def test_other_unions_of_numbers_are_read(union: list[Any]) -> None:
    assert shape_of(json.dumps(record("Two", ("at", union))), "s").unreadable == {}
