"""What a statement does to each record, as functions on DataFrames.

In: records as Spark's Kafka source gives them. Out: records as its sink takes them, at most one for
each, in the partition they came from. What cannot be read goes to the dead-letter topic as it was.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mesh_events.errors import RefusedError
from mesh_events.schema.full_names import fields_of, named_types
from spark_streams.copy import header, headers_before, source_header
from spark_streams.jvm import CANONICAL_KEY, VALID_TEXTS
from spark_streams.provenance import Origin
from spark_streams.sql.functions.casts import spark_type
from spark_streams.sql.growing import limits
from spark_streams.sql.running import decimals, validated
from spark_streams.sql.running.again import Again, is_again, is_known, mark, not_before, stands
from spark_streams.sql.running.attempts import attempted, moment, no_moment, no_zoned
from spark_streams.sql.running.compiled import Sources, compiled
from spark_streams.sql.running.headers import kept
from spark_streams.sql.text.tree import Type
from spark_streams.sql.types.names import OF_RECORD
from spark_streams.sql.types.resolve import Lookup, Query
from spark_streams.sql.types.shape import KEY, Field, Meaning, Shape

REASON = "mesh.reason"
"""Header of a record in a dead-letter topic: why it is there."""
NO_KEY = "a row of a table has a key, and this record has none"
UNREADABLE = "the value cannot be read with the schema of its topic"
FOREIGN_KEY = "its key has a schema that is not one of its topic's keys"
OTHER_KEY = "its key has other bytes than Avro's writers give it"
NO_CHANGE = "its op and its after contradict each other: no insert, update or delete is so"
PASSED = "it was read again after a restart, when its place in the result had passed"
TOO_LARGE = "the result would be larger than a record of its topic may be, with key and headers"
MOST_BYTES = 16 * 1024 * 1024 + 4_096
"""Bytes of a record that a topic takes; see `processors.controllers.flows.copy_settings`."""
LONGEST_REASON = 900
"""Characters of a reason, of four bytes each at most: within the 4 KiB that a dead letter may have
beyond the largest record of a stream, beside its other headers."""
_OF_RECORD, _OF_HEADER = 128, 16
"""Bytes that Kafka's producer counts at most beside those of key, value and headers."""
UNREADABLE_ROW = "the table's row cannot be read with the schema of its topic"
_READ = "__read"
_ENCODED, _HEADERS = "__encoded", "__headers"
_ALL = 2_147_483_647
_SOURCE = "__source"
"""With a number behind it the name of a column of this frame, which no name of a text is."""
_KEY_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "string": "string",
    "bytes": "binary",
    "enum": "string",
}

Find = Callable[[str, Any], Any]
"""(alias of a table, column with a key as bare Avro) -> the latest row with that key as bare Avro,
null where there is none."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A source of a statement, as it was when the statement was planned.

    shape: of its values, which are read with its schema whatever their own is.
    writers: id of each schema that its values may have -> the schema.
    key: schema of its keys, None if they have none.
    key_writers: id of each schema that its keys may have -> the schema, `key` the last of them.
    asked_at: partition -> its end before the registry was asked for `writers`. A record before it
        with another schema's id cannot be read; one behind it may have a schema that was registered
        since, and ends the query, which is then planned anew. Empty: it cannot be read either. With
        `of_rows` the same holds of keys and `key_writers`. A stream's key ends the query too, for
        the result has its keys; before the ends it is the result's as it is. In a table in which
        rows are looked up each key has one of these ids, and a row whose value cannot be read fails
        what looks it up.
    of_rows: it is a table of which each change is dealt with; see `selected`.
    """

    alias: str
    shape: Shape
    writers: Mapping[int, str] = field(hash=False)
    key: str | None = None
    key_writers: Mapping[int, str] = field(default_factory=dict, hash=False)
    asked_at: Mapping[int, int] = field(default_factory=dict, hash=False)
    of_rows: bool = False

    @property
    def columns(self) -> tuple[Field, ...]:
        """Its columns: of the row, where it is a table."""
        return self.shape.row if self.of_rows else self.shape.fields

    @property
    def readable(self) -> tuple[Field, ...]:
        """Those of its columns that Spark has a type for."""
        shape = self.shape
        unreadable = shape.row_unreadable if self.of_rows else shape.unreadable
        return tuple(one for one in self.columns if (one.name,) not in unreadable)


