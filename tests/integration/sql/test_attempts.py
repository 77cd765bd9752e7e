"""Records for which an expression has no value, on a real Spark server."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from spark_streams.jvm import ATTEMPT, LOOKUP
from spark_streams.sql.running.attempts import attempted
from spark_streams.sql.running.compiled import compiled
from spark_streams.sql.running.decimals import TOO_LONG
from spark_streams.sql.running.frame import UNREADABLE, UNREADABLE_ROW
from spark_streams.sql.running.work import SETTINGS
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve
from tests.integration.sql.records import Read, Statement, bare, record, wire
from tests.integration.sql.test_oracle import COLUMNS, TEXTS

pytestmark = pytest.mark.platform

LONGEST = 2**63 - 1
VALUE = record("Value", s="string", i="int", l="long", a={"type": "array", "items": "string"})
GOOD = {"s": "1", "i": 1, "l": 1, "a": ["x"]}
NONE = {
    "url_decode(s)": ({"s": "%zz"}, "CANNOT_DECODE_URL"),
    "to_number(s, '999')": ({"s": "x"}, "INVALID_FORMAT.MISMATCH_INPUT"),
    "to_binary(s, 'hex')": ({"s": "zz"}, "CONVERSION_INVALID_INPUT"),
    "slice(a, i, 1)": ({"i": 0}, "INVALID_PARAMETER_VALUE.START"),
    "element_at(a, i)": ({"i": 0}, "INVALID_INDEX_OF_ZERO"),
    "map_from_arrays(a, a)": ({"a": ["x", "x"]}, "DUPLICATED_MAP_KEY"),
    "from_utc_timestamp(TIMESTAMP '2026-01-01 00:00:00', concat('+0', s))": (
        {"s": "nowhere"},
        "INVALID_TIMEZONE",
    ),
    "timestamp_seconds(l)": ({"l": LONGEST}, "ArithmeticException"),
    "year(TIMESTAMP '2026-01-01 00:00:00' + i * INTERVAL 1000 YEAR)": (
        {"i": 300_000},
        "ArithmeticException",
    ),
}
"""Expression -> (what makes a record one that it has no value for, Spark's condition)."""
INSIDE = [
    "transform(a, x -> {}(url_decode(x), '(a)'))",
    "exists(a, x -> {}(url_decode(x), '(a)') IS NOT NULL)",
    "filter(a, x -> {}(element_at(a, i), '(a)') IS NULL)",
    "zip_with(a, a, (x, y) -> {}(split_part(y, 'a', i), '(a)'))",
    "transform_values(map(s, 1), (x, y) -> {}(unbase64(x), '(a)'))",
    "map_filter(map(s, 1), (x, y) -> {}(to_binary(x, 'hex'), '(a)') IS NULL)",
    "transform(a, x -> exists(a, y -> {}(url_decode(y), '(a)') IS NULL))",
    "transform(a, x -> {}(upper(timestamp_seconds(l)), '(a)'))",
    "transform(a, x -> regexp_replace({}(url_decode(x), '(a)'), 'a', 'b'))",
]
"""An expression that has no value, as an argument of a function that matches, in a lambda."""
FAILS = {"s": "0%", "a": ["%", "x"], "i": 0, "l": LONGEST}


def run(spark: Any, text: str, *values: dict[str, Any]) -> list[Read]:
    made = Statement(spark, text, {"c": {7: VALUE}}, {})
    rows = [(b"k", wire(7, VALUE, {**GOOD, **one}), 0, offset) for offset, one in enumerate(values)]
    return made.run(rows)


def topics(found: list[Read]) -> list[str]:
    return [one.topic.removeprefix("east.") for one in found]


def reason(one: Read) -> str:
    return dict(one.headers)["mesh.reason"].decode()


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", NONE)
def test_a_record_without_a_value_goes_to_the_dead_letters(spark: Any, text: str) -> None:
    bad, condition = NONE[text]
    found = run(spark, f"SELECT {text} AS v FROM x c", {}, bad, {})
    assert topics(found) == ["out", "out.dead", "out"]
    assert f"Spark says {condition}:" in reason(found[1])
    assert found[1].value == wire(7, VALUE, {**GOOD, **bad}), "the record as it was"


@pytest.mark.sample(4)
@pytest.mark.parametrize("function", ["regexp_like", "regexp_extract_all", "regexp_count", "split"])
@pytest.mark.parametrize("text", INSIDE)
def test_an_argument_without_a_value_in_a_lambda_is_a_dead_letter(
    spark: Any, text: str, function: str
) -> None:
    text = text.replace("{}", function)
    if "regexp_replace" in text:
        text = text.replace(function, "regexp_substr", 1)
    found = run(spark, f"SELECT {text} AS v FROM x c", {"s": "12ab"}, FAILS, {"s": "12ab"})
    assert topics(found) == ["out", "out.dead", "out"]
    assert "Spark says " in reason(found[1])
    assert "FAILED_EXECUTE_UDF" not in reason(found[1])


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [one for one in INSIDE if one.startswith(("exists", "filter"))])
def test_a_condition_with_a_lambda_without_a_value_drops_no_record(spark: Any, text: str) -> None:
    text = text.replace("{}", "regexp_like")
    text = text if text.startswith("exists") else f"size({text}) >= 0"
    found = run(spark, f"SELECT s FROM x c WHERE {text}", {}, FAILS, {})
    assert topics(found) == ["out", "out.dead", "out"]


