"""What numbers count, by the marks that stand beside them."""

from typing import Any

import pytest

from mesh_events.errors import RefusedError
from mesh_events.schema.compatibility import misread
from mesh_events.schema.patterns import require_usable
from mesh_events.schema.times import require_one_default, require_one_meaning, times_of

MICROS = "io.debezium.time.MicroTimestamp"


def number(logical: str | None, name: str | None = None, kind: str = "long") -> dict[str, Any]:
    marks = {"logicalType": logical, "connect.name": name}
    return {"type": kind, **{key: one for key, one in marks.items() if one is not None}}


def row(kind: Any) -> dict[str, Any]:
    inner = {"type": "record", "name": "In", "fields": [{"name": "at", "type": kind}]}
    fields = [{"name": "in", "type": ["null", inner]}]
    return {"type": "record", "name": "Row", "namespace": "shop", "fields": fields}


@pytest.mark.parametrize(
    ("schema", "times"),
    [
        ("long", set()),
        (number(None), set()),
        (number("uuid", "io.debezium.data.Json"), set()),
        (number("timestamp-micros"), {"timestamp-micros"}),
        (number(None, MICROS), {"timestamp-micros"}),
        (number("local-timestamp-micros", MICROS), {"timestamp-micros"}),
        (number("timestamp-millis", MICROS), {"timestamp-millis", "timestamp-micros"}),
        (number("date"), set()),
        (number("date", kind="int"), {"date"}),
        (number(None, "org.apache.kafka.connect.data.Time", "int"), {"time-millis"}),
    ],
)
def test_a_number_counts_what_its_marks_tell(schema: Any, times: set[str]) -> None:
    assert times_of(schema) == times


@pytest.mark.parametrize(
    "around",
    [
        lambda one: one,
        lambda one: ["null", one],
        lambda one: {"type": "array", "items": {"type": "map", "values": one}},
        lambda one: {
            "type": {"type": "long", "connect.name": MICROS},
            "logicalType": one["logicalType"],
        },
    ],
)
def test_marks_that_tell_two_times_are_refused_with_the_place(around: Any) -> None:
    schema = row(around(number("timestamp-millis", MICROS)))
    told = (
        rf"east\.t-value: shop\.In\.at has the connect\.name {MICROS} and logicalType timestamp-mi"
    )
    with pytest.raises(RefusedError, match=told) as refused:
        require_one_meaning(schema, "east.t-value")
    assert refused.value.code == "schema_not_usable"
    require_one_meaning(row(around(number("timestamp-micros", MICROS))), "east.t-value")


def test_a_decimal_with_two_scales_is_refused_with_the_place() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}

    def with_scale(scale: object) -> Any:
        return row({**decimal, "connect.parameters": {"scale": scale}})

    for alike in ("2", 2):
        require_one_meaning(with_scale(alike), "east.t-value")
    require_one_meaning(row({**decimal, "connect.parameters": {"x": "3"}}), "east.t-value")
    with pytest.raises(
        RefusedError, match=r"shop\.In\.at has the scale 2, and 4 in connect"
    ) as told:
        require_one_meaning(with_scale("4"), "east.t-value")
    assert told.value.code == "schema_not_usable"


@pytest.mark.parametrize(
    ("kind", "default", "named"),
    [
        ("long", 1, 2),
        ("double", 1.5, "1.5"),
        ("boolean", True, 1),
        ("string", "a", "b"),
        ("bytes", "\u00ff", "\u00fe"),
        ("string", "a", None),
        (["null", "string"], None, "a"),
        ({"type": "array", "items": "int"}, [1, 2], [2, 1]),
        ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1, "b": 1}),
    ],
)
def test_a_field_with_two_defaults_is_refused_with_the_place(
    kind: Any, default: Any, named: Any
) -> None:
    def with_default(other: Any) -> Any:
        *before, last = kind if isinstance(kind, list) else [kind]
        marked = {**(last if isinstance(last, dict) else {"type": last}), "connect.default": other}
        field = {"name": "at", "type": [*before, marked] if before else marked, "default": default}
        return {"type": "record", "name": "shop.In", "fields": [field]}

    with pytest.raises(RefusedError, match=r"shop\.In\.at has a default, and another") as told:
        require_one_default(with_default(named), "east.t-value")
    assert told.value.code == "schema_not_usable"
    require_one_default(with_default(default), "east.t-value")


def test_a_schema_that_is_to_be_registered_is_asked() -> None:
    text = '{"type": "long", "logicalType": "timestamp-millis", "connect.name": "%s"}'
    with pytest.raises(RefusedError, match=r"x\.avsc: the value has the connect\.name"):
        require_usable(text % MICROS, "x.avsc")
    require_usable(text % "io.debezium.time.Timestamp", "x.avsc")


def test_one_mark_does_not_hide_that_the_other_changed() -> None:
    old, new = (row(number(f"timestamp-{unit}", MICROS)) for unit in ("micros", "millis"))
    assert [path for path, _ in misread(new, old)] == ["in.at"]
    assert [path for path, _ in misread(old, new)] == ["in.at"]


def test_a_plain_number_is_no_time() -> None:
    """A column of 20260101 that is made a date would show the year 57440."""
    old, new = row("int"), row(number(None, "io.debezium.time.Date", "int"))
    [(path, why)] = misread(new, old)
    assert path == "in.at"
    assert why.startswith("int without a unit of time was written, date is read: ")
    assert misread(old, new)
    assert misread(row("long"), row("int")) == []


@pytest.mark.parametrize("around", [lambda one: one, lambda one: ["null", one]])
@pytest.mark.parametrize("before", ["string", number(None, "io.debezium.data.Json", "string")])
def test_a_text_that_becomes_a_time_with_a_zone_is_told(around: Any, before: Any) -> None:
    """SQL gives a time of it: 2026-01-01 for the text 2026, and nothing for Q1/2026."""
    zoned = row(around(number(None, "io.debezium.time.ZonedTimestamp", "string")))
    told = misread(zoned, row(around(before)))
    assert [path for path, _ in told] == ["in.at"]
    # a time stays the text that it was
    assert misread(row(around(before)), zoned) == misread(zoned, zoned) == []