@dataclass(frozen=True, slots=True)
class Result:
    """Where the result goes.

    topic, dead: the destination and its dead-letter topic.
    schema_id, schema: of the values.
    out_from, dead_from: partition -> first offset of the source whose record is not in the
        destination, or among the dead letters, yet. Each topic is written by itself, so that one
        may be ahead of the other; a partition that is left out has nothing there.
    again: which records stand in one of the two, among those that are read again.
    most_bytes: of a record that both topics take.
    """

    topic: str
    dead: str
    schema_id: int
    schema: str
    dead_from: Mapping[int, int] = field(hash=False)
    out_from: Mapping[int, int] = field(default_factory=dict, hash=False)
    again: Again = field(default_factory=Again, hash=False)
    most_bytes: int = MOST_BYTES


def selected(
    records: Any, query: Query, stream: Topic, tables: Mapping[str, Topic], find: Find | None
) -> Any:
    """The columns of the result, with what else a record needs on its way.

    Of a table, each record is a row's latest state and gives that of the result's row: null where
    the row was deleted, or does not meet the condition (any more).

    With None for `find` no key is computed and no row found: for who asks for types alone.

    Returns:
        DataFrame[out: struct, fault: string, key, value, partition, offset, headers]; `fault` tells
        why a record goes to the dead letters, null if it does not. `out` is null for a row of a
        table that is to be no more.
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BinaryType

    sources = {stream.alias: f"{_SOURCE}0"}
    rows = _with_stream(records, stream, sources[stream.alias])
    names = limits.longest_names(
        [stream.shape.reader, *(t.shape.row_schema for t in tables.values())]
    )
    dead = f.col("fault").isNotNull()
    for number, lookup in enumerate(query.lookups, 1):
        alias = lookup.alias
        # what gives the key is of the sources before it, and the condition of this one, too
        rows = limits.checked(rows, [one.node for one in lookup.key.values()], sources, names)
        if find is None:
            rows = rows.withColumn("__found", f.lit(None).cast(BinaryType()))
        else:
            rows = attempted(rows, "__key", _key(lookup, tables[alias], sources))
            rows = rows.withColumn("__found", find(alias, f.col("__key")))
        sources[alias] = f"{_SOURCE}{number}"
        rows = _with_table(rows, lookup, tables[alias], sources, names)
        if not lookup.outer:
            cheap = "__found" if lookup.condition is None else sources[alias]
            rows = rows.where(dead | f.col(cheap).isNotNull())
        rows = rows.drop("__found", "__key", "__value")
    stays = f.lit(True)
    if query.where is not None:
        rows = limits.checked(rows, [query.where], sources, names)
        rows = attempted(rows, "__stays", compiled(query.where, sources))
        stays = f.col("__stays")
    if stream.of_rows:
        stays = f.col("__row") & stays
    elif query.where is not None:
        # a condition that is null is not met
        rows = rows.where(f.coalesce(stays, dead))
    # what is passed over is not computed, and so cannot be too much
    expressions = [one.expression for one in query.out]
    among = stays if stream.of_rows else None
    rows = limits.checked(rows, expressions, sources, names, among)
    out = f.struct(*[compiled(one.expression, sources).alias(one.name) for one in query.out])
    out = f.call_function(VALID_TEXTS, out)
    rows = attempted(rows, "out", f.when(stays, out) if stream.of_rows else out)
    return rows.select("out", "fault", "key", "value", "partition", "offset", "headers")


def written(rows: Any, result: Result, origin: Origin) -> Any:
    """Records for the sink, from what `selected` gives.

    Returns:
        DataFrame[topic: string, key: binary, value: binary, partition: int, headers: array].
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BinaryType

    rows = _encoded(rows, result, origin)
    again, fault = result.again, f.col("fault")
    dead, source = fault.isNotNull(), source_header(origin)
    is_next = f.when(dead, not_before(result.dead_from)).otherwise(not_before(result.out_from))
    if again.until:
        is_next = f.when(is_known(again), ~stands(again)).otherwise(is_next)
    rows = rows.where(is_next)
    reason = f.substring(fault, 1, LONGEST_REASON)
    why = f.array(header(REASON, reason.cast(BinaryType())))
    if again.until:
        # the result stays in order, also where a record had no row the first time
        late = f.when(~not_before(result.out_from), f.lit(PASSED))
        rows = rows.withColumn("fault", f.coalesce(fault, late))
        why = f.when(is_again(again), f.concat(why, f.array(mark(again)))).otherwise(why)
    return rows.select(
        f.when(dead, f.lit(result.dead)).otherwise(f.lit(result.topic)).alias("topic"),
        f.col("key"),
        f.when(dead, f.col("value")).otherwise(f.col(_ENCODED)).alias("value"),
        f.col("partition"),
        f.when(dead, f.concat(headers_before(), why, f.array(source)))
        .otherwise(f.col(_HEADERS))
        .alias("headers"),
    )


