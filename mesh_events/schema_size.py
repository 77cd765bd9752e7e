"""How large an Avro schema may be, so that reading and comparing it ends. Pure.

Schemas come from whoever may register one. A text of some thousand characters can describe more
fields than any machine holds: a type that is used twice by a type that is used twice, and so on.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mesh_events.errors import RefusedError

CODE = "schema_too_large"
MOST_CHARACTERS = 1_000_000
MOST_LEVELS = 64
"""Types within types in the text; names of types are not followed."""
MOST_TYPES = 2000
MOST_BRANCHES = 500
MOST_EXPANDED = 100_000
"""Types with each name replaced by its type, as Spark and other readers expand them."""
_INNER = ("items", "values", "type")


class SchemaTooLargeError(RefusedError):
    """A schema, or a comparison of two, exceeds a limit; the code is `schema_too_large`."""

    def __init__(self, message: str) -> None:
        super().__init__(CODE, message)


def parsed(text: str, subject: str) -> Any:
    """The JSON of a schema whose text and nesting are bounded.

    Args:
        text: an Avro schema.
        subject: what an error names.

    Raises:
        SchemaTooLargeError: the text is too long, or nested too deep.
        RefusedError: `schema_not_usable` for what is no JSON.
    """
    if len(text) > MOST_CHARACTERS:
        raise SchemaTooLargeError(
            f"{subject}: the schema has {len(text)} characters, at most {MOST_CHARACTERS} are "
            "allowed: split it into several topics"
        )
    try:
        schema = json.loads(text)
    except RecursionError as error:
        raise SchemaTooLargeError(_too_deep(subject)) from error
    except ValueError as error:
        raise RefusedError("schema_not_usable", f"{subject}: the schema is no JSON") from error
    require_bounded(schema, subject)
    return schema


def require_bounded(schema: Any, subject: str) -> None:
    """Raise SchemaTooLargeError for too many levels, named types, or branches of a union."""
    types = 0
    left = [(schema, 0)]
    while left:
        one, level = left.pop()
        if level > MOST_LEVELS:
            raise SchemaTooLargeError(_too_deep(subject))
        if isinstance(one, list) and len(one) > MOST_BRANCHES:
            raise SchemaTooLargeError(
                f"{subject}: a union in the schema has {len(one)} branches, at most "
                f"{MOST_BRANCHES} are allowed: use fewer types"
            )
        if isinstance(one, dict) and "name" in one:
            types += 1
        left.extend((inner, level + 1) for inner in inner_types(one))
    if types > MOST_TYPES:
        raise SchemaTooLargeError(
            f"{subject}: the schema defines {types} named types, at most {MOST_TYPES} are allowed: "
            "split it into several topics"
        )


def require_expandable(schema: Any, named: Mapping[str, Any], subject: str) -> None:
    """Raise SchemaTooLargeError where the schema is too large with its types written out.

    Args:
        schema: bounded, see `require_bounded`.
        named: its named types, see `compatibility.named_types`.
        subject: what an error names.
    """
    size = expanded_size(schema, named)
    if size > MOST_EXPANDED:
        told = str(size) if size < 10**9 else "more than a thousand million"
        raise SchemaTooLargeError(
            f"{subject}: the schema describes {told} types when each name is replaced by its type, "
            f"at most {MOST_EXPANDED} are allowed: use a type by its name in fewer places"
        )


def expanded_size(schema: Any, named: Mapping[str, Any]) -> int:
    """The number of types in a schema once each name is replaced by its type.

    A type within itself counts as one. Takes time linear in the text.
    """
    sizes: dict[int, int] = {}
    # None marks a type as entered: it is within itself until its size is known
    entered: set[int] = set()
    left = [schema]
    while left:
        one = left[-1]
        if id(one) in sizes:
            left.pop()
            continue
        below = [_named(inner, named) for inner in inner_types(one)]
        if id(one) not in entered:
            entered.add(id(one))
            left.extend(inner for inner in below if _is_new(inner, sizes, entered))
            continue
        sizes[id(one)] = 1 + sum(sizes.get(id(inner), 1) for inner in below)
        left.pop()
    return sizes[id(schema)]


def inner_types(schema: Any) -> Iterator[Any]:
    """The types that a type is made of, as they are written: branches, fields, items, values."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            if isinstance(field, dict):
                yield field.get("type")
        for key in _INNER:
            # the text of `type` is the kind of the type, or a name of its own
            if key in schema and (key != "type" or isinstance(schema[key], dict | list)):
                yield schema[key]


def _named(schema: Any, named: Mapping[str, Any]) -> Any:
    return named.get(schema, schema) if isinstance(schema, str) else schema


def _is_new(schema: Any, sizes: Mapping[int, int], entered: set[int]) -> bool:
    """Whether a type's size is to be found: names that stand for themselves count as one."""
    return isinstance(schema, dict | list) and id(schema) not in sizes and id(schema) not in entered


def _too_deep(subject: str) -> str:
    return (
        f"{subject}: the schema nests types more than {MOST_LEVELS} levels deep: define types "
        "once, and use them by their names"
    )
