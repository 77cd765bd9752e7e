"""How large a JSON Schema may be, so that reading it and checking values by it ends. Pure.

Schemas come from whoever may register one. Their patterns are matched in time that is linear in the
string; see `linear_patterns`. How often references are followed is bounded where they are.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mesh_events.errors import RefusedError
from mesh_events.schema.patterns import matcher
from mesh_events.schema.size import MOST_CHARACTERS, SchemaTooLargeError

MOST_LEVELS = 128
"""Objects and arrays within each other; a property is two of them."""
MOST_SCHEMAS = 10_000
"""Objects and arrays in one schema."""
MOST_ITEMS = 10_000
"""Values of one array that are all strings."""
MOST_OTHER_ITEMS = 500
"""Values of one array that are not: they are compared with each other, one by one."""
MOST_PATTERNS = 1_000
_LONGEST_NAME = 200
_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose value is no schema."""
_NAMED = frozenset(
    {"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"}
)
"""Keywords whose value is an object of schemas, by names that are no keywords."""
_SPLIT = "split the schema, or describe less with it"


def parsed(text: str, subject: str) -> Any:
    """The JSON of a schema that can be used.

    Args:
        text: a JSON Schema.
        subject: what an error names.

    Raises:
        SchemaTooLargeError: it exceeds a limit.
        RefusedError: `unsupported_pattern`, with the place of the pattern; `schema_not_usable`.
        ValueError: it is not JSON.
    """
    require_short(text, subject)
    try:
        schema = json.loads(text)
    except RecursionError as error:
        raise _too_deep(subject) from error
    _require_bounded(schema, subject)
    for number, (path, pattern) in enumerate(_patterns(schema)):
        if number == MOST_PATTERNS:
            raise SchemaTooLargeError(
                f"{subject}: the schema has more than {MOST_PATTERNS} patterns: {_SPLIT}"
            )
        matcher(pattern, f"{subject}: the pattern of {path or 'the value'}")
    _require_evaluated(schema, subject)
    return schema


def require_short(text: str, subject: str) -> None:
    """Raise SchemaTooLargeError for a text of too many characters."""
    if len(text) > MOST_CHARACTERS:
        raise SchemaTooLargeError(
            f"{subject}: the schema has {len(text)} characters, at most {MOST_CHARACTERS} are "
            f"allowed: {_SPLIT}"
        )


def _require_bounded(schema: Any, subject: str) -> None:
    """Raise SchemaTooLargeError for too many levels, objects, or values of an array."""
    count = 0
    left = [(schema, 0)]
    while left:
        one, level = left.pop()
        if not isinstance(one, dict | list):
            continue
        count += 1
        if level > MOST_LEVELS:
            raise _too_deep(subject)
        if count > MOST_SCHEMAS:
            raise SchemaTooLargeError(
                f"{subject}: the schema has more than {MOST_SCHEMAS} objects and arrays: {_SPLIT}"
            )
        if isinstance(one, list):
            most = MOST_ITEMS if all(isinstance(item, str) for item in one) else MOST_OTHER_ITEMS
            if len(one) > most:
                raise SchemaTooLargeError(
                    f"{subject}: an array in the schema has {len(one)} values, at most {most} are "
                    "allowed: name fewer, or a pattern"
                )
        elif any(len(name) > _LONGEST_NAME for name in one):
            raise SchemaTooLargeError(
                f"{subject}: a name in the schema has more than {_LONGEST_NAME} characters: "
                "choose a shorter one"
            )
        inner = one.values() if isinstance(one, dict) else one
        left.extend((item, level + 1) for item in inner)


def _patterns(schema: Any) -> Iterator[tuple[str, str]]:
    """(path in the schema, pattern) of every pattern that values are matched with."""
    left: list[tuple[str, Any, bool]] = [("", schema, False)]
    while left:
        path, one, is_named = left.pop()
        if isinstance(one, list):
            left.extend((path, item, False) for item in one)
        if not isinstance(one, dict):
            continue
        if not is_named:
            if isinstance(one.get("pattern"), str):
                yield path, one["pattern"]
            named = one.get("patternProperties")
            yield from ((path, name) for name in (named if isinstance(named, dict) else ()))
        for key, inner in one.items():
            if is_named or key not in _DATA:
                below = f"{path}.{key}" if path else key
                left.append((below, inner, not is_named and key in _NAMED))


def without_dialects(schema: Any) -> Any:
    """The schema without `$schema`, which would have other rules check a part of it."""
    if isinstance(schema, list):
        return [without_dialects(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: inner if key in _DATA else without_dialects(inner)
        for key, inner in schema.items()
        if not (key == "$schema" and isinstance(inner, str))
    }


def _require_evaluated(schema: Any, subject: str) -> None:
    """Raise RefusedError where what a property matched elsewhere is to be found out."""
    left, found = [schema], set()
    while left:
        one = left.pop()
        if isinstance(one, dict):
            found |= one.keys() & {"patternProperties", "unevaluatedProperties"}
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
    if len(found) == 2:
        raise RefusedError(
            "schema_not_usable",
            f"{subject}: unevaluatedProperties beside patternProperties is not supported: write "
            "additionalProperties where the patterns are",
        )


def _too_deep(subject: str) -> SchemaTooLargeError:
    return SchemaTooLargeError(
        f"{subject}: the schema nests more than {MOST_LEVELS} levels deep: define schemas once, "
        "and refer to them"
    )
