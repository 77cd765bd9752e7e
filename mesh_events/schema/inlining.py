"""An Avro schema that refers to others, as one that needs no other. Pure.

A registry keeps a schema apart from those that it refers to. A reader needs all named types, each
defined before it is used: here each type of another schema is written out where it is used first,
and called by its full name from then on.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mesh_events.errors import InvalidValueError
from mesh_events.schema.full_names import PRIMITIVE, definitions, full_name, is_named, joined

_INNER = ("items", "values")


class UndefinedTypeError(InvalidValueError):
    """A schema names a type that neither it nor what it refers to defines."""


def inlined(text: str, imports: Mapping[str, str]) -> str:
    """The schema with the types that it takes from others written out at their first use.

    Args:
        text: an Avro schema. Its types are known by their full names; a name without a dot is
            looked for in the namespace around it, then among the types without one.
        imports: name -> text of every schema that it refers to, directly or through others. What
            counts are the types in them, a reference may be called anything.

    Returns:
        JSON of a schema in which every type has its namespace beside its name. The text as it is
        where there are no imports.

    Raises:
        UndefinedTypeError: a type is used that no schema defines.
        InvalidValueError: two of them define a type, and not alike; or one of the texts is no JSON.
    """
    if not imports:
        return text
    try:
        return _inlined(text, imports)
    except RecursionError as error:
        raise InvalidValueError("the schema has too many levels") from error


def _inlined(text: str, imports: Mapping[str, str]) -> str:
    known: dict[str, _Defined] = {}
    for name, other in imports.items():
        for full, found in definitions(_parsed(other, name)):
            before = known.setdefault(full, _Defined(found[0], found[1], name))
            if before.schema != found[0]:
                raise InvalidValueError(
                    f"{before.origin} and {name} both define the type {full}, and not alike: "
                    "refer to one of them"
                )
    schema = _parsed(text, "the schema")
    for full, (own, _) in definitions(schema):
        if full in known and known[full].schema != own:
            raise InvalidValueError(
                f"the type {full} is defined by {known[full].origin} and by the schema itself, and "
                "not alike: give one another name"
            )
    return json.dumps(_Whole(known).of(schema, "", ""), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Defined:
    """A named type: its definition, the namespace around that, and where it was found."""

    schema: dict[str, Any]
    around: str
    origin: str


@dataclass(frozen=True, slots=True)
class _Whole:
    """A schema on its way to being whole; `written` has its types so far.

    written: full name of a type -> what it is called in the whole schema. They differ for a type
        without a namespace that is used inside one: there it could not be called a second time.
    """

    known: Mapping[str, _Defined]
    written: dict[str, str] = field(default_factory=dict)

    def of(self, schema: Any, around: str, here: str) -> Any:
        """A type without anything that is defined elsewhere.

        around: the namespace in the text that the type comes from.
        here: the namespace in the whole schema.
        """
        if isinstance(schema, str):
            return self._called(schema, around, here)
        if isinstance(schema, list):
            return [self.of(one, around, here) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if is_named(schema):
            return self._named(schema, around, here)
        inner = {key: self.of(schema[key], around, here) for key in _INNER if key in schema}
        if inner:
            return {**schema, **inner}
        kind = self.of(schema.get("type"), around, here)
        # a name in braces is the type itself; a type does not have a type for its name
        return {**schema, **kind} if isinstance(kind, dict) else {**schema, "type": kind}

    def _named(self, schema: dict[str, Any], around: str, here: str) -> Any:
        space, short = full_name(schema, around)
        full = joined(space, short)
        if full in self.written:
            if full in self.known and self.known[full].schema == schema:
                # it stands inside another type of its schema, and was needed before that one
                return self.written[full]
            raise InvalidValueError(f"the type {full} is defined twice: give one another name")
        inside = space or here
        self.written[full] = joined(inside, short)
        whole = {**schema, "name": short, "namespace": inside}
        if not inside:
            del whole["namespace"]
        if "fields" in schema:
            whole["fields"] = [
                {**one, "type": self.of(one.get("type"), space, inside)} for one in schema["fields"]
            ]
        return whole

    def _called(self, name: str, around: str, here: str) -> Any:
        if name in PRIMITIVE:
            return name
        candidates = [name] if "." in name or not around else [joined(around, name), name]
        for full in candidates:
            if full in self.written:
                return self.written[full]
            if full in self.known:
                found = self.known[full]
                return self._named(found.schema, found.around, here)
        others = ", ".join(sorted({one.origin for one in self.known.values()})) or "none"
        raise UndefinedTypeError(
            f"the type {candidates[0]} is defined neither in the schema nor in those that it "
            f"refers to ({others}): refer to the schema that defines it"
        )


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"{name} is no JSON: {error}") from error
