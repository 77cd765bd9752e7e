"""Records by a JSON Schema: the head, then JSON text."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

import jsonschema
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7, specification_with

from mesh_events.errors import InvalidValueError, RefusedError
from mesh_events.schema import json_size
from mesh_events.schema.compatibility import Field, shortened
from self_service.formats.field_walk import Walk
from self_service.formats.json_numbers import strictly_parsed, written
from self_service.formats.json_rules import Steps, TooManyStepsError, bounded, short
from self_service.formats.schema import HEAD, Decoded, SchemaError, head

_ITS_NAME = "urn:mesh:this-schema"
"""What a schema is found under that gives itself no name."""
_MOST_REFERENCES = 32
"""References that lead to each other, from a field to its type."""
_BRANCHES = ("allOf", "anyOf", "oneOf")


class JsonSchema:
    """A JSON Schema of any draft, draft 7 where it names none.

    What it refers to is looked for in itself and in `imports`, never fetched.

    Raises SchemaError for what is none.
    """

    def __init__(self, text: str, imports: Mapping[str, str]) -> None:
        self._schema = _parsed(text)
        try:
            kind = jsonschema.validators.validator_for(self._schema, jsonschema.Draft7Validator)
            kind.check_schema(self._schema)
        except jsonschema.SchemaError as error:
            raise SchemaError(f"{_path(error) or 'its top'}: {short(error.message)}") from error
        except RecursionError as error:
            raise SchemaError("it has too many levels") from error
        except (AttributeError, TypeError, ValueError) as error:
            # what the draft that it names has no place for
            raise SchemaError(f"it cannot be read as its $schema says ({error})") from error
        own = _resource(self._schema)
        self._schema = own.contents
        others = {name: _resource(_parsed(one)) for name, one in imports.items()}
        # a reference is taken relative to the name that the schema around it gives itself
        bases = ["", *(one.id() or "" for one in (own, *others.values()))]
        try:
            named = [(urljoin(base, name), one) for base in bases for name, one in others.items()]
        except ValueError as error:
            raise SchemaError(f"a name is no address: {error}") from error
        registry: Registry[Any] = Registry().with_resources([*named, (_ITS_NAME, own)])
        self._resolver = registry.resolver(own.id() or _ITS_NAME)
        self._steps = Steps()
        self._validator = bounded(kind, self._steps)(self._schema, registry=registry)

    @property
    def takes_text(self) -> bool:
        """As of `Schema`."""
        return isinstance(self._schema, dict) and self._schema.get("type") == "string"

    def decoded(self, value: bytes) -> Decoded:
        """As of `Schema`; JSON that the schema does not allow is told as a misfit."""
        try:
            found = strictly_parsed(value[HEAD:].decode())
            return Decoded(found, self._misfit(found))
        except RecursionError as error:
            raise ValueError("it has too many levels") from error

    def encoded(self, schema_id: int, datum: Any) -> bytes:
        """As of `Schema`."""
        try:
            misfit = self._misfit(datum)
            body = written(datum, allow_nan=False).encode()
        # Python reads NaN, halves of characters and levels without end, which are no JSON
        except (ValueError, RecursionError) as error:
            misfit = str(error)
        if misfit:
            raise InvalidValueError(f"the value does not fit the schema: {misfit}")
        return head(schema_id) + body

    def fields(self) -> list[Field]:
        """As of `Schema`; a reference to another schema is followed."""
        walk = Walk()
        return walk.first(self._fields(self._schema, "", (), walk))

    def _misfit(self, datum: Any) -> str:
        """The field that the schema does not allow and why; "" if there is none."""
        try:
            self._steps.restart()
            error = best_match(self._validator.iter_errors(datum))
        except TooManyStepsError as too_many:
            return str(too_many)
        except OverflowError:
            return "a number is too large to be compared with the schema"
        except (AttributeError, TypeError) as odd:
            raise ValueError(f"the schema says what its draft does not have ({odd})") from odd
        except Unresolvable as missing:
            raise ValueError(f"the schema refers to {missing.ref}, which is not there") from missing
        if error is None:
            return ""
        return f"{_path(error) or 'the value'}: {error.message}"

    def _fields(self, schema: Any, path: str, seen: tuple[int, ...], walk: Walk) -> Iterator[Field]:
        schema = self._followed(schema)
        if not isinstance(schema, dict) or id(schema) in seen or not walk.enters(path, len(seen)):
            return
        seen = (*seen, id(schema))
        required = schema.get("required")
        for name, inner in (schema.get("properties") or {}).items():
            below = f"{path}.{name}" if path else name
            must = isinstance(required, list) and name in required
            told = shortened(_text(inner, self._followed(inner)))
            doc = self._followed(inner)
            yield Field(below, f"{told}, required" if must else told, _doc(inner) or _doc(doc))
            yield from self._fields(inner, below, seen, walk)
        for key in _BRANCHES:
            for branch in schema.get(key) or ():
                yield from self._fields(branch, path, seen, walk)
        items = schema.get("items")
        if isinstance(items, dict):
            yield from self._fields(items, f"{path}[]", seen, walk)
        yield from self._fields(schema.get("additionalProperties"), f"{path}{{}}", seen, walk)

    def _followed(self, schema: Any) -> Any:
        """What a schema refers to, or itself; a reference that leads nowhere stays."""
        seen: set[str] = set()
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            reference = schema["$ref"]
            if reference in seen or len(seen) == _MOST_REFERENCES:
                break
            seen.add(reference)
            try:
                schema = self._resolver.lookup(reference).contents
            except Unresolvable:
                break
        return schema


def _parsed(text: str) -> Any:
    try:
        found = json_size.parsed(text, "the schema")
    except RefusedError as error:
        raise SchemaError(str(error)) from error
    except ValueError as error:
        raise SchemaError(f"it is not JSON ({error})") from error
    if not isinstance(found, dict | bool):
        raise SchemaError("it is neither an object nor true or false")
    return found


def _resource(schema: Any) -> Resource[Any]:
    if isinstance(schema, dict) and not isinstance(schema.get("$id", ""), str):
        raise SchemaError("$id is no text")
    named = schema.get("$schema") if isinstance(schema, dict) else None
    kind = specification_with(named, default=DRAFT7) if isinstance(named, str) else DRAFT7
    return kind.create_resource(json_size.without_dialects(schema))


def _path(error: jsonschema.ValidationError | jsonschema.SchemaError) -> str:
    """Where in a document the error is, as in `lines[0].sku`."""
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.absolute_path)
    return "".join(parts).removeprefix(".")


def _doc(schema: Any) -> str | None:
    found = schema.get("description") if isinstance(schema, dict) else None
    return found if isinstance(found, str) else None


def _text(schema: Any, followed: Any) -> str:
    """A type in a few words."""
    if not isinstance(schema, dict) or not isinstance(followed, dict):
        return "anything" if schema is not False else "nothing"
    if followed is schema and "$ref" in schema:
        return str(schema["$ref"])
    if "const" in followed:
        return json.dumps(followed["const"])
    if isinstance(followed.get("enum"), list):
        return f"enum ({', '.join(map(_bare, followed['enum']))})"
    kinds = followed.get("type")
    if kinds is None:
        branches = [one for key in ("anyOf", "oneOf") for one in followed.get(key) or ()]
        return " | ".join(_text(one, one) for one in branches) or "anything"
    told = " | ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)
    if kinds == "array" and isinstance(followed.get("items"), dict):
        told = f"array of {_text(followed['items'], followed['items'])}"
    named = followed.get("format")
    default = f" = {json.dumps(followed['default'])}" if "default" in followed else ""
    return (f"{told} ({named})" if named else told) + default


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
