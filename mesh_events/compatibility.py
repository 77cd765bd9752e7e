"""Whether what was written with one Avro schema can be read with another, and where not. Pure.

The rules are those of the Avro specification, 1.12, "Schema Resolution"; beyond it, decimals must
keep precision and scale, since no reader converts them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
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
_MOST_FIELDS = 5000
_TIMES = {
    **{one: one for one in ("date", "time-millis", "time-micros")},
    **{
        f"{local}timestamp-{unit}": f"timestamp-{unit}"
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
    **{
        f"io.debezium.time.{unit}{what}": f"{what.lower()}-{count}"
        for unit, count in (("", "millis"), ("Micro", "micros"), ("Nano", "nanos"))
        for what in ("Time", "Timestamp")
    },
    "io.debezium.time.Date": "date",
}
"""What numbers count, by Avro's names and by Debezium's -> Avro's."""
_OTHER_TIME = ": the same number means another time"


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
    names = _Names(named_types(reader), named_types(writer))
    return list(_unreadable(reader, writer, "", names))


def misread(reader: Any, writer: Any) -> list[tuple[str, str]]:
    """(path, reason) of each place that can be read and then means another time.

    Avro lets a reader count in another unit than the writer did, and so do registries.
    """
    return [one for one in unreadable(reader, writer) if one[1].endswith(_OTHER_TIME)]


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


def fields(schema: str) -> list[Field]:
    """The fields of a schema, nested ones behind their own, and those of types by name.

    A type that holds itself is not followed into itself; of very many fields the first are told.
    """
    whole = json.loads(schema)
    return list(islice(_fields(whole, "", named_types(whole), frozenset()), _MOST_FIELDS))


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
        else:
            yield from _of_times(reader, writer, here)
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
    yield from _of_times(reader, writer, here)


def _of_times(reader: Any, writer: Any, here: str) -> Iterator[tuple[str, str]]:
    """Both sides are numbers that tell a time; one that does not say so may mean the same."""
    read, written = _time(reader), _time(writer)
    if read and written and read != written:
        yield here, f"{written} was written, {read} is read{_OTHER_TIME}"


def _time(schema: Any) -> str | None:
    """What a number counts, by Avro's name."""
    if not isinstance(schema, dict):
        return None
    told = (schema.get(one) for one in ("connect.name", "logicalType"))
    return next((_TIMES[one] for one in told if isinstance(one, str) and one in _TIMES), None)


def _of_record(reader: Any, writer: Any, path: str, names: _Names) -> Iterator[tuple[str, str]]:
    pair = reader["name"], writer["name"]
    known_as = {one.rpartition(".")[2] for one in (pair[0], *reader.get("aliases", ()))}
    if pair[1].rpartition(".")[2] not in known_as:
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


def named_types(schema: Any, namespace: str = "") -> dict[str, Any]:
    """The named types in an Avro schema, by short and by full name.

    namespace: the one around the schema.
    """
    found: dict[str, Any] = {}
    if isinstance(schema, list):
        for branch in schema:
            found |= named_types(branch, namespace)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if kind in ("record", "enum", "fixed"):
            prefix, _, short = str(schema["name"]).rpartition(".")
            namespace = prefix or schema.get("namespace") or namespace
            found |= {short: schema, f"{namespace}.{short}": schema}
        for one in schema.get("fields", ()):
            found |= named_types(one["type"], namespace)
        for inner in ("items", "values"):
            if inner in schema:
                found |= named_types(schema[inner], namespace)
        if isinstance(kind, dict | list):
            found |= named_types(kind, namespace)
    return found


def _fields(
    schema: Any, path: str, names: Mapping[str, Any], within: frozenset[str]
) -> Iterator[Field]:
    """The fields of a type; `within` are the names of the records that it stands in."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _fields(branch, path, names, within)
    elif isinstance(schema, str) and schema in names:
        if names[schema]["name"] not in within:
            yield from _fields(names[schema], path, names, within)
    elif isinstance(schema, dict):
        within |= {schema["name"]} if "name" in schema else set()
        for one in schema.get("fields", ()):
            below = f"{path}.{one['name']}" if path else one["name"]
            default = f" = {json.dumps(one['default'])}" if "default" in one else ""
            yield Field(below, _text(one["type"]) + default, one.get("doc"))
            yield from _fields(one["type"], below, names, within)
        for inner, mark in (("items", "[]"), ("values", "{}")):
            yield from _fields(schema.get(inner), path + mark, names, within)
        if not isinstance(schema["type"], str):
            yield from _fields(schema["type"], path, names, within)


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
