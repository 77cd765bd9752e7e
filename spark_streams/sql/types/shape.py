"""What a topic's values and keys look like to SQL, from their Avro schemas. Pure.

A value that is a Debezium envelope (`before`, `after`, `op`) is a change of a row. Some of Kafka
Connect's types are plain Avro types with a name beside them (`connect.name`); SQL gets what is
meant: dates and times as such.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mesh_events.errors import RefusedError
from mesh_events.schema.full_names import definitions, fields_of, full_name, joined, named_types
from mesh_events.schema.patterns import require_patterns
from mesh_events.schema.times import require_one_meaning
from spark_streams.sql.running import validated
from spark_streams.sql.types.readable import Path, Readable

KEY = "_key"
"""The column that a table has whose keys are no records."""
_ENVELOPE = {"before", "after", "op"}
_TYPES = {"type", "items", "values", "fields"}
"""What of a schema holds others."""


class Meaning(StrEnum):
    """What SQL is given of a value, where its Avro type alone does not tell."""

    ITSELF = "itself"
    DAYS = "days since 1970"
    MILLIS = "milliseconds since 1970, without a zone"
    MICROS = "microseconds since 1970, without a zone"
    NANOS = "nanoseconds since 1970, without a zone"
    ZONED = "a time with a zone, as text"


_MEANT: Mapping[tuple[str, str], Meaning] = {
    ("io.debezium.time.Date", "int"): Meaning.DAYS,
    ("io.debezium.time.Timestamp", "long"): Meaning.MILLIS,
    ("io.debezium.time.MicroTimestamp", "long"): Meaning.MICROS,
    ("io.debezium.time.NanoTimestamp", "long"): Meaning.NANOS,
    ("io.debezium.time.ZonedTimestamp", "string"): Meaning.ZONED,
}
"""(Name of a type, the type) -> what it means. Of another type it means nothing: Spark takes the
last 32 bits of a long for days. Sessions are in UTC, as times without a zone are here."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its name, and what its value means."""

    name: str
    meaning: Meaning = Meaning.ITSELF


@dataclass(frozen=True, slots=True)
class Shape:
    """The values of a topic, and the rows that they stand for where it is read as a table.

    is_change: a value is a change of a row, which stands in its field `after`; else it is the row.
    schema: Avro schema of a value.
    reader: the same without what Spark has no type for.
    fields: columns of a value, unreadable ones as well.
    row_reader: Avro schema that reads no more of a value than the row.
    row_schema: Avro schema of a row.
    row: columns of a row.
    unreadable, row_unreadable: fields of a value and of a row that Spark has no type for -> why.
    """

    is_change: bool
    schema: str
    reader: str
    fields: tuple[Field, ...]
    row_reader: str
    row_schema: str
    row: tuple[Field, ...]
    unreadable: Mapping[Path, str] = field(default_factory=dict, hash=False)
    row_unreadable: Mapping[Path, str] = field(default_factory=dict, hash=False)


def shape_of(schema: str, subject: str) -> Shape:
    """The shape of a topic's values.

    Raises:
        RefusedError: `schema_not_usable`, if they are no records, or no Avro, or tell two times for
            one number, or have fields that differ in nothing but case.
    """
    written = _parsed(schema, subject)
    require_patterns(written, subject)
    require_one_meaning(written, subject)
    validated.require_shallow(written, subject)
    parsed = _plain_texts(written)
    record = _record(parsed)
    if record is None or not _is_alone(parsed):
        raise RefusedError(
            "schema_not_usable", f"{subject}: the values are no records, so they have no columns"
        )
    _require_distinct_names(parsed, subject)
    readable = Readable()
    fields, known = _fields(record), readable.of(record)
    # a union with null around the record is the writer's alone: a null is no row, and no record
    is_as_written = record is parsed and parsed == written and not readable.unreadable
    reader = schema if is_as_written else json.dumps(known)
    row = _row_of(record) if {one.name for one in fields} >= _ENVELOPE else None
    known_row = None if row is None else _row_of(known)
    if row is not None and known_row is not None:
        after, op = (
            next(one for one in known["fields"] if one["name"] == name) for name in ("after", "op")
        )
        only_row = {**known, "fields": [{**after, "type": ["null", known_row]}, op]}
        inside = {path[1:]: why for path, why in readable.unreadable.items() if path[0] == "after"}
        return Shape(
            is_change=True,
            schema=schema,
            reader=reader,
            fields=fields,
            row_reader=json.dumps(_whole(only_row, known)),
            row_schema=json.dumps(_whole(_own_namespace(known_row, known), known)),
            row=_fields(row),
            unreadable=readable.unreadable,
            row_unreadable=inside,
        )
    return Shape(
        is_change=False,
        schema=schema,
        reader=reader,
        fields=fields,
        row_reader=reader,
        row_schema=reader,
        row=fields,
        unreadable=readable.unreadable,
        row_unreadable=readable.unreadable,
    )


