"""A foreign Postgres schema: its types come through the capture and through SQL as they were.

The oracle reads the table with psycopg and the result with Confluent's own deserializer.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from psycopg import sql

from local_platform import Endpoints
from tests.integration.connect_owner import owner, topics_of
from tests.integration.test_cli import Party, Sdm, sdm
from tests.integration.test_cli_connect import drop_slots
from tests.kafka_client import eventually, fresh, reading

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform

COLUMNS = {
    "id": "int PRIMARY KEY",
    "small": "smallint",
    "big": "bigint",
    "amount": "numeric(20, 4)",
    "share": "double precision",
    "flag": "boolean",
    "name": "text",
    "code": "varchar(8)",
    "uid": "uuid",
    "at": "timestamptz",
    "wall": "timestamp",
    "coarse": "timestamp(3)",
    "day": "date",
    "tod": "time",
    "second": "time(3)",
    "js": "json",
    "jsb": "jsonb",
    "tags": "text[]",
    "nums": "bigint[]",
    "raw": "bytea",
}
FULL = """(1, -7, 9007199254740993, 1234567890123456.7891, 0.1, true, 'Zoë ☃', 'ab',
 '7f2c1f7e-5c53-4d0b-9d6a-0d3b8f1f0a11', '2026-01-31 23:59:59.123456+05:30',
 '1969-12-31 23:59:59.999999', '2026-03-29 02:30:00.125', '1582-10-15', '23:59:59.999999',
 '23:59:59.999',
 '{"a": [1, null]}', '{"b": 1.50}', ARRAY['x', NULL, 'y z'], ARRAY[1, 9007199254740993],
 '\\xdeadbeef00')"""
NEGATIVE = """(2, 32767, -9223372036854775808, -0.0001, 'NaN', false, '', '',
 '00000000-0000-0000-0000-000000000000', '0001-01-01 00:00:00+00', '2100-02-28 00:00:00',
 '2000-01-01 00:00:00', '2999-12-31', '00:00:00', '00:00:00', 'null', '[]', ARRAY[]::text[],
 ARRAY[]::bigint[], '')"""


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """A table with a row of each kind: full, odd, and nothing but its key."""
    name = f"types_{uuid4().hex[:8]}"
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
        connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
        for row in (FULL, NEGATIVE):
            connection.execute(f"INSERT INTO {name} VALUES {row}")
        connection.execute(f"INSERT INTO {name} (id) VALUES (3)")
        yield name, connection
        drop_slots(connection, name)
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))


def wanted(connection: Any, name: str) -> list[dict[str, Any]]:
    """The rows, as a reader of Avro is to see them."""
    text = ", ".join(f"{one}::text" if one in ("uid", "js", "jsb") else one for one in COLUMNS)
    rows = connection.execute(f"SELECT {text} FROM {name} ORDER BY id").fetchall()
    return [
        {column: as_avro(column, value) for column, value in zip(COLUMNS, row, strict=True)}
        for row in rows
    ]


def as_avro(column: str, value: Any) -> Any:
    """A time of day has no type in SQL: it stays the number that Debezium tells."""
    if value is not None and column in ("tod", "second"):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        micros = seconds * 1_000_000 + value.microsecond
        return micros if column == "tod" else micros // 1000
    return value


def found(mesh: Endpoints, topic: str) -> list[dict[str, Any]]:
    """The result's values, in the order of their ids."""
    decode = AvroDeserializer(
        SchemaRegistryClient({"url": mesh.registry_url}),
        conf={"subject.name.strategy": topic_subject_name_strategy},
    )
    consumer = Consumer(reading(mesh.administration("east"), fresh("types")))
    values: dict[int, dict[str, Any]] = {}

    def all_there() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            context = SerializationContext(topic, MessageField.VALUE)
            value: Any = decode(message.value(), context)
            values[value["id"]] = value
        return len(values) == 3

    try:
        consumer.subscribe([topic])
        eventually(all_there, "all rows came out")
    finally:
        consumer.close()
    return [values[number] for number in sorted(values)]


def test_every_type_comes_out_as_it_went_in(
    sdm: Sdm, owner: Party, table: tuple[str, Any], mesh: Endpoints
) -> None:
    name, connection = table
    as_owner, out = ("-d", owner.name), fresh("typed").replace("-", "_")
    sdm(
        *("connect", "connector", "add", name, "--type", "debezium-postgres"),
        *("--table", name, *as_owner),
    )
    try:
        topic = f"{owner.name}.{name}"
        eventually(lambda: topic in topics_of(sdm, owner.name), "the table is captured")
        text = f"INSERT INTO {out} SELECT {', '.join(COLUMNS)} FROM TABLE({name})"
        eventually(
            lambda: sdm("topic", "describe", f"{owner.name}.{name}", *as_owner).document[
                "value_schema"
            ],
            "its schema is there",
        )
        sdm("streaming", "sql", "add", out, text, *as_owner, "--timeout", "240")
        got, expected = found(mesh, f"{owner.name}.{out}"), wanted(connection, name)
        for one, other in zip(got, expected, strict=True):
            for column in COLUMNS:
                assert same(one[column], other[column]), (column, one[column], other[column])
    finally:
        sdm("connect", "connector", "delete", name, *as_owner)


def same(one: Any, other: Any) -> bool:
    """Whether both are one value, of the same type; not a number is itself here."""
    if isinstance(one, datetime) and isinstance(other, datetime) and other.tzinfo is not None:
        return one == other.astimezone(UTC)
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124
