"""Whether what was written with one Avro schema can be read with another, and where not. Pure.

The rules are those of the Avro specification, 1.12, "Schema Resolution", without aliases of names;
beyond it, decimals must keep precision and scale, since no reader converts them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_PROMOTED = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""What was written -> what else it can be read as."""
_TOP = "the value"


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
        found += [Break(path, why, who) for path, why in unreadable(before, after)]
    return found


def unreadable(reader: Any, writer: Any) -> list[tuple[str, str]]:
    """(path, reason) of each place that keeps the reader from what the writer wrote."""
    names = _Names(_named(reader), _named(writer))
    return list(_unreadable(reader, writer, "", names))


def changes(old: str, new: str) -> list[Change]:
    """What was added, removed and changed, by path."""
    before, after = ({one.path: one.type for one in fields(schema)} for schema in (old, new))
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


def fields(schema: str) -> list[Field]:
    """The fields of a schema, nested ones behind their own; names are not followed."""
    return list(_fields(json.loads(schema), ""))


@dataclass(frozen=True, slots=True)
class _Names:
    """Named types of both sides, and the pairs of records that are being compared already."""

    reader: Mapping[str, Any]
    writer: Mapping[str, Any]
    seen: set[tuple[str, str]] = field(default_factory=set)


def _unreadable(reader: Any, writer: Any, path: str, names: _Names) -> Iterator[tuple[str, str]]:
    reader, writer = names.reader.get(_key(reader), reader), names.writer.get(_key(writer), writer)
    if isinstance(writer, list):
        for branch in writer:
            yield from _misfit(reader, branch, path, names)
    elif isinstance(reader, list):
        # the branch of the same kind tells best what does not fit
        outcomes = [_misfit(branch, writer, path, names) for branch in reader]
        if all(outcomes):
            same = [one for one, branch in zip(outcomes, reader, strict=True)
                    if _kind(names.reader.get(_key(branch), branch)) == _kind(writer)]  # fmt: skip
            plain = [(path or _TOP, f"{_text(writer)} was written, which {_text(reader)} is not")]
            yield from (same[0] if same else plain)
    else:
        yield from _of_one(reader, writer, path, names)


def _misfit(reader: Any, writer: Any, path: str, names: _Names) -> list[tuple[str, str]]:
    """As `_unreadable`, for a branch that is tried: what was seen in it is forgotten."""
    tried = _Names(names.reader, names.writer, set(names.seen))
    return list(_unreadable(reader, writer, path, tried))


def _of_one(reader: Any, writer: Any, path: str, names: _Names) -> Iterator[tuple[str, str]]:
    """Both sides are one type, no union."""
    kinds = _kind(reader), _kind(writer)
    here = path or _TOP
    if kinds[0] != kinds[1]:
        if kinds[0] not in _PROMOTED.get(kinds[1], set()):
            yield here, f"{_text(writer)} was written, {_text(reader)} is read"
        return
    match kinds[0]:
        case "record":
            yield from _of_record(reader, writer, path, names)
        case "enum":
            lost = [one for one in writer["symbols"] if one not in reader["symbols"]]
            if lost and "default" not in reader:
                yield here, f"the symbols {', '.join(lost)} are missing and there is no default"
        case "array":
            yield from _unreadable(reader["items"], writer["items"], f"{path}[]", names)
        case "map":
            yield from _unreadable(reader["values"], writer["values"], f"{path}{{}}", names)
        case "fixed" if reader["size"] != writer["size"]:
            yield here, f"{writer['size']} bytes were written, {reader['size']} are read"
    if _decimal(reader) != _decimal(writer):
        yield here, f"{_text(writer)} was written, {_text(reader)} is read"


def _of_record(reader: Any, writer: Any, path: str, names: _Names) -> Iterator[tuple[str, str]]:
    pair = reader["name"], writer["name"]
    if pair[0].rpartition(".")[2] != pair[1].rpartition(".")[2]:
        yield path or _TOP, f"the record {pair[1]} was written, {pair[0]} is read"
        return
    if pair in names.seen:
        return
    names.seen.add(pair)
    written = {one["name"]: one for one in writer["fields"]}
    for one in reader["fields"]:
        known = [name for name in (one["name"], *one.get("aliases", ())) if name in written]
        below = f"{path}.{one['name']}" if path else one["name"]
        if known:
            yield from _unreadable(one["type"], written[known[0]]["type"], below, names)
        elif "default" not in one:
            yield below, "it was not written and has no default"


def _decimal(schema: Any) -> tuple[Any, Any] | None:
    if not isinstance(schema, dict) or schema.get("logicalType") != "decimal":
        return None
    return schema.get("precision"), schema.get("scale", 0)


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, dict):
        return _kind(schema["type"]) if not isinstance(schema["type"], str) else schema["type"]
    return str(schema)


def _key(schema: Any) -> str:
    return schema if isinstance(schema, str) else ""


def _named(schema: Any, namespace: str = "") -> dict[str, Any]:
    """Named types by short and full name."""
    found: dict[str, Any] = {}
    if isinstance(schema, list):
        for branch in schema:
            found |= _named(branch, namespace)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if kind in ("record", "enum", "fixed"):
            prefix, _, short = str(schema["name"]).rpartition(".")
            namespace = prefix or schema.get("namespace") or namespace
            found |= {short: schema, f"{namespace}.{short}": schema}
        for one in schema.get("fields", ()):
            found |= _named(one["type"], namespace)
        for inner in ("items", "values"):
            if inner in schema:
                found |= _named(schema[inner], namespace)
        if isinstance(kind, dict | list):
            found |= _named(kind, namespace)
    return found


def _fields(schema: Any, path: str) -> Iterator[Field]:
    if isinstance(schema, list):
        for branch in schema:
            yield from _fields(branch, path)
    elif isinstance(schema, dict):
        for one in schema.get("fields", ()):
            below = f"{path}.{one['name']}" if path else one["name"]
            default = f" = {json.dumps(one['default'])}" if "default" in one else ""
            yield Field(below, _text(one["type"]) + default, one.get("doc"))
            yield from _fields(one["type"], below)
        for inner, mark in (("items", "[]"), ("values", "{}")):
            yield from _fields(schema.get(inner), path + mark)
        yield from _fields(schema["type"], path) if not isinstance(schema["type"], str) else ()


def _text(schema: Any) -> str:
    """A type in a few words."""
    if isinstance(schema, list):
        return " | ".join(_text(branch) for branch in schema)
    if not isinstance(schema, dict):
        return str(schema)
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return f"decimal({schema.get('precision')},{schema.get('scale', 0)})"
    named = {
        "record": "record {name}",
        "fixed": "fixed {name}",
        "enum": "enum {name}",
        "array": "array of {inner}",
        "map": "map of {inner}",
    }
    if logical or kind not in named:
        return str(logical) if logical else _text(kind)
    inner = _text(schema.get("items", schema.get("values", "")))
    symbols = f" ({', '.join(schema['symbols'])})" if kind == "enum" else ""
    return named[kind].format(name=schema.get("name"), inner=inner) + symbols
