"""A real Kafka Connect, by the contract."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from local_platform import Endpoints
from processors.clusters.kafka import KafkaAdmin
from processors.connect.rest import Connect
from tests.connectors.connect_contract import ConnectContract
from tests.links.real import until
from tests.mesh_fixtures import connect_worker

_PACKAGE = "org.apache.kafka.connect"


class TestConnect(ConnectContract):
    @pytest.fixture(autouse=True)
    def _world(self, platform: Endpoints) -> Iterator[None]:
        self.api = Connect(*connect_worker(platform))
        self.name = f"contract-{uuid.uuid4().hex[:10]}"
        topic = f"contract.{self.name}"
        east = KafkaAdmin("east", platform.administration("east"))
        login = east.login.java()
        own = {name: value for name, value in login.items() if not name.startswith("ssl.")}
        self.config = {
            # the smallest source that comes with Kafka: one record a second
            "connector.class": f"{_PACKAGE}.mirror.MirrorHeartbeatConnector",
            "tasks.max": "1",
            "source.cluster.alias": "east",
            "target.cluster.alias": "east",
            "heartbeats.topic.replication.factor": "1",
            "key.converter": f"{_PACKAGE}.converters.ByteArrayConverter",
            "value.converter": f"{_PACKAGE}.converters.ByteArrayConverter",
            "offsets.storage.topic": topic,
            **{f"{side}.cluster.{n}": v for side in ("source", "target") for n, v in login.items()},
            **{
                f"{client}.override.{name}": value
                for client in ("producer", "consumer", "admin")
                for name, value in own.items()
            },
        }
        yield
        self.api.delete(self.name)
        self.wait(lambda: self.seen() is None)
        for name in (topic, "heartbeats"):
            east.delete_topic(name)

    def fail(self) -> None:
        # bytes are no booleans: the first record ends the task
        odd = f"{_PACKAGE}.converters.BooleanConverter"
        self.api.put(self.name, {**self.config, "value.converter": odd})

    def wait(self, condition: Callable[[], bool]) -> None:
        until(condition, 60)
