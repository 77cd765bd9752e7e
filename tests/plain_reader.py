"""The mesh as any program sees it: plain consumers, the registry's HTTP and fastavro.

Imports nothing of the mesh's own code, so that it can disagree with it.
"""

import io
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import fastavro
import requests
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

ROW_TOPICS = ("mesh.catalog", "mesh.access", "mesh.links", "mesh.statements", "mesh.connectors")


@dataclass(frozen=True)
class Plain:
    """A login at one cluster, and the registry."""

    config: Mapping[str, Any] = field(hash=False)
    registry_url: str

    def messages(self, topic: str, start: int = 0) -> Iterator[Any]:
        """Every message of partition 0 from an offset up to the end of now."""
        consumer = Consumer(
            {
                **self.config,
                "group.id": f"{self.config['sasl.username']}.{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "isolation.level": "read_uncommitted",
            }
        )
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
            at = max(low, start)
            consumer.assign([TopicPartition(topic, 0, at)])
            while at < high:
                message = consumer.poll(10)
                assert message is not None, f"{topic} stands still at {at} of {high}"
                assert message.error() is None, message.error()
                at = message.offset() + 1
                yield message
        finally:
            consumer.close()

    def decoded(self, value: bytes) -> dict[str, Any]:
        """The Avro record in a value, with its name under `type`."""
        schema = schema_of(self.registry_url, int.from_bytes(value[1:5], "big"))
        datum: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
        return {"type": schema["name"].removeprefix("mesh."), **datum}

    def rows(self) -> dict[str, dict[str, Any]]:
        """Topic -> key -> latest row, times in ms; a tombstone takes a row away."""
        found: dict[str, dict[str, Any]] = {topic: {} for topic in ROW_TOPICS}
        for topic, rows in found.items():
            # only the last value of a key counts, whatever stood there before
            last = {message.key(): message.value() for message in self.messages(topic)}
            for key, value in last.items():
                if value is not None:
                    rows[key.decode()] = as_json(self.decoded(value))
        return found

    def readers(self) -> set[tuple[str, str]]:
        """(principal, topic) of every right to read a topic by its full name."""
        admin = AdminClient(dict(self.config))
        wanted = AclBindingFilter(
            ResourceType.TOPIC,
            None,
            ResourcePatternType.LITERAL,
            None,
            None,
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        bindings = admin.describe_acls(wanted, request_timeout=20).result(25)
        return {(each.principal.removeprefix("User:"), each.name) for each in bindings}


@cache
def schema_of(registry_url: str, schema_id: int) -> Any:
    answer = requests.get(f"{registry_url}/schemas/ids/{schema_id}", timeout=20)
    answer.raise_for_status()
    return fastavro.parse_schema(json.loads(answer.json()["schema"]), named_schemas={})


def as_json(datum: dict[str, Any]) -> dict[str, Any]:
    """The same record as JSON has it, times in ms since the epoch."""
    return dict(json.loads(json.dumps(datum, default=milliseconds)))


def milliseconds(value: datetime) -> int:
    return round(value.timestamp() * 1000)
