"""Regular expressions in a statement: refused where they could stop the domain's server."""

import re

import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.functions.patterns import _is_simple, _like_parts, _like_pattern
from spark_streams.sql.text.parse import parse

REFUSED = [
    ("s RLIKE t", "t", "has to stand in the text"),
    ("regexp_like(s, t)", "t)", "has to stand in the text"),
    ("regexp_like(s, concat('a', 'b'))", "concat", "has to stand in the text"),
    ("split(s, t)", "t)", "has to stand in the text"),
    ("s LIKE t", "t", "has to stand in the text"),
    ("s ILIKE t", "t", "has to stand in the text"),
    (r"s RLIKE r'(a)\1'", "r'", r"character 4 of the pattern: \\1"),
    ("regexp_replace(s, '(?=a)b', '')", "'(?=", "character 1 of the pattern"),
    ("regexp_extract(s, '[a-z', 0)", "'[", "has no ]"),
    ("regexp_count(s, 'a{1001}')", "'a", "from 1 to 1000"),
    (r"regexp_instr(s, r'\p{L}')", "r'", "ranges"),
    ("regexp_substr(s, 'a*+')", "'a", "possessive"),
    ("regexp_extract_all(s, '(?<!a)b')", "'(", "not supported"),
    ("s RLIKE '[a-z&&[^b]]'", "'[", "&& intersects"),
    (r"s RLIKE r'\bfoo\b'", "r'", "write what stands beside the word"),
    (r"s RLIKE r'a\s$'", "r'", "line terminator"),
    ("regexp_replace(s, 'a*', 'b')", "'a*", "also matches an empty text"),
    ("regexp_count(s, '')", "'')", "empty"),
    ("split(s, 'a$')", "'a", "splits no text"),
    ("regexp_substr(s, 'a$|b$')", "'a", "several alternatives"),
    ("regexp_extract(s, '(a)$', length(s))", "'(", "number of the group"),
    ("regexp_extract(s, '(a)', 2)", "2", "no group 2: it has 1, and 0 is the whole match"),
    ("regexp_extract(s, '(a)', -1)", "-1", "no group -1: it has 1"),
    ("regexp_extract(s, 'a', 1)", "1", "no group 1: 0 is the whole match"),
    ("regexp_extract(s, '(?:a)')", "'(", "no group 1: 0 is the whole match"),
    ("regexp_extract(s, '(a)(b)', 4294967297)", "4294967297", "no group 4294967297: it has 2"),
    ("regexp_extract_all(s, '((a)b)', 3)", "3", "no group 3: it has 2"),
    ("regexp_extract_all(s, 'a')", "'a", "no group 1: 0 is the whole match"),
    ("transform(a, x -> regexp_extract(x, 'a', 1))", "1", "no group 1"),
    ("regexp_replace(s, 'a', '$1')", "'$", "no group 1"),
    ("regexp_replace(s, 'a', 'b$')", "'b", "names no group"),
    ("regexp_replace(s, 'a$', t)", "t)", "replacement stands in the text"),
    ("regexp_replace(s, 'a$', '<$0>')", "'<", "write a group"),
    ("s LIKE '%a%\U0001f600'", "'%", "beyond U"),
    ("s ILIKE '%a%\u03a3'", "'%", "lower case"),
    ("s LIKE '" + "%a" * 501 + "'", "'%", "1000 characters"),
    (r"s LIKE r'%a\b%c%'", "r'", "stands before"),
    ("s LIKE 'ab!' ESCAPE '!'", "'ab", "stands before"),
    ("parse_url(s, 'QUERY', t)", "t)", "stands in the text"),
    ("parse_url(s, 'QUERY', '(a+)+$')", "'(", "stands in the text"),
    ("str_to_map(s, '(a+)+$')", "'(", "stands in the text"),
    ("str_to_map(s, ',', t)", "t)", "stands in the text"),
    ("transform(a, x -> x RLIKE x)", "x)", "has to stand in the text"),
]


@pytest.mark.parametrize(("text", "part", "reason"), REFUSED, ids=[one for one, *_ in REFUSED])
def test_a_pattern_that_could_stop_the_server_is_refused(text: str, part: str, reason: str) -> None:
    for whole in (f"SELECT {text} AS v FROM c", f"SELECT 1 AS v FROM c WHERE ({text}) IS NULL"):
        with pytest.raises(SqlError, match=reason) as refused:
            parse(whole)
        column = whole.index(text) + text.rindex(part) + 1
        assert str(refused.value).startswith(f"line 1, column {column}: ")


@pytest.mark.parametrize(
    "text",
    [
        "s RLIKE '(a+)+$'",
        "regexp_replace(s, '(a|aa)+b', t)",
        r"regexp_replace(s, r'^\s+|\s+$', '')",
        "regexp_replace(s, '(a)(b)$', '$2$1')",
        "regexp_extract(s, '(a)', length(s))",
        "regexp_extract(s, '(.*)$', 0)",
        "s ILIKE '%\u00c4%a%'",
        "split(s, '[,;] *', 3)",
        "split(s, '')",
        "s LIKE '%a%b_c%'",
        "parse_url(s, 'QUERY', 'user_id')",
        "parse_url(s, 'HOST')",
        r"str_to_map(s, r'\|', ':')",
        "str_to_map(s)",
    ],
)
def test_a_pattern_that_ends_soon_is_taken(text: str) -> None:
    assert parse(f"SELECT {text} AS v FROM c")


@pytest.mark.parametrize(
    ("pattern", "simple"),
    [
        *((one, True) for one in ("a", "a%", "%a", "%a_b%", "a%b", "%%a%%", "%", "")),
        *((one, False) for one in ("%a%b", "a%b%c", "%a%b%")),
    ],
)
def test_spark_matches_a_pattern_of_like_that_is_gone_over_once(
    pattern: str, *, simple: bool
) -> None:
    assert _is_simple(_like_parts(pattern, None)) is simple


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "matches"),
    [
        ("a%b%c", None, "a\nbxc", True),
        ("a%b%c", None, "a\nbxcd", False),
        ("%.%.%", None, "1.2.3", True),
        ("%.%.%", None, "1x2x3", False),
        (r"%\%%\_%", None, "a%b_c", True),
        (r"%\%%\_%", None, "a%bxc", False),
        ("%!%%!!%_", "!", "%a!b", True),
        ("%{ }%[-]%", None, "{ }[-]", True),
    ],
)
def test_a_pattern_of_like_means_the_same_as_an_expression(
    pattern: str, escape: str | None, text: str, *, matches: bool
) -> None:
    from mesh_events.schema.linear_patterns import linear_pattern

    made = _like_pattern(_like_parts(pattern, escape))
    assert linear_pattern(made).is_in(text) is matches
    assert (re.search(made.replace(r"\z", r"\Z"), text) is not None) is matches
