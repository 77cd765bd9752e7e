"""A record that a sink cannot read is in its dead letters, or holds the sink up: none is lost."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from psycopg import sql

from local_platform import Endpoints
from processors.clusters.kafka import KafkaAdmin
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, fresh, read, reading, register_schema

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
NOUN = ("connect", "connector")
UNREADABLE = b"\xff" * 6
"""No number of Avro's is so long."""
LARGEST = "max.message.bytes"


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Callable[[], list[int]]]]:
    """A name of a table and a topic, and what gives the ids in the table."""
    name = f"dead_{uuid4().hex[:8]}"
    place = sql.Identifier(name)
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:

        def ids() -> list[int]:
            try:
                found = database.execute(sql.SQL("SELECT id FROM {} ORDER BY 1").format(place))
            except psycopg.errors.UndefinedTable:
                return []
            return [one for (one,) in found]

        yield name, ids
        database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(place))


@pytest.fixture
def sink(
    sdm: Sdm, owner: Party, table: tuple[str, Any], request: pytest.FixtureRequest
) -> Callable[[], str]:
    """Adds a sink of the topic into the table, whose name is the table's; gives its id."""
    name, own = table[0], ("-d", owner.name)

    def add() -> str:
        sdm(
            *(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", f"{owner.name}.{name}"),
            *("--set", f"collection.name.format={name}", "--until", "decided", *own),
        )
        request.addfinalizer(lambda: sdm(*NOUN, "delete", name, *own))
        return f"{owner.name}.{name}"

    return add


def fill(sdm: Sdm, mesh: Endpoints, owner: Party, name: str, *records: bytes) -> list[bytes]:
    """Make the topic of ids, and write these records of it; gives them as they were written."""
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    fields = [{"name": "id", "type": "int"}]
    schema = json.dumps({"type": "record", "name": "Row", "fields": fields})
    number = register_schema(mesh, f"{topic}-value", schema)
    options = {"compression.type": "zstd", "message.max.bytes": 2**22}
    writing = Producer(mesh.administration("east").config() | options)
    written = [b"\0" + number.to_bytes(4, "big") + one for one in records]
    for one in written:
        writing.produce(topic, one)
    assert writing.flush(60) == 0
    return written


def test_an_unreadable_record_of_two_megabytes_is_a_dead_letter(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Callable[[], str]
) -> None:
    name, ids = table
    unread = [UNREADABLE + b"1" * 100, UNREADABLE + b"2" * 2_000_000, UNREADABLE + b"3"]
    *letters, _ = fill(sdm, mesh, owner, name, *unread, b"\2")
    connector = sink()
    eventually(lambda: ids() == [1], "what can be read is a row")
    dead = read(reading(mesh.administration("east"), fresh("dead")), f"{connector}.dead")
    # it comes again where the task was started again before its position was stored
    assert set(dead) == set(letters)


def test_a_dead_letter_that_is_not_written_fails_the_sink_until_it_is(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Callable[[], str]
) -> None:
    name, ids = table
    letter, _ = fill(sdm, mesh, owner, name, UNREADABLE + b"x" * 100, b"\2")
    login = mesh.administration("east")
    east, client = KafkaAdmin("east", login), AdminClient(login.config())
    dead = f"{owner.name}.{name}.dead"
    east.create_topic(dead, 1, {LARGEST: "100"})
    connector = sink()

    def failure() -> str:
        return str(sdm(*NOUN, "describe", connector).document["failure"])

    told = f"dead_letter_not_written: {dead}: RecordTooLargeException"
    eventually(lambda: told in failure(), "the dead letter that is not written is told", 60)
    assert f"{LARGEST}=" in failure()
    assert ids() == []
    assert read(reading(login, fresh("dead")), dead) == []

    larger = ConfigEntry(LARGEST, "1000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, dead, incremental_configs=[larger])
    client.incremental_alter_configs([resource])[resource].result(20)
    eventually(lambda: ids() == [1], "the sink goes on", 90)
    assert set(read(reading(login, fresh("dead")), dead)) == {letter}
