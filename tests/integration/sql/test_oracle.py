"""Expressions as they are compiled, against Spark's own SQL of the same text: values and types."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_streams.sql.functions.allowed import FUNCTIONS, MANY
from spark_streams.sql.running.compiled import compiled
from spark_streams.sql.running.work import SETTINGS
from spark_streams.sql.text.parse import parse
from spark_streams.sql.text.tree import Call
from spark_streams.sql.types.resolve import resolve
from tests.integration.sql.oracle_cases import CASES, FORMS

pytestmark = pytest.mark.platform

COLUMNS = {
    "s": "string", "t": "string", "n": "string", "i": "int", "j": "int", "l": "bigint",
    "d": "double", "p": "decimal(12,2)", "b": "boolean", "x": "binary", "day": "date",
    "at": "timestamp", "loc": "timestamp_ntz", "a": "array<string>", "k": "array<int>",
    "m": "map<string,bigint>", "r": "struct<city:string,zip:string>",
}  # fmt: skip
ROWS = [
    ("Ada Ümit", "a,b", "12", 7, -3, 2**40, 2.5, Decimal("12.30"), True, b"\0\xff",
     date(2024, 2, 29), datetime(2024, 2, 29, 13, 14, 15, 678901, tzinfo=UTC),
     datetime.fromisoformat("1999-12-31T23:59:59.5"), ["b", None, "a"], [3, 1, 2],
     {"x": 1, "y": 2}, ("Oslo", None)),
    ("", "%_\\", " x ", 0, 2_147_483_647, -1, float("nan"), Decimal("-0.01"), False, b"",
     date(1969, 12, 31), datetime(1970, 1, 1, tzinfo=UTC),
     datetime.fromisoformat("2026-01-31T00:00:00"), [], [], {}, ("", "00100")),
    (None,) * 17,
    ('{"a": {"b": [1, 2]}, "c": "z"}', "2026-01-31", "now", 1, -2_147_483_648, 0, -0.0,
     Decimal("9999999999.99"), None, b"abc", date(2026, 1, 31),
     datetime(2026, 1, 31, 10, tzinfo=UTC), None, ["a", "a"], [1, None], {"x": None}, None),
]  # fmt: skip
TEXTS = sorted({*(text for texts in CASES.values() for text in texts), *FORMS})


@pytest.fixture
def rows(spark: Any) -> Iterator[Any]:
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    made = spark.createDataFrame(ROWS, schema)
    made.createOrReplaceTempView("oracle")
    yield made
    spark.catalog.dropTempView("oracle")


def ours(text: str) -> Any:
    [out] = resolve(parse(f"SELECT {text} AS v FROM c"), {"c": list(COLUMNS)}, {}).out
    return compiled(out.expression, {"c": "__source0"}).alias("v")


def selected(spark: Any, rows: Any, texts: list[str]) -> tuple[Any, Any]:
    """(Spark's own, ours), with a column for each text."""
    from pyspark.sql.connect import functions as f

    theirs = spark.sql(f"SELECT {', '.join(texts)} FROM oracle")
    source = rows.select(f.struct(*COLUMNS).alias("__source0"))
    return theirs, source.select(*map(ours, texts))


def differences(spark: Any, rows: Any, texts: list[str]) -> list[str]:
    theirs, made = selected(spark, rows, texts)
    found = []
    for text, one, other in zip(texts, theirs.schema.fields, made.schema.fields, strict=True):
        if one.dataType != other.dataType:
            found.append(f"{text}: {other.dataType} is no {one.dataType}")
    for expected, got in zip(theirs.collect(), made.collect(), strict=True):
        for text, one, other in zip(texts, expected, got, strict=True):
            # a NaN is not equal to itself
            if repr(one) != repr(other):
                found.append(f"{text}: {other!r} is no {one!r}")
    return found


def test_every_function_has_a_case() -> None:
    assert set(CASES) == set(FUNCTIONS)
    for name, texts in CASES.items():
        assert texts
        assert all(f"{name}(" in text.lower() for text in texts), name


def arities(name: str) -> set[int]:
    """The numbers of arguments to compare: all, or of those without an end the three least."""
    function = FUNCTIONS[name]
    if function.most < MANY:
        return set(range(function.least, function.most + 1))
    step = 2 if name in ("map", "named_struct") else 1
    return {function.least + step * more for more in range(3)}


def call(text: str) -> Call:
    [item] = parse(f"SELECT {text} AS v FROM c").select
    assert isinstance(item.this, Call)
    return item.this


def count(text: str) -> int:
    """The arguments as they are written: each one of `struct` is read as a name and a value."""
    return len(call(text).args) // (2 if text.startswith("struct(") else 1)


def without(texts: Mapping[str, list[str]]) -> set[tuple[str, int]]:
    """Each function with a number of arguments that it takes, and no text has."""
    allowed = {(name, number) for name in FUNCTIONS for number in arities(name)}
    return allowed - {(name, count(one)) for name, every in texts.items() for one in every}


def test_every_function_is_compared_with_each_number_of_its_arguments() -> None:
    assert without(CASES) == set()
    assert without({**CASES, "mask": ["mask(s)"]}) == {("mask", more) for more in (2, 3, 4, 5)}
    assert without({**CASES, "struct": ["struct(i, s)"]}) == {("struct", 1), ("struct", 3)}


def test_every_function_is_compared_with_several_kinds_of_arguments() -> None:
    few = [name for name, texts in CASES.items() if len({call(one) for one in texts}) < 2]
    assert few == [name for name in FUNCTIONS if FUNCTIONS[name].most == 0]


def test_what_is_compiled_is_what_spark_makes_of_the_text(spark: Any, rows: Any) -> None:
    found: list[str] = []
    size = 40
    for start in range(0, len(TEXTS), size):
        texts = TEXTS[start : start + size]
        try:
            found += differences(spark, rows, texts)
        except Exception:  # noqa: BLE001 - which one it is is asked for one by one
            for text in texts:
                try:
                    found += differences(spark, rows, [text])
                except Exception as error:  # noqa: BLE001 - told with its text
                    found.append(f"{text}: {str(error)[:200]}")
    assert "\n".join(found) == ""


NUMBERS = st.sampled_from(["i", "j", "l", "d", "p", "1", "2.50", "1e2", "-3", "NULL"])
STRINGS = st.sampled_from(["s", "t", "n", "'a'", "'%'", "'it\\'s'"])


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    sign = st.sampled_from(["+", "-", "*", "/", "%", "DIV", "&", "|", "^"])
    return st.one_of(
        st.tuples(two, sign).map(lambda one: f"{one[0][0]} {one[1]} {one[0][1]}"),
        two.map(lambda one: f"({one[0]}) - ({one[1]})"),
        two.map(lambda one: f"coalesce({one[0]}, {one[1]})"),
        two.map(lambda one: f"CASE WHEN {one[0]} > {one[1]} THEN 1 ELSE - {one[0]} END"),
        inner.map(lambda one: f"CAST({one} AS BIGINT)"),
    )


EXPRESSIONS = st.recursive(NUMBERS, combined, max_leaves=6)
CONDITIONS = st.one_of(
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(lambda one: f"{one[0]} <= {one[1]}"),
    EXPRESSIONS.map(lambda one: f"{one} = 1 IS NULL"),
    STRINGS.map(lambda one: f"NOT {one} LIKE 'a%' AND b"),
    st.tuples(STRINGS, STRINGS).map(lambda one: f"{one[0]} <=> {one[1]} OR NOT b AND i > 0"),
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(EXPRESSIONS, CONDITIONS), min_size=1, max_size=8))
def test_what_is_nested_is_what_spark_makes_of_it(spark: Any, rows: Any, texts: list[str]) -> None:
    good = []
    for text in texts:
        try:
            _ = spark.sql(f"SELECT {text} FROM oracle").schema
        except Exception:  # noqa: BLE001, S112 - what is no SQL to Spark is not compared
            continue
        good.append(text)
    if good:
        assert differences(spark, rows, good) == []
