"""What a reader's defaults add to the items of a list that an earlier schema wrote. Pure.

An item of one byte, without a field that the reader has, gets its default when it is read: a record
of 200 KB whose items lack a text of 100 KB is 20 GB.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mesh_events.schema.full_names import named_types
from mesh_events.schema.resolution import Comparison
from mesh_events.schema.size import SchemaTooLargeError, inner_types

MOST_ADDED = 512
"""Bytes of defaults that each item of an array, or value of a map, may get."""
_FIXED = 8
"""What a value takes beside its text, of whichever type."""


def added_to_items(reader: Any, writer: Any) -> int:
    """Bytes of defaults that an item of the reader's arrays and maps gets, the largest of all.

    An item's own arrays and maps count apart: each of their items takes a byte at least.

    Args:
        reader: a schema, parsed, bounded and without recursion; see `mesh_events.schema.size`.
        writer: another one of the same subject, whose records are read.

    Raises:
        SchemaTooLargeError: hundreds of types stand each within the other, or comparing the two
            takes too many steps.
    """
    defaults = _Defaults(reader, writer)
    try:
        return max((defaults.of(items) for items in _items(defaults.reader)), default=0)
    except RecursionError as error:
        raise SchemaTooLargeError(
            "the schema nests hundreds of types each within the other by their names: use fewer"
        ) from error


class _Defaults:
    """What values of the reader's types get, each type counted once."""

    def __init__(self, reader: Any, writer: Any) -> None:
        comparison = Comparison(reader, writer)
        self.reader = comparison.reader
        self._named = named_types(self.reader)
        # a record may be read from several of the writer's
        self._written: dict[int, list[set[str]]] = {}
        for read, one in comparison.pairs():
            names = {field["name"] for field in one["fields"]}
            self._written.setdefault(id(read), []).append(names)
        self._known: dict[int, int] = {}

    def of(self, kind: Any) -> int:
        """Bytes that a value of the type gets, without its arrays and maps."""
        kind = self._named.get(kind, kind) if isinstance(kind, str) else kind
        if id(kind) not in self._known:
            self._known[id(kind)] = self._count(kind)
        return self._known[id(kind)]

    def _count(self, kind: Any) -> int:
        if isinstance(kind, list):
            return max(map(self.of, kind), default=0)
        if not isinstance(kind, Mapping) or kind.get("type") != "record":
            return 0
        # a record that the writer does not know comes from a default alone, which counts as such
        written: Sequence[set[str] | None] = self._written.get(id(kind)) or [None]
        return max(sum(self._of_field(one, names) for one in kind["fields"]) for names in written)

    def _of_field(self, field: Mapping[str, Any], written: set[str] | None) -> int:
        names = {field["name"], *field.get("aliases", ())}
        if written is None or not names.isdisjoint(written) or "default" not in field:
            return self.of(field["type"])
        default = field["default"]
        return _FIXED + (0 if default is None else len(json.dumps(default)))


def _items(schema: Any) -> Iterator[Any]:
    """The types of the items of all arrays, and of the values of all maps, in a schema."""
    left = [schema]
    while left:
        one = left.pop()
        if isinstance(one, dict) and one.get("type") in ("array", "map"):
            yield one.get("items", one.get("values"))
        left.extend(inner_types(one))
