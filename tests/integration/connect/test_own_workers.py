"""Each domain's connectors run in a process of their own, which is there while they are."""

import json
from typing import Any
from uuid import uuid4

import psutil
import pytest
from confluent_kafka import Producer
from psycopg import sql

from local_platform import Endpoints
from local_platform.settings import PlatformSettings
from mesh_events.errors import InfrastructureError
from tests.integration.connect.own_postgres import OwnPostgres, capturing, own_postgres
from tests.integration.connect_owner import owner
from tests.integration.sql.records import wire
from tests.integration.test_cli import Party, Sdm, register, sdm
from tests.integration.test_cli_connect import table
from tests.kafka_client import eventually, fresh, register_schema
from tests.mesh_fixtures import connect_service, pid_of, restarts_of

__all__ = ["own_postgres", "owner", "sdm", "table"]
pytestmark = pytest.mark.platform
NOUN = ("connect", "connector")
FIELDS, EMPTY_LISTS = 8, 1_000_000
"""Each list is a byte of the record, and two objects of Java; Avro reads no longer ones."""


def write_unfolding(mesh: Endpoints, topic: str) -> None:
    """Write a record of some kilobytes on disk that makes more objects than the heap holds."""
    lists = {"type": "array", "items": {"type": "array", "items": "string"}}
    names = [f"lists{number}" for number in range(FIELDS)]
    fields = [{"name": "id", "type": "int"}, *({"name": name, "type": lists} for name in names)]
    schema = {"type": "record", "name": "Unfolding", "fields": fields}
    number = register_schema(mesh, f"{topic}-value", json.dumps(schema))
    record = wire(number, schema, {"id": 1, **dict.fromkeys(names, [[]] * EMPTY_LISTS)})
    options = {"compression.type": "zstd", "message.max.bytes": 2**24}
    writing = Producer(mesh.administration("east").config() | options)
    writing.produce(topic, record)
    assert writing.flush(60) == 0


def test_a_record_that_fills_a_workers_heap_stops_no_other_domains_connector(
    sdm: Sdm, owner: Party, mesh: Endpoints, settings: PlatformSettings, table: tuple[str, Any]
) -> None:
    other, sink = register(sdm, "east"), fresh("unfolding")
    (name, database), own = table, ("-d", owner.name)
    topic, filled = f"{other.name}.{sink}", f"unfolding_{uuid4().hex[:8]}"
    sdm(*NOUN, "add", name, "--type", "debezium-postgres", "--table", name, *own)
    try:
        before = pid_of(settings, connect_service(owner.name))
        sdm("topic", "create", topic, "--partitions", "1", "-d", other.name)
        write_unfolding(mesh, topic)
        sdm(
            *(*NOUN, "add", sink, "--type", "jdbc-sink", "--topic", topic, "--no-wait"),
            *("--set", f"collection.name.format={filled}", "-d", other.name),
        )

        service = connect_service(other.name)
        eventually(lambda: restarts_of(settings, service) > 0, "the other worker has ended", 120)
        database.execute(sql.SQL("INSERT INTO {} VALUES (2, 'b')").format(sql.Identifier(name)))
        reading = ("topic", "consume", f"{owner.name}.{name}", "--follow", "--max", "2", *own)
        users = [one["key"]["userid"] for one in sdm(*reading, "--timeout", "60").lines]
        assert users == [1, 2]
        assert pid_of(settings, connect_service(owner.name)) == before
        assert sdm(*NOUN, "describe", f"{owner.name}.{name}").document["state"] == "ACTIVE"
        sdm(*NOUN, "delete", sink, "-d", other.name, "--timeout", "120")
    finally:
        sdm(*NOUN, "delete", name, *own)


def test_a_worker_is_stopped_when_its_domain_has_no_connector_and_started_for_the_next(
    sdm: Sdm, settings: PlatformSettings, table: tuple[str, Any]
) -> None:
    name, party = table[0], register(sdm, "east")
    service, own = connect_service(party.name), ("-d", party.name)
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", name, *own)
    sdm(*adding)
    first = pid_of(settings, service)
    assert first is not None
    # one that stands still needs no worker either
    sdm(*NOUN, "stop", name, *own)
    eventually(lambda: pid_of(settings, service) is None, "the worker is stopped", 120)
    described = sdm(*NOUN, "describe", f"{party.name}.{name}").document
    assert described["state"] == "STOPPED"
    sdm(*NOUN, "start", name, *own)
    assert pid_of(settings, service) not in (None, first)
    sdm(*NOUN, "delete", name, *own)
    eventually(lambda: pid_of(settings, service) is None, "the worker is stopped again", 120)


def test_a_worker_that_is_killed_is_there_again_and_its_connector_goes_on(
    sdm: Sdm, owner: Party, settings: PlatformSettings, table: tuple[str, Any]
) -> None:
    (name, database), own = table, ("-d", owner.name)
    sdm(*NOUN, "add", name, "--type", "debezium-postgres", "--table", name, *own)
    try:
        worker = pid_of(settings, connect_service(owner.name))
        assert worker is not None
        psutil.Process(worker).kill()
        database.execute(sql.SQL("INSERT INTO {} VALUES (2, 'b')").format(sql.Identifier(name)))
        reading = ("topic", "consume", f"{owner.name}.{name}", "--follow", "--max", "2", *own)
        users = [one["key"]["userid"] for one in sdm(*reading, "--timeout", "120").lines]
        assert users == [1, 2]
    finally:
        sdm(*NOUN, "delete", name, *own)


def test_a_task_that_waits_for_its_database_as_it_starts_is_not_said_to_run(
    mesh: Endpoints, settings: PlatformSettings, own_postgres: OwnPostgres
) -> None:
    """The worker that ran it was killed, and has left that it runs."""
    with own_postgres.database() as database:
        database.execute("CREATE TABLE users (id int PRIMARY KEY)")
        with capturing(mesh, own_postgres, "east", "users") as capture:

            def states() -> set[str]:
                try:
                    found = capture.connect.deployed().get(capture.name)
                except InfrastructureError:
                    return set()
                return {part.state for part in found.tasks} if found else set()

            capture.wait_active(database)
            eventually(lambda: states() == {"RUNNING"}, "it runs", 60)
            worker = pid_of(settings, connect_service())
            assert worker is not None
            with own_postgres.silent():
                psutil.Process(worker).kill()
                gone = (None, worker)
                eventually(lambda: pid_of(settings, connect_service()) not in gone, "another", 60)
                eventually(lambda: states() == {"RESTARTING"}, "its task starts", 120)
            eventually(lambda: states() == {"RUNNING"}, "it runs again", 180)
