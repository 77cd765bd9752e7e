"""What an owner does to a topic on a real cluster."""

from confluent_kafka.admin import AdminClient, NewPartitions

from mesh_events.kafka.connection import Connection
from tests.links.real import RealLink, until


def add_partitions(login: Connection, topic: str, partitions: int) -> None:
    """As `kafka-topics --alter --partitions` does; `partitions` is the new total."""
    client = AdminClient(login.config())
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(15)
    until(lambda: len(client.list_topics(topic, 5).topics[topic].partitions) == partitions)


def numbered(first: int, count: int, partitions: int) -> list[tuple[int, bytes, bytes, None]]:
    """Records (partition, key, value, headers), in turn over the partitions."""
    return [(n % partitions, b"k", str(n).encode(), None) for n in range(first, first + count)]


def partitions_of(link: RealLink) -> int:
    """How many the copy has."""
    found = link.west.topic(link.topic)
    return found.partitions if found else 0
