"""Texts that become decimals: the value of Python's own decimals, in a time that is the text's.

Java's takes the square of the digits, and for `1e-30000000` a minute: where that is not cured,
these tests take minutes.
"""

import decimal
from decimal import Decimal
from typing import Any

import pytest

from tests.integration.sql.records import Statement, record, wire

pytestmark = pytest.mark.platform

SCHEMA = record("Told", s="string")
EXACT = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)
NUMBERS = [
    "1", "-1.5", "+.5", "5.", "1e3", "1E-3", "-1e-19", "5e-19", "0e5", "0.000", "-0",
    "1e0000000000005",
    "9" * 20 + "." + "9" * 18, "1" * 20 + "." + "1" * 60, "0." + "4" * 18 + "4" * 90 + "9",
    "-0." + "1" * 17 + "25" + "0" * 50, "0" * 900 + "7." + "0" * 900, "7" * 120 + "e-110",
    "0." + "0" * 500 + "123" + "e505", "1" + "0" * 3000 + "e-3000", "1" * 20 + "." + "2" * 3000,
    "٣" * 3 + "." + "٤" * 60,
]  # fmt: skip
NO_NUMBERS = [
    "", "-", ".", "e5", "1e", "1e+", "1e5.0", "1.2.3", "1 2", "--1", "1e5e5", "0x10", "NaN", "1f",
    "1" * 50 + "x", "1e99999999999", "1e-99999999999", "1e2147483649", "0e-2147483649",
]  # fmt: skip
TOO_LARGE = ["1e20", "9" * 39, "1" * 3000, "1e30000000", "9" * 2000 + "e-1900"]
SMALL = ["1e-30000000", "-1e-300000000", "1e-2147483647", "0e30000000", "0e-30000000"]
LONG = ["0." + "7" * 2_000_000, "7" * 2_000_000 + "e-2000000", "0" * 2_000_000 + "e-2000000"]


def values(spark: Any, expression: str, texts: list[str]) -> list[Any]:
    statement = Statement(spark, f"SELECT {expression} AS v FROM c", {"c": {7: SCHEMA}}, {})
    rows = [(None, wire(7, SCHEMA, {"s": text}), 0, at) for at, text in enumerate(texts)]
    return [one["v"] for one in statement.values(rows)]


def rounded(text: str) -> Decimal:
    """The number to 18 digits behind the point."""
    return EXACT.quantize(Decimal(text), Decimal(1).scaleb(-18))


def test_a_text_has_the_value_that_it_writes(spark: Any) -> None:
    found = values(spark, "CAST(s AS DECIMAL(38, 18))", NUMBERS)
    assert dict(zip(NUMBERS, found, strict=True)) == {one: rounded(one) for one in NUMBERS}


@pytest.mark.parametrize("expression", ["CAST(s AS DECIMAL(38, 18))", "decimal(s)"])
def test_what_is_no_decimal_is_null(spark: Any, expression: str) -> None:
    none = [*NO_NUMBERS, *TOO_LARGE]
    found = values(spark, expression, none)
    assert dict(zip(none, found, strict=True)) == dict.fromkeys(none)


def test_an_exponent_costs_nothing(spark: Any) -> None:
    assert values(spark, "CAST(s AS DECIMAL(38, 18))", SMALL) == [0] * len(SMALL)
    assert values(spark, "s > CAST(1 AS DECIMAL(1, 0))", SMALL) == [False] * len(SMALL)


def test_a_long_text_is_compared_with_a_decimal(spark: Any) -> None:
    compared = "s > CAST(0 AS DECIMAL(1, 0))"
    assert values(spark, compared, LONG) == [True, True, False]
