"""The worst texts of the largest size: their time and memory follow from their length alone.

The bounds are far above what was measured (decision 0019): twenty times the time, three times the
memory. What is quadratic or worse is far beyond them.
"""

import time
import tracemalloc
from contextlib import suppress

import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.functions.growth import MOST_LAMBDAS
from spark_streams.sql.text.parse import MOST_JOINS, parse
from spark_streams.sql.text.words import DEEPEST, LONGEST, MOST_WORDS
from spark_streams.sql.types.resolve import resolve

MOST_S, MOST_BYTES = 5.0, 16_000_000
CEILING = DEEPEST - 4
FORMS = {
    "columns": ("SELECT a", ",a", " FROM t"),
    "stars": ("SELECT *", ",*", " FROM t"),
    "except": ("SELECT * EXCEPT (a", ",c9", ") FROM t"),
    "unknown names": ("SELECT a FROM t WHERE a IN (b", ",zz", ")"),
    "and": ("SELECT a FROM t WHERE a", " AND a", ""),
    "and or": ("SELECT a FROM t WHERE a", " AND a OR a", ""),
    "comparisons": ("SELECT a FROM t WHERE a", " OR a=a", ""),
    "in": ("SELECT a FROM t WHERE a IN (1", ",1", ")"),
    "between": ("SELECT a FROM t WHERE a", " AND a BETWEEN 1 AND 2", ""),
    "concat": ("SELECT concat_ws(a", ",a", ") AS x FROM t"),
    "struct": ("SELECT struct(a", ",a", ") AS x FROM t"),
    "map": ("SELECT map(a,a", ",a,a", ") AS x FROM t"),
    "case": ("SELECT CASE ", " WHEN a THEN a", " END AS x FROM t"),
    "parentheses": ("SELECT a", f",{'(' * CEILING}a{')' * CEILING} AS x", " FROM t"),
    "not": ("SELECT a", f",{'NOT ' * CEILING}a AS x", " FROM t"),
    "calls": ("SELECT a", f",{'upper(' * CEILING}a{')' * CEILING} AS x", " FROM t"),
    "lambdas": ("SELECT a", f",{'transform(a, x -> ' * 2}x)) AS x", " FROM t"),
    "cases": ("SELECT a", f",{'CASE WHEN a THEN ' * 14}a{' END' * 14} AS x", " FROM t"),
    "operators": ("SELECT a", f",{'+'.join('a' * 32)} AS x", " FROM t"),
    "items": ("SELECT a", f",a{'[0]' * 30} AS x", " FROM t"),
    "casts": ("SELECT a", f",a{'::int' * 30} AS x", " FROM t"),
    "types": ("SELECT a", f",CAST(a AS {'ARRAY<' * 7}INT{'>' * 7}) AS x", " FROM t"),
    "structs": ("SELECT CAST(a AS STRUCT<x: INT", ",x: INT", ">) AS x FROM t"),
    "dates": ("SELECT a", ",DATE '2026-01-01' AS x", " FROM t"),
    "joins": ("SELECT a FROM t", " JOIN u ON a", ""),
    "dots": ("SELECT t", ".a", " AS x FROM t"),
    "escapes": ("SELECT '", "\\101", "' AS x FROM t"),
    "open string": ("SELECT '", "a", ""),
    "open comment": ("SELECT /*", "*", ""),
    "comments": ("SELECT ", "/**/", "a FROM t"),
    "blanks": ("SELECT ", " ", "a FROM t"),
    "digits": ("SELECT ", "1", " AS x FROM t"),
    "signs": ("SELECT ", "- ", "a AS x FROM t"),
    "open parentheses": ("SELECT ", "(", "a FROM t"),
    "open cases": ("SELECT ", "CASE WHEN ", "a FROM t"),
    "quotes": ("SELECT `", "``", "` FROM t"),
    "semicolons": ("SELECT a FROM t", ";", ""),
}
"""What begins a text, what is repeated in it, what ends it."""
WIDE = ["a", *(f"c{number}" for number in range(4999))]


def read(text: str) -> None:
    with suppress(SqlError):
        resolve(parse(text), {"t": WIDE, "u": WIDE}, {"u": ["a"]})


def largest(form: str) -> str:
    """The form with as many repetitions as characters and words allow."""
    head, unit, tail = FORMS[form]
    times = (LONGEST - len(head) - len(tail)) // len(unit)
    text = head + unit * times + tail
    with suppress(SqlError):
        parse(text)
        return text
    # too many words: as a word is at least a character, this is not far from the most
    words = max(1, len([one for one in unit if not one.isalnum() and one != " "]) + unit.count("a"))
    return head + unit * min(times, (MOST_WORDS - 40) // (2 * words)) + tail


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_text_of_a_form_is_read_in_bounded_time(form: str) -> None:
    head, unit, tail = FORMS[form]
    most = head + unit * ((LONGEST - len(head) - len(tail)) // len(unit)) + tail
    for text in (largest(form), most):
        began = time.process_time()
        read(text)
        assert time.process_time() - began < MOST_S


@pytest.mark.parametrize("form", ["stars", "and", "case", "casts", "escapes", "open string"])
def test_the_largest_text_of_a_form_is_read_in_bounded_memory(form: str) -> None:
    text = largest(form)
    tracemalloc.start()
    read(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_BYTES


def test_a_text_beyond_the_largest_costs_nothing() -> None:
    began = time.process_time()
    with pytest.raises(SqlError, match=str(LONGEST)):
        parse("(" * 50_000_000)
    assert time.process_time() - began < 1


def test_a_star_twice_is_refused_at_its_first_column() -> None:
    with pytest.raises(SqlError, match="two columns a") as caught:
        resolve(parse("SELECT *, * FROM t"), {"t": WIDE}, {})
    assert caught.value.code == "duplicate_column"


def test_columns_that_differ_in_case_only_are_two_columns() -> None:
    with pytest.raises(SqlError, match="two columns"):
        resolve(parse("SELECT * FROM t"), {"t": ["A", "a"]}, {})
    [out] = resolve(parse("SELECT a FROM t"), {"t": ["A", "a"]}, {}).out
    assert out.inputs[0].column == "A"


def test_more_joins_than_the_most_are_refused() -> None:
    joins = [f" JOIN u{number} ON t.a = u{number}.a" for number in range(MOST_JOINS + 1)]
    parse("SELECT t.a FROM t" + "".join(joins[:-1]))
    with pytest.raises(SqlError, match=str(MOST_JOINS)):
        parse("SELECT t.a FROM t" + "".join(joins))


def test_more_lambdas_inside_each_other_than_the_most_are_refused() -> None:
    """What they may need took minutes to find with twelve, and 3.5 times as long with each more."""

    def text(count: int) -> str:
        inner = "a IS NULL"
        for level in range(count):
            inner = f"exists(a, x{level} -> {inner})"
        return f"SELECT {inner} AS v FROM t"

    parse(text(MOST_LAMBDAS))
    with pytest.raises(SqlError, match=f"more than {MOST_LAMBDAS} lambdas") as refused:
        parse(text(MOST_LAMBDAS + 1))
    assert refused.value.code == "sql_not_supported"
