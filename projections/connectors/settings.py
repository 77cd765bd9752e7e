"""The settings that a connector may have, by its class: each by name, with a kind of value. Pure.

What is not here may load a class, open a file of Connect's account, call another host, run a
statement, or take the memory of all domains' connectors. So everything else is refused. A class
that is not here at all is allowed by the operator, with its settings (`SDM_CONNECT_CLASSES`).
"""

from collections.abc import Iterator, Mapping

from projections.connectors import fields, transforms
from projections.connectors.own_transforms import HEADERS_AS_THEY_ARE, written_as_structs
from projections.connectors.values import (
    BOOLEAN,
    COLUMNS,
    DATABASE,
    FIELDS,
    HOST,
    IDENTIFIER,
    NO_TABLES,
    PORT,
    REFERENCE,
    TABLE,
    TABLES,
    TEXT,
    TOPIC,
    Kind,
    listed,
    matching,
    number,
    one_of,
)

POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
JDBC_SINK = "io.debezium.connector.jdbc.JdbcSinkConnector"
MOST_TASKS = 16
UNNEST = "dialect.postgres.unnest.insert.enabled"
"""Of a JDBC sink: whether it writes batches by way of arrays."""
ZONE, OLD_ZONE = "use.time.zone", "database.time_zone"
"""Of a JDBC sink: the zone of times that have none, by both of its names."""
SNAPSHOT = "snapshot.mode"
READ_ANEW = ("always", "when_needed")
"""Modes that read captured tables more than once."""
READERS = "snapshot.max.threads"
"""How many read a captured table at first."""
_OF_PRIMITIVES = tuple(
    f"org.apache.kafka.connect.{one}"
    for one in (
        "converters.ByteArrayConverter",
        "converters.LongConverter",
        "converters.IntegerConverter",
        "converters.DoubleConverter",
        "storage.StringConverter",
    )
)
_CONVERTERS = one_of(*_OF_PRIMITIVES, "org.apache.kafka.connect.json.JsonConverter")
_WITHOUT_NAMES = one_of(*_OF_PRIMITIVES)
"""A JDBC sink makes columns of the fields of a record, and escapes no names. Those of Avro, which
is the default, are plain; what JSON brings is any text."""
_DAY_MS = 86_400_000
_URL = matching(r"jdbc:[!-~]{1,500}", "an address that begins with jdbc:")
"""Its form is judged by `config.unfit`."""
NAMED_BY_RULE = Kind(lambda _: True, "topics that the domain may read")
"""Judged by the rule of what a sink reads."""

