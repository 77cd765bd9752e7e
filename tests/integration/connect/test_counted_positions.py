"""A capture that stops within a transaction goes on at the message that is next.

Rows of a COPY have one position for each page of the table, and the records of a changed key have
one together: both are cut by Kafka's transactions.
"""

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Consumer

from local_platform import Endpoints, PlatformSettings
from tests.integration.connect.own_postgres import Capture, OwnPostgres, capturing, own_postgres
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, sdm
from tests.kafka_client import eventually, fresh, reading
from tests.mesh_fixtures import connect_service, pid_of

__all__ = ["own_postgres", "owner", "sdm"]
pytestmark = pytest.mark.slow
ROWS = 60_000
"""Of some 200 on a page."""
STOPS = 3
Arrived = dict[int, list[bool]]
"""Key -> its records in order: whether each has a value."""


def number(key: bytes) -> int:
    """The key of a record of Avro with one number."""
    found, shift = 0, 0
    for byte in key[5:]:
        found |= (byte & 0x7F) << shift
        shift += 7
    return found >> 1 ^ -(found & 1)


class Topic:
    """What is committed of a topic, read as it comes."""

    def __init__(self, mesh: Endpoints, topic: str) -> None:
        self.consumer = Consumer(reading(mesh.administration("east"), fresh("counted")))
        self.consumer.subscribe([topic])
        self.arrived: Arrived = defaultdict(list)
        self.count = 0

    def close(self) -> None:
        self.consumer.close()

    def reaches(self, count: int) -> Callable[[], bool]:
        """Whether so many records have come."""

        def read() -> bool:
            for message in self.consumer.consume(20_000, timeout=0.2):
                if message.error() is None:
                    key = message.key()
                    assert key is not None
                    self.arrived[number(key)].append(message.value() is not None)
                    self.count += 1
            return self.count >= count

        return read


@contextmanager
def captured(
    mesh: Endpoints, server: OwnPostgres, owner: Party
) -> Iterator[tuple[Capture, Topic, str]]:
    """A connector that streams a table, what comes of it, and the table's name."""
    name = fresh("counted").replace("-", "_")
    with server.database() as database:
        database.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, n int)")
        database.execute(f"INSERT INTO {name} VALUES (-1, 0)")
        with (
            capturing(mesh, server, owner.name, name) as capture,
            closing(Topic(mesh, f"{owner.name}.{name}")) as topic,
        ):
            eventually(topic.reaches(1), "the first row has come")
            capture.wait_active(database)
            yield capture, topic, name


def copy(server: OwnPostgres, table: str) -> None:
    """Rows by COPY, in one transaction."""
    with (
        server.database() as database,
        database.cursor() as cursor,
        cursor.copy(f"COPY {table} FROM STDIN") as rows,
    ):
        for one in range(ROWS):
            rows.write_row((one, one))


def stopped_within(
    capture: Capture, server: OwnPostgres, topic: Topic, expected: int, stop: Callable[[], None]
) -> None:
    """Stop it again and again while its records come, and wait for the last one."""
    with server.database() as database:
        for _ in range(STOPS):
            more = topic.count + 3_000
            eventually(topic.reaches(min(more, expected)), f"{more} records have come", 240)
            stop()
            capture.wait_active(database, active=False)
            capture.connect.resume(capture.name)
            capture.wait_active(database)
        eventually(topic.reaches(expected), f"all {expected} records have come", 240)


def test_each_row_of_a_copy_comes_once_however_often_its_capture_stops(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    with captured(mesh, own_postgres, owner) as (capture, topic, name):
        copy(own_postgres, name)
        stopped_within(
            capture, own_postgres, topic, ROWS + 1, lambda: capture.connect.stop(capture.name)
        )
        assert topic.arrived == {-1: [True]} | {one: [True] for one in range(ROWS)}


def test_a_changed_key_comes_whole_however_often_its_capture_stops(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    rows = ROWS // 6
    with captured(mesh, own_postgres, owner) as (capture, topic, name):
        with own_postgres.database() as database:
            database.execute(
                f"INSERT INTO {name} SELECT one, one FROM generate_series(1, {rows}) one"
            )
            eventually(topic.reaches(1 + rows), "all rows have come", 240)
            database.execute(f"UPDATE {name} SET id = id + {ROWS} WHERE id > 0")
        expected = 1 + 4 * rows
        stopped_within(
            capture, own_postgres, topic, expected, lambda: capture.connect.stop(capture.name)
        )
        old = {one: [True, True, False] for one in range(1, rows + 1)}
        assert topic.arrived == {-1: [True]} | old | {ROWS + one: [True] for one in old}


def test_no_row_of_a_copy_is_lost_or_doubled_where_its_worker_is_killed(
    owner: Party, mesh: Endpoints, settings: PlatformSettings, own_postgres: OwnPostgres
) -> None:
    with captured(mesh, own_postgres, owner) as (_, topic, name):
        copy(own_postgres, name)
        eventually(topic.reaches(3_000), "some records have come", 240)
        worker = pid_of(settings, connect_service())
        assert worker is not None
        os.kill(worker, signal.SIGKILL)
        eventually(topic.reaches(ROWS + 1), "all records have come", 240)
        assert topic.arrived == {-1: [True]} | {one: [True] for one in range(ROWS)}
