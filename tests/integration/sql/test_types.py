"""What Spark would cast in silence is refused, and what is the same in other types is not."""

import json
from typing import Any

import pytest

from mesh_events.errors import RefusedError
from spark_streams.sql.errors import SqlError
from spark_streams.sql.running.analysis import analysed
from spark_streams.sql.running.frame import Topic
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve
from spark_streams.sql.types.shape import key_columns, shape_of
from tests.integration.sql.records import record

pytestmark = pytest.mark.platform

DATE = {"type": "int", "logicalType": "date"}
TIME = {"type": "long", "logicalType": "timestamp-millis"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}
CLICK = record(
    "Click",
    ip="string",
    status=["null", "string"],
    number="long",
    small="int",
    share="double",
    flag="boolean",
    body="bytes",
    day=DATE,
    at=TIME,
    price=PRICE,
    tags={"type": "array", "items": "string"},
)
ROW = record("Row", id="int", name="string")


def analyse(spark: Any, rest: str, key: Any, columns: str = "ip") -> None:
    stream = Topic("c", shape_of(json.dumps(CLICK), "c"), {7: json.dumps(CLICK)})
    table = Topic("u", shape_of(json.dumps(ROW), "u"), {8: json.dumps(ROW)}, json.dumps(key))
    parsed = parse(f"SELECT {columns}\nFROM x c {rest}")
    known = {one.alias: [each.name for each in one.shape.fields] for one in (stream, table)}
    if key_columns(table.key, "u") == ("_key",):
        known["u"].append("_key")
    tables = {one.source.alias: table for one in parsed.joined}
    keys = {alias: key_columns(table.key, alias) for alias in tables}
    query = resolve(parsed, {"c": known["c"], **dict.fromkeys(tables, known["u"])}, keys)
    analysed(spark, query, stream, tables, "Out", "shop")


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("number > 'abc'", "'abc', which it is compared with, is string: write a number without"),
        ("number > ('5')", "write a number without quotes"),
        ("number IS DISTINCT FROM ip", "write CAST(ip AS bigint)"),
        ("decode(number, 'a', true, false)", "write a number without quotes"),
        ("status >= 400", "status is string, and 400, which it is compared with, is int: write CA"),
        ("status BETWEEN 1 AND 5", "write CAST(status AS int)"),
        ("number IN (1, ip)", "write CAST(ip AS bigint)"),
        ("number = c.ip", "write CAST(c.ip AS bigint)"),
        ("flag = 1", "flag is boolean"),
        ("body = ip", "write CAST(ip AS binary)"),
        ("day = ip", "write CAST(ip AS date)"),
        ("at > 'this evening'", "write it as '2026-01-31'"),
        ("day = '2026-13-41'", "write it as '2026-01-31'"),
        ("day < '2026-01-31 10:00:00'", "CAST the other one AS timestamp"),
        ("day <> '2026-01-31T10:00:00Z'", "CAST the other one AS timestamp"),
        ("at > 'now'", "write it as '2026-01-31'"),
        ("at > '2026-01-01\\' = (SELECT 1) OR \\'a\\' = \\'b'", "write it as '2026-01-31'"),
        ("CASE number WHEN 'a' THEN true ELSE false END", "write a number without quotes"),
        ("number > 1 AND (flag OR NOT (ip = 3))", "CAST(ip AS int)"),
        ("at IN ('2026-01-31')", "write TIMESTAMP '2026-01-31'"),
        ("day NOT IN (at, '2026-01-31')", "write DATE '2026-01-31'"),
        ("tags IN (array(1, 2))", "write CAST(tags AS array<int>)"),
        ("ip IS NOT TRUE", "ip is string, and a condition is expected: write CAST(ip AS boolean)"),
        ("number IS FALSE", "write CAST(number AS boolean)"),
    ],
)  # fmt: skip
def test_a_comparison_of_other_types_is_refused_with_its_place(
    spark: Any, condition: str, told: str
) -> None:
    with pytest.raises(SqlError) as refused:
        analyse(spark, f"\nWHERE {condition}", "string")
    assert refused.value.code == "wrong_type"
    assert str(refused.value).startswith("line 3, column ")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "condition",
    [
        "number > 5 AND small = number AND share < small AND price > 1",
        "at > '2026-01-01' AND at < '2026-01-01T10:00:00Z' AND day = '2026-02-01' AND day < at",
        "CAST(status AS int) >= 400",
        "status IN ('404', '500') OR number <=> null",
        "number LIKE '4%'",
        "flag AND flag = true AND NOT flag",
        "ip || number = 'a5'",
        "exists(tags, t -> t > 'a')",
        "at - INTERVAL 1 DAY > day",
        "at IN (TIMESTAMP '2026-01-31 10:00:00', day) AND day NOT IN (DATE '2026-01-31')",
        "flag IS TRUE AND CAST(ip AS boolean) IS NOT FALSE",
        "tags IN (array('a'), array())",
        "substr(ip, small) = 'a' AND sin(number) > 0 AND small << 1 > 2",
        "at > ('2026-01-01') AND at > r'2026-01-01'",
        "ip = 'O\\'Brien' AND abs(small) > 1 AND round(share, 2) > 1.5",
        "greatest(small, number) > 1 AND decode(ip, 'a', 1, 'b', 2, 3) = 1",
    ],
)
def test_what_is_of_one_kind_is_compared(spark: Any, condition: str) -> None:
    analyse(spark, f"\nWHERE {condition}", "string")