COMMON: Mapping[str, Kind] = {
    "connector.class": TEXT,
    "tasks.max": number(1, MOST_TASKS),
    "tasks.max.enforce": one_of("true"),
    "key.converter": _CONVERTERS,
    "key.converter.schemas.enable": BOOLEAN,
    "value.converter": _CONVERTERS,
    "value.converter.schemas.enable": BOOLEAN,
    "header.converter": one_of(
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "org.apache.kafka.connect.storage.StringConverter",
    ),
    "errors.retry.timeout": number(-1, _DAY_MS),
    "errors.retry.delay.max.ms": number(1, _DAY_MS),
    "errors.log.enable": BOOLEAN,
}
"""Of every connector; transforms and predicates are judged apart."""
OF_SOURCES: Mapping[str, Kind] = {
    "errors.tolerance": one_of("none"),
    "exactly.once.support": one_of("requested", "required"),
    "topic.creation.default.replication.factor": number(-1, 9),
    "topic.creation.default.partitions": number(1, 64),
    "topic.creation.default.cleanup.policy": one_of("delete", "compact"),
    "topic.creation.default.compression.type": one_of("producer"),
    "topic.creation.default.retention.ms": number(-1, 10**13),
    "producer.override.batch.size": number(0, 1_048_576),
    "producer.override.linger.ms": number(0, 1000),
    "producer.override.compression.type": one_of("none", "zstd", "lz4", "snappy", "gzip"),
    "producer.override.max.request.size": number(1024, 16_777_216),
}
OF_SINKS: Mapping[str, Kind] = {
    "topics": NAMED_BY_RULE,
    "errors.tolerance": one_of("none", "all"),
    "errors.deadletterqueue.topic.name": TOPIC,
    "errors.deadletterqueue.topic.replication.factor": number(-1, 9),
    "errors.deadletterqueue.context.headers.enable": BOOLEAN,
}
KEYLESS = "table.keyless.list"
"""Tables that are captured without a primary key: of another one a record without a key fails the
connector. Not there: nobody has looked."""
_POSTGRES: Mapping[str, Kind] = {
    "database.hostname": HOST,
    "database.port": PORT,
    "database.user": TEXT,
    "database.password": REFERENCE,
    "database.dbname": DATABASE,
    "database.sslmode": one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "database.tcpKeepAlive": BOOLEAN,
    "database.query.timeout.ms": number(1000, 3_600_000),
    "connection.validation.timeout.ms": number(1000, 60_000),
    # decoderbufs passes over TRUNCATE, and may give a numeric as floating point
    "plugin.name": one_of("pgoutput"),
    "slot.name": IDENTIFIER,
    # what is written while the connector stands still would be lost with the slot
    "slot.drop.on.stop": one_of("false"),
    # changes that a standby had not got when it took over would be passed by
    "slot.failover": one_of("false"),
    "slot.max.retries": number(0, 1000),
    "slot.retry.delay.ms": number(1, 600_000),
    "publication.name": IDENTIFIER,
    "publication.autocreate.mode": one_of("filtered", "disabled"),
    # else the changes of a partitioned table are none of its own
    "publish.via.partition.root": one_of("true"),
    "table.include.list": TABLES,
    KEYLESS: NO_TABLES,
    "column.include.list": COLUMNS,
    "column.exclude.list": COLUMNS,
    "replica.identity.autoset.values": listed(
        Kind(lambda text: text.endswith(":FULL") and TABLE.fits(text[:-5]), "schema.table:FULL")
    ),
    "topic.prefix": TOPIC,
    "schema.name.adjustment.mode": one_of("none", "avro", "avro_unicode"),
    "field.name.adjustment.mode": one_of("none", "avro", "avro_unicode"),
    "schema.refresh.mode": one_of("columns_diff"),
    "poll.interval.ms": number(1, 3_600_000),
    "heartbeat.interval.ms": number(0, _DAY_MS),
    "topic.heartbeat.prefix": TOPIC,
    SNAPSHOT: one_of("initial", "initial_only", "no_data", *READ_ANEW),
    "snapshot.isolation.mode": one_of("serializable", "repeatable_read"),
    "snapshot.fetch.size": number(1, 20_000),
    "snapshot.delay.ms": number(0, _DAY_MS),
    READERS: number(1, 4),
    "snapshot.lock.timeout.ms": number(0, 600_000),
    "max.batch.size": number(1, 8192),
    "max.queue.size": number(2, 16_384),
    # 0 is no bound to Debezium, and rows of a megabyte fill the memory of all domains' connectors
    "max.queue.size.in.bytes": number(1_048_576, 16_777_216),
    "query.fetch.size": number(0, 20_000),
    "decimal.handling.mode": one_of("precise", "string"),
    "binary.handling.mode": one_of("bytes", "base64", "base64-url-safe", "hex"),
    "hstore.handling.mode": one_of("map", "json"),
    # months and days are no fixed number of microseconds
    "interval.handling.mode": one_of("string"),
    "time.precision.mode": one_of(
        "adaptive", "adaptive_time_microseconds", "connect", "microseconds"
    ),
    "include.schema.comments": BOOLEAN,
    "tombstones.on.delete": BOOLEAN,
    "provide.transaction.metadata": BOOLEAN,
    # a record of a truncated table has no key and no row: nothing here could read it
    "skipped.operations": Kind(
        lambda text: set(text.split(",")) <= {*"cudt"} and "t" in text.split(","),
        "a list of c, u, d and t, with t among them",
    ),
    "unavailable.value.placeholder": matching(
        r"[A-Za-z0-9_]{8,64}", "8 to 64 letters, digits and '_'"
    ),
    "event.processing.failure.handling.mode": one_of("fail"),
    "errors.max.retries": number(-1, 1000),
    "retriable.restart.connector.wait.ms": number(100, 600_000),
    "status.update.interval.ms": number(1000, 600_000),
    "xmin.fetch.interval.ms": number(0, _DAY_MS),
}
_POSTGRES_OWN_LOGIN: Mapping[str, Kind] = {
    "heartbeat.action.query": matching(
        r"SELECT pg_logical_emit_message\((?:true|false), *'[A-Za-z0-9_]{1,63}', *'[^'\\]{0,63}'\)",
        "SELECT pg_logical_emit_message(false, 'name', 'text')",
    ),
}
_SINK: Mapping[str, Kind] = {
    "key.converter": _WITHOUT_NAMES,
    "value.converter": _WITHOUT_NAMES,
    "header.converter": one_of(*HEADERS_AS_THEY_ARE),
    "connection.url": _URL,
    "connection.username": TEXT,
    "connection.password": REFERENCE,
    "connection.pool.min_size": number(1, 5),
    "connection.pool.max_size": number(1, 10),
    "connection.pool.timeout": number(1, 3600),
    "connection.restart.on.errors": BOOLEAN,
    # a row that is not there is not updated, and a record that comes again is inserted again
    "insert.mode": one_of("upsert"),
    "delete.enabled": BOOLEAN,
    # whoever writes the topic would empty the table, rows of other topics among them
    "truncate.enabled": one_of("false"),
    # without a key a record that comes again is a second row; by `kafka` new columns are not seen
    "primary.key.mode": one_of("record_key", "record_value"),
    "primary.key.fields": FIELDS,
    "schema.evolution": one_of("none", "basic"),
    "collection.name.format": TEXT,
    "field.include.list": listed(matching(r"[A-Za-z0-9_.:-]{1,250}", "topic:field or field")),
    "field.exclude.list": listed(matching(r"[A-Za-z0-9_.:-]{1,250}", "topic:field or field")),
    "batch.size": number(1, 10_000),
    "flush.max.retries": number(0, 1000),
    "flush.retry.delay.ms": number(1, 600_000),
    "quote.identifiers": BOOLEAN,
    ZONE: matching(r"[A-Za-z0-9_+:/-]{1,40}", "the name of a time zone"),
    OLD_ZONE: matching(r"[A-Za-z0-9_+:/-]{1,40}", "the name of a time zone"),
    # else batches pass values by without their types: a second of an interval is a million
    UNNEST: one_of("false"),
}
WITH_SHARED_LOGIN: Mapping[str, Mapping[str, Kind]] = {
    POSTGRES: {**COMMON, **OF_SOURCES, **_POSTGRES},
    JDBC_SINK: {**COMMON, **OF_SINKS, **_SINK},
}
"""Class -> setting -> kind of its value, where the login is not the connector's own: nothing that
makes the database run what a person wrote."""
SETTINGS: Mapping[str, Mapping[str, Kind]] = {
    POSTGRES: {**WITH_SHARED_LOGIN[POSTGRES], **_POSTGRES_OWN_LOGIN},
    JDBC_SINK: WITH_SHARED_LOGIN[JDBC_SINK],
}
"""Class -> setting -> kind of its value."""
_OF_ANY: Mapping[str, Kind] = {**COMMON, **OF_SOURCES, **OF_SINKS}
_STEPS = ("transforms", "predicates")