TEXTS_OF_BYTES = [
    "CAST(unhex(s) AS STRING)", "array('a', CAST(unhex(s) AS STRING))",
    "CAST(array(unhex(s)) AS ARRAY<STRING>)", "map('a', CAST(unhex(s) AS STRING))",
    "map(CAST(unhex(s) AS STRING), 1)", "named_struct('a', 1, 'b', CAST(unhex(s) AS STRING))",
    "array(named_struct('a', array(CAST(unhex(s) AS STRING))))",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS_OF_BYTES)
def test_a_string_that_is_no_utf8_goes_to_the_dead_letters(spark: Any, text: str) -> None:
    found = run(spark, f"SELECT {text} AS v FROM x c", {"s": "61"}, {"s": "61ff"}, {"s": "c3a9"})
    assert topics(found) == ["out", "out.dead", "out"]
    assert "Spark says INVALID_UTF8_STRING:" in reason(found[1])


@pytest.mark.parametrize("java", [False, True])
def test_a_field_that_is_no_utf8_goes_to_the_dead_letters_where_it_is_written(
    spark: Any, java: bool
) -> None:
    text_of_java = {"type": "string", "avro.java.string": "String"}
    schema = record("Value", s=text_of_java, i="int") if java else VALUE
    good = {"s": "QQ", "i": 1} if java else {**GOOD, "s": "QQ"}
    bad = wire(7, schema, good).replace(b"QQ", b"\xed\xa0")
    rows = [(b"k", bad, 0, 0)]
    for text, topic in {"s": "out.dead", "i": "out", "make_valid_utf8(s)": "out"}.items():
        made = Statement(spark, f"SELECT {text} AS v FROM x c", {"c": {7: schema}}, {})
        assert topics(made.run(rows)) == [topic], text


READS_TEXTS = [
    "upper(s)", "lcase(s)", "initcap(s)", "translate(s, 'a', 'b')", "mask(s)", "url_encode(s)",
    "regexp_replace(s, 'x', 'y')", "regexp_extract(s, 'a(.)', 1)", "split(s, 'x')",
    "to_json(named_struct('a', array(s)))", "str_to_map(s)", "encode(s, 'UTF-8')",
    "transform(array(s), x -> upper(x))", "s LIKE 'a_'", "s ILIKE '%A%b%'", "s RLIKE 'a.'",
]  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", READS_TEXTS)
def test_two_strings_that_are_no_utf8_do_not_become_one(spark: Any, text: str) -> None:
    """Java reads U+FFFD for each byte that is none, and UTF-8 would come out."""
    ends = (b"\xff", b"\xfe", b"b")
    values = [wire(7, VALUE, {**GOOD, "s": "aQ"}).replace(b"aQ", b"a" + end) for end in ends]
    rows = [(b"k", one, 0, offset) for offset, one in enumerate(values)]
    for query in (
        f"SELECT {text} AS v FROM x c",
        f"SELECT i FROM x c WHERE CAST({text} AS STRING) <> ''",
    ):
        found = Statement(spark, query, {"c": {7: VALUE}}, {}).run(rows)
        assert topics(found) == ["out.dead", "out.dead", "out"], query
        assert "Spark says INVALID_UTF8_STRING:" in reason(found[0])


