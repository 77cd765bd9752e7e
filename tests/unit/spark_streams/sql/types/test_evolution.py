"""Which changes of a schema make records be read as other values of a row."""

from typing import Any

import pytest

from spark_streams.sql.types.evolution import other_values

Fields = list[dict[str, Any]]


def record(*fields: dict[str, Any], name: str = "User") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def change(*fields: dict[str, Any]) -> dict[str, Any]:
    """What Debezium writes of a row."""
    row = ["null", record(*fields, name="Value")]
    return record(field("before", row), field("after", ["null", "Value"]), field("op"))


ID = field("id", "long")
OPTIONAL = ["null", "string"]
HOME = record(field("city", default="-"), name="Home")
NOWHERE = record(name="Home")
MOVED = record(field("city", default="?"), name="Home")
RENAMED = record(field("town", aliases=["city"]), name="Home")
PLAIN, COMPUTED = {"id": False, "a": False, "b": False}, {"id": False, "a": True, "b": True}


@pytest.mark.parametrize("form", [record, change, lambda *fields: ["null", record(*fields)]])
@pytest.mark.parametrize(
    ("earlier", "after", "path", "why"),
    [
        ([[field("a")]], [field("b", aliases=["a"])], ".b", "is a of earlier records"),
        ([[]], [field("a", default="x")], ".a", "is new, and earlier records have"),
        ([[], [field("a", default="x")]], [field("a", default="y")], ".a", "another default"),
        ([[], [field("a", default="x")]], [field("a")], ".a", "another default"),
        (
            [[], [field("a", "int", default=1)]],
            [field("a", "int", default=0)],
            ".a",
            "another default",
        ),
        (
            [[], [field("a", "boolean", default=True)]],
            [field("a", "boolean", default=False)],
            ".a",
            "another default",
        ),
        (
            [[field("a", NOWHERE)], [field("a", HOME)]],
            [field("a", MOVED)],
            "Home.city",
            "another default",
        ),
        ([[field("a", HOME)]], [field("a", RENAMED)], "Home.town", "is city of earlier records"),
        (
            [[field("a", ["null", {"type": "array", "items": one}])] for one in (NOWHERE, HOME)],
            [field("a", ["null", {"type": "array", "items": MOVED}])],
            "Home.city",
            "another default",
        ),
        (
            [[field("a", {"type": "map", "values": one})] for one in (NOWHERE, HOME)],
            [field("a", {"type": "map", "values": MOVED})],
            "Home.city",
            "another default",
        ),
        # an alias that comes later than the name, and a column that comes back
        (
            [[field("a")], [field("b", OPTIONAL, default=None)]],
            [field("b", OPTIONAL, default=None, aliases=["a"])],
            ".b",
            "was its default before, and is a",
        ),
        (
            [[field("a")], []],
            [field("a", OPTIONAL, default=None)],
            ".a",
            "is a of earlier records, and their rows lack it",
        ),
    ],
)
def test_a_change_by_which_a_row_would_be_another_is_found(
    form: Any, earlier: list[Fields], after: Fields, path: str, why: str
) -> None:
    before = [form(ID, *fields) for fields in earlier]
    [(found, reason)] = other_values(before, form(ID, *after), PLAIN)
    assert found.endswith(path)
    assert why in reason


@pytest.mark.parametrize("form", [record, change, lambda *fields: ["null", record(*fields)]])
@pytest.mark.parametrize(
    ("earlier", "after"),
    [
        ([[]], []),
        ([[]], [field("a", OPTIONAL, default=None)]),
        ([[field("a")]], []),
        ([[field("a")]], [field("a", default="x")]),
        ([[field("a", "int", default=1)]], [field("a", "long", default=1)]),
        ([[], [field("a", "double", default=1)]], [field("a", "double", default=1.0)]),
        ([[field("a", doc="old")]], [field("a", doc="new", aliases=["c"])]),
        # which every record has
        ([[field("a", default="x")]], [field("a", default="y")]),
        ([[field("a", HOME)]], [field("a", MOVED)]),
        # of columns that come out nowhere
        ([[field("z")]], [field("y", aliases=["z"])]),
        ([[], [field("z", HOME)]], [field("z", MOVED)]),
    ],
)
def test_a_change_by_which_it_would_not_is_none(
    form: Any, earlier: list[Fields], after: Fields
) -> None:
    before = [form(ID, *fields) for fields in earlier]
    assert other_values(before, form(ID, *after), PLAIN) == []


@pytest.mark.parametrize(("old", "new"), [("int", "double"), ("bytes", "string")])
def test_another_type_counts_where_something_is_computed_with_it(old: str, new: str) -> None:
    before, after = record(ID, field("a", old)), record(ID, field("a", new))
    assert other_values([before], after, PLAIN) == []
    [(path, reason)] = other_values([before], after, COMPUTED)
    assert path == "User.a"
    assert "another type" in reason


def test_a_record_that_becomes_a_change_is_another() -> None:
    plain = record(ID, field("op"))
    [(_, reason)] = other_values([plain], change(ID), PLAIN)
    assert "fields of a change" in reason
