"""Records that are small on disk and large once unpacked do not fill Connect's heap."""

import json
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg import sql

from local_platform import Endpoints
from local_platform.settings import PlatformSettings
from tests.integration.connect_owner import owner, worker_of
from tests.integration.sql.records import wire
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, fresh, register_schema
from tests.mesh_fixtures import connect_service, pid_of

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
RECORDS, LETTERS = 300, 1_000_000
"""Some 20 kilobytes on disk, and more than Connect's heap of 256 MiB in the memory."""


def fill(mesh: Endpoints, topic: str) -> None:
    """Writes records of an id and a long text, each one a batch that is compressed."""
    fields = [{"name": "id", "type": "int"}, {"name": "text", "type": "string"}]
    schema = {"type": "record", "name": "Large", "fields": fields}
    number = register_schema(mesh, f"{topic}-value", json.dumps(schema))
    options = {"compression.type": "zstd", "batch.num.messages": 1, "message.max.bytes": 2**21}
    writing = Producer(mesh.administration("east").config() | options)
    for one in range(RECORDS):
        writing.produce(topic, wire(number, schema, {"id": one, "text": "x" * LETTERS}))
        writing.poll(0)
    assert writing.flush(60) == 0


def test_a_poll_of_records_that_unpack_to_more_than_the_heap_arrives_as_a_whole(
    sdm: Sdm, owner: Party, mesh: Endpoints, settings: PlatformSettings
) -> None:
    name, own = f"large_{uuid4().hex[:8]}", ("-d", owner.name)
    sink, table = fresh("large"), sql.Identifier(name)
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", *own)
    fill(mesh, topic)
    worker_of(mesh, owner.name)
    before = pid_of(settings, connect_service(owner.name))
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
            assert pid_of(settings, connect_service(owner.name)) == before
        finally:
            sdm("connect", "connector", "delete", sink, *own)
            database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