def faults(config: Mapping[str, str], *, shared: bool = False) -> Iterator[str]:
    """What of a config is not allowed, a sentence each; of another class what all have in common.

    Args:
        config: setting -> value.
        shared: whether the login is one that several domains have.
    """
    kind = config.get("connector.class", "")
    known = (WITH_SHARED_LOGIN if shared else SETTINGS).get(kind)
    for name, value in sorted(config.items()):
        if _is_step(name):
            continue
        allowed = (_OF_ANY if known is None else known).get(name)
        if allowed is None and known is not None:
            yield f"{name}: no setting that is allowed here"
        elif allowed is not None and not allowed.fits(value):
            yield f"{name}: it must be {allowed.words}"
    yield from transforms.faults(config)
    yield from _of_class(kind, config)
    if known is not None:
        yield from transforms.delimiter_faults(config)
    if config.get("errors.tolerance") == "all" and not config.get(
        "errors.deadletterqueue.topic.name"
    ):
        yield (
            "errors.tolerance: all goes with errors.deadletterqueue.topic.name: else records are "
            "lost in silence"
        )


def _of_class(kind: str, config: Mapping[str, str]) -> Iterator[str]:
    """What transforms and converters would do to changes, and to the keys of a sink's rows."""
    if kind == POSTGRES:
        for name in written_as_structs(config):
            yield f"{name}: StringConverter writes Struct{{...}} of a row: leave it out, for Avro"
        for name in fields.blind(config):
            yield (
                f"transforms.{name}: it names fields of rows, which a change has inside: put "
                "io.debezium.transforms.ExtractNewRecordState before it, or name the column in "
                "column.exclude.list"
            )
    if kind == JDBC_SINK and config.get("primary.key.mode") == "record_key":
        yield from transforms.key_faults(config)


def left_over(config: Mapping[str, str]) -> list[str]:
    """Settings that only a connector of a class of the operator's may have."""
    return sorted(one for one in config if one not in _OF_ANY and not _is_step(one))


def _is_step(name: str) -> bool:
    return name.partition(".")[0] in _STEPS