def _encoded(rows: Any, result: Result, origin: Origin) -> Any:
    """Also the result as Avro; `fault` tells where its topic would not take the record.

    Kafka's producer throws for such a record, and each start would come to it again.
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.connect.avro.functions import to_avro
    from pyspark.sql.types import LongType

    encoded = f.concat(_prefix(result.schema_id), to_avro(f.col("out"), result.schema))
    # a row of a table that is no more: a record without a value
    encoded = f.when(f.col("out").isNotNull(), encoded)
    rows = rows.withColumn(_ENCODED, _once(encoded))
    # most records have no headers: going through them is not compiled, and takes most of the time
    there = f.coalesce(f.size("headers"), f.lit(0)) > 0
    source = f.array(source_header(origin))
    headers = f.when(there, f.concat(kept(), source)).otherwise(source)
    rows = rows.withColumn(_HEADERS, _once(headers))

    def bytes_of(one: Any) -> Any:
        lengths = limits.length(one.getField("key")) + limits.length(one.getField("value"))
        return f.lit(_OF_HEADER).cast(LongType()) + lengths

    of_headers = f.when(
        there,
        f.aggregate(_HEADERS, f.lit(0).cast(LongType()), lambda sum_, one: sum_ + bytes_of(one)),
    ).otherwise(bytes_of(f.get(_HEADERS, f.lit(0))))
    size = f.lit(_OF_RECORD) + limits.length(_ENCODED) + limits.length("key") + of_headers
    fault = f.when(size > f.lit(result.most_bytes), f.lit(TOO_LARGE))
    return rows.withColumn("fault", _once(f.coalesce(f.col("fault"), fault)))


def _with_stream(records: Any, stream: Topic, name: str) -> Any:
    """Also the stream's columns, as a struct of this name.

    Records without a value are passed over, but for a table, where they are the ends of rows; of
    that `__row` tells whether there is a row.
    """
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import StringType

    reader, writers = stream.shape.reader, stream.writers.values()
    there = f.col("value").isNotNull()
    read = records if stream.of_rows else records.where(there)
    read = read.withColumn("__value", _decoded("value", stream))
    unread = f.coalesce(~f.col("__value").getField(_marker(reader, writers)), f.lit(True))
    if stream.asked_at:
        newer = _is_of_other(f.col("value"), stream.writers) & not_before(stream.asked_at)
        unread = f.when(newer, _stops(f.col("value"))).otherwise(unread)
    fault = f.when(there & unread, f.lit(UNREADABLE))
    if stream.of_rows:
        fault = f.coalesce(_fault_of_key(stream), fault)
    elif stream.asked_at and stream.key_writers:
        key = f.col("key")
        newer = _is_of_other(key, stream.key_writers) & not_before(stream.asked_at)
        fault = f.when(newer, _stops(key).cast(StringType())).otherwise(fault)
    read = read.withColumn("fault", fault)
    read = decimals.declared(read, "__value", _marked(reader, writers))
    inner = f.col("__value")
    if stream.of_rows and stream.shape.is_change:
        op, inner = inner.getField("op"), inner.getField("after")
        fault = f.when(there & ~_is_change(op, inner), f.lit(NO_CHANGE))
        read = read.withColumn("fault", f.coalesce(f.col("fault"), fault))
    columns = [_meant(inner, one) for one in stream.readable]
    fault = f.coalesce(
        f.col("fault"),
        validated.fault(f.col("__value"), json.loads(stream.shape.reader)),
        *_no_moments(inner, stream.readable),
    )
    if stream.of_rows:
        read = read.withColumn("__row", there & inner.isNotNull())
    known = {one.name for one in stream.columns}
    columns += [f.col(name[1:]).alias(name) for name in OF_RECORD if name not in known]
    # what a record lacks comes from the schema's defaults
    size = limits.length("value") + limits.length("key") + f.lit(len(stream.shape.reader.encode()))
    read = read.withColumn("fault", fault).withColumn(limits.BYTES, size)
    return read.withColumn(name, f.struct(*columns))


def _is_change(op: Any, after: Any) -> Any:
    """Whether what a change says that it is agrees with the row that it has, as in sinks."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import StringType

    name = op.cast(StringType())
    is_row = after.isNotNull() & name.isin("c", "r", "u")
    return f.coalesce(is_row | after.isNull() & (name == f.lit("d")), f.lit(False))


