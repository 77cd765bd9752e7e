"""What Spark would cast in silence is refused, by the types that it gives the operands."""

from collections.abc import Sequence

import pytest
from pyspark.sql import types

from spark_streams.sql.errors import SqlError
from spark_streams.sql.functions.allowed import FUNCTIONS
from spark_streams.sql.functions.casts import spark_type
from spark_streams.sql.functions.patterns import MATCHED
from spark_streams.sql.text import tree
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.numbers import ARGUMENTS
from spark_streams.sql.types.resolve import resolve
from spark_streams.sql.types.strict import require

COLUMNS: dict[str, types.DataType] = {
    "s": types.StringType(),
    "i": types.IntegerType(),
    "d": types.DoubleType(),
    "b": types.BooleanType(),
    "x": types.BinaryType(),
    "day": types.DateType(),
    "at": types.TimestampType(),
    "loc": types.TimestampNTZType(),
    "t": types.TimeType(6),
    "took": types.DayTimeIntervalType(),
    "tags": types.ArrayType(types.StringType()),
    "days": types.ArrayType(types.DateType()),
    "ns": types.ArrayType(types.IntegerType()),
    "r": types.StructType().add("a", types.StringType()),
    "q": types.StructType().add("a", types.IntegerType()),
}
MOMENTS = {"date": "day", "timestamp": "at", "timestamp_ntz": "loc"}


def kind(node: tree.Node) -> types.DataType:
    """The type that Spark gives to an expression, as far as these tests have one."""
    match node:
        case tree.Column():
            return COLUMNS[node.path[0]]
        case tree.Moment():
            return COLUMNS[MOMENTS[node.kind]]
        case tree.Cast():
            return spark_type(node.to)
        case tree.Text():
            return types.StringType()
        case tree.Constant():
            return types.NullType() if node.value is None else types.BooleanType()
        case tree.Number():
            return types.IntegerType()
    raise AssertionError(node)


def check(expression: str) -> None:
    def types_of(nodes: Sequence[tree.Node]) -> list[types.DataType]:
        return list(map(kind, nodes))

    parsed = parse(f"SELECT\n{expression} AS v FROM x c")
    require(resolve(parsed, {"c": list(COLUMNS)}, {}), {}, types_of)


def refused(expression: str) -> str:
    with pytest.raises(SqlError) as error:
        check(expression)
    assert error.value.code == "wrong_type"
    assert str(error.value).startswith("line 2, column ")
    return str(error.value)


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("at IN ('2026-01-31')", "write TIMESTAMP '2026-01-31'"),
        ("at NOT IN (NULL, '2026-01-31T10:00:00Z')", "write TIMESTAMP '2026-01-31T10:00:00Z'"),
        ("loc IN (day, ' 2026-01-31 10:00:00')", "write TIMESTAMP_NTZ '2026-01-31 10:00:00'"),
        ("loc IN ('2026-01-31T10:00:00Z')", "write TIMESTAMP_NTZ '2026-01-31 10:00:00'"),
        ("day IN (DATE '2026-01-31', '2026-02-01')", "write DATE '2026-02-01'"),
        ("day IN ('2026-01-31 10:00:00')", "write DATE '2026-01-31'"),
        ("'2026-01-31' IN (day)", "write DATE '2026-01-31'"),
        ("at IN ('it\\'s')", "write TIMESTAMP '2026-01-31 10:00:00'"),
        ("at IN (s)", "write CAST(s AS timestamp)"),
        ("i IN (1, '2')", "write a number without quotes"),
        ("t IN ('12:30')", "write CAST(t AS string), which is a text such as '12:30:00'"),
        ("s IN (t)", "write CAST(t AS string), which is a text such as '12:30:00'"),
        ("took IN (s)", "write an interval, such as INTERVAL 1 DAY"),
        ("days IN (tags)", "write CAST(tags AS array<date>)"),
        ("tags NOT IN (tags, ns)", "write CAST(tags AS array<int>)"),
        ("q IN (r)", "write CAST(r AS struct<a:int>)"),
    ],
)
def test_what_in_would_compare_as_texts_is_refused(expression: str, instead: str) -> None:
    assert refused(expression).endswith(instead)


