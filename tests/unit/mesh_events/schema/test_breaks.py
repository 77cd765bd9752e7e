"""What can be read with which schema: the specification's cases, and where it says so."""

import json
from typing import Any

import pytest

from mesh_events.schema.compatibility import Change, Level, breaks, changes, fields, misread

NEW, OLD = "new readers of old records", "old readers of new records"


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def debezium(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "connect.name": f"io.debezium.time.{name}"}


A, B = field("a", "int"), field("b", "string")
FULL = [
    (record(A), record(A)),
    (record(A), record(A, field("b", "string", default="x"))),
    (record(A), record(A, field("b", ["null", "string"], default=None))),
    (record(field("a", ["int", "null"])), record(field("a", ["null", "int"]))),
    (record(A, doc="one"), record(A, doc="two")),
    (record(A, namespace="x"), record(A, namespace="y")),
    (record(field("a", "string")), record(field("a", "bytes"))),
    (record(field("e", enum("X"))), record(field("e", enum("X")))),
    (record(field("a", decimal(9, 2))), record(field("a", decimal(9, 2)))),
    (
        record(field("a", logical("long", "timestamp-millis"))),
        record(field("a", logical("long", "local-timestamp-millis", doc="x"))),
    ),
    (
        record(field("a", debezium("int", "Date"))),
        record(field("a", {"type": "int", "connect.name": "org.apache.kafka.connect.data.Date"})),
    ),
    # to Avro a logical type of another type than its own means nothing
    (record(field("a", "string")), record(field("a", logical("string", "timestamp-millis")))),
    (record(field("a", "int")), record(field("a", logical("int", "timestamp-millis")))),
    (
        record(field("a", debezium("long", "MicroTimestamp"))),
        record(field("a", logical("long", "local-timestamp-micros"))),
    ),
    (
        record(field("next", ["null", "R"]), name="R"),
        record(field("next", ["null", "R"]), field("n", "int", default=0), name="R"),
    ),
]
BACKWARD_ONLY = [
    (record(A, B), record(A), "b"),
    (record(A), record(field("a", "long")), "a"),
    (record(A), record(field("a", "double")), "a"),
    (record(field("a", "float")), record(field("a", "double")), "a"),
    (record(A), record(field("a", ["null", "int"])), "a"),
    (record(field("e", enum("X"))), record(field("e", enum("X", "Y"))), "e"),
    (record(A), record(field("x", "int", aliases=["a"])), "a"),
    (
        record(field("t", {"type": "array", "items": "int"})),
        record(field("t", {"type": "array", "items": "long"})),
        "t[]",
    ),
    (
        record(field("t", {"type": "map", "values": record(A, B, name="In")})),
        record(field("t", {"type": "map", "values": record(A, name="In")})),
        "t{}.b",
    ),
    (
        record(field("in", ["null", record(A, B, name="In")])),
        record(field("in", ["null", record(A, name="In")])),
        "in.b",
    ),
]
NEITHER = [
    (record(A), record(field("a", "string")), "a"),
    (record(A), record(B), "b"),
    (record(field("a", decimal(9, 2))), record(field("a", decimal(9, 3))), "a"),
    (
        record(field("f", {"type": "fixed", "name": "F", "size": 4})),
        record(field("f", {"type": "fixed", "name": "F", "size": 5})),
        "f",
    ),
    (
        record(field("a", ["null", logical("long", "timestamp-millis")])),
        record(field("a", ["null", logical("long", "timestamp-micros")])),
        "a",
    ),
    (
        record(field("a", debezium("long", "Timestamp"))),
        record(field("a", debezium("long", "MicroTimestamp"))),
        "a",
    ),
    (
        record(field("a", logical("int", "time-millis"))),
        record(field("a", logical("long", "time-micros"))),
        "a",
    ),
    (record(field("a", "long")), record(field("a", logical("long", "timestamp-millis"))), "a"),
    (record(A), record(field("a", debezium("int", "Date"))), "a"),
    (record(A), record(field("a", ["null", logical("int", "date")])), "a"),
    (record(field("a", "string")), record(field("a", debezium("string", "Date"))), "a"),
    (record(field("several", "string")), record(field("several", ["string", "int"])), "several"),
    (record(field("digits", "long")), record(field("digits", "double")), "digits"),
    (record(field("digits", "int")), record(field("digits", ["null", "float"])), "digits"),
    (
        record(field("moved", ["null", "string", enum("X")])),
        record(field("moved", ["null", enum("X"), "string"])),
        "moved",
    ),
    (record(A, name="One"), record(A, name="Two"), "the value"),
    ("int", "string", "the value"),
]


