"""JSON to what Avro's logical types want."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mesh_events.errors import InvalidValueError
from self_service.formats.avro import Avro
from self_service.formats.logical import typed

ORDERS = Path(__file__).parents[3] / "examples" / "orders.avsc"
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        (DECIMAL, "19.99", Decimal("19.99")),
        (DECIMAL, 19.99, Decimal("19.99")),
        (DECIMAL, 20, Decimal(20)),
        (MOMENT, "2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (MOMENT, 1, 1),
        ({"type": "int", "logicalType": "date"}, "2026-01-31", date(2026, 1, 31)),
        (["null", DECIMAL], None, None),
        (["null", DECIMAL], "1.50", Decimal("1.50")),
        (["null", "string"], "1.50", "1.50"),
        ({"type": "array", "items": DECIMAL}, ["1"], [Decimal(1)]),
        ({"type": "map", "values": MOMENT}, {}, {}),
        ("bytes", "base64:AAE=", b"\x00\x01"),
        ("string", "2026-01-31", "2026-01-31"),
        ("long", 5, 5),
    ],
)
def test_what_json_cannot_say_is_read_from_text(schema: Any, value: Any, wanted: Any) -> None:
    assert typed(schema, value) == wanted


@pytest.mark.parametrize(
    ("schema", "value"),
    [(DECIMAL, "much"), (DECIMAL, "NaN"), (MOMENT, "yesterday"), ("bytes", "raw")],
)
def test_what_cannot_be_read_is_told_with_an_example(schema: Any, value: Any) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "f", "type": schema}]}
    with pytest.raises(InvalidValueError, match="field f"):
        typed(record, {"f": value})


TIME_MS = {"type": "int", "logicalType": "time-millis"}
TIME_US = {"type": "long", "logicalType": "time-micros"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (TIME_MS, "12:00:00+02:00", "has an offset, and a time-millis has none"),
        (TIME_US, "12:00:00Z", "has an offset, and a time-micros has none"),
        (LOCAL, "2026-01-31T12:00:00Z", "has an offset, and a local-timestamp-micros has none"),
        (MOMENT, "2026-01-31T12:00:00.000999Z", "more than 3 digits behind the second"),
        (TIME_MS, "12:00:00,0005", "more than 3 digits behind the second"),
        (MICROS, "2026-01-31T12:00:00.123456789Z", "more than 6 digits behind the second"),
        (MICROS, "2026-01-31T12:00:00.1+00:00:00.0000001", "more than 6 digits"),
        (TIME_US, "12:00:00.0000001", "more than 6 digits behind the second"),
    ],
)
def test_a_time_of_which_a_part_would_be_lost_is_refused(schema: Any, value: str, why: str) -> None:
    with pytest.raises(InvalidValueError, match=f"the value: .*{why}"):
        typed(schema, value)
    with pytest.raises(InvalidValueError, match=why):
        typed(["null", schema], value)


def test_zeros_behind_the_digits_of_a_time_are_no_loss() -> None:
    assert typed(TIME_MS, "12:00:00.123000000") == time(12, 0, 0, 123000)
    wanted = datetime(2026, 1, 31, 10, 0, 0, 123456, tzinfo=UTC)
    assert typed(MICROS, "2026-01-31T12:00:00.1234560+02:00") == wanted


def test_the_example_order_goes_in_and_comes_out() -> None:
    schema = ORDERS.read_text("utf-8")
    line = (ORDERS.parent / "orders.jsonl").read_text("utf-8").splitlines()[0]
    found = Avro(schema).decoded(Avro(schema).encoded(7, json.loads(line))).value
    assert found["amount"] == Decimal("129.00")
    assert found["placed_at"] == datetime(2026, 11, 1, 9, 30, tzinfo=UTC)


def test_a_type_that_is_called_by_its_name_is_followed() -> None:
    """Money in two fields is defined once, and its decimals are decimals in both."""
    units = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    money = {"type": "record", "name": "Money", "fields": [{"name": "units", "type": units}]}
    order = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "price", "type": money},
            {"name": "tip", "type": ["null", "shop.Money"]},
        ],
    }
    schema = Avro(json.dumps(order))
    value = {"price": {"units": "1.50"}, "tip": {"units": "0.25"}}
    assert schema.decoded(schema.encoded(7, value)).value == {
        "price": {"units": Decimal("1.50")},
        "tip": {"units": Decimal("0.25")},
    }


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        *((one, True) for one in ("12.34", "-99.99", "1E1", "0.000", "12.340")),
        *((one, False) for one in ("12.345", "123", "1E2", "0.001")),
    ],
)
def test_a_decimal_with_more_digits_than_its_schema_has_is_told_with_its_field(
    value: str, fits: bool
) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    schema = {"type": "record", "name": "R", "fields": [{"name": "price", "type": kind}]}
    if fits:
        assert typed(schema, {"price": value}) == {"price": Decimal(value)}
        avro = Avro(json.dumps(schema))
        assert avro.decoded(avro.encoded(1, {"price": value})).value == {"price": Decimal(value)}
        return
    with pytest.raises(InvalidValueError, match=r"field price: .* does not fit decimal\(4, 2\)"):
        typed(schema, {"price": value})
