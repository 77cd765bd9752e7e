"""What numbers count in an Avro schema: days, milliseconds and so on. Pure.

Avro tells it by `logicalType`, Kafka Connect by `connect.name`, and a reader goes by one of them: a
number that has both has to mean the same by both. So has a decimal, whose scale stands in `scale`
and in `connect.parameters`, and a default, which stands in `default` and in `connect.default`. To
Avro a logical type of another type than its own means nothing.
"""

from typing import Any

from mesh_events.errors import RefusedError
from mesh_events.schema.full_names import fields_of, named_types, with_full_names
from mesh_events.schema.size import inner_types

_TIMES = {
    **{one: one for one in ("date", "time-millis", "time-micros")},
    **{
        f"{local}timestamp-{unit}": f"timestamp-{unit}"
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
    **{
        f"io.debezium.time.{unit}{what}": f"{what.lower()}-{count}"
        for unit, count in (("", "millis"), ("Micro", "micros"), ("Nano", "nanos"))
        for what in ("Time", "Timestamp")
    },
    "io.debezium.time.Date": "date",
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
}
"""What numbers count, by the names of Avro, Debezium and Kafka Connect -> Avro's."""
_OF_INT = ("date", "time-millis")
_LOGICAL, _NAME = "logicalType", "connect.name"
ZONED = "io.debezium.time.ZonedTimestamp"
"""A time with a zone, as text: SQL is given it as a timestamp."""


def times_of(schema: Any) -> frozenset[str]:
    """What a number counts, by Avro's names: none for a plain number, two if its marks differ."""
    if not isinstance(schema, dict):
        return frozenset()
    logical, named = (_time(schema.get(one)) for one in (_LOGICAL, _NAME))
    fits = schema.get("type") == ("int" if logical in _OF_INT else "long")
    return frozenset(one for one in (logical if fits else None, named) if one is not None)


def is_zoned(schema: Any) -> bool:
    """Whether a text is a time with a zone to Kafka Connect, as a `timestamptz` arrives."""
    return isinstance(schema, dict) and schema.get(_NAME) == ZONED


def _time(name: Any) -> str | None:
    return _TIMES.get(name) if isinstance(name, str) else None


def _scales(schema: Any) -> list[str]:
    """What a decimal's scale is by Avro and by Kafka Connect; none of what has no two."""
    if not isinstance(schema, dict) or schema.get(_LOGICAL) != "decimal":
        return []
    parameters = schema.get("connect.parameters")
    named = parameters.get("scale") if isinstance(parameters, dict) else None
    scales = [str(schema.get("scale", 0)), str(named)]
    return scales if named is not None and scales[0] != scales[1] else []


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _has_two_defaults(field: Any) -> bool:
    """Whether a table of Kafka Connect's would have another default than Avro's readers see."""
    if "default" not in field:
        return False
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    named = [
        one["connect.default"]
        for one in branches
        if isinstance(one, dict) and "connect.default" in one
    ]
    return not all(_is_same(field["default"], one) for one in named)


def require_one_default(schema: Any, subject: str) -> None:
    """Raise RefusedError `schema_not_usable` for a field with two defaults.

    Args:
        schema: bounded, see `size.require_bounded`.
        subject: what an error names.
    """
    for place, field in _places(with_full_names(schema)):
        if _has_two_defaults(field):
            raise RefusedError(
                "schema_not_usable",
                f"{subject}: {place} has a default, and another one in connect.default: leave the "
                "one that is meant",
            )


def _places(schema: Any) -> list[tuple[str, Any]]:
    """(record's name and the field's, field) of each field."""
    return [
        (f"{record}.{field['name']}", field)
        for record, one in named_types(schema).items()
        for field in fields_of(one)
    ]


def require_one_meaning(schema: Any, subject: str) -> None:
    """Raise RefusedError `schema_not_usable` for what is another value by each of its marks.

    Args:
        schema: bounded, see `size.require_bounded`.
        subject: what an error names.
    """
    schema = with_full_names(schema)
    left = [("the value", schema), *((place, one["type"]) for place, one in _places(schema))]
    while left:
        place, one = left.pop()
        if scales := _scales(one):
            raise RefusedError(
                "schema_not_usable",
                f"{subject}: {place} has the scale {scales[0]}, and {scales[1]} in "
                "connect.parameters: leave the one that is meant",
            )
        times = times_of(one)
        if len(times) > 1:
            marks = " and ".join(f"{mark} {one[mark]}" for mark in (_NAME, _LOGICAL))
            raise RefusedError(
                "schema_not_usable",
                f"{subject}: {place} has the {marks}, which are two times for one number: leave "
                "the one that is meant",
            )
        if not (isinstance(one, dict) and "fields" in one):
            left.extend((place, inner) for inner in inner_types(one))