def test_what_reads_the_bytes_of_a_string_tells_two_that_are_no_utf8_apart(spark: Any) -> None:
    values = [
        wire(7, VALUE, {**GOOD, "s": "aQ"}).replace(b"aQ", b"a" + end) for end in (b"\xff", b"\xfe")
    ]
    rows = [(b"k", one, 0, offset) for offset, one in enumerate(values)]
    text = "hex(concat(reverse(substring(s, 1, 2)), s)) AS h, length(s) AS l, s > 'a' AS g"
    found = Statement(spark, f"SELECT {text} FROM x c", {"c": {7: VALUE}}, {}).run(rows)
    assert topics(found) == ["out", "out"]
    assert found[0].value["h"] != found[1].value["h"]


def test_bytes_may_be_looked_at_as_a_string_that_is_no_utf8(spark: Any) -> None:
    text = "SELECT hex(CAST(unhex(s) AS STRING)) AS v FROM x c WHERE CAST(unhex(s) AS STRING) > 'a'"
    assert topics(run(spark, text, {"s": "62ff"})) == ["out"]


def test_a_reason_holds_nothing_of_the_record(spark: Any) -> None:
    [found] = run(spark, "SELECT url_decode(s) AS v FROM x c", {"s": "%secret"})
    assert "secret" not in reason(found)


def test_a_condition_without_a_value_drops_no_record(spark: Any) -> None:
    text = "SELECT s FROM x c WHERE url_decode(s) = 'a'"
    found = run(spark, text, {"s": "b"}, {"s": "%zz"}, {"s": "a"})
    assert topics(found) == ["out.dead", "out"]
    assert "CANNOT_DECODE_URL" in reason(found[0])


def test_what_a_condition_passes_over_is_not_computed(spark: Any) -> None:
    text = "SELECT url_decode(s) AS v FROM x c WHERE i = 1"
    found = run(spark, text, {"s": "%zz", "i": 2}, {"s": "a%20b"})
    assert [one.value for one in found] == [{"v": "a b"}]


def test_a_row_of_a_table_without_a_value_stays_as_it_was(spark: Any) -> None:
    made = Statement(
        spark, "SELECT url_decode(s) AS v FROM TABLE(x) c", {"c": {7: VALUE}}, {"c": "string"}
    )
    rows = [(b"k", wire(7, VALUE, {**GOOD, "s": text}), 0, at) for at, text in enumerate("a%")]
    found = made.run([*rows, (b"k", None, 0, 2)])
    assert topics(found) == ["out", "out.dead", "out"]
    assert found[2].value is None, "the end of the row"


ROW = record("Row", name="string")


@pytest.mark.sample(2)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize(
    "condition", ["url_decode(c.s) = u._key", "c.s = u._key AND url_decode(u.name) = 'a'"]
)
def test_a_join_without_a_value_drops_no_record(spark: Any, join: str, condition: str) -> None:
    from pyspark.sql.connect import functions as f

    key, row = bare("string", "x"), bare(ROW, {"name": "%zz" if "name" in condition else "a"})
    made = Statement(
        spark,
        f"SELECT u.name FROM x c {join} y u ON {condition}",
        {"c": {7: VALUE}, "u": {8: ROW}},
        {"u": "string"},
    )
    bad = "x" if "name" in condition else "%zz"
    records = [
        (b"k", wire(7, VALUE, {**GOOD, "s": text}), 0, at) for at, text in enumerate([bad, "other"])
    ]
    found = made.run(records, lambda _, asked: f.when(asked == f.lit(key), f.lit(row)))
    assert topics(found) == (["out.dead"] if join == "JOIN" else ["out.dead", "out"])
    assert "CANNOT_DECODE_URL" in reason(found[0])


def test_a_time_that_spark_does_not_have_goes_to_the_dead_letters(spark: Any) -> None:
    debezium = {"type": "long", "connect.name": "io.debezium.time.Timestamp"}
    value = record("Change", at=debezium, s="string")
    made = Statement(spark, "SELECT s, at FROM x c", {"c": {7: value}}, {})
    rows = [
        (b"k", wire(7, value, {"at": at, "s": "a"}), 0, offset)
        for offset, at in enumerate([0, LONGEST, -LONGEST - 1, 1])
    ]
    found = made.run(rows)
    assert topics(found) == ["out", "out.dead", "out.dead", "out"]
    assert reason(found[1]) == "at holds milliseconds that are no time in Spark"


PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
PRICES = record(
    "Prices",
    price=["null", PRICE],
    list={"type": "array", "items": PRICE},
    by={"type": "map", "values": {**PRICE, "precision": 18}},
    deep=record("Inner", fixed={**PRICE, "type": "fixed", "size": 20, "name": "F"}),
    large={**PRICE, "precision": 30},
    small={**PRICE, "type": "fixed", "size": 8, "name": "Small"},
    again="Small",
)


def prices(**given: Any) -> bytes:
    """A value with these numbers, of which each has two digits behind the point."""
    found = {"price": 1, "list": 2, "by": 3, "fixed": 4, "large": 5, "small": 6} | given
    raw = {
        name: number.to_bytes(8 if name == "small" else 20, "big", signed=True)
        for name, number in found.items()
    }
    value = {
        "price": raw["price"],
        "list": [raw["list"]],
        "by": {"k": raw["by"]},
        "deep": {"fixed": raw["fixed"]},
        "large": raw["large"],
        "small": raw["small"],
        "again": raw["small"],
    }
    plain = json.loads(json.dumps(PRICES).replace('"logicalType": "decimal"', '"x": "y"'))
    return wire(7, plain, value)


TOO_LARGE = [
    {name: number}
    for name in ("price", "list", "by", "fixed")
    for number in (2**64 + 100, -(2**64) + 700, 5 * 2**64 + 123_456, 10**18)
] + [{"price": 10**10}, {"large": 10**30}, {"large": 2**120}, {"small": 10**10}]
FIT = [
    {},
    {"price": 10**10 - 1, "by": -(10**18) + 1},
    {"large": 10**30 - 1},
    {"fixed": -7, "small": -9},
]
SELECTED = "SELECT price, list[0] AS l, by['k'] AS b, deep.fixed AS f, large, small, again FROM "


@pytest.mark.parametrize("rows", ["x c", "TABLE(x) c"])
def test_a_decimal_that_is_too_long_is_a_dead_letter_and_no_other_number(
    spark: Any, rows: str
) -> None:
    """Spark reads the last 64 bits of it: 2^64 + 100 came out as 1.00."""
    keys = {"c": "string"} if "TABLE" in rows else {}
    made = Statement(spark, SELECTED + rows, {"c": {7: PRICES}}, keys)
    every = [prices(**one) for one in (*FIT, *TOO_LARGE)]
    found = made.run([(b"k", value, 0, at) for at, value in enumerate(every)])
    assert topics(found) == ["out"] * len(FIT) + ["out.dead"] * len(TOO_LARGE)
    assert {reason(one) for one in found[len(FIT) :]} <= {TOO_LONG, UNREADABLE}
    expected = [Decimal(one) / 100 for one in (1, 2, 3, 4, 5, 6, 6)]
    assert [*found[0].value.values()] == expected
    assert found[1].value["price"] == Decimal(10**10 - 1) / 100
    assert found[1].value["b"] == Decimal(-(10**18) + 1) / 100


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_a_decimal_of_a_joined_row_that_is_too_long_is_a_dead_letter(spark: Any, join: str) -> None:
    from pyspark.sql.connect import functions as f

    made = Statement(
        spark,
        f"SELECT u.price FROM x c {join} y u ON c.s = u._key",
        {"c": {7: VALUE}, "u": {8: PRICES}},
        {"u": "string"},
    )
    keys = ["far", "near"]
    rows = {"far": prices(price=2**64 + 100)[5:], "near": prices()[5:]}
    records = [(b"k", wire(7, VALUE, {**GOOD, "s": one}), 0, at) for at, one in enumerate(keys)]

    def find(_: str, asked: Any) -> Any:
        far = f.when(asked == f.lit(bare("string", "far")), f.lit(rows["far"]))
        return far.otherwise(f.lit(rows["near"]))

    found = made.run(records, find)
    assert topics(found) == ["out.dead", "out"]
    assert reason(found[0]) == TOO_LONG
    assert found[1].value == {"price": Decimal("0.01")}


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_a_joined_row_that_spark_cannot_read_drops_no_record(spark: Any, join: str) -> None:
    """Its owner wrote milliseconds that are no time in Spark; other rows are joined."""
    from pyspark.sql.connect import functions as f

    row = record("Row", at={"type": "long", "logicalType": "timestamp-millis"})
    made = Statement(
        spark,
        f"SELECT u.at FROM x c {join} y u ON c.s = u._key",
        {"c": {7: VALUE}, "u": {8: row}},
        {"u": "string"},
    )
    rows = {"far": {"at": LONGEST}, "near": {"at": 1000}}
    keys = ["far", "near", "none"]
    records = [(b"k", wire(7, VALUE, {**GOOD, "s": one}), 0, at) for at, one in enumerate(keys)]

    def find(_: str, asked: Any) -> Any:
        found: Any = f.lit(None).cast("binary")
        for key, value in rows.items():
            found = f.when(asked == f.lit(bare("string", key)), f.lit(bare(row, value))).otherwise(
                found
            )
        return found

    found = made.run(records, find)
    assert topics(found) == ["out.dead", "out", "out"][: 2 if join == "JOIN" else 3]
    assert reason(found[0]) == UNREADABLE_ROW
    assert found[1].value == {"at": datetime.fromtimestamp(1, UTC)}


