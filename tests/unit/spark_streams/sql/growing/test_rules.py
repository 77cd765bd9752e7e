"""What an expression may need for a record: a bound that is no less than what Spark makes of it."""

import time

import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.functions.allowed import FUNCTIONS
from spark_streams.sql.growing import limits
from spark_streams.sql.growing.rules import Peak, peak
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve
from tests.integration.sql.oracle_cases import CASES
from tests.unit.spark_streams.sql.text.test_bounds import FORMS, WIDE, largest

COLUMNS = [*"stnijldpbxakmr", "day", "at", "loc"]
MB = 1_000_000


def need(text: str, names: int = 0) -> Peak:
    query = resolve(parse(f"SELECT {text} AS v FROM c"), {"c": COLUMNS}, {})
    return peak([one.expression for one in query.out], names)


@pytest.mark.parametrize(
    "text",
    [
        "repeat(s, 9999)",
        "transform(split(s, ''), x -> s)",
        "transform(a, x -> concat(x, s))",
        "transform(sequence(1, 40), x -> s)",
        "array_repeat(s, 9999)",
        "replace(s, 'a', s)",
        "replace(s, 'a', t)",
        "regexp_replace(s, '.', s)",
        "regexp_replace(s, '(.+)', '$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0')",
        "array_join(split(s, ''), s)",
        "concat_ws(s, split(s, ''))",
        "levenshtein(s, t)",
        "contains(s, t)",
        "btrim(s, t)",
        "CAST(s AS decimal(38,0))",
        "decimal(s)",
        "CAST(a AS array<decimal(38,0)>)",
        "CAST(m AS map<string, struct<x: decimal(38,0)>>)",
        "array_distinct(a)",
        "transform(split(s, ''), x -> length(s))",
        "filter(split(s, ''), x -> contains(s, 'b'))",
        "transform_values(m, (k, v) -> s)",
        "zip_with(a, a, (x, y) -> s)",
        "concat(" + ", ".join(["s"] * 20) + ")",
        "array(" + ", ".join(["s"] * 20) + ")",
    ],
)
def test_what_grows_is_not_computed_for_a_record_of_a_megabyte(text: str) -> None:
    assert limits.smallest(need(text)) < MB


@pytest.mark.parametrize(
    "text",
    [
        "s",
        "upper(s)",
        "concat(s, t, 'x')",
        "split(s, ',')",
        "replace(s, 'a', 'bb')",
        "regexp_replace(s, '[0-9]+', '')",
        "transform(split(s, ','), x -> upper(trim(x)))",
        "filter(split(s, ','), x -> x LIKE 'a%')",
        "named_struct('a', s, 'b', t)",
        "array_distinct(split(s, ','))",
        "CAST(substring(s, 1, 20) AS decimal(20,0)) IS NULL AND length(s) > 5",
        "substring(s, 2, 2147483647)",
        "concat(left(s, 5000000), right(s, 5000000))",
    ],
)
def test_what_is_proportional_to_a_record_is_computed_for_a_hundred_kilobytes(text: str) -> None:
    assert limits.smallest(need(text)) >= 100_000


def test_the_result_is_bounded_with_all_its_columns_together() -> None:
    columns = ", ".join(f"s AS c{number}" for number in range(1_000))
    query = resolve(parse(f"SELECT {columns} FROM c"), {"c": ["s"]}, {})
    assert limits.smallest(peak([one.expression for one in query.out])) < 20_000


@pytest.mark.parametrize("number", [10, 300, 500, 5_000])
def test_columns_as_they_are_need_no_more_than_the_record(number: int) -> None:
    columns = [f"c{index}" for index in range(number)]
    query = resolve(parse("SELECT * FROM c"), {"c": columns}, {})
    assert limits.smallest(peak([one.expression for one in query.out])) >= 2 * MB


def test_many_columns_in_a_function_are_bounded_by_the_element_that_they_are_put_into() -> None:
    columns = [f"c{index}" for index in range(500)]
    text = f"SELECT transform(c0, x -> concat(x, {', '.join(columns)})) AS v FROM c"
    query = resolve(parse(text), {"c": columns}, {})
    assert 1_000 < limits.smallest(peak([one.expression for one in query.out])) < 10_000


def test_a_record_of_a_kilobyte_is_computed_whatever_is_asked() -> None:
    for name in ("levenshtein(s, t)", "repeat(s, 9999)", "replace(s, 'a', t)"):
        assert limits.smallest(need(name)) >= 1_000, name


def test_the_function_that_grows_is_named() -> None:
    found = need("concat(upper(s), replace(s, 'a', t))")
    assert limits.cause(found, limits.smallest(found) + 1) == "replace"


def test_json_is_bounded_with_the_names_of_fields() -> None:
    assert limits.smallest(need("to_json(r)", 10_000)) < limits.smallest(need("to_json(r)", 10))


def test_the_longest_path_of_names_counts_records_that_are_named_again() -> None:
    inner = '{"type": "record", "name": "I", "fields": [{"name": "abc", "type": "int"}]}'
    fields = f'[{{"name": "x", "type": {inner}}}, {{"name": "yz", "type": ["null", "I"]}}]'
    assert limits.longest_names([f'{{"type": "record", "name": "R", "fields": {fields}}}']) == 5


def test_the_bound_of_every_function_is_found() -> None:
    assert set(CASES) == set(FUNCTIONS)
    for texts in CASES.values():
        for text in texts:
            assert limits.smallest(need(text)) >= 0, text


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_text_of_a_form_is_bounded_in_bounded_time(form: str) -> None:
    try:
        query = resolve(parse(largest(form)), {"t": WIDE, "u": WIDE}, {"u": ["a"]})
    except SqlError:
        return
    began = time.process_time()
    limits.smallest(peak([one.expression for one in query.out]))
    assert time.process_time() - began < 5
