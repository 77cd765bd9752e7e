"""Domains, products and logins that a benchmark makes in a running mesh."""

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from local_platform import Endpoints
from mesh_events.emit import Emitter
from mesh_events.intents import (
    ApplicationRegistered,
    DomainRegistered,
    Intent,
    ProductPublished,
    Quality,
    intents_login,
)
from mesh_events.kafka.connection import Connection
from mesh_events.read import LogReader
from mesh_events.references import resolve
from mesh_events.schema.registry import Registry
from mesh_events.settings import Profile, key_path
from mesh_events.signing import SigningKey
from processors.clusters.kafka import KafkaAdmin
from processors.settings import OPERATOR, WorkerSettings
from projections.image import EMPTY, Image
from projections.replay import replay

_Found = TypeVar("_Found")


class Members:
    """The operator of the mesh at `home`, who registers domains; all names are new."""

    def __init__(self, endpoints: Endpoints, home: Path) -> None:
        self.settings = WorkerSettings.load()
        self.profile = Profile.load(home)
        self.registry = Registry(endpoints.registry_url)
        self.clusters = {
            name: KafkaAdmin(name, endpoints.administration(name)) for name in endpoints.clusters
        }
        self.tag = uuid.uuid4().hex[:6]
        self._endpoints = endpoints
        self._reader = LogReader(self.clusters["east"].login)
        self._image = EMPTY
        self.operator = Emitter(
            self.settings.governance(OPERATOR),
            self.registry,
            SigningKey.load(key_path(home, "operator")),
            mesh=self.profile.keys,
            domain="mesh",
            actor="benchmark",
        )

    def image(self) -> Image:
        """The image now."""
        self._image = replay(self._reader.to_end(), self._image)
        return self._image

    def submit(self, emitter: Emitter, intent: Intent) -> None:
        """Emit and wait for the acceptance."""
        receipt = emitter.emit(intent)
        outcome = emitter.outcome(receipt)
        if not outcome.accepted:
            raise SystemExit(f"{intent.type_name()} was refused: {outcome.reason}")

    def login(self, principal: str, cluster: str) -> Connection:
        """The issued login of a principal."""
        password = resolve(self.settings.secrets().reference(cluster, principal))
        return self.clusters[cluster].connection(principal, password)

    def domain(self, name: str, cluster: str = "east") -> Emitter:
        """Register a domain; returns once it can log in."""
        key = SigningKey.generate()
        self.submit(
            self.operator,
            DomainRegistered(
                meta=self.operator.meta(),
                domain=name,
                owner="benchmark",
                cluster=cluster,
                public_key=key.public,
                proof=key.prove(self.profile.root_key, name),
            ),
        )
        wait(lambda: len(self.image().identity.domains[name].rights) == len({"east", cluster}))
        login = intents_login(name)
        wait(lambda: self.image().identity.credentials[login, "east"].issued)
        return Emitter(
            self.login(login, "east"),
            self.registry,
            key,
            mesh=self.profile.keys,
            domain=name,
            actor="benchmark",
        )

    def application(self, owner: Emitter, name: str) -> None:
        """Register an application; returns once it has its rights."""
        self.submit(owner, ApplicationRegistered(meta=owner.meta(), application=name))
        wait(lambda: self.image().identity.applications[name].rights)

    def publish(self, owner: Emitter, topic: str, partitions: int = 1) -> None:
        """Create a topic with a schema and one record, and publish it."""
        east = self.clusters["east"]
        east.create_topic(topic, partitions, {})
        writer = SchemaRegistryClient(
            {
                "url": self._endpoints.registry_url,
                "basic.auth.user.info": (
                    f"{self._endpoints.registry_user}:{resolve(self._endpoints.registry_password)}"
                ),
                "timeout": 10,
            }
        )
        writer.register_schema(f"{topic}-value", Schema('"string"', "AVRO"))
        producer = Producer(east.login.config())
        producer.produce(topic, b"\x00\x00\x00\x00\x01\x06abc")
        producer.flush(10)
        self.submit(
            owner,
            ProductPublished(
                meta=owner.meta(),
                product=topic,
                topic=topic,
                description="figures",
                owner="benchmark",
                quality=Quality.RAW,
                sla=3,
                acknowledged=True,
            ),
        )


def wait(condition: Callable[[], _Found | None], seconds: float = 60) -> _Found:
    """Poll a condition until it holds; ends the benchmark after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise SystemExit("what the benchmark waits for did not happen: see `sdm status`")
