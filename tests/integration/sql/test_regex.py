"""Regular expressions as they are compiled, against Spark's own: values on strings that differ."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_streams.sql.errors import SqlError
from spark_streams.sql.regex import RegexError
from spark_streams.sql.regex import parse as parse_regex
from spark_streams.sql.running.compiled import compiled
from spark_streams.sql.running.work import SETTINGS
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve
from tests.regex_cases import COMMON, PATTERNS, STRINGS, TEXTS

pytestmark = pytest.mark.platform

USES = [
    "s RLIKE {0}", "regexp_instr(s, {0})", "regexp_substr(s, {0})", "regexp_count(s, {0})",
    "regexp_extract_all(s, {0}, 0)", "regexp_replace(s, {0}, '<\\\\$>')",
    "regexp_replace(s, {0}, '<$0>')", "split(s, {0})", "split(s, {0}, 2)",
    "regexp_replace(s, {0}, by)",
]  # fmt: skip
USES_OF_GROUPS = [
    "regexp_extract(s, {0}, {1})",
    "regexp_extract_all(s, {0}, {1})",
    "regexp_replace(s, {0}, '[${1}0]')",
]
LIKES = [
    "s LIKE '%a%b%'", "s LIKE '_%_%,'", "s LIKE '%_'", "s LIKE 'a%b%\\n'", "s LIKE '%\\r%\\n%'",
    "s ILIKE '%A%B'", "s ILIKE '%\u00c4%_'", "s LIKE '!%%!_%' ESCAPE '!'", "s LIKE '%,%,%'",
    "s LIKE '\U0001f600%'", "s LIKE '%\U0001f600%'", "s LIKE '_'", "s LIKE '__'", "s LIKE ''",
    "s ILIKE '%k%k%'", "s ILIKE 'k'", "s LIKE '%.%*%'", "s LIKE '%a%%b%'",
]  # fmt: skip


@pytest.fixture
def configured(spark: Any) -> Iterator[Any]:
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    spark.catalog.dropTempView("regexes")


def expressions(pattern: str) -> list[str]:
    """The calls with a pattern that a statement may have."""
    try:
        groups = parse_regex(pattern).groups
    except RegexError:
        return []
    quoted = f"r'{pattern}'"
    texts = [one.format(quoted, 0) for one in USES]
    texts += [one.format(quoted, group) for one in USES_OF_GROUPS for group in range(1, groups + 1)]
    return [one for one in texts if is_allowed(one)]


def is_allowed(text: str) -> bool:
    try:
        parse(f"SELECT {text} AS v FROM c")
    except SqlError:
        return False
    return True


def ours(text: str) -> Any:
    [out] = resolve(parse(f"SELECT {text} AS v FROM c"), {"c": ["s", "by"]}, {}).out
    return compiled(out.expression, {"c": "__source0"}).alias("v")


def differences(spark: Any, texts: Sequence[str], strings: Sequence[str]) -> list[str]:
    """What a call gives that Spark's own does not, for each string."""
    from pyspark.sql.connect import functions as f

    rows = spark.createDataFrame([(one, f"<{one[:1]}>") for one in strings], "s string, by string")
    rows.createOrReplaceTempView("regexes")
    source = rows.select(f.struct("s", "by").alias("__source0"))
    found = []
    size = 60
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        theirs = spark.sql(f"SELECT {', '.join(part)} FROM regexes").collect()
        made = source.select(*map(ours, part)).collect()
        for string, expected, got in zip(strings, theirs, made, strict=True):
            found += [
                f"{text} of {string!r}: {other!r} is no {one!r}"
                for text, one, other in zip(part, expected, got, strict=True)
                if one != other
            ]
    return found


def test_common_patterns_give_what_spark_gives(configured: Any) -> None:
    texts = [text for pattern in COMMON for text in expressions(pattern)]
    assert len(texts) > 5 * len(COMMON)
    assert differences(configured, texts, STRINGS) == []


def test_patterns_of_like_give_what_spark_gives(configured: Any) -> None:
    assert all(map(is_allowed, LIKES))
    assert differences(configured, LIKES, STRINGS) == []


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(PATTERNS, min_size=25, max_size=25, unique=True),
    st.lists(TEXTS, min_size=20, max_size=20, unique=True),
)
def test_random_patterns_give_what_spark_gives(
    configured: Any, patterns: list[str], strings: list[str]
) -> None:
    texts = [text for pattern in patterns for text in expressions(pattern)]
    # what a string ends with is what patterns differ by
    ended = [f"{one}{end}" for one in strings for end in ("", "\n", "\r\n", "\u2028")]
    assert not texts or differences(configured, texts, ended) == []