def _fault_of_key(stream: Topic) -> Any:
    """Why a record is no row of a table: rows are told apart by the bytes of their keys."""
    from pyspark.sql.connect import functions as f

    key = f.col("key")
    fault = f.when(key.isNull(), f.lit(NO_KEY))
    if not stream.key_writers:
        return fault
    foreign = f.lit(True)
    if stream.asked_at:
        foreign = f.when(not_before(stream.asked_at), _stops(key)).otherwise(foreign)
    is_foreign = f.when(_is_of_other(key, stream.key_writers), foreign)
    is_canonical = f.call_function(CANONICAL_KEY, f.lit(stream.key), key)
    return fault.when(is_foreign, f.lit(FOREIGN_KEY)).when(~is_canonical, f.lit(OTHER_KEY))


def _meant(struct: Any, column: Field) -> Any:
    """A field of a struct as SQL is given it, under its name."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import TimestampNTZType, TimestampType

    value = struct.getField(column.name)
    match column.meaning:
        case Meaning.DAYS:
            value = f.date_from_unix_date(value)
        case Meaning.MILLIS:
            value = moment(value)
        case Meaning.MICROS:
            value = f.timestamp_micros(value).cast(TimestampNTZType())
        case Meaning.NANOS:
            # also of a time before 1970 the microsecond that it is in
            cut = f.when((value < 0) & (value % 1000 != 0), f.lit(1)).otherwise(f.lit(0))
            micros = f.call_function("div", value, f.lit(1000)) - cut
            value = f.timestamp_micros(micros).cast(TimestampNTZType())
        case Meaning.ZONED:
            value = value.try_cast(TimestampType())
    return value.alias(column.name)


def _no_moments(struct: Any, columns: Iterable[Field]) -> list[Any]:
    """For each field that holds a time: why Spark has no such one, null if it has."""
    why = {Meaning.MILLIS: no_moment, Meaning.ZONED: no_zoned}
    meant = [(one.name, why[one.meaning]) for one in columns if one.meaning in why]
    return [reason(struct.getField(name), name) for name, reason in meant]


def _with_table(rows: Any, lookup: Lookup, table: Topic, sources: Sources, names: int) -> Any:
    """Also the columns of the table's row as a struct, null where there is none."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.connect.avro.functions import from_avro

    schema, found = table.shape.row_schema, f.col("__found").isNotNull()
    options = {"mode": "PERMISSIVE", "avroSchema": decimals.widened(_marked(schema))}
    rows = rows.withColumn("__value", _once(from_avro("__found", schema, options)))
    unread = found & f.coalesce(~f.col("__value").getField(_marker(schema, ())), f.lit(True))
    fault = f.when(unread, f.lit(UNREADABLE_ROW))
    rows = rows.withColumn("fault", f.coalesce(f.col("fault"), fault))
    rows = decimals.declared(rows, "__value", _marked(schema))
    row = table.shape.row_unreadable
    readable = [one for one in table.shape.row if (one.name,) not in row]
    columns = [_meant(f.col("__value"), one) for one in readable]
    if faults := _no_moments(f.col("__value"), readable):
        rows = rows.withColumn("fault", f.coalesce(f.col("fault"), *faults))
    if list(lookup.key) == [KEY]:
        columns.append(_parts(lookup, table, sources)[KEY].alias(KEY))
    name = sources[lookup.alias]
    rows = rows.withColumn(name, f.when(found, f.struct(*columns)))
    more = limits.length("__found") + f.lit(len(schema.encode()))
    rows = rows.withColumn(limits.BYTES, f.col(limits.BYTES) + more)
    if lookup.condition is not None:
        rows = limits.checked(rows, [lookup.condition], sources, names)
        rows = attempted(rows, "__meets", compiled(lookup.condition, sources))
        rows = rows.withColumn(name, f.when(f.col("__meets"), f.col(name))).drop("__meets")
    return rows


