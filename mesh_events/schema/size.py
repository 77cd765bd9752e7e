"""How large an Avro schema may be, so that reading and comparing it ends. Pure.

Schemas come from whoever may register one. A text of some thousand characters can describe more
fields than any machine holds: a type that is used twice by a type that is used twice, and so on.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mesh_events.errors import RefusedError
from mesh_events.schema.full_names import named_types, with_full_names

CODE = "schema_too_large"
MOST_CHARACTERS = 1_000_000
TOO_MANY_VERSIONS = "too_many_versions"
MOST_VERSIONS = 500
MOST_TOGETHER = 4_000_000
"""Characters of all versions of a subject, and of all that a statement reads, each with what it
refers to."""
MOST_LEVELS = 64
"""Types within types in the text; names of types are not followed."""
MOST_TYPES = 2000
MOST_BRANCHES = 500
LONGEST_NAME = 512
"""Characters of a name: of a field, a type, its namespace, an alias or a symbol.

Names are columns, and stand in lineage and errors, thousands of times. A topic's name has 249.
"""
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
    """Raise SchemaTooLargeError for too many levels, named types, or branches, and long names.

    Also for what a few bytes stand for without a bound, see `_require_bytes`.
    """
    types = 0
    _require_short_names(schema, subject)
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
    _require_bytes(schema, subject)


def _require_short_names(schema: Any, subject: str) -> None:
    """Raise SchemaTooLargeError for a name that is too long."""
    left = [schema]
    while left:
        one = left.pop()
        for name in _names(one):
            if len(name) > LONGEST_NAME:
                raise SchemaTooLargeError(
                    f"{subject}: the name {name[:60]}... in the schema has {len(name)} "
                    f"characters, at most {LONGEST_NAME} are allowed: use a shorter one"
                )
        left.extend(inner_types(one))


def _names(schema: Any) -> Iterator[str]:
    """What a type, its symbols and each of its fields are called."""
    if not isinstance(schema, dict):
        return
    fields = schema.get("fields")
    for one in (schema, *(fields if isinstance(fields, list) else ())):
        if isinstance(one, dict):
            yield from _texts(one.get("name"), one.get("namespace"))
            yield from _texts(*_listed(one, "aliases"), *_listed(one, "symbols"))


def _listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _texts(*found: Any) -> Iterator[str]:
    return (one for one in found if isinstance(one, str))


def _require_bytes(schema: Any, subject: str) -> None:
    """Raise SchemaTooLargeError for items that take no bytes, and a record right within itself.

    A message of ten bytes can hold any number of such items, and no machine does; such a record has
    no value. Takes time linear in the text.
    """
    types = _Types(schema)
    for record in types.records:
        if not types.ends(record):
            raise SchemaTooLargeError(
                f"{subject}: the record {types.records[record]} holds itself in every value: make "
                'the field a union with "null"'
            )
    for items in types.items:
        if types.is_empty(items):
            raise SchemaTooLargeError(
                f"{subject}: the items of an array, {str(items)[:80]}, take no bytes, so that a "
                "short record may have any number of them: use a count instead of the array"
            )


def require_no_recursion(schema: Any, subject: str) -> None:
    """Raise RefusedError `schema_not_usable` where a record may hold another one of its type.

    Avro's reader calls itself for each level, and a megabyte has room for a million: the server
    ends with a stack overflow.

    Args:
        schema: bounded, see `require_bounded`.
        subject: what an error names.
    """
    name = _Types(schema).recursive()
    if name is not None:
        raise RefusedError(
            "schema_not_usable",
            f"{subject}: a record {name} may hold another one, in any number of levels, and is not "
            "read: write such values as a list that names their parents",
        )


def require_expandable(schema: Any, subject: str) -> None:
    """Raise SchemaTooLargeError where the schema is too large with its types written out.

    Args:
        schema: bounded, see `require_bounded`.
        subject: what an error names.
    """
    size = expanded_size(schema)
    if size > MOST_EXPANDED:
        told = str(size) if size < 10**9 else "more than a thousand million"
        raise SchemaTooLargeError(
            f"{subject}: the schema describes {told} types when each name is replaced by its type, "
            f"at most {MOST_EXPANDED} are allowed: use a type by its name in fewer places"
        )


def expanded_size(schema: Any) -> int:
    """The number of types in a bounded schema once each name is replaced by its type.

    A type within itself counts as one. Takes time linear in the text.
    """
    schema = with_full_names(schema)
    named = named_types(schema)
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
        # only a record has fields: whatever stands there elsewhere is nothing to Avro
        fields = schema.get("fields")
        for field in fields if isinstance(fields, list) else ():
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


class _Types:
    """The records of a schema by identity, with their names, and the items of its arrays."""

    def __init__(self, schema: Any) -> None:
        # which is kept, as its types are told by their identity
        self._schema = with_full_names(schema)
        self._named = named_types(self._schema)
        self.records: dict[int, str] = {}
        self.items: list[Any] = []
        self._fields: dict[int, list[Any]] = {}
        self._empty: dict[int, bool] = {}
        left = [self._schema]
        while left:
            one = left.pop()
            if isinstance(one, dict) and one.get("type") in ("record", "error") and "name" in one:
                self.records[id(one)] = one["name"]
                self._fields[id(one)] = list(inner_types(one))
            if isinstance(one, dict) and one.get("type") == "array":
                self.items.append(one.get("items"))
            left.extend(inner_types(one))

    def ends(self, record: int) -> bool:
        """Whether reading a record ends where no bytes are left; finds what takes none."""
        entered: set[int] = set()
        left = [record]
        while left:
            one = left[-1]
            if one in self._empty:
                left.pop()
                continue
            inner = [_named(field, self._named) for field in self._fields[one]]
            if one in entered:
                self._empty[one] = all(self._is_empty(kind) for kind in inner)
                entered.remove(one)
                continue
            entered.add(one)
            below = [id(kind) for kind in inner if id(kind) in self._fields]
            if not entered.isdisjoint(below):
                return False
            left.extend(kind for kind in below if kind not in self._empty)
        return True

    def recursive(self) -> str | None:
        """A record that holds itself in some value, None if there is none."""
        done: set[int] = set()
        for record in self.records:
            entered: set[int] = set()
            left = [record]
            while left:
                one = left[-1]
                if one in done or one in entered:
                    done.add(left.pop())
                    entered.discard(one)
                    continue
                entered.add(one)
                below = self._held(one)
                if not entered.isdisjoint(below):
                    return self.records[one]
                left.extend(below - done)
        return None

    def _held(self, record: int) -> set[int]:
        """The records that its fields, their branches, items and values are."""
        found: set[int] = set()
        left = list(self._fields[record])
        while left:
            kind = _named(left.pop(), self._named)
            if id(kind) in self._fields:
                found.add(id(kind))
            else:
                left.extend(inner_types(kind))
        return found

    def is_empty(self, kind: Any) -> bool:
        """Whether a value of the type takes no bytes."""
        return self._is_empty(_named(kind, self._named))

    def _is_empty(self, kind: Any) -> bool:
        if isinstance(kind, dict) and kind.get("type") == "fixed":
            return kind.get("size") == 0
        is_null = kind == "null" or (isinstance(kind, dict) and kind.get("type") == "null")
        return is_null or self._empty.get(id(kind), False)
