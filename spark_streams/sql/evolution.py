"""What a new schema makes of rows that were made by an earlier one. Pure.

Rows of `TABLE(...)` stay as they were made. A record that is read by a later schema can have
another value in a field that the record lacks, or has by another name: then its row is not what is
read of it now.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from mesh_events.full_names import named_types
from mesh_events.schema_resolution import Comparison
from mesh_events.schema_size import inner_types


def other_values(before: Any, after: Any, columns: Collection[str]) -> list[tuple[str, str]]:
    """(path, reason) of each field by which a record may be read as other values than it was.

    Args:
        before: the schema by which rows were made, parsed, without recursion.
        after: the one by which records are read now, with which the records of the other one go.
        columns: fields of its record that make the rows.

    Raises:
        SchemaTooLargeError: comparing the two takes too many steps.
    """
    comparison = Comparison(after, before)
    top = comparison.reader
    used = [one for one in top.get("fields", ()) if one["name"] in columns]
    within = _within((one["type"] for one in used), named_types(top))
    found = []
    for now, then in comparison.pairs():
        fields = used if now is top else now.get("fields", ())
        if now is top or id(now) in within:
            found += list(_others(now["name"], fields, then.get("fields", ())))
    return found


def _others(
    record: str, fields: Iterable[Mapping[str, Any]], earlier: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    known = {one["name"]: one for one in earlier}
    for field in fields:
        name = field["name"]
        path, default = f"{record}.{name}", json.dumps(field.get("default"))
        before = known.get(name)
        if before is None:
            renamed = [one for one in field.get("aliases", ()) if one in known]
            if renamed:
                yield path, f"was {renamed[0]} before"
            elif default != "null":
                yield path, "is new, and records without it have the default"
        elif "default" in before and json.dumps(before["default"]) != default:
            yield path, "has another default, which records without it have"


def _within(kinds: Iterable[Any], names: Mapping[str, Any]) -> set[int]:
    """By their identity the types that these are made of."""
    left, found = list(kinds), set[int]()
    while left:
        kind = left.pop()
        kind = names.get(kind, kind) if isinstance(kind, str) else kind
        if not isinstance(kind, str) and id(kind) not in found:
            found.add(id(kind))
            left += inner_types(kind)
    return found
