"""Records that are small on disk and large once unpacked do not fill Connect's heap."""

import json
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg import sql

from local_platform import Endpoints
from tests.integration.connect.test_many_schemas import server
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.kafka_client import eventually, fresh, register_schema

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
RECORDS, LETTERS = 300, 1_000_000
"""Some 20 kilobytes on disk, and more than Connect's heap of 256 MiB in the memory."""


def fill(mesh: Endpoints, topic: str) -> None:
    """Writes records of an id and a long text, each one a batch that is compressed."""
    fields = [{"name": "id", "type": "int"}, {"name": "text", "type": "string"}]
    schema = json.dumps({"type": "record", "name": "Large", "fields": fields})
    number = register_schema(mesh, f"{topic}-value", schema)
    options = {"compression.type": "zstd", "batch.num.messages": 1, "message.max.bytes": 2**21}
    writing = Producer(mesh.administration("east").config() | options)
    for one in range(RECORDS):
        text = _number(one) + _number(LETTERS) + b"x" * LETTERS
        writing.produce(topic, b"\0" + number.to_bytes(4, "big") + text)
        writing.poll(0)
    assert writing.flush(60) == 0


def _number(value: int) -> bytes:
    """A number as Avro writes it, 7 bits a byte, for those that are not negative."""
    value, found = value << 1, b""
    while value > 127:
        value, found = value >> 7, found + bytes([value & 127 | 128])
    return found + bytes([value])


def test_a_poll_of_records_that_unpack_to_more_than_the_heap_arrives_as_a_whole(
    sdm: Sdm, owner: Party, mesh: Endpoints
) -> None:
    name, own = f"large_{uuid4().hex[:8]}", ("-d", owner.name)
    sink, table = fresh("large"), sql.Identifier(name)
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", *own)
    fill(mesh, topic)
    before = server(sdm)
    asked = sql.SQL("SELECT id, length(text) FROM {} ORDER BY __connect_offset").format(table)

    def rows(database: psycopg.Connection[Any]) -> list[Any]:
        try:
            return database.execute(asked).fetchall()
        except psycopg.errors.UndefinedTable:
            return []

    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        try:
            sdm(
                *("connect", "connector", "add", sink, "--type", "jdbc-sink", "--topic", topic),
                *("--set", f"collection.name.format={name}", "--no-wait", *own),
            )
            expected = [(one, LETTERS) for one in range(RECORDS)]
            eventually(lambda: rows(database) == expected, "all records are rows, in order", 240)
            assert server(sdm) == before
        finally:
            sdm("connect", "connector", "drop", sink, *own)
            database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