def test_an_error_that_is_no_values_ends_the_query(spark: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.connect import functions as f

    rows = spark.range(1).withColumn("fault", f.lit(None).cast("string"))
    with pytest.raises(PySparkException, match="it ends"):
        attempted(rows, "v", f.raise_error(f.lit("it ends"))).collect()


def test_a_table_that_cannot_be_looked_up_ends_the_query_wherever_it_is(spark: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.connect import functions as f

    rows = spark.range(1).withColumn("fault", f.lit(None).cast("string"))
    key = f.encode(f.col("id").cast("string"), "UTF-8")
    row = f.call_function(LOOKUP, f.lit("none"), key, f.col("id").cast("int"))
    matched = f.call_function("mesh_regexp_like", f.decode(row, "UTF-8"), f.lit("a"))
    inside = f.transform(f.array("id"), lambda _: matched)
    for column in (row, matched, inside):
        with pytest.raises(PySparkException, match="the table none"):
            attempted(rows, "v", column).collect()


WITHOUT_ZONE = datetime.fromisoformat("1582-10-10T23:59:59.999999")
HOSTILE = [
    (
        "%zz",
        "(",
        "-99999999999999999999",
        -1,
        0,
        -(2**63),
        float("inf"),
        Decimal("-0.01"),
        False,
        b"\xff\xfe",
        date(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        WITHOUT_ZONE.replace(year=1),
        ["a", "a", None, ""],
        [0, -1, 2**31 - 1, None],
        {"": 2**63 - 1},
        ("", "\x00"),
    ),
    (
        "\x00\ud7ff💥",
        "",
        "1e999",
        -(2**31),
        2**31 - 1,
        LONGEST,
        float("-inf"),
        Decimal("-9999999999.99"),
        True,
        b"",
        date(9999, 12, 31),
        datetime(1, 1, 1, tzinfo=UTC),
        WITHOUT_ZONE.replace(year=9999),
        [],
        [],
        {},
        ("%", "%"),
    ),
    (
        "a=1&a=2",
        "=",
        "0x1F",
        0,
        -(2**31),
        0,
        1e308,
        Decimal("9999999999.99"),
        None,
        b"\x00" * 9,
        date(1582, 10, 10),
        datetime(1582, 10, 10, tzinfo=UTC),
        WITHOUT_ZONE,
        ["%zz", "now"],
        [2**31 - 1, -(2**31)],
        {"a": None, "A": 0},
        None,
    ),
]


def test_no_function_ends_a_query_whatever_a_record_holds(spark: Any) -> None:
    from pyspark.sql.connect import functions as f

    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    rows = spark.createDataFrame(HOSTILE, schema).select(f.struct(*COLUMNS).alias("__source0"))
    failed: set[str] = set()
    for first in range(0, len(TEXTS), 40):
        texts = TEXTS[first : first + 40]
        columns = []
        for number, text in enumerate(texts):
            [out] = resolve(parse(f"SELECT {text} AS v FROM c"), {"c": list(COLUMNS)}, {}).out
            column = compiled(out.expression, {"c": "__source0"})
            # a value of its own for each, so that one failure does not hide another
            fault = f.call_function(ATTEMPT, column).getField("fault")
            columns.append(fault.alias(f"v{number}"))
        for row in rows.select(*columns).collect():
            failed.update(text for text, fault in zip(texts, row, strict=True) if fault)
    assert failed, "records that some functions have no value for"
