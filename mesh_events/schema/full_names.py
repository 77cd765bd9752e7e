"""An Avro schema in which every type is called by its full name. Pure.

Two types may have one short name, each in a namespace of its own: which one a short name means
depends on where it stands. Who compares schemas, or looks through them, does it by full names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_KINDS = PRIMITIVE | _NAMED | {"array", "map"}
_INNER = ("items", "values")


def with_full_names(schema: Any) -> Any:
    """The schema with full names for short ones, in definitions, aliases and uses.

    A short name is looked for in the namespace around it, then among the types without one, and
    there among the types that stand before it first, as Avro's readers do. A type in braces
    (`{"type": {...}}`, `{"type": "Money"}`) stands as itself.

    Args:
        schema: an Avro schema, parsed from JSON, of bounded depth; see `mesh_events.schema.size`.

    Returns:
        A copy to look through, and not to write: definitions have no `namespace`.
    """
    anywhere = frozenset(full for full, _ in definitions(schema))
    return _Naming(anywhere).of(schema, "")


def named_types(schema: Any) -> dict[str, Any]:
    """Full name -> definition of the named types in a schema; the last of a name counts."""
    return {full: one for full, (one, _) in definitions(schema)}


def definitions(schema: Any, around: str = "") -> Iterator[tuple[str, tuple[dict[str, Any], str]]]:
    """(full name, (definition, namespace around it)) of every named type in a schema."""
    if isinstance(schema, list):
        for one in schema:
            yield from definitions(one, around)
    elif isinstance(schema, dict):
        if is_named(schema):
            space, short = full_name(schema, around)
            yield joined(space, short), (schema, around)
            around = space
        for one in fields_of(schema):
            yield from definitions(one.get("type"), around)
        for key in (*_INNER, "type"):
            yield from definitions(schema.get(key), around)


def is_named(schema: Mapping[str, Any]) -> bool:
    """Whether a type is a definition: of a record, an enum or a fixed."""
    kind = schema.get("type")
    return isinstance(kind, str) and kind in _NAMED and "name" in schema


def full_name(schema: Mapping[str, Any], around: str) -> tuple[str, str]:
    """(namespace, name) of a named type, as Avro finds them; "" is no namespace."""
    space, dot, short = str(schema["name"]).rpartition(".")
    if dot:
        return space, short
    given = schema.get("namespace")
    return (around if given is None else str(given)), short


def joined(space: str, name: str) -> str:
    """A name in a namespace; one with a dot in it is full already."""
    return f"{space}.{name}" if space and "." not in name else name


def fields_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A record's fields; [] for any other type."""
    found = schema.get("fields")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class _Naming:
    """A schema on its way to full names: those defined in all of it, and those met so far."""

    anywhere: frozenset[str]
    met: set[str] = field(default_factory=set)

    def of(self, schema: Any, around: str) -> Any:
        """A type with full names; `around` is the namespace that it stands in."""
        if isinstance(schema, str):
            return self._called(schema, around)
        if isinstance(schema, list):
            return [self.of(one, around) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if is_named(schema):
            return self._defined(schema, around)
        kind = schema.get("type")
        if isinstance(kind, str) and kind not in _KINDS:
            return self._called(kind, around)
        if isinstance(kind, dict | list):
            inner = self.of(kind, around)
            # what stands beside a type tells what is meant by it
            beside = {key: one for key, one in schema.items() if key != "type"}
            return {**inner, **beside} if _is_plain(inner) else inner
        return {**schema, **{key: self.of(schema[key], around) for key in _INNER if key in schema}}

    def _defined(self, schema: dict[str, Any], around: str) -> dict[str, Any]:
        space, short = full_name(schema, around)
        self.met.add(joined(space, short))
        whole = {key: one for key, one in schema.items() if key != "namespace"}
        whole["name"] = joined(space, short)
        if isinstance(aliases := schema.get("aliases"), list):
            whole["aliases"] = [joined(space, str(one)) for one in aliases]
        if "fields" in schema:
            whole["fields"] = [
                {**one, "type": self.of(one.get("type"), space)} for one in fields_of(schema)
            ]
        return whole

    def _called(self, name: str, around: str) -> str:
        if name in PRIMITIVE:
            return name
        candidates = joined(around, name), name
        return next(
            (full for known in (self.met, self.anywhere) for full in candidates if full in known),
            candidates[0],
        )


def _is_plain(schema: Any) -> bool:
    return isinstance(schema, dict) and not is_named(schema)
