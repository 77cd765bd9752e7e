"""Records in the Confluent wire format, made and read without the code under test."""

import io
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import fastavro

from spark_streams.provenance import Origin
from spark_streams.sql.running.again import Again
from spark_streams.sql.running.frame import MOST_BYTES, Result, Topic, selected, written
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve
from spark_streams.sql.types.result import result_schema
from spark_streams.sql.types.shape import key_columns, shape_of

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
RESULT_ID = 900
_SCHEMA = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """An Avro record's schema."""
    every = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": "shop", "fields": every}


def bare(schema: Any, value: Any) -> bytes:
    """A value as bare Avro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def wire(number: int, schema: Any, value: Any) -> bytes:
    """A value with its schema's id in front."""
    return b"\0" + struct.pack(">I", number) + bare(schema, value)


@dataclass(frozen=True)
class Read:
    """A record of the result; `value` is decoded unless it went to the dead-letter topic."""

    topic: str
    key: bytes | None
    value: Any
    partition: int
    headers: tuple[tuple[str, bytes], ...]


@dataclass
class Statement:
    """A statement over topics whose schemas are given, run over a batch of records.

    schemas: alias -> (id -> schema), the last one is read with; keys: alias -> schema of its keys;
    key_ids, asked_at: of tables, see `Topic`. dead_from, out_from, again, most_bytes: see `Result`.
    """

    spark: Any
    text: str
    schemas: Mapping[str, Mapping[int, Any]]
    keys: Mapping[str, Any]
    dead_from: Mapping[int, int] | None = None
    key_ids: Sequence[int] = ()
    asked_at: Mapping[int, int] = field(default_factory=dict)
    out_from: Mapping[int, int] = field(default_factory=dict)
    again: Again = field(default_factory=Again)
    most_bytes: int = MOST_BYTES

    def topic(self, alias: str) -> Topic:
        every = {number: json.dumps(one) for number, one in self.schemas[alias].items()}
        key = self.keys.get(alias)
        latest = list(every.values())[-1]
        schema = None if key is None else json.dumps(key)
        writers = dict.fromkeys(self.key_ids, schema or "")
        return Topic(alias, shape_of(latest, alias), every, schema, writers, self.asked_at)

    def run(self, rows: Sequence[tuple[Any, ...]], find: Any = None) -> list[Read]:
        """Rows are (key, value, partition, offset) or also headers."""
        parsed = parse(self.text)
        stream, *tables = [self.topic(source.alias) for source in parsed.sources]
        stream = replace(stream, of_rows=parsed.of_rows)
        columns = {stream.alias: [field.name for field in stream.columns]}
        columns |= {one.alias: [field.name for field in one.shape.row] for one in tables}
        keys = {one.alias: key_columns(one.key, one.alias) for one in tables}
        for one in tables:
            if keys[one.alias] == ("_key",):
                columns[one.alias].append("_key")
        query = resolve(parsed, columns, keys)
        records = self.spark.createDataFrame(
            [(k, v, p, o, AT, (more or [None])[0]) for k, v, p, o, *more in rows], _SCHEMA
        )
        chosen = selected(records, query, stream, {one.alias: one for one in tables}, find)
        schema = result_schema(chosen.schema["out"].dataType, "Result", "shop")
        starts = (self.dead_from or {}, self.out_from, self.again, self.most_bytes)
        result = Result("east.out", "east.out.dead", RESULT_ID, schema, *starts)
        reader = fastavro.parse_schema(json.loads(schema))
        out = written(chosen, result, Origin("east", "topic-id"))
        return [_read(row, reader) for row in out.collect()]

    def values(self, rows: Sequence[tuple[Any, ...]], find: Any = None) -> list[Any]:
        return [one.value for one in self.run(rows, find)]


def _read(row: Any, reader: Any) -> Read:
    value = None if row["value"] is None else bytes(row["value"])
    if value is not None and row["topic"] == "east.out":
        assert value[:5] == b"\0" + struct.pack(">I", RESULT_ID)
        value = fastavro.schemaless_reader(io.BytesIO(value[5:]), reader)
    headers = tuple((one["key"], bytes(one["value"])) for one in row["headers"])
    key = row["key"]
    return Read(row["topic"], None if key is None else bytes(key), value, row["partition"], headers)
