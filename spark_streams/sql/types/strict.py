"""No cast in silence: operands whose types differ are refused, with their place.

Spark casts a string that meets a number, and makes null of what is no number; in a list of IN it
makes texts of times. A row would be passed over, or never found, and nobody told. Postgres and
ksqlDB refuse to compare such columns, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from spark_streams.sql.errors import SqlError
from spark_streams.sql.running.frame import Topic, key_types
from spark_streams.sql.text.literals import is_moment
from spark_streams.sql.text.tree import Node
from spark_streams.sql.types.operands import Operand, Purpose, Use
from spark_streams.sql.types.resolve import Lookup, Query

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

TypesOf = Callable[[Sequence[Node]], Sequence["DataType"]]
"""The types of expressions over the sources of a query."""
_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})
_TIMES = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}
_PLAIN_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_FAMILIES = {
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys(_TIMES, "moment"),
    **dict.fromkeys(("string", "char", "varchar"), "string"),
}
"""What can be compared with each other; any other type only with itself."""
_TIME_OF_DAY = "time("
_KEEPS: Mapping[str, frozenset[str]] = {
    "int": frozenset({"tinyint", "smallint", "int", "bigint"}),
    "bigint": frozenset({"tinyint", "smallint", "int", "bigint"}),
}
"""Type of a key's column -> the types whose values it keeps, or is known not to have; any other one
only takes itself."""


def require(query: Query, tables: Mapping[str, Topic], types_of: TypesOf) -> None:
    """Raise SqlError `wrong_type` for the first operand that Spark would cast in silence.

    Args:
        query: the statement, of which Spark takes every part.
        tables: by their alias.
        types_of: asks Spark; raises where it does not take an expression.
    """
    probes = list(dict.fromkeys(one.probe for one in _operands(query)))
    if not probes:
        return
    types = dict(zip(probes, types_of(probes), strict=True))
    for lookup in query.lookups:
        _require_key(lookup, tables[lookup.alias], types)
    for use in query.uses:
        match use.purpose:
            case Purpose.CALCULATED:
                _require_numbers(use, types)
            case Purpose.TESTED:
                _require_condition(use, types)
            case Purpose.COMPARED | Purpose.LISTED:
                _require_alike(use, types)


def _operands(query: Query) -> Iterator[Operand]:
    for lookup in query.lookups:
        yield from lookup.key.values()
    for use in query.uses:
        yield from use.operands


def _require_key(lookup: Lookup, table: Topic, types: Mapping[Node, "DataType"]) -> None:
    kinds = key_types(table.key or "null")
    for name, given in lookup.key.items():
        wanted, kind = kinds[name], types[given.probe]
        found = kind.simpleString()
        if found == "void" or found in _KEEPS.get(wanted, {wanted}):
            continue
        raise SqlError(
            "wrong_type",
            f"{lookup.alias} is looked up by its key {name} ({wanted}), and {given.text} is "
            f"{found}: no row would be found, or another one: {_as(given, kind, wanted)}",
            given.place,
        )


def _require_numbers(use: Use, types: Mapping[Node, "DataType"]) -> None:
    names = [types[one.probe].simpleString() for one in use.operands]
    kind = "timestamp" if any(name.startswith("interval") for name in names) else use.kind
    for one in use.operands:
        if _family(types[one.probe]) == "string":
            what = "a time" if kind == "timestamp" else "a number"
            instead = _as(one, types[one.probe], kind)
            raise SqlError(
                "wrong_type",
                f"{one.text} is a string, and {what} is expected: {instead}",
                one.place,
            )


def _require_condition(use: Use, types: Mapping[Node, "DataType"]) -> None:
    [one] = use.operands
    kind = types[one.probe]
    if _family(kind) not in ("boolean", None):
        raise SqlError(
            "wrong_type",
            f"{one.text} is {kind.simpleString()}, and a condition is expected: "
            f"{_as(one, kind, use.kind)}",
            one.place,
        )


def _require_alike(use: Use, types: Mapping[Node, "DataType"]) -> None:
    left, right = use.operands
    if _alike(types[left.probe], types[right.probe]):
        return
    is_listed = use.purpose is Purpose.LISTED
    if not is_listed and any(
        one.literal is not None and _is_time(one.literal, types[other.probe])
        for one, other in ((left, right), (right, left))
    ):
        return
    kinds = {each: types[each.probe].simpleString() for each in (left, right)}
    is_left = "string" in kinds[left] and "string" not in kinds[right]
    one, other = (left, right) if is_left else (right, left)
    if is_listed and one.literal is not None and types[other.probe].typeName() in _TIMES:
        instead = _as_literal(one.literal, types[other.probe].typeName())
    elif kinds[other].startswith(_TIME_OF_DAY):
        instead = f"write CAST({other.text} AS string), which is a text such as '12:30:00'"
    else:
        instead = _as(one, types[one.probe], kinds[other])
    raise SqlError(
        "wrong_type",
        f"{left.text} is {kinds[left]}, and {right.text}, which it is compared with, is "
        f"{kinds[right]}: {instead}",
        left.place,
    )


def _alike(one: "DataType", other: "DataType") -> bool:
    """Whether two types are compared as they are, with all that lies in them."""
    from pyspark.sql.types import ArrayType, StructType

    match one, other:
        case ArrayType(), ArrayType():
            return _alike(one.elementType, other.elementType)
        case StructType(), StructType():
            pairs = zip(one.fields, other.fields, strict=False)
            return all(_alike(left.dataType, right.dataType) for left, right in pairs)
    families = _family(one), _family(other)
    return None in families or families[0] == families[1]


def _as_literal(literal: str, kind: str) -> str:
    """What to write in place of a string in the list of IN, where Spark would compare texts."""
    if not is_moment(literal, kind):
        literal = "2026-01-31" if kind == "date" else "2026-01-31 10:00:00"
    return f"IN compares the texts, write {_TIMES[kind]} '{literal.strip()}'"


def _as(operand: Operand, kind: "DataType", wanted: str) -> str:
    """What to write in place of an operand."""
    if operand.literal is not None and wanted in _PLAIN_NUMBERS:
        return "write a number without quotes"
    if operand.literal is not None and wanted == "date":
        return "write it as '2026-01-31', or CAST the other one AS timestamp"
    if operand.literal is not None and wanted in _TIMES:
        return "write it as '2026-01-31', with '10:00:00' behind it for a time"
    if wanted.startswith("interval"):
        return "write an interval, such as INTERVAL 1 DAY"
    name = kind.typeName()
    if wanted in ("int", "bigint") and name in _TIMES:
        # a cast of a date is null, and one of a time seconds
        days, text = f"unix_date({operand.text})", operand.text
        return f"write {days}" if name == "date" else f"write unix_millis({text}), or unix_micros"
    return f"write CAST({operand.text} AS {wanted})"


def _family(kind: "DataType") -> str | None:
    """What can be compared with each other; None for null, which is of any type."""
    name = kind.typeName().partition("(")[0]
    return None if name == "void" else _FAMILIES.get(name, name)


def _is_time(literal: str, kind: "DataType") -> bool:
    """Whether a string literal is what it is compared with: a date, or a time that stands still."""
    return kind.typeName() in _TIMES and is_moment(literal, kind.typeName())
