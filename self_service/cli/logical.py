"""Typed values from JSON: what `topic consume` shows of logical types can be produced again.

JSON has no decimals, dates or bytes. Where a schema wants one, text (or a number) is taken:
"19.99" for a decimal, ISO 8601 for dates and times, base64 behind "base64:" for bytes.
"""

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from mesh_events.errors import InvalidValueError


def typed(schema: Any, value: Any, field: str = "the value") -> Any:
    """`value` as the schema's type wants it; raises InvalidValueError naming the field.

    Only what JSON cannot say is changed; everything else is left for the encoder to judge.
    """
    match schema:
        case list():
            return _of_union(schema, value, field)
        case {"type": "record", "fields": fields} if isinstance(value, dict):
            types = {one["name"]: one["type"] for one in fields}
            return {
                name: typed(types[name], inner, f"field {name}") if name in types else inner
                for name, inner in value.items()
            }
        case {"type": "array", "items": items} if isinstance(value, list):
            return [typed(items, inner, field) for inner in value]
        case {"type": "map", "values": values} if isinstance(value, dict):
            return {name: typed(values, inner, f"{field}.{name}") for name, inner in value.items()}
        case {"logicalType": str(logical)} if logical in _READ:
            return _read(logical, value, field)
        case {"type": dict() | list() as inner}:
            return typed(inner, value, field)
        case "bytes" | {"type": "bytes" | "fixed"} if isinstance(value, str):
            return _bytes(value, field)
    return value


def _of_union(branches: list[Any], value: Any, field: str) -> Any:
    """The first branch that changes the value decides; null stays null."""
    if value is None:
        return None
    fault: InvalidValueError | None = None
    for branch in branches:
        if branch == "null":
            continue
        try:
            found = typed(branch, value, field)
        except InvalidValueError as error:
            fault = error
            continue
        if found is not value or branch in _PLAIN.get(type(value), ()):
            return found
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
    return found


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
}
