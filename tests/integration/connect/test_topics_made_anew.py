"""A sink over a topic that is deleted and made again leaves the rows of earlier records alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from psycopg import sql

from local_platform import Endpoints
from processors.clusters.kafka import KafkaAdmin
from tests.integration.connect_owner import consumer, owner
from tests.integration.test_cli import Party, Sdm, application, filled, published, sdm
from tests.kafka_client import delete_and_create, eventually, fresh
from tests.links.real import everything

__all__ = ["consumer", "owner", "sdm"]
pytestmark = [pytest.mark.platform, pytest.mark.slow]
NOUN = ("connect", "connector")
Rows = list[tuple[int, int]]


@pytest.fixture
def database(mesh: Endpoints) -> Iterator[Any]:
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as connection:
        yield connection


def rows(database: Any, table: str) -> Rows:
    """(offset, user) of each row, by offset; none of a table that does not exist."""
    if database.execute("SELECT to_regclass(%s)", (table,)).fetchone()[0] is None:
        return []
    columns = sql.SQL("SELECT __connect_offset, userid FROM {} ORDER BY 1")
    found: Rows = database.execute(columns.format(sql.Identifier(table))).fetchall()
    return found


def granted(sdm: Sdm, topic: str, reader: str, owner: Party, consumer: Party) -> str:
    """The request by which a reader reads the topic's copy."""
    asking = ("access", "request", topic, reader, "-r", "to report", "-d", consumer.name)
    request: str = sdm(*asking).document["id"]
    granting = ("access", "grant", request, "-r", "agreed", "-d", owner.name)
    sdm(*granting, "--until", "active", "--timeout", "240")
    return request


def without_earlier_records(mesh: Endpoints, topic: str, below: int) -> None:
    """As the retention of the source leaves the topic's one partition."""
    admin = AdminClient(mesh.administration("east").config())
    place = TopicPartition(topic, 0, below)
    admin.delete_records([place])[place].result(20)


def test_a_copy_made_anew_changes_no_row_and_fills_another_table_from_its_begin(
    sdm: Sdm, owner: Party, consumer: Party, mesh: Endpoints, database: Any, tmp_path: Path
) -> None:
    topic, name = filled(sdm, tmp_path, owner), fresh("sink")
    published(sdm, topic, owner)
    reader = application(sdm, consumer)
    request = granted(sdm, topic, reader, owner, consumer)
    table = topic.replace(".", "_")
    other = f"{table}_2"
    adding = (*NOUN, "add", name, "--type", "jdbc-sink", "--topic", topic, "-d", consumer.name)
    sdm(*adding, "--application", reader)
    eventually(lambda: rows(database, table) == [(0, 1), (1, 2)], "the two users are rows")

    sdm("access", "revoke", request, "-r", "over", "-d", owner.name, "--until", "active")
    later = "".join(json.dumps({"userid": user, "phone": None}) + "\n" for user in (3, 4, 5))
    producing = ("topic", "produce", topic, "--key-field", "userid", "-d", owner.name)
    sdm(*producing, stdin=later)
    without_earlier_records(mesh, topic, 2)
    granted(sdm, topic, reader, owner, consumer)

    def described() -> Any:
        return sdm(*NOUN, "describe", f"{consumer.name}.{name}").document

    eventually(lambda: described()["failure_code"] == "source_recreated", "it is refused")
    assert "collection.name.format" in described()["failure"]
    assert described()["in_connect"] == "STOPPED, tasks none"
    assert rows(database, table) == [(0, 1), (1, 2)]

    placing = ("--set", "collection.name.format=${topic}_2")
    sdm(*NOUN, "update", name, *placing, "-d", consumer.name, "--timeout", "120")
    assert described()["state"] == "ACTIVE"
    eventually(lambda: rows(database, other) == [(0, 3), (1, 4), (2, 5)], "the later users too")
    assert rows(database, table) == [(0, 1), (1, 2)]


def test_a_topic_made_anew_under_a_sink_changes_no_row(
    sdm: Sdm, owner: Party, mesh: Endpoints, database: Any, tmp_path: Path
) -> None:
    topic, name = filled(sdm, tmp_path, owner), fresh("sink")
    table = topic.replace(".", "_")
    sdm(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", topic, "-d", owner.name)
    eventually(lambda: rows(database, table) == [(0, 1), (1, 2)], "the two users are rows")

    login = mesh.administration("east")
    stood = everything(KafkaAdmin("east", login), topic)[0]
    delete_and_create(AdminClient(login.config()), topic, 1)
    producer = Producer(login.config())
    # more than it had, in another order: each would take the place of a row
    for _, key, value, _ in [*reversed(stood)] * 3:
        producer.produce(topic, value, key, 0)
    assert producer.flush(20) == 0

    def described() -> Any:
        return sdm(*NOUN, "describe", f"{owner.name}.{name}").document

    eventually(lambda: described()["failure_code"] == "source_recreated", "it is refused")
    assert rows(database, table) == [(0, 1), (1, 2)]
