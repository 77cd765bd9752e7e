"""The schema that Spark is given in place of one with decimals that it would read by 64 bits."""

import json
from typing import Any

import pytest

from spark_streams.sql.running.decimals import widened

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def wide(kind: Any) -> Any:
    [field] = json.loads(widened(json.dumps(record(kind))))["fields"]
    return field["type"]


def record(kind: Any) -> Any:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


@pytest.mark.parametrize(("precision", "wider"), [(1, 38), (18, 38), (19, 19), (38, 38)])
def test_a_decimal_of_64_bits_gets_all_digits_that_spark_has(precision: int, wider: int) -> None:
    assert wide({**DECIMAL, "precision": precision})["precision"] == wider


@pytest.mark.parametrize(
    ("size", "precision", "wider"),
    # as many as Avro allows for so many bytes, or it would be none; 64 bits hold no longer one
    [
        (5, 10, 10),
        (8, 18, 18),
        (9, 18, 21),
        (12, 10, 28),
        (15, 10, 35),
        (16, 10, 38),
        (20, 10, 38),
        (10**400, 10, 38),
    ],
)
def test_a_fixed_decimal_gets_as_many_as_its_bytes_hold(
    size: int, precision: int, wider: int
) -> None:
    kind = {**DECIMAL, "type": "fixed", "name": "F", "size": size, "precision": precision}
    assert wide(kind) == {**kind, "precision": wider}


def test_decimals_are_found_at_any_depth_and_nothing_else_is_changed() -> None:
    kinds = [
        {"type": "array", "items": DECIMAL},
        {"type": "map", "values": ["null", DECIMAL]},
        record({"type": "array", "items": {"type": "map", "values": DECIMAL}}),
    ]
    for kind in kinds:
        text = json.dumps(wide(kind))
        assert json.loads(text.replace('"precision": 38', '"precision": 10')) == kind
        assert text != json.dumps(kind)
    plain = record({"type": "bytes", "default": "decimal", "precision": 10})
    assert json.loads(widened(json.dumps(plain))) == plain
