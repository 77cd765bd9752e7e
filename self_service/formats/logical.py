"""Typed values from JSON: what `topic consume` shows of logical types can be produced again.

JSON has no decimals, dates or bytes. Where a schema wants one, text (or a number) is taken:
"19.99" for a decimal, ISO 8601 for dates and times, base64 behind "base64:" for bytes.
"""

import base64
import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from mesh_events.errors import InvalidValueError
from mesh_events.spelling import nearest
from self_service.formats.json_numbers import Number

_NONE: Mapping[str, Any] = MappingProxyType({})


def typed(
    schema: Any, value: Any, named: Mapping[str, Any] = _NONE, field: str = "the value"
) -> Any:
    """`value` as the schema's type wants it; raises InvalidValueError naming the field.

    Only what JSON cannot say is changed; everything else is left for the encoder to judge, but for
    a field that the schema does not have: the encoder would pass it over.

    named: name -> definition of the types that the schema calls by their names.
    """
    if isinstance(schema, str):
        schema = named.get(schema, schema)
    match schema:
        case list():
            return _of_union(schema, value, named, field)
        case {"type": "record", "fields": fields} if isinstance(value, dict):
            types = {one["name"]: one["type"] for one in fields}
            _require_known(schema["name"], types, value)
            return {
                name: typed(types[name], inner, named, f"field {name}")
                for name, inner in value.items()
            }
        case {"type": "array", "items": items} if isinstance(value, list):
            return [typed(items, inner, named, field) for inner in value]
        case {"type": "map", "values": values} if isinstance(value, dict):
            return {
                name: typed(values, inner, named, f"{field}.{name}")
                for name, inner in value.items()
            }
        case {"logicalType": str(logical)} if logical in _READ:
            return _logical(schema, logical, value, field)
        case {"type": dict() | list() as inner}:
            return typed(inner, value, named, field)
    return _plain(schema, value, field)


def _logical(schema: Mapping[str, Any], logical: str, value: Any, field: str) -> Any:
    found = _read(logical, value, field)
    if isinstance(found, Decimal):
        _require_room(schema, found, field)
    elif found is not value:
        _require_whole(logical, value, found, field)
    return found


def _plain(schema: Any, value: Any, field: str) -> Any:
    match schema["type"] if isinstance(schema, dict) else schema:
        case "bytes" | "fixed" if isinstance(value, str):
            return _bytes(value, field)
        case "float" | "double" as kind if isinstance(value, int | float):
            _require_double(kind, value, field)
    return value


def _require_known(record: str, types: Mapping[str, Any], value: Mapping[str, Any]) -> None:
    """Raise InvalidValueError for a field that a record does not have."""
    unknown = next((name for name in value if name not in types), None)
    if unknown is not None:
        near = nearest(unknown, types)
        meant = f": is {near} meant?" if near else f", which has {', '.join(types)}"
        raise InvalidValueError(f"{unknown} is no field of {record}{meant}")


def _of_union(branches: list[Any], value: Any, named: Mapping[str, Any], field: str) -> Any:
    """The first branch that changes the value decides; null stays null."""
    if value is None:
        return None
    fault: InvalidValueError | None = None
    for branch in branches:
        if branch == "null":
            continue
        try:
            found = typed(branch, value, named, field)
        except InvalidValueError as error:
            fault = error
            continue
        if found is not value or branch in _PLAIN.get(type(value), ()):
            # the encoder would take the first number's type, also one that has no room for it
            return (branch, found) if fault is not None and branch == "double" else found
    if fault is not None:
        raise fault
    return value


def _read(logical: str, value: Any, field: str) -> Any:
    wanted, example, read = _READ[logical]
    if not isinstance(value, wanted) or isinstance(value, bool):
        return value
    try:
        return read(value)
    except (ValueError, ArithmeticError) as error:
        raise InvalidValueError(f"{field}: {value!r} is no {logical}, such as {example}") from error