@pytest.mark.parametrize(
    "expression",
    [
        "at IN (TIMESTAMP '2026-01-31 10:00:00', day, loc)",
        "day NOT IN (DATE '2026-01-31', NULL)",
        "loc IN (TIMESTAMP_NTZ '2026-01-31')",
        "i IN (1, d) AND s IN ('a', s) AND t IN (t) AND took IN (took) AND x IN (x) AND b IN (b)",
        "tags IN (tags) AND days IN (days) AND r IN (r)",
        "at = '2026-01-31' AND at BETWEEN '2026-01-31' AND '2026-01-31T10:00:00Z'",
        "CASE day WHEN '2026-01-31' THEN 1 END",
        "nullif(at, '2026-01-31')",
        "decode(at, '2026-01-31', 1)",
    ],
)
def test_what_is_compared_by_its_type_is_not_refused(expression: str) -> None:
    check(expression)


@pytest.mark.parametrize("what", ["TRUE", "FALSE"])
@pytest.mark.parametrize("given", ["s", "'true'", "i", "d"])
def test_what_is_tested_by_is_true_is_a_condition(given: str, what: str) -> None:
    for word in ("IS", "IS NOT"):
        told = f"and a condition is expected: write CAST({given} AS boolean)"
        assert refused(f"{given} {word} {what}").endswith(told)
        check(f"b {word} {what} AND NULL {word} {what} AND CAST({given} AS BOOLEAN) {word} {what}")
    check(f"{given} IS NULL")


@pytest.mark.parametrize("sign", ["<<", ">>"])
def test_a_string_is_not_shifted(sign: str) -> None:
    assert refused(f"s {sign} 1").endswith("a number is expected: write CAST(s AS int)")
    assert refused(f"i {sign} '1'").endswith("write a number without quotes")
    check(f"i {sign} 1")


def call(name: str, at: int, given: str) -> str:
    """A call with this argument at an index; all others are null, and patterns stand there."""
    args = ["NULL"] * max(FUNCTIONS[name].least, at + 1)
    if name in MATCHED:
        args[1] = "'(a)'"
    return f"{name}({', '.join([*args[:at], given, *args[at + 1 :]])})"


BOUNDED = {("lpad", 1), ("rpad", 1), ("repeat", 1), ("space", 0)}
"""Arguments that have to be numbers that stand in the text."""


@pytest.mark.parametrize(("name", "at"), sorted(ARGUMENTS.keys() - BOUNDED))
def test_a_string_is_no_argument_that_spark_casts_to_a_number(name: str, at: int) -> None:
    told = f"s is a string, and a number is expected: write CAST(s AS {ARGUMENTS[name, at]})"
    assert refused(call(name, at, "s")).endswith(told)
    check(call(name, at, "i"))


@pytest.mark.parametrize(("name", "at"), sorted(BOUNDED))
def test_how_often_or_how_long_is_a_number_of_the_text(name: str, at: int) -> None:
    assert (name, at) in ARGUMENTS
    for given in ("s", "'3'"):
        with pytest.raises(SqlError, match=f"{name}"):
            check(call(name, at, given))


@pytest.mark.parametrize(
    "expression",
    ["int(s)", "hex(s)", "conv(s, 10, 16)", "date_add(s, i)", "year(s)", "md5(s)", "nvl(s, i)",
     "elt(i, s, s)", "zeroifnull(s)", "to_number(s, '9')", "substr(s, i)", "decode(x, 'UTF-8')"],
)  # fmt: skip
def test_an_argument_that_may_be_a_string_is_not_refused(expression: str) -> None:
    check(expression)


def test_every_argument_is_one_of_a_function_that_may_be_called() -> None:
    assert all(at < FUNCTIONS[name].most for name, at in ARGUMENTS)


def test_a_length_of_a_constant_in_a_lambda_is_not_taken_for_a_time() -> None:
    check("transform(tags, one -> left(one, length('abc')))")