def _key(lookup: Lookup, table: Topic, sources: Sources) -> Any:
    """The bytes of the key to look for, null if a part of it is."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.connect.avro.functions import to_avro

    assert table.key is not None  # noqa: S101 - a table without a key is refused before
    parts = _parts(lookup, table, sources)
    columns = [part.alias(name) for name, part in parts.items()]
    whole = columns[0] if list(parts) == [KEY] else f.struct(*columns)
    lacks = f.array_contains(f.array(*[part.isNull() for part in parts.values()]), f.lit(True))
    return f.when(~lacks, to_avro(whole, table.key))


def _parts(lookup: Lookup, table: Topic, sources: Sources) -> dict[str, Any]:
    """Column of the key -> what gives it, in its type."""
    from pyspark.sql.connect import functions as f

    kinds, symbols = key_types(table.key or "null"), key_symbols(table.key or "null")
    parts = {
        name: compiled(one.node, sources).try_cast(spark_type(Type(kinds[name])))
        for name, one in lookup.key.items()
    }
    for name, known in symbols.items():
        # no row has a key that is none of them, and Spark's writer ends the query on it
        parts[name] = f.when(parts[name].isin(known), parts[name])
    return parts


def key_types(schema: str) -> dict[str, str]:
    """Columns of a key -> their SQL types."""
    return {name: _sql_type(kind) for name, kind in _key_fields(schema).items()}


def key_symbols(schema: str) -> dict[str, list[str]]:
    """Columns of a key that are enums -> their symbols."""
    return {
        name: kind["symbols"]
        for name, kind in _key_fields(schema).items()
        if isinstance(kind, dict) and kind["type"] == "enum"
    }


def _key_fields(schema: str) -> dict[str, Any]:
    """Columns of a key -> their Avro types, without null."""
    parsed = json.loads(schema)
    fields = {KEY: parsed}
    if isinstance(parsed, dict) and parsed.get("type") == "record":
        fields = {one["name"]: one["type"] for one in parsed["fields"]}
    return {name: _not_null(kind) for name, kind in fields.items()}


def _not_null(schema: Any) -> Any:
    """The type of a value that may be null; a union of several stays."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"] or ["null"]
        return branches[0] if len(branches) == 1 else branches
    return schema


def _sql_type(schema: Any) -> str:
    if isinstance(schema, list):
        raise RefusedError(
            "schema_not_usable",
            "a table is not looked up by a key of several types: give its records keys of one",
        )
    name = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
        name = "decimal"
    if name in ("float", "double"):
        raise RefusedError(
            "schema_not_usable",
            f"a table is not looked up by a key of the Avro type {name}: 0.0 and -0.0 are one "
            "number and two keys",
        )
    if name not in _KEY_TYPES:
        raise RefusedError(
            "schema_not_usable", f"a table is not looked up by a key of the Avro type {name}"
        )
    return _KEY_TYPES[name]


def _decoded(column: str, topic: Topic) -> Any:
    """A value as its reader's schema has it; null or full of nulls where it cannot be read."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.connect.avro.functions import from_avro

    body = f.substring(f.col(column), 6, _ALL)
    reader = decimals.widened(_marked(topic.shape.reader, topic.writers.values()))
    options = {"mode": "PERMISSIVE", "avroSchema": reader}
    chosen: Any = None
    for number, schema in sorted(topic.writers.items()):
        is_it = f.substring(f.col(column), 1, 5) == _prefix(number)
        read = from_avro(body, schema, options)
        chosen = f.when(is_it, read) if chosen is None else chosen.when(is_it, read)
    return _once(chosen)


def _once(decoded: Any) -> Any:
    """A condition on its fields is not pushed below it, where all would be decoded again."""
    from pyspark.sql.connect import functions as f

    return f.when(f.spark_partition_id() >= 0, decoded)


def _marked(schema: str, writers: Iterable[str] = ()) -> str:
    """The reader's schema with one more field, which is true in every value that could be read."""
    record = json.loads(schema)
    marker = {"name": _marker(schema, writers), "type": "boolean", "default": True}
    return json.dumps({**record, "fields": [*record["fields"], marker]})


def _marker(schema: str, writers: Iterable[str]) -> str:
    """The name of that field, which no field of the schemas has in any case of its letters.

    A value would bring one of its own, where only its writer's schema has it.
    """
    known = {
        name.lower()
        for text in (schema, *writers)
        for record in named_types(json.loads(text)).values()
        for name in (one["name"] for one in fields_of(record))
    }
    name = _READ
    while name in known:
        name += "_"
    return name


def _prefix(schema_id: int) -> Any:
    from pyspark.sql.connect import functions as f

    return f.lit(b"\0" + schema_id.to_bytes(4, "big"))


def _is_of_other(wire: Any, known: Iterable[int]) -> Any:
    """Whether a key or value begins with the id of a schema that is not one of these."""
    from pyspark.sql.connect import functions as f

    head = f.substring(wire, 1, 5)
    framed = (f.length(wire) > 5) & (f.substring(head, 1, 1) == f.lit(b"\0"))
    return framed & ~head.isin([_prefix(number) for number in known])


def _stops(wire: Any) -> Any:
    """Ends the query with the id of the schema that it does not know."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BooleanType

    number = f.conv(f.hex(f.substring(wire, 2, 4)), 16, 10)
    text = f.concat(f.lit("a record has the schema "), number, f.lit(", which is new to it"))
    return f.raise_error(text).cast(BooleanType())
