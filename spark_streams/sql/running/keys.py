"""How a schema of keys encodes a key: rows of a table are found by the bytes. Pure."""

from typing import Any

from mesh_events.schema.times import times_of

_OF_MEANING = ("logicalType", "precision", "scale", "size", "symbols")
"""Attributes of a type that say what its bytes mean."""
_ALIKE = {"int": "long"}
"""Types whose values another type encodes to the same bytes."""


def encoding(schema: Any) -> object:
    """What two schemas of keys have in common if each key has the same bytes under both.

    Names of types, documentation and defaults are left out. Names of fields are not: a field is
    looked up by its name.

    Args:
        schema: an Avro schema, parsed; types of a key do not hold themselves.
    """
    return _encoding(schema, {})


def _encoding(schema: Any, named: dict[str, object]) -> object:
    if isinstance(schema, list):
        return [_encoding(branch, named) for branch in schema]
    if not isinstance(schema, dict):
        return named.get(schema, [_ALIKE.get(schema, schema)])
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _encoding(kind, named)
    parts: list[object] = [_ALIKE.get(kind, kind)]
    parts += [(one, str(schema[one])) for one in _OF_MEANING if one in schema]
    # Kafka Connect tells by its own name what a number counts
    parts += sorted(times_of(schema))
    parts += [(one, _encoding(schema[one], named)) for one in ("items", "values") if one in schema]
    for field in schema.get("fields", ()):
        parts.append((field["name"], _encoding(field["type"], named)))
    if "name" in schema:
        named[schema["name"]] = parts
        named[f"{schema.get('namespace', '')}.{schema['name']}"] = parts
    return parts
