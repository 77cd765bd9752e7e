"""Schemas that refer to others, made whole; read and written by another library."""

import io
import json
from typing import Any

import fastavro
import pytest

from mesh_events.errors import InvalidValueError
from mesh_events.schema.compatibility import Level, breaks
from mesh_events.schema.compatibility import fields as fields_of
from mesh_events.schema.inlining import inlined


def record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        **more,
        "fields": [{"name": one, "type": kind} for one, kind in fields],
    }


CURRENCY = {"type": "enum", "name": "acme.Currency", "symbols": ["EUR", "USD"]}
MONEY = record("Money", ("units", "long"), ("currency", "Currency"), namespace="acme")
VAT = record("tax.Vat", ("amount", "acme.Money"), ("of", "acme.Currency"))
ALL = {"acme.Money": MONEY, "acme.Currency": CURRENCY, "tax.Vat": VAT}
PAID = {"units": 5, "currency": "USD"}


def whole(schema: Any, imports: dict[str, Any] | None = None) -> Any:
    texts = {name: json.dumps(one) for name, one in (ALL if imports is None else imports).items()}
    return json.loads(inlined(json.dumps(schema), texts))


def round_trip(schema: Any, value: Any) -> Any:
    """What comes back from a writer that knows no other schema."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)), named_schemas={})
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    out.seek(0)
    return fastavro.schemaless_reader(out, parsed, None)


def test_a_reference_that_is_used_twice_is_written_out_once() -> None:
    found = whole(record("shop.Order", ("price", "acme.Money"), ("tip", ["null", "acme.Money"])))
    price, tip = (one["type"] for one in found["fields"])
    assert (price["name"], price["namespace"]) == ("Money", "acme")
    assert tip == ["null", "acme.Money"]
    value = {"price": PAID, "tip": {"units": 1, "currency": "EUR"}}
    assert round_trip(found, value) == value


def test_two_ways_to_the_same_schema_meet_in_one_definition() -> None:
    """A diamond: the order and its tax both lead to the money, and all three to the currency."""
    found = whole(
        record("shop.Order", ("tax", "tax.Vat"), ("price", "acme.Money"), ("in", "acme.Currency"))
    )
    assert json.dumps(found).count('"symbols"') == 1
    assert [one["type"] for one in found["fields"][1:]] == ["acme.Money", "acme.Currency"]
    value = {"tax": {"amount": PAID, "of": "EUR"}, "price": PAID, "in": "USD"}
    assert round_trip(found, value) == value


def test_a_type_inside_another_one_may_be_needed_before_it() -> None:
    both = record("Money", ("units", "long"), ("currency", CURRENCY), namespace="acme")
    found = whole(record("Order", ("in", "acme.Currency"), ("price", "acme.Money")), {"m": both})
    assert found["fields"][1]["type"]["fields"][1]["type"] == "acme.Currency"
    assert round_trip(found, {"in": "EUR", "price": PAID}) == {"in": "EUR", "price": PAID}


def test_a_name_without_a_dot_is_looked_for_around_it_and_then_everywhere() -> None:
    plain = record("Money", ("plain", "boolean"))
    imports = {"acme.Money": MONEY, "acme.Currency": CURRENCY, "plain": plain}
    near = whole(record("Order", ("price", "Money"), namespace="acme"), imports)
    assert near["fields"][0]["type"]["fields"][0]["name"] == "units"
    far = whole(record("Order", ("a", "Money"), ("b", "Money"), namespace="shop"), imports)
    assert far["fields"][0]["type"]["fields"][0]["name"] == "plain"
    # it has no namespace of its own: there it could not be called a second time
    assert far["fields"][1]["type"] == "shop.Money"
    value = {"a": {"plain": True}, "b": {"plain": False}}
    assert round_trip(far, value) == value


def test_unions_arrays_maps_and_types_in_types_are_followed() -> None:
    found = whole([
        "null",
        record("Event", ("all", {"type": "array", "items": "acme.Money"}),
               ("named", {"type": "map", "values": ["null", "acme.Money"]}),
               ("inner", record("Inner", ("vat", "tax.Vat"))), namespace="shop"),
    ])  # fmt: skip
    value = {"all": [PAID], "named": {"x": PAID}, "inner": {"vat": {"amount": PAID, "of": "EUR"}}}
    assert round_trip(found, value) == value
    assert [one.path for one in fields_of(json.dumps(found))][:3] == [
        "all",
        "all[].units",
        "all[].currency",
    ]


def test_a_record_may_hold_itself() -> None:
    tree = record("acme.Tree", ("below", ["null", "acme.Tree"]))
    found = whole(record("Wood", ("first", "acme.Tree")), {"acme.Tree": tree})
    value = {"first": {"below": {"below": None}}}
    assert round_trip(found, value) == value


def test_what_stands_beside_a_type_stays() -> None:
    order = record("Order", ("price", "acme.Money"), doc="what was bought", aliases=["Buy"])
    order["fields"][0] |= {"doc": "with tax", "default": PAID}
    found = whole(order)
    assert (found["doc"], found["aliases"]) == ("what was bought", ["Buy"])
    assert (found["fields"][0]["doc"], found["fields"][0]["default"]) == ("with tax", PAID)


def test_a_schema_without_references_stays_as_it_is_written() -> None:
    assert inlined('{"type":  "Strange" }', {}) == '{"type":  "Strange" }'


def test_a_change_in_a_shared_schema_is_a_break_of_those_that_use_it() -> None:
    order = json.dumps(record("Order", ("price", "acme.Money")))
    narrow = {**ALL, "acme.Money": record("Money", ("units", "string"), namespace="acme")}
    before = inlined(order, {name: json.dumps(one) for name, one in ALL.items()})
    after = inlined(order, {name: json.dumps(one) for name, one in narrow.items()})
    assert [one.path for one in breaks(before, after, Level.BACKWARD)] == ["price.units"]
    assert breaks(before, before, Level.FULL) == []


@pytest.mark.parametrize(
    ("schema", "imports", "why"),
    [
        (
            record("Order", ("price", "acme.Money"), ("to", "Address"), namespace="shop"),
            ALL,
            r"type shop\.Address is defined neither .* \(acme\.Currency, acme\.Money, tax\.Vat\)",
        ),
        (record("Order", ("price", "acme.Money")), {"acme.Money": MONEY}, r"type acme\.Currency"),
        (
            record("Order", ("price", "acme.Money")),
            {"a": MONEY, "b": {**MONEY, "fields": []}, "c": CURRENCY},
            r"a and b both define the type acme\.Money, and not alike",
        ),
        (
            record("Order", ("a", record("Part")), ("b", record("Part", ("n", "int")))),
            ALL,
            r"the type Part is defined twice",
        ),
        (
            record("Order", ("a", {**CURRENCY, "symbols": ["X"]}), ("b", "acme.Money")),
            ALL,
            r"the type acme\.Currency is defined by .* and by the schema itself",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_or_twofold_is_named(
    schema: Any, imports: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidValueError, match=why):
        whole(schema, imports)


def test_a_reference_that_is_no_json_is_named() -> None:
    with pytest.raises(InvalidValueError, match="money is no JSON"):
        inlined('"string"', {"money": "{"})


def test_a_schema_without_an_end_of_levels_is_no_crash() -> None:
    chain = {
        f"T{number}": record(f"T{number}", ("next", f"T{number + 1}")) for number in range(999)
    }
    with pytest.raises(InvalidValueError, match="too many levels"):
        whole(record("Order", ("first", "T0")), {**chain, "T999": record("T999")})


def test_a_name_in_braces_is_the_type_itself() -> None:
    money = record("Money", ("amount", "int"), namespace="acme")
    found = whole(record("Order", ("price", {"type": "acme.Money"})), {"money": money})
    [field] = found["fields"]
    assert field["type"]["type"] == "record"
    assert field["type"]["name"] == "Money"
    fastavro.parse_schema(found)