def _plain_texts(schema: Any) -> Any:
    """A schema without what has Avro read texts as Java does, which loses bytes that are none."""
    if isinstance(schema, list):
        return [_plain_texts(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _plain_texts(part) if name in _TYPES else part
        for name, part in schema.items()
        if name != "avro.java.string"
    }


def _require_distinct_names(schema: Any, subject: str) -> None:
    """Refuse a record with two fields that Spark takes for one: it reads nothing of the value."""
    for name, record in named_types(schema).items():
        known: dict[str, str] = {}
        for one in fields_of(record):
            other = known.setdefault(one["name"].lower(), one["name"])
            if other != one["name"]:
                raise RefusedError(
                    "schema_not_usable",
                    f"{subject}: the fields {other} and {one['name']} of {name} have one name "
                    "in SQL, which knows no case: write one of them under another name, into a "
                    "topic of its own (`sdm schema register --major`)",
                )


def _row_of(record: dict[str, Any]) -> dict[str, Any] | None:
    """The record of a row in an envelope."""
    after = next(one for one in record["fields"] if one["name"] == "after")
    return _record(_resolved(after["type"], record))


def row_record(schema: Any) -> tuple[dict[str, Any], bool]:
    """The record of a row in a schema that has a shape, and whether a value is a change of it."""
    record = _record(schema) or {}
    row = _row_of(record) if {one["name"] for one in record["fields"]} >= _ENVELOPE else None
    return (record, False) if row is None else (row, True)


def key_columns(schema: str | None, subject: str) -> tuple[str, ...]:
    """The columns that a topic's key has: a record's fields, `_key` for anything else.

    () without a schema: then the key is bytes, and no table can be looked up by it.
    """
    if schema is None:
        return ()
    record = _record(_parsed(schema, subject))
    return (KEY,) if record is None else tuple(one["name"] for one in record["fields"])


def _parsed(schema: str, subject: str) -> Any:
    try:
        return json.loads(schema)
    except ValueError as error:
        raise RefusedError("schema_not_usable", f"{subject}: the schema is no Avro") from error


def _record(schema: Any) -> dict[str, Any] | None:
    """The record that a schema is, also as one branch of a union with null."""
    if isinstance(schema, list):
        records = [found for branch in schema if (found := _record(branch)) is not None]
        return records[0] if len(records) == 1 else None
    if isinstance(schema, dict) and schema.get("type") == "record":
        return schema
    return None


def _is_alone(schema: Any) -> bool:
    """Whether a record has nothing but null beside it."""
    return not isinstance(schema, list) or all(
        _record(one) is not None or one in ("null", {"type": "null"}) for one in schema
    )


def _resolved(schema: Any, record: dict[str, Any]) -> Any:
    """`after` mostly names the record that stands in `before`."""
    branches = schema if isinstance(schema, list) else [schema]
    space, _ = full_name(record, "")
    named = {
        joined(*full_name(found, space)): found
        for one in record["fields"]
        if (found := _record(one["type"])) is not None
    }
    called = (joined(space, one) if isinstance(one, str) else "" for one in branches)
    return [named.get(full, one) for full, one in zip(called, branches, strict=True)]


def _own_namespace(row: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The row's record by itself: it no longer inherits the namespace of the one around it."""
    inherited, _ = full_name(record, "")
    return {**row, "namespace": inherited} if inherited and "namespace" not in row else row


def _whole(part: dict[str, Any], record: dict[str, Any]) -> Any:
    """A part of a record with the types that it names and that are defined elsewhere in it."""
    return Readable(elsewhere=dict(definitions(record))).of(part)


def _fields(record: dict[str, Any]) -> tuple[Field, ...]:
    return tuple(Field(one["name"], meaning(one["type"])) for one in record["fields"])


def meaning(schema: Any) -> Meaning:
    """What the values of a column's type mean; in a record inside of it they mean themselves."""
    return _MEANT.get(_meant(schema), Meaning.ITSELF)


def _meant(schema: Any) -> tuple[str, str]:
    """The name that Kafka Connect gives a type, "" for none, and the type.

    One of several types beside null has none: Spark reads an int and a long as one number, and does
    not tell which of them was written.
    """
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        return _meant(branches[0]) if len(branches) == 1 else ("", "")
    if not isinstance(schema, dict):
        return "", ""
    return str(schema.get("connect.name", "")), str(schema.get("type"))
