"""A plain Kafka client of an application: one configuration, whatever its rights are.

It knows nothing of the mesh: it reads a client properties file and a topic.
"""

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

Change = tuple[str, dict[str, Any] | None]
"""(operation c, r, u or d; the row after it, or before it for a deletion)."""


def properties(path: Path) -> dict[str, Any]:
    """A `name=value` file as settings."""
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    return {
        name.strip(): value.strip()
        for name, _, value in (line.partition("=") for line in lines if line[:1] not in ("", "#"))
    }


class Client:
    """An application that reads one topic from its beginning, again and again with one login."""

    def __init__(self, settings: Path, registry_url: str, topic: str) -> None:
        self._file, self._registry_url = settings, registry_url
        self._settings, self.topic = properties(settings), topic
        # by default it waits for ever for an answer that was lost; so it asks again
        self._registry = SchemaRegistryClient({"url": registry_url, "timeout": 10})
        self._decode = AvroDeserializer(
            self._registry, conf={"subject.name.strategy": topic_subject_name_strategy}
        )

    def of(self, topic: str) -> "Client":
        """The same application, which reads another topic."""
        return Client(self._file, self._registry_url, topic)

    def read(self, seconds: float, enough: int = 1) -> tuple[list[Change], str]:
        """Changes since the beginning and Kafka's error name, "" if there was none.

        Returns as soon as `enough` changes were read or Kafka refused, at most after `seconds`.
        """
        values, error = self.values(seconds, enough)
        return [_change(value) for value in values], error

    def values(self, seconds: float, enough: int = 1) -> tuple[list[dict[str, Any]], str]:
        """Values since the beginning, and Kafka's error name; see `read`."""
        consumer = Consumer(
            {
                **self._settings,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + seconds
        try:
            consumer.subscribe([self.topic])
            while time.monotonic() < deadline and len(found) < enough:
                message = consumer.poll(0.2)
                if message is None:
                    continue
                error = message.error()
                if error is not None:
                    if _is_refusal(error):
                        return found, str(error.name())
                    continue
                if message.value() is not None:
                    context = SerializationContext(self.topic, MessageField.VALUE)
                    value: Any = self._decode(message.value(), context)
                    found.append(value)
        finally:
            consumer.close()
        return found, ""

    def write(self, value: bytes, seconds: float = 10) -> str:
        """Try to write; the name of Kafka's error, "" if it let us."""
        names: list[str] = []
        settings = {k: v for k, v in self._settings.items() if k != "group.id"}
        producer = Producer({**settings, "log_level": 0, "message.timeout.ms": 5000})
        try:
            producer.produce(
                self.topic,
                value,
                on_delivery=lambda error, _: names.append(str(error.name()) if error else ""),
            )
            producer.flush(seconds)
        except KafkaException as error:
            names.append(str(error.args[0].name()))
        return names[0] if names else "no answer"


def _change(envelope: dict[str, Any]) -> Change:
    operation = str(envelope["op"])
    return operation, envelope["before"] if operation == "d" else envelope["after"]


def _is_refusal(error: KafkaError) -> bool:
    return error.code() in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001 - the library's own name for it
    )