def found(old: Any, new: Any, level: Level) -> list[tuple[str, str]]:
    return [(one.path, one.who) for one in breaks(json.dumps(old), json.dumps(new), level)]


@pytest.mark.parametrize(("old", "new"), FULL)
def test_what_both_sides_can_read_breaks_nobody(old: Any, new: Any) -> None:
    for level in Level:
        assert found(old, new, level) == []
        assert found(new, old, level) == []


@pytest.mark.parametrize(("old", "new", "path"), BACKWARD_ONLY)
def test_what_only_new_readers_can_read_breaks_old_ones(old: Any, new: Any, path: str) -> None:
    assert found(old, new, Level.BACKWARD) == []
    assert found(old, new, Level.FORWARD) == [(path, OLD)]
    assert found(old, new, Level.FULL) == [(path, OLD)]
    assert found(old, new, Level.FULL_TRANSITIVE) == [(path, OLD)]
    assert found(old, new, Level.NONE) == []
    assert [who for _, who in found(new, old, Level.FULL)] == [NEW]


@pytest.mark.parametrize(("old", "new", "path"), NEITHER)
def test_what_nobody_can_read_breaks_both(old: Any, new: Any, path: str) -> None:
    told = found(old, new, Level.FULL)
    assert {who for _, who in told} == {NEW, OLD}
    assert path in [one for one, _ in told]


def test_a_reason_says_what_is_missing() -> None:
    [told] = breaks(json.dumps(record(A)), json.dumps(record(A, B)), Level.BACKWARD)
    assert str(told) == "b: it was not written and has no default (new readers of old records)"
    [told] = breaks(
        json.dumps(record(field("e", enum("X", "Y")))),
        json.dumps(record(field("e", enum("X")))),
        Level.BACKWARD,
    )
    assert "the symbols Y are missing" in told.reason


def test_a_symbol_that_is_dropped_is_told_and_one_that_is_added_is_not() -> None:
    """What was written as Y would be read as X; an old reader has its default for what comes."""
    both, one = (record(field("e", enum(*names, default="X"))) for names in ("XY", "X"))
    assert found(one, both, Level.FULL) == []
    assert found(both, one, Level.FORWARD) == []
    for level in (Level.BACKWARD, Level.FULL):
        assert found(both, one, level) == [("e", NEW)]
    [told] = breaks(json.dumps(both), json.dumps(one), Level.BACKWARD)
    assert told.reason == (
        "the symbols Y are missing and the default is X: what was written is read as another symbol"
    )
    assert misread(one, both) == [("e", told.reason)]
    assert misread(both, one) == []
    without = record(field("e", enum("X")))
    assert misread(without, both) == []
    assert found(both, without, Level.BACKWARD) == [("e", NEW)]


def test_symbols_that_are_added_to_many_enums_hide_no_other_break() -> None:
    def rows(*symbols: str, **more: Any) -> dict[str, Any]:
        enums = [enum(*symbols, default="X") | {"name": f"E{one}"} for one in range(1100)]
        return record(*[field(f"e{one['name']}", one) for one in enums], field("z", **more))

    told = found(rows("X", kind="string"), rows("X", "Y", kind="int"), Level.FORWARD)
    assert told == [("z", OLD)]


def test_changes_are_told_by_path_with_types_and_defaults() -> None:
    old = record(A, field("in", record(B, field("gone", "long"), name="In")))
    new = record(
        field("a", ["null", "int"], default=None),
        field("in", record(B, field("tags", {"type": "array", "items": "string"}), name="In")),
    )
    assert changes(fields(json.dumps(old)), fields(json.dumps(new))) == [
        Change("a", "changed", "int", "null | int = null"),
        Change("in.gone", "removed", "long", None),
        Change("in.tags", "added", None, "array of string"),
    ]


def test_a_record_may_be_renamed_where_it_says_what_it_was_called() -> None:
    old = json.dumps(record(field("n", "int"), name="Old"))
    renamed = record(field("n", "int"), name="New")
    assert breaks(old, json.dumps({**renamed, "aliases": ["Old"]}), Level.BACKWARD) == []
    assert breaks(old, json.dumps(renamed), Level.BACKWARD) != []


def test_fields_of_a_type_are_told_wherever_its_name_stands() -> None:
    """As in Debezium's envelopes; a type that holds itself is not followed into itself."""
    inner = [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Row"]}]
    row = {"type": "record", "name": "Row", "namespace": "a", "fields": inner}
    sides = [
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "a.Row"]},
    ]
    envelope = {"type": "record", "name": "Envelope", "fields": sides}
    paths = [one.path for one in fields(json.dumps(envelope))]
    assert paths == ["before", "before.id", "before.next", "after", "after.id", "after.next"]
