"""Records for any Avro schema, steered by `arg.properties` beside a type.

The convention is that of the Avro Random Generator, of which these are understood: `options` (one
of these values), `range` (`min` to below `max`, for numbers), `iteration` (`start`, `step`: it
counts up with the records), `length` (of strings, arrays and maps, a number or `min` and `max`).
"""

import string
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from mesh_events.errors import InvalidValueError
from self_service.generator.chance import of_record
from self_service.generator.kinds import Options

_KNOWN = frozenset({"options", "range", "iteration", "length"})
_DEEPEST = 8
"""A record inside itself is null at this depth."""


def maker(schema: Any, options: Options) -> Callable[[int], Any]:
    """What makes value number n; raises InvalidValueError for properties that it does not know."""
    named: dict[str, Any] = {}
    _learn(schema, named)
    return lambda number: _Making(named, options, number).value(schema, {}, 0)


class _Making:
    """One record in the making."""

    def __init__(self, named: Mapping[str, Any], options: Options, number: int) -> None:
        self._named, self._options, self._number = named, options, number
        self._chance = of_record(options.seed, number)

    def value(self, schema: Any, told: Mapping[str, Any], depth: int) -> Any:
        """A value of a type; `told` are the properties that stand around it."""
        if isinstance(schema, list):
            return self._branch(schema, told, depth)
        if isinstance(schema, str):
            known = self._named.get(schema)
            return self._plain(schema, told) if known is None else self.value(known, told, depth)
        told = {**told, **schema.get("arg.properties", {})}
        if isinstance(schema["type"], dict | list):
            return self.value(schema["type"], told, depth)
        return self._of_kind(schema, told, depth)

    def _of_kind(self, schema: Mapping[str, Any], told: Mapping[str, Any], depth: int) -> Any:
        chance, below = self._chance, depth + 1
        if "options" in told:
            return chance.choice(told["options"])
        match schema["type"]:
            case "record":
                return {
                    one["name"]: self.value(one["type"], one.get("arg.properties", {}), below)
                    for one in schema["fields"]
                }
            case "enum":
                return chance.choice(schema["symbols"])
            case "fixed":
                return chance.randbytes(schema["size"])
            case "array":
                return [self.value(schema["items"], {}, below) for _ in self._times(told)]
            case "map":
                times, values = self._times(told), schema["values"]
                return {self._word(6): self.value(values, {}, below) for _ in times}
        return self._logical(schema, told)

    def _branch(self, schema: list[Any], told: Mapping[str, Any], depth: int) -> Any:
        full = [branch for branch in schema if branch != "null"]
        may_be_null = len(full) < len(schema)
        if may_be_null and (depth >= _DEEPEST or (not told and self._chance.random() < 0.1)):
            return None
        return self.value(self._chance.choice(full), told, depth)

    def _plain(self, name: str, told: Mapping[str, Any]) -> Any:
        if "options" in told:
            return self._chance.choice(told["options"])
        match name:
            case "int" | "long":
                return self._whole(told, 0, 1000)
            case "float" | "double":
                low, high = _range(told, 0.0, 1000.0)
                return float(low) + self._chance.random() * (float(high) - float(low))
            case "boolean":
                return self._chance.random() < 0.5
            case "string":
                return self._word(len(list(self._times(told))))
            case "bytes":
                return self._chance.randbytes(len(list(self._times(told))))
        return None

    def _whole(self, told: Mapping[str, Any], low: int, high: int) -> int:
        if "iteration" in told:
            steps = told["iteration"]
            return int(steps.get("start", 0)) + self._number * int(steps.get("step", 1))
        low, high = (int(one) for one in _range(told, low, high))
        return self._chance.randrange(low, max(high, low + 1))

    def _logical(self, schema: Mapping[str, Any], told: Mapping[str, Any]) -> Any:
        made = _EPOCH + timedelta(
            milliseconds=self._options.start + self._number * 1000 / self._options.rate
        )
        match schema.get("logicalType"):
            case "decimal":
                scale, precision = schema.get("scale", 0), schema["precision"]
                units = self._whole(told, 0, 10 ** min(precision, 6))
                return Decimal(units).scaleb(-scale)
            case "date":
                return made.date()
            case "timestamp-millis" | "timestamp-micros":
                return made
            case "local-timestamp-millis" | "local-timestamp-micros":
                return made.replace(tzinfo=None)
            case "time-millis" | "time-micros":
                return made.time()
            case "uuid":
                return UUID(bytes=self._chance.randbytes(16), version=4)
        return self._plain(str(schema["type"]), told)

    def _times(self, told: Mapping[str, Any]) -> range:
        length = told.get("length", {"min": 1, "max": 9})
        if isinstance(length, dict):
            length = self._chance.randrange(int(length["min"]), max(int(length["max"]), 1))
        return range(int(length))

    def _word(self, length: int) -> str:
        return "".join(self._chance.choices(string.ascii_lowercase, k=length))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _range(told: Mapping[str, Any], low: float, high: float) -> tuple[float, float]:
    found = told.get("range", {})
    return found.get("min", low), found.get("max", high)


def _learn(schema: Any, named: dict[str, Any], path: str = "") -> None:
    """Named types by short and full name, and that every property is known."""
    if isinstance(schema, list):
        for branch in schema:
            _learn(branch, named, path)
    if not isinstance(schema, dict):
        return
    unknown = set(schema.get("arg.properties", {})) - _KNOWN
    if unknown:
        raise InvalidValueError(
            f"{path or 'the value'}: arg.properties has {', '.join(sorted(unknown))}: known are "
            f"{', '.join(sorted(_KNOWN))}"
        )
    if schema.get("type") in ("record", "enum", "fixed"):
        named[schema["name"]] = schema
        if "namespace" in schema:
            named[f"{schema['namespace']}.{schema['name']}"] = schema
    for one in schema.get("fields", ()):
        below = f"{path}.{one['name']}" if path else one["name"]
        _learn(
            {**one, "type": one["type"], "name": ""} if "arg.properties" in one else {}, {}, below
        )
        _learn(one["type"], named, below)
    for inner in ("items", "values", "type"):
        if isinstance(schema.get(inner), dict | list):
            _learn(schema[inner], named, path)
