"""Writing records as a person: lines of text or JSON, encoded by the topic's schemas."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, Message, Producer

from mesh_events.errors import InfrastructureError, InvalidValueError
from mesh_events.kafka.connection import Connection, translated, translating
from self_service.cli.schema import subjects
from self_service.formats.json_numbers import parsed, written

if TYPE_CHECKING:
    from mesh_events.schema.definition import Kind
    from self_service.cli.mesh.context import Mesh
    from self_service.formats.schema import Schema

_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Lines:
    """How input lines become keys and values.

    key: the key of every record; separator: or what stands between key and value in a line;
    key_field: or the field of the JSON value that is the key. No key where none is given.
    """

    key: str | None = None
    separator: str | None = None
    key_field: str | None = None

    def parse(self, line: str) -> tuple[str | None, str]:
        """(key, value) of a line; raises InvalidValueError where the line has no key."""
        if self.key is not None:
            return self.key, line
        if self.separator is not None:
            key, found, value = line.partition(self.separator)
            if not found:
                raise InvalidValueError(f"no {self.separator!r} between key and value")
            return key, value
        if self.key_field is not None:
            document = parse_json(line)
            if not isinstance(document, dict) or self.key_field not in document:
                raise InvalidValueError(f"the value has no field {self.key_field!r}")
            found_key = document[self.key_field]
            return (found_key if isinstance(found_key, str) else written(found_key)), line
        return None, line


class Encoder:
    """Text to bytes by a subject's schema; without a schema the text itself."""

    def __init__(self, schema: "tuple[int, Schema] | None") -> None:
        self._schema = schema

    @classmethod
    def of(
        cls,
        mesh: "Mesh",
        subject: str,
        file: Path | None,
        kind: "Kind | None" = None,
        *,
        raw: bool,
    ) -> "Encoder":
        """By a file's schema, which is registered; else by the subject's latest; else plain.

        Raises RefusedError where the file's schema would break a reader.
        """
        if file is None:
            found = None if raw else subjects.latest(mesh, subject)
        else:
            from self_service.cli.schema.register import register_next

            schema = subjects.draft(mesh, subject, file, kind)
            found = register_next(mesh, subject, file, schema), schema
        if found is None:
            return cls(None)
        return cls((found[0], subjects.usable(mesh, subject, found[1])))

    def encode(self, text: str) -> bytes:
        """The bytes of a value; raises InvalidValueError where it does not fit the schema."""
        try:
            plain = text.encode()
        except UnicodeEncodeError as error:
            # an argument's bytes, or a half of a character that a JSON text names
            raise InvalidValueError("it is not UTF-8") from error
        if self._schema is None:
            return plain
        schema_id, schema = self._schema
        return schema.encoded(schema_id, text if schema.takes_text else parse_json(text))

    def encode_key(self, text: str) -> bytes:
        """The bytes of a key; as `encode`."""
        try:
            return self.encode(text)
        except InvalidValueError as error:
            raise InvalidValueError(f"the key: {error}") from error


def parse_json(text: str) -> Any:
    """A JSON value; raises InvalidValueError."""
    try:
        return parsed(text)
    except RecursionError as error:
        raise InvalidValueError("the value is not JSON: it is nested too deeply") from error
    except ValueError as error:
        raise InvalidValueError(f"the value is not JSON ({error}): --raw writes text") from error


def records(
    lines: Iterable[str], shape: Lines, key_encoder: Encoder, value_encoder: Encoder
) -> Iterator[tuple[bytes | None, bytes]]:
    """(key, value) of each line that is not empty; errors name the line."""
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if not text:
            continue
        try:
            key, value = shape.parse(text)
            encoded = None if key is None else key_encoder.encode_key(key)
            yield encoded, value_encoder.encode(value)
        except InvalidValueError as error:
            raise InvalidValueError(f"line {number}: {error}") from error


def write(
    login: Connection, topic: str, pairs: Iterable[tuple[bytes | None, bytes | None]]
) -> list[tuple[int, int]]:
    """Write records; returns (partition, offset) of each as Kafka acknowledged it.

    Raises RefusedError where Kafka refuses, InfrastructureError where it does not answer.
    """
    doing = f"writing {topic} at {login.bootstrap_servers} as {login.user}"
    failed: list[KafkaError] = []
    written: list[tuple[int, int]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            written.append((message.partition(), message.offset()))
        else:
            failed.append(error)

    config = login.config(acks="all", delivery_timeout_ms=_TIMEOUT_S * 1000)
    producer = Producer(
        {
            **config,
            "allow.auto.create.topics": False,
            # a record is never written twice: what fails is told, and the person decides.
            # (An idempotent producer that may write nothing is told about the cluster's
            # rights, not about the topic's.)
            "message.send.max.retries": 0,
            "error_cb": lambda error: _fatal(error, failed),
        }
    )
    with translating(doing):
        for key, value in pairs:
            _produce(producer, topic, key, value, delivered)
            if failed:
                break
        left = producer.flush(_TIMEOUT_S if not failed else 1)
    if failed:
        if failed[0].name() == "INVALID_RECORD":
            raise InvalidValueError(
                f"{doing}: Kafka refused a record (INVALID_RECORD); if the topic is compacted, "
                "each record needs a key: --key, --key-field or --separator"
            )
        raise translated(failed[0], doing)
    if left:
        raise InfrastructureError(f"{doing}: {left} records were not acknowledged", retriable=True)
    return written


def _fatal(error: KafkaError, failed: list[KafkaError]) -> None:
    if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own codes
        failed.append(error)


def _produce(
    producer: Producer, topic: str, key: bytes | None, value: bytes | None, delivered: Any
) -> None:
    while True:
        try:
            producer.produce(topic, key=key, value=value, on_delivery=delivered)
        except BufferError:
            # the client library's queue is full: let some go first
            producer.poll(0.5)
        else:
            producer.poll(0)
            return
