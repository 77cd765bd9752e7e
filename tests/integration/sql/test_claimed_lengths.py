"""Records whose lengths announce far more than follows, on a real Spark server."""

import io
from typing import Any

import pytest
from fastavro.io.binary_encoder import BinaryEncoder

from tests.integration.sql.records import Statement, record, wire

pytestmark = pytest.mark.platform

VALUE = record(
    "Value",
    n="int",
    a={"type": "array", "items": "int"},
    m={"type": "map", "values": "int"},
    s="string",
    b="bytes",
)
SOUND = {"n": 1, "a": [1], "m": {"k": 1}, "s": "s", "b": b"b"}
FIELDS = ["a", "m", "s", "b"]
MOST = 2**31 - 20
"""Java makes room for so many items or bytes, if it has it."""


def claiming(field: str, length: int) -> bytes:
    """A record that ends behind the length of a field."""
    out = io.BytesIO()
    encoder = BinaryEncoder(out)
    encoder.write_long(1)  # n
    for before in FIELDS[: FIELDS.index(field)]:
        encoder.write_long(0)
        assert before != field
    encoder.write_long(length)
    return b"\0\0\0\0\x07" + out.getvalue()


@pytest.mark.sample(3)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("length", [MOST, 2**62], ids=["most", "more"])
def test_a_length_that_no_record_has_goes_to_the_dead_letters(
    spark: Any, field: str, length: int
) -> None:
    """The server has a heap of a gigabyte: it would end for want of memory."""
    made = Statement(spark, "SELECT n FROM x c", {"c": {7: VALUE}}, {})
    rows = [
        (b"k", value, 0, offset)
        for offset, value in enumerate(
            [wire(7, VALUE, SOUND), claiming(field, length), wire(7, VALUE, SOUND)]
        )
    ]
    found = made.run(rows)
    assert [one.topic for one in found] == ["east.out", "east.out.dead", "east.out"]
    assert found[1].value == claiming(field, length)


def test_a_long_array_that_is_there_is_read(spark: Any) -> None:
    made = Statement(spark, "SELECT size(a) AS v FROM x c", {"c": {7: VALUE}}, {})
    [found] = made.run([(b"k", wire(7, VALUE, {**SOUND, "a": [1] * 900_000}), 0, 0)])
    assert found.value == {"v": 900_000}
