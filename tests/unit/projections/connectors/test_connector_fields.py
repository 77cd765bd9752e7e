"""Through which transforms a field is which column."""

import pytest

from mesh_events.errors import InvalidValueError
from projections.connectors.fields import blind, captured, sunk

SMT, DEBEZIUM = "org.apache.kafka.connect.transforms", "io.debezium.transforms"
TOPIC = "east.users"


def config(kind: str, **settings: str) -> dict[str, str]:
    """One transform; `_` of a setting's name stands for a dot."""
    own = {f"transforms.t.{name.replace('_', '.')}": text for name, text in settings.items()}
    return {"transforms": "t", "transforms.t.type": kind, **own}


def of_rows(found: dict[str, str]) -> dict[str, str]:
    """The same behind one that makes rows of changes."""
    return {
        **found,
        "transforms": f"row,{found['transforms']}",
        "transforms.row.type": f"{DEBEZIUM}.ExtractNewRecordState",
    }


REPLACE = f"{SMT}.ReplaceField$Value"
SWAPPED = config(REPLACE, renames="first:last,last:first")


@pytest.mark.parametrize(
    ("found", "columns"),
    [
        ({}, {"first": "first", "last": "last"}),
        (SWAPPED, {"last": "first", "first": "last"}),
        (config(REPLACE, renames="first:nick", exclude="last"), {"nick": "first"}),
        (config(REPLACE, include="last"), {"last": "last"}),
        (config(f"{SMT}.MaskField$Value", fields="last"), {"first": "first"}),
        (config(f"{SMT}.InsertField$Value", static_field="last!"), {"first": "first"}),
        (config(f"{SMT}.MaskField$Key", fields="last"), {"first": "first", "last": "last"}),
        (config(f"{SMT}.RegexRouter", regex="a"), {"first": "first", "last": "last"}),
        ({"field.include.list": f"{TOPIC}:last"}, {"last": "last"}),
        ({"field.exclude.list": "last"}, {"first": "first"}),
        ({"field.exclude.list": "other:last"}, {"first": "first", "last": "last"}),
    ],
)
def test_a_column_of_a_sink_is_made_of_the_field_that_transforms_lead_there(
    found: dict[str, str], columns: dict[str, str]
) -> None:
    assert sunk(found, TOPIC, ["first", "last"]) == columns


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        (SWAPPED, {"last": "first", "first": "last", "nick": "nick"}),
        (
            config(REPLACE, renames="given:first"),
            {"first": "given", "last": "last", "nick": "nick"},
        ),
        (config(REPLACE, renames="last:first"), {"first": "last", "nick": "nick"}),
        (
            config(f"{DEBEZIUM}.ExtractNewRecordState", add_fields="op:nick", add_fields_prefix=""),
            {"first": "first", "last": "last"},
        ),
    ],
)
def test_a_field_of_a_topic_is_made_of_the_column_that_transforms_lead_there(
    found: dict[str, str], fields: dict[str, str]
) -> None:
    assert captured(of_rows(found), ["first", "last", "nick"]) == fields


@pytest.mark.parametrize(
    "setting",
    [
        {"delete_tombstone_handling_mode": "rewrite"},
        {"delete_tombstone_handling_mode": "rewrite-with-tombstone"},
        {"delete_handling_mode": "rewrite"},
    ],
)
def test_whether_a_row_was_deleted_is_made_of_no_column(setting: dict[str, str]) -> None:
    unwrap = f"{DEBEZIUM}.ExtractNewRecordState"
    assert captured(config(unwrap, **setting), ["first", "__deleted"]) == {"first": "first"}
    other = config(unwrap, delete_tombstone_handling_mode="tombstone")
    assert captured(other, ["__deleted"]) == {"__deleted": "__deleted"}


def test_transforms_are_followed_in_their_order() -> None:
    first = config(REPLACE, renames="a:b")
    second = {"transforms.u.type": REPLACE, "transforms.u.renames": "b:c"}
    both = {**first, **second, "transforms": "t, u"}
    assert sunk(both, TOPIC, ["a"]) == {"c": "a"}
    assert captured(of_rows(both), ["c"]) == {"c": "a"}


@pytest.mark.parametrize("name", ["MaskField", "ReplaceField", "Cast", "HeaderFrom"])
def test_what_names_fields_of_rows_finds_none_in_changes(name: str) -> None:
    found = config(f"{SMT}.{name}$Value", fields="last")
    assert blind(found) == ["t"]
    assert blind({**of_rows(found), "transforms": "t,row"}) == ["t"]
    assert blind({**of_rows(found), "transforms.row.predicate": "p"}) == ["t"]
    assert blind(of_rows(found)) == []
    router = {"transforms": "out,t", "transforms.out.type": f"{DEBEZIUM}.outbox.EventRouter"}
    assert blind({**found, **router}) == []
    assert blind({**found, **router, "transforms.out.predicate": "p"}) == ["t"]
    assert blind(config(f"{SMT}.{name}$Key", fields="last")) == []
    for ask in (
        lambda: captured(found, ["last"]),
        lambda: sunk(found, TOPIC, ["last"], is_change=True),
    ):
        with pytest.raises(InvalidValueError, match="finds no field of a row in a change"):
            ask()


@pytest.mark.parametrize(
    "found",
    [
        config(f"{SMT}.HoistField$Value", field="row"),
        config(f"{SMT}.Flatten$Value"),
        config(f"{DEBEZIUM}.outbox.EventRouter"),
        config(REPLACE, renames="first:nick", predicate="p"),
    ],
)
def test_fields_that_are_not_known_are_refused_by_the_transform_s_name(
    found: dict[str, str],
) -> None:
    rows = of_rows(found)
    for ask in (lambda: sunk(found, TOPIC, ["first"]), lambda: captured(rows, ["first"])):
        with pytest.raises(InvalidValueError, match=r"transform t \("):
            ask()
