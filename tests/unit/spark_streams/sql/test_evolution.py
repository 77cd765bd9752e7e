"""Which changes of a schema make records be read as other values."""

from typing import Any

import pytest

from spark_streams.sql.evolution import other_values

Fields = list[dict[str, Any]]


def record(*fields: dict[str, Any], name: str = "User") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


ID = field("id", "long")
OPTIONAL = ["null", "string"]
HOME = record(field("city", default="-"), name="Home")
MOVED = record(field("city", default="?"), name="Home")
RENAMED = record(field("town", aliases=["city"]), name="Home")


@pytest.mark.parametrize(
    ("before", "after", "path", "why"),
    [
        ([field("a")], [field("b", aliases=["a"])], "User.b", "was a before"),
        ([], [field("a", default="x")], "User.a", "is new, and records without it have"),
        ([field("a", default="x")], [field("a", default="y")], "User.a", "another default"),
        ([field("a", default="x")], [field("a")], "User.a", "another default"),
        ([field("a", "int", default=1)], [field("a", "int", default=0)], "User.a", "another"),
        (
            [field("a", "boolean", default=True)],
            [field("a", "boolean", default=False)],
            "User.a",
            "another default",
        ),
        ([field("a", HOME)], [field("a", MOVED)], "Home.city", "another default"),
        ([field("a", HOME)], [field("a", RENAMED)], "Home.town", "was city before"),
        (
            [field("a", ["null", {"type": "array", "items": HOME}])],
            [field("a", ["null", {"type": "array", "items": MOVED}])],
            "Home.city",
            "another default",
        ),
        (
            [field("a", {"type": "map", "values": HOME}), field("z", "Home")],
            [field("a", {"type": "map", "values": MOVED}), field("z", "Home")],
            "Home.city",
            "another default",
        ),
    ],
)
def test_a_change_by_which_a_record_has_another_value_is_found(
    before: Fields, after: Fields, path: str, why: str
) -> None:
    [(found, reason)] = other_values(record(ID, *before), record(ID, *after), {"id", "a", "b"})
    assert found == path
    assert why in reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], []),
        ([], [field("a", OPTIONAL, default=None)]),
        ([field("a")], []),
        ([field("a")], [field("a", default="x")]),
        ([field("a", "int", default=1)], [field("a", "long", default=1)]),
        ([field("a", doc="old")], [field("a", doc="new", aliases=["c"])]),
        # of columns that come out nowhere
        ([field("z")], [field("y", aliases=["z"])]),
        ([field("z", HOME)], [field("z", MOVED)]),
    ],
)
def test_a_change_by_which_it_has_none_is_not(before: Fields, after: Fields) -> None:
    assert other_values(record(ID, *before), record(ID, *after), {"id", "a", "b"}) == []
