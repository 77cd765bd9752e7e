"""Plain Kafka clients: what any program can do with a login, and what Kafka answers."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from local_platform import Endpoints
from mesh_events import topics
from mesh_events.kafka.connection import Connection
from mesh_events.references import resolve

PATIENCE_S = 240
"""How long anything may take in a test: a loaded machine is slow, and waiting costs nothing."""
Headers = list[tuple[str, bytes | None]]


def fresh(stem: str) -> str:
    """A name that no other test has."""
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def eventually(condition: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    """Look again and again until `condition` holds; fails with `what` after `seconds`.

    It looks less often the longer it takes: looking costs what the servers need to get there.
    """
    deadline, pause = time.monotonic() + seconds, 0.05
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(pause)
        pause = min(0.5, pause * 1.3)


def seen_within(seconds: float, condition: Callable[[], object]) -> bool:
    """Whether `condition` comes to hold within `seconds`."""
    try:
        eventually(condition, "seen", seconds)
    except AssertionError:
        return False
    return True


def topic_id(admin: AdminClient, topic: str) -> str:
    """The id that Kafka gave a topic, once a broker knows of it: its controller may be ahead."""
    found: list[str] = []

    def is_known() -> bool:
        try:
            found.append(_described(admin, topic))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return False
        return True

    eventually(is_known, f"{topic} is known")
    return found[-1]


def _described(admin: AdminClient, topic: str) -> str:
    """The id of a topic that is known."""
    return str(admin.describe_topics(TopicCollection([topic]))[topic].result(20).topic_id)


def delete_and_create(admin: AdminClient, topic: str, partitions: int, **config: str) -> None:
    """Replace a topic by another one of its name; settings have underscores for dots."""
    before = topic_id(admin, topic)
    admin.delete_topics([topic])[topic].result(20)
    settings = {name.replace("_", "."): value for name, value in config.items()}

    def is_another() -> bool:
        with suppress(KafkaException):
            admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(20)
        with suppress(KafkaException):
            return _described(admin, topic) != before
        return False

    eventually(is_another, f"{topic} is another topic")


def login(endpoints: Endpoints, home: Path, cluster: str, principal: str) -> Connection:
    """How a principal of the mesh logs in to a cluster now."""
    password = resolve(f"file:{home / 'secrets' / cluster / principal}")
    return replace(endpoints.administration(cluster), user=principal, password=password)


class RawProducer:
    """Writes any bytes to the governance log as one principal."""

    def __init__(self, connection: Connection, **more: Any) -> None:
        # far above the log's own limit: refusing is Kafka's part
        limits = {
            "message_max_bytes": 16 * 1024 * 1024,
            "delivery_timeout_ms": 20_000,
            # brokers take 2 000 from a login of intents
            "batch_num_messages": 1_000,
        }
        self.producer = Producer(connection.config(acks="all", linger_ms=0, **limits, **more))

    def write(
        self,
        value: bytes | None,
        key: bytes | None = b"any/thing/at-all",
        headers: Headers | None = None,
        topic: str = topics.GOVERNANCE,
    ) -> int:
        """The offset of the record; raises KafkaException with Kafka's refusal.

        It is written again where the login has used up its share: domains of other tests have one.
        """
        found: list[int] = []

        def is_taken() -> bool:
            try:
                found.extend(self.write_all([(value, key, headers or [])], topic))
            except KafkaException as refusal:
                if refusal.args[0].code() != KafkaError.THROTTLING_QUOTA_EXCEEDED:
                    raise
            return bool(found)

        eventually(is_taken, "the login has a share again", 30)
        return found[0]

    def write_all(
        self,
        records: Iterable[tuple[bytes | None, bytes | None, Headers]],
        topic: str = topics.GOVERNANCE,
    ) -> list[int]:
        """The offsets of (value, key, headers), written without waiting in between."""
        found: list[tuple[KafkaError | None, int]] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            found.append((error, -1 if error else message.offset()))

        for value, key, headers in records:
            self.producer.produce(
                topic, value=value, key=key, headers=headers, partition=0, on_delivery=delivered
            )
        self.producer.flush(25)
        for error, _ in found:
            if error is not None:
                raise KafkaException(error)
        return [offset for _, offset in found]


def reading(connection: Connection, group: str) -> dict[str, Any]:
    """Settings of a plain consumer."""
    return connection.config(
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        enable_partition_eof=True,
        topic_metadata_refresh_interval_ms=500,
    )


def read(config: Mapping[str, Any], topic: str, seconds: float = PATIENCE_S) -> list[bytes] | str:
    """Everything on a topic up to its end, or the name of Kafka's error."""
    refused: list[str] = []

    def told(error: KafkaError) -> None:
        # a refused login is no message's error: it is told only here
        if error.code() == KafkaError._AUTHENTICATION:
            refused.append(str(error.name()))

    consumer = Consumer({**config, "error_cb": told})
    consumer.subscribe([topic])
    try:
        return _read(consumer, refused, topic, seconds)
    finally:
        consumer.close()


def _read(consumer: Any, refused: list[str], topic: str, seconds: float) -> list[bytes] | str:
    values: list[bytes] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if refused:
            return refused[0]
        try:
            message = consumer.poll(0.2)
        except KafkaException as failed:
            return str(failed.args[0].name())
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.append(message.value())
        elif error.code() == KafkaError._PARTITION_EOF:
            return values
        else:
            return str(error.name())
    raise AssertionError(f"neither the end of {topic} nor an error within {seconds:g} s")


def write(connection: Connection, topic: str, value: bytes = b"x") -> str:
    """Write one value; the name of Kafka's error, "" if it was taken."""
    try:
        RawProducer(connection).write(value, None, topic=topic)
    except KafkaException as refused:
        return str(refused.args[0].name())
    return ""


def registrar(endpoints: Endpoints) -> SchemaRegistryClient:
    """Who may register at the mesh's registry, and change its rules."""
    user = f"{endpoints.registry_user}:{resolve(endpoints.registry_password)}"
    return SchemaRegistryClient(
        {"url": endpoints.registry_url, "basic.auth.user.info": user, "timeout": 20}
    )


def register_schema(endpoints: Endpoints, subject: str, text: str) -> int:
    """Register an Avro schema; its id."""
    return int(registrar(endpoints).register_schema(subject, Schema(text, "AVRO")))
