"""Holds a copy against its source; imports nothing of the project, trusts only Kafka's client.

A copy is exact if each of its partitions is, record for record, a prefix of the source's: same
key, value and headers in the same order, and one more header that names the source's offset.
"""

import time
import uuid
from itertools import zip_longest

from confluent_kafka import Consumer, TopicPartition


def read(config: dict, topic: str) -> dict[int, list[tuple]]:
    """Partition -> [(offset, key, value, headers)] of a topic, with a client's login."""
    consumer = Consumer(
        {
            **config,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    partitions = sorted(consumer.list_topics(topic, timeout=20).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: dict[int, list[tuple]] = {partition: [] for partition in partitions}
    unread, deadline = set(partitions), time.monotonic() + 120
    while unread:
        assert time.monotonic() < deadline, f"{topic} could not be read to its end"
        for message in consumer.consume(10_000, 0.2):
            if message.error() is not None:
                unread.discard(message.partition())
                continue
            headers = [(name, value) for name, value in message.headers() or []]
            found[message.partition()].append(
                (message.offset(), message.key(), message.value(), headers)
            )
    consumer.close()
    return found


def differences(source: dict, copy: dict, origin: str) -> list[str]:
    """What is wrong with a copy, [] if it is exact as far as it goes.

    Args:
        source: as `read` gives it.
        copy: as `read` gives it.
        origin: what the added header's value begins with, `<cluster>/<topic id>`.
    """
    found = [] if source.keys() == copy.keys() else [f"partitions {set(source) ^ set(copy)}"]
    for partition in source.keys() & copy.keys():
        wanted = [
            (key, value, [*headers, ("mesh.source", f"{origin}/{partition}/{offset}".encode())])
            for offset, key, value, headers in source[partition]
        ]
        got = [record[1:] for record in copy[partition]]
        if len(got) > len(wanted):
            found.append(f"{partition}: {len(got) - len(wanted)} records too many")
        for place, (expected, arrived) in enumerate(zip_longest(wanted, got)):
            if arrived is None:
                break
            if expected != arrived:
                found.append(f"{partition}: record {place} is {arrived}, not {expected}")
                break
    return found


def missing(source: dict, copy: dict) -> int:
    """How many records the copy has fewer than the source."""
    return sum(map(len, source.values())) - sum(map(len, copy.values()))
