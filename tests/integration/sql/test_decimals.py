"""Decimals of 30 to 38 digits against Python's own: each operator and function that takes one.

The oracle computes with all digits, and rounds once, HALF_UP, to the type that Spark documents.
"""

import decimal
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any

import pytest

from spark_streams.jvm import ATTEMPT
from spark_streams.sql.running.compiled import compiled
from spark_streams.sql.running.work import SETTINGS
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve

pytestmark = pytest.mark.platform

Kind = tuple[int, int]
"""Precision and scale."""
EXACT = decimal.Context(prec=400, Emax=9999, Emin=-9999)
KINDS: dict[str, Kind] = {
    "a": (38, 0), "b": (38, 10), "c": (38, 38), "e": (35, 5), "g": (34, 2), "h": (30, 20),
    "k": (36, 18),
}  # fmt: skip
DIGITS = "12345678901234567890123456789012345678"
MOST = 38
OUT_OF_RANGE = "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION"
LONG = 2**64


def scaled(digits: int, scale: int) -> Decimal:
    return Decimal(digits).scaleb(-scale, EXACT)


def values(kind: Kind) -> list[Decimal | None]:
    precision, scale = kind
    long, most = int(DIGITS[:precision]), 10**precision - 1
    found = [long, -long, most, -most, 1, -1, 0, 5 * 10 ** (precision - 1), long // 10 * 10 + 5]
    return [*(scaled(one, scale) for one in found), None]


COUNT = 10
ROWS = [
    tuple(values(kind)[(row * (3 if row < COUNT else 7) * (1 + place % 3) + place) % COUNT]
          for place, kind in enumerate(KINDS.values()))
    for row in range(3 * COUNT)
]  # fmt: skip
PAIRS = list(product(KINDS, repeat=2))


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    with decimal.localcontext(EXACT):
        yield


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    from pyspark.sql.connect import functions as f

    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    schema = ", ".join(f"{name} decimal({p},{s})" for name, (p, s) in KINDS.items())
    made = spark.createDataFrame(ROWS, schema)
    return made.select(f.struct(*KINDS).alias("__source0"))


def ours(text: str) -> Any:
    [out] = resolve(parse(f"SELECT {text} AS v FROM c"), {"c": list(KINDS)}, {}).out
    return compiled(out.expression, {"c": "__source0"})


def computed(rows: Any, texts: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """The types of texts, and for each row their values; a text is the condition of an error."""
    from pyspark.sql.connect import functions as f

    columns = [f.call_function(ATTEMPT, ours(text)).alias(f"v{n}") for n, text in enumerate(texts)]
    made = rows.select(*columns)
    kinds = [one.dataType["value"].dataType.simpleString() for one in made.schema.fields]
    return kinds, [[one["fault"] or one["value"] for one in row] for row in made.collect()]


def refused(rows: Any, text: str) -> str:
    """Why Spark's analysis refuses a text, "" if it does not."""
    from pyspark.errors import AnalysisException

    try:
        _ = rows.select(ours(text)).schema
    except AnalysisException as error:
        return str(error)
    return ""


def rounded(value: Decimal, scale: int, rounding: str = decimal.ROUND_HALF_UP) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale, EXACT), rounding, EXACT)


def fits(value: Decimal, kind: Kind) -> bool:
    return value.copy_abs() < Decimal(10) ** (kind[0] - kind[1])


def as_kind(value: Decimal, kind: Kind) -> Decimal | None:
    found = rounded(value, kind[1])
    return found if fits(found, kind) else None


def adjusted(precision: int, scale: int) -> Kind:
    """As Spark documents it: beyond 38 digits those before the point stay, and 6 behind it."""
    if precision <= MOST:
        return precision, scale
    before = precision - scale
    return MOST, max(MOST - before, min(scale, 6))


def wider(one: Kind, other: Kind) -> Kind:
    scale = max(one[1], other[1])
    return max(one[0] - one[1], other[0] - other[1]) + scale, scale