@pytest.mark.parametrize(
    "expression",
    [
        "status + 1",
        "number * ip",
        "-status",
        "ip + status",
        "abs(ip)",
        "pow(ip, 2)",
        "try_add(1, ip)",
        "sin(ip)",
        "substr(ip, status)",
        "make_date(ip, 1, 1)",
        "to_char(ip, '9')",
        "small >> ip",
    ],
)
def test_a_string_is_no_number(spark: Any, expression: str) -> None:
    with pytest.raises(SqlError, match=r"line 1, column .* is a string, and a number is expected"):
        analyse(spark, "", "string", f"{expression} AS n")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("int", "number"), ("int", "small"), ("long", "small"), ("long", "CAST(ip AS bigint)"),
        ("string", "ip"), ("string", "status"), ("string", "CAST(number AS string)"),
        ("bytes", "body"), ("boolean", "flag"),
        ("int", "null"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "ip"),
    ],
)  # fmt: skip
def test_a_key_is_looked_up_by_what_it_keeps(spark: Any, key: Any, given: str) -> None:
    analyse(spark, f"JOIN y u ON {given} = u._key", key)
    analyse(spark, f"LEFT JOIN y u ON u.id = {given}", record("Key", id=key))


@pytest.mark.parametrize(
    ("key", "given", "told"),
    [
        ("long", "ip", "u is looked up by its key id (bigint), and ip is string: no row would be"),
        ("long", "ip", "found, or another one: write CAST(ip AS bigint)"),
        ("string", "number", "write CAST(number AS string)"),
        ("int", "share", "write CAST(share AS int)"), ("int", "price", "CAST(price AS int)"),
        ("int", "day", "write unix_date(day)"), ("long", "at", "write unix_millis(at), or"),
        ("boolean", "small", "CAST(small AS boolean)"), ("int", "'5'", "number without quotes"),
        ("int", "CAST(ip + 1 AS int)", "ip is a string, and a number is expected"),
        ("int", "CASE WHEN ip = 5 THEN 1 ELSE 2 END", "CAST(ip AS int)"),
    ],
)  # fmt: skip
def test_a_key_of_another_type_is_refused(spark: Any, key: str, given: str, told: str) -> None:
    with pytest.raises(SqlError) as refused:
        analyse(spark, f"\nJOIN y u ON u.id = {given}", record("Key", id=key))
    assert refused.value.code == "wrong_type"
    assert str(refused.value).startswith("line ")
    assert told in str(refused.value)


def test_a_key_that_is_a_date_as_a_number_is_looked_up_by_its_days(spark: Any) -> None:
    key = {"type": "int", "logicalType": "date"}
    with pytest.raises(SqlError, match=r"line 3, column .*write unix_date\(day\)"):
        analyse(spark, "\nLEFT JOIN y u ON day = u._key", key)


def test_a_string_and_an_interval_are_no_time(spark: Any) -> None:
    with pytest.raises(SqlError, match=r"a time is expected: write CAST\(ip AS timestamp\)"):
        analyse(spark, "", "string", "ip + INTERVAL 1 DAY AS t")


def test_a_table_is_not_looked_up_by_a_decimal(spark: Any) -> None:
    with pytest.raises(RefusedError, match="decimal"):
        analyse(spark, "JOIN y u ON u.id = price", record("Key", id=PRICE))


@pytest.mark.parametrize("key", ["float", "double", ["null", "double"]])
def test_a_table_is_not_looked_up_by_a_number_that_has_two_keys(spark: Any, key: Any) -> None:
    with pytest.raises(RefusedError, match=r"0\.0 and -0\.0 are one number and two keys"):
        analyse(spark, "JOIN y u ON u.id = share", record("Key", id=key))


def test_a_text_of_many_operands_is_analysed(spark: Any) -> None:
    chain = " + ".join(["number"] * 32)
    listed = ", ".join(f"'{number}'" for number in range(600))
    analyse(spark, f"\nWHERE {chain} > 1 AND ip IN ({listed})", "string")


@pytest.mark.parametrize(
    ("select", "place"),
    [("i,\n deep", "line 2, column 2: "), ("i", None), ("i FROM x c WHERE deep = deep", "")],
)
def test_records_that_lie_too_deep_are_refused(spark: Any, select: str, place: str | None) -> None:
    deep: Any = "int"
    for number in range(40):
        deep = record(f"Level{number}", n=deep)
    schema = json.dumps(record("Whole", i="int", deep=deep))
    stream = Topic("c", shape_of(schema, "c"), {7: schema})
    text = f"SELECT {select}" + ("" if "FROM" in select else " FROM x c")
    query = resolve(parse(text), {"c": ["i", "deep"]}, {})
    if place is None:
        analysed(spark, query, stream, {}, "Out", "shop")
        return
    with pytest.raises(SqlError, match=f"^{place}records lie too deep") as refused:
        analysed(spark, query, stream, {}, "Out", "shop")
    assert refused.value.code == "schema_too_large"


def test_what_does_not_fit_into_avro_is_refused_with_its_place(spark: Any) -> None:
    columns = "ip,\n struct(number, number) AS twice"
    with pytest.raises(SqlError, match=r"^line 2, column 2: a struct in Out_twice has "):
        analyse(spark, "", "string", columns)
