"""Patterns in Spark: the verdicts of Python, in time that is linear in the string."""

from typing import Any

import pytest

from mesh_events.schema.linear_patterns import LONGEST_TEXT, linear_pattern
from spark_streams.jvm import MATCHES
from tests.integration.sql.records import Read, Statement, bare, record, wire
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


@pytest.mark.sample(2)
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
    "split(s, '(a|aa)+b')",
    "regexp_extract_all(s, '(a+)+b')",
    "regexp_instr(s, '(a+)+b')",
    "regexp_substr(s, '(a+)+b')",
    "s LIKE '%a%a%a%a%a%a%b'",
    "s ILIKE '%A%a%a%a%a%a%b'",
]


TEXT = record("Value", s="string")


def run(spark: Any, text: str, *values: str) -> list[Read]:
    made = Statement(spark, text, {"c": {7: TEXT}}, {})
    rows = [(b"k", wire(7, TEXT, {"s": one}), 0, at) for at, one in enumerate(values)]
    return made.run(rows)


def reason(one: Read) -> str:
    assert one.topic == "east.out.dead"
    return dict(one.headers)["mesh.reason"].decode()


def test_functions_end_for_a_pattern_that_others_take_years_for(spark: Any) -> None:
    columns = ", ".join(f"{text} AS v{number}" for number, text in enumerate(SLOW))
    text = "a" * 5_000 + "!"
    [found] = run(spark, f"SELECT {columns} FROM x c", text)
    assert list(found.value.values()) == [
        *(False, False, "", text, [text], [], 0, None, False, False)
    ]


LONG = "7" * 100_000 + "secret"
"""A text of which the pattern takes more steps than a record may take."""
HAS = "RLIKE '[0-9]{900}secret'"
TOO_MANY_STEPS = [
    f"SELECT s {HAS} AS v FROM x c",
    f"SELECT s FROM x c WHERE s {HAS}",
    f"SELECT s FROM x c WHERE NOT s {HAS}",
    f"SELECT CASE WHEN s {HAS} THEN 'block' ELSE 'ok' END AS v FROM x c",
    f"SELECT coalesce(s {HAS}, false) OR s {HAS} AS v FROM x c",
    f"SELECT exists(array('a', s), x -> x {HAS}) AS v FROM x c",
    f"SELECT filter(array(s), x -> NOT concat(x, x) {HAS}) AS v FROM x c",
    "SELECT regexp_like(regexp_replace(s, '[0-9]{900}secret', ''), 'a') AS v FROM x c",
    "SELECT forall(array(s), x -> regexp_replace(x, '7.*b|7', '') RLIKE '8') AS v FROM x c",
    "SELECT regexp_count(s, '7.*b|7') AS v FROM x c",
    "SELECT regexp_extract(s, '[0-9]{900}secret', 0) AS v FROM x c",
    "SELECT regexp_extract_all(s, '7.*b|7', 0) AS v FROM x c",
    "SELECT regexp_instr(s, '[0-9]{900}secret') AS v FROM x c",
    "SELECT regexp_substr(s, '[0-9]{900}secret') AS v FROM x c",
    "SELECT split(s, '7.*b|7') AS v FROM x c",
    f"SELECT s LIKE '%{'7' * 900}%secret' AS v FROM x c",
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", TOO_MANY_STEPS)
def test_a_text_that_takes_too_many_steps_is_a_dead_letter_and_no_null(
    spark: Any, text: str
) -> None:
    short = "7" * 900 + "secret"
    first, found, last = run(spark, text.replace("WHERE NOT", "WHERE"), short, LONG, short)
    assert [first.topic, last.topic] == ["east.out", "east.out"]
    assert "PATTERN_TAKES_TOO_MANY_STEPS:" in reason(found)
    assert "secret" not in reason(found)
    assert found.value == wire(7, TEXT, {"s": LONG}), "the record as it was"
    [found] = run(spark, text, LONG)
    assert "PATTERN_TAKES_TOO_MANY_STEPS:" in reason(found)


def test_what_a_condition_passes_over_is_not_matched(spark: Any) -> None:
    text = f"SELECT s {HAS} AS v FROM x c WHERE length(s) < 10000"
    assert [one.value for one in run(spark, text, LONG, "a")] == [{"v": False}]
    text = f"SELECT length(s) < 10000 AND s {HAS} AS v FROM x c"
    assert [one.value for one in run(spark, text, LONG)] == [{"v": False}]


@pytest.mark.sample(2)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize(
    "condition",
    [
        "regexp_replace(c.s, '7.*b|7', '') = u._key",
        "left(c.s, 1) = u._key AND regexp_count(concat(u.name, c.s), '7.*b|7') > 0",
    ],
)
def test_a_join_by_a_text_that_takes_too_many_steps_drops_no_record(
    spark: Any, join: str, condition: str
) -> None:
    from pyspark.sql.connect import functions as f

    row = record("Row", name="string")
    made = Statement(
        spark,
        f"SELECT u.name FROM x c {join} y u ON {condition}",
        {"c": {7: TEXT}, "u": {8: row}},
        {"u": "string"},
    )
    key, there = bare("string", "7"), bare(row, {"name": "a"})
    [found] = made.run(
        [(b"k", wire(7, TEXT, {"s": LONG}), 0, 0)],
        lambda _, asked: f.when(asked == f.lit(key), f.lit(there)),
    )
    assert "PATTERN_TAKES_TOO_MANY_STEPS:" in reason(found)


def test_a_text_that_is_too_long_for_its_schemas_pattern_is_a_dead_letter(spark: Any) -> None:
    kind = {"type": "string", "logicalType": "validatedString", "pattern": "a*"}
    schema = record("Value", s=kind)
    made = Statement(spark, "SELECT s FROM x c", {"c": {7: schema}}, {})
    [found] = made.run([(b"k", wire(7, schema, {"s": "a" * (LONGEST_TEXT + 1)}), 0, 0)])
    assert reason(found) == "s does not match its pattern a*"


def test_a_group_that_a_pattern_does_not_have_is_a_dead_letter(spark: Any) -> None:
    schema = record("Value", s="string", by="string")
    made = Statement(
        spark, "SELECT regexp_replace(s, 'a', by) AS r FROM x c", {"c": {7: schema}}, {}
    )
    given = {
        "x": "xb",
        "$0$0": "aab",
        "$1": "NO_SUCH_GROUP",
        "$": "INVALID_REPLACEMENT",
        "a$b": "INVALID_REPLACEMENT",
        "${a}": "INVALID_REPLACEMENT",
        "a\\": "INVALID_REPLACEMENT",
    }
    rows = [wire(7, schema, {"s": "ab", "by": by}) for by in given]
    found = made.run([(b"k", row, 0, offset) for offset, row in enumerate(rows)])
    assert [one.value for one in found[:2]] == [{"r": "xb"}, {"r": "aab"}]
    for one, why in zip(found[2:], list(given.values())[2:], strict=True):
        assert f" {why}:" in reason(one)
    text = "SELECT regexp_extract(s, '(a)', length(s)) AS e FROM x c"
    [found_one, found_none] = run(spark, text, "a", "ab")
    assert found_one.value == {"e": "a"}
    assert " NO_SUCH_GROUP:" in reason(found_none)