def sum_of(one: Kind, other: Kind) -> Kind:
    precision, scale = wider(one, other)
    return adjusted(precision + 1, scale)


def product_of(one: Kind, other: Kind) -> Kind:
    return adjusted(one[0] + other[0] + 1, one[1] + other[1])


def quotient_of(one: Kind, other: Kind) -> Kind:
    scale = max(6, one[1] + other[0] + 1)
    return adjusted(one[0] - one[1] + other[1] + scale, scale)


def remainder_of(one: Kind, other: Kind) -> Kind:
    scale = max(one[1], other[1])
    return adjusted(min(one[0] - one[1], other[0] - other[1]) + scale, scale)


def remainder(x: Decimal, y: Decimal) -> Decimal:
    return EXACT.remainder(x, y)


def positive_remainder(x: Decimal, y: Decimal) -> Decimal:
    found = remainder(x, y)
    return remainder(EXACT.add(found, y), y) if found < 0 else found


def whole(x: Decimal) -> int:
    """As a BIGINT has it, which wraps."""
    return (int(x) + LONG // 2) % LONG - LONG // 2


Two = Callable[[Decimal, Decimal], Decimal]
ARITHMETIC: dict[str, tuple[Two, Callable[[Kind, Kind], Kind]]] = {
    "{x} + {y}": (EXACT.add, sum_of),
    "{x} - {y}": (EXACT.subtract, sum_of),
    "{x} * {y}": (EXACT.multiply, product_of),
    "{x} / {y}": (EXACT.divide, quotient_of),
    "{x} % {y}": (remainder, remainder_of),
    "try_add({x}, {y})": (EXACT.add, sum_of),
    "try_subtract({x}, {y})": (EXACT.subtract, sum_of),
    "try_multiply({x}, {y})": (EXACT.multiply, product_of),
    "try_divide({x}, {y})": (EXACT.divide, quotient_of),
    "mod({x}, {y})": (remainder, remainder_of),
    "try_mod({x}, {y})": (remainder, remainder_of),
    "pmod({x}, {y})": (positive_remainder, remainder_of),
}
DIVIDES = ("/", "%", "mod", "divide")


def differing(rows: Any, texts: Sequence[str], expected: Callable[[int, Any], Any]) -> list[str]:
    """Each text whose values are not those that `expected` gives for its index and a row."""
    found = []
    kinds, got = computed(rows, texts)
    for number, text in enumerate(texts):
        for row, each in zip(ROWS, got, strict=True):
            wanted = expected(number, dict(zip(KINDS, row, strict=True)))
            if wanted is not ... and (
                each[number] != wanted or type(each[number]) is not type(wanted)
            ):
                found.append(f"{text} {kinds[number]} of {row}: {each[number]!r} is no {wanted!r}")
                break
    return found


@pytest.mark.parametrize("text", ARITHMETIC)
def test_arithmetic_is_exact_and_rounds_once(rows: Any, text: str) -> None:
    of, kind_of = ARITHMETIC[text]
    texts = [text.format(x=x, y=y) for x, y in PAIRS]
    kinds = [kind_of(KINDS[x], KINDS[y]) for x, y in PAIRS]
    assert computed(rows, texts)[0] == [f"decimal({p},{s})" for p, s in kinds]

    def expected(number: int, row: dict[str, Decimal | None]) -> Decimal | None:
        x, y = (row[name] for name in PAIRS[number])
        if x is None or y is None or (not y and any(one in text for one in DIVIDES)):
            return None
        return as_kind(of(x, y), kinds[number])

    assert differing(rows, texts, expected) == []


def test_a_whole_quotient_wraps_as_a_bigint(rows: Any) -> None:
    def expected(number: int, row: dict[str, Decimal | None]) -> int | None:
        x, y = (row[name] for name in PAIRS[number])
        if x is None or not y:
            return None
        found = EXACT.divide_int(x, y)
        kind = KINDS[PAIRS[number][0]][0] - KINDS[PAIRS[number][0]][1] + KINDS[PAIRS[number][1]][1]
        return whole(found) if fits(found, (min(MOST, max(1, kind)), 0)) else None

    assert differing(rows, [f"{x} DIV {y}" for x, y in PAIRS], expected) == []


UNARY: dict[str, Callable[[Decimal], Any]] = {
    "-{x}": lambda x: -x,
    "-(-{x})": lambda x: x,
    "- abs({x})": lambda x: -abs(x),
    "negative({x})": lambda x: -x,
    "abs({x})": abs,
    "abs(negative({x}))": abs,
    "CAST(-{x} AS STRING)": lambda x: str(-x),
    "-array({x})[0]": lambda x: -x,
    "transform(array({x}), v -> -v)[0]": lambda x: -x,
    "transform(array({x}), v -> abs(v))[0]": abs,
    "-named_struct('n', {x}).n": lambda x: -x,
    "+{x}": lambda x: x,
    "positive({x})": lambda x: x,
}


@pytest.mark.parametrize("text", UNARY)
def test_signs_are_exact_and_keep_the_type(rows: Any, text: str) -> None:
    names = list(KINDS)
    texts = [text.format(x=x) for x in names]
    if "STRING" not in text:
        wanted = [f"decimal({p},{s})" for p, s in KINDS.values()]
        assert computed(rows, texts)[0] == wanted

    def expected(number: int, row: dict[str, Decimal | None]) -> Any:
        x = row[names[number]]
        return None if x is None else UNARY[text](x)

    assert differing(rows, texts, expected) == []


def ceiled(x: Decimal, scale: int) -> Decimal:
    return rounded(x, scale, decimal.ROUND_CEILING)


def floored(x: Decimal, scale: int) -> Decimal:
    return rounded(x, scale, decimal.ROUND_FLOOR)


def evened(x: Decimal, scale: int) -> Decimal:
    return rounded(x, scale, decimal.ROUND_HALF_EVEN)


ROUNDING: dict[str, Callable[[Decimal, int], Decimal]] = {
    "round": rounded, "bround": evened, "ceil": ceiled, "ceiling": ceiled, "floor": floored,
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDING)
def test_rounding_is_exact(rows: Any, name: str) -> None:
    cases = [(x, scale) for x in KINDS for scale in (-36, -3, 0, 2, 9, 18, 37)]
    texts = [f"{name}({x}, {scale})" for x, scale in cases] + [f"{name}({x})" for x in KINDS]
    cases += [(x, 0) for x in KINDS]

    def expected(number: int, row: dict[str, Decimal | None]) -> Any:
        name_of, scale = cases[number]
        x, behind = row[name_of], KINDS[name_of][1]
        if x is None:
            return None
        found = rounded(ROUNDING[name](x, min(scale, behind)), max(0, min(scale, behind)))
        return found if fits(found, (MOST, max(0, min(scale, behind)))) else OUT_OF_RANGE

    assert differing(rows, texts, expected) == []


CASTS: dict[str, Callable[[Decimal], Any]] = {
    "STRING": str,
    "DOUBLE": float,
    "BIGINT": whole,
    "BOOLEAN": bool,
    **{
        f"DECIMAL({p},{s})": partial(as_kind, kind=(p, s))
        for p, s in ((38, 0), (38, 9), (38, 37), (38, 38), (35, 3), (10, 2))
    },
}


@pytest.mark.parametrize("kind", CASTS)
def test_a_cast_is_exact_or_rounds_once(rows: Any, kind: str) -> None:
    names = list(KINDS)
    texts = [f"{how}({x} AS {kind})" for how in ("CAST", "TRY_CAST") for x in names]
    if kind in ("BIGINT", "BOOLEAN"):
        texts = texts[: len(names)]

    def expected(number: int, row: dict[str, Decimal | None]) -> Any:
        x = row[names[number % len(names)]]
        if x is not None and kind == "STRING" and number >= len(names):
            # Spark's TRY_CAST writes no exponent
            return f"{x:f}"
        return None if x is None else CASTS[kind](x)

    assert differing(rows, texts, expected) == []


@pytest.mark.parametrize(("kind", "bits"), [("INT", 32), ("SMALLINT", 16), ("TINYINT", 8)])
def test_try_cast_to_an_integer_cuts_off_and_does_not_round(
    rows: Any, kind: str, bits: int
) -> None:
    names = list(KINDS)

    def expected(number: int, row: dict[str, Decimal | None]) -> int | None:
        x = row[names[number]]
        most = 2 ** (bits - 1)
        return int(x) if x is not None and -most <= int(x) < most else None

    assert differing(rows, [f"TRY_CAST({x} AS {kind})" for x in names], expected) == []


COMPARED: dict[str, Callable[[Decimal, Decimal], Any]] = {
    "{x} = {y}": lambda x, y: x == y,
    "{x} <> {y}": lambda x, y: x != y,
    "{x} < {y}": lambda x, y: x < y,
    "{x} <= {y}": lambda x, y: x <= y,
    "{x} > {y}": lambda x, y: x > y,
    "{x} >= {y}": lambda x, y: x >= y,
    "{x} <=> {y}": lambda x, y: x == y,
    "equal_null({x}, {y})": lambda x, y: x == y,
    "{x} IN ({y}, {y})": lambda x, y: x == y,
    "{x} BETWEEN {y} AND {y}": lambda x, y: x == y,
    "CASE {x} WHEN {y} THEN true ELSE false END": lambda x, y: x == y,
    "decode({x}, {y}, true, false)": lambda x, y: x == y,
    "greatest({x}, {y})": max,
    "least({x}, {y})": min,
    "coalesce({x}, {y})": lambda x, _: x,
    "if(false, {x}, {y})": lambda _, y: y,
    "CASE WHEN false THEN {x} ELSE {y} END": lambda _, y: y,
    "ifnull({x}, {y})": lambda x, _: x,
    "nvl({x}, {y})": lambda x, _: x,
    "nvl2(1, {x}, {y})": lambda x, _: x,
    "nullif({x}, {y})": lambda x, y: None if x == y else x,
    "array({x}, {y})[1]": lambda _, y: y,
    "array_max(array({x}, {y}))": max,
    "array_min(array({x}, {y}))": min,
    "array_sort(array({x}, {y}))[0]": min,
    "sort_array(array({x}, {y}), false)[0]": max,
    "array_contains(array({x}), {y})": lambda x, y: x == y,
    "array_position(array({x}), {y}) = 1": lambda x, y: x == y,
    "size(array_distinct(array({x}, {y}))) = 1": lambda x, y: x == y,
    "size(array_except(array({x}), array({y}))) = 0": lambda x, y: x == y,
    "size(array_intersect(array({x}), array({y}))) = 1": lambda x, y: x == y,
    "size(array_union(array({x}), array({y}))) = 1": lambda x, y: x == y,
    "arrays_overlap(array({x}), array({y}))": lambda x, y: x == y,
    "array_append(array({x}), {y})[1]": lambda _, y: y,
    "array_prepend(array({x}), {y})[0]": lambda _, y: y,
    "size(array_remove(array({x}), {y})) = 0": lambda x, y: x == y,
    "concat(array({x}), array({y}))[1]": lambda _, y: y,
    "flatten(array(array({x}), array({y})))[1]": lambda _, y: y,
    "if({x} IS NULL, NULL, map_contains_key(map({x}, 1), {y}))": lambda x, y: x == y,
    "if({x} IS NULL, NULL, map({x}, 1)[{y}] IS NOT NULL)": lambda x, y: x == y,
    "if({x} IS NULL, NULL, element_at(map({x}, 1), {y}) IS NOT NULL)": lambda x, y: x == y,
    "if({x} IS NULL, NULL, try_element_at(map({x}, 1), {y}) IS NOT NULL)": lambda x, y: x == y,
    "map('p', {x}, 'q', {y}).q": lambda _, y: y,
    "map_concat(map('p', {x}), map('q', {y})).q": lambda _, y: y,
    "exists(array({x}), v -> v = {y})": lambda x, y: x == y,
    "size(filter(array({x}), v -> v < {y})) = 1": lambda x, y: x < y,
    "zip_with(array({x}), array({y}), (v, w) -> v >= w)[0]": lambda x, y: x >= y,
    "named_struct('n', {x}) = named_struct('n', {y})": lambda x, y: x == y,
}
OF_NULL = ("coalesce", "ifnull", "nvl(")


@pytest.mark.parametrize("text", COMPARED)
def test_decimals_of_any_scale_are_compared_exactly_or_refused(rows: Any, text: str) -> None:
    taken = []
    for x, y in PAIRS:
        # one type holds both where there are as many digits before and behind the point
        kind = wider(KINDS[x], KINDS[y])
        why = refused(rows, text.format(x=x, y=y))
        if kind[0] > MOST:
            assert why, (x, y)
        elif why:
            # Spark takes no arrays, maps and structs of other decimals, and casts a key to a map's
            assert KINDS[x] != KINDS[y], why
            assert re.search("array|map|struct", text), why
        if not why:
            taken.append((x, y))

    def expected(number: int, row: dict[str, Decimal | None]) -> Any:
        x, y = (row[name] for name in taken[number])
        if x is None or y is None:
            return ...
        return COMPARED[text](x, y)

    assert differing(rows, [text.format(x=x, y=y) for x, y in taken], expected) == []


@pytest.mark.parametrize(
    "text",
    [
        "a > 1.5", "a = 1.5", "a IN (1, 1.5)", "a BETWEEN 0 AND 0.5", "coalesce(a, 0.5)", "a = g",
        "greatest(a, 0.5)", "CASE WHEN a > 0 THEN a ELSE 0.5 END", "CASE a WHEN 0.5 THEN 1 END",
        "exists(array(a), v -> v > 1.5)", "array(a, 0.5)", "map('p', a, 'q', 0.5)",
        "coalesce(c, 0)", "c = CAST(1 AS BIGINT)", "array(array(a), array(b))", "nullif(a, 0.5)",
        "a <=> -0.5", "c > 0", "b < CAST(1 AS DECIMAL(38, 0))",
    ],
)  # fmt: skip
def test_a_decimal_is_not_rounded_in_silence(rows: Any, text: str) -> None:
    why = refused(rows, text)
    assert "would be rounded to DECIMAL(38" in why, text
    assert "CAST one of them" in why


@pytest.mark.parametrize(
    "text",
    [
        "a > 1", "a = 2.0", "a > 0.00", "c > 0.0", "k > 0", "coalesce(a, 0)", "h = 1.5", "a = a",
        "CAST(a AS DECIMAL(38, 1)) > 1.5", "a > CAST(1.5 AS DECIMAL(38, 0))",
        "decimal(a) = 1", "CAST(b AS DECIMAL(38, 0)) = a", "CAST(b AS STRING) = '1'",
        "greatest(e, g, 1)",
    ],
)  # fmt: skip
def test_what_rounds_no_decimal_is_taken(rows: Any, text: str) -> None:
    assert refused(rows, text) == ""


BESIDE = {
    "d": "DOUBLE", "f": "FLOAT", "n": "BIGINT", "i": "INT", "s": "SMALLINT",
    "p": "DECIMAL(15, 2)", "q": "DECIMAL(16, 2)", "r": "DECIMAL(6, 2)",
}  # fmt: skip


def typed(text: str) -> str:
    """The text with each letter of those as a column of its type."""
    return re.sub(r"\b[dfnispqr]\b", lambda found: f"CAST(a AS {BESIDE[found[0]]})", text)


@pytest.mark.parametrize(
    "text",
    [
        "n = d", "n > f", "i = f", "q < d", "q = f", "n > 1.5e0", "i IN (f, 2)",
        "n BETWEEN 1 AND d", "coalesce(i, f)", "greatest(n, d)", "nullif(n, d)", "n <=> d",
        "CASE WHEN n > 1 THEN n ELSE d END", "CASE n WHEN d THEN 1 END", "array(n, d)",
        "map('p', q, 'q', d)", "exists(array(n), v -> v = d)",
        "d = CAST(9007199254740993 AS BIGINT)", "f = 16777217", "d > 0.1234567890123456",
        "(n + 1) = d", "sqrt(coalesce(n, d))",
        "array_contains(array(d), n)", "coalesce(array(n), array(d))", "if(true, n, d)",
        "nvl(n, d)", "array_position(array(f), i)", "element_at(map(d, 1), n)",
    ],
)  # fmt: skip
def test_a_number_is_not_rounded_to_a_double_in_silence(rows: Any, text: str) -> None:
    why = refused(rows, typed(text))
    assert re.search("would be rounded to (DOUBLE|FLOAT)", why), why
    assert "CAST one of them, to a DECIMAL" in why


@pytest.mark.parametrize(
    "text",
    [
        "n + d > 1", "n * f", "n / d", "q % d", "-n + d", "sqrt(n)", "power(q, n)", "isnan(n)",
        "sign(q)", "i = d", "s = f", "p = d", "p = f", "r = f", "d > 1", "f > 1", "d > -1",
        "f = -1", "d = 1.5", "d = CAST(9007199254740992 AS BIGINT)", "f = 16777216", "d = 0.1",
        "f = 0.1", "d = f",
        "CAST(n AS DOUBLE) = d", "double(n) = d", "float(i) = f",
        "n = CAST(d AS BIGINT)", "q = CAST(d AS DECIMAL(16, 2))",
        "coalesce(d, 0)", "round(d, 2)", "d IN (1, 2.5)", "if(d > 1, d, 0)",
    ],
)  # fmt: skip
def test_a_number_may_meet_a_double_that_holds_it_or_to_compute(rows: Any, text: str) -> None:
    assert refused(rows, typed(text)) == ""


def test_literals_are_negated_exactly(rows: Any) -> None:
    texts = [f"-(-{DIGITS})", f"-({DIGITS})", f"abs(-{DIGITS})", f"-{DIGITS}", f"- {DIGITS}"]
    texts += [f"-(-{DIGITS[:28]}.0123456789)", f"-(-{'9' * 38})"]
    number, nines = Decimal(DIGITS), Decimal("9" * 38)
    wanted = [number, -number, number, -number, -number]
    wanted += [Decimal(f"{DIGITS[:28]}.0123456789"), nines]
    assert computed(rows, texts)[1][0] == wanted


@pytest.mark.parametrize("name", ["hash", "xxhash64", "concat"])
def test_a_decimal_is_the_same_after_two_signs(rows: Any, name: str) -> None:
    texts = [f"{name}({x}) = {name}(-(-{x}))" for x in KINDS]

    def expected(number: int, row: dict[str, Decimal | None]) -> Any:
        is_null = list(row.values())[number] is None and name == "concat"
        return None if is_null else True

    assert differing(rows, texts, expected) == []


USED_AS: dict[str, str] = {
    "DOUBLE": "acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp expm1 ln "
    "log10 log1p log2 log radians rint sec sign signum sin sinh sqrt tan tanh isnan",
    "STRING": "ascii char_length initcap length lower trim upper url_encode concat",
    "BIGINT": "bin hex",
}  # fmt: skip


@pytest.mark.parametrize("kind", USED_AS)
def test_a_function_of_another_type_is_given_the_cast(rows: Any, kind: str) -> None:
    texts = [
        f"{name}({x}) <=> {name}(CAST({x} AS {kind}))"
        for name in USED_AS[kind].split()
        for x in ("a", "b", "c")
    ]
    assert differing(rows, texts, lambda _, __: True) == []
