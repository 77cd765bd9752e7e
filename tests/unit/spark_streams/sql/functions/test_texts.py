"""Which strings are looked at before a function reads them as a text of Java's."""

import pytest

from spark_streams.jvm import VALID_TEXTS
from spark_streams.session import load
from spark_streams.sql.functions.allowed import FUNCTIONS
from spark_streams.sql.functions.texts import BYTEWISE
from spark_streams.sql.running.compiled import compiled
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve


def column(text: str) -> str:
    """How Spark's client writes the column of an expression over `s`."""
    load()
    query = resolve(parse(f"SELECT {text} AS v FROM x c"), {"c": ["s", "t"]}, {})
    return str(compiled(query.out[0].expression, {"c": "c"}))


@pytest.mark.parametrize(
    "text",
    [
        "upper(s)", "initcap(s)", "translate(s, 'a', 'b')", "to_json(named_struct('s', s))",
        "url_encode(s)", "str_to_map(s)", "mask(s)", "s LIKE 'a%'", "s ILIKE '%a%b%'",
        "s NOT LIKE 'a%'", "s RLIKE 'a'", "regexp_replace(s, 'x', 'y')", "split(s, ',')",
        "split_part(s, ',', 1)", "upper(concat(s, 'a'))", "transform(array(s), x -> upper(x))",
        "upper(CASE WHEN s > 'a' THEN s END)", "lower(upper(s))",
    ],
)  # fmt: skip
def test_a_string_that_becomes_one_of_javas_is_checked_once(text: str) -> None:
    assert column(text).count(f"{VALID_TEXTS}(") == 1


def test_each_string_of_a_call_is_checked() -> None:
    assert column("regexp_replace(s, 'x', t)").count(f"{VALID_TEXTS}(") == 2


@pytest.mark.parametrize(
    "text",
    [
        "concat(s, t)", "s || t", "substring(s, 1, 2)", "s = t", "length(s)", "hex(s)", "md5(s)",
        "make_valid_utf8(s)", "is_valid_utf8(s)", "try_validate_utf8(s)", "octet_length(s)",
        "CAST(s AS BINARY)", "coalesce(s, t)", "to_date(s)", "upper('a')", "s IN ('a', t)",
    ],
)  # fmt: skip
def test_what_reads_bytes_takes_any_string(text: str) -> None:
    assert VALID_TEXTS not in column(text)


def test_a_function_that_is_not_known_to_read_bytes_is_checked() -> None:
    """A list of the others would miss the next one."""
    assert set(FUNCTIONS) - BYTEWISE >= {"lower", "ucase", "encode", "parse_url", "url_decode"}
    assert set(FUNCTIONS) >= BYTEWISE
