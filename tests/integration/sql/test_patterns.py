"""Patterns in Spark: the verdicts of Python, in time that is linear in the string."""

from typing import Any

import pytest

from mesh_events.linear_patterns import LONGEST_TEXT, linear_pattern
from spark_streams.jvm import MATCHES
from tests.integration.sql.records import Statement, record, wire
from tests.pattern_cases import EXPONENTIAL, VERDICTS

pytestmark = pytest.mark.platform


def verdicts(spark: Any, rows: list[tuple[int, bytes | None, str]]) -> list[bool | None]:
    """Whether Spark matches each (number, text, pattern), by their numbers."""
    from pyspark.sql.connect import functions as f

    made = spark.createDataFrame(rows, "number int, text binary, pattern string")
    found = made.select("number", f.call_function(MATCHES, "text", "pattern").alias("found"))
    return [one["found"] for one in found.orderBy("number").collect()]


def test_python_and_spark_give_one_verdict(spark: Any) -> None:
    rows = [(number, text.encode(), one) for number, (one, text, _) in enumerate(VERDICTS)]
    expected = [matches for *_, matches in VERDICTS]
    assert [linear_pattern(one).matches(text) for one, text, _ in VERDICTS] == expected
    assert verdicts(spark, rows) == expected


def test_a_long_string_does_not_match_and_ends_soon(spark: Any) -> None:
    texts = [b"a" * (LONGEST_TEXT - 1) + b"!", b"a" * (LONGEST_TEXT + 1)]
    rows = [(0, text, one) for one in EXPONENTIAL for text in texts]
    assert set(verdicts(spark, rows)) == {False}


def test_bytes_that_are_no_text_do_not_match_and_null_is_null(spark: Any) -> None:
    texts = [b"\xff", b"\xed\xa0\x80", b"a\xc3", None]
    rows = [(number, text, "(?s).*") for number, text in enumerate(texts)]
    assert verdicts(spark, rows) == [False, False, False, None]


@pytest.mark.parametrize("pattern", EXPONENTIAL)
def test_a_statement_over_a_pattern_that_others_take_years_for_ends(
    spark: Any, pattern: str
) -> None:
    kind = {"type": "string", "logicalType": "validatedString", "pattern": pattern}
    inner = record("Inner", a=["null", kind])
    schema = record("Value", s=kind, many={"type": "array", "items": ["null", inner]})
    good = next(text for text in ("a", "ab", "b", "=", "a" * 100) if matches(pattern, text))
    bad = "a" * 5_000 + "!"
    values = [(good, [good, None]), (bad, []), (good, [None, bad])]
    made = [
        wire(7, schema, {"s": s, "many": [one and {"a": one} for one in many]})
        for s, many in values
    ]
    found = Statement(spark, "SELECT s FROM x c", {"c": {7: schema}}, {}).run(
        [(b"k", value, 0, offset) for offset, value in enumerate(made)]
    )
    assert [one.topic for one in found] == ["east.out", "east.out.dead", "east.out.dead"]
    assert found[0].value == {"s": good}
    reasons = [dict(one.headers)["mesh.reason"].decode() for one in found[1:]]
    assert reasons == [f"{path} does not match its pattern {pattern}" for path in ("s", "many[].a")]


def matches(pattern: str, text: str) -> bool:
    return linear_pattern(pattern).matches(text)


SLOW = [
    "regexp_like(s, '(a+)+$')",
    "s RLIKE '(a|aa)+$'",
    "regexp_extract(s, '((a+)+)$', 1)",
    "regexp_replace(s, '(a+)+b', '')",
    "regexp_count(s, 'a.*b|a')",
    "split(s, '(a|aa)+b')",
    "regexp_extract_all(s, '(a+)+b')",
    "regexp_instr(s, '(a+)+b')",
    "regexp_substr(s, '(a+)+b')",
    "s LIKE '%a%a%a%a%a%a%b'",
    "s ILIKE '%A%a%a%a%a%a%b'",
]


def test_functions_end_for_a_pattern_that_others_take_years_for(spark: Any) -> None:
    schema = record("Value", s="string")
    columns = ", ".join(f"{text} AS v{number}" for number, text in enumerate(SLOW))
    made = Statement(spark, f"SELECT {columns} FROM x c", {"c": {7: schema}}, {})
    text = "a" * 5_000 + "!"
    [found] = made.values([(b"k", wire(7, schema, {"s": text}), 0, 0)])
    # what takes too many steps is null
    assert list(found.values()) == [
        *(False, False, "", text, None, [text], [], 0, None, False, False)
    ]


def test_a_group_that_a_pattern_does_not_have_is_null_and_stops_nothing(spark: Any) -> None:
    schema = record("Value", s="string", by="string")
    text = "SELECT regexp_replace(s, 'a', by) AS r, regexp_extract(s, '(a)', 2) AS e FROM x c"
    made = Statement(spark, text, {"c": {7: schema}}, {})
    given = ("x", "$0$0", "$1", "$", "a$b", "${a}", "a\\")
    rows = [wire(7, schema, {"s": "ab", "by": by}) for by in given]
    found = made.values([(b"k", row, 0, offset) for offset, row in enumerate(rows)])
    assert [one["r"] for one in found] == ["xb", "aab", None, None, None, None, None]
    assert {one["e"] for one in found} == {None}
