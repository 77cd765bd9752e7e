"""Records for which a statement would need too much memory or time, on a real Spark server."""

from typing import Any

import pytest

from spark_streams.sql.growing.limits import MOST_BYTES
from tests.integration.sql.records import Read, Statement, record, wire

pytestmark = pytest.mark.platform

MB = 1_000_000
VALUE = record("Value", s="string", t="string", a={"type": "array", "items": "string"})
GROWING = {
    "transform(split(s, ''), x -> s)": "transform",
    "length(repeat(s, 9999))": "repeat",
    "length(replace(s, 'a', t))": "replace",
    "length(regexp_replace(s, '.', t))": "regexp_replace",
    "length(array_join(split(s, ''), t))": "array_join",
    "array_repeat(s, 9999)": "array_repeat",
    "zip_with(split(s, ''), a, (x, y) -> s)": "zip_with",
    "levenshtein(s, t)": "levenshtein",
    "btrim(s, t)": "btrim",
    "contains(s, t)": "contains",
    "CAST(s AS decimal(38,0))": "CAST",
    "size(transform(split(s, ''), x -> length(s)))": "transform",
}
"""Text -> the function that is named. Without a bound a batch takes a minute, or ends Spark."""


def run(spark: Any, text: str, *values: dict[str, Any]) -> list[Read]:
    made = Statement(spark, text, {"c": {7: VALUE}}, {})
    rows = [
        (b"k", wire(7, VALUE, {"s": "", "t": "", "a": [], **one}), 0, offset)
        for offset, one in enumerate(values)
    ]
    return made.run(rows)


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", GROWING)
def test_a_record_that_would_need_too_much_goes_to_the_dead_letters(spark: Any, text: str) -> None:
    large = {"s": "a" * MB, "t": "a" * (MB // 2) + "b", "a": ["x"]}
    found = run(spark, f"SELECT {text} AS v FROM x c", {"s": "ab"}, large, {"s": "ab"})
    assert [one.topic for one in found] == ["east.out", "east.out.dead", "east.out"]
    reason = dict(found[1].headers)["mesh.reason"].decode()
    assert reason.startswith(f"{GROWING[text]} would need more than the limits for this record of ")
    assert found[1].value[:1] == b"\0", "the record as it was"
    assert len(found[1].value) > MB


def test_a_condition_that_would_need_too_much_drops_no_record(spark: Any) -> None:
    large = {"s": "a" * MB, "t": "b" * MB}
    text = "SELECT t FROM x c WHERE levenshtein(s, t) > 3 AND levenshtein(s, t) < 9"
    found = run(spark, text, large, {"s": "abcd"}, {"s": "abcd", "t": "abcd"})
    assert [one.topic for one in found] == ["east.out.dead", "east.out"]


def test_a_record_that_is_passed_over_is_no_dead_letter(spark: Any) -> None:
    large = {"s": "a" * MB, "t": "b" * MB}
    text = "SELECT levenshtein(s, t) AS v FROM x c WHERE octet_length(s) < 1000"
    [found] = run(spark, text, large, {"s": "abcd"})
    assert found.value == {"v": 4}


def test_the_limit_counts_all_columns_of_a_record_together(spark: Any) -> None:
    columns = ", ".join(f"s AS c{number}" for number in range(40))
    [found] = run(spark, f"SELECT {columns} FROM x c", {"s": "a" * MB})
    assert found.topic == "east.out.dead"
    [found] = run(spark, f"SELECT {columns} FROM x c", {"s": "a" * (MB // 10)})
    assert found.value["c39"] == "a" * (MB // 10)


def test_what_fits_is_computed_also_for_a_large_record(spark: Any) -> None:
    texts = {
        "upper(s)": "A" * MB,
        "length(repeat(t, 9000))": 9000 * 1000,
        "length(replace(s, 'a', 'bb'))": 2 * MB,
        "length(replace(t, 'b', t))": 1000 * 1000,
        "levenshtein(t, t)": 0,
        "size(transform(a, x -> concat(x, t)))": 100,
        "size(split(s, ','))": 1,
        "concat(s, s) = s": False,
    }
    columns = ", ".join(f"{text} AS v{number}" for number, text in enumerate(texts))
    values = {"s": "a" * MB, "t": "b" * 1000, "a": ["x"] * 100}
    [found] = run(spark, f"SELECT {columns} FROM x c", values)
    assert found.topic == "east.out", dict(found.headers)
    assert list(found.value.values()) == list(texts.values())
    assert MOST_BYTES > 9000 * 1000


def test_other_statements_go_on_beside_one_that_grows(spark: Any) -> None:
    texts = [text for text in GROWING if "transform" in text or "repeat" in text]
    columns = ", ".join(f"{text} AS v{number}" for number, text in enumerate(texts))
    for _ in range(3):
        [dead] = run(spark, f"SELECT {columns} FROM x c", {"s": "a" * MB, "t": "b"})
        assert dead.topic == "east.out.dead"
        [good] = run(spark, "SELECT s FROM x c", {"s": "good"})
        assert good.value == {"s": "good"}
