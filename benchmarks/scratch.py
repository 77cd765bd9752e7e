"""A topic of a benchmark's own, deleted at the end."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from local_platform import Endpoints
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import KafkaAdmin


@contextmanager
def scratch_log(endpoints: Endpoints) -> Iterator[tuple[Connection, str]]:
    """(login that may do anything, name of the topic) on cluster east; keeps times as written."""
    admin = KafkaAdmin("east", endpoints.administration("east"))
    topic = f"benchmark.{uuid.uuid4().hex[:8]}"
    admin.create_topic(topic, 1, {"message.timestamp.type": "CreateTime"})
    try:
        yield admin.login, topic
    finally:
        admin.delete_topic(topic)
