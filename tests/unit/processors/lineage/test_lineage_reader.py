"""Where lineage is read on, over the broker that the Kafka library brings along for tests."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from structlog.testing import capture_logs

from mesh_events import topics
from mesh_events.kafka.connection import Connection
from processors import bootstrap
from processors.clusters.rights import Binding, Operation, Resource
from processors.lineage.reader import LineageReader
from processors.settings import GOVERNOR

WRITTEN = [f"event {number}".encode() for number in range(5)]


@dataclass(frozen=True, slots=True)
class OpenConnection(Connection):
    """Without a login, which that broker does not know."""

    def librdkafka(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap_servers}


@pytest.fixture
def connection() -> Iterator[Connection]:
    # the broker lives in the producer
    producer = Producer(
        {"bootstrap.servers": "none.invalid:1", "test.mock.num.brokers": 1, "log_level": 0}
    )
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    for value in WRITTEN:
        producer.produce(topics.LINEAGE, value, partition=0)
    assert producer.flush(10) == 0
    yield OpenConnection(f"{broker.host}:{broker.port}", GOVERNOR, "")
    producer.purge()


def read(connection: Connection, count: int, *, save: bool = True) -> list[bytes | None]:
    """So many events by a reader that is then gone; they come within the test's own time."""
    reader, found = LineageReader(connection), []
    while len(found) < count:
        event = reader.first()
        if event is not None:
            assert reader.first() is event
            found.append(event.value)
            reader.dealt_with()
    if save:
        reader.save()
    reader.close()
    return found


def test_reading_begins_with_the_oldest_and_goes_on_at_what_was_saved(
    connection: Connection,
) -> None:
    assert read(connection, 2) == WRITTEN[:2]
    assert read(connection, 2, save=False) == WRITTEN[2:4]
    assert read(connection, 3) == WRITTEN[2:]
    reader = LineageReader(connection)
    assert reader.first() is None
    reader.close()


def test_a_place_that_the_topic_does_not_have_is_told_and_given_up(connection: Connection) -> None:
    beyond = TopicPartition(topics.LINEAGE, 0, 1000)
    group = Consumer(connection.config(group_id=f"{GOVERNOR}.lineage"))
    group.commit(offsets=[beyond], asynchronous=False)
    group.close()
    with capture_logs() as logs:
        assert read(connection, 5) == WRITTEN
    assert [(one["event"], one["place"]) for one in logs] == [("lineage_place_gone", 1000)]


def test_the_governor_may_read_the_topic_and_keep_its_place() -> None:
    group = Binding(GOVERNOR, Operation.READ, Resource.GROUP, f"{GOVERNOR}.", prefixed=True)
    topic = Binding(GOVERNOR, Operation.READ, Resource.TOPIC, "mesh.", prefixed=True)
    assert {group, topic} <= bootstrap.rights()
