"""What must be right before the worker starts, since Kafka and Faust would not say so clearly.

A missing right on the group is a silent hang, a missing right on a row topic loses rows.
"""

from confluent_kafka import Consumer, Producer, TopicPartition

from mesh_events.errors import ConfigurationError
from mesh_events.kafka.connection import Connection, translating
from mesh_events.topics import CHECKPOINTS, GOVERNANCE, LINEAGE, QUARANTINE, ROW_TOPICS
from processors.own_topics.described import verify
from processors.own_topics.wanted import Durability

_TIMEOUT_S = 20


def preflight(connection: Connection, session_timeout_s: float, durability: Durability) -> None:
    """Log in, see every topic as durable as it is to be, and use the group as the worker will.

    Raises ConfigurationError or RefusedError naming what is missing.
    """
    consumer = Consumer(
        connection.config(
            group_id=connection.user, session_timeout_ms=round(session_timeout_s * 1000)
        )
    )
    try:
        with translating(f"listing topics as {connection.user}"):
            seen = consumer.list_topics(timeout=_TIMEOUT_S).topics
        for topic in (GOVERNANCE, *ROW_TOPICS, LINEAGE, CHECKPOINTS, QUARANTINE):
            if topic not in seen or seen[topic].error is not None:
                raise ConfigurationError(
                    f"{connection.user} does not see the topic {topic}: run the foundation "
                    "(`python -m processors.bootstrap`) and look at the rights"
                )
        verify(connection, durability)
        with translating(f"reading the offsets of group {connection.user}"):
            consumer.committed([TopicPartition(GOVERNANCE, 0)], timeout=_TIMEOUT_S)
    finally:
        consumer.close()
    with translating(f"preparing to write as {connection.user}"):
        # an idempotent producer asks for its id now, not at the first row
        Producer(connection.config(enable_idempotence=True)).list_topics(timeout=_TIMEOUT_S)
