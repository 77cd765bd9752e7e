"""One domain's schemas do not fill the heap in which Connect runs the connectors of all."""

import io
import json
import struct
from typing import Any

import fastavro
import psycopg
import pytest
from confluent_kafka import Producer
from psycopg import sql

from local_platform import Endpoints
from local_platform.settings import PlatformSettings
from processors.connect.rest import Connect
from projections.connectors.config import JDBC_SINK
from projections.connectors.tables import pinned
from tests.integration.connect_owner import as_administrator, owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, fresh, read, reading, register_schema
from tests.mesh_fixtures import connect_service, connect_worker, pid_of

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
TOO_LARGE, LARGE = 13, 10
"""Levels of a record that has two of the next level: 2 to the power of so many are below it."""


def tree(name: str, levels: int) -> dict[str, Any]:
    """A schema of an id, and of a record that is some hundred times as large as its text."""
    below: Any = "int"
    for level in range(levels):
        this = f"{name}_{level}"
        again = f"{name}_{level - 1}" if level else "int"
        fields = [{"name": "l", "type": ["null", below]}, {"name": "r", "type": ["null", again]}]
        below = {"type": "record", "name": this, "fields": fields}
    fields = [{"name": "id", "type": "int"}, {"name": "deep", "type": ["null", below]}]
    return {"type": "record", "name": f"{name}_root", "fields": fields}


@pytest.mark.parametrize(
    ("refused", "kept"), [(150, 20), pytest.param(0, 900, marks=pytest.mark.long)]
)
def test_many_schemas_take_a_bounded_part_of_the_heap(
    sdm: Sdm,
    owner: Party,
    mesh: Endpoints,
    settings: PlatformSettings,
    refused: int,
    kept: int,
) -> None:
    """A schema that is too large makes a dead letter, and of the others not all are kept."""
    name, login = fresh("trees"), mesh.postgres_login()
    topic, dead = f"{owner.name}.{name}", f"{owner.name}.{name}.dead"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    writing = Producer(mesh.administration("east").config())
    for number in range(refused + kept):
        levels = TOO_LARGE if number < refused else LARGE
        text = json.dumps(tree(f"tree_{name.replace('-', '_')}_{number}", levels))
        schema = register_schema(mesh, f"{topic}.{number}-value", text)
        # the record's number as Avro has it, and no tree
        value = io.BytesIO()
        fastavro.schemaless_writer(value, "int", number)
        writing.produce(topic, b"\0" + struct.pack(">I", schema) + value.getvalue() + b"\0")
    writing.flush(10)
    config = {
        "connector.class": JDBC_SINK,
        "topics": topic,
        "connection.url": f"jdbc:postgresql://{login['host']}:{login['port']}/{login['dbname']}",
        "connection.username": login["user"],
        "connection.password": login["password"],
        "schema.evolution": "basic",
        "insert.mode": "upsert",
        "primary.key.mode": "record_value",
        "primary.key.fields": "id",
        "field.include.list": f"{topic}:id",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "-1",
        **as_administrator(mesh),
    }
    connect = Connect(*connect_worker(mesh))
    table = topic.replace(".", "_")
    count = sql.SQL("SELECT count(DISTINCT id) FROM {}").format(sql.Identifier(table))

    def rows(database: psycopg.Connection[Any]) -> int:
        try:
            return int(database.execute(count).fetchall()[0][0])
        except psycopg.errors.UndefinedTable:
            return 0

    before = pid_of(settings, connect_service())
    connect.put(f"trees-{name}", pinned(f"{owner.name}.{name}", config))
    try:
        with psycopg.connect(**login, autocommit=True, prepare_threshold=None) as database:
            eventually(lambda: rows(database) == kept, "what is not too large is in the table", 180)
        assert pid_of(settings, connect_service()) == before
        letters = read(reading(mesh.administration("east"), fresh("dead")), dead) if refused else []
        assert len(letters) == refused
    finally:
        connect.delete(f"trees-{name}")
        with psycopg.connect(**login, autocommit=True) as database:
            database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(table)))
