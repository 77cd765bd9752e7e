"""Constants with which a function has no value for any record are refused when it is planned."""

import json
from typing import Any

import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.running.analysis import analysed
from spark_streams.sql.running.frame import Topic
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve
from spark_streams.sql.types.shape import shape_of
from tests.integration.sql.records import record

pytestmark = pytest.mark.platform

AT = {"type": "long", "logicalType": "timestamp-micros"}
VALUE = record(
    "Value",
    s="string",
    i="int",
    l="long",
    at=AT,
    loc={"type": "long", "logicalType": "local-timestamp-micros"},
    day={"type": "int", "logicalType": "date"},
    a={"type": "array", "items": "string"},
    m={"type": "map", "values": "long"},
)
COLUMNS = [one["name"] for one in VALUE["fields"]]
PARSERS = ["to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "to_unix_timestamp"]
PARSERS += ["try_to_date", "try_to_timestamp", "unix_timestamp"]
REFUSED = {
    "encode(s, 'latin')": "INVALID_PARAMETER_VALUE.CHARSET",
    "encode(s, '')": "INVALID_PARAMETER_VALUE.CHARSET",
    "decode(encode(s, 'UTF-8'), 'utf')": "INVALID_PARAMETER_VALUE.CHARSET",
    "from_utc_timestamp(at, 'nowhere')": "INVALID_TIMEZONE",
    "to_utc_timestamp(at, '')": "INVALID_TIMEZONE",
    "convert_timezone('nowhere', 'UTC', loc)": "INVALID_TIMEZONE",
    "convert_timezone('UTC', 'nowhere', loc)": "INVALID_TIMEZONE",
    "convert_timezone(s, 'nowhere', loc)": "INVALID_TIMEZONE",
    "date_format(at, 'bbbb')": "INVALID_DATETIME_PATTERN",
    "date_format(at, 'YYYY')": "INCONSISTENT_BEHAVIOR_CROSS_VERSION",
    "to_char(day, 'bbbb')": "INVALID_DATETIME_PATTERN",
    "to_varchar(at, 'bbbb')": "INVALID_DATETIME_PATTERN",
    "from_unixtime(l, 'bbbb')": "INVALID_DATETIME_PATTERN",
    **{f"{name}(s, 'bbbb')": "INVALID_DATETIME_PATTERN" for name in PARSERS},
    "encode(s, 'la' || 'tin')": "INVALID_PARAMETER_VALUE.CHARSET",
    "split_part(s, ',', 0)": "INVALID_INDEX_OF_ZERO",
    "split_part(s, ',', 1 - 1)": "INVALID_INDEX_OF_ZERO",
    "element_at(a, 0)": "INVALID_INDEX_OF_ZERO",
    "try_element_at(a, 0)": "INVALID_INDEX_OF_ZERO",
    "bit_get(i, 32)": "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
    "getbit(l, -1)": "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
    "slice(a, 0, i)": "INVALID_PARAMETER_VALUE.START",
    "slice(a, i, -1)": "INVALID_PARAMETER_VALUE.LENGTH",
    "map('a', i, s, 2, 'a', 3)": "DUPLICATED_MAP_KEY",
    "map(CAST(NULL AS STRING), s)": "NULL_MAP_KEY",
    "to_binary('zz')": "CONVERSION_INVALID_INPUT",
    "to_number('x', '9')": "INVALID_FORMAT.MISMATCH_INPUT",
    "unbase64('0')": "IllegalArgumentException",
    "url_decode('%zz')": "CANNOT_DECODE_URL",
    "sequence(1, 5, -1)": "",
    "sequence(5, 1, 0)": "",
    "timestamp_seconds(9223372036854775807)": "ArithmeticException",
    "at + INTERVAL 1 DAY / 0": "INTERVAL_DIVIDED_BY_ZERO",
    "CASE WHEN i = 0 THEN url_decode('%') ELSE s END": "CANNOT_DECODE_URL",
    "transform(a, x -> encode(x, 'latin'))": "INVALID_PARAMETER_VALUE.CHARSET",
    "exists(a, x -> date_format(at, 'bbbb') = x)": "INVALID_DATETIME_PATTERN",
}
TAKEN = [
    "encode(s, 'utf-8')",
    "encode(s, s)",
    "encode('a', s)",
    "encode(s, NULL)",
    "decode(i, 1, 'a', 'b')",
    *(
        f"decode(encode(s, '{one}'), '{one}')"
        for one in ("UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")
    ),
    "from_utc_timestamp(at, '+02:00')",
    "from_utc_timestamp(at, s)",
    "convert_timezone(s, 'Asia/Tokyo', loc)",
    "date_format(at, 'EEEE d. MMMM')",
    "date_format('2026-01-31', s)",
    "to_char(i, 'S999')",
    "to_char(at, s)",
    "to_number(s, 'S$99.99')",
    "to_binary(s, 'hex')",
    "split_part(s, '', -1)",
    "split_part(s, ',', i)",
    "element_at(map(i, s), 0)",
    "element_at(m, s)",
    "element_at(a, -1)",
    "transform(a, x -> element_at(split(x, ','), 0))",
    "bit_get(l, 63)",
    "slice(a, -1, 0)",
    "map('a', i, s, 2)",
    "sequence(5, 1)",
    "sequence(1, 1, 0)",
    "sequence(1, 5, NULL)",
    "1 / 0",
    "url_decode('a%20b')",
    "CASE WHEN i = 0 THEN url_decode(s) ELSE '' END",
    "levenshtein(repeat('ab', 5000), repeat('ba', 5000)) + length(url_decode(s))",
    *(f"{name}(s, 'yyyy-MM-dd')" for name in PARSERS),
    *(f"{name}(s, s)" for name in PARSERS),
]


def analyse(spark: Any, text: str) -> None:
    stream = Topic("c", shape_of(json.dumps(VALUE), "c"), {7: json.dumps(VALUE)})
    query = resolve(parse(text), {"c": COLUMNS}, {})
    analysed(spark, query, stream, {}, "Out", "shop")


@pytest.mark.sample(6)
@pytest.mark.parametrize("text", REFUSED)
def test_constants_without_a_value_for_any_record_are_refused(spark: Any, text: str) -> None:
    with pytest.raises(SqlError) as refused:
        analyse(spark, f"SELECT s,\n  {text} AS v FROM x c")
    assert str(refused.value).startswith("line 2, column ")
    assert refused.value.code == "wrong_type"
    assert f" has no value for any record, Spark says {REFUSED[text]}" in str(refused.value)


def test_the_place_is_that_of_the_call(spark: Any) -> None:
    text = "SELECT s FROM x c WHERE s = 'a'\nAND length(encode(s, 'latin')) > 1"
    with pytest.raises(SqlError, match=r"^line 2, column 12: encode\(s, 'latin'\) has no value"):
        analyse(spark, text)


@pytest.mark.sample(6)
@pytest.mark.parametrize("text", TAKEN)
def test_constants_with_a_value_for_some_records_are_taken(spark: Any, text: str) -> None:
    analyse(spark, f"SELECT {text} AS v FROM x c")
