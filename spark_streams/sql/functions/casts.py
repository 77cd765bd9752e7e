"""The types that a statement may cast to, as they are written and as Spark has them.

A type goes to Spark as an object, never as a text.
"""

import re
from typing import Any

from spark_streams.sql.text.syntax import Words
from spark_streams.sql.text.tree import Type
from spark_streams.sql.text.words import Kind

_NAMES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_DECIMALS = frozenset({"decimal", "dec", "numeric"})
_MOST_DIGITS = 38
_DEEPEST = 8
_CLASSES = {
    "boolean": "BooleanType",
    "tinyint": "ByteType",
    "smallint": "ShortType",
    "int": "IntegerType",
    "bigint": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "string": "StringType",
    "binary": "BinaryType",
    "date": "DateType",
    "timestamp": "TimestampType",
    "timestamp_ntz": "TimestampNTZType",
}


def read(words: Words, depth: int = 0) -> Type:
    """A type, as it stands behind AS in a CAST."""
    word = words.current
    name = word.text.lower() if word.kind is Kind.NAME else ""
    if depth > _DEEPEST:
        raise words.refused(f"a type has at most {_DEEPEST} levels")
    if name in _DECIMALS:
        words.next()
        return _decimal(words)
    if name in _NAMES:
        words.next()
        if words.sees("("):
            raise words.unexpected()
        return Type(_NAMES[name])
    if name in ("array", "map") and words.ahead(1).upper == "<":
        words.next()
        words.expect("<")
        inner = [read(words, depth + 1)]
        if name == "map":
            words.expect(",")
            inner.append(read(words, depth + 1))
        _closed(words)
        return Type(name, inner=tuple(inner))
    if name == "struct" and words.ahead(1).upper == "<":
        return _struct(words, depth)
    if word.kind is Kind.END:
        raise words.unexpected()
    raise words.refused(
        f"a cast to {words.text[word.start : word.end]}: cast to a number, string, binary, "
        "boolean, date, timestamp, or an array, map or struct of them"
    )


def _decimal(words: Words) -> Type:
    if not words.takes("("):
        return Type("decimal", (10, 0))
    numbers = [_digits(words)]
    if words.takes(","):
        numbers.append(_digits(words))
    precision, scale = numbers[0], (numbers[1] if len(numbers) > 1 else 0)
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        raise words.refused(
            f"DECIMAL({precision}, {scale}): it has 1 to {_MOST_DIGITS} digits, and no more of "
            "them behind the point"
        )
    words.expect(")")
    return Type("decimal", (precision, scale))


def _digits(words: Words) -> int:
    word = words.current
    if word.kind is not Kind.NUMBER or re.fullmatch(r"\d{1,2}", word.text) is None:
        raise words.unexpected()
    return int(words.next().text)


def _struct(words: Words, depth: int) -> Type:
    words.next()
    words.expect("<")
    fields: list[str] = []
    inner: list[Type] = []
    while True:
        if words.current.kind not in (Kind.NAME, Kind.QUOTED):
            raise words.unexpected()
        fields.append(words.next().text)
        words.takes(":")
        inner.append(read(words, depth + 1))
        if not words.takes(","):
            break
    _closed(words)
    return Type("struct", inner=tuple(inner), fields=tuple(fields))


def _closed(words: Words) -> None:
    """Read the > behind types; of >> only the first."""
    if words.sees(">>"):
        words.split(">")
    else:
        words.expect(">")


def spark_type(kind: Type) -> Any:
    """The type as Spark has it."""
    from pyspark.sql import types

    match kind.name:
        case "decimal":
            return types.DecimalType(*kind.numbers)
        case "array":
            return types.ArrayType(spark_type(kind.inner[0]))
        case "map":
            return types.MapType(*map(spark_type, kind.inner))
        case "struct":
            named = zip(kind.fields, kind.inner, strict=True)
            return types.StructType([types.StructField(n, spark_type(one)) for n, one in named])
        case name:
            return getattr(types, _CLASSES[name])()
