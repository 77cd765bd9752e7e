"""What defaults add to each item of a list that an earlier schema wrote."""

from typing import Any

import pytest

from mesh_events.schema.defaults import added_to_items
from mesh_events.schema.size import SchemaTooLargeError


def record(name: str, *fields: tuple[str, Any] | tuple[str, Any, Any]) -> dict[str, Any]:
    kinds = [
        {"name": one[0], "type": one[1], **({"default": one[2]} if len(one) > 2 else {})}
        for one in fields
    ]
    return {"type": "record", "name": name, "fields": kinds}


def listed(item: Any) -> dict[str, Any]:
    return record("Row", ("items", {"type": "array", "items": item}))


OLD = record("Item", ("a", "int"))
LONG = ("b", "string", "x" * 1000)


def test_a_default_of_an_item_counts_where_the_writer_does_not_have_the_field() -> None:
    new = record("Item", ("a", "int"), LONG)
    assert added_to_items(listed(new), listed(OLD)) > 1000
    assert added_to_items(listed(new), listed(new)) == 0
    assert added_to_items(new, OLD) == 0, "once in a record"


@pytest.mark.parametrize(
    "around",
    [
        lambda item: {"type": "map", "values": item},
        lambda item: {"type": "array", "items": ["null", item]},
        lambda item: {"type": "array", "items": record("Outer", ("inner", item))},
        lambda item: {"type": "array", "items": {"type": "array", "items": item}},
    ],
)
def test_an_item_is_found_in_whatever_holds_it(around: Any) -> None:
    new = record("Item", ("a", "int"), LONG)
    rows = [record("Row", ("items", around(one))) for one in (new, OLD)]
    assert added_to_items(*rows) > 1000


def test_a_type_that_is_used_by_its_name_counts_each_time() -> None:
    new, few = record("Item", ("a", "int"), LONG), 5

    def twice(item: Any) -> dict[str, Any]:
        more = [(f"n{number}", "Item") for number in range(few)]
        return listed(record("Outer", ("first", item), *more))

    assert added_to_items(twice(new), twice(OLD)) > 1000 * few


def test_a_type_of_types_of_types_is_counted_in_passing() -> None:
    """Each doubles the one before: counted one by one it would take for ever."""
    new: dict[str, Any] = record("Item", ("a", "int"), ("b", "string", "x"))
    old: dict[str, Any] = OLD
    for level in range(60):
        name, below = f"T{level}", "Item" if level == 0 else f"T{level - 1}"
        new = record(name, ("x", new), ("y", below))
        old = record(name, ("x", old), ("y", below))
    assert added_to_items(listed(new), listed(old)) > 2**60


def test_an_alias_is_the_field_that_was_written() -> None:
    new = record("Item", ("a", "int"), LONG)
    new["fields"][1]["aliases"] = ["was"]
    old = record("Item", ("a", "int"), ("was", "string"))
    assert added_to_items(listed(new), listed(old)) == 0


def test_fields_that_may_be_null_add_little() -> None:
    more = [(f"n{number}", ["null", "string"], None) for number in range(40)]
    assert added_to_items(listed(record("Item", ("a", "int"), *more)), listed(OLD)) <= 512


def test_a_chain_of_hundreds_of_types_is_refused_and_ends_nothing() -> None:
    chain = [record("T0", ("a", "int"))]
    chain += [record(f"T{number}", ("x", f"T{number - 1}")) for number in range(1, 1500)]
    whole = record("Row", *((f"d{n}", ["null", one], None) for n, one in enumerate(chain)),
                   ("items", {"type": "array", "items": "T1499"}))  # fmt: skip
    with pytest.raises(SchemaTooLargeError):
        added_to_items(whole, whole)


def test_a_type_of_the_same_short_name_takes_no_default_away() -> None:
    """What counts is the record that an item was written as."""
    new = record("Item", ("a", "int"), LONG)
    other = {**new, "namespace": "far"}
    writer = listed(OLD)
    writer["fields"].append({"name": "z", "type": other})
    assert added_to_items(listed(new), writer) > 1000
    moved = {**new, "namespace": "far"}
    assert added_to_items(listed(moved), writer) > 1000
    assert added_to_items(listed(moved), listed(new)) == 0