def _decimal(value: Any) -> Decimal:
    # through text: 19.99 means 19.99 and not its nearest binary fraction
    found = Decimal(str(value))
    if not found.is_finite():
        raise ValueError(value)
    if not found:
        return Decimal(0)
    sign, digits, exponent = found.as_tuple()
    # 12.340 is 12.34, and fits where that does
    zeros = next(n for n, digit in enumerate(reversed(digits)) if digit)
    spare = min(zeros, max(0, -int(exponent)))
    return Decimal((sign, digits[: len(digits) - spare], int(exponent) + spare))


def _require_room(schema: Mapping[str, Any], value: Decimal, field: str) -> None:
    """Raise InvalidValueError for more digits than a decimal's schema has room for."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if precision is None:  # then it is plain bytes, by the specification
        return
    _, digits, exponent = value.as_tuple()
    if -int(exponent) > scale or (value != 0 and len(digits) + int(exponent) > precision - scale):
        raise InvalidValueError(
            f"{field}: {value} does not fit decimal({precision}, {scale}), {precision} digits of "
            f"which {scale} stand behind the point"
        )


def _require_whole(logical: str, text: str, value: object, field: str) -> None:
    """Raise InvalidValueError for a part of a time's text that its type has no room for."""
    if getattr(value, "tzinfo", None) is not None and not logical.startswith("timestamp-"):
        raise InvalidValueError(f"{field}: {text!r} has an offset, and a {logical} has none")
    kept = _KEPT.get(logical.rpartition("-")[2], 0)
    if any(digits[kept:].strip("0") for digits in _BEHIND.findall(text)):
        raise InvalidValueError(
            f"{field}: {text!r} has more than {kept} digits behind the second, and a {logical} has "
            "no room for them"
        )


def _require_double(kind: str, value: float, field: str) -> None:
    """Raise InvalidValueError for a number beyond the greatest of its type.

    Within it the nearest is meant. NaN and infinities, where they are given as such, are values.
    """
    try:
        nearest_one = struct.pack(_PACKED[kind], float(value))
    except OverflowError:
        nearest_one = None
    if nearest_one is None or (isinstance(value, Number) and math.isinf(value)):
        raise InvalidValueError(f"{field}: {str(value)[:_SHOWN]} is beyond the greatest {kind}")


def _moment(value: str) -> datetime:
    found = datetime.fromisoformat(value)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _bytes(value: str, field: str) -> bytes:
    if not value.startswith("base64:"):
        raise InvalidValueError(f'{field}: bytes are written as "base64:..."')
    try:
        return base64.b64decode(value.removeprefix("base64:"), validate=True)
    except ValueError as error:
        raise InvalidValueError(f"{field}: what follows base64: is not base64") from error


_BEHIND = re.compile(r"[.,](\d+)")
"""Digits behind the second of a time, or behind that of its offset."""
_KEPT = {"millis": 3, "micros": 6}
_SHOWN = 40
"""Characters of a number that is told."""
_PACKED = {"float": "<f", "double": "<d"}
_Reader = tuple[tuple[type, ...], str, Callable[[Any], Any]]
_TIME: _Reader = ((str,), '"2026-01-31T12:00:00Z"', _moment)
_READ: dict[str, _Reader] = {
    "decimal": ((str, int, float), '"19.99"', _decimal),
    "timestamp-millis": _TIME,
    "timestamp-micros": _TIME,
    "local-timestamp-millis": ((str,), '"2026-01-31T12:00:00"', datetime.fromisoformat),
    "local-timestamp-micros": ((str,), '"2026-01-31T12:00:00"', datetime.fromisoformat),
    "date": ((str,), '"2026-01-31"', date.fromisoformat),
    "time-millis": ((str,), '"12:00:00"', time.fromisoformat),
    "time-micros": ((str,), '"12:00:00"', time.fromisoformat),
}
_PLAIN: dict[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("int", "long", "float", "double"),
    float: ("float", "double"),
    Number: ("float", "double"),
}
