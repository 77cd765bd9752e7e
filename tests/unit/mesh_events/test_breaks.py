"""What can be read with which schema: the specification's cases, and where it says so."""

import json
from typing import Any

import pytest

from mesh_events.compatibility import Change, Level, breaks, changes

NEW, OLD = "new readers of old records", "old readers of new records"


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


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
        record(field("next", ["null", "R"]), name="R"),
        record(field("next", ["null", "R"]), field("n", "int", default=0), name="R"),
    ),
]
BACKWARD_ONLY = [
    (record(A, B), record(A), "b"),
    (record(A), record(field("a", "long")), "a"),
    (record(A), record(field("a", "double")), "a"),
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
    kept = record(field("e", enum("X", default="X")))
    assert found(record(field("e", enum("X", "Y"))), kept, Level.BACKWARD) == []


def test_changes_are_told_by_path_with_types_and_defaults() -> None:
    old = record(A, field("in", record(B, field("gone", "long"), name="In")))
    new = record(
        field("a", ["null", "int"], default=None),
        field("in", record(B, field("tags", {"type": "array", "items": "string"}), name="In")),
    )
    assert changes(json.dumps(old), json.dumps(new)) == [
        Change("a", "changed", "int", "null | int = null"),
        Change("in.gone", "removed", "long", None),
        Change("in.tags", "added", None, "array of string"),
    ]
