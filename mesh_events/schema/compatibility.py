"""Whether what was written with one Avro schema can be read with another, and where not. Pure.

The rules are those of the Avro specification, 1.12, "Schema Resolution"; beyond it, decimals must
keep precision and scale, since no reader converts them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from mesh_events.schema.full_names import named_types, with_full_names
from mesh_events.schema.resolution import (
    LOST_DIGITS,
    NO_TIME,
    OTHER_BRANCH,
    OTHER_NUMBER,
    OTHER_SHAPE,
    OTHER_SYMBOL,
    OTHER_TIME,
    Comparison,
    type_text,
)
from mesh_events.schema.size import MOST_LEVELS, require_bounded

_MOST_FIELDS = 5000
_MOST_REASONS = 1000
_MISREADINGS = (
    *(OTHER_TIME, NO_TIME, OTHER_NUMBER, LOST_DIGITS),
    *(OTHER_BRANCH, OTHER_SHAPE, OTHER_SYMBOL),
)
_LONGEST_TYPE = 1000
"""Characters of a field's type: an enum's symbols stand in each field that has it."""


class Level(StrEnum):
    """What a subject asks of its next schema, compared with the latest one or with all before."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether every earlier version counts, and not the latest one alone."""
        return self.value.endswith("_TRANSITIVE")


@dataclass(frozen=True, slots=True)
class Break:
    """One place where old and new do not fit.

    path: the field, as in `address.zip`.
    reason: in a sentence.
    who: whom it breaks, "new readers" of old records or "old readers" of new ones.
    """

    path: str
    reason: str
    who: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason} ({self.who})"


@dataclass(frozen=True, slots=True)
class Change:
    """A field that was added, removed or changed; `before` and `after` are its types as text."""

    path: str
    what: str
    before: str | None
    after: str | None


def breaks(old: str, new: str, level: Level) -> list[Break]:
    """Where the new schema does what the level does not allow; [] if it may follow the old one."""
    kind = level.value.removesuffix("_TRANSITIVE")
    before, after = json.loads(old), json.loads(new)
    found: list[Break] = []
    if kind in ("BACKWARD", "FULL"):
        who = "new readers of old records"
        found += [Break(path, why, who) for path, why in unreadable(after, before)]
    if kind in ("FORWARD", "FULL"):
        who = "old readers of new records"
        # an enum has its default for symbols that come later: old readers take it for those
        missing = _unreadable(Comparison(before, after), but=OTHER_SYMBOL)
        found += [Break(path, why, who) for path, why in missing]
    return found


def unreadable(reader: Any, writer: Any) -> list[tuple[str, str]]:
    """(path, reason) of each place that keeps the reader from what the writer wrote.

    At most `_MOST_REASONS`, and as many aliases. Raises SchemaTooLargeError where the comparison
    takes too many steps.
    """
    return _unreadable(Comparison(reader, writer))


def _unreadable(comparison: Comparison, but: str | None = None) -> list[tuple[str, str]]:
    """As `unreadable`, but for reasons that end so."""
    reasons = (one for one in comparison.reasons() if but is None or not one[1].endswith(but))
    taken = (
        (path, f"its alias {alias} is the name of another field, whose values it would be given")
        for path, alias in _taking_aliases(comparison)
    )
    return [*islice(reasons, _MOST_REASONS), *islice(taken, _MOST_REASONS)]


def misread(reader: Any, writer: Any) -> list[tuple[str, str]]:
    """(path, reason) of each place that can be read and then means something else.

    Avro lets a reader count in another unit than the writer did, with another scale or fewer
    digits, have the branches of a union at other positions, or fewer symbols; so do registries.
    """
    reasons = Comparison(reader, writer).reasons()
    found = (one for one in reasons if one[1].endswith(_MISREADINGS))
    return list(islice(found, _MOST_REASONS))


def taking_aliases(reader: Any, writer: Any) -> list[tuple[str, str]]:
    """(path, alias) of each reader's field with an alias by which it takes another field's values.

    Avro's readers rename what was written by their aliases before they look for a field's name.
    """
    return _taking_aliases(Comparison(reader, writer))


def _taking_aliases(comparison: Comparison) -> list[tuple[str, str]]:
    written: dict[int, list[set[str]]] = {}
    for read, one in comparison.pairs():
        written.setdefault(id(read), []).append(_names(one))
    found = []
    for record, one in named_types(comparison.reader).items():
        own = _names(one)
        for field in one.get("fields", ()):
            name, aliases = field["name"], set(field.get("aliases", ()))
            before = (names for names in written.get(id(one), ()) if name in names)
            taken = (aliases & own).union(*(aliases & names for names in before))
            found += [(f"{record}.{name}", alias) for alias in sorted(taken - {name})]
    return found


def _names(record: Any) -> set[str]:
    """The names of a record's fields."""
    return {one["name"] for one in record.get("fields", ())}


def changes(old: Iterable["Field"], new: Iterable["Field"]) -> list[Change]:
    """What was added, removed and changed, by path; of schemas in any language."""
    before, after = ({one.path: one.type for one in side} for side in (old, new))
    return [
        Change(path, _what(path, before, after), before.get(path), after.get(path))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]


def _what(path: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    if path not in before:
        return "added"
    return "changed" if path in after else "removed"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a schema: its path, its type and default as text, and its doc."""

    path: str
    type: str
    doc: str | None


def shortened(kind: str) -> str:
    """The text of a field's type; a long one is cut in its middle, and has its length behind."""
    if len(kind) <= _LONGEST_TYPE:
        return kind
    half = _LONGEST_TYPE // 2
    return f"{kind[:half]} ... {kind[-half:]} ({len(kind)} characters)"


def fields(schema: str) -> list[Field]:
    """The fields of a schema, nested ones behind their own, and those of types by name.

    A type that holds itself is not followed into itself; of very many fields the first are told.
    Raises SchemaTooLargeError for a schema beyond what is compared.
    """
    whole = json.loads(schema)
    require_bounded(whole, "the schema")
    whole = with_full_names(whole)
    return list(islice(_fields(whole, "", named_types(whole), ()), _MOST_FIELDS))


def _fields(
    schema: Any, path: str, names: Mapping[str, Any], within: tuple[str, ...]
) -> Iterator[Field]:
    """The fields of a type with full names; `within` are those of the records around it."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _fields(branch, path, names, within)
    elif isinstance(schema, str) and schema in names:
        if schema not in within and len(within) < MOST_LEVELS:
            yield from _fields(names[schema], path, names, within)
    elif isinstance(schema, dict):
        if "name" in schema:
            within = (*within, schema["name"])
        for one in schema.get("fields", ()):
            below = f"{path}.{one['name']}" if path else one["name"]
            default = f" = {json.dumps(one['default'])}" if "default" in one else ""
            yield Field(below, shortened(type_text(one["type"]) + default), one.get("doc"))
            yield from _fields(one["type"], below, names, within)
        for inner, mark in (("items", "[]"), ("values", "{}")):
            yield from _fields(schema.get(inner), path + mark, names, within)
