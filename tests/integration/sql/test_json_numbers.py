"""`get_json_object` gives numbers as they are written; Spark gives many of them as doubles."""

from decimal import Decimal
from typing import Any

import pytest

from tests.integration.sql.records import Statement, record, wire

pytestmark = pytest.mark.platform

SCHEMA = record("Paid", j="string")


def values(spark: Any, expression: str, texts: list[str]) -> list[Any]:
    statement = Statement(spark, f"SELECT {expression} AS v FROM c", {"c": {7: SCHEMA}}, {})
    rows = [(None, wire(7, SCHEMA, {"j": text}), 0, at) for at, text in enumerate(texts)]
    return [one["v"] for one in statement.values(rows)]


def test_a_number_keeps_its_digits(spark: Any) -> None:
    numbers = ["12345678901234567.89", "0.1000000000000000055", "1.10", "1E5", "-0.0", "1e400", "7"]
    numbers += ["9223372036854775808.5", "1e999999999", "-1.5e-7", "9" * 900 + ".5"]
    texts = [f'{{"a": {one}}}' for one in numbers]
    assert values(spark, "get_json_object(j, '$.a')", texts) == numbers
    inside = [f'{{"b": [{one}, {{"c": {one}}}, "x", null]}}' for one in numbers]
    found = values(spark, "get_json_object(j, '$.b')", inside)
    assert found == [f'[{one},{{"c":{one}}},"x",null]' for one in numbers]
    assert values(spark, "get_json_object(j, '$.b[*]')", inside) == found
    assert values(spark, "get_json_object(j, '$.b[1].c')", inside) == numbers


def test_a_cast_of_a_number_in_json_is_exact(spark: Any) -> None:
    exact = "CAST(get_json_object(j, '$.a') AS DECIMAL(38, 18))"
    assert values(spark, exact, ['{"a": 12345678901234567.89}']) == [
        Decimal("12345678901234567.890000000000000000")
    ]


def test_a_text_without_a_value_is_null(spark: Any) -> None:
    cut = ["", " ", "{", '{"a"', '{"a":', '{"a": [1.5', "[1.5,", "nul", "]"]
    assert values(spark, "get_json_object(j, '$')", cut) == [None] * len(cut)
    assert values(spark, "get_json_object(j, '$.a')", [*cut, "1.5", '{"a": 01.5}']) == [None] * 11


def test_a_time_is_written_with_its_microseconds(spark: Any) -> None:
    moments = ["1582-10-10 01:02:03.000004", "2026-01-31 10:00:00.999999", "0001-01-01 00:00:00"]
    for kind, zone in (("TIMESTAMP", "Z"), ("TIMESTAMP_NTZ", "")):
        written = f"to_json(named_struct('at', CAST(j AS {kind}), 'all', array(CAST(j AS {kind}))))"
        texts = [
            f"{one.replace(' ', 'T')}{'' if '.' in one else '.000000'}{zone}" for one in moments
        ]
        wanted = [f'{{"at":"{one}","all":["{one}"]}}' for one in texts]
        assert values(spark, written, moments) == wanted
