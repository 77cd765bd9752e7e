"""Through which transforms a field is which column."""

import pytest

from mesh_events.errors import InvalidValueError
from projections.connector_fields import captured, sunk

SMT, DEBEZIUM = "org.apache.kafka.connect.transforms", "io.debezium.transforms"
TOPIC = "east.users"


def config(kind: str, **settings: str) -> dict[str, str]:
    """One transform; `_` of a setting's name stands for a dot."""
    own = {f"transforms.t.{name.replace('_', '.')}": text for name, text in settings.items()}
    return {"transforms": "t", "transforms.t.type": kind, **own}


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
    assert captured(found, ["first", "last", "nick"]) == fields


def test_transforms_are_followed_in_their_order() -> None:
    first = config(REPLACE, renames="a:b")
    second = {"transforms.u.type": REPLACE, "transforms.u.renames": "b:c"}
    both = {**first, **second, "transforms": "t, u"}
    assert sunk(both, TOPIC, ["a"]) == {"c": "a"}
    assert captured(both, ["c"]) == {"c": "a"}


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
    for ask in (lambda: sunk(found, TOPIC, ["first"]), lambda: captured(found, ["first"])):
        with pytest.raises(InvalidValueError, match=r"transform t \("):
            ask()
