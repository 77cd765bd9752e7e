"""A JDBC sink runs no SQL that a record brings in the names and texts of its schemas."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg import sql

from local_platform import Endpoints
from processors.connect.rest import Connect
from projections.connectors.config import JDBC_SINK
from projections.connectors.tables import pinned
from tests.integration.connect_owner import as_administrator, owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, fresh, read, reading
from tests.mesh_fixtures import connect_worker

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
NOUN = ("connect", "connector")
Database = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def database(mesh: Endpoints) -> Iterator[Database]:
    with psycopg.connect(
        **mesh.postgres_login(), autocommit=True, prepare_threshold=None
    ) as connection:
        yield connection


@pytest.fixture
def leak(database: Database) -> Iterator[str]:
    """The name of a table that only a record's own statement would make."""
    name = f"leak_{uuid4().hex[:8]}"
    yield name
    database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))


def exists(database: Database, table: str) -> bool:
    query = "SELECT 1 FROM pg_tables WHERE tablename = %s"
    return database.execute(query, (table,)).fetchone() is not None


def test_a_default_with_a_statement_in_it_stops_the_sink_and_runs_nothing(
    sdm: Sdm, owner: Party, database: Database, leak: str, tmp_path: Path
) -> None:
    name, own = fresh("quoted"), ("-d", owner.name)
    topic, schema = f"{owner.name}.{name}", tmp_path / "quoted.avsc"
    # of three quotes Debezium escapes none
    hostile = f"'''); create table {leak} as select 1 as a; --"
    fields = [{"name": "id", "type": "int"}, {"name": "n", "type": "string", "default": hostile}]
    schema.write_text(json.dumps({"type": "record", "name": "Quoted", "fields": fields}))
    sdm("topic", "create", topic, "--schema", str(schema), *own)
    sdm(
        *(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", topic, *own),
        *("--set", "errors.tolerance=none"),
    )

    def judged() -> bool:
        shown = sdm(*NOUN, "describe", f"{owner.name}.{name}").document
        refused = f"default_not_plain: {topic}-0 at offset 0: n;" in (shown["failure"] or "")
        return exists(database, leak) or (shown["state"] == "FAILED" and refused)

    try:
        sdm("topic", "produce", topic, *own, stdin='{"id": 1, "n": "a"}')
        eventually(judged, "the sink has failed with the name of the field")
        assert not exists(database, leak)
        assert not exists(database, topic.replace(".", "_"))
    finally:
        sdm(*NOUN, "delete", name, *own)


def test_whichever_converter_there_is_what_is_not_plain_reaches_no_statement(
    sdm: Sdm, owner: Party, mesh: Endpoints, database: Database, leak: str
) -> None:
    """Past the list of a config: Connect is given a converter with which any text is a name."""
    name = fresh("names")
    topic, dead = f"{owner.name}.{name}", f"{owner.name}.{name}.dead"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    statement = f"create table {leak} as select 1 as a; --"
    column = f'b" text); {statement}'
    hostile = [
        record(column, {}),
        record("b", {"default": f"'''); {statement}"}),
        record(
            "b",
            {
                "parameters": {
                    "__debezium.source.column.type": "VARCHAR",
                    "__debezium.source.column.length": f"1)); {statement}",
                }
            },
        ),
    ]
    writing = Producer(mesh.administration("east").config())
    for value in (*hostile, record("honest", {"default": "Zoë, 1 (one)"})):
        writing.produce(topic, json.dumps(value).encode())
    writing.flush(10)
    login = mesh.postgres_login()
    config = {
        "connector.class": JDBC_SINK,
        "topics": topic,
        "connection.url": f"jdbc:postgresql://{login['host']}:{login['port']}/{login['dbname']}",
        "connection.username": login["user"],
        "connection.password": login["password"],
        "schema.evolution": "basic",
        "quote.identifiers": "true",
        "insert.mode": "upsert",
        "primary.key.mode": "record_value",
        "primary.key.fields": "honest",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "-1",
        **as_administrator(mesh),
    }
    connect = Connect(*connect_worker(mesh))
    table = topic.replace(".", "_")
    rows = sql.SQL("SELECT honest FROM {}").format(sql.Identifier(table))

    def judged() -> bool:
        if exists(database, leak):
            return True
        try:
            return database.execute(rows).fetchall() == [("x",)]
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
            return False

    connect.put(f"plain-{name}", pinned(f"{owner.name}.{name}", config))
    try:
        eventually(judged, "the honest row is in the table")
        assert not exists(database, leak)
        letters = read(reading(mesh.administration("east"), fresh("dead")), dead)
        assert [json.loads(one) for one in letters] == hostile
    finally:
        connect.delete(f"plain-{name}")
        database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(table)))


def record(column: str, more: dict[str, Any]) -> dict[str, Any]:
    """A record of one column, with its schema, as Connect's converter of JSON reads it."""
    field = {"field": column, "type": "string", "optional": True, **more}
    schema = {"type": "struct", "fields": [field], "optional": False}
    return {"schema": schema, "payload": {column: "x"}}
